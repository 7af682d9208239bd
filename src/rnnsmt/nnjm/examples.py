"""Examples of the joint model: a bitext as ids on disk, a directory of ``rnnsmt.networks.id_directory``.

The JSON file is ``examples.json``, the vocabularies are ``vocab.{source,target}.txt``; ``affiliations.npy``, int32
[target words], has the source position in the sentence that every target word hangs on.

Input ids of the network are those of one matrix, as in the files of NPLM: the target words first, the source words
after them. Positions before a sentence have id 0 of their side, those after it ``</s>``.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.arrays import growing_array, read_array
from rnnsmt.base.io import InputError, write_json
from rnnsmt.cslm.text import contexts_at
from rnnsmt.networks.id_directory import (
    IdFormat,
    Sequences,
    check_vocabulary,
    open_id_directory,
    write_id_directory,
)
from rnnsmt.networks.vocabulary import NULL, Vocabulary
from rnnsmt.nnjm.affiliation import NO_LINK, affiliations, windows_at
from rnnsmt.phrases.aligned_text import AlignedBlock, TextStats, WordNumbers, read_aligned_blocks

FORMAT = IdFormat("examples.json", "rnnsmt-nnjm-examples-1", "pairs", ("source", "target"), "run nnjm prepare again")


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
        opened = open_id_directory(directory, FORMAT)
        source, target = (Vocabulary.read(opened.path / f"vocab.{side}.txt") for side in FORMAT.sides)
        for side, vocabulary in zip(FORMAT.sides, (source, target), strict=True):
            check_vocabulary(opened, FORMAT, side, vocabulary.hash())
        sides = opened.sides[0], opened.sides[1]
        path = opened.path / "affiliations.npy"
        affiliated = read_array(path, np.int32, 1, FORMAT.remedy, mapped=True)
        if len(affiliated) != len(sides[1].words) or affiliated.min() < 0:
            raise InputError(f"{path}: not the affiliations of these sentences; {FORMAT.remedy}")
        if (np.maximum.reduceat(affiliated, sides[1].offsets[:-1]) >= np.diff(sides[0].offsets)).any():
            raise InputError(f"{path}: points behind the end of a sentence; {FORMAT.remedy}")
        unknown = int(opened.stats.get("distinct unknown target words", 0))
        return cls((source, target), sides, affiliated, opened.fingerprint, unknown)

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(self.target.words)

    def inputs(self, places: NDArray[np.int64], order: int, window: int) -> NDArray[np.int64]:
        """Return the inputs of the examples ``places`` [B], int64 [B, 2 window + order].

        Columns: the source words from ``window`` before to ``window`` after the affiliated one, then the order - 1
        target words before the predicted one, the oldest first.
        """
        pair = np.searchsorted(self.target.offsets, places, side="right") - 1
        begin, end = self.source.offsets[pair], self.source.offsets[pair + 1]
        words = windows_at(self.source.words, begin, end, begin + self.affiliations[places], window, NULL)
        return np.concatenate([words.astype(np.int64) + len(self.target_vocabulary), self.history(places, order)], 1)

    def history(self, places: NDArray[np.int64], order: int) -> NDArray[np.int64]:
        """Return the order - 1 target words before the examples ``places`` [B], int64 [B, order - 1], oldest first."""
        return contexts_at(self.target.words, places, order - 1, self.target_vocabulary.eos)


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
    left_out, several, unlinked = 0, 0, 0
    with (
        write_id_directory(directory, FORMAT) as writer,
        growing_array(directory / "affiliations.npy", np.int32) as affiliated,
    ):
        for block in read_aligned_blocks(sources, targets, alignments, *numbers, stats):
            linked = np.diff(block.link_offsets) > 0
            left_out += int((~linked).sum())
            links = _links_of_words(block)
            several, unlinked = several + int((links > 1).sum()), unlinked + int((links == 0).sum())
            sides = (block.source, block.source_offsets), (block.target, block.target_offsets)
            for side, (flat, bounds) in enumerate(sides):
                ids = vocabularies[side].ids(word.decode() for word in numbers[side])
                writer.append(side, *_with_ends(flat, bounds, linked, ids, vocabularies[side].eos))
            affiliated.append(_affiliations(block, linked))
        if not writer.sequences:
            raise InputError(f"{alignments[0]}: no sentence pair has a link; nothing to learn from")
    figures: dict[str, object] = {
        "pairs": writer.sequences,
        "pairs without links, left out": left_out,
        "target words": writer.ids(1),
        "target words with several links": several,
        "target words without links": unlinked,
    }
    about: dict[str, object] = {"format": FORMAT.version}
    hashes = [vocabulary.hash() for vocabulary in vocabularies]
    for side, name in enumerate(FORMAT.sides):
        vocabularies[side].write(directory / f"vocab.{name}.txt")
        about |= {f"{name} vocabulary": hashes[side], f"{name} classes": len(vocabularies[side])}
        figures[f"{name} coverage"] = round(1 - writer.unknown[side] / max(writer.ids(side), 1), 6)
        unknown = sum(word.decode() not in vocabularies[side].index for word in numbers[side])
        figures[f"distinct unknown {name} words"] = unknown
    fingerprint = writer.fingerprint([*hashes, affiliated.digest.hexdigest()])
    write_json(directory / FORMAT.json, {**about, **figures, "fingerprint": fingerprint})
    return figures


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
