"""Texts as word ids on disk, and the n-grams of a text.

The directory of a text has the format of ``rnnsmt.networks.data``. The JSON file is ``text.json``, the vocabulary
``vocab.txt``.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.errors import InputError
from rnnsmt.base.progress import Meter
from rnnsmt.base.reading import check_utf8, read_line_blocks
from rnnsmt.networks.batches import Index
from rnnsmt.networks.data import NULL, UNK, IdDirectory, IdFormat, Vocabulary, finish_id_directory, write_id_directory

FORMAT = IdFormat("text.json", "rnnsmt-cslm-text-2", ("",), "run `networks prepare` again")

Ids = NDArray[np.int32]


class Text(IdDirectory):
    """Open directory of a text.

    Attributes:
        words: int32, the ids of all sentences, concatenated, each ending in ``</s>``.
        offsets: int64 [sentences + 1], start of each sentence in ``words``.
        vocabulary: the shortlist.
        unknown_words: number of distinct words of the text outside the shortlist.
    """

    kind = FORMAT

    def __post_init__(self) -> None:
        ((self.words, self.offsets),) = self.sides
        (self.vocabulary,) = self.vocabularies
        self.unknown_words = self.number("distinct unknown words")

    def __len__(self) -> int:
        """Return the number of predicted words, including ``</s>`` of every sentence."""
        return len(self.words)

    def contexts(self, places: Index, context: int) -> NDArray[np.int64]:
        """Return the words before the given positions, int64 [B, context]; see ``contexts_at``."""
        return contexts_at(self.words, places, context, self.vocabulary.eos)


def prepare_text(paths: list[str], vocabulary: Vocabulary, output_dir: str) -> dict[str, object]:
    """Write the directory of a text; return the statistics of the stage.

    Lines without words are skipped and counted.
    """
    directory = Path(output_dir)
    empty = 0
    outside: set[bytes] = set()
    with write_id_directory(directory, FORMAT) as writer:
        for ids, lengths, skipped in _blocks(paths, vocabulary, outside):
            writer.append(0, ids, lengths)
            empty += skipped
        if not writer.sequences:
            raise InputError(f"{paths[0]}: contains no words; check the text")
    figures = {
        "sentences": writer.sequences,
        "empty lines": empty,
        "distinct unknown words": len(outside),
        "coverage": round(1 - writer.unknown[0] / writer.ids(0), 6),
    }
    return finish_id_directory(directory, FORMAT, writer, [vocabulary], figures)


Block = tuple[NDArray[np.int32], NDArray[np.int64], int]
"""Ids, sentence lengths, number of empty lines."""


def _blocks(paths: list[str], vocabulary: Vocabulary, outside: set[bytes]) -> Iterator[Block]:
    """Yield blocks of the texts: ids with ``</s>``, lengths with ``</s>``, and the number of skipped empty lines.

    outside: set to which the words outside the vocabulary are added.
    """
    index = {word.encode(): i for word, i in vocabulary.index.items()}
    for path in paths:
        meter = Meter(f"reading {Path(path).name}")
        for block in read_line_blocks(path):
            check_utf8(block, path, meter.done)
            ids: list[int] = []
            lengths: list[int] = []
            lines = block.split(b"\n")[:-1]
            for line in lines:
                if words := line.split():
                    numbers = [index.get(word, UNK) for word in words]
                    if UNK in numbers:
                        outside.update(word for word in words if word not in index)
                    ids.extend(numbers)
                    ids.append(vocabulary.eos)
                    lengths.append(len(words) + 1)
            meter.add(len(lines))
            yield np.array(ids, np.int32), np.array(lengths, np.int64), len(lines) - len(lengths)


def contexts_at(words: Ids, places: Index, context: int, end: int) -> NDArray[np.int64]:
    """Return the words before the given positions of a text, int64 [B, context], oldest first.

    Positions before the beginning of the sentence are padded with id 0.

    Args:
        words: sentences, concatenated, each ending in ``end``; may be memory-mapped.
        places: [B], the positions.
        end: id of ``</s>``.
    """
    before = places[:, None] + np.arange(-context, 0)
    contexts = words[np.maximum(before, 0)].astype(np.int64)
    contexts[before < 0] = end
    # pad all words up to the last ``end`` before the position; accumulate from the newest word to the oldest
    other = np.logical_or.accumulate(contexts[:, ::-1] == end, axis=1)[:, ::-1]
    contexts[other] = NULL
    return contexts


def sentence_ngrams(sentences: Sequence[Ids], context: int, end: int) -> tuple[Ids, Ids]:
    """Return contexts int32 [N, context] and words int32 [N] of all n-grams of sentences, given without ``end``."""
    words = np.concatenate([np.append(sentence, end) for sentence in sentences]).astype(np.int32)
    return contexts_at(words, np.arange(len(words)), context, end).astype(np.int32), words
