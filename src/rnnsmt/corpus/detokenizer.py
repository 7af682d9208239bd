"""Moses' detruecaser and detokeniser, by sacremoses."""

from sacremoses import MosesDetokenizer, MosesDetruecaser


class Detokenizer:
    """Turns a line of tokens into running text.

    Args:
        lang: two letters; decides about apostrophes and spaces around punctuation.
        detruecase: sentence starts get a capital.
        detokenize: tokens are joined and entities replaced.
    """

    def __init__(self, lang: str, detruecase: bool = True, detokenize: bool = True) -> None:
        self._detruecaser = MosesDetruecaser() if detruecase else None
        self._detokenizer = MosesDetokenizer(lang) if detokenize else None

    def __call__(self, line: str) -> str:
        """The line as running text."""
        tokens = line.split()
        if self._detruecaser and tokens:
            tokens = self._detruecaser.detruecase(line)
        if self._detokenizer and tokens:
            text: str = self._detokenizer.detokenize(tokens)
            return text
        return " ".join(tokens)
