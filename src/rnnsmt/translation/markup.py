"""Texts of which only the lines are translated: plain text, and HTML.

A text is split into a template and its lines. The template is then filled with the translations of the lines, or with
other hypotheses; line breaks, empty lines and the tags of HTML remain as they are.

The elements of ``_UNTRANSLATED`` and those with ``translate="no"`` remain as they are, as in the HTML library of
LibreTranslate (translatehtml 1.5.3). They end a line, so that nothing moves across them.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

_TAG = re.compile(
    r"""<!--|<([/!?a-zA-Z][^\s<>/]*+)(?:(?:[^<>"']|"[^<"]*"|'[^<']*')*+>|[^<>]*>)"""  # possessive: linear time
)
_COMMENT_END = re.compile(r"--!?>|(?<=<!)--->")
"""End of a comment; ``<!-->`` and ``<!--->`` are empty ones."""

_RAW_ENDS = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style")}
"""Elements whose content is not text, with the beginning of their end tags."""

_INLINE = {
    *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "del", "dfn", "em", "font", "i", "ins", "kbd"),
    *("mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "tt", "u", "var"),
}
"""Elements inside a sentence; other tags end it."""

_UNTRANSLATED = {"address", "applet", "audio", "canvas", "code", "time", "video"}
"""Elements whose content is not translated, in addition to those of ``_RAW_ENDS``."""

_EMPTY = {
    *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"),
}
"""Elements without an end tag."""

_ITEMS = {
    "li": ({"li"}, {"ul", "ol", "menu"}),
    **dict.fromkeys(("dt", "dd"), ({"dt", "dd"}, {"dl"})),
    **dict.fromkeys(("td", "th"), ({"td", "th", "tr", "tbody", "tfoot"}, {"table"})),
    "tr": ({"tr", "tbody", "tfoot"}, {"table"}),
    "option": ({"option", "optgroup"}, {"select", "datalist"}),
    "p": (
        {"p", "div", "ul", "ol", "dl", "table", "pre", "blockquote", "section", "h1", "h2", "h3", "h4", "h5", "h6"},
        set(),
    ),
}
"""Elements whose end tag may be missing: at whose beginning they end, unless those are inside of which others."""

_PREFORMATTED = {"pre", "textarea"}
"""Elements whose line breaks end a line."""

_ATTRIBUTE = re.compile(r"""([^\s"'<>/=]++)(?:\s*+=\s*+("[^"]*"|'[^']*'|[^\s"'<>=]++))?""")

_COMMENT = "!"
"""Name of a part that is neither text nor one tag."""

Template = list[str | int]
"""A text as a list of unchanged parts and of indices of lines to translate."""


def plain_template(text: str, lines: list[str]) -> Template:
    """Return the template of plain text; its lines, without spaces around them, are appended to ``lines``."""
    parts: Template = []
    for piece in re.split(r"(\r?\n)", text):
        if line := piece.strip():
            begin = piece.index(line)
            parts += [piece[:begin], len(lines), piece[begin + len(line) :]]
            lines.append(line)
        else:
            parts.append(piece)
    return _joined(parts)


def html_template(text: str, lines: list[str]) -> Template:
    """Return the template of HTML; the text between two tags is a line, without entities, appended to ``lines``.

    Tags of inline elements do not end a line, unless one element follows another without words between.
    """
    parts: Template = []
    run: list[tuple[str | None, str]] = []
    closed = False  # since the last word
    for name, piece in _lines_of_html(text):
        is_inline = name is None or name.removeprefix("/") in _INLINE
        if not is_inline or (closed and name is not None and not name.startswith("/")):
            parts += _sentence(run, lines)
            run, closed = [], False
        if is_inline:
            run.append((name, piece))
            closed = name.startswith("/") or closed if name is not None else closed and not piece.strip()
        else:
            parts.append(piece)
    return _joined([*parts, *_sentence(run, lines)])


def _sentence(run: list[tuple[str | None, str]], lines: list[str]) -> Template:
    """Return the template of text with inline tags, whose words are one line, appended to ``lines``.

    Tags between words are moved to the beginning and the end of the line, so that the elements remain nested.
    """
    with_words = [index for index, (name, piece) in enumerate(run) if name is None and html.unescape(piece).split()]
    if not with_words:
        return [piece for _, piece in run]
    first, last = with_words[0], with_words[-1]
    inner = run[first : last + 1]
    raw = "".join(piece for name, piece in inner if name is None)
    stripped = raw.strip()
    before, after = _moved_tags([(name, piece) for name, piece in inner if name is not None])
    begin = raw.index(stripped)
    template: Template = [*(piece for _, piece in run[:first]), raw[:begin], *before, len(lines), *after]
    lines.append(" ".join(html.unescape(raw).split()))
    return [*template, raw[begin + len(stripped) :], *(piece for _, piece in run[last + 1 :])]


def _moved_tags(tags: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Return the tags inside a sentence that are moved before it, and those that are moved behind it."""
    opened: list[tuple[str, str]] = []
    pairs: list[tuple[str, str]] = []
    ends: list[str] = []  # of elements that began before the sentence
    for name, tag in tags:
        if not name.startswith("/"):
            opened.append((name, tag))
        elif opened and opened[-1][0] == name[1:]:
            pairs.append((opened.pop()[1], tag))
        else:
            ends.append(tag)
    starts = [tag for _, tag in opened]  # of elements that end after the sentence
    before = [*(ends if starts else []), *starts, *(start for start, _ in pairs)]
    return before, [*(end for _, end in reversed(pairs)), *([] if starts else ends)]


def _joined(parts: Template) -> Template:
    """Return a template in which adjacent unchanged parts are one: it is filled once for every alternative."""
    joined: Template = []
    for kind, group in groupby(parts, type):
        pieces = list(group)
        joined += ["".join(map(str, pieces))] if kind is str else pieces
    return joined


def _lines_of_html(text: str) -> Iterator[tuple[str | None, str]]:
    """Yield the parts of ``_translated_html``; a line break in preformatted text is a part of its own."""
    preformatted = 0
    for name, piece in _translated_html(text):
        if name is None and preformatted:
            for line in re.split(r"(\r?\n)", piece):
                yield _COMMENT if line.endswith("\n") else None, line
            continue
        if name is not None and name.removeprefix("/") in _PREFORMATTED:
            preformatted = max(preformatted + (-1 if name.startswith("/") else 1), 0)
        yield name, piece


def _translated_html(text: str) -> Iterator[tuple[str | None, str]]:
    """Yield the parts of ``_html_parts``; an element that is not translated is one part.

    It ends with its end tag, with that of an element around it, before the next item (``_ITEMS``), or with the text.
    """
    around: Counter[str] = Counter()  # numbers of open elements by name
    inside: Counter[str] = Counter()  # of open elements in an untranslated one, including itself
    kept: list[str] = []
    for name, piece in _html_parts(text):
        opens = _opened(name, piece)
        closes = name[1:] if name is not None and name.startswith("/") else ""
        if kept:
            enders, lists = _ITEMS.get(next(iter(inside)), (set(), set()))
            is_next = opens in enders and not any(inside[name] for name in lists)
            if not is_next and (not closes or inside[closes] or not around[closes]):
                kept.append(piece)
                inside[opens] += 1
                inside[closes] -= bool(inside[closes])
                if closes and not inside[next(iter(inside))]:
                    yield _COMMENT, "".join(kept)
                    kept = []
                continue
            yield _COMMENT, "".join(kept)
            kept = []
        if opens and _is_untranslated(opens, piece):
            inside, kept = Counter({opens: 1}), [piece]
            continue
        around[opens] += 1
        around[closes] -= bool(around[closes])
        yield name, piece
    if kept:
        yield _COMMENT, "".join(kept)


def _opened(name: str | None, piece: str) -> str:
    """Return the name of the element that a part opens; empty if it opens none."""
    opens = name is not None and name[0].isalpha() and name not in _EMPTY and not piece.endswith("/>")
    return name if opens and name is not None else ""


def _is_untranslated(name: str, tag: str) -> bool:
    """Return whether the content of an element with this start tag is not translated."""
    if name in _UNTRANSLATED:
        return True
    if "translate" not in tag.lower():
        return False
    attributes = (match for match in _ATTRIBUTE.finditer(tag, 1 + len(name)) if match[2])
    return any(match[1].lower() == "translate" and match[2].strip("\"'").lower() == "no" for match in attributes)


def _html_parts(text: str) -> Iterator[tuple[str | None, str]]:
    """Yield the parts of HTML: name (``b``, ``/b``, ``_COMMENT``) and text of a tag, None and text between two tags.

    The time is linear in the length of the text for any content.
    """
    index = 0
    while match := _TAG.search(text, index):
        yield None, text[index : match.start()]
        index = match.end()
        name = (match[1] or _COMMENT).lower()
        if match[1] is None:
            end = _COMMENT_END.search(text, index - 2)
            index = len(text) if end is None else end.end()
        elif ending := _RAW_ENDS.get(name):
            end = ending.search(text, index)
            index = len(text) if end is None else end.start()
        yield name, text[match.start() : index]
    yield None, text[index:]


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
