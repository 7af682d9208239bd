"""Every stage of the pipeline: its command, its module and the version of its meaning.

The command line and the workflow's rules both read this table. A stage is a module with two functions::

    def add_arguments(parser: argparse.ArgumentParser) -> None: ...
    def run(args: argparse.Namespace) -> dict[str, object]: ...   # the figures of its last log line

Raise ``version`` when the same input gives a different output than before: the rules pass it in ``params``, so that
Snakemake, which does not look into Python packages, reruns what became stale.
"""

from typing import NamedTuple


class Stage(NamedTuple):
    """One command ``rnnsmt CHAPTER NAME``: where it lives, what it means, and which version of that meaning it is."""

    module: str
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
    "search": "the decoder",
    "tuning": "weights, by MERT or for given n-best lists",
    "evaluation": "BLEU and Table 1",
    "analysis": "pictures of what was learnt",
    "moses": "Moses model directories",
}

STAGES: dict[str, dict[str, Stage]] = {
    "demo": {
        "make": Stage("rnnsmt.demo.make", 2, "write the embedded corpus"),
    },
    "corpus": {
        "fetch": Stage("rnnsmt.corpus.fetch", 1, "download a corpus file and check its sha256"),
        "unpack": Stage("rnnsmt.corpus.unpack", 1, "take one file out of a tar archive"),
        "prepare": Stage("rnnsmt.corpus.prepare", 2, "read, normalise, tokenise and clean one corpus"),
        "join": Stage("rnnsmt.corpus.join", 1, "join text files"),
        "train-truecaser": Stage("rnnsmt.corpus.train_truecaser", 1, "learn the usual case of every word"),
        "truecase": Stage("rnnsmt.corpus.truecase", 1, "apply a truecasing model"),
        "detokenize": Stage("rnnsmt.corpus.detokenize", 1, "undo truecasing and tokenisation"),
    },
    "selection": {
        "models": Stage("rnnsmt.selection.models", 1, "language models of the in-domain and of the general text"),
        "score": Stage("rnnsmt.selection.score", 1, "cross-entropy difference of every line"),
        "select": Stage("rnnsmt.selection.select", 1, "keep the lines with the lowest scores"),
    },
    "align": {
        "words": Stage("rnnsmt.align.words", 1, "align words in both directions"),
        "check": Stage("rnnsmt.align.check", 1, "check an alignment made elsewhere against the text"),
        "symmetrize": Stage("rnnsmt.align.symmetrize", 1, "combine the two directions"),
    },
    "phrases": {
        "lexical": Stage("rnnsmt.phrases.lexical", 1, "lexical translation probabilities"),
        "extract": Stage("rnnsmt.phrases.extract", 3, "phrase pairs consistent with the alignment"),
        "score": Stage("rnnsmt.phrases.score", 3, "the phrase table"),
        "reordering": Stage("rnnsmt.phrases.reordering", 1, "the lexicalised reordering table"),
        "filter": Stage("rnnsmt.phrases.filter", 1, "keep what a given input can use"),
        "augment": Stage("rnnsmt.phrases.augment", 1, "add columns of scores to the phrase table"),
    },
    "lm": {
        "estimate": Stage("rnnsmt.lm.estimate", 1, "interpolated modified Kneser-Ney, ARPA file"),
        "perplexity": Stage("rnnsmt.lm.perplexity", 1, "perplexity of a text"),
    },
    "rnn": {
        "describe": Stage("rnnsmt.rnn.describe", 1, "sizes and parameters of a network"),
        "prepare": Stage("rnnsmt.rnn.prepare", 1, "phrase pairs and vocabularies as memory-mapped ids"),
        "train": Stage("rnnsmt.rnn.train", 2, "train the network on phrase pairs"),
        "score": Stage("rnnsmt.rnn.score", 1, "log p(target | source) of every pair of the phrase table"),
        "shortlist": Stage("rnnsmt.rnn.shortlist", 1, "target words outside the shortlist, of every pair (WP)"),
        "sample": Stage("rnnsmt.rnn.sample", 1, "draw targets of source phrases"),
        "translate": Stage("rnnsmt.rnn.translate", 1, "translate phrases with the network alone"),
    },
    "cslm": {
        "describe": Stage("rnnsmt.cslm.describe", 1, "sizes and parameters of a network"),
        "prepare": Stage("rnnsmt.cslm.prepare", 1, "the text of the language model as memory-mapped ids"),
        "train": Stage("rnnsmt.cslm.train", 2, "train the network on text"),
        "perplexity": Stage("rnnsmt.cslm.perplexity", 2, "perplexity of a text, beside an n-gram model's"),
        "score": Stage("rnnsmt.cslm.score", 1, "log probability of every line of a text"),
        "rescore": Stage("rnnsmt.cslm.rescore", 1, "add the network's score to an n-best list"),
    },
    "search": {
        "decode": Stage("rnnsmt.search.translate", 3, "translate a text with a Moses model directory"),
    },
    "tuning": {
        "mert": Stage("rnnsmt.tuning.mert", 5, "minimum error rate training"),
        "optimise": Stage("rnnsmt.tuning.optimise_lists", 1, "weights for given n-best lists"),
        "rerank": Stage("rnnsmt.tuning.rerank", 1, "the best translation of every n-best list"),
    },
    "evaluation": {
        "bleu": Stage("rnnsmt.evaluation.bleu", 2, "BLEU of one output"),
        "table": Stage("rnnsmt.evaluation.table", 4, "Table 1 from the scores of all runs"),
        "provenance": Stage("rnnsmt.evaluation.provenance", 3, "files, seeds and weights behind Table 1"),
    },
    "analysis": {
        "learning-curve": Stage("rnnsmt.analysis.learning_curve", 2, "learning curve of a network"),
        "mert-curves": Stage("rnnsmt.analysis.mert_curves", 1, "BLEU by iterations of MERT"),
        "score-scatter": Stage("rnnsmt.analysis.score_scatter", 1, "scores of phrase pairs (Figure 3 of the paper)"),
    },
    "moses": {
        "ini": Stage("rnnsmt.moses.write_ini", 1, "the moses.ini of a model directory"),
    },
}
