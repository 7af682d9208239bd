"""Numbers in text and the tables of distinct strings, against Python."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnsmt.base.kernels.strings import POW10, Interner, parse_float


@given(
    st.floats(allow_nan=False, allow_infinity=False, width=64), st.sampled_from(["{:.6g}", "{:.4f}", "{:e}", "{!r}"])
)
@settings(deadline=None)
def test_numbers_are_parsed_as_python_does(value: float, layout: str) -> None:
    text = layout.format(value)
    if len(text) > 60:
        return
    parsed = parse_float(np.frombuffer(text.encode(), np.uint8), 0, len(text), POW10)
    assert parsed == pytest.approx(float(text), rel=1e-13, abs=1e-300)


@pytest.mark.parametrize("text", ["", "-", "nan", "inf", "1e", "1e+", "1.2.3", "0x10", "1,5", "e5", ".", "1e999"])
def test_what_is_no_finite_number_is_nan(text: str) -> None:
    assert np.isnan(parse_float(np.frombuffer(text.encode() + b" ", np.uint8), 0, len(text), POW10))


@given(st.lists(st.binary(min_size=1, max_size=6).filter(lambda b: b"\n" not in b)))
@settings(deadline=None, max_examples=50)
def test_interner_numbers_strings_in_order_of_arrival(strings: list[bytes]) -> None:
    interner = Interner(2, 2)
    ids = interner.add(strings)
    distinct = list(dict.fromkeys(strings))
    assert interner.strings() == distinct
    assert interner.strings(len(distinct) // 2) == distinct[len(distinct) // 2 :]
    assert [distinct[i] for i in ids] == strings
    other = Interner()
    other.add([*distinct, b"unseen words"])
    assert interner.ids_of(other).tolist() == [*range(len(distinct)), -1]


@given(st.lists(st.text(alphabet="ab\t\u00a0\r ", max_size=12)))
@settings(deadline=None, max_examples=50)
def test_words_of_lines_are_numbered_in_order_of_arrival(lines: list[str]) -> None:
    """Separate words at spaces only."""
    sentences = [[word for word in line.encode().split(b" ") if word] for line in lines]
    text = b"".join(line.encode() + b"\n" for line in lines)
    interner = Interner(0, 0)
    ids, offsets = interner.number(text)
    words = interner.strings()
    assert words == list(dict.fromkeys(word for sentence in sentences for word in sentence))
    assert [[words[i] for i in ids[a:b]] for a, b in pairwise(offsets)] == sentences
