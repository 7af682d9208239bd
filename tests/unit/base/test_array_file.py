"""Files of arrays: read by the safetensors library and by ``ArrayFile``; incomplete files are refused."""

import json
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rnnsmt.base.array_file import _TYPES, ArrayFile, write_arrays
from rnnsmt.base.errors import InputError

numpy_of = pytest.importorskip("safetensors.numpy")

REMEDY = "make it again"


def write(path, content, cuts=()):
    """Write arrays by name, each in pieces that end at ``cuts``; return the digest."""
    with write_arrays(path, {name: values.dtype for name, values in content.items()}) as writer:
        for name, values in content.items():
            for piece in np.split(values, [cut for cut in cuts if cut < len(values)]):
                writer.append(name, piece)
        writer.entries["format"] = "test"
        return writer.digest()


one_array = st.sampled_from(sorted(_TYPES)).flatmap(
    lambda name: arrays.arrays(np.dtype(_TYPES[name]), st.integers(0, 40))
)


@given(
    st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1, max_size=9), one_array, max_size=5),
    st.lists(st.integers(0, 40), max_size=3).map(sorted),
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read(tmp_path, content, cuts):
    path = tmp_path / "a"
    content.pop("__metadata__", None)
    digest = write(path, content, cuts)
    found = ArrayFile(path, REMEDY)
    assert (found.path, found.entries, set(found)) == (path, {"format": "test"}, set(content))
    for read in (found, numpy_of.load_file(path)):
        assert len(read) == len(content)
        for name, values in content.items():
            assert read[name].dtype == values.dtype
            assert read[name].tobytes() == values.tobytes()
    assert write(tmp_path / "again", dict(reversed(content.items()))) == digest, "pieces and order do not matter"
    assert all(values.ctypes.data % values.dtype.itemsize == 0 for values in found.values())


def test_the_digest_depends_on_names_and_values(tmp_path):
    ab = np.array([1, 2], np.int32)
    contents = [{"a": ab}, {"b": ab}, {"a": ab[::-1]}, {"a": ab, "b": ab[:0]}, {}]
    assert len({write(tmp_path / "a", content) for content in contents}) == 5


def test_empty_arrays(tmp_path):
    write(tmp_path / "a", {"x": np.zeros(0, np.float32), "y": np.zeros(0, np.int64)})
    found = ArrayFile(tmp_path / "a", REMEDY)
    assert [(values.dtype, len(values)) for values in (found["x"], found["y"])] == [(np.float32, 0), (np.int64, 0)]
    found.release()


def test_nothing_is_left_of_an_interrupted_writer(tmp_path):
    write(tmp_path / "a", {"x": np.arange(3)})
    before = (tmp_path / "a").read_bytes()
    with pytest.raises(KeyError), write_arrays(tmp_path / "a", {"x": np.int64}) as writer:
        writer.append("y", np.arange(3))
    assert (tmp_path / "a").read_bytes() == before
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


def with_header(header, data=bytes(range(16))):
    """Return a file with a header, given as text or as what JSON can hold, and 16 bytes of data."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


GOOD = {"dtype": "I64", "shape": [2], "data_offsets": [0, 16]}

DAMAGED = {
    "header cut": with_header({"x": GOOD})[:20],
    "data cut": with_header({"x": GOOD})[:-1],
    "no header": b"\0\0\0",
    "length of the header": struct.pack("<Q", 1 << 60) + with_header({"x": GOOD})[8:],
    "text": b"source ||| target ||| 1 1 1 1\n" * 9,
    "not UTF-8": with_header(b'{"\xff": 1}'),
    "a list": with_header([GOOD]),
    "nested": with_header(b"[" * 100_000),
    "entries": with_header({"__metadata__": {"format": 3}, "x": GOOD}),
    "a list of entries": with_header({"__metadata__": ["format"], "x": GOOD}),
    "an array": with_header({"x": [1]}),
    "another key": with_header({"x": GOOD | {"further": 1}}),
    "no type": with_header({"x": {"shape": [2], "data_offsets": [0, 16]}}),
    "unknown type": with_header({"x": GOOD | {"dtype": "C64"}}),
    "two dimensions": with_header({"x": GOOD | {"shape": [2, 1]}}),
    "shape": with_header({"x": GOOD | {"shape": [3]}}),
    "a text as shape": with_header({"x": GOOD | {"shape": "2"}}),
    "behind the end": with_header({"x": GOOD | {"data_offsets": [8, 24]}}),
    "before the beginning": with_header({"x": GOOD | {"data_offsets": [-100, -84]}}),
    "in the header": with_header({"x": GOOD | {"data_offsets": [-16, 0]}}),
    "negative": with_header({"x": GOOD | {"shape": [-2], "data_offsets": [16, 0]}}),
    "huge": with_header({"x": GOOD | {"shape": [10**30], "data_offsets": [0, 8 * 10**30]}}),
    "fractions": with_header({"x": GOOD | {"shape": [2.0], "data_offsets": [0.0, 16.0]}}),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_files_are_refused(tmp_path, case):
    path = tmp_path / "a"
    path.write_bytes(DAMAGED[case])
    with pytest.raises(InputError) as error:
        ArrayFile(path, REMEDY)
    assert str(error.value) == f"{path}: not a complete file of arrays; {REMEDY}"


def test_files_without_content_are_refused(tmp_path):
    with pytest.raises(InputError, match=f"a: no such file; {REMEDY}"):
        ArrayFile(tmp_path / "a", REMEDY)
    (tmp_path / "a").touch()
    with pytest.raises(InputError, match=f"a: is empty; {REMEDY}"):
        ArrayFile(tmp_path / "a", REMEDY)


@given(st.data())
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_truncated_file_is_refused(tmp_path, data):
    path = tmp_path / "a"
    write(path, {"x": np.arange(5), "y": np.arange(3, dtype=np.uint8)})
    whole = path.read_bytes()
    path.write_bytes(whole[: data.draw(st.integers(1, len(whole) - 1))])
    with pytest.raises(InputError, match=REMEDY):
        ArrayFile(path, REMEDY)
