"""Training examples of the joint model: a bitext as word ids on disk, and the affiliations of its target words.

Each target word is affiliated with one source word, which is the centre of the window of source words that the network
reads (``rnnsmt.align.affiliation``). The target word ``</s>`` is affiliated with ``</s>`` of the source. In training,
the affiliations follow from the alignment links of the sentence pair; in the search, from the links within a phrase
pair, as in Moses.

The directory of the examples has the format of ``rnnsmt.networks.data``. The JSON file is ``examples.json``, the
vocabularies are ``vocab.source.txt`` and ``vocab.target.txt``. The array ``affiliations.npy``, int32 [target words],
contains the 0-based position in the source sentence of the word with which each target word is affiliated.

The input ids of the network are row numbers of one embedding matrix, with the target words first, then the source
words. Positions before the beginning of a sentence have id 0 of their side, positions after its end the id of ``</s>``.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rnnsmt.align.affiliation import NO_LINK, affiliations
from rnnsmt.base.arrays import growing_array, read_array
from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.strings import Interner
from rnnsmt.cslm.text import contexts_at
from rnnsmt.networks.data import (
    NULL,
    UNK,
    IdDirectory,
    IdFormat,
    Sequences,
    Vocabulary,
    finish_id_directory,
    write_id_directory,
)
from rnnsmt.phrases.aligned_text import AlignedBlock, TextStats, read_aligned_blocks

PAIRS = 1 << 16
"""Number of sentence pairs whose affiliations are checked at a time."""


def windows_at(
    words: NDArray[np.int32],
    begin: NDArray[np.int64] | int,
    end: NDArray[np.int64] | int,
    places: NDArray[np.int64],
    window: int,
    padding: int,
) -> NDArray[np.int32]:
    """Return the source words around positions in sentences, [B, 2 window + 1], from left to right.

    Args:
        words: source words of all sentences, each ending in ``</s>``, which also pads windows after the end.
        begin, end: range in ``words`` of the sentence of each position, [B], or one range for all positions.
        places: [B], positions in ``words``.
        window: number of words on each side of a position.
        padding: the word that pads windows before the beginning of a sentence.
    """
    around = places[:, None] + np.arange(-window, window + 1)
    first, last = np.reshape(begin, (-1, 1)), np.reshape(end, (-1, 1)) - 1
    windows = words[np.minimum(np.maximum(around, first), last)]
    windows[around < first] = padding
    return windows


FORMAT = IdFormat("examples.json", "rnnsmt-nnjm-examples-3", ("source", "target"), "run `networks prepare` again")


class Examples(IdDirectory):
    """Open directory of a bitext; an example is a target word or ``</s>``.

    Attributes:
        affiliations: int32 [target words], position in the source sentence with which each target word is affiliated.
        unknown_words: number of distinct target words outside the vocabulary.
    """

    kind = FORMAT

    def __post_init__(self) -> None:
        self.source, self.target = self.sides
        self.source_vocabulary, self.target_vocabulary = self.vocabularies
        self.affiliations = read_array(self.path / "affiliations.npy", np.int32, FORMAT.remedy)
        if not self._affiliations_agree():
            raise InputError(f"{self.path}: affiliations.npy does not agree with the sentences; {FORMAT.remedy}")
        self.unknown_words = self.number("distinct unknown target words")

    def _affiliations_agree(self) -> bool:
        """Return whether every target word has an affiliation, and all are positions in the source sentence."""
        if len(self.affiliations) != len(self.target.words):
            return False
        for begin in range(0, len(self.target.offsets) - 1, PAIRS):
            pairs = np.arange(begin, min(begin + PAIRS, len(self.target.offsets) - 1))
            places = self.affiliations[self.target.offsets[pairs[0]] : self.target.offsets[pairs[-1] + 1]]
            if (places < 0).any() or (
                places >= np.repeat(self.source.lengths(pairs), self.target.lengths(pairs))
            ).any():
                return False
            self.release()
        return True

    @property
    def arrays(self) -> list[NDArray[np.generic]]:
        """Return all memory-mapped arrays."""
        return [*super().arrays, self.affiliations]

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(self.target.words)

    def inputs(self, places: NDArray[np.int64], order: int, window: int) -> NDArray[np.int64]:
        """Return the inputs of the examples at the positions ``places`` [B], int64 [B, 2 window + order].

        The columns are the 2 window + 1 source words around the affiliated word, from left to right, then the order - 1
        target words before the predicted word, the oldest first.
        """
        pair = np.searchsorted(self.target.offsets, places, side="right") - 1
        begin, end = self.source.offsets[pair], self.source.offsets[pair + 1]
        words = windows_at(self.source.words, begin, end, begin + self.affiliations[places], window, NULL)
        return np.concatenate([words.astype(np.int64) + len(self.target_vocabulary), self.history(places, order)], 1)

    def history(self, places: NDArray[np.int64], order: int) -> NDArray[np.int64]:
        """Return the order - 1 target words before the positions ``places`` [B], int64 [B, order - 1], oldest first."""
        return contexts_at(self.target.words, places, order - 1, self.target_vocabulary.eos)


def prepare_examples(
    sources: Sequence[str],
    targets: Sequence[str],
    alignments: Sequence[str],
    vocabularies: tuple[Vocabulary, Vocabulary],
    output_dir: str,
) -> dict[str, object]:
    """Write the directory of a bitext; return the statistics of the stage.

    Sentence pairs without a link, including those with an empty side, are skipped and counted.

    Args:
        sources, targets, alignments: files; the n-th files are parallel.
        vocabularies: source vocabulary and target vocabulary.
    """
    directory, stats = Path(output_dir), TextStats()
    numbers = Interner(), Interner()
    ids = [np.empty(0, np.int32) for _ in vocabularies]  # for each side, the vocabulary id of each word number
    discarded, several, unlinked = 0, 0, 0
    with (
        write_id_directory(directory, FORMAT) as writer,
        growing_array(directory / "affiliations.npy", np.int32) as affiliated,
    ):
        for block in read_aligned_blocks(sources, targets, alignments, *numbers, stats):
            linked = np.diff(block.link_offsets) > 0
            discarded += int((~linked).sum())
            links = _links_of_words(block)
            several, unlinked = several + int((links > 1).sum()), unlinked + int((links == 0).sum())
            for side, words in enumerate(numbers):
                new = vocabularies[side].ids(word.decode() for word in words.strings(len(ids[side])))
                ids[side] = np.concatenate((ids[side], new))
            sides, affiliations_of_block = affiliated_sentences(block, linked, ids, vocabularies)
            for side, sentences in enumerate(sides):
                writer.append(side, sentences.words, np.diff(sentences.offsets))
            affiliated.append(affiliations_of_block)
        if not writer.sequences:
            raise InputError(f"{alignments[0]}: no sentence pair has an alignment link; check the alignment")
    figures: dict[str, object] = {
        "pairs": writer.sequences,
        "discarded pairs, without links": discarded,
        "target words with several links": several,
        "target words without links": unlinked,
    }
    for side, name in enumerate(FORMAT.sides):
        figures[f"{name} coverage"] = round(1 - writer.unknown[side] / max(writer.ids(side), 1), 6)
        figures[f"distinct unknown {name} words"] = int(np.count_nonzero(ids[side] == UNK))
    return finish_id_directory(directory, FORMAT, writer, vocabularies, figures, affiliated.digest.hexdigest())


def _links_of_words(block: AlignedBlock) -> NDArray[np.int64]:
    """Count the links of every target word of a block."""
    pair = np.repeat(np.arange(block.sentences), np.diff(block.link_offsets))
    return np.bincount(block.target_offsets[pair] + block.links[:, 1], minlength=len(block.target))


def affiliated_sentences(
    block: AlignedBlock,
    mask: NDArray[np.bool_],
    ids: Sequence[NDArray[np.int32]],
    vocabularies: tuple[Vocabulary, Vocabulary],
) -> tuple[tuple[Sequences, Sequences], NDArray[np.int32]]:
    """Return the sentences of a block as ids with ``</s>``, and the affiliations of the target words and ``</s>``.

    Args:
        block: sentence pairs with links.
        mask: bool [S], the sentence pairs to return, all of which must have links.
        ids: for each side, the vocabulary id of each word number.
        vocabularies: source vocabulary and target vocabulary.
    """
    links = np.ascontiguousarray(block.links.T)
    affiliated = affiliations(block.link_offsets, links[0], links[1], block.target_offsets)
    lengths = np.diff(block.target_offsets)
    affiliated = affiliated[np.repeat(mask, lengths)]
    assert NO_LINK not in affiliated
    sides = (
        _with_ends(block.source, block.source_offsets, mask, ids[0], vocabularies[0].eos),
        _with_ends(block.target, block.target_offsets, mask, ids[1], vocabularies[1].eos),
    )
    ends = np.cumsum(lengths[mask])
    return sides, np.insert(affiliated, ends, np.diff(block.source_offsets)[mask]).astype(np.int32)


def _with_ends(
    flat: NDArray[np.int32], bounds: NDArray[np.int64], mask: NDArray[np.bool_], ids: NDArray[np.int32], end: int
) -> Sequences:
    """Return the ids of the selected sentences, each followed by ``end``.

    Args:
        flat: word numbers of all sentences, one after the other.
        bounds: [S + 1], offset of each sentence in ``flat``.
        mask: bool [S], the selected sentences.
        ids: id of each word number.
    """
    lengths = np.diff(bounds)
    words = ids[flat[np.repeat(mask, lengths)]]
    ends = np.cumsum(lengths[mask])
    offsets = np.concatenate([[0], ends + np.arange(1, len(ends) + 1)])
    return Sequences(np.insert(words, ends, end).astype(np.int32), offsets)
