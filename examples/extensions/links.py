"""A symmetrisation: the links of both directions, and those of one direction that the other does not contradict."""

from rnnsmt.align.symmetrization import by_sentence


@by_sentence
def undisputed(forward, reverse):
    """Keep the links that the other direction does not contradict."""
    return (forward & reverse) | alone(forward, reverse) | alone(reverse, forward)


def alone(links, others):
    return {(i, j) for i, j in links if all(i != s and j != t for s, t in others)}
