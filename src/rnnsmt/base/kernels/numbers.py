"""Formatting of numbers into byte buffers: integers, numbers as printed by C's ``%g``, and logarithms.

Buffers are uint8 arrays; the constants are ASCII codes (48 is ``0``, 46 ``.``, 45 ``-``, 43 ``+``, 101 ``e``).
"""

from typing import Any

import numpy as np

from rnnsmt.base.kernels.decorator import kernel

_LEAST, _MOST = -10, 250

_POWERS = [10.0**k for k in range(_LEAST, _MOST + 1)]

POWERS = np.array(_POWERS)
"""float64 [261], the double nearest to 10^k for k from ``_LEAST`` to ``_MOST``."""

POWERS_REST = np.empty(len(_POWERS))
"""float64 [261], 10^k less ``POWERS``: together they hold 10^k to twice the precision of a double."""


# exact integer arithmetic; the quotient of two integers is correctly rounded in Python
for _k in range(_LEAST, _MOST + 1):
    _n, _d = _POWERS[_k - _LEAST].as_integer_ratio()
    POWERS_REST[_k - _LEAST] = (10**_k * _d - _n) / _d if _k >= 0 else (_d - _n * 10**-_k) / (_d * 10**-_k)


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
    for place in range(at + digits - 1, at - 1, -1):
        buffer[place] = 48 + value % 10
        value //= 10
    return at + digits


@kernel()
def _six_digits(x: Any, exponent: Any) -> Any:
    """Return x · 10^(5 - exponent) rounded to an integer, exact ties to even.

    The product is computed to about twice double precision, so that the rounding is that of C's ``%g``.
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
def put_number(buffer: Any, at: Any, x: Any) -> Any:  # noqa: PLR0912 (one kernel)
    """Write 0 or a number from 1e-290 to 1e10 with six significant digits, as ``%g``; return the position after it.

    Smaller positive numbers are written as 0; as probabilities they cannot be distinguished from it.
    """
    if x < 1e-290:
        buffer[at] = 48
        return at + 1
    if x == 1.0:
        buffer[at] = 49
        return at + 1
    # log10 may be off by one near powers of ten, and rounding may carry into a seventh digit: correct the exponent
    exponent = np.int64(np.floor(np.log10(x)))
    digits = _six_digits(x, exponent)
    if digits >= 1000000:
        exponent += 1
        digits = _six_digits(x, exponent)
    elif digits < 100000:
        exponent -= 1
        digits = _six_digits(x, exponent)
        if digits >= 1000000:
            exponent += 1
            digits = 100000
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
    power = np.int64(1)
    for _ in range(length - 1):
        power *= 10
    for index in range(max(length, point + 1)):
        if index == point + 1 and index > 0:
            buffer[at] = 46
            at += 1
        if power > 0:
            buffer[at] = 48 + digits // power % 10
            power //= 10
        else:
            buffer[at] = 48
        at += 1
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
    """Write a number of at most 0, rounded to six decimals, without trailing zeros; return the position after it."""
    millionths = np.int64(np.rint(-x * 1e6))
    if millionths <= 0:
        buffer[at] = 48
        return at + 1
    buffer[at] = 45
    at = put_integer(buffer, at + 1, millionths // 1000000)
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
