"""Requests and responses of the HTTP server: native format, LibreTranslate format, and information about the system.

Native format: ``{"text": "...", "nbest": n, "explain": true}``, one segment per line, gives ``{"translations": [...]}``
with one entry per line. LibreTranslate format: ``q``, a string or a list of strings, with ``source``, ``target``,
``format`` and ``alternatives``, as JSON or form, gives ``{"translatedText": ...}``. ``openapi.json`` describes both.
The web page shows descriptions of the features of the system, and links to the documents in its directory.
"""

import html
import json
import re
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from rnnsmt import __version__
from rnnsmt.moses.ini import MosesIni
from rnnsmt.plan.corpora import language_name
from rnnsmt.translation.system import CARD, Description

MOST_BYTES = 200_000
"""Maximum size of the body of a request in bytes."""

MOST_LINES = 1000
"""Maximum number of lines in a request."""

MOST_NBEST = 100
"""Maximum number of translations per line."""

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
"""Content types of requests."""

_TAG = re.compile(
    r"""<!--|<([/!?a-zA-Z][^\s<>/]*+)(?:(?:[^<>"']|"[^<"]*"|'[^<']*')*+>|[^<>]*>)"""  # possessive: linear time
)
_RAW_ENDS = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style")}
"""Elements whose content is not text, with the beginning of their end tags."""


class RefusedError(Exception):
    """A request that is rejected with an HTTP status and a message."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Query(NamedTuple):
    """The contents of a request.

    Attributes:
        lines: raw segments.
        nbest: number of translations of each; 0: only the best translation.
        explain: whether to explain the translations.
        response: creates the content of the response from one dictionary per line, see ``translator.Job``.
    """

    lines: list[str]
    nbest: int
    explain: bool
    response: Callable[[list[dict[str, Any]]], dict[str, Any]]


def read_query(kind: str, body: bytes, about: Description) -> Query:
    """Parse the body of a request.

    Args:
        kind: its content type, which must be ``JSON`` or ``FORM``.
        body: the body.
        about: description of the system, for its languages.

    Raises:
        RefusedError: the body is invalid, or the system does not translate between these languages.
    """
    if kind == FORM:
        content = _form(body)
    elif kind == JSON:
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            raise _bad('the request is not valid JSON; send {"text": "..."}') from None
    else:
        raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send it as Content-Type: {JSON} or {FORM}")
    if not isinstance(content, dict) or not {"text", "q"} & set(content):
        raise _bad('the request has no text; send {"text": "..."}, or q, source and target')
    query = _own_query(content) if "text" in content else _libretranslate_query(content, about)
    if len(query.lines) > MOST_LINES:
        raise _bad(f"a request can have at most {MOST_LINES} lines")
    return query


def _bad(sentence: str) -> RefusedError:
    return RefusedError(HTTPStatus.BAD_REQUEST, sentence)


def _form(body: bytes) -> dict[str, Any]:
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MOST_LINES + 20)
    except ValueError:
        raise _bad(f"a request can have at most {MOST_LINES} lines") from None
    return {name: values[0] if len(values) == 1 else values for name, values in fields.items()}


def _own_query(content: Mapping[str, Any]) -> Query:
    if not isinstance(content["text"], str):
        raise _bad('the request has no text; send {"text": "..."}')
    if unknown := sorted(set(content) - {"text", "nbest", "explain"}):
        raise _bad(f"unknown key {unknown[0][:40]}; available: text, nbest, explain")
    nbest, explain = content.get("nbest", 0), content.get("explain", False)
    if type(nbest) is not int or not 0 <= nbest <= MOST_NBEST or not isinstance(explain, bool):
        raise _bad(f"nbest must be an integer from 0 to {MOST_NBEST}, explain must be true or false")
    lines = content["text"].replace("\r\n", "\n").removesuffix("\n").split("\n")
    return Query(lines, nbest, explain, lambda results: {"translations": results})


def _libretranslate_query(content: Mapping[str, Any], about: Description) -> Query:
    q = content["q"]
    texts = q if isinstance(q, list) else [q]
    if not all(isinstance(text, str) for text in texts):
        raise _bad("q must be a string or a list of strings")
    source, target = (content.get(name) for name in ("source", "target"))
    if source not in (about.source, "auto") or target != about.target:
        raise _bad(f"source must be {about.source} or auto, and target must be {about.target}")
    kind, alternatives = content.get("format") or "text", content.get("alternatives") or 0
    if kind not in ("text", "html"):
        raise _bad("format must be text or html")
    if isinstance(alternatives, str) and alternatives.isascii() and alternatives.isdecimal():
        alternatives = int(alternatives[:9])
    if type(alternatives) is not int or not 0 <= alternatives < MOST_NBEST:
        raise _bad(f"alternatives must be an integer from 0 to {MOST_NBEST - 1}")
    lines: list[str] = []
    templates = [_html_template(text, lines) if kind == "html" else _template(text, lines) for text in texts]
    written = html_escaped if kind == "html" else str

    def response(results: list[dict[str, Any]]) -> dict[str, Any]:
        hypotheses = [
            [written(result["translation"]), *(written(other["translation"]) for other in result.get("nbest", [])[1:])]
            for result in results
        ]
        best = [_filled(template, hypotheses, 0) for template in templates]
        answer: dict[str, Any] = {"translatedText": best if isinstance(q, list) else best[0]}
        if alternatives:
            others = [_alternatives(template, hypotheses, alternatives) for template in templates]
            answer["alternatives"] = others if isinstance(q, list) else others[0]
        if source == "auto":  # nothing is detected: the system has one source language
            detected = {"language": about.source, "confidence": 0.0}
            answer["detectedLanguage"] = [detected] * len(texts) if isinstance(q, list) else detected
        return answer

    return Query(lines, alternatives + 1 if alternatives else 0, False, response)


Template = list[str | int]
"""A text as a list of unchanged parts and of indices of lines to translate."""


def _template(text: str, lines: list[str]) -> Template:
    """Return the template of plain text; its lines, except empty ones, are appended to ``lines``."""
    parts: Template = []
    for piece in re.split(r"(\r?\n)", text):
        if piece.strip():
            parts.append(len(lines))
            lines.append(piece)
        else:
            parts.append(piece)
    return _joined(parts)


def _html_template(text: str, lines: list[str]) -> Template:
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


def _filled(template: Template, hypotheses: list[list[str]], rank: int) -> str:
    """Return a text with the hypotheses of this rank; for a line with fewer hypotheses, the best one is used."""
    chosen = (hypotheses[piece] if isinstance(piece, int) else [piece] for piece in template)
    return "".join(ranked[rank] if rank < len(ranked) else ranked[0] for ranked in chosen)


def _alternatives(template: Template, hypotheses: list[list[str]], number: int) -> list[str]:
    """Return at most ``number`` alternatives of a text, as many as the line with the most hypotheses has."""
    most = max((len(hypotheses[piece]) for piece in template if isinstance(piece, int)), default=1)
    return [_filled(template, hypotheses, rank) for rank in range(1, min(number + 1, most))]


def languages(about: Description) -> list[dict[str, Any]]:
    """Return the languages in the format of LibreTranslate."""
    source, target = about.source, about.target
    return [
        {"code": source, "name": language_name(source), "targets": [target]},
        {"code": target, "name": language_name(target), "targets": []},
    ]


def specification(about: Description) -> dict[str, Any]:
    """Return the OpenAPI 3.0 description of the interface."""
    content: dict[str, Any] = json.loads(
        resources.files("rnnsmt.translation").joinpath("openapi.json").read_text("utf-8")
    )
    content["info"]["version"] = __version__
    query = content["components"]["schemas"]["LibreTranslateQuery"]["properties"]
    query["source"]["enum"], query["target"]["enum"] = [about.source, "auto"], [about.target]
    return content


MOST_DOCUMENT_BYTES = 1_000_000
"""Maximum size of a document in bytes."""


class Document(NamedTuple):
    """A document about a system.

    Attributes:
        title: name of the link to it.
        path: its path on the server.
        kind: its content type.
        content: the document.
    """

    title: str
    path: str
    kind: str
    content: bytes


def documents(directory: Path) -> list[Document]:
    """Return the documents about the system of a directory: model card, and provenance of the run of the workflow.

    ``MODEL_CARD.md`` is read from the directory, ``provenance.json`` from ``results`` if the directory is
    ``results/systems/NAME/runN``.
    """
    directory = directory.resolve()
    linked = []
    for title, path, kind, file in (
        ("Model card", "model-card", "text/plain; charset=utf-8", directory / CARD),
        ("Provenance", "provenance", "application/json", directory / "../../../provenance.json"),
    ):
        if path == "provenance" and directory.parents[1].name != "systems":
            continue
        # a link in an archive from an unknown source could lead to any file
        if file.is_file() and not file.is_symlink() and file.stat().st_size <= MOST_DOCUMENT_BYTES:
            linked.append(Document(title, path, kind, file.read_bytes()))
    return linked


def features(about: Description, ini: MosesIni) -> list[str]:
    """Return descriptions of the features of a system."""
    names = []
    for feature in ini.features:
        if feature.kind == "PhraseDictionaryMemory":
            columns = f" and {', '.join(about.columns)}" if about.columns else ""
            names.append(f"phrase table with translation probabilities{columns}")
        elif feature.kind == "LexicalReordering":
            names.append("lexicalised reordering")
        elif feature.is_lm:
            order = feature.options.get("order")
            names.append(f"{order}-gram language model" if order else "n-gram language model")
        elif feature.kind == "CSLM":
            names.append("continuous-space language model, queried in the search")
        elif feature.kind == "NNJM":
            names.append("neural network joint model, queried in the search")
    return names
