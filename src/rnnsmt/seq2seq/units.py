"""Input and output units of the networks: words, or pieces of words (subwords), as ids.

``Units`` converts the words of a sentence to ids and back; the rest of the package does not depend on the kind of the
units. Both kinds have a ``Vocabulary``: id 0 (padding), id 1 (UNK), the units, and EOS as the last id.

Subwords are those of sentencepiece (Kudo and Richardson 2018): byte pair encoding (Sennrich, Haddow and Birch 2016) or
a unigram language model (Kudo 2018). The first piece of a word begins with ``BEGIN``, no piece crosses a word boundary,
and there is no Unicode normalisation, so concatenated pieces give the tokenised words. A word is always split into
its most probable pieces; no segmentations are sampled.

Target words may have position tokens in addition, each of which represents an unknown word and the relative position of
its source word (``PositionedWords``).
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

from rnnsmt.base.io import InputError, atomic_binary, count_lines, read_lines
from rnnsmt.networks.data import UNK, Vocabulary, split
from rnnsmt.seq2seq.settings import SUBWORDS

BEGIN = "\u2581"
"""First character of the first piece of a word: LOWER ONE EIGHTH BLOCK, as in sentencepiece."""

CACHE = 1 << 18
"""Number of words whose pieces are cached."""

REACH = 7
"""Largest distance of a position token (Luong et al. 2015, section 3.3)."""

SENTENCES = 1_000_000
"""Maximum number of lines for the training of the unigram model, evenly spread over the text."""


class Units(ABC):
    """The units of one side; ``len`` is the number of softmax classes."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.begins = np.ones(len(vocabulary), bool)
        """bool [classes]: whether a unit begins a word; True for EOS, which counts as a word."""

    def __len__(self) -> int:
        return len(self.vocabulary)

    @property
    def eos(self) -> int:
        """Return the id of the end of a sentence, the last id."""
        return self.vocabulary.eos

    def ids(self, words: Iterable[str], eos: bool = False) -> NDArray[np.int32]:
        """Return the ids of the units of words, int32, UNK for unknown units; with EOS appended if ``eos``."""
        return self.vocabulary.ids((unit for word in words for unit in self.parts(word)), eos)

    def knows(self, word: str) -> bool:
        """Return whether a word consists of known units only."""
        return all(unit in self.vocabulary.index for unit in self.parts(word))

    @abstractmethod
    def parts(self, word: str) -> Sequence[str]:
        """Split a word into units, some of which may be outside the vocabulary."""

    @property
    def unknown(self) -> NDArray[np.int64]:
        """Return the ids, int64, ascending, that an unknown word can have: UNK and all position tokens."""
        return np.array([UNK])

    @abstractmethod
    def words(self, ids: Iterable[int]) -> list[str | int | None]:
        """Join the units of ids, given without EOS, to words.

        An unknown word, i.e. one that contains UNK, is None, or the distance of its position token.
        """

    @abstractmethod
    def hash(self) -> str:
        """Return the SHA-256 of everything that the ids of a text depend on."""

    @abstractmethod
    def model(self) -> bytes:
        """Return the model that must be saved in addition to the vocabulary; empty if there is none."""

    @classmethod
    @abstractmethod
    def load(cls, vocabulary: Vocabulary, model: bytes) -> "Units":
        """Restore the units from their ``vocabulary`` and ``model()``.

        Raises:
            RuntimeError, ValueError: the two do not match, or are damaged.
        """


class Words(Units):
    """Words as units."""

    def parts(self, word: str) -> Sequence[str]:
        return (word,)

    def words(self, ids: Iterable[int]) -> list[str | int | None]:
        return [None if i == UNK else self.vocabulary.words[i] for i in ids]

    def hash(self) -> str:
        return self.vocabulary.hash()

    def model(self) -> bytes:
        return b""

    @classmethod
    def load(cls, vocabulary: Vocabulary, model: bytes) -> "Words":
        return cls(vocabulary)


class PositionedWords(Words):
    """Target words as units, and position tokens for unknown words (Luong et al. 2015, section 3.3, PosUnk).

    An unknown target word j (0-based) that is aligned with source word i is represented by the token of the distance
    d = j - i if -``REACH`` <= d <= ``REACH``. Otherwise, and if it is not aligned, it is represented by UNK, which the
    paper calls the null token. The tokens are the last units before EOS, in ascending order of d.
    """

    TOKENS = tuple(f"<unk> {d:+d}" for d in range(-REACH, REACH + 1))
    """Names of the tokens in the vocabulary; they contain a space, so that they differ from all words."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Create the units from a vocabulary that ends in the tokens.

        Raises:
            ValueError: the vocabulary does not end in the tokens.
        """
        super().__init__(vocabulary)
        if tuple(vocabulary.words[-len(self.TOKENS) - 1 : -1]) != self.TOKENS:
            raise ValueError("the vocabulary does not end in position tokens")
        self._zero = self.eos - REACH - 1

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> "PositionedWords":
        """Add the tokens to a vocabulary of words."""
        return cls(Vocabulary([*vocabulary.words[2:-1], *cls.TOKENS]))

    @property
    def unknown(self) -> NDArray[np.int64]:
        return np.array([UNK, *range(self._zero - REACH, self._zero + REACH + 1)])

    def aligned_ids(self, words: Iterable[str], aligned: Mapping[int, int]) -> NDArray[np.int32]:
        """Return the ids of a target sentence with EOS. aligned: target position -> source position, 0-based."""
        ids = self.ids(words, eos=True)
        for j in np.flatnonzero(ids == UNK).tolist():
            if j in aligned and abs(j - aligned[j]) <= REACH:
                ids[j] = self._zero + j - aligned[j]
        return ids

    def words(self, ids: Iterable[int]) -> list[str | int | None]:
        words, zero = self.vocabulary.words, self._zero
        return [None if i == UNK else i - zero if abs(i - zero) <= REACH else words[i] for i in ids]

    def hash(self) -> str:
        # differs from the hash of any vocabulary without position tokens
        return sha256(b"positions " + self.vocabulary.hash().encode()).hexdigest()


class Subwords(Units):
    """The pieces of a sentencepiece model as units, in the order of the model."""

    def __init__(self, model: bytes) -> None:
        """Load a serialised sentencepiece model, with the unknown piece as id 0 and no other special pieces.

        Raises:
            InputError: sentencepiece is not installed.
            RuntimeError, ValueError: the model is damaged or of another kind.
        """
        _need_sentencepiece()
        import sentencepiece

        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        if not processor.vocab_size() or processor.unk_id() != 0:
            raise ValueError("not a subword model written by this program")
        pieces = [processor.id_to_piece(i) for i in range(1, processor.vocab_size())]
        if BEGIN not in pieces:
            raise ValueError(f"the subword model has no piece {BEGIN}")
        super().__init__(Vocabulary(pieces))
        self.begins = np.array([unit.startswith(BEGIN) for unit in self.vocabulary.words])
        self.begins[self.eos] = True
        self._model = model
        self._pieces: Callable[[str], Sequence[str]] = lru_cache(CACHE)(
            # sentencepiece would split a word that contains BEGIN in two
            lambda word: tuple(processor.encode(word.replace(BEGIN, "_"), out_type=str))
        )

    def parts(self, word: str) -> Sequence[str]:
        return self._pieces(word)

    def words(self, ids: Iterable[int]) -> list[str | int | None]:
        words: list[list[str]] = []
        unknown: set[int] = set()
        for i in ids:
            # the output of a network may also begin with a piece that continues a word
            if self.begins[i] or not words:
                words.append([])
            if i == UNK:
                unknown.add(len(words) - 1)
            else:
                words[-1].append(self.vocabulary.words[i].removeprefix(BEGIN))
        texts = (None if index in unknown else "".join(parts) for index, parts in enumerate(words))
        return [text for text in texts if text != ""]

    def hash(self) -> str:
        return sha256(self.vocabulary.hash().encode() + self._model).hexdigest()

    def model(self) -> bytes:
        return self._model

    @classmethod
    def load(cls, vocabulary: Vocabulary, model: bytes) -> "Subwords":
        subwords = cls(model)
        if subwords.vocabulary.words != vocabulary.words:
            raise ValueError("the vocabulary and the subword model have different pieces")
        return subwords


KINDS: dict[str, type[Units]] = {
    **{kind: Words if kind == "none" else Subwords for kind in SUBWORDS},
    "positions": PositionedWords,
}
"""Class of the units by the value of ``--subwords``, and that of target words with position tokens."""


def kinds_of(subwords: str, positions: bool) -> tuple[str, str]:
    """Return the kind of the units of source and target, keys of ``KINDS``."""
    return subwords, "positions" if positions else subwords


def make_units(
    kind: str, paths: Sequence[str], counts: Mapping[str, int], size: int, option: str = "--vocab-size"
) -> Units:
    """Create the units of a text: its most frequent words, or subwords learnt from it.

    Byte pair encoding is learnt from the counts of all words. The unigram model is learnt from all lines, or, if there
    are more than ``SENTENCES``, from every n-th line.

    Args:
        kind: one of ``KINDS``.
        paths: the files of the text.
        counts: the number of occurrences of each word in it.
        size: the number of ids without EOS, including UNK and id 0; there may be fewer if the text is small.
        option: the option of the size, for messages.

    Raises:
        InputError: the size is too small for the characters of the text, or sentencepiece is not installed.
    """
    if kind == "none":
        return Words(Vocabulary.from_counts(counts, size))
    if kind == "bpe":
        ranked = sorted(counts, key=lambda word: (-counts[word], word))
        return _train(kind, (f"{_marked(word)}\t{counts[word]}" for word in ranked), size, "tsv", option)
    return _train(kind, _spread(paths), size, "text", option)


def _marked(word: str) -> str:
    """Replace ``BEGIN``, which sentencepiece would interpret as the beginning of a word."""
    return word.replace(BEGIN, "_")


def _spread(paths: Sequence[str]) -> Iterator[str]:
    """Yield every n-th line of the texts except empty lines, at most ``SENTENCES`` lines."""
    step = -(-sum(count_lines(path) for path in paths) // SENTENCES)
    number = 0
    for path in paths:
        for line in read_lines(path):
            if number % step == 0 and (words := split(line)):
                yield _marked(" ".join(words))
            number += 1


def _train(kind: str, lines: Iterator[str], size: int, form: str, option: str) -> Subwords:
    """Train a sentencepiece model.

    Args:
        kind: ``bpe`` or ``unigram``.
        lines: the text, or lines ``word<tab>count``.
        size: the number of ids without EOS.
        form: format of the lines, ``text`` or ``tsv``.
        option: the option of the size, for messages.

    Raises:
        InputError: the size is too small for the characters of the text, or sentencepiece is not installed.
    """
    _need_sentencepiece()
    import sentencepiece

    out = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=lines,
            input_format=form,
            model_writer=out,
            model_type=kind,
            vocab_size=size - 1,  # it has no padding; its id 0 is UNK
            hard_vocab_limit=False,
            unk_id=0,
            bos_id=-1,
            eos_id=-1,
            pad_id=-1,
            normalization_rule_name="identity",
            split_by_unicode_script=False,  # the text is tokenised, and escapes such as &apos; may be one piece
            shuffle_input_sentence=False,
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as error:
        if match := search(r"required_chars\D*\d+ vs (\d+)", str(error)):
            reason = f"the text has so many characters that it must be at least {int(match[1]) + 1}"
        else:
            reason = f"sentencepiece cannot learn {kind} subwords from this text ({' '.join(str(error).split())})"
        raise InputError(f"{option} {size}: {reason}") from None
    return Subwords(out.getvalue())


def _need_sentencepiece() -> None:
    """Check that sentencepiece is installed.

    Raises:
        InputError: it is not installed; the message describes how to install it.
    """
    if find_spec("sentencepiece") is None:
        raise InputError("subwords require sentencepiece, which is not installed; run `pip install sentencepiece`")


def write_units(directory: Path, side: str, units: Units) -> None:
    """Write ``vocab.SIDE.txt`` and, for subwords, ``sentencepiece.SIDE.model``, each atomically."""
    units.vocabulary.write(directory / f"vocab.{side}.txt")
    path = _model_path(directory, side)
    if model := units.model():
        with atomic_binary(path) as out:
            out.write(model)
    else:
        path.unlink(missing_ok=True)


def read_units(directory: Path, side: str, kind: str, remedy: str) -> Units:
    """Read the files that ``write_units`` wrote.

    Raises:
        InputError: a file is missing or damaged; the message ends in ``remedy``.
    """
    path = directory / f"vocab.{side}.txt"
    vocabulary = Vocabulary.read(path)
    try:
        if issubclass(KINDS[kind], Words):
            return KINDS[kind].load(vocabulary, b"")
        path = _model_path(directory, side)
        return KINDS[kind].load(vocabulary, path.read_bytes())
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({type(error).__name__}); {remedy}") from None


def _model_path(directory: Path, side: str) -> Path:
    return directory / f"sentencepiece.{side}.model"
