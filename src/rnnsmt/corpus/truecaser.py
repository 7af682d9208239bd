"""Moses' truecaser: learns the usual case of every word and restores it at sentence starts and for unseen forms.

The model file has Moses' format (``train-truecaser.perl``): on each line the forms of a word with their counts, most
frequent first::

    the (1203/1210) The (5) THE (2)

Training counts every word that does not start a sentence. Application follows ``truecase.perl``: at a sentence start, a
word gets its most frequent form; elsewhere, a form seen in training is kept, another form of a known word is replaced
by the most frequent one, and unknown words are kept. (sacremoses does the latter only with ``use_known=True``.) Lines
with ``<``, ``>`` or ``|`` may contain markup or factors and are processed by sacremoses.
"""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from sacremoses import MosesTruecaser

from rnnsmt.base.io import InputError, atomic_text, read_lines

SENTENCE_END = frozenset(".:?!")
"""Tokens after which a sentence starts."""

DELAYED_START = frozenset(["(", "[", '"', "'", "&apos;", "&quot;", "&#91;", "&#93;"])
"""Tokens that may precede the first word of a sentence."""

_MARKUP = re.compile("[<>|]")

_TAG = re.compile(r"<\S[^>]*>")

_COUNT = re.compile(r"\(\d+(?:\.\d+)?(?:/\d+(?:\.\d+)?)?\)\Z")
"""Count of a form: ``(n)``, or ``(n/total)`` for the most frequent one."""

Casing = dict[str, Counter[str]]
"""Counts of the forms of every lower-cased word."""


def learn(lines: Iterable[str]) -> Casing:
    """Count the forms of every word that is not the first of a sentence, by lower-cased word."""
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

    Equally frequent forms are in order of their first occurrence.
    """
    with atomic_text(path) as out:
        for word in sorted(casing):
            forms = sorted(casing[word].items(), key=lambda item: -item[1])
            (best, count), *others = forms
            parts = [f"{best} ({count}/{casing[word].total()})", *(f"{form} ({n})" for form, n in others)]
            out.write(" ".join(parts) + "\n")


class Truecaser:
    """Truecaser with a trained model."""

    def __init__(self, path: str | Path) -> None:
        """Read a model written by ``save`` or by Moses.

        Raises:
            InputError: the file is not a truecasing model.
        """
        self.best: dict[str, str] = {}
        self.known: set[str] = set()
        for number, line in enumerate(read_lines(path), 1):
            fields = line.split()
            if not fields or len(fields) % 2 or not all(_COUNT.match(count) for count in fields[1::2]):
                raise InputError(
                    f'{path}, line {number}: not "word (count/total) ..."; train the truecasing model again'
                )
            self.best[fields[0].lower()] = fields[0]
            self.known.update(fields[0::2])
        if not self.best:
            raise InputError(f"{path}: the truecasing model is empty; train it on tokenised text")
        self._moses = MosesTruecaser()
        self._moses.model = {"best": self.best, "known": self.known}

    def __call__(self, line: str) -> str:
        """Return the truecased line, tokens separated by one space."""
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
