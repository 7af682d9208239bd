"""Storage of the automaton of an n-gram LM in a file of arrays (``rnnsmt.base.array_file``) that is mapped into memory.

The file contains the arrays of ``LmArrays``, with structured arrays stored as 64-bit integers, and the arrays of the
vocabulary (``InternTable``). The header contains the attributes ``order``, ``start``, ``unk`` and ``end`` of
``Automaton``, and ``texts``, which identifies the ARPA file. All processes on a machine share the pages of the file.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.array_file import ArrayFile, write_arrays
from rnnsmt.base.errors import OtherVersionError
from rnnsmt.base.kernels.strings import Interner, InternTable
from rnnsmt.base.paths import StrPath
from rnnsmt.formats.binary_forms import describe_texts
from rnnsmt.lm.automaton import ROW, STATE, UNIGRAM, Automaton, LmArrays, load_automaton

FORMAT = "rnnsmt-ngram-model-1"
"""Version of the format; must be changed if the arrays, their meaning or a hash function change."""

_STRUCTURED = {"rows": ROW, "states": STATE, "unigrams": UNIGRAM}

_ENTRIES = ("order", "start", "unk", "end")


def write_automaton(lm: Automaton, path: StrPath, texts: str = "") -> None:
    """Write an automaton atomically.

    Args:
        texts: string that identifies the ARPA file, as returned by ``describe_texts``; stored in the file.
    """
    arrays: dict[str, NDArray[Any]] = {
        name: array.view(np.int64) if name in _STRUCTURED else array for name, array in lm.arrays._asdict().items()
    }
    words = lm.words.compacted()._asdict()
    del words["size"]
    arrays |= {f"word {name}": array for name, array in words.items()}
    with write_arrays(path, {name: array.dtype for name, array in arrays.items()}) as out:
        for name, array in arrays.items():
            out.append(name, array)
        out.entries |= {name: str(getattr(lm, name)) for name in _ENTRIES} | {"format": FORMAT, "texts": texts}


def open_automaton(path: StrPath, remedy: str) -> tuple[Automaton, str, Callable[[], None]]:
    """Map a file that ``write_automaton`` has written; its content is trusted.

    Args:
        remedy: advice at the end of error messages.

    Returns:
        The automaton, ``texts`` (see ``write_automaton``), and a function that unmaps the pages that were read so far.

    Raises:
        InputError: the file is missing or incomplete.
        OtherVersionError: the file has another version of the format.
    """
    arrays = ArrayFile(path, remedy, writeable=True)
    if arrays.entries.get("format") != FORMAT:
        raise OtherVersionError(f"{path}: not an n-gram model of this version ({FORMAT}); {remedy}")
    values = {name: arrays[name].view(_STRUCTURED.get(name, arrays[name].dtype)) for name in LmArrays._fields}
    words = {name: arrays[f"word {name}"] for name in InternTable._fields if name != "size"}
    table = InternTable(**words, size=np.array([len(words["hashes"])], np.int64))
    entries = {name: int(arrays.entries[name]) for name in _ENTRIES}
    return Automaton(LmArrays(**values), Interner.of(table), **entries), arrays.entries["texts"], arrays.release


def binarize_lm(arpa: Path, output: Path) -> Automaton:
    """Build the automaton of an ARPA file, write it to ``output`` atomically, and return it."""
    described = describe_texts([arpa])
    lm = load_automaton(arpa)
    write_automaton(lm, output, described)
    return lm
