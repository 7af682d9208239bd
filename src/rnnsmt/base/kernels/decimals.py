"""Numbers as Moses' text files have them: decimal, with six significant digits.

Single precision distinguishes all of them above 1e-37, so that columns of scores are stored as ``float32``
(``rnnsmt.phrases.column_files``). Smaller numbers keep fewer digits.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.kernels.numbers import NUMBER_BYTES, put_number
from rnnsmt.base.kernels.strings import POW10, parse_float


def six_digits(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the decimal numbers of six significant digits nearest to values from 0 to 1e10, as a reader of text does.

    Args:
        values: any shape.

    Returns:
        float64 of the same shape.
    """
    out = np.array(values, np.float64)
    _to_six_digits(out.reshape(-1), POW10)
    return out


@kernel()
def _to_six_digits(values: Any, pow10: Any) -> None:
    """Replace float64 values [n] by what ``put_number`` writes and ``parse_float`` reads."""
    text = np.empty(NUMBER_BYTES, np.uint8)
    for index in range(values.shape[0]):
        values[index] = parse_float(text, 0, put_number(text, 0, values[index]), pow10)
