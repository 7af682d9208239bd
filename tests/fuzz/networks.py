"""Networks, checkpoints of training and tuning runs, arrays of ids and their JSON files: damaged, and forged."""

import hashlib
import io
import json
import random
import shutil
from contextlib import chdir, suppress
from pathlib import Path
from typing import Any

import numpy as np

from rnnsmt.base.arrays import TRAILER
from rnnsmt.cli import main

from ..unit.test_malformed_input import SCORE, STAGES, TRAIN, valid_files
from .binary_models import forged_values
from .harness import Case, Harness, command, one_thread
from .mutation import flipped, mutated_value

SIZES = "--projection 4 --hidden-1 6 --hidden-2 5 --batch 8 --epochs 1 --held-out 0.1 --held-out-least 4 --preset demo"

COMMANDS = {
    "rnn": SCORE,
    "rnn checkpoint": TRAIN,
    "cslm": "cslm score --model cslm.pt --input dev.fr --output O1",
    "cslm checkpoint": f"cslm train --text ids {SIZES} --output-model O1 --output-history O2 "
    "--checkpoint-dir cslm-saved",
    "nnjm": "nnjm perplexity --model nnjm.pt --examples examples --output O1",
    "nnjm checkpoint": f"nnjm train --examples examples {SIZES} --output-model O1 --output-history O2 "
    "--checkpoint-dir nnjm-checkpoint",
    "seq2seq": "seq2seq score --source dev.en --target dev.fr --model seq2seq.pt --output O1",
    "seq2seq translate": "seq2seq translate --input dev.en --model seq2seq.pt --output O1",
    "seq2seq checkpoint": "seq2seq train --sentences sentences --preset demo --embedding 4 --hidden 5 --layers 1 "
    "--batch 8 --epochs 1 --held-out 4 --output-model O1 --output-history O2 --checkpoint-dir seq2seq-checkpoint",
    "tuning checkpoint": STAGES["mert"],
    "alignment checkpoint": STAGES["words"] + " --checkpoint-dir passes --save-every 0",
}
"""Commands that read the files; what they write are O1 and O2."""

FILES = {
    "rnn": ["m.pt", *(f"pairs/{name}" for name in ("source.words.npy", "target.offsets.npy", "pairs.json"))],
    "rnn checkpoint": ["checkpoint/checkpoint.pt", "pairs/target.words.npy", "pairs/vocab.target.txt"],
    "cslm": ["cslm.pt"],
    "cslm checkpoint": ["cslm-saved/checkpoint.pt", "ids/words.npy", "ids/offsets.npy", "ids/text.json"],
    "nnjm": ["nnjm.pt", "examples/affiliations.npy", "examples/source.words.npy", "examples/examples.json"],
    "nnjm checkpoint": ["nnjm-checkpoint/checkpoint.pt"],
    "seq2seq": ["seq2seq.pt"],
    "seq2seq translate": ["seq2seq.pt"],
    "seq2seq checkpoint": [
        "seq2seq-checkpoint/checkpoint.pt",
        "sentences/source.words.npy",
        "sentences/sentences.json",
    ],
    "tuning checkpoint": ["OD/checkpoint.json", "OD/nbest-001.npz"],
    "alignment checkpoint": ["passes/passes.npz"],
}
"""Files that are damaged, by the command that reads them."""


class Networks(Harness):
    """Files of all networks of a toy corpus."""

    name = "networks"

    def prepare(self) -> None:
        """Train the networks; keep their checkpoints."""
        self.place = self.directory / "run"
        self.place.mkdir()
        with chdir(self.place):
            valid_files()
            for words in (
                STAGES["pairs"].replace("OD", "pairs"),
                TRAIN.replace("O1", "m.pt"),
                "cslm prepare --input tok.fr --vocabulary pairs/vocab.target.txt --output-dir ids",
                COMMANDS["cslm checkpoint"].replace("O1", "cslm.pt"),
                "nnjm prepare --source tok.en --target tok.fr --alignment al --vocab-size 30 --output-dir examples",
                COMMANDS["nnjm checkpoint"].replace("O1", "nnjm.pt"),
                "seq2seq prepare --source tok.en --target tok.fr --source-vocab-size 30 --target-vocab-size 30 "
                "--output-dir sentences",
                COMMANDS["seq2seq checkpoint"].replace("O1", "seq2seq.pt"),
                COMMANDS["tuning checkpoint"],
            ):
                command(words.split())
            with suppress(SystemExit):  # stopped after the first pass: a finished alignment has no checkpoint
                main([*COMMANDS["alignment checkpoint"].split(), "--time-limit", "1e-9"])
        for use, names in FILES.items():
            for name in names:
                self.originals[f"{use}: {name}"] = (self.place / name).read_bytes()
        self.pristine = self.directory / "pristine"
        shutil.copytree(self.place, self.pristine)
        one_thread()

    def case(self, number: int, rng: random.Random) -> Case:
        """Return a damaged file, or one with changed values and the right checksums.

        The checkpoint of an alignment is not forged: kernels use its values without a check.
        """
        target = self.target(number)
        data = self.originals[target]
        if number // len(self.originals) % 2 == 0 or target.endswith((".txt", "passes.npz")):
            return Case(target, flipped(data, rng))
        return Case(target, forged(target, data, rng), True)

    def use(self, case: Case) -> str:
        """Run the command; return what it wrote."""
        use, _, name = case.target.partition(": ")
        shutil.rmtree(self.place)
        shutil.copytree(self.pristine, self.place)
        (self.place / name).write_bytes(case.content)
        with chdir(self.place):
            command(COMMANDS[use].split())
            # the history of a training run contains times
            return hashlib.sha256(Path("O1").read_bytes()).hexdigest()


def forged(name: str, data: bytes, rng: random.Random) -> bytes:
    """Return a file with other values and the right checksums."""
    out = io.BytesIO()
    if name.endswith(".pt"):
        import torch

        content = _forged_tensors(torch.load(io.BytesIO(data), weights_only=True), rng)
        torch.save(content, out)
    elif name.endswith(".npz"):
        with np.load(io.BytesIO(data)) as arrays:
            parts = {key: arrays[key] for key in arrays.files}
        key = rng.choice(list(parts))
        parts[key] = _forged_numbers(parts[key], rng)
        np.savez(out, **parts)
    elif name.endswith(".npy"):
        array = _forged_numbers(np.load(io.BytesIO(data)), rng)
        np.save(out, array)
        out.write(TRAILER + hashlib.sha256(np.ascontiguousarray(array).tobytes()).digest())
    else:
        content = mutated_value(json.loads(data), rng, ["x"])
        if isinstance(content, dict):
            content = {str(key): value for key, value in content.items()}
            if content.pop("checksum", None):
                digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
                content["checksum"] = digest
        out.write(json.dumps(content).encode())
    return out.getvalue()


def _forged_numbers(array: np.ndarray, rng: random.Random) -> np.ndarray:
    """Return an array with other values, of another type, or of another shape."""
    kind = rng.random()
    changed = np.array(array)
    if kind < 0.6 and changed.size and changed.dtype.kind in "iuf":
        flat = changed.reshape(-1)
        forged_values(flat, rng)
        return flat.reshape(array.shape)
    if kind < 0.7:
        return changed.astype(rng.choice(["float64", "int64", "int8", "float16", "S3", ">i4"]), casting="unsafe")
    if kind < 0.8:
        return changed[None]
    if kind < 0.9:
        return changed.reshape(-1)[: rng.randrange(changed.size + 1)]
    return np.concatenate([changed.reshape(-1)] * 2)


def _forged_tensors(content: Any, rng: random.Random) -> Any:
    """Change a tensor or a plain value in a tree of maps and lists, or the tree itself."""
    import torch

    tensors: list[tuple[Any, Any]] = []

    def collect(node: Any) -> None:
        for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
            if isinstance(value, torch.Tensor):
                tensors.append((node, key))
            elif isinstance(value, (dict, list)):
                collect(value)

    collect(content)
    if not tensors or rng.random() < 0.4:
        return mutated_value(content, rng, ["sizes", "parameters", "meta", "words", "format"])
    node, key = rng.choice(tensors)
    old, kind = node[key], rng.randrange(9)
    if kind < 3 and old.numel():
        flat = old.reshape(-1).clone().numpy()
        if flat.dtype.kind in "iuf":
            forged_values(flat, rng)
        node[key] = torch.from_numpy(flat).reshape(old.shape)
    else:
        node[key] = rng.choice(
            [
                old.reshape(-1),
                old[:-1] if old.ndim else old[None],
                old.double(),
                old.to(torch.int64),
                old.to_sparse() if old.is_floating_point() else old,
                torch.zeros(1, dtype=old.dtype).expand(1 << 40),
                torch.zeros(0, dtype=old.dtype),
                old.t() if old.ndim == 2 else old.flip(0) if old.ndim else old,
            ]
        )
    return content
