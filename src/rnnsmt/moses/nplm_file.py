"""Files of a joint model that Moses reads as ``BilingualNPLM``: the network of NPLM 0.3, vocabularies and sizes.

A directory in the layout of Moses' ``bilingual-lm/extract_training.py``:

* the network, in the text format of NPLM (Vaswani et al. 2013). Scores are output units, natural logarithms, which
  Moses does not normalise.
* ``vocab.target`` and ``vocab.source``, one word per line. The number of a target word is its 0-based line number; the
  source words follow the target words. Line 0 is ``<unk>``, which represents every word that is not in the file;
  ``<s>`` and ``</s>`` are used for positions before and after the sentence.
* ``info``: two lines, ``m`` and the number of source words on each side of the affiliated one, ``n`` and the number of
  target words of an n-gram, including the predicted one.

The inputs of the network are the 2 m + 1 source words from left to right, then the n - 1 target words, oldest first.
"""

import io
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.io import InputError, atomic_text, read_lines, write_lines

MODEL, INFO, SOURCE, TARGET = "model.nplm", "info", "vocab.source", "vocab.target"
"""Names of the files; Moses accepts any name of the network."""

UNKNOWN, BEGIN, END = "<unk>", "<s>", "</s>"

NONE = "<null>"
"""Word that represents missing target words in Moses' chart decoder."""

ACTIVATIONS = ("tanh", "rectifier")
"""Supported activation functions; NPLM also has ``hardtanh`` and ``identity``."""

LARGEST = 1 << 26
"""Maximum of every size in a file, so that a damaged file does not cause an allocation of all memory."""

REMEDY = "write it again with `nnjm export-nplm`"

_SIZES = (
    "ngram_size", "input_vocab_size", "output_vocab_size", "input_embedding_dimension", "num_hidden",
    "output_embedding_dimension",
)  # fmt: skip


class NplmNetwork(NamedTuple):
    """The content of a network file.

    Attributes:
        ngram: number of inputs plus 1.
        activation: activation function of both hidden layers, one of ``ACTIVATIONS``.
        embeddings: float32 [input words, P].
        weights_1, biases_1: float32 [H1, (ngram - 1) P], [H1].
        weights_2, biases_2: float32 [H2, H1], [H2].
        output_weights, output_biases: float32 [output words, H2], [output words].
    """

    ngram: int
    activation: str
    embeddings: NDArray[np.float32]
    weights_1: NDArray[np.float32]
    biases_1: NDArray[np.float32]
    weights_2: NDArray[np.float32]
    biases_2: NDArray[np.float32]
    output_weights: NDArray[np.float32]
    output_biases: NDArray[np.float32]


_SECTIONS = dict(
    zip(
        (
            r"\input_embeddings", r"\hidden_weights 1", r"\hidden_biases 1", r"\hidden_weights 2", r"\hidden_biases 2",
            r"\output_weights", r"\output_biases",
        ),
        NplmNetwork._fields[2:],
        strict=True,
    )
)  # fmt: skip
"""Field of every section of a network file, in the order of the file."""


class BilingualSizes(NamedTuple):
    """The sizes in the file ``info``.

    Attributes:
        order: number of target words of an n-gram, ``n``.
        window: number of source words on each side of the affiliated one, ``m``.
    """

    order: int
    window: int

    @property
    def ngram(self) -> int:
        """Return the number of inputs plus 1."""
        return self.order + 2 * self.window + 1


def write_network(path: str | Path, network: NplmNetwork) -> None:
    """Write a network file atomically; numbers have nine significant digits, which is exact for float32."""
    sizes = (
        network.ngram, len(network.embeddings), len(network.output_weights), network.embeddings.shape[1],
        len(network.weights_1), len(network.weights_2),
    )  # fmt: skip
    with atomic_text(path) as out:
        out.write("\\config\nversion 1\n")
        out.writelines(f"{name} {size}\n" for name, size in zip(_SIZES, sizes, strict=True))
        out.write(f"activation_function {network.activation}\n\n")
        for section, name in _SECTIONS.items():
            rows: NDArray[np.float32] = getattr(network, name)
            rows = rows[:, None] if rows.ndim == 1 else rows
            line = "\t".join(["%.9g"] * rows.shape[1]) + "\n"
            out.write(f"{section}\n")
            out.writelines(line % tuple(row) for row in rows.tolist())
            out.write("\n")
        out.write("\\end\n")


def read_network(path: str | Path) -> NplmNetwork:
    """Read a network file; vocabularies in it, which Moses ignores, are skipped.

    Raises:
        InputError: the file is missing or damaged, or its network has one hidden layer or an activation function that
            is not in ``ACTIVATIONS``.
    """
    lines = _lines_after_first(path)
    config = dict(_pair(line, path) for line in itertools.takewhile(bool, lines))
    sizes = {name: _size(config, name, path) for name in _SIZES}
    activation = config.get("activation_function", "rectifier")
    if config.get("version", "1") != "1" or activation not in ACTIVATIONS:
        raise InputError(
            f"{path}: has version {config.get('version', '1')[:60]} and activation_function {activation[:60]}; "
            f"version 1 with {' or '.join(ACTIVATIONS)} is supported"
        )
    if sizes["num_hidden"] == 0:
        raise InputError(
            f"{path}: has one hidden layer (num_hidden 0); only networks with two hidden layers are supported"
        )
    words, outputs, wide = sizes["input_vocab_size"], sizes["output_vocab_size"], sizes["input_embedding_dimension"]
    first, second = sizes["num_hidden"], sizes["output_embedding_dimension"]
    shapes = {
        "embeddings": (words, wide),
        "weights_1": (first, (sizes["ngram_size"] - 1) * wide),
        "biases_1": (first, 1),
        "weights_2": (second, first),
        "biases_2": (second, 1),
        "output_weights": (outputs, second),
        "output_biases": (outputs, 1),
    }
    matrices: dict[str, NDArray[np.float32]] = {}
    for line in lines:
        if line == r"\end":
            break
        rows = itertools.takewhile(bool, lines)
        if line in _SECTIONS:
            name = _SECTIONS[line]
            if name in matrices:
                raise InputError(f"{path}: contains {line} twice; {REMEDY}")
            matrix = _matrix(rows, shapes[name], f"{path}: {line}")
            matrices[name] = matrix[:, 0] if "biases" in name else matrix
        elif line:
            for _ in rows:  # for example \input_vocab
                pass
    else:
        raise InputError(f"{path}: ends before \\end; {REMEDY}")
    if missing := [section for section, name in _SECTIONS.items() if name not in matrices]:
        raise InputError(f"{path}: has no {', '.join(missing)}; not a network of NPLM 0.3")
    return NplmNetwork(sizes["ngram_size"], activation, **matrices)


def check_config(path: str | Path) -> None:
    """Check that a file begins with the first line of an NPLM network.

    Raises:
        InputError: it begins with another line, or is missing.
    """
    _lines_after_first(path)


def _lines_after_first(path: str | Path) -> Iterator[str]:
    """Return the lines of a network file after the first one; raise InputError, see ``check_config``."""
    lines = read_lines(path)
    if next(lines, None) != r"\config":
        raise InputError(f"{path}: does not begin with \\config; not an NPLM network; {REMEDY}")
    return lines


def _pair(line: str, path: str | Path) -> tuple[str, str]:
    """Split a line of ``\\config``; raise InputError if it has no value."""
    name, _, value = line.partition(" ")
    if not value:
        raise InputError(f"{path}: {line[:60]} in \\config has no value; {REMEDY}")
    return name, value.strip()


def _size(config: dict[str, str], name: str, path: str | Path) -> int:
    """Return a size of ``\\config``; raise InputError if it is missing or not a number."""
    text = config.get(name, config.get("vocab_size", "") if name.endswith("_vocab_size") else "")
    least = {"ngram_size": 2, "num_hidden": 0}.get(name, 1)
    if not text.isdecimal() or len(text) > 9 or not least <= int(text) <= LARGEST:
        raise InputError(f"{path}: {name} in \\config is {text[:60] or 'missing'}, not a valid size; {REMEDY}")
    return int(text)


def _matrix(lines: Iterator[str], shape: tuple[int, int], where: str) -> NDArray[np.float32]:
    """Read the rows of a section, float32 ``shape``.

    Raises:
        InputError: the section has another shape, or a value that is not a finite number.
    """
    rows = list(itertools.islice(lines, shape[0]))
    more = next(lines, None) is not None
    if len(rows) != shape[0] or more:
        count = "more" if more else f"only {len(rows)}"
        raise InputError(f"{where}: has {count} rows, but \\config specifies {shape[0]}; {REMEDY}")
    try:
        matrix = np.loadtxt(io.StringIO("\n".join(rows)), np.float32, comments=None, ndmin=2)
    except (ValueError, OverflowError):
        raise InputError(f"{where}: non-numeric value, or rows of different lengths; {REMEDY}") from None
    if matrix.shape != shape:
        raise InputError(f"{where}: {matrix.shape[1]} numbers in a row, but \\config specifies {shape[1]}; {REMEDY}")
    if not np.isfinite(matrix).all():
        raise InputError(f"{where}: contains NaN or infinite values; {REMEDY}")
    return matrix


def write_words(path: str | Path, words: Sequence[str]) -> None:
    """Write a vocabulary file; the first word is ``<unk>``."""
    write_lines(path, words)


def read_words(path: str | Path) -> list[str]:
    """Read a vocabulary file.

    Raises:
        InputError: the file is missing or damaged, does not begin with ``<unk>``, or has a line with no word, several
            words, or a word of an earlier line.
    """
    words = [line.strip(" \t\r") for line in read_lines(path)]
    if not words or words[0] != UNKNOWN:
        raise InputError(
            f"{path}: does not begin with {UNKNOWN}, as the vocabulary of a Moses joint model must; {REMEDY}"
        )
    seen: set[str] = set()
    for number, word in enumerate(words, 1):
        if word in seen or len(word.encode().split()) != 1:
            raise InputError(f"{path}, line {number}: duplicate word, or more than one word; {REMEDY}")
        seen.add(word)
    return words


def write_info(path: str | Path, sizes: BilingualSizes) -> None:
    """Write the file ``info``."""
    write_lines(path, [f"m {sizes.window}", f"n {sizes.order}"])


def read_info(path: str | Path) -> BilingualSizes:
    """Read the file ``info``.

    Raises:
        InputError: the file is missing or damaged.
    """
    values = dict(line.split()[:2] for line in read_lines(path) if len(line.split()) == 2)
    if not all(values.get(name, "").isdecimal() and len(values[name]) < 4 for name in "mn") or int(values["n"]) < 2:
        raise InputError(f"{path}: needs the lines `m WINDOW` and `n ORDER`, for example m 5 and n 4; {REMEDY}")
    return BilingualSizes(int(values["n"]), int(values["m"]))


JOINT_MODEL = "NNJM0"
"""Name of the joint model for Moses: that of the joint model of this project."""


def bilingual_options(directory: Path, path: str) -> dict[str, str]:
    """Return the options of a joint model for Moses; vocabularies and sizes are in the directory of the network.

    Args:
        directory: directory of the model.
        path: the network, relative to ``directory``.

    Raises:
        InputError: a file is missing or damaged.
    """
    sizes = read_info((directory / path).with_name(INFO))
    vocabularies = {"source_vocab": Path(path).with_name(SOURCE), "target_vocab": Path(path).with_name(TARGET)}
    for file in vocabularies.values():
        read_words(directory / file)
    return {
        "name": JOINT_MODEL, "order": str(sizes.order), "source_window": str(sizes.window), "path": path,
        **{option: str(file) for option, file in vocabularies.items()},
    }  # fmt: skip
