"""Scores of the translations of n-best lists by joint models of any direction (Devlin et al. 2014, section 4).

The links between a translation and its source are those of its phrase pairs. Words of a pair without links are
affiliated as in the search: word j with word j of the other side, or with its last word.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import NamedTuple

import numpy as np

from rnnsmt.base.io import InputError, atomic_text, words_of
from rnnsmt.base.progress import track
from rnnsmt.cslm.text_scores import word_scores
from rnnsmt.moses.nbest import Segment, lines_without, phrase_pairs, read_segmentation, with_feature
from rnnsmt.nnjm.examples import affiliated_sentences, directed, exchanged, network_inputs
from rnnsmt.nnjm.scorer import JointScorer
from rnnsmt.nnjm.settings import DIRECTIONS
from rnnsmt.phrases.aligned_text import AlignedBlock
from rnnsmt.phrases.table import read_phrase_table

SENTENCES = 64
"""Number of sentences whose translations are scored together."""

Links = tuple[tuple[int, int], ...]
"""Source and target positions of the links of a phrase pair."""


def feature_name(direction: str) -> str:
    """Return the name of the feature of a direction, NNJM0 to NNJM3 in the order of ``DIRECTIONS``."""
    return f"NNJM{DIRECTIONS.index(direction)}"


class _Entry(NamedTuple):
    """A line of an n-best list: sentence, fields, and the words and phrases of the translation."""

    sentence: int
    fields: list[str]
    text: str
    phrases: tuple[Segment, ...]


def links_of_pairs(phrase_table: str, lists: Iterable[tuple[str, Sequence[str]]]) -> dict[tuple[str, str], Links]:
    """Read the links of all phrase pairs of n-best lists that are in a phrase table.

    Args:
        phrase_table: the table.
        lists: n-best lists with their source sentences.

    Raises:
        InputError: see ``add_to_nbest``, or the table is malformed.
    """
    needed = {
        pair
        for path, sources in lists
        for entry in track(_entries(path, sources), "reading", unit="translations")
        for pair in phrase_pairs(sources[entry.sentence], entry.text, entry.phrases)
    }
    links = {}
    for entry in track(read_phrase_table(phrase_table), "reading", unit="phrase pairs"):
        pair = " ".join(words_of(entry.source)), " ".join(words_of(entry.target))
        if pair in needed:
            links[pair] = tuple(entry.alignment)
    return links


def add_to_nbest(
    scorers: Sequence[JointScorer],
    sources: Sequence[str],
    nbest: str,
    output: str,
    links: Mapping[tuple[str, str], Links],
) -> int:
    """Copy an n-best list with the score of every network appended as a feature; return the number of translations.

    Args:
        scorers: networks of different directions.
        sources: source sentences.
        nbest, output: the list, and the output file.
        links: the result of ``links_of_pairs``.

    Raises:
        InputError: two networks have the same direction, or the list is empty, malformed, has no segmentations, is not
            sorted by sentence, has a sentence that is not in the source, or has a feature already.
    """
    names = [feature_name(scorer.direction) for scorer in scorers]
    if len(set(names)) < len(names):
        raise InputError("--model: two networks have the same direction; specify one for each direction")
    stream = track(_entries(nbest, sources, names), "scoring", unit="translations")
    groups = groupby(stream, key=lambda entry: entry.sentence)
    number = 0
    with atomic_text(output) as out:
        while block := [entry for _, group in islice(groups, SENTENCES) for entry in group]:
            # equal translations with other phrases have other links, so both are scored
            distinct = list(dict.fromkeys((entry.sentence, entry.text, entry.phrases) for entry in block))
            place_of = {key: index for index, key in enumerate(distinct)}
            scores = [_scores(scorer, sources, distinct, links) for scorer in scorers]
            for entry in block:
                index = place_of[entry.sentence, entry.text, entry.phrases]
                for name, values in zip(names, scores, strict=True):
                    line = with_feature(entry.fields, name, float(values[index]))
                    entry.fields[:] = line.split("|||")
                out.write(line + "\n")
            number += len(block)
        if not number:
            raise InputError(f"{nbest}: the n-best list is empty")
    return number


def _entries(path: str, sources: Sequence[str], names: Sequence[str] = ()) -> Iterator[_Entry]:
    """Yield the entries of a list, which must not have features of these names.

    Raises:
        InputError: see ``add_to_nbest``.
    """
    for number, sentence, fields in lines_without(names, path, len(sources), "omit the network of this direction"):
        try:
            phrases = read_segmentation(fields[4] if len(fields) > 4 else "")
        except ValueError as error:
            raise InputError(f"{path}, line {number}: {error}; create the list with `search decode`") from None
        words = len(words_of(sources[sentence]))
        covered = sorted(index for begin, end, _ in phrases for index in range(begin, min(end, words) + 1))
        if covered != list(range(words)) or sum(size for *_, size in phrases) != len(words_of(fields[1])):
            raise InputError(
                f"{path}, line {number}: its phrases do not cover the sentence and its translation; use the source "
                "text of this list, and a list with segmentations, as written by `search decode`"
            )
        yield _Entry(sentence, fields, " ".join(words_of(fields[1])), tuple(phrases))


def _scores(
    scorer: JointScorer,
    sources: Sequence[str],
    entries: Sequence[tuple[int, str, tuple[Segment, ...]]],
    links: Mapping[tuple[str, str], Links],
) -> np.ndarray:
    """Compute ln p ``float64`` [entries] of translations: the sum over the predicted words and ``</s>``."""
    scores = np.zeros(len(entries))
    # empty translations have no words to predict, or none from which to predict
    places = [index for index, (_, text, _) in enumerate(entries) if text]
    if not places:
        return scores
    block, vocabularies = _block([entries[index] for index in places], sources, links, scorer)
    mask = np.ones(block.sentences, bool)
    identity = [np.arange(len(vocabulary), dtype=np.int32) for vocabulary in vocabularies]
    sides, affiliated = affiliated_sentences(block, mask, identity, vocabularies, scorer.direction)
    words = sides[1].words
    inputs = network_inputs(sides, affiliated, np.arange(len(words)), scorer.order, scorer.window, scorer.vocabulary)
    values = word_scores(scorer, inputs, words).astype(np.float64)
    scores[places] = np.add.reduceat(values, sides[1].offsets[:-1])
    return scores


def _block(
    entries: Sequence[tuple[int, str, tuple[Segment, ...]]],
    sources: Sequence[str],
    links: Mapping[tuple[str, str], Links],
    scorer: JointScorer,
) -> tuple[AlignedBlock, tuple]:
    """Return translations as a block of ids with links in the direction of a network, and its vocabularies."""
    given, predicted = scorer.source_vocabulary, scorer.vocabulary
    of_source, of_target = exchanged((given, predicted), scorer.direction)
    known = {sentence: of_source.ids(words_of(sources[sentence])) for sentence in {entry[0] for entry in entries}}
    source = [known[sentence] for sentence, _, _ in entries]
    target = [of_target.ids(words_of(text)) for _, text, _ in entries]
    block_links: list[tuple[int, int]] = []
    counts = []
    for sentence, text, phrases in entries:
        before, at = len(block_links), 0
        for (first, last, size), pair in zip(phrases, phrase_pairs(sources[sentence], text, phrases), strict=True):
            inside = links.get(pair) or [(min(j, last - first), j) for j in range(size)]
            block_links += [(first + i, at + j) for i, j in inside]
            at += size
        block_links[before:] = sorted(block_links[before:], key=lambda link: (link[1], link[0]))
        counts.append(len(block_links) - before)
    block = AlignedBlock(
        np.concatenate(source),
        np.concatenate(target),
        np.array(block_links, np.int32).reshape(-1, 2),
        *(
            np.concatenate([[0], np.cumsum(sizes)])
            for sizes in (list(map(len, source)), list(map(len, target)), counts)
        ),
    )
    return directed(block, scorer.direction), (given, predicted)
