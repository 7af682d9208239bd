"""Damaged and forged files of networks: model files, vocabularies, and directories of ids.

``python -m tests.unit.networks.fuzz --cases 500`` changes every field of every kind of file, runs a command that reads
it, each case in a process of its own, and prints the outcomes. A changed file must be refused with one sentence, or
give the output of the original. Only a file that is another valid network, with the right checksum, may give another.
"""

import argparse
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import struct
import sys
import tarfile
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rnnsmt.cli import main
from rnnsmt.translation.archives import CACHE, SUMS

from ..test_malformed_input import valid_files

SECONDS = 20
"""Time limit of a case, in CPU seconds."""

MORE_BYTES = 4 << 30
"""Memory that a case may allocate in addition to that of the parent process, in bytes."""

SIZES = "--projection 4 --hidden-1 6 --hidden-2 5 --batch 8 --epochs 1 --preset demo"

STORE = "--pairs pairs.safetensors --vocabularies vocabularies"

TRAININGS = {
    "rnn": "networks train --network rnn --data pairs.safetensors vocabularies "
    "--preset demo --hidden 8 --embedding 4 --maxout 4 --updates 3 --batch 8",
    "cslm": f"networks train --network cslm --data ids {SIZES}",
    "nnjm": f"networks train --network nnjm --data examples {SIZES}",
    "seq2seq": "networks train --network seq2seq --data sentences "
    "--preset demo --embedding 4 --hidden 5 --layers 2 --batch 8 "
    "--epochs 1",
}

PREPARATIONS = (
    "networks prepare --network cslm --target tok.fr --output-dir ids "
    "--target-vocabulary vocabularies/vocab.target.txt",
    "networks prepare --network nnjm --source tok.en --target tok.fr --alignment al --vocab-size 30 --output-dir "
    "examples",
    "networks prepare --network seq2seq --source tok.en --target tok.fr --vocab-size 30 --output-dir sentences",
)

TRANSLATE = "translate --system NAME --input dev.en --output O1 --explain"

USES = {
    "cslm": TRANSLATE.replace("NAME", "cslm"),
    "cslm perplexity": "networks perplexity --model cslm.safetensors --input dev.fr --output O1",
    "nnjm": TRANSLATE.replace("NAME", "nnjm"),
    "rnn": f"phrases column --name rnn {STORE} --model rnn.safetensors --output O1",
    "rnn system": "",  # ``System.score`` and ``System.embed``
    "seq2seq": "seq2seq translate --input dev.en --model seq2seq.safetensors --output O1",
    "archive": TRANSLATE.replace("NAME", "archive.tar"),
    "ids": TRAININGS["cslm"],
    "pairs": f"phrases column --name rnn {STORE} --model rnn.safetensors --output O1",
    "pairs train": TRAININGS["rnn"],
    "sentences": TRAININGS["seq2seq"],
    "examples": TRAININGS["nnjm"],
}
"""Commands that read the files."""

FILES = {
    **{use: [f"{use.split()[0]}.safetensors"] for use in USES if use.split()[0] in TRAININGS},
    "rnn system": ["rnn.safetensors", "vocabularies/vocab.source.txt", "vocabularies/vocab.target.txt"],
    "archive": [f"packed/{name}" for name in ("system.json", "system.json", "moses.ini", "cslm.safetensors")],
    "ids": ["ids/words.npy", "ids/offsets.npy", "ids/text.json", "ids/vocab.txt"],
    "pairs": [*["pairs.safetensors"] * 5, "vocabularies/vocab.source.txt"],
    "pairs train": ["pairs.safetensors"],
    "sentences": ["sentences/source.words.npy", "sentences/target.offsets.npy", "sentences/sentences.json"],
    "examples": ["examples/affiliations.npy", "examples/source.offsets.npy", "examples/examples.json"],
}
"""Files that are changed, by the command that reads them."""


class Case(NamedTuple):
    """A changed file.

    Attributes:
        name: the file.
        change: what was changed, for the report.
        content: the file after it.
        valid: whether it may be another valid network, so that another output is right.
    """

    name: str
    change: str
    content: bytes
    valid: bool = False


def prepare() -> None:
    """Train a network of each kind in the working directory, and make systems with them."""
    valid_files()
    for line in PREPARATIONS:
        assert main(line.split()) == 0, line
    for name, line in TRAININGS.items():
        assert main(trained(line, name, f"{name}.safetensors").split()) == 0, line
    for name in ("cslm", "nnjm"):
        Path(name).mkdir()
        ini = Path("moses.ini").read_text().replace("path=", "path=../")
        feature = f"{name.upper()} name=N0 path=../{name}.safetensors"
        ini = ini.replace("[feature]\n", f"[feature]\n{feature}\n").replace("[weight]\n", "[weight]\nN0= 0.7\n")
        Path(name, "moses.ini").write_text(ini)
        described = f"translation describe --name {name} --source-lang en --target-lang fr --output-dir {name} "
        described += "--rnn rnn.safetensors --vocabulary vocabularies/vocab.source.txt "
        described += "vocabularies/vocab.target.txt"
        assert main(described.split()) == 0
    assert main(["pack", "--system", "cslm", "--output", "packed.tar"]) == 0
    with tarfile.open("packed.tar") as archive:
        archive.extractall(".", filter="data")


def pack() -> None:
    """Make an archive of the directory ``packed``, whose checksums are right."""
    files = sorted(path for path in Path("packed").iterdir() if path.name != SUMS)
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    Path("packed", SUMS).write_text(sums)
    with tarfile.open("archive.tar", "w") as archive:
        archive.add("packed")


def trained(line: str, name: str, output: str) -> str:
    """Return the command of a training run that writes ``output``."""
    return f"{line} --seed 1 --output-model {output} --output-history history --checkpoint-dir saved-{name}"


def run(use: str) -> int:
    """Run the command of ``USES``; return its exit status. The output is the file O1."""
    if use == "rnn system":
        from rnnsmt.base.errors import InputError
        from rnnsmt.translation.system import System

        try:
            system = System("cslm")
            values = [system.score("e1 e2", f"f{k} f3") for k in range(8)]
            Path("O1").write_bytes(system.embed("e3 e1").tobytes() + repr(values).encode())
        except InputError as error:
            print(f"rnnsmt: error: {error}", file=sys.stderr)
            return 2
        return 0
    if use == "archive":
        shutil.rmtree("cache", ignore_errors=True)
        pack()
    line = USES[use]
    return main((trained(line, "case", "O1") if " train " in line else line).split())


def outcome(use: str, case: Case, expected: bytes) -> str:
    """Run a command on a changed file in a process of its own; return ``refused``, ``equal``, ``other`` or a fault."""
    original = Path(case.name).read_bytes()
    Path(case.name).write_bytes(case.content)
    for name in ("O1", "said"):
        Path(name).unlink(missing_ok=True)
    shutil.rmtree("saved-case", ignore_errors=True)
    sys.stdout.flush()
    child = os.fork()
    if not child:
        status = 99
        try:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + MORE_BYTES, used + MORE_BYTES))
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS + int(time.process_time()), resource.RLIM_INFINITY))
            with Path("said").open("w") as said, redirect_stderr(said), redirect_stdout(StringIO()):
                try:
                    status = run(use)
                except BaseException:
                    traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    Path(case.name).write_bytes(original)
    said = Path("said").read_text(errors="replace") if Path("said").exists() else ""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return "hang" if number == signal.SIGXCPU else f"crash: {signal.Signals(number).name}"
    code = os.WEXITSTATUS(status)
    if code == 2 and "Traceback" not in said:
        sentences = [line for line in said.splitlines() if ": error: " in line]
        fine = len(sentences) == 1 and said.splitlines()[-1] == sentences[0] and len(sentences[0]) < 600
        return "refused" if fine else f"not one sentence: {said[-300:]}"
    if code:
        return f"traceback: {said[-600:]}"
    return "equal" if Path("O1").read_bytes() == expected else "other"


# changes of files

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 7, 2**31, 2**63, 10**30, 1.5, 1e308, float("nan"), float("inf")),
    *("", "x", "relu", "tanh", "paper", "supplementary", "forward", "reversed", "\ud800", "a b", "\n", "é" * 1000),
    *([], {}, [1], ["a"], [[]], {"a": 1}, ["a", "a"]),
)
"""Values that replace entries."""

WEIGHTS = (np.nan, np.inf, -np.inf, 3e38, -3e38, 0.0, 1e-40, 1e20, 0.5)
"""Numbers that replace weights."""


def split(data: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Return the header of a safetensors file without the metadata, its metadata, and the bytes of the tensors."""
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    return header, json.loads(header.pop("__metadata__")["rnnsmt"]), data[8 + length :]


def joined(header: Any, metadata: Any, tensors: bytes) -> bytes:
    """Return a safetensors file."""
    text = metadata if isinstance(metadata, str) else json.dumps(metadata, sort_keys=True)
    encoded = json.dumps({"__metadata__": {"rnnsmt": text}, **header}).encode()
    encoded += b" " * (-len(encoded) % 8)
    return struct.pack("<Q", len(encoded)) + encoded + tensors


def with_checksum(header: dict[str, Any], metadata: dict[str, Any], tensors: bytes) -> bytes:
    """Return a safetensors file with the checksum of its content."""
    content = {name: value for name, value in metadata.items() if name != "checksum"}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    for name in sorted(header):
        begin, end = header[name]["data_offsets"]
        digest.update(tensors[begin:end])
    return joined(header, {**content, "checksum": digest.hexdigest()}, tensors)


def places_of(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the places of all values of nested maps and lists."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(further for key, inner in entries for further in places_of(inner, (*place, key)))]


def replaced(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    """Return nested maps and lists with another value at a place."""
    if not place:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = replaced(copy[place[0]], place[1:], new)
    return copy


def changed_entries(rng: random.Random, value: Any, few: int = 40) -> tuple[Any, str, tuple[Any, ...]]:
    """Return JSON with one entry replaced, removed, nested or added, what was changed, and the place."""
    place = rng.choice([*places_of(value)[1:few], *places_of(value)[1:]])
    kind = rng.randrange(8)
    if kind == 0:
        parent = value
        for key in place[:-1]:
            parent = parent[key]
        rest = [x for k, x in enumerate(parent) if k != place[-1]] if isinstance(parent, list) else dict(parent)
        if isinstance(rest, dict):
            del rest[place[-1]]
        return replaced(value, place[:-1], rest), f"without {place}", place
    if kind == 1 and isinstance(value, dict):
        return {**value, "further": 1}, "further entry", ("further",)
    new = rng.choice(VALUES)
    what = f"{place} = {str(new)[:40]}"
    if kind == 2:
        for _ in range(300):
            new = [new]
        what += " nested"
    return replaced(value, place, new), what, place


def changed_words(rng: random.Random, words: list[str]) -> tuple[list[Any], str, bool]:
    """Return other words, what was changed, and whether they are a vocabulary of the same size."""
    more = [f"further{k}" for k in range(rng.choice((1, 200, 100_000)))]
    renamed = [f"other{k}" if rng.random() < 0.3 else word for k, word in enumerate(words)]
    choices: list[tuple[list[Any], str, bool]] = [
        ([*more, *words], f"{len(more)} words before", False),
        ([*words, *more], f"{len(more)} words after", False),
        (words[: rng.randrange(len(words))], "fewer words", False),
        ([], "no words", False),
        ([words[0], *words[:-1]], "a duplicate", False),
        ([*words[:-1], rng.choice(("", " ", "a b", "a\tb", "a\n", "\r"))], "white space", False),
        ([*words[:-1], rng.choice((3, None, 1.5, ["a"], {"a": 1}, True))], "not a string", False),
        ([*words[:-1], "\ud800"], "a surrogate", False),
        (rng.sample(words, len(words)), "another order", True),
        (renamed, "other words", True),
        (words[::-1], "reversed", True),
    ]
    return rng.choice(choices)


Changed = tuple[bytes, str, bool]
"""A changed file, what was changed, and whether it may be another valid network."""


def changed_bits(rng: random.Random, data: bytes) -> Changed:
    """Flip bits."""
    mutable = bytearray(data)
    for _ in range(rng.choice((1, 1, 8))):
        mutable[rng.choice((rng.randrange(len(data)), rng.randrange(8), 8 + rng.randrange(200)))] ^= rng.choice((1, 64))
    return bytes(mutable), "bits", False


def changed_length(rng: random.Random, data: bytes) -> Changed:
    """Cut or extend the file, or change the length of its header."""
    length = rng.choice((0, 2**31, 2**63, 2**64 - 1, 100_000_001, len(data), len(data) - 8, rng.randrange(5000)))
    pieces = {
        "cut": data[: rng.randrange(len(data))],
        "garbage after": data + b"\0" * rng.choice((1, 64)),
        "length of the header": struct.pack("<Q", length) + data[8:],
        "empty": b"",
    }
    what = rng.choice(sorted(pieces))
    return pieces[what], what, False


def changed_tensor(rng: random.Random, data: bytes) -> Changed:
    """Change the entry of a tensor in the header."""
    header, metadata, tensors = split(data)
    name, other = rng.choice(sorted(header)), rng.choice(sorted(header))
    entry = dict(header[name])
    shape, (begin, end) = entry["shape"], entry["data_offsets"]
    types = ("F64", "F16", "BF16", "I32", "I8", "BOOL", "U64", "F8_E4M3", "F4", "C64", "X", "", 3, None)
    shapes = [
        shape[::-1],
        [*shape, 1],
        [1, *shape],
        [2**62, 4],
        [-1],
        ["3"],
        [1.5],
        None,
        "x",
        [2**40, 0],
        [0],
        [10**40],
    ]
    shapes += [[size + more for size in shape] for more in (-1, 1)]
    offsets = ([begin + 4, end], [end, begin], [begin, end + 4], [0, 10**12], [-4, 0], [begin], None, [10**30, 10**31])
    without = {key: value for key, value in header.items() if key != name}
    odd_name = rng.choice(("", "x", f"{name}2", "é" * 300))
    choices: dict[str, dict[str, Any]] = {
        "type": {**header, name: entry | {"dtype": rng.choice(types)}},
        "shape": {**header, name: entry | {"shape": rng.choice(shapes)}},
        "offsets": {**header, name: entry | {"data_offsets": rng.choice(offsets)}},
        "removed": without,
        "renamed": {**without, odd_name: entry},
        "swapped": {**header, name: header[other], other: entry},
    }
    what = rng.choice(sorted(choices))
    changed = choices[what]
    valid = what == "swapped" and header[other]["shape"] == shape
    try:
        return with_checksum(changed, metadata, tensors), f"{name}: {what} {changed.get(name)}", valid
    except (TypeError, ValueError):
        return joined(changed, metadata, tensors), f"{name}: {what} {changed.get(name)}", False


def changed_text(rng: random.Random, data: bytes) -> Changed:
    """Replace the text of the metadata."""
    header, metadata, tensors = split(data)
    text = json.dumps(metadata)
    texts = ["", "{", "[]", "null", "1", "[" * 100_000, '{"a":' * 5000, "9" * 6000, text[:-5], text + "x", '"x"']
    return joined(header, rng.choice(texts), tensors), "metadata", False


def changed_key(rng: random.Random, data: bytes) -> Changed:
    """Replace the key of the metadata."""
    header, _, tensors = split(data)
    odd = ({}, {"rnnsmt": 3}, {"other": "x"}, [], None, {"rnnsmt": None}, {"rnnsmt": {}}, "x")
    encoded = json.dumps({"__metadata__": rng.choice(odd), **header}).encode()
    return struct.pack("<Q", len(encoded)) + encoded + tensors, "key of the metadata", False


FREE = ("meta", "unknown words", "self-normalised", "source order", "words", "source words")
"""Entries of the metadata that do not have to agree with others, apart from the number of words."""


def changed_entry(rng: random.Random, data: bytes) -> Changed:
    """Change an entry of the metadata, with the checksum of before or the right one."""
    header, metadata, tensors = split(data)
    changed, what, place = changed_entries(rng, metadata)
    if rng.random() < 0.5 or not isinstance(changed, dict):
        return joined(header, changed, tensors), what, False
    valid = place[0] in FREE or place[-1] == "activation"
    return with_checksum(header, changed, tensors), f"{what}, checksum", valid


def changed_shortlist(rng: random.Random, data: bytes) -> Changed:
    """Change words, with the right checksum."""
    header, metadata, tensors = split(data)
    places = [(entry,) for entry in ("words", "source words") if isinstance(metadata.get(entry), list)]
    if isinstance(metadata.get("words"), dict):
        places = [("words", "source"), ("words", "target")]
    if not places:
        return changed_entry(rng, data)
    place = rng.choice(places)
    old = metadata
    for key in place:
        old = old[key]
    words, what, valid = changed_words(rng, old)
    return with_checksum(header, replaced(metadata, place, words), tensors), f"{place}: {what}", valid


def changed_weights(rng: random.Random, data: bytes) -> Changed:
    """Change weights, with the checksum of before or the right one."""
    header, metadata, tensors = split(data)
    name = rng.choice(sorted(header))
    begin, end = header[name]["data_offsets"]
    values = np.frombuffer(tensors[begin:end], np.float32).copy()
    number = float(rng.choice(WEIGHTS))
    values[rng.choice((slice(None), slice(rng.randrange(len(values)), None), rng.randrange(len(values))))] = number
    changed = tensors[:begin] + values.tobytes() + tensors[end:]
    if rng.random() < 0.5:
        return joined(header, metadata, changed), f"{name}: {number}", False
    return with_checksum(header, metadata, changed), f"{name}: {number}, checksum", bool(np.isfinite(number))


def changed_model(rng: random.Random, data: bytes) -> Changed:
    """Change a model file."""
    changes = (changed_bits, changed_length, changed_text, changed_key, changed_tensor, changed_tensor)
    more = (changed_entry, changed_entry, changed_shortlist, changed_shortlist, changed_weights, changed_weights)
    return rng.choice((*changes, *more))(rng, data)


def changed_store(rng: random.Random, data: bytes) -> Changed:
    """Change a store of phrase pairs, whose content has no checksum."""
    (length,) = struct.unpack("<Q", data[:8])
    header, values = json.loads(data[8 : 8 + length]), data[8 + length :]
    name = rng.choice(sorted(set(header) - {"__metadata__"}))
    entry = header[name]
    (begin, end), (number,) = entry["data_offsets"], entry["shape"]
    types = ("F32", "F64", "I32", "U32", "U16", "I64", "U8", "BF16", "X", 3, None)
    shapes = ([number, 1], [], [-1], ["3"], [number + 1], [2**62], [10**40], None, "x", [0])
    offsets = ([begin + 8, end], [end, begin], [0, 10**12], [-8, 0], [begin], None, [begin, begin])
    odd = rng.choice(
        ({"dtype": rng.choice(types)}, {"shape": rng.choice(shapes)}, {"data_offsets": rng.choice(offsets)})
    )
    metadata = rng.choice(({}, [], None, "x", {"format": 3}, header["__metadata__"] | {"format": "x"}))
    array = np.frombuffer(values[begin:end], {"I64": np.int64, "U16": np.uint16, "U8": np.uint8}[entry["dtype"]]).copy()
    place = rng.randrange(number)
    array[place] = rng.choice((0, 1, 2, number, int(array.max()), 10, 255, array[place] + 1))
    other = values[:begin] + array.tobytes() + values[end:]

    def with_text(changed: Any) -> bytes:
        text = changed if isinstance(changed, bytes) else json.dumps(changed).encode()
        return struct.pack("<Q", len(text)) + text + values

    texts = (b"", b"{", b"[" * 100_000, b'{"a":' * 5000, b"9" * 6000, b"\xff", b"null", b"[]")
    choices: list[Changed] = [
        changed_length(rng, data),
        (with_text(header | {name: entry | odd}), f"{name}: {odd}", False),
        (with_text({key: value for key, value in header.items() if key != name}), f"without {name}", False),
        (with_text(header | {"__metadata__": metadata}), f"metadata {str(metadata)[:40]}", False),
        (with_text(rng.choice(texts)), "header", False),
        (data[: 8 + length] + other, f"{name}[{place}] = {array[place]}", True),
        (data[: 8 + length] + other, f"{name}[{place}] = {array[place]}", True),
    ]
    return rng.choice(choices)


def saved(array: np.ndarray) -> bytes:
    """Return the bytes of a ``.npy`` file."""
    out = BytesIO()
    np.save(out, array)
    return out.getvalue()


def changed_array(rng: random.Random, data: bytes) -> Changed:
    """Change a ``.npy`` file of integers."""
    array = np.load(BytesIO(data))
    mutable = bytearray(data)
    mutable[rng.randrange(128)] ^= 1 << rng.randrange(8)
    text = rng.choice(("((" * 3000, "{'descr': '<i4', 'fortran_order': False, 'shape': (10**20,)}", "{}", "[]", "1"))
    header = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data[128:]
    pieces = (data[: rng.randrange(len(data))], b"", data + b"x" * 40, b"PK\x03\x04" + data, data[:128])
    kind = rng.choice(("<f8", "<i2", ">i4", ">i8", "<u4", "S3", "<i8", "<i4"))
    shapes = (array[None], array[:-1], array[1:], np.append(array, array[-1:]), np.repeat(array, 2), array[:0])
    place, top = rng.randrange(len(array)), int(array.max())
    value = rng.choice((-1, -(2**31), 2**31 - 1, 0, 1, 2, len(array), top + 1, top, 10**6))
    other = array.copy()
    other[place] = value
    choices: list[Changed] = [
        (bytes(mutable), "bit of the header", False),
        (header, f"header {text[:40]}", False),
        (rng.choice(pieces), "bytes", False),
        (saved(array.astype(kind, casting="unsafe")), kind, False),
        (saved(rng.choice(shapes).astype(array.dtype)), "shape", False),
        (saved(np.array(rng.sample(array.tolist(), len(array)), array.dtype)), "order", True),
        (saved(other), f"[{place}] = {value}", 0 <= value <= top),
        (saved(other), f"[{place}] = {value}", 0 <= value <= top),
    ]
    return rng.choice(choices)


def changed_json(rng: random.Random, data: bytes) -> Changed:
    """Change a JSON file."""
    if rng.random() < 0.3:
        texts = (b"", b"{", b"[" * 100_000, b'{"a":' * 5000, b"9" * 6000, b"\xff", data[:-5], b"null", b'"\\ud800"')
        return rng.choice(texts), "text", False
    value, what, place = changed_entries(rng, json.loads(data))
    return json.dumps(value).encode(), what, place[0] not in FIXED


def changed_ini(rng: random.Random, data: bytes) -> Changed:
    """Change a word, a number or a line of ``moses.ini``; other weights are another valid system."""
    lines = data.decode().split("\n")
    place = rng.choice([k for k, line in enumerate(lines) if line])
    word = rng.choice(lines[place].split())
    numbers = ("nan", "inf", "-1e400", "1e9", "-1", "0", "9" * 5000, "1_0", "\u0663", "", "x" * 2000, "\0", "../..")
    new = rng.choice(numbers)
    name, _, old = word.partition("=")
    choices = (
        lines[place].replace(word, f"{name}={new}" if old else new),
        *(lines[place].replace(word, ""), "", f"{lines[place]} {new}", f"{lines[place]}\n{rng.choice(lines)}"),
    )
    changed = rng.choice(choices)
    text = "\n".join([*lines[:place], changed, *lines[place + 1 :]])
    return text.encode(), f"{lines[place][:40]!r} -> {changed[:60]!r}", True


def changed_vocabulary(rng: random.Random, data: bytes) -> Changed:
    """Change a file of words."""
    lines = data.decode().split("\n")[:-1]
    words, what, _ = changed_words(rng, lines[2:-1])
    if not all(isinstance(word, str) for word in words):
        return data[: rng.randrange(len(data))], "cut", False
    ends = rng.choice((lines[:2], lines[:2], lines[:1], lines[1::-1], []))
    text = "".join(f"{word}\n" for word in (*ends, *words, *lines[-1:]))
    return text.encode("utf-8", "surrogatepass"), what, False


FIXED = ("format", "name", "rnn", "examples", "filtered")
"""Entries of JSON files that cannot change the output."""

CHANGES: dict[str, Callable[[random.Random, bytes], Changed]] = {
    "pairs.safetensors": changed_store,
    ".safetensors": changed_model,
    ".npy": changed_array,
    ".json": changed_json,
    ".ini": changed_ini,
    ".txt": changed_vocabulary,
}


def cases(use: str, number: int, seed: int) -> list[Case]:
    """Return changed files of a command; the same seed gives the same files."""
    found = []
    for k in range(number):
        name = FILES[use][k % len(FILES[use])]
        rng = random.Random(f"{use} {seed} {k}")
        change_file = CHANGES.get(name, CHANGES[Path(name).suffix])
        content, change, valid = change_file(rng, Path(name).read_bytes())
        found.append(Case(name, change, content, valid))
    return found


def attack(use: str, number: int, seed: int) -> tuple[Counter[str], list[tuple[Case, str]]]:
    """Run a command on changed files; return the numbers of outcomes, and the faults."""
    with redirect_stderr(StringIO()):
        assert run(use) == 0  # before the forks, so that the kernels are compiled
    expected = Path("O1").read_bytes()
    counts: Counter[str] = Counter()
    faults = []
    for case in cases(use, number, seed):
        found = outcome(use, case, expected)
        if found not in ("refused", "equal") and not (found == "other" and case.valid):
            faults.append((case, found))
            found = "fault"
        counts[found] += 1
    return counts, faults


def fuzz() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=500, help="number of cases of each command")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=USES, default=list(USES))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        os.environ[CACHE] = "cache"
        with redirect_stderr(StringIO()):
            prepare()
        print(f"{'':16}{'refused':>9}{'equal':>9}{'other':>9}{'fault':>9}")
        for use in args.only:
            counts, faults = attack(use, args.cases, args.seed)
            print(f"{use:16}" + "".join(f"{counts[name]:9,}" for name in ("refused", "equal", "other", "fault")))
            for case, found in faults:
                print(f"    {case.name}: {case.change[:100]}: {found.strip().splitlines()[-1][-300:]}")
            sys.stdout.flush()
        os.chdir("/")


if __name__ == "__main__":
    fuzz()
