"""Kernels for numbers: hashes of 64-bit integers, fixed-point counts, binary search, and formatting as text.

A fractional count is stored as an integer in units of 1 / ``ONE``. Integer addition is associative, so the
sentences of a corpus can be distributed over threads and machines in any way with the same result. The maximum of a
count is 2^31.

Text is written into uint8 arrays; the constants are ASCII codes (48 is ``0``, 46 ``.``, 45 ``-``, 43 ``+``, 101 ``e``).
"""

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

from rnnsmt.base.kernels.decorator import INNER, kernel

GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio: increment of SplitMix64, also a good multiplier for hashing."""

_MIX = np.uint64(0xFF51AFD7ED558CCD)
"""First multiplier of MurmurHash3's 64-bit finaliser."""

_S32 = np.uint64(32)

_S29 = np.uint64(29)


@kernel(inline="always")
def mix(value):
    """Mix the bits of a ``uint64`` key, so that its low bits can index a hash table.

    Faster and weaker than ``scramble``; sufficient for hash tables that compare complete keys.
    """
    value ^= value >> _S32
    value *= _MIX
    value ^= value >> _S29
    return value


@kernel()
def scramble(value):
    """Apply the finaliser of SplitMix64 (Steele et al. 2014) to a ``uint64``.

    Strong enough for hashes that identify their content without a further comparison.
    """
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


ONE = 2.0**32
"""Integer representation of an expected count of 1."""


@intrinsic
def _add_atomically(_typing, array, index, amount):
    """Add ``amount`` to ``array[index]`` (int64 [n]) atomically; several threads may update the same element."""
    signature = types.void(array, index, amount)

    def generate(context, builder, _signature, arguments):
        from numba.np.arrayobj import make_array

        data = make_array(array)(context, builder, arguments[0])
        pointer = cgutils.get_item_pointer(context, builder, array, data, [arguments[1]])
        # "monotonic" is relaxed ordering: only the sum matters, not the order of the additions
        builder.atomic_rmw("add", pointer, arguments[2], "monotonic")
        return ir.Constant(ir.IntType(8).as_pointer(), None)  # numba's representation of None

    return signature, generate


@kernel()
def add_count(counts, index, amount):
    """Add a fractional count, which may be negative, to ``counts[index]`` (int64 [n]); thread-safe."""
    _add_atomically(counts, np.int64(index), np.int64(np.rint(amount * ONE)))  # type: ignore[call-arg]


@kernel()
def add_counts(counts, amounts):
    """Add ``amounts`` (float64 [n]) to all elements of ``counts`` (int64 [n]); thread-safe."""
    for index in range(len(amounts)):
        if amounts[index] != 0.0:
            add_count(counts, index, amounts[index])


@kernel(**INNER)
def lower_bound(values: Any, low: Any, high: Any, value: Any) -> Any:
    """Return the first index from ``low`` on at which ``values`` is at least ``value``, or ``high`` if there is none.

    Args:
        values: array, ascending between ``low`` and ``high``.
        low, high: range of the search, ``high`` excluded.
    """
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


_LEAST, _MOST = -10, 250

_POWERS = [10.0**k for k in range(_LEAST, _MOST + 1)]

POWERS = np.array(_POWERS)
"""float64 [261], the double nearest to 10^k for k from ``_LEAST`` to ``_MOST``."""

POWERS_REST = np.empty(len(_POWERS))
"""float64 [261], 10^k minus ``POWERS``; the sum of both represents 10^k with twice the precision of a double."""


# exact integer arithmetic; the quotient of two integers is correctly rounded in Python
for _k in range(_LEAST, _MOST + 1):
    _n, _d = _POWERS[_k - _LEAST].as_integer_ratio()
    POWERS_REST[_k - _LEAST] = (10**_k * _d - _n) / _d if _k >= 0 else (_d - _n * 10**-_k) / (_d * 10**-_k)


_LOG10_2 = 0.3010299956639812


NUMBER_BYTES = 16
"""Maximum number of bytes written by ``put_number``."""


@kernel()
def put_integer(buffer: Any, at: Any, value: Any) -> Any:
    """Write a non-negative integer in decimal; return the position after it."""
    digits = 1
    rest = value // 10
    while rest > 0:
        digits += 1
        rest //= 10
    for index in range(at + digits - 1, at - 1, -1):
        buffer[index] = 48 + value % 10
        value //= 10
    return at + digits


@kernel()
def _six_digits(x: Any, exponent: Any) -> Any:
    """Return x · 10^(5 - exponent) rounded to an integer, exact ties to even.

    The product is computed to about twice double precision, so the rounding is that of C's ``%g``.
    """
    k = 5 - exponent
    if k > _MOST:  # x below 1e-245: scale in two steps, since the table ends at 10^250
        x *= POWERS[150 - _LEAST]
        k -= 150
    power = POWERS[k - _LEAST]
    # x · power = high + low without error (Dekker 1971); 134217729 = 2^27 + 1 splits a double into two halves of at
    # most 26 bits, whose products are exact
    high = x * power
    split = x * 134217729.0
    x_high = split - (split - x)
    x_low = x - x_high
    split = power * 134217729.0
    p_high = split - (split - power)
    p_low = power - p_high
    low = ((x_high * p_high - high) + x_high * p_low + x_low * p_high) + x_low * p_low
    low += x * POWERS_REST[k - _LEAST]  # rounding error of the power itself
    whole = np.int64(np.floor(high))
    fraction = (high - whole) + low
    if fraction < 0.0:
        whole -= 1
        fraction += 1.0
    elif fraction >= 1.0:
        whole += 1
        fraction -= 1.0
    if fraction > 0.5 or (fraction == 0.5 and whole % 2 == 1):
        whole += 1
    return whole


@kernel()
def put_number(buffer: Any, at: Any, x: Any) -> Any:
    """Write 0 or a number from 1e-290 to 1e10 with six significant digits, as ``%g``; return the position after it.

    Smaller positive numbers are written as 0; for probabilities, the difference is irrelevant.
    """
    if x < 1e-290:
        buffer[at] = 48
        return at + 1
    if x == 1.0:
        buffer[at] = 49
        return at + 1
    # log2(1 + m) exceeds m by 0 to 0.09, so the exponent is never too large; it is too small for 2 % of the numbers.
    # Rounding may also carry into a seventh digit.
    exponent = np.int64(np.floor((np.float64(x).view(np.int64) * 2.0**-52 - 1023.0) * _LOG10_2))
    digits = _six_digits(x, exponent)
    while digits >= 1000000:
        exponent += 1
        digits = _six_digits(x, exponent)
    length = 6
    while length > 1 and digits % 10 == 0:
        digits //= 10
        length -= 1
    scientific = exponent < -4 or exponent > 5  # as %g with precision 6
    point = 0 if scientific else exponent  # the decimal point follows the digit of this index
    if point < 0:
        buffer[at] = 48
        buffer[at + 1] = 46
        at += 2
        for _ in range(-point - 1):
            buffer[at] = 48
            at += 1
    # from the last digit to the first, so all divisors are constants
    last = max(length, point + 1) - 1
    dots = 1 if 0 <= point < last else 0
    for index in range(last, -1, -1):
        position = at + index + (dots if index > point else 0)
        if index < length:
            buffer[position] = 48 + digits % 10
            digits //= 10
        else:
            buffer[position] = 48
    if dots:
        buffer[at + point + 1] = 46
    at += last + 1 + dots
    if scientific:
        buffer[at] = 101
        buffer[at + 1] = 45 if exponent < 0 else 43
        at += 2
        exponent = abs(exponent)
        if exponent < 10:  # the exponent has at least two digits, as in C
            buffer[at] = 48
            at += 1
        at = put_integer(buffer, at, exponent)
    return at


@kernel()
def put_logarithm(buffer: Any, at: Any, x: Any) -> Any:
    """Write a number rounded to six decimals, without trailing zeros; return the position after it."""
    millionths = np.int64(np.rint(x * 1e6))
    if millionths < 0:
        buffer[at] = 45
        at += 1
        millionths = -millionths
    at = put_integer(buffer, at, millionths // 1000000)
    rest = millionths % 1000000
    if rest == 0:
        return at
    buffer[at] = 46
    digits = 6
    while rest % 10 == 0:
        rest //= 10
        digits -= 1
    for i in range(digits):  # from the last digit to the first
        buffer[at + digits - i] = 48 + rest % 10
        rest //= 10
    return at + digits + 1
