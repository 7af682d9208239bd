"""HTTP server of a tuned system: a web page for people, JSON for programs, and the format of LibreTranslate.

``GET /`` returns the page; ``/?text=...`` translates a text immediately. ``POST /translate`` accepts two formats:

* ``{"text": "...", "nbest": n, "explain": true}``, one segment per line, gives ``{"translations": [...]}`` with one
  entry per line;
* ``q``, a string or a list of strings, with ``source``, ``target``, ``format`` and ``alternatives``, as JSON, as a form
  or in the address, gives ``{"translatedText": ...}``, as LibreTranslate does (``queries``).

``/spec`` (OpenAPI) and ``/docs`` describe all routes. One thread reads and answers all connections (``connections``),
another one translates (``request_queue``). The size of requests, of the waiting work and of its answers is limited.
Encryption, authentication, and limits per client are left to a reverse proxy.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from http import HTTPStatus
from importlib import resources
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse
from pydantic import BaseModel
from pydantic_core import to_json
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rnnsmt import __version__
from rnnsmt.base.errors import InputError
from rnnsmt.base.progress import say, warn
from rnnsmt.base.rendering import rendered
from rnnsmt.config.languages import language_name
from rnnsmt.translation.connections import Answer, Server, bound_socket, is_loopback, refused_port
from rnnsmt.translation.description import CARD
from rnnsmt.translation.markup import alternatives, filled, html_escaped, html_template, plain_template
from rnnsmt.translation.model_card import features
from rnnsmt.translation.queries import FORM, JSON, MOST_LINES, PARTS, LibreTranslateQuery, Query, read_query
from rnnsmt.translation.request_queue import FullError, Job, LineTranslation, Packed, RequestQueue
from rnnsmt.translation.system import System

MOST_WORDS = 500
"""Maximum number of words of a line, which is searched as a whole while others wait."""

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Header of the page, which loads nothing from elsewhere."""


class TranslationsResponse(BaseModel):
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


class Translator:
    """The translation of requests by a system, through its queue."""

    def __init__(self, system: System) -> None:
        self.queue, self.about = RequestQueue(system), system.description

    async def answer(self, request: Request, query: Query | LibreTranslateQuery) -> Answer:
        """Translate the text of a request."""
        if isinstance(query, LibreTranslateQuery):
            return await self._libretranslate(request, query)
        lines = query.text.replace("\r\n", "\n").removesuffix("\n").split("\n")
        return await self._answered(request, Job(lines, query.nbest, query.explain, pack=_json), _translations)

    async def _libretranslate(self, request: Request, query: LibreTranslateQuery) -> Answer:
        """Translate the texts of a LibreTranslate client."""
        about, number = self.about, query.alternatives
        if query.source not in (about.source, "auto") or query.target != about.target:
            sentence = f"source must be {about.source} or auto, and target must be {about.target}"
            raise HTTPException(HTTPStatus.BAD_REQUEST, sentence)
        texts = query.q if isinstance(query.q, list) else [query.q]
        template_of, written = (html_template, html_escaped) if query.format == "html" else (plain_template, str)
        lines: list[str] = []
        try:
            templates = [template_of(text, lines) for text in texts]
        except ValueError:  # int() has a limit
            raise HTTPException(HTTPStatus.BAD_REQUEST, "q: a character reference has too many digits") from None

        def pack(line: LineTranslation) -> list[str]:
            others = (line.nbest or [])[1:]
            return [written(text) for text in (line.translation, *(entry.translation for entry in others))]

        def build(hypotheses: list[list[str]]) -> bytes:
            answer: dict[str, Any] = {"translatedText": [filled(template, hypotheses, 0) for template in templates]}
            if number:
                answer["alternatives"] = [alternatives(template, hypotheses, number) for template in templates]
            if query.source == "auto":  # nothing is detected: the system has one source language
                answer["detectedLanguage"] = [{"language": about.source, "confidence": 0.0}] * len(texts)
            if not isinstance(query.q, list):
                answer = {name: values[0] for name, values in answer.items()}
            return to_json(answer)

        copied = sum(len(piece) for template in templates for piece in template if isinstance(piece, str))
        job = Job(lines, number + 1 if number else 0, pack=pack, copied=copied)
        return await self._answered(request, job, build)

    async def _answered(self, request: Request, job: Job[Packed], build: Callable[[list[Packed]], bytes]) -> Answer:
        """Return the answer to a request, which ``build`` makes from the packed translations of its lines."""
        if len(job.lines) > MOST_LINES:
            raise HTTPException(HTTPStatus.BAD_REQUEST, f"a request can have at most {MOST_LINES} lines")
        found = await _while_connected(request, self.queue.translate(job))
        try:
            content = build(found)
        except BaseException:
            self.queue.release(job)
            raise
        job.size = len(content)
        return Answer(content, partial(self.queue.release, job))


def _json(line: LineTranslation) -> bytes:
    return line.model_dump_json(exclude_unset=True).encode()


def _translations(lines: list[bytes]) -> bytes:
    return b'{"translations":[' + b",".join(lines) + b"]}"


class Guard:
    """The outermost part of the application: checks every request, and answers HEAD as GET without a body.

    A request is for this server if its host name and its origin are. A server on the loopback interface accepts only
    local host names and its public names, so that web pages of other servers cannot reach it through the user's browser
    (DNS rebinding). Requests from web pages of other origins and from unknown browser extensions are rejected.
    """

    def __init__(self, app: ASGIApp, names: Iterable[str], is_local: bool) -> None:
        """Create the guard; arguments as in ``application``."""
        self.app = app
        self.public = {name.lower() for name in names}
        self.accepts_all = not is_local and not self.public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        is_head = scope["type"] == "http" and scope["method"] == "HEAD"
        started = False

        async def send_checked(message: Message) -> None:
            nonlocal started
            started = True
            await send({**message, "body": b""} if is_head and message["type"] == "http.response.body" else message)

        try:
            if scope["type"] == "http":
                self.check(Headers(scope=scope))
            await self.app({**scope, "method": "GET"} if is_head else scope, receive, send_checked)
        except HTTPException as error:
            await _failed(Request(scope), error)(scope, receive, send_checked)
        except asyncio.CancelledError:  # by uvicorn after ``DRAIN_SECONDS``
            if started:
                raise
            stopping = HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "the server is stopping")
            await _failed(Request(scope), stopping)(scope, receive, send_checked)

    def check(self, headers: Headers) -> None:
        """Check the host name and the origin of a request."""
        host, origin = headers.get("host", ""), headers.get("origin")
        try:
            name = urlsplit(f"//{host}").hostname or ""
            page = urlsplit(f"//{host}" if origin is None else origin)
            foreign = page.netloc != host and page.hostname not in self.public
        except ValueError:
            raise HTTPException(HTTPStatus.BAD_REQUEST, "the Host or Origin header is invalid") from None
        if foreign:
            sentence = f"this server does not accept requests from the origin {origin}"
            remedy = "to allow a browser extension, add its ID to --public-name"
            raise HTTPException(HTTPStatus.FORBIDDEN, f"{sentence}; {remedy}")
        if not (self.accepts_all or name in ("", "localhost", *self.public) or is_loopback(name)):
            sentence = "this server does not accept requests for this host name; see --host and --public-name"
            raise HTTPException(HTTPStatus.FORBIDDEN, sentence)


def application(system: System, names: Iterable[str] = (), is_local: bool = True) -> FastAPI:
    """Return the routes of a system.

    Args:
        names: public names of the server, which are accepted in the ``Host`` header, and browser extensions; both are
            accepted in the ``Origin`` header.
        is_local: whether the server listens on the loopback interface.
    """
    translator, about = Translator(system), system.description
    app = FastAPI(
        title="rnnsmt translate --serve", version=__version__, openapi_url="/spec", docs_url=None, redoc_url=None
    )
    app.add_middleware(Guard, names=names, is_local=is_local)
    for kind in (StarletteHTTPException, InputError, FullError, ClientDisconnect, Exception):
        app.add_exception_handler(kind, _failed)
    page = resources.files("rnnsmt.translation").joinpath("page.html").read_text("utf-8")
    files = documents(system.directory)
    schemas = [model.model_json_schema() for model in (Query, LibreTranslateQuery)]
    bodies = {JSON: {"schema": {"anyOf": schemas}}, FORM: {"schema": schemas[1]}, PARTS: {"schema": schemas[1]}}

    def page_response(content: str) -> HTMLResponse:
        return HTMLResponse(content, headers={"Content-Security-Policy": CONTENT_SECURITY_POLICY})

    @app.get("/", response_class=HTMLResponse)
    async def index() -> HTMLResponse:
        """Return the web page."""
        return page_response(page)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        """Return the description of all paths."""
        return page_response(rendered("rnnsmt.translation", "docs.html.j2", spec=app.openapi(), queries=schemas))

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
        response_model=TranslationsResponse | LibreTranslateTranslations,
        responses={status: {"model": Error} for status in (400, 403, 413, 415, 500, 503)},
        openapi_extra={"requestBody": {"required": True, "content": bodies}},
    )
    async def translate(request: Request, query: Annotated[Query | LibreTranslateQuery, Depends(read_query)]) -> Answer:
        """Translate a text; a LibreTranslate client can send its fields in the address, too."""
        return await translator.answer(request, query)

    return app


def _failed(_: Request, error: Exception) -> JSONResponse:
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


async def _while_connected(request: Request, answer: Awaitable[list[Packed]]) -> list[Packed]:
    """Wait for an answer while the client is connected."""

    async def disconnection() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    answered, gone = asyncio.ensure_future(answer), asyncio.ensure_future(disconnection())
    try:
        await asyncio.wait({answered, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not answered.done():
            raise ClientDisconnect
        return answered.result()
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


def serve_until_stopped(system: System, host: str, port: int, names: Sequence[str] = ()) -> dict[str, object]:
    """Serve a system until Ctrl-C or SIGTERM.

    Args:
        names: public names of the server.
    """
    bound, is_local = bound_socket(host, port), host == "localhost" or is_loopback(host)
    app = application(system, names, is_local)
    system.explain_all(["a"])  # compile or load the kernels of the search before the port opens
    system.nbest("a", 2)

    def started() -> None:
        shown = f"[{host}]" if ":" in host else host
        say(f"{system.description.name} at http://{shown}:{bound.getsockname()[1]}/, Ctrl-C to quit")
        if not is_local:
            warn("the server accepts connections from the network, without authentication and encryption")

    server = Server(app, bound, started)
    for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn sends a signal that it handled again, for exit status 0
        signal.signal(number, server.handle_exit)
    try:
        server.run()
    except OSError as error:  # another process has opened the port meanwhile
        raise refused_port(host, port, error) from None
    return {"requests": server.server_state.total_requests}
