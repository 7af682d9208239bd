"""Target phrases that the network proposes, for source phrases that the phrase table does not have or has rarely.

The paper leaves it to future work (section 5). A proposed pair has no counts and no alignment. Its five scores, as of a
table with the network's column:

    p(f|e)  lex(f|e), which is what smooths phrase probabilities as well (Foster, Kuhn and Johnson 2006)
    lex     the lexical weight of the best alignment, in both directions
    p(e|f)  the network's
    RNN     the same
"""

from collections.abc import Sequence

import numpy as np

from rnnsmt.io import InputError
from rnnsmt.networks.vocabulary import UNK, Vocabulary
from rnnsmt.phrases.filtering import input_phrases
from rnnsmt.phrases.lexical_table import best_lexical_weight, read_word_probabilities
from rnnsmt.phrases.table import PhraseEntry, line_order, read_phrase_table
from rnnsmt.progress import Meter
from rnnsmt.rnn.generation import beam_search
from rnnsmt.rnn.model import RNNEncoderDecoder

BLOCK = 1024
"""Source phrases between two lines of progress."""


def unfamiliar_phrases(
    texts: Sequence[str], table: str, max_length: int, extractions: int = 0, targets: int = 0
) -> dict[str, set[str]]:
    """Phrases of the texts that the table does not have or has rarely, with the targets that it has of them.

    A phrase is rare that was extracted at most ``extractions`` times or has at most ``targets`` targets; with 0 and 0
    there are unseen phrases only.

    Raises:
        InputError: no words in the texts; a missing or malformed table, or one without counts where they are needed.
    """
    phrases = {phrase.decode() for phrase in input_phrases(texts, max_length)}
    if not phrases:
        raise InputError(f"{texts[0]}: no words in the input; nothing to propose for")
    known: dict[str, set[str]] = {}
    frequent: set[str] = set()
    for entry in read_phrase_table(table):
        if entry.source not in phrases:
            continue
        known.setdefault(entry.source, set()).add(entry.target)
        if extractions and len(entry.counts) < 2:
            raise InputError(f"{table}: a line of '{entry.source}' has no counts; leave out --extractions")
        if not extractions or entry.counts[1] > extractions:
            frequent.add(entry.source)
    familiar = {source for source in frequent if len(known[source]) > targets}
    return {phrase: known.get(phrase, set()) for phrase in sorted(phrases - familiar)}


def propose_targets(
    model: RNNEncoderDecoder,
    vocabularies: Sequence[Vocabulary],
    phrases: dict[str, set[str]],
    beam: int,
    max_length: int,
    nbest: int,
) -> list[PhraseEntry]:
    """The ``nbest`` most probable new targets of each source phrase, in the order of a phrase table.

    phrases: the source phrases, and their targets that are not new. Source phrases with a word that the network does
    not know are left out, and targets with UNK or without words. The one score of an entry is p(target | source).
    """
    source, target = vocabularies
    ids = {phrase: source.ids(phrase.split(" "), eos=True) for phrase in phrases}
    # phrases of a length end at about the same step
    known = sorted((phrase for phrase in ids if UNK not in ids[phrase]), key=lambda phrase: len(ids[phrase]))
    meter = Meter("proposing", len(known), "phrases")
    found: list[PhraseEntry] = []
    for begin in range(0, len(known), BLOCK):
        block = known[begin : begin + BLOCK]
        searched = beam_search(model, [ids[phrase] for phrase in block], beam, max_length, beam)
        for phrase, ranked in zip(block, searched, strict=True):
            texts = ((target.text(one.words), one.score) for one in ranked if one.words and UNK not in one.words)
            new = [
                PhraseEntry(phrase, text, [float(np.exp(score))])
                for text, score in texts
                if text not in phrases[phrase]
            ]
            found += new[:nbest]
        meter.add(len(block))
    return sorted(found, key=line_order)


def score_proposals(proposals: list[PhraseEntry], lex_e2f: str, lex_f2e: str) -> None:
    """Put five scores in place of p(target | source), the one score of every proposal.

    Raises:
        InputError: as ``read_lexical_table``.
    """
    phrases = [(entry.source.encode().split(b" "), entry.target.encode().split(b" ")) for entry in proposals]
    sources, targets = ({word for pair in phrases for word in pair[side]} for side in (0, 1))
    e2f, f2e = (
        read_word_probabilities(lex_e2f, sources, targets),
        read_word_probabilities(lex_f2e, targets, sources),
    )
    for entry, (source, target) in zip(proposals, phrases, strict=True):
        inverse, (p,) = best_lexical_weight(source, target, e2f), entry.scores
        entry.scores = [inverse, inverse, p, best_lexical_weight(target, source, f2e), p]
