"""Texts of which only the lines are translated: plain text, and HTML.

A text is split into a template and its lines. The template is then filled with the translations of the lines, or with
other hypotheses; line breaks, empty lines and the tags of HTML remain as they are.
"""

import html
import re
from collections.abc import Iterator
from itertools import groupby

_TAG = re.compile(
    r"""<!--|<([/!?a-zA-Z][^\s<>/]*+)(?:(?:[^<>"']|"[^<"]*"|'[^<']*')*+>|[^<>]*>)"""  # possessive: linear time
)
_RAW_ENDS = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style")}
"""Elements whose content is not text, with the beginning of their end tags."""

Template = list[str | int]
"""A text as a list of unchanged parts and of indices of lines to translate."""


def plain_template(text: str, lines: list[str]) -> Template:
    """Return the template of plain text; its lines, except empty ones, are appended to ``lines``."""
    parts: Template = []
    for piece in re.split(r"(\r?\n)", text):
        if piece.strip():
            parts.append(len(lines))
            lines.append(piece)
        else:
            parts.append(piece)
    return _joined(parts)


def html_template(text: str, lines: list[str]) -> Template:
    """Return the template of HTML; the text between two tags is a line, without entities, appended to ``lines``."""
    parts: Template = []
    for is_text, piece in _html_parts(text):
        words = html.unescape(piece).split() if is_text else []
        if not words:
            parts.append(piece)
            continue
        stripped = piece.strip()
        before = piece[: piece.index(stripped)]
        parts += [before, len(lines), piece[len(before) + len(stripped) :]]
        lines.append(" ".join(words))
    return _joined(parts)


def _joined(parts: Template) -> Template:
    """Return a template in which adjacent unchanged parts are one: it is filled once for every alternative."""
    joined: Template = []
    for kind, group in groupby(parts, type):
        pieces = list(group)
        joined += ["".join(map(str, pieces))] if kind is str else pieces
    return joined


def _html_parts(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the parts of HTML, and whether they are text; takes linear time for any input."""
    index = 0
    while match := _TAG.search(text, index):
        yield True, text[index : match.start()]
        index = match.end()
        if match[1] is None:
            close = text.find("-->", index)
            index = len(text) if close < 0 else close + 3
        elif ending := _RAW_ENDS.get(match[1].lower()):
            end = ending.search(text, index)
            index = len(text) if end is None else end.start()
        yield False, text[match.start() : index]
    yield True, text[index:]


def html_escaped(text: str) -> str:
    """Return text as the content of an HTML element."""
    return html.escape(text, quote=False)


def filled(template: Template, hypotheses: list[list[str]], rank: int) -> str:
    """Return a text with the hypotheses of this rank; for a line with fewer hypotheses, the best one is used."""
    chosen = (hypotheses[piece] if isinstance(piece, int) else [piece] for piece in template)
    return "".join(ranked[rank] if rank < len(ranked) else ranked[0] for ranked in chosen)


def alternatives(template: Template, hypotheses: list[list[str]], number: int) -> list[str]:
    """Return at most ``number`` alternatives of a text, as many as the line with the most hypotheses has."""
    most = max((len(hypotheses[piece]) for piece in template if isinstance(piece, int)), default=1)
    return [filled(template, hypotheses, rank) for rank in range(1, min(number + 1, most))]
