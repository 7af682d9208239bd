"""Examples of the joint model: a bitext as ids on disk, with the affiliation of every target word.

A directory with these files:

* ``vocab.source.txt``, ``vocab.target.txt``: the vocabularies.
* ``{source,target}.words.npy``: int32, all sentences one after the other, each ending in ``</s>``.
* ``{source,target}.offsets.npy``: int64 [pairs + 1], where each sentence begins.
* ``affiliations.npy``: int32 [target words], source position in the sentence that a target word hangs on.
* ``examples.json``: counts and the fingerprint; written last.

Input ids of the network are those of one matrix, as in the files of NPLM: the target words first, the source words
after them. Positions before a sentence have id 0 of their side, those after it ``</s>``.
"""

import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.arrays import growing_array, read_array
from rnnsmt.base.io import InputError, read_json, write_json
from rnnsmt.cslm.ngrams import contexts_at
from rnnsmt.networks.sequences import Sequences, open_sequences
from rnnsmt.networks.vocabulary import NULL, UNK, Vocabulary
from rnnsmt.nnjm.affiliation import NO_LINK, affiliations
from rnnsmt.phrases.aligned_text import AlignedBlock, TextStats, WordNumbers, read_aligned_blocks

FORMAT = "rnnsmt-nnjm-examples-1"

AGAIN = "run nnjm prepare again"

SIDES = ("source", "target")


class Examples:
    """The sentence pairs of a bitext; an example is a target word, ``</s>`` included."""

    def __init__(
        self,
        vocabularies: tuple[Vocabulary, Vocabulary],
        sides: tuple[Sequences, Sequences],
        affiliated: NDArray[np.int32],
        fingerprint: str,
        unknown_words: int,
    ) -> None:
        """Keep the arrays. unknown_words: number of distinct target words outside the vocabulary."""
        self.source_vocabulary, self.target_vocabulary = vocabularies
        self.source, self.target = sides
        self.affiliations = affiliated
        self.fingerprint, self.unknown_words = fingerprint, unknown_words

    @classmethod
    def open(cls, directory: str | Path) -> "Examples":
        """Open a directory that ``nnjm prepare`` wrote; only the vocabularies are read into memory.

        Raises:
            InputError: a file is missing, damaged, or inconsistent with the others.
        """
        directory = Path(directory)
        stats = read_json(directory / "examples.json")
        if not isinstance(stats, dict) or stats.get("format") != FORMAT or "fingerprint" not in stats:
            raise InputError(f"{directory / 'examples.json'}: not of this version; {AGAIN}")
        source, target = (Vocabulary.read(directory / f"vocab.{side}.txt") for side in SIDES)
        for side, vocabulary in zip(SIDES, (source, target), strict=True):
            if vocabulary.hash() != stats.get(f"{side} vocabulary"):
                raise InputError(f"{directory}: vocab.{side}.txt was changed after the examples; {AGAIN}")
        sides = (
            open_sequences(directory, "source.", stats.get("pairs"), len(source), AGAIN),
            open_sequences(directory, "target.", stats.get("pairs"), len(target), AGAIN),
        )
        affiliated = read_array(directory / "affiliations.npy", np.int32, 1, AGAIN, mapped=True)
        lengths = np.diff(sides[0].offsets)
        if len(affiliated) != len(sides[1].words) or (len(affiliated) and affiliated.min() < 0):
            raise InputError(f"{directory}: affiliations.npy is not of these sentences; {AGAIN}")
        if (np.maximum.reduceat(affiliated, sides[1].offsets[:-1]) >= lengths).any():
            raise InputError(f"{directory}: affiliations.npy points behind the end of a sentence; {AGAIN}")
        unknown = int(stats.get("distinct unknown target words", 0))
        return cls((source, target), sides, affiliated, str(stats["fingerprint"]), unknown)

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(self.target.words)

    def inputs(self, places: NDArray[np.int64], order: int, window: int) -> NDArray[np.int64]:
        """Return the inputs of the examples ``places`` [B], int64 [B, 2 window + order].

        Columns: the source words from ``window`` before to ``window`` after the affiliated one, then the order - 1
        target words before the predicted one, the oldest first.
        """
        history = contexts_at(self.target.words, places, order - 1, self.target_vocabulary.eos)
        pair = np.searchsorted(self.target.offsets, places, side="right") - 1
        begin, end = self.source.offsets[pair][:, None], self.source.offsets[pair + 1][:, None]
        around = begin + self.affiliations[places][:, None] + np.arange(-window, window + 1)
        words = self.source.words[np.minimum(np.maximum(around, begin), end - 1)].astype(np.int64)
        words[around < begin] = NULL
        return np.concatenate([words + len(self.target_vocabulary), history], 1)


def prepare_examples(
    sources: Sequence[str],
    targets: Sequence[str],
    alignments: Sequence[str],
    vocabularies: tuple[Vocabulary, Vocabulary],
    output_dir: str,
) -> dict[str, object]:
    """Write the directory of a bitext; return the statistics of the stage.

    Sentence pairs without a link, among them those with an empty side, are left out and counted.

    Args:
        sources, targets, alignments: files; the n-th files belong together.
        vocabularies: of the source and of the target side.
        output_dir: the directory.

    Raises:
        InputError: see ``read_aligned_blocks``; or no sentence pair has a link.
    """
    directory, stats = Path(output_dir), TextStats()
    numbers = WordNumbers(), WordNumbers()
    unknown, left_out, several, unlinked = [0, 0], 0, 0, 0
    with ExitStack() as stack:
        words, offsets = (
            [stack.enter_context(growing_array(directory / f"{side}.{part}.npy", kind)) for side in SIDES]
            for part, kind in (("words", np.int32), ("offsets", np.int64))
        )
        affiliated = stack.enter_context(growing_array(directory / "affiliations.npy", np.int32))
        for array in offsets:
            array.append(np.zeros(1, np.int64))
        for block in read_aligned_blocks(sources, targets, alignments, *numbers, stats):
            linked = np.diff(block.link_offsets) > 0
            left_out += int((~linked).sum())
            per_word = _links_of_words(block)
            several, unlinked = several + int((per_word > 1).sum()), unlinked + int((per_word == 0).sum())
            source, target = (
                _with_ends(flat, bounds, linked, _ids(known, vocabulary), vocabulary.eos)
                for flat, bounds, known, vocabulary in zip(
                    (block.source, block.target),
                    (block.source_offsets, block.target_offsets),
                    numbers,
                    vocabularies,
                    strict=True,
                )
            )
            for side, (ids, lengths) in enumerate((source, target)):
                offsets[side].append(words[side].length + np.cumsum(lengths))
                words[side].append(ids)
                unknown[side] += int((ids == UNK).sum())
            affiliated.append(_affiliations(block, linked))
        pairs = offsets[0].length - 1
        if not pairs:
            raise InputError(f"{alignments[0]}: no sentence pair has a link; nothing to learn from")
        # the arrays are replaced when the ``with`` ends: without examples.json an interrupted directory is invalid
        (directory / "examples.json").unlink(missing_ok=True)
    digest = hashlib.sha256()
    for array in (*words, *offsets, affiliated):
        digest.update(array.digest.digest())
    figures: dict[str, object] = {
        "pairs": pairs,
        "pairs without links, left out": left_out,
        "target words": words[1].length - pairs,
        "target words with several links": several,
        "target words without links": unlinked,
    }
    about: dict[str, object] = {"format": FORMAT}
    for side, vocabulary, known, missing, array in zip(SIDES, vocabularies, numbers, unknown, words, strict=True):
        vocabulary.write(directory / f"vocab.{side}.txt")
        digest.update(vocabulary.hash().encode())
        about[f"{side} vocabulary"] = vocabulary.hash()
        figures[f"{side} coverage"] = round(1 - missing / max(array.length - pairs, 1), 6)
        figures[f"distinct unknown {side} words"] = sum(word.decode() not in vocabulary.index for word in known)
    write_json(directory / "examples.json", {**about, **figures, "fingerprint": digest.hexdigest()})
    return figures


def _ids(known: WordNumbers, vocabulary: Vocabulary) -> NDArray[np.int32]:
    """Return the vocabulary's id of every word number."""
    return vocabulary.ids(word.decode() for word in known)


def _links_of_words(block: AlignedBlock) -> NDArray[np.int64]:
    """Count the links of every target word of a block."""
    pair = np.repeat(np.arange(block.sentences), np.diff(block.link_offsets))
    return np.bincount(block.target_offsets[pair] + block.links[:, 1], minlength=len(block.target))


def _with_ends(
    flat: NDArray[np.int32], bounds: NDArray[np.int64], linked: NDArray[np.bool_], ids: NDArray[np.int32], end: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the ids of the sentences that have links, each with ``end`` behind it, and their lengths with it.

    Args:
        flat, bounds: word numbers of all sentences, and where each begins.
        linked: [S], which sentences are kept.
        ids: id of every word number.
        end: id of ``</s>``.
    """
    lengths = np.diff(bounds)
    kept = ids[flat[np.repeat(linked, lengths)]]
    lengths = lengths[linked]
    return np.insert(kept, np.cumsum(lengths), end).astype(np.int32), lengths + 1


def _affiliations(block: AlignedBlock, linked: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return the affiliations of the target words of the sentences that have links; ``</s>`` hangs on ``</s>``."""
    links = np.ascontiguousarray(block.links.T)
    found = affiliations(block.link_offsets, links[0], links[1], block.target_offsets)
    lengths = np.diff(block.target_offsets)
    found = found[np.repeat(linked, lengths)]
    assert NO_LINK not in found
    return np.insert(found, np.cumsum(lengths[linked]), np.diff(block.source_offsets)[linked]).astype(np.int32)
