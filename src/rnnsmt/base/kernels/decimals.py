"""Rounding of numbers to six significant decimal digits, as in the text files of Moses.

Single precision distinguishes all such numbers above 1e-37; therefore, columns of scores are stored as ``float32``
(``rnnsmt.phrases.column_files``). Smaller numbers keep fewer digits.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.numbers import NUMBER_BYTES, put_number
from rnnsmt.base.kernels.strings import POW10, parse_float


def six_digits(values: NDArray[Any]) -> NDArray[np.float64]:
    """Round values from 0 to 1e10 to six significant decimal digits.

    Args:
        values: any shape.

    Returns:
        float64 of the same shape; the numbers that are read if the values are written as text.
    """
    out = np.array(values, np.float64)
    _to_six_digits(out.reshape(-1), POW10)
    return out


@kernel()
def _to_six_digits(values: Any, pow10: Any) -> None:
    """Replace every value (float64 [n]) by the number that ``parse_float`` reads from the text of ``put_number``."""
    text = np.empty(NUMBER_BYTES, np.uint8)
    for index in range(values.shape[0]):
        values[index] = parse_float(text, 0, put_number(text, 0, values[index]), pow10)
