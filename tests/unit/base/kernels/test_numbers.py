"""Numbers and hashes in compiled code against Python's arithmetic."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnsmt.base.kernels.numbers import mix, put_integer, put_logarithm, scramble
from rnnsmt.tuning.nbest_pool import row_hashes

WORD = st.integers(0, 2**64 - 1)


@settings(deadline=None, max_examples=300)
@given(st.integers(-(10**12), 10**12), st.booleans())
def test_logarithms_have_six_decimals_and_no_trailing_zeros(millionths: int, exact: bool) -> None:
    value = millionths / 1e6 + (0.0 if exact else 3e-7)
    expected = f"{value:.6f}".rstrip("0").rstrip(".")
    buffer = np.zeros(40, np.uint8)
    end = put_logarithm(buffer, 3, value)
    assert buffer[3:end].tobytes().decode() == ("0" if expected in ("-0", "0") else expected)
    assert not buffer[end:].any()


@settings(deadline=None)
@given(st.integers(0, 2**63 - 1))
def test_integers(value: int) -> None:
    buffer = np.zeros(40, np.uint8)
    assert buffer[: put_integer(buffer, 0, value)].tobytes().decode() == str(value)


def _splitmix(value: int) -> int:
    """Apply the finaliser of SplitMix64 with Python's integers."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
    return value ^ value >> 31


@settings(deadline=None)
@given(WORD)
def test_hashes_of_integers(value: int) -> None:
    assert int(scramble(np.uint64(value))) == _splitmix(value)
    once = (value ^ value >> 32) * 0xFF51AFD7ED558CCD % 2**64
    with np.errstate(over="ignore"):
        assert int(mix.py_func(np.uint64(value))) == once ^ once >> 29


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**32 - 1), min_size=3, max_size=3), st.integers(0, 2**31 - 1))
def test_hashes_of_candidates(words: list[int], sentence: int) -> None:
    out = np.zeros(1, np.uint64)
    statistics = np.array([[7, 0, 9]], np.int32)
    row_hashes(np.array([words], np.uint32), statistics, np.array([sentence], np.int32), out)
    expected = sentence
    for word in [*words, 7, 0, 9]:
        expected = _splitmix(((expected ^ word) + 0x9E3779B97F4A7C15) % 2**64)
    assert int(out[0]) == expected
