"""What the networks read and write: the words of a side, or pieces of them (subwords), as ids.

``Units`` turns the words of a sentence into ids and ids into words; everything else of this chapter asks it and does
not know which of the two it is. Both have a ``Vocabulary``: id 0 (padding), id 1 (UNK), the units, and EOS as the last
id.

Subwords are those of sentencepiece (Kudo and Richardson 2018): byte pair encoding (Sennrich, Haddow and Birch 2016) or
a unigram language model (Kudo 2018). A piece that begins a word begins with ``BEGIN``, no piece goes beyond a word, and
the text is taken as it is (no Unicode normalisation), so that pieces put together are the tokenised words again. The
pieces of a word are the likeliest ones, none are sampled.
"""

import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from re import search

import numpy as np
from numpy.typing import NDArray

from rnnsmt.io import InputError, atomic_binary, count_lines, read_lines
from rnnsmt.networks.vocabulary import UNK, Vocabulary, split
from rnnsmt.seq2seq.settings import SUBWORDS

BEGIN = "\u2581"
"""What the first piece of a word begins with: LOWER ONE EIGHTH BLOCK."""

CACHE = 1 << 18
"""Words whose pieces are kept in memory."""

SENTENCES = 1_000_000
"""Lines of a text that the unigram model is trained on at most, evenly spread over it."""


class Units(ABC):
    """The units of one side; ``len`` is the number of softmax classes."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.begins = np.ones(len(vocabulary), bool)
        """Bool [classes]: whether a unit begins a word; EOS counts as one."""

    def __len__(self) -> int:
        return len(self.vocabulary)

    @property
    def eos(self) -> int:
        """The id of the end of a sentence: the last one."""
        return self.vocabulary.eos

    def ids(self, words: Iterable[str], eos: bool = False) -> NDArray[np.int32]:
        """The units of words one after the other, int32, UNK where there is none; with EOS behind them if asked for."""
        return self.vocabulary.ids((part for word in words for part in self.parts(word)), eos)

    def knows(self, word: str) -> bool:
        """Whether a word is all of known units."""
        return all(part in self.vocabulary.index for part in self.parts(word))

    @abstractmethod
    def parts(self, word: str) -> Sequence[str]:
        """The units of a word; one that is not in the vocabulary is UNK."""

    @abstractmethod
    def words(self, ids: Iterable[int]) -> list[str | None]:
        """The words that ids without EOS spell; None: a word with an UNK in it."""

    @abstractmethod
    def hash(self) -> str:
        """SHA-256 of everything that the ids of a text depend on."""

    @abstractmethod
    def model(self) -> bytes:
        """What has to be kept beside the vocabulary."""

    @classmethod
    @abstractmethod
    def load(cls, vocabulary: Vocabulary, model: bytes) -> "Units":
        """What ``vocabulary`` and ``model()`` were taken of.

        Raises:
            RuntimeError, ValueError: they do not belong together, or are damaged.
        """


class Words(Units):
    """Every word is a unit."""

    def parts(self, word: str) -> Sequence[str]:
        return (word,)

    def words(self, ids: Iterable[int]) -> list[str | None]:
        return [None if i == UNK else self.vocabulary.words[i] for i in ids]

    def hash(self) -> str:
        return self.vocabulary.hash()

    def model(self) -> bytes:
        return b""

    @classmethod
    def load(cls, vocabulary: Vocabulary, model: bytes) -> "Words":
        return cls(vocabulary)


class Subwords(Units):
    """The units are the pieces of a model of sentencepiece, in its order."""

    def __init__(self, model: bytes) -> None:
        """model: what sentencepiece has trained, with the unknown piece as its id 0 and no other special ones.

        Raises:
            InputError: sentencepiece is not installed.
            RuntimeError, ValueError: the model is damaged, or not of this kind.
        """
        _need_sentencepiece()
        import sentencepiece

        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        if not processor.vocab_size() or processor.unk_id() != 0:
            raise ValueError("not a model of subwords of this program")
        pieces = [processor.id_to_piece(i) for i in range(1, processor.vocab_size())]
        if BEGIN not in pieces:
            raise ValueError(f"the model of subwords has no piece {BEGIN}")
        super().__init__(Vocabulary(pieces))
        self.begins = np.array([unit.startswith(BEGIN) for unit in self.vocabulary.words])
        self.begins[self.eos] = True
        self._model = model
        self._pieces: Callable[[str], Sequence[str]] = lru_cache(CACHE)(
            # a word with the mark in it would become two
            lambda word: tuple(processor.encode(word.replace(BEGIN, "_"), out_type=str))
        )

    def parts(self, word: str) -> Sequence[str]:
        return self._pieces(word)

    def words(self, ids: Iterable[int]) -> list[str | None]:
        found: list[list[str]] = []
        unknown: set[int] = set()
        for i in ids:
            if self.begins[i] or not found:
                found.append([])
            if i == UNK:
                unknown.add(len(found) - 1)
            else:
                found[-1].append(self.vocabulary.words[i].removeprefix(BEGIN))
        texts = (None if place in unknown else "".join(parts) for place, parts in enumerate(found))
        return [text for text in texts if text != ""]

    def hash(self) -> str:
        return sha256(self.vocabulary.hash().encode() + self._model).hexdigest()

    def model(self) -> bytes:
        return self._model

    @classmethod
    def load(cls, vocabulary: Vocabulary, model: bytes) -> "Subwords":
        found = cls(model)
        if found.vocabulary.words != vocabulary.words:
            raise ValueError("the vocabulary has other pieces than the model of subwords")
        return found


KINDS: dict[str, type[Units]] = {kind: Words if kind == "none" else Subwords for kind in SUBWORDS}
"""By the value of ``--subwords``."""


def make_units(kind: str, paths: Sequence[str], counts: Mapping[str, int], size: int) -> Units:
    """The units of a text: its most frequent words, or subwords learnt from it.

    kind: of ``KINDS``. paths: of the text. counts: how often each word is in it. size: ids without EOS, UNK and id 0
    among them; there are fewer where the text has no more.

    Byte pair encoding is learnt from the counts of all words, the unigram model, which is wanted for the counts of what
    words have in common too, from lines: all of them, or every n-th so that they are at most ``SENTENCES``.

    Raises:
        InputError: too small a size for the characters of the text, or sentencepiece is not installed.
    """
    if kind == "none":
        return Words(Vocabulary.from_counts(counts, size))
    if kind == "bpe":
        ranked = sorted(counts, key=lambda word: (-counts[word], word))
        return _train(kind, (f"{_marked(word)}\t{counts[word]}" for word in ranked), size, "tsv")
    return _train(kind, _spread(paths), size, "text")


def _marked(word: str) -> str:
    return word.replace(BEGIN, "_")


def _spread(paths: Sequence[str]) -> Iterator[str]:
    """Lines of texts, every n-th."""
    step = -(-sum(count_lines(path) for path in paths) // SENTENCES)
    number = 0
    for path in paths:
        for line in read_lines(path):
            if number % step == 0 and (words := split(line)):
                yield _marked(" ".join(words))
            number += 1


def _train(kind: str, lines: Iterator[str], size: int, form: str) -> Subwords:
    _need_sentencepiece()
    import sentencepiece

    out = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=lines,
            input_format=form,
            model_writer=out,
            model_type=kind,
            vocab_size=size - 1,  # id 0 is none of its own
            hard_vocab_limit=False,
            unk_id=0,
            bos_id=-1,
            eos_id=-1,
            pad_id=-1,
            normalization_rule_name="identity",
            split_by_unicode_script=False,  # the text is tokenised; &apos; may be one piece
            shuffle_input_sentence=False,
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as error:
        if found := search(r"required_chars\D*\d+ vs (\d+)", str(error)):
            reason = f"the text has so many characters that it must be at least {int(found[1]) + 1}"
        else:
            reason = f"sentencepiece cannot make {kind} subwords of this text ({' '.join(str(error).split())})"
        raise InputError(f"--vocab-size {size}: {reason}") from None
    return Subwords(out.getvalue())


def _need_sentencepiece() -> None:
    """Say what to install where it is missing.

    Raises:
        InputError: it is.
    """
    if find_spec("sentencepiece") is None:
        raise InputError("subwords need sentencepiece, which is not installed here: pip install sentencepiece")


def write_units(folder: Path, side: str, units: Units) -> None:
    """Write ``vocab.SIDE.txt`` and, of subwords, ``sentencepiece.SIDE.model``; each whole or not at all."""
    units.vocabulary.write(folder / f"vocab.{side}.txt")
    path = _model_path(folder, side)
    if model := units.model():
        with atomic_binary(path) as out:
            out.write(model)
    else:
        path.unlink(missing_ok=True)


def read_units(folder: Path, side: str, kind: str, remedy: str) -> Units:
    """Read what ``write_units`` wrote.

    Raises:
        InputError: missing or damaged; the sentence ends in ``remedy``.
    """
    vocabulary, path = Vocabulary.read(folder / f"vocab.{side}.txt"), _model_path(folder, side)
    if KINDS[kind] is Words:
        return Words(vocabulary)
    try:
        return KINDS[kind].load(vocabulary, path.read_bytes())
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({type(error).__name__}); {remedy}") from None


def _model_path(folder: Path, side: str) -> Path:
    return folder / f"sentencepiece.{side}.model"
