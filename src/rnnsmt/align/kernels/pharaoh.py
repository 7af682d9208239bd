"""Kernels that write alignments in Pharaoh format."""

from rnnsmt.base.kernels.decorator import INNER, kernel


@kernel(**INNER)
def _write_number(number, text, at):
    """Write the digits of a position of at most 9,999; return the index after them."""
    size = 1
    while number >= 10**size:
        size += 1
    for k in range(at + size - 1, at - 1, -1):
        text[k] = 48 + number % 10
        number //= 10
    return at + size


@kernel()
def format_links(offsets, source, target, text):
    """Write the lines of sentence pairs, with links in the given order; return the number of bytes.

    Args:
        offsets, source, target: as in ``rnnsmt.align.pharaoh.Links``.
        text: uint8 [10 bytes per link and 1 per line], filled.
    """
    at = 0
    for s in range(len(offsets) - 1):
        for k in range(offsets[s], offsets[s + 1]):
            if k > offsets[s]:
                text[at] = 32
                at += 1
            at = _write_number(source[k], text, at)
            text[at] = 45
            at = _write_number(target[k], text, at + 1)
        text[at] = 10
        at += 1
    return at
