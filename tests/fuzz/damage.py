"""Damage binary models, networks, training and tuning states and arrays of ids, and use them.

    python -m tests.fuzz.damage --forged 1000 --flipped 1000 --others 500

Every damaged file is opened in a forked child of its own, so that a segmentation fault is counted. A child ends well if
the file is refused by a sentence, or if the result is that of the undamaged file (a forged model, whose checksums are
right, may have another result). The command prints the number of every outcome and fails if there is a bad one.
"""

import argparse
import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from rnnsmt.base.io import InputError
from rnnsmt.base.kernels.hashing import add_to_checksum, checksum_value, new_checksum
from rnnsmt.moses.ini import PHRASE_TABLES, MosesIni
from rnnsmt.search import SearchOptions, binary, decode, load_model
from rnnsmt.search.model import model_texts, read_tables

from ..unit.search.twin import tiny_model

SECONDS = 10
"""Time limit of a child."""

BAD = ("segmentation fault or other signal", "longer than the limit", "traceback", "another result")

SENTENCES = ["a b c", "b x a d", "c c a b", "d e", ""]


def outcome(use: Callable[[], str], expected: str | None) -> str:
    """Call a function in a child; return how it ended. expected: its result, None if any will do."""
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        code = 3
        try:
            code = 0 if use() == expected or expected is None else 4
        except InputError as error:
            code = 2 if "\n" not in str(error) and len(str(error)) > 20 else 3
        except BaseException:
            traceback.print_exc()
        os._exit(code)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return BAD[1] if os.WTERMSIG(status) == signal.SIGALRM else BAD[0]
    return {0: "accepted", 2: "refused by a sentence", 4: BAD[3]}.get(os.WEXITSTATUS(status), BAD[2])


def translated(ini: Path) -> str:
    """Return translations, n-best lists and scores of a few sentences."""
    model = load_model(MosesIni.read(ini))
    found = decode(model, SENTENCES, model.weights(MosesIni.read(ini)), SearchOptions(nbest=10))
    return repr([(one.text, one.score, one.nbest.texts, one.nbest.scores.tolist()) for one in found])


class BinaryFile:
    """A binary file that can be forged: header and arrays with the right checksums."""

    def __init__(self, data: bytes) -> None:
        first, _, rest = data.partition(b"\n")
        self.length = int(first.split()[4])
        self.header = json.loads(rest[: self.length])
        self.arrays = json.loads(rest[: self.length])["arrays"]  # where they are, whatever the header says
        self.data = bytearray(data[-self.header["bytes"] :])

    def content(self) -> bytes:
        """Return the file, with the checksums of what is in it now."""
        if isinstance(self.header, dict):
            state = new_checksum()
            whole = len(self.data) // 64 * 64
            add_to_checksum(state, np.frombuffer(bytes(self.data[:whole]), np.uint64))
            self.header["checksum"] = f"{int(checksum_value(state)):016x}"
        header = json.dumps(self.header).encode()
        digest = hashlib.sha256(header).hexdigest()
        start = f"rnnsmt binary model {binary.FORMAT} {len(header)} {digest}\n".encode() + header
        return start + bytes(-len(start) % 64) + bytes(self.data)


VALUES = [
    -(1 << 62),
    -(1 << 31),
    -100,
    -2,
    -1,
    0,
    1,
    2,
    3,
    7,
    63,
    64,
    100,
    1 << 15,
    (1 << 31) - 1,
    1 << 40,
    (1 << 63) - 1,
]
FLOATS = [float("nan"), float("inf"), -float("inf"), -1e308, 1e308, 5.0, -1e35]
WRONG = [None, True, "x", [], {}, 1.5, float("nan"), -1, 0, 1, 1 << 62, 1 << 70, "9" * 50, [1 << 40, 1 << 40]]


def forged_array(file: BinaryFile, rng: random.Random) -> None:
    """Change values of an array."""
    place = file.arrays[rng.choice(list(file.arrays))]
    kind = np.dtype([tuple(one) for one in place["dtype"]] if isinstance(place["dtype"], list) else place["dtype"])
    count = int(np.prod(place["shape"]))
    if not count:
        return
    array = np.frombuffer(file.data, kind, count, place["offset"])
    view = array if kind.names is None else array[rng.choice(kind.names)]
    number = rng.choice([1, 1, 2, 5, count])
    for _ in range(min(number, 2000)):
        value = rng.choice(FLOATS) if view.dtype.kind == "f" else rng.choice(VALUES)
        if view.dtype.kind in "iu":
            bounds = np.iinfo(view.dtype)
            value = min(max(value, int(bounds.min)), int(bounds.max))
        with np.errstate(over="ignore"):
            view[rng.randrange(count)] = value


def forged_header(file: BinaryFile, rng: random.Random) -> None:
    """Change, remove or move an entry of the header."""
    if not file.header:
        return
    where, key = file.header, rng.choice(list(file.header))
    while isinstance(where[key], (dict, list)) and where[key] and rng.random() < 0.85:
        where = where[key]
        key = rng.choice(list(where)) if isinstance(where, dict) else rng.randrange(len(where))
    value = where[key]
    if rng.random() < 0.15:
        del where[key]
    elif isinstance(value, int) and rng.random() < 0.7:
        where[key] = value + rng.choice([-64, -8, -1, 1, 2, 8, 64, value, 1 << 20])
    else:
        where[key] = rng.choice(WRONG)


def damaged_models(folder: Path, forged: int, flipped: int, seed: int) -> Counter[str]:
    """Forge and flip binary models of random tiny models; return the number of every outcome."""
    found: Counter[str] = Counter()
    rng = random.Random(seed)
    models = []
    for number, two in enumerate((False, True)):
        own = folder / f"model{number}"
        tiny_model(own, number + 1, two=two)
        ini = MosesIni.read(own / "moses.ini")
        # the first with the word alignments that a joint model needs
        texts = [text._replace(links=text.kind in PHRASE_TABLES and not two) for text in model_texts(ini, None)]
        binary.make_binary(own / binary.NAME, texts, read_tables)
        models.append((own, (own / binary.NAME).read_bytes(), translated(own / "moses.ini")))
    for number in range(forged + flipped):
        own, data, expected = models[number % len(models)]
        if number < forged:
            file = BinaryFile(data)
            for _ in range(rng.choice([1, 1, 2, 3])):
                (forged_array if rng.random() < 0.6 else forged_header)(file, rng)
            changed = file.content()
        else:
            changed = flipped_bits(data, rng)
        (own / binary.NAME).write_bytes(changed)
        how = outcome(lambda own=own: translated(own / "moses.ini"), None if number < forged else expected)
        found[f"binary model {'forged' if number < forged else 'flipped'}: {how}"] += 1
    return found


def flipped_bits(data: bytes, rng: random.Random) -> bytes:
    """Return a file with some of its bits flipped, or a part of it cut off or overwritten."""
    changed = bytearray(data)
    kind = rng.random()
    if kind < 0.1:
        return bytes(changed[: rng.randrange(len(changed))])
    if kind < 0.2:
        begin = rng.randrange(len(changed))
        size = min(rng.choice([8, 64, 512]), len(changed) - begin)
        changed[begin : begin + size] = rng.randbytes(size)
        return bytes(changed)
    for _ in range(rng.choice([1, 1, 1, 4, 40, 400])):
        place = rng.randrange(len(changed))
        changed[place] ^= 1 << rng.randrange(8)
    return bytes(changed)


def other_files(folder: Path) -> list[tuple[Path, Callable[[], str]]]:
    """Write a network, a training state, a tuning state and arrays; return each with a function that reads it."""
    import torch

    from rnnsmt.align.training import load_arrays, save_arrays
    from rnnsmt.base.arrays import growing_array, read_array
    from rnnsmt.networks.checkpoint import Checkpoint
    from rnnsmt.networks.model_file import load_file, save_file
    from rnnsmt.tuning.nbest_pool import CandidateBatch
    from rnnsmt.tuning.state import TuningState

    generator = np.random.default_rng(1)
    numbers = torch.from_numpy(generator.normal(size=(40, 30)).astype(np.float32))
    save_file(folder / "model.pt", {"format": "x", "parameters": {"W": numbers, "b": numbers[0].clone()}})
    checkpoint = Checkpoint(folder / "training", {"seed": 1})
    checkpoint.folder.path.mkdir(parents=True)
    checkpoint.save({"parameters": numbers, "update": 7, "history": [{"update": 7, "loss": 1.25}]})
    tuning = folder / "tuning"
    batch = CandidateBatch(generator.normal(size=(20, 5)), np.arange(180).reshape(20, 9), np.arange(20))
    state = TuningState(tuning, {"seed": "1"})
    state.save({"iteration": 1, "dev_bleu": 31.25, "weights": [0.125, -0.5], "new_candidates": 20}, batch)
    del state
    with growing_array(folder / "words.npy", np.int32) as out:
        out.append(generator.integers(0, 1000, 3000))
    save_arrays(folder / "passes.npz", {"text": "x"}, t=generator.normal(size=500), done=np.array(3))

    def content(value: object) -> str:
        if isinstance(value, dict):
            return str({name: content(own) for name, own in value.items()})
        if isinstance(value, (list, tuple)):
            return str([content(own) for own in value])
        return str(value.tolist() if isinstance(value, (torch.Tensor, np.ndarray)) else value)

    def tuned() -> str:
        state = TuningState(tuning, {"seed": "1"})
        batches = state.batches(len(state.iterations))
        return content(
            [state.iterations, state.comparisons, [(one.features, one.statistics, one.sentences) for one in batches]]
        )

    return [
        (folder / "model.pt", lambda: content(load_file(folder / "model.pt", "cpu", "train it again"))),
        (checkpoint.path, lambda: content(Checkpoint(folder / "training", {"seed": 1}).load())),
        (tuning / "state.json", tuned),
        (tuning / "nbest-001.npz", tuned),
        (folder / "words.npy", lambda: content(read_array(folder / "words.npy", np.int32, 1, "prepare again", True))),
        (folder / "passes.npz", lambda: content(load_arrays(folder / "passes.npz", "remove it to start over"))),
    ]


def damaged_others(folder: Path, number: int, seed: int) -> Counter[str]:
    """Damage networks, states and arrays; return the number of every outcome."""
    found: Counter[str] = Counter()
    rng = random.Random(seed)
    files = other_files(folder)
    originals = [(path, path.read_bytes(), use, use()) for path, use in files]
    for turn in range(number):
        path, data, use, expected = originals[turn % len(originals)]
        path.write_bytes(flipped_bits(data, rng))
        found[f"{path.name}: {outcome(use, expected)}"] += 1
        path.write_bytes(data)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("forged", "flipped", "others"):
        parser.add_argument(f"--{name}", type=int, default=100, metavar="N", help="number of damaged files")
    parser.add_argument("--seed", type=int, default=1, help="seed of the damage")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        found = damaged_models(Path(place), args.forged, args.flipped, args.seed)
        found += damaged_others(Path(place), args.others, args.seed)
    for name, count in sorted(found.items()):
        print(f"{count:6,}  {name}")
    return int(any(name.endswith(BAD) for name in found))


if __name__ == "__main__":
    sys.exit(main())
