"""A text as ids on disk, in memory-mapped arrays.

A directory with these files:

* ``vocab.txt``: the vocabulary.
* ``words.npy``: int32, all sentences one after the other, each ending in ``</s>``.
* ``offsets.npy``: int64 [sentences + 1], where each sentence begins.
* ``text.json``: counts and the fingerprint; written last.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.arrays import growing_array
from rnnsmt.base.io import InputError, check_utf8, read_json, read_line_blocks, write_json
from rnnsmt.base.progress import Meter
from rnnsmt.networks.sequences import Sequences, open_sequences
from rnnsmt.networks.vocabulary import UNK, Vocabulary

FORMAT = "rnnsmt-cslm-text-2"

AGAIN = "run cslm prepare again"


class Text:
    """The sentences of a text."""

    def __init__(self, folder: Path, sequences: Sequences, fingerprint: str, unknown_words: int) -> None:
        """Read the vocabulary. unknown_words: number of distinct words of the text outside the shortlist."""
        self.folder, self.fingerprint, self.unknown_words = folder, fingerprint, unknown_words
        self.words, self.offsets = sequences
        self.vocabulary = Vocabulary.read(folder / "vocab.txt")

    @classmethod
    def open(cls, folder: str | Path) -> "Text":
        """Open a directory that ``cslm prepare`` wrote; only the vocabulary is read into memory.

        Raises:
            InputError: a file is missing, damaged, or inconsistent with the others.
        """
        folder = Path(folder)
        stats = read_json(folder / "text.json")
        if not isinstance(stats, dict) or stats.get("format") != FORMAT or "fingerprint" not in stats:
            raise InputError(f"{folder / 'text.json'}: written by another version; {AGAIN}")
        sequences = open_sequences(folder, "", stats.get("sentences"), stats.get("classes"), AGAIN)
        text = cls(folder, sequences, str(stats["fingerprint"]), int(stats["distinct unknown words"]))
        if text.vocabulary.hash() != stats.get("vocabulary"):
            raise InputError(f"{folder}: vocab.txt is newer than the text; {AGAIN}")
        return text

    def __len__(self) -> int:
        """Return the number of predicted words, including ``</s>`` of every sentence."""
        return len(self.words)


def prepare_text(paths: list[str], vocabulary: Vocabulary, output_dir: str) -> dict[str, object]:
    """Write the directory of a text; return the statistics of the stage. Lines without words are skipped and counted.

    Raises:
        InputError: a text is missing, damaged or not UTF-8, or there are no words at all.
    """
    folder = Path(output_dir)
    unknown = empty = 0
    outside: set[bytes] = set()
    with (
        growing_array(folder / "words.npy", np.int32) as words,
        growing_array(folder / "offsets.npy", np.int64) as ends,
    ):
        ends.append(np.zeros(1, np.int64))
        for ids, lengths, skipped in _blocks(paths, vocabulary, outside):
            ends.append(words.length + np.cumsum(lengths))
            words.append(ids)
            unknown += int(np.count_nonzero(ids == UNK))
            empty += skipped
        if ends.length == 1:
            raise InputError(f"{paths[0]}: contains no words; check the text")
        # the arrays are replaced at the end of the ``with``: without text.json, an interrupted directory is invalid
        (folder / "text.json").unlink(missing_ok=True)
        vocabulary.write(folder / "vocab.txt")
    sentences = ends.length - 1
    digest = hashlib.sha256(words.digest.digest() + ends.digest.digest() + vocabulary.hash().encode())
    stats: dict[str, object] = {
        "sentences": sentences,
        "empty lines": empty,
        "words": words.length - sentences,
        "unknown words": unknown,
        "distinct unknown words": len(outside),
        "coverage": round(1 - unknown / (words.length - sentences), 6),
    }
    about = {"format": FORMAT, "classes": len(vocabulary), "vocabulary": vocabulary.hash()}
    write_json(folder / "text.json", {**about, **stats, "fingerprint": digest.hexdigest()})
    return stats


Block = tuple[NDArray[np.int32], NDArray[np.int64], int]
"""Ids, sentence lengths, number of empty lines."""


def _blocks(paths: list[str], vocabulary: Vocabulary, outside: set[bytes]) -> Iterator[Block]:
    """Yield blocks of the texts: ids with ``</s>``, lengths with ``</s>``, and the number of skipped empty lines.

    outside: the words outside the vocabulary are added to it.
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
                    found = [index.get(word, UNK) for word in words]
                    if UNK in found:
                        outside.update(word for word in words if word not in index)
                    ids.extend(found)
                    ids.append(vocabulary.eos)
                    lengths.append(len(words) + 1)
            meter.add(len(lines))
            yield np.array(ids, np.int32), np.array(lengths, np.int64), len(lines) - len(lengths)
