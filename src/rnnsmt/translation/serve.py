"""HTTP server of a tuned system: a web page for people, JSON for programs, and the format of LibreTranslate.

``GET /`` returns the page; ``/?text=...`` translates a text immediately. ``POST /translate`` accepts two formats:

* ``{"text": "...", "nbest": n, "explain": true}``, one segment per line, gives ``{"translations": [...]}`` with one
  entry per line;
* ``q``, a string or a list of strings, with ``source``, ``target``, ``format`` and ``alternatives``, as JSON or as a
  form (``FormData`` of a browser too), gives ``{"translatedText": ...}``, as LibreTranslate does.

``/spec`` (OpenAPI) and ``/docs`` describe all routes. One thread reads and answers all connections (uvicorn), another
one translates (``request_queue``). The size of requests and of the waiting work is limited. Encryption, authentication,
and limits per client, of requests, connections and time, are left to a reverse proxy.
"""

import asyncio
import errno
import ipaddress
import re
import signal
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from http import HTTPStatus
from importlib import resources
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs, urlsplit

import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.requests import ClientDisconnect

from rnnsmt import __version__
from rnnsmt.base.io import InputError
from rnnsmt.base.progress import say, warn
from rnnsmt.config.languages import language_name
from rnnsmt.translation.description import CARD, Description
from rnnsmt.translation.markup import alternatives, filled, html_escaped, html_template, plain_template
from rnnsmt.translation.model_card import features
from rnnsmt.translation.request_queue import FullError, Job, LineTranslation, RequestQueue
from rnnsmt.translation.system import System

MOST_BYTES = 200_000
"""Maximum size of the body of a request in bytes."""

MOST_LINES = 1000
"""Maximum number of lines in a request."""

MOST_WORDS = 500
"""Maximum number of words of a line, which is searched as a whole while others wait."""

MOST_NBEST = 100
"""Maximum number of translations per line."""

DRAIN_SECONDS = 30
"""Time limit in seconds for the requests in progress after the server was requested to stop."""

JSON, FORM, PARTS = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
"""Content types of requests."""

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Header of the page, which loads nothing from elsewhere."""


class Query(BaseModel):
    """Text to translate."""

    model_config = ConfigDict(extra="forbid", strict=True)

    text: str = Field(description="segments, one per line")
    nbest: int = Field(0, ge=0, le=MOST_NBEST, description="number of translations per line; 0: only the best one")
    explain: bool = Field(False, description="whether to return the phrases, their scores, and the contributions")


class LibreTranslateQuery(BaseModel):
    """Request of a LibreTranslate client; other fields, such as ``api_key``, are ignored."""

    q: str | list[str] = Field(description="a text, or several")
    source: str = Field(description="source language of the system, or `auto` (languages are not detected)")
    target: str = Field(description="target language of the system")
    format: Literal["text", "html"] = "text"
    alternatives: int = Field(0, ge=0, lt=MOST_NBEST, description="maximum number of other translations")


class Translations(BaseModel):
    """One entry per line of the text."""

    translations: list[LineTranslation]


class LibreTranslateTranslations(BaseModel):
    """Response to a LibreTranslate client: lists if ``q`` is a list."""

    translatedText: str | list[str]  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = None
    detectedLanguage: dict[str, str | float] | list[dict[str, str | float]] | None = None  # noqa: N815


class Error(BaseModel):
    """A request that was rejected, or failed."""

    error: str


async def read_query(request: Request) -> Query | LibreTranslateQuery:
    """Read and check the body of a request."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BYTES:
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request can have at most {MOST_BYTES:,} bytes")
    kind, _, parameters = request.headers.get("content-type", "").partition(";")
    kind = kind.strip().lower()
    if kind not in (JSON, FORM, PARTS):
        raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send it as Content-Type: {JSON}, {FORM} or {PARTS}")
    try:
        if kind == JSON:
            content = from_json(bytes(body))  # rejects lone surrogates
        else:
            content = _form(bytes(body)) if kind == FORM else _parts(bytes(body), parameters)
        if isinstance(content, dict) and "q" in content and "text" not in content:
            given = {name: value for name, value in content.items() if value or name == "q"}  # clients send `format=`
            return LibreTranslateQuery.model_validate(given)
        return Query.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"{name}: " for name in first["loc"][:1])[:40]
        raise HTTPException(HTTPStatus.BAD_REQUEST, f"{where}{first['msg']}; see /docs") from None
    except ValueError:
        raise HTTPException(HTTPStatus.BAD_REQUEST, f"the request is not valid {kind}; see /docs") from None


def _form(body: bytes) -> dict[str, Any]:
    fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MOST_LINES + 20)
    return {name: values[0] if len(values) == 1 else values for name, values in fields.items()}


def _parts(body: bytes, parameters: str) -> dict[str, Any]:
    """Return the fields of a body of parts (RFC 7578)."""
    boundary = re.search(r'boundary="?([^";]+)', parameters)
    if boundary is None:
        raise ValueError
    fields: dict[str, list[str]] = {}
    for part in body.split(b"--" + boundary[1].encode())[1:-1]:
        head, _, value = part.partition(b"\r\n\r\n")
        if name := re.search(rb'; *name="([^"]*)"', head):
            fields.setdefault(name[1].decode("utf-8", "replace"), []).append(value[:-2].decode("utf-8", "replace"))
    return {name: values[0] if len(values) == 1 else values for name, values in fields.items()}


Translate = Callable[[list[str], int, bool], Awaitable[list[LineTranslation]]]
"""Translates lines, with the number of translations of each and whether to explain them."""


async def libretranslate(
    query: LibreTranslateQuery, about: Description, translate: Translate
) -> LibreTranslateTranslations:
    """Translate the texts of a LibreTranslate client."""
    if query.source not in (about.source, "auto") or query.target != about.target:
        sentence = f"source must be {about.source} or auto, and target must be {about.target}"
        raise HTTPException(HTTPStatus.BAD_REQUEST, sentence)
    texts = query.q if isinstance(query.q, list) else [query.q]
    template_of, written = (html_template, html_escaped) if query.format == "html" else (plain_template, str)
    lines: list[str] = []
    templates = [template_of(text, lines) for text in texts]
    found = await translate(lines, query.alternatives + 1 if query.alternatives else 0, False)
    hypotheses = [
        [written(line.translation), *(written(other.translation) for other in (line.nbest or [])[1:])] for line in found
    ]
    best = [filled(template, hypotheses, 0) for template in templates]
    answer: dict[str, Any] = {"translatedText": best}
    if query.alternatives:
        answer["alternatives"] = [alternatives(template, hypotheses, query.alternatives) for template in templates]
    if query.source == "auto":  # nothing is detected: the system has one source language
        answer["detectedLanguage"] = [{"language": about.source, "confidence": 0.0}] * len(texts)
    if not isinstance(query.q, list):
        answer = {name: values[0] for name, values in answer.items()}
    return LibreTranslateTranslations(**answer)


def application(system: System, names: Iterable[str] = (), is_local: bool = True) -> FastAPI:
    """Return the routes of a system.

    Args:
        names: public names of the server, which are accepted in the ``Host`` header, and browser extensions; both are
            accepted in the ``Origin`` header.
        is_local: whether the server listens on the loopback interface.
    """
    queue, about = RequestQueue(system), system.description
    public = {name.lower() for name in names}
    accepts_all = not is_local and not names

    async def check_origin(request: Request) -> None:
        """Check that a request is meant for this server.

        Requests from web pages of other origins and from unknown browser extensions are rejected. A server on the
        loopback interface accepts only local host names and its public names, so that web pages of other servers cannot
        reach it through the user's browser (DNS rebinding).
        """
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        try:
            name = urlsplit(f"//{host}").hostname or ""
            page = urlsplit(f"//{host}" if origin is None else origin)
            foreign = page.netloc != host and page.hostname not in public
        except ValueError:
            raise HTTPException(HTTPStatus.BAD_REQUEST, "the Host or Origin header is invalid") from None
        if foreign:
            sentence = f"this server does not accept requests from the origin {origin}"
            remedy = "to allow a browser extension, add its ID to --public-name"
            raise HTTPException(HTTPStatus.FORBIDDEN, f"{sentence}; {remedy}")
        if not (accepts_all or name in ("", "localhost", *public) or _is_loopback(name)):
            sentence = "this server does not accept requests for this host name; see --host and --public-name"
            raise HTTPException(HTTPStatus.FORBIDDEN, sentence)

    app = FastAPI(
        title="rnnsmt translate --serve",
        version=__version__,
        openapi_url="/spec",
        docs_url="/docs",
        redoc_url=None,
        dependencies=[Depends(check_origin)],
    )
    for kind in (StarletteHTTPException, InputError, FullError, ClientDisconnect, Exception):
        app.add_exception_handler(kind, _failed)
    page = resources.files("rnnsmt.translation").joinpath("page.html").read_text("utf-8")
    files = documents(system.directory)
    schemas = [model.model_json_schema() for model in (Query, LibreTranslateQuery)]
    bodies = {JSON: {"schema": {"anyOf": schemas}}, FORM: {"schema": schemas[1]}, PARTS: {"schema": schemas[1]}}

    @app.get("/", response_class=HTMLResponse)
    async def index() -> HTMLResponse:
        """Return the web page."""
        return HTMLResponse(page, headers={"Content-Security-Policy": CONTENT_SECURITY_POLICY})

    @app.get("/system")
    async def describe() -> dict[str, Any]:
        """Return the name, languages and features of the system, example sentences, warnings, and documents."""
        return {
            "name": about.name,
            "source": about.source,
            "target": about.target,
            "source_name": language_name(about.source),
            "target_name": language_name(about.target),
            "features": features(about, system.ini),
            "examples": about.examples,
            "warnings": about.warnings,
            "documents": [{"title": title, "path": path} for title, path, *_ in files],
        }

    @app.get("/languages")
    async def list_languages() -> list[dict[str, Any]]:
        """Return the source language with its target, and the target language, in the format of LibreTranslate."""
        source, target = about.source, about.target
        return [
            {"code": source, "name": language_name(source), "targets": [target]},
            {"code": target, "name": language_name(target), "targets": []},
        ]

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Return that the server accepts requests."""
        return {"status": "ok"}

    for title, path, kind_of_file, file in files:
        app.get(f"/{path}", summary=title, response_class=FileResponse)(_sender(file, kind_of_file))

    @app.post(
        "/translate",
        response_model_exclude_unset=True,
        responses={status: {"model": Error} for status in (400, 403, 413, 415, 500, 503)},
        openapi_extra={"requestBody": {"required": True, "content": bodies}},
    )
    async def translate(
        request: Request, query: Annotated[Query | LibreTranslateQuery, Depends(read_query)]
    ) -> Translations | LibreTranslateTranslations:
        """Translate a text."""

        async def of_lines(lines: list[str], nbest: int, explain: bool) -> list[LineTranslation]:
            if len(lines) > MOST_LINES:
                raise HTTPException(HTTPStatus.BAD_REQUEST, f"a request can have at most {MOST_LINES} lines")
            return await _while_connected(request, queue.translate(Job(lines, nbest, explain)))

        if isinstance(query, Query):
            lines = query.text.replace("\r\n", "\n").removesuffix("\n").split("\n")
            return Translations(translations=await of_lines(lines, query.nbest, query.explain))
        return await libretranslate(query, about, of_lines)

    return app


async def _failed(_: Request, error: Exception) -> JSONResponse:
    """Return the response to an exception, in the format of LibreTranslate; uvicorn logs those of status 500."""
    status, sentence = HTTPStatus.INTERNAL_SERVER_ERROR.value, "the translation failed; see the log"
    if isinstance(error, StarletteHTTPException):
        status, sentence = error.status_code, error.detail
    elif isinstance(error, InputError | ClientDisconnect):  # a client that has disconnected does not receive it
        status, sentence = HTTPStatus.BAD_REQUEST, str(error)
    elif isinstance(error, FullError):
        status, sentence = HTTPStatus.SERVICE_UNAVAILABLE, "too many requests are waiting; try again later"
    is_busy = status == HTTPStatus.SERVICE_UNAVAILABLE
    return JSONResponse({"error": sentence}, status, {"Retry-After": "10"} if is_busy else None)


async def _while_connected(request: Request, answer: Awaitable[list[LineTranslation]]) -> list[LineTranslation]:
    """Wait for an answer while the client is connected, and the server is not requested to stop immediately."""

    async def disconnection() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    answered, gone = asyncio.ensure_future(answer), asyncio.ensure_future(disconnection())
    try:
        await asyncio.wait({answered, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not answered.done():
            raise ClientDisconnect
        return answered.result()
    except asyncio.CancelledError:  # by uvicorn after DRAIN_SECONDS
        raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "the server is stopping") from None
    finally:
        answered.cancel()
        gone.cancel()


def documents(directory: Path) -> list[tuple[str, str, str, Path]]:
    """Return title, path on the server, content type and file of the documents about the system of a directory.

    ``MODEL_CARD.md`` is in the directory, ``provenance.json`` in ``results`` if the directory is
    ``results/systems/NAME/runN``.
    """
    known = [("Model card", "model-card", "text/plain; charset=utf-8", directory / CARD)]
    if directory.resolve().parent.parent.name == "systems":
        known.append(("Provenance", "provenance", JSON, directory.resolve().parents[2] / "provenance.json"))
    return [document for document in known if document[-1].is_file()]


def _sender(file: Path, kind: str) -> Callable[[], Awaitable[FileResponse]]:
    async def send() -> FileResponse:
        return FileResponse(file, media_type=kind)

    return send


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _listening(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise InputError(f"--serve {port}: port {port} is in use; choose another port") from None
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"--serve {port} --host {host}: {reason}; choose another port or address") from None


class _Server(uvicorn.Server):
    """Server of uvicorn that logs the first signal."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop after the requests in progress at the first signal, immediately at the second Ctrl-C."""
        if not self.should_exit:
            say(f"stopping: no new connections; up to {DRAIN_SECONDS} s for the requests in progress")
        super().handle_exit(sig, frame)


def serve(system: System, host: str, port: int, names: Sequence[str] = ()) -> dict[str, object]:
    """Serve a system until Ctrl-C or SIGTERM.

    Args:
        names: public names of the server.
    """
    listening, is_local = _listening(host, port), host == "localhost" or _is_loopback(host)
    app = application(system, names, is_local)
    system.explain_all(["a"])  # compile or load the kernels of the search before the first request
    system.nbest("a", 2)
    shown = f"[{host}]" if ":" in host else host
    say(f"{system.description.name} at http://{shown}:{listening.getsockname()[1]}/, Ctrl-C to quit")
    if not is_local:
        warn("the server accepts connections from the network, without authentication and encryption")
    server = _Server(
        uvicorn.Config(app, lifespan="off", log_config=None, log_level="error", timeout_graceful_shutdown=DRAIN_SECONDS)
    )
    for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn sends a signal that it handled again, for exit status 0
        signal.signal(number, server.handle_exit)
    server.run(sockets=[listening])
    return {"requests": server.server_state.total_requests}
