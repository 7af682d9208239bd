"""Binary models (``model.binary``): random damage, and forged files with the right checksums."""

import hashlib
import json
import random
from pathlib import Path

import numpy as np

from rnnsmt.base.kernels.numbers import add_to_checksum, checksum_value, new_checksum
from rnnsmt.moses.ini import PHRASE_DICTIONARY, MosesIni
from rnnsmt.search import SearchOptions, binary, decode, load_model
from rnnsmt.search.model import model_texts, read_tables

from ..unit.search.twin import tiny_model
from .harness import Case, Harness
from .mutation import flipped, mutated_value

SENTENCES = ["a b c", "b x a d", "c c a b", "d e", ""]


def translated(ini: Path) -> str:
    """Return translations, n-best lists and scores of a few sentences."""
    model = load_model(MosesIni.read(ini))
    found = decode(model, SENTENCES, model.weights(MosesIni.read(ini)), SearchOptions(nbest=10))
    return repr([(one.text, one.score, one.nbest.texts, one.nbest.scores.tolist()) for one in found])


class BinaryFile:
    """Binary file that can be forged: header and arrays with the right checksums."""

    def __init__(self, data: bytes) -> None:
        first, _, rest = data.partition(b"\n")
        self.length = int(first.split()[4])
        self.header = json.loads(rest[: self.length])
        self.arrays = json.loads(rest[: self.length])["arrays"]  # the positions, independent of the header
        self.data = bytearray(data[-self.header["bytes"] :])

    def content(self) -> bytes:
        """Return the file with the checksums of its present content."""
        if isinstance(self.header, dict):
            state = new_checksum()
            whole = len(self.data) // 64 * 64
            add_to_checksum(state, np.frombuffer(bytes(self.data[:whole]), np.uint64))
            self.header["checksum"] = f"{int(checksum_value(state)):016x}"
        header = json.dumps({str(k): v for k, v in self.header.items()} if isinstance(self.header, dict) else 0)
        digest = hashlib.sha256(header.encode()).hexdigest()
        start = f"rnnsmt binary model {binary.FORMAT} {len(header)} {digest}\n".encode() + header.encode()
        return start + bytes(-len(start) % 64) + bytes(self.data)


INTEGERS = [-(1 << 62), -(1 << 31), -100, -2, -1, 0, 1, 2, 3, 7, 63, 64, 100, 1 << 15, (1 << 31) - 1, 1 << 40,
            (1 << 63) - 1]  # fmt: skip
FLOATS = [float("nan"), float("inf"), -float("inf"), -1e308, 1e308, 5.0, -1e35]


def forged_values(array: np.ndarray, rng: random.Random) -> None:
    """Change values of a one-dimensional array."""
    view = array if array.dtype.names is None else array[rng.choice(array.dtype.names)]
    for _ in range(min(rng.choice([1, 1, 2, 5, len(array)]), 2000)):
        place = rng.randrange(len(array))
        value = rng.choice(FLOATS) if view.dtype.kind == "f" else rng.choice(INTEGERS)
        if view.dtype.kind in "iu":
            if rng.random() < 0.3:
                value = int(view[place]) + rng.choice([-1, 1])
            bounds = np.iinfo(view.dtype)
            value = min(max(value, int(bounds.min)), int(bounds.max))
        with np.errstate(over="ignore"):
            view[place] = value


def forged_array(file: BinaryFile, rng: random.Random) -> None:
    """Change values of an array, or exchange two arrays of the same size."""
    place = file.arrays[rng.choice(list(file.arrays))]
    kind = np.dtype([tuple(one) for one in place["dtype"]] if isinstance(place["dtype"], list) else place["dtype"])
    count = int(np.prod(place["shape"]))
    if count:
        forged_values(np.frombuffer(file.data, kind, count, place["offset"]), rng)


class BinaryModels(Harness):
    """Two models: one with word alignments, one with two LMs."""

    name = "binary-models"
    forged: bool | None = None
    """Whether all cases are forged, or none; None: every other one."""

    def prepare(self) -> None:
        """Create the models."""
        for target, two_lms in (("one LM", False), ("two LMs", True)):
            own = self.directory / target
            tiny_model(own, 1 + two_lms, two_lms=two_lms)
            ini = MosesIni.read(own / "moses.ini")
            # the first with the word alignments that a joint model needs
            texts = [
                text._replace(links=text.kind == PHRASE_DICTIONARY and not two_lms) for text in model_texts(ini, None)
            ]
            binary.make_binary(own / binary.NAME, texts, read_tables)
            self.originals[target] = (own / binary.NAME).read_bytes()

    def case(self, number: int, rng: random.Random) -> Case:
        """Return a damaged or forged model."""
        target = self.target(number)
        data = self.originals[target]
        if not (self.forged if self.forged is not None else number // len(self.originals) % 2):
            return Case(target, flipped(data, rng))
        file = BinaryFile(data)
        for _ in range(rng.choice([1, 1, 2, 3])):
            if rng.random() < 0.6:
                forged_array(file, rng)
            else:
                file.header = mutated_value(file.header, rng, list(file.arrays))
        return Case(target, file.content(), True)

    def use(self, case: Case) -> str:
        """Translate; return the translations."""
        (self.directory / case.target / binary.NAME).write_bytes(case.content)
        return translated(self.directory / case.target / "moses.ini")


class ForgedModels(BinaryModels):
    """Forged models only."""

    name = "forged-models"
    forged = True


class FlippedModels(BinaryModels):
    """Damaged models only."""

    name = "flipped-models"
    forged = False
