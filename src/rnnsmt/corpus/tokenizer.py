"""Moses' punctuation normaliser, tokeniser and detokeniser, by sacremoses, with the work that cannot change a line left
out.

The answers are those of ``sacremoses.MosesPunctNormalizer``, ``MosesTokenizer``, ``MosesDetruecaser`` and
``MosesDetokenizer``, character for character (the tests compare them on real text). Two facts make normalising and
tokenising faster:

* every substitution of the normaliser needs a certain string in the line; where that is missing it is skipped;
* the tokeniser treats every whitespace-separated chunk by itself, except that a final full stop asks how the next chunk
  begins, and except at quotes, commas and dots in odd places. Ordinary chunks are therefore looked up in a memory of
  earlier answers; a line with an odd chunk goes through sacremoses as a whole.
"""

import re

from sacremoses import MosesDetokenizer, MosesDetruecaser, MosesPunctNormalizer, MosesTokenizer
from sacremoses.corpus import NonbreakingPrefixes

MEMORY_ENTRIES = 500_000
"""The memory of chunks is emptied when it holds so many."""

MEMORY_CHUNK = 100
"""Characters of a chunk that is remembered; a longer one hardly comes again."""

_NEEDED = {
    r"\r": "\r", r"\(": "(", r"\)": ")", r" +": "  ", r"\) ([.!:?;,])": ") ", r"\( ": "( ", r" \)": " )",
    r"(\d) %": " %", r" :": " :", r" ;": " ;", r"`": "`", r"''": "''", "„": "„", "“": "“", "”": "”", "–": "–",
    "—": "—", "´": "´", "([a-zA-Z])‘([a-zA-Z])": "‘", "([a-zA-Z])’([a-zA-Z])": "’", "‘": "‘", "‚": "‚", "’": "’",
    "´´": "´´", "…": "…", "\u00a0«\u00a0": "«", "«\u00a0": "«", "«": "«", "\u00a0»\u00a0": "»", "\u00a0»": "»",
    "»": "»", "\u00a0%": "\u00a0%", "nº\u00a0": "nº\u00a0", "\u00a0:": "\u00a0:", "\u00a0ºC": "\u00a0ºC",
    "\u00a0cm": "\u00a0cm", "\u00a0\\?": "\u00a0?", "\u00a0\\!": "\u00a0!", "\u00a0;": "\u00a0;",
    ",\u00a0": ",\u00a0", r'"([,.]+)': '"', r',"': ',"', r'(\.+)"(\s*[^<])': '."',
    "(\\d)\u00a0(\\d)": "\u00a0",
}  # fmt: skip

_DIGITS = frozenset("0123456789")


def has_rules(lang: str) -> bool:
    """Whether sacremoses has rules for the language: words that a full stop does not end, or its characters."""
    return lang in NonbreakingPrefixes().available_langs or lang in ("ja", "ko")


class Normalizer:
    """Moses' ``normalize-punctuation.perl`` for one language: quotes, dashes, spaces around punctuation, numbers."""

    def __init__(self, lang: str) -> None:
        rules = MosesPunctNormalizer(lang).substitutions
        # a rule this table does not know is always tried
        self._rules = [(_NEEDED.get(pattern, ""), re.compile(pattern), by) for pattern, by in rules]

    def __call__(self, text: str) -> str:
        """The line with its punctuation normalised, without spaces at the ends."""
        for needed, pattern, by in self._rules:
            if needed in text:
                text = pattern.sub(by, text)
        return text.strip()


class _Moses(MosesTokenizer):
    """sacremoses' tokeniser, which makes a set of all letters for every full stop, with these sets made once."""

    def __init__(self, lang: str) -> None:
        super().__init__(lang)
        self.lower, self.alpha = frozenset(self.IsLower), frozenset(self.IsAlpha)

    def islower(self, text: str) -> bool:
        """Whether all characters are lower-case letters."""
        return self.lower.issuperset(text)

    def isanyalpha(self, text: str) -> bool:
        """Whether a character is a letter."""
        return not self.alpha.isdisjoint(text)


class Tokenizer:
    """Moses' ``tokenizer.perl`` for one language: tokens separated by one space.

    Args:
        lang: two letters; decides about apostrophes and about words that a full stop does not end.
        escape: write ``& | < > ' " [ ]`` as entities, as Moses does (``&apos;``).
    """

    def __init__(self, lang: str, escape: bool = True) -> None:
        self._moses = _Moses(lang)
        self._escape = escape
        # an apostrophe only between letters or digits, no comma in front, no two dots in a row, no control characters
        inner = r"(?:(?<=\w)'(?=\w)|[^\s',.\x00-\x1f\x7f]|(?<!\.)\.(?!\.)|(?<=[^\s,]),(?!,))"
        self._ordinary = re.compile(rf"(?!,){inner}+\Z")
        self._lower = self._moses.lower
        self._alnum = frozenset(MosesTokenizer.IsAlnum)
        self._memory: dict[str, str | tuple[str, str, str]] = {}

    def __call__(self, text: str) -> str:
        """The line as tokens separated by one space."""
        chunks = text.split()
        memory = self._memory
        tokens = []
        for number, chunk in enumerate(chunks, 1):
            answer = memory.get(chunk)
            if answer is None:
                if not self._ordinary.match(chunk):
                    return self._plain(text)
                answer = self._learn(chunk)
            if isinstance(answer, tuple):
                following = chunks[number][0] if number < len(chunks) else ""
                answer = answer[1 if following in self._lower else 2 if following in _DIGITS else 0]
            tokens.append(answer)
        return " ".join(tokens)

    def _learn(self, chunk: str) -> str | tuple[str, str, str]:
        """Tokenise an ordinary chunk; three answers where the next chunk's first character decides."""
        answer: str | tuple[str, str, str]
        if self._alnum.issuperset(chunk.removesuffix(",")) and "DOTMULTI" not in chunk:
            # nothing but letters and digits: one token ("DOTMULTI" is a word with which sacremoses marks dots)
            answer = f"{chunk[:-1]} ," if chunk.endswith(",") else chunk
        elif chunk.endswith("."):
            after = [self._plain(f"{chunk} {following}")[:-2] for following in "Xx1"]
            answer = after[0] if after[0] == after[1] == after[2] else (after[0], after[1], after[2])
        else:
            answer = self._plain(chunk)
        if len(chunk) <= MEMORY_CHUNK:
            if len(self._memory) >= MEMORY_ENTRIES:
                self._memory.clear()
            self._memory[chunk] = answer
        return answer

    def _plain(self, text: str) -> str:
        tokens: str = self._moses.tokenize(text, return_str=True, escape=self._escape)
        return tokens


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
