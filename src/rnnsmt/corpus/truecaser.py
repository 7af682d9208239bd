"""Moses' truecaser: the usual case of every word, learned from text, applied to sentence starts and to unseen forms.

The model file is Moses' (``train-truecaser.perl``): per word its forms with their counts, most frequent first::

    the (1203/1210) The (5) THE (2)

Training counts every word that does not start a sentence; applying follows ``truecase.perl``: at the start of a
sentence a word gets its most frequent form; elsewhere a form seen in training stays, another form of a known word gets
the most frequent one, an unknown word stays. (sacremoses does the latter with ``use_known=True`` only.)
Lines with ``<``, ``>`` or ``|`` may hold markup or factors and go through sacremoses.
"""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from sacremoses import MosesTruecaser

from rnnsmt.io import InputError, atomic_text, read_lines

SENTENCE_END = frozenset(".:?!")

DELAYED_START = frozenset(["(", "[", '"', "'", "&apos;", "&quot;", "&#91;", "&#93;"])

_MARKUP = re.compile("[<>|]")

_TAG = re.compile(r"<\S[^>]*>")

_COUNT = re.compile(r"\(\d+(?:\.\d+)?(?:/\d+(?:\.\d+)?)?\)\Z")

Casing = dict[str, Counter[str]]


def learn(lines: Iterable[str]) -> Casing:
    """Count the forms of every word that is not the first of a sentence: lower-cased word → form → count."""
    cased = re.compile(MosesTruecaser().SKIP_LETTERS_REGEX.pattern)
    has_case: dict[str, bool] = {}
    forms: Counter[str] = Counter()
    for line in lines:
        first = True
        for token in line.split():
            if token in DELAYED_START or ("<" in token and _TAG.search(token)):
                continue
            if not first and token in SENTENCE_END:
                first = True
                continue
            known = has_case.get(token)
            if known is None:
                known = has_case[token] = bool(cased.search(token))
            if known and not first:
                forms[token] += 1
            first = False
    casing: Casing = {}
    for form, count in forms.items():
        casing.setdefault(form.lower(), Counter())[form] = count
    return casing


def save(casing: Casing, path: str | Path) -> None:
    """Write a model in Moses' format, words in alphabetical order.

    Of equally frequent forms the one that was seen first comes first.
    """
    with atomic_text(path) as out:
        for word in sorted(casing):
            forms = sorted(casing[word].items(), key=lambda item: -item[1])
            (best, count), *others = forms
            parts = [f"{best} ({count}/{casing[word].total()})", *(f"{form} ({n})" for form, n in others)]
            out.write(" ".join(parts) + "\n")


class Truecaser:
    """Applies a model."""

    def __init__(self, path: str | Path) -> None:
        """Read a model of ours or of Moses.

        Raises:
            InputError: the file is not a truecasing model.
        """
        self.best: dict[str, str] = {}
        self.known: set[str] = set()
        for number, line in enumerate(read_lines(path), 1):
            fields = line.split()
            if not fields or len(fields) % 2 or not all(_COUNT.match(count) for count in fields[1::2]):
                raise InputError(
                    f'{path}, line {number}: not "word (count/total) ..."; make the truecasing model again'
                )
            self.best[fields[0].lower()] = fields[0]
            self.known.update(fields[0::2])
        if not self.best:
            raise InputError(f"{path}: an empty truecasing model; train it on tokenised text")
        self._moses = MosesTruecaser()
        self._moses.model = {"best": self.best, "known": self.known}

    def __call__(self, line: str) -> str:
        """The truecased line, tokens separated by one space."""
        if _MARKUP.search(line):
            text: str = self._moses.truecase(line, return_str=True, use_known=True)
            return text
        tokens = line.split()
        first = True
        for i, token in enumerate(tokens):
            if first or token not in self.known:
                tokens[i] = self.best.get(token.lower(), token)
            if tokens[i] in SENTENCE_END:
                first = True
            elif tokens[i] not in DELAYED_START:
                first = False
        return " ".join(tokens)
