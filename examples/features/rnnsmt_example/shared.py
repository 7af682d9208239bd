"""A score column: the number of target words that also occur in the source phrase, such as names and numbers."""

from collections.abc import Sequence

from rnnsmt.phrases.columns import WordColumn


class SharedWords(WordColumn):
    """Number of words of the target phrase that occur in the source phrase."""

    label = "shared words"
    weight = 0.0  # before tuning; a count begins with 0, a log probability with 0.2

    def score(self, source: Sequence[str], target: Sequence[str]) -> float:
        """Return the score of a pair: a natural logarithm of a probability, or a count."""
        return float(sum(word in source for word in target))
