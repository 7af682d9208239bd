"""Every stage of the pipeline: its command and the version of its meaning.

The command line and the workflow's rules both read this table. The stage ``train`` of the chapter ``rnn`` is two
functions in ``rnnsmt.rnn.commands``::

    def train_options(parser: argparse.ArgumentParser) -> None: ...
    def train(args: argparse.Namespace) -> dict[str, object]: ...   # the figures of its last log line

Raise ``version`` when the same input gives a different output than before: the rules pass it in ``params``, so that
Snakemake, which does not look into Python packages, reruns what became stale.
"""

from typing import NamedTuple


class Stage(NamedTuple):
    """One command ``rnnsmt CHAPTER NAME``: which version of its meaning it is, and what it does."""

    version: int
    help: str


CHAPTERS: dict[str, str] = {
    "demo": "the embedded bilingual corpus",
    "corpus": "fetch, read, normalise, tokenise, truecase and clean text",
    "selection": "keep the in-domain part of a corpus (Moore-Lewis, Axelrod)",
    "align": "word alignment in both directions and its symmetrisation",
    "phrases": "phrase table and lexicalised reordering table",
    "lm": "n-gram language model",
    "rnn": "the RNN Encoder-Decoder",
    "cslm": "the continuous-space language model",
    "seq2seq": "sequence to sequence learning with LSTMs",
    "search": "the decoder",
    "tuning": "weights, by decoding again and again or for given n-best lists",
    "evaluation": "BLEU and Table 1",
    "analysis": "what was learnt, in tables and pictures; the report",
    "translation": "a tuned system at work",
    "moses": "Moses model directories",
    "workflow": "a run of the workflow",
}

ALIGNMENT = 3
"""The version of all that decides about links, in one job or in parts."""

STAGES: dict[str, dict[str, Stage]] = {
    "demo": {
        "make": Stage(3, "write the embedded corpus"),
    },
    "corpus": {
        "fetch": Stage(1, "download a corpus file and check its sha256"),
        "unpack": Stage(1, "take one file out of a tar archive"),
        "prepare": Stage(3, "read, normalise, tokenise and clean one corpus"),
        "join": Stage(1, "join text files"),
        "train-truecaser": Stage(1, "learn the usual case of every word"),
        "truecase": Stage(1, "apply a truecasing model"),
        "detokenize": Stage(1, "undo truecasing and tokenisation"),
    },
    "selection": {
        "models": Stage(1, "language models of the in-domain and of the general text"),
        "score": Stage(1, "cross-entropy difference of every line"),
        "select": Stage(1, "keep the lines with the lowest scores"),
    },
    "align": {
        "words": Stage(ALIGNMENT, "align words in one direction"),
        "cut": Stage(ALIGNMENT, "cut a corpus into parts that are aligned side by side"),
        "count": Stage(ALIGNMENT, "expected counts of a part in a pass"),
        "estimate": Stage(ALIGNMENT, "parameters after a pass from the counts of all parts"),
        "links": Stage(ALIGNMENT, "the links of a corpus that was aligned in parts"),
        "check": Stage(1, "check an alignment made elsewhere against the text"),
        "symmetrize": Stage(1, "combine the two directions"),
    },
    "phrases": {
        "lexical": Stage(1, "lexical translation probabilities"),
        "extract": Stage(4, "phrase pairs consistent with the alignment"),
        "score": Stage(4, "the phrase table"),
        "reordering": Stage(2, "the lexicalised reordering table"),
        "prune": Stage(1, "leave out pairs that may be chance"),
        "filter": Stage(1, "keep what a given input can use"),
        "fill-up": Stage(1, "add the pairs of another phrase table"),
        "augment": Stage(1, "add columns of scores to the phrase table"),
    },
    "lm": {
        "estimate": Stage(1, "interpolated modified Kneser-Ney, ARPA file"),
        "interpolate": Stage(1, "several models as one, with weights that suit a text"),
        "perplexity": Stage(1, "perplexity of a text"),
    },
    "rnn": {
        "describe": Stage(1, "print the sizes and the number of parameters of a network"),
        "prepare": Stage(3, "convert a phrase table into memory-mapped word ids and vocabularies"),
        "train": Stage(5, "train the network on phrase pairs"),
        "score": Stage(2, "compute log p(target | source) of every phrase table entry"),
        "shortlist": Stage(1, "count the target words outside the shortlist of every entry (WP)"),
        "sample": Stage(1, "sample targets of source phrases"),
        "translate": Stage(1, "translate phrases with the network alone, by beam search"),
        "propose": Stage(1, "propose targets of source phrases missing from the phrase table"),
    },
    "cslm": {
        "describe": Stage(1, "print the sizes and the number of parameters of a network"),
        "prepare": Stage(2, "convert a text into memory-mapped word ids"),
        "train": Stage(5, "train the network on text"),
        "perplexity": Stage(2, "compute the perplexity of a text, and that of an n-gram model"),
        "score": Stage(1, "compute the log probability of every line of a text"),
        "rescore": Stage(1, "add the score of the network to an n-best list"),
    },
    "seq2seq": {
        "describe": Stage(1, "print the sizes and the number of parameters of a network"),
        "prepare": Stage(1, "convert a parallel corpus into memory-mapped ids and vocabularies"),
        "train": Stage(1, "train a network on sentence pairs"),
        "translate": Stage(1, "translate a text with the network alone, or with an ensemble"),
        "score": Stage(1, "compute the log probability of every line of a translation"),
        "rescore": Stage(1, "add the score of the network to n-best lists"),
    },
    "search": {
        "decode": Stage(4, "translate a text with a Moses model directory"),
        "binarise": Stage(1, "a model as one binary file, which loads at once"),
    },
    "tuning": {
        "mert": Stage(7, "weights by MERT, batch MIRA or PRO, decoding again and again"),
        "optimise": Stage(1, "weights for given n-best lists"),
        "rerank": Stage(1, "the best translation of every n-best list"),
    },
    "evaluation": {
        "bleu": Stage(3, "BLEU of one output"),
        "score": Stage(2, "detokenise and score what the runs of a tuned system translated"),
        "table": Stage(7, "Table 1 from the scores of all runs"),
        "compare": Stage(2, "compare two systems sentence by sentence"),
        "provenance": Stage(4, "files, seeds and weights behind Table 1"),
    },
    "analysis": {
        "learning-curve": Stage(3, "learning curve of a network"),
        "mert-curves": Stage(1, "BLEU by iterations of MERT"),
        "bleu-curves": Stage(1, "BLEU by length and by rare words"),
        "sentence-vectors": Stage(1, "sentences in the plane, as LSTMs represent them"),
        "score-scatter": Stage(2, "scores of phrase pairs (Figure 3 of the paper)"),
        "phrase-examples": Stage(2, "targets of long phrases (Tables 2 and 3 of the paper)"),
        "embeddings": Stage(2, "words and phrases in the plane (Figures 4 and 5 of the paper)"),
        "report": Stage(1, "everything that a run has found out on one page"),
    },
    "translation": {
        "describe": Stage(1, "what a tuned system needs beside its moses.ini"),
        "translate": Stage(1, "translate raw text with a tuned system, or serve it"),
        "pack": Stage(1, "put a tuned system into one archive"),
    },
    "moses": {
        "check": Stage(1, "see whether an installation of Moses has what is needed"),
        "align": Stage(1, "align words by MGIZA, GIZA++ or fast_align"),
        "train": Stage(1, "phrase and reordering tables by Moses"),
        "tune": Stage(1, "weights by mert-moses.pl"),
        "decode": Stage(1, "translate with Moses' decoder"),
        "ini": Stage(2, "the moses.ini of a model directory"),
        "add-feature": Stage(1, "a moses.ini with one more feature, for n-best lists that have it"),
    },
    "workflow": {
        "status": Stage(1, "how far a run is, and what failed"),
        "usage": Stage(1, "what the jobs of a run took"),
    },
}

SHORT = {
    "translate": ("translation", "translate"),
    "pack": ("translation", "pack"),
    "status": ("workflow", "status"),
}
"""What people call by hand: ``rnnsmt translate`` is ``rnnsmt translation translate``."""
