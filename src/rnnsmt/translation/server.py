"""HTTP server of a tuned system: a web page for people, JSON for programs.

``GET /`` returns the page; ``/?text=...`` translates a text at once. ``GET /system`` describes the system.
``POST /translate`` takes ``{"text": "...", "nbest": n, "explain": true}`` with one segment per line; the last two
fields are optional. It returns ``{"translations": [...]}`` with one entry per line. An error is
``{"error": "a sentence"}`` with the appropriate HTTP status.

Requests are read concurrently and translated by one thread, which combines those that are waiting. All input is
bounded: the size of a request, the number of waiting requests, the number of requests per address and minute, and the
time for a request to arrive.
"""

import errno
import ipaddress
import json
import socket
import threading
import time
import traceback
from collections import OrderedDict, deque
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoAnswerError
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from queue import Empty, Full, Queue
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from rnnsmt import __version__
from rnnsmt.base.io import InputError
from rnnsmt.base.progress import say
from rnnsmt.translation.system import ExplainedTranslation, PhraseUse, System

MOST_BYTES = 200_000
"""Maximum size of a request in bytes."""

MOST_LINES = 1000
"""Maximum number of lines in a request."""

MOST_NBEST = 100
"""Maximum number of translations per line."""

MOST_WAITING = 200
"""Maximum number of requests that wait or are being translated; others are rejected."""

MOST_ADDRESSES = 10_000
"""Maximum number of addresses whose requests are counted; the least recently seen address is dropped first."""

MOST_CONNECTIONS = 256
"""Maximum number of open connections."""

SECONDS = 30.0
"""Time limit in seconds for a request to arrive, and for an idle connection."""

ANSWER_SECONDS = 600.0
"""Time limit in seconds for a translation."""

BUSY = b'{"error": "too many connections; come again"}'


class Request(NamedTuple):
    """A request for translations.

    Attributes:
        lines: raw segments.
        nbest: number of translations of each; 0 for the best one alone.
        explain: whether to explain the translations.
        answer: receives the translations, or an exception.
    """

    lines: list[str]
    nbest: int
    explain: bool
    answer: "Future[list[dict[str, Any]]]"


class RateLimit:
    """Limit on the number of requests per address within any 60 seconds."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._times: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def allows(self, address: str, now: float) -> bool:
        """Return whether a request may be answered, and count it if so.

        Args:
            address: address of the client.
            now: current time in seconds.
        """
        with self._lock:
            times = self._times.setdefault(address, deque())
            self._times.move_to_end(address)
            while len(self._times) > MOST_ADDRESSES:
                self._times.popitem(last=False)
            while times and times[0] <= now - 60:
                times.popleft()
            if len(times) >= self.number:
                return False
            times.append(now)
            return True


class Translator(threading.Thread):
    """Thread that translates waiting requests; no other thread uses the system."""

    def __init__(self, system: System) -> None:
        super().__init__(daemon=True)
        self.system = system
        self.waiting: Queue[Request] = Queue(MOST_WAITING)

    def run(self) -> None:
        """Translate waiting requests until the process ends; a batch is complete once it has ``MOST_LINES`` lines."""
        while True:
            requests = [self.waiting.get()]
            lines = len(requests[0].lines)
            while lines < MOST_LINES:
                try:
                    requests.append(self.waiting.get_nowait())
                except Empty:
                    break
                lines += len(requests[-1].lines)
            requests = [one for one in requests if one.answer.set_running_or_notify_cancel()]
            if plain := [one for one in requests if not one.nbest and not one.explain]:
                self._answer_together(plain)
            for one in requests:
                if one.nbest or one.explain:
                    self._answer(one)

    def _answer_together(self, requests: list[Request]) -> None:
        """Translate several requests in one search; if that fails, translate each by itself."""
        try:
            found = iter(self.system.translate_all([line for one in requests for line in one.lines]))
        except Exception:  # caused by one request; the others and this thread must survive it
            for one in requests:
                self._answer(one)
            return
        for one in requests:
            one.answer.set_result([{"translation": next(found)} for _ in one.lines])

    def _answer(self, request: Request) -> None:
        try:
            request.answer.set_result(self._translated(request))
        except Exception as error:  # reported to the client; this thread must survive it
            request.answer.set_exception(error)

    def _translated(self, request: Request) -> list[dict[str, Any]]:
        lines, system = request.lines, self.system
        if request.explain:
            found = [{"translation": best.text, **_explained(best, uses)} for best, uses in system.explain_all(lines)]
        elif request.nbest:
            found = [{} for _ in lines]
        else:
            found = [{"translation": text} for text in system.translate_all(lines)]
        for number, (line, one) in enumerate(zip(lines, found, strict=True), 1):
            if request.nbest:
                hypotheses = system.nbest(line, request.nbest, number) if line.strip() else []
                one.setdefault("translation", hypotheses[0].text if hypotheses else "")
                one["nbest"] = [{"translation": each.text, "score": each.score} for each in hypotheses]
        return found


def _explained(best: ExplainedTranslation, phrases: list[PhraseUse]) -> dict[str, Any]:
    return {
        "score": best.score,
        "contributions": best.contributions,
        "phrases": [use._asdict() for use in phrases],
    }


class RefusedError(Exception):
    """A request that is rejected with an HTTP status and a message."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Server(ThreadingHTTPServer):
    """HTTP server of a system."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, system: System, host: str, port: int, rate: int) -> None:
        """Bind the address and start the translator.

        Args:
            system: the system.
            host, port: address to listen on.
            rate: maximum number of requests per address and minute.

        Raises:
            InputError: the address is not available.
        """
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.is_local = host == "localhost" or _is_loopback(host)
        try:
            super().__init__((host, port), Handler)
        except (OSError, OverflowError) as error:
            if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
                raise InputError(f"--serve {port}: port {port} is in use; choose another port") from None
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"--serve {port} --host {host}: {reason}; choose another port or address") from None
        self.translator, self.limit = Translator(system), RateLimit(rate)
        self.places = threading.BoundedSemaphore(MOST_WAITING)
        self.connections = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self.page = resources.files("rnnsmt.translation").joinpath("page.html").read_bytes()
        self.translator.start()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Handle a connection in a thread of its own, or reject it with status 503 if there are too many."""
        if self.connections.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        with suppress(OSError):
            request.settimeout(0.2)
            head = f"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: {len(BUSY)}"
            request.sendall(f"{head}\r\nConnection: close\r\n\r\n".encode() + BUSY)
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handle a connection, then release its place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore the errors of a connection, for example of a client that disconnects early."""


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class Handler(BaseHTTPRequestHandler):
    """Handler of one connection."""

    server: Server
    server_version, sys_version = f"rnnsmt/{__version__}", ""
    protocol_version = "HTTP/1.1"
    timeout = SECONDS

    def handle_one_request(self) -> None:
        """Read and answer one request, which must arrive within ``timeout`` in total.

        The timeout of the socket alone would restart with every byte.
        """
        self._watch = threading.Timer(self.timeout, self._hang_up)
        self._watch.daemon = True
        self._watch.start()
        try:
            super().handle_one_request()
        except OSError:
            self.close_connection = True
        finally:
            self._watch.cancel()

    def _hang_up(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RD)

    def do_GET(self) -> None:
        """Send the page or the description of the system."""
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            self.close_connection = True  # the bytes that follow are a body, not the next request
        if not self._for_us():
            return
        about = self.server.translator.system.description
        if self.path.partition("?")[0] == "/":
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", self.server.page)
        elif self.path == "/system":
            self._json(HTTPStatus.OK, {"name": about.name, "source": about.source, "target": about.target})
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there are GET /, GET /system and POST /translate")

    def do_POST(self) -> None:
        """Translate the text of a request."""
        try:
            body = self._body()
            self._watch.cancel()
            if not self._for_us():
                return
            if self.path != "/translate":
                raise RefusedError(HTTPStatus.NOT_FOUND, "there are GET /, GET /system and POST /translate")
            if self.headers.get_content_type() != "application/json":
                raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send it as Content-Type: application/json")
            if not self.server.limit.allows(_network(self.client_address[0]), time.monotonic()):
                sentence = f"more than {self.server.limit.number} requests in a minute; wait"
                raise RefusedError(HTTPStatus.TOO_MANY_REQUESTS, sentence)
            if not self.server.places.acquire(blocking=False):
                raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "too many requests wait; come again")
            try:
                found = self._translations(body)
            finally:
                self.server.places.release()
        except RefusedError as refused:
            self._refuse(refused.status, str(refused))
        else:
            self._json(HTTPStatus.OK, {"translations": found})

    def _translations(self, body: bytes) -> list[dict[str, Any]]:
        request = Request(*read_request(body), Future())
        try:
            self.server.translator.waiting.put_nowait(request)
            return request.answer.result(ANSWER_SECONDS)
        except Full:
            raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "too many requests wait; come again") from None
        except InputError as error:
            raise RefusedError(HTTPStatus.BAD_REQUEST, str(error)) from None
        except NoAnswerError:
            request.answer.cancel()
            raise RefusedError(HTTPStatus.GATEWAY_TIMEOUT, "no translation in time; send less text") from None
        except Exception as error:
            say("a request failed: " + "".join(traceback.format_exception(error)))
            raise RefusedError(HTTPStatus.INTERNAL_SERVER_ERROR, "the translation failed; the log says why") from None

    def _body(self) -> bytes:
        """Read the body of the request.

        Raises:
            RefusedError: the length is missing, ambiguous or too large, or the body does not arrive.
        """
        lengths = self.headers.get_all("Content-Length", [])
        if len(lengths) > 1 or "Transfer-Encoding" in self.headers:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "the request needs one Content-Length and no Transfer-Encoding")
        if not lengths or not lengths[0].isascii() or not lengths[0].isdecimal():
            raise RefusedError(HTTPStatus.LENGTH_REQUIRED, "the request needs a Content-Length")
        if len(lengths[0]) > 12 or int(lengths[0]) > MOST_BYTES:
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {MOST_BYTES:,} bytes in a request")
        try:
            body = self.rfile.read(int(lengths[0]))
        except OSError:
            body = b""
        if len(body) < int(lengths[0]):
            raise RefusedError(HTTPStatus.REQUEST_TIMEOUT, "the request did not arrive whole")
        return body

    def _for_us(self) -> bool:
        """Return whether a request may be answered; send an error otherwise.

        Requests from web pages of other origins are rejected, and a server on the loopback interface accepts local host
        names only, so that a page elsewhere cannot reach it through the user's browser (DNS rebinding).
        """
        host = urlsplit(f"//{self.headers.get('Host', '')}").hostname or ""
        origin = self.headers.get("Origin")
        own = origin is None or urlsplit(origin).netloc == self.headers.get("Host")
        if own and (not self.server.is_local or host in ("", "localhost") or _is_loopback(host)):
            return True
        self._refuse(HTTPStatus.FORBIDDEN, "this server answers on this machine only; start it with --host")
        return False

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send the errors of the HTTP protocol as JSON, too."""
        self._refuse(HTTPStatus(code), message or HTTPStatus(code).phrase)

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        self.close_connection = True  # the rest of the request is not read
        self._json(status, {"error": sentence})

    def _json(self, status: HTTPStatus, content: object) -> None:
        self._send(status, "application/json", json.dumps(content).encode("ascii"))

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Cache-Control", "no-store")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing, to protect the texts and addresses of users."""


def _network(address: str) -> str:
    """Return the unit that requests are counted by: an IPv4 address, or the /64 network of an IPv6 address.

    A user usually has the whole IPv6 network.
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return address if found.version == 4 else str(ipaddress.ip_network((found, 64), strict=False))


def read_request(body: bytes) -> tuple[list[str], int, bool]:
    """Parse the body of a request.

    Returns:
        The lines, the number of translations of each, and whether to explain them.

    Raises:
        RefusedError: the body is invalid.
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise RefusedError(HTTPStatus.BAD_REQUEST, 'the request is not valid JSON; send {"text": "..."}') from None
    if not isinstance(content, dict) or not isinstance(content.get("text"), str):
        raise RefusedError(HTTPStatus.BAD_REQUEST, 'the request has no text; send {"text": "..."}')
    if unknown := sorted(set(content) - {"text", "nbest", "explain"}):
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"there is no {unknown[0][:40]}; there are text, nbest and explain")
    nbest, explain = content.get("nbest", 0), content.get("explain", False)
    if type(nbest) is not int or not 0 <= nbest <= MOST_NBEST or not isinstance(explain, bool):
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"nbest is a number up to {MOST_NBEST}, explain true or false")
    lines = content["text"].replace("\r\n", "\n").removesuffix("\n").split("\n")
    if len(lines) > MOST_LINES:
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"at most {MOST_LINES} lines in a request")
    return lines, nbest, explain


def serve(system: System, host: str, port: int, rate: int) -> dict[str, object]:
    """Serve a system until Ctrl-C or SIGTERM.

    Args:
        system: the system.
        host, port: address to listen on.
        rate: maximum number of requests per address and minute.

    Raises:
        InputError: the address is not available.
    """
    with Server(system, host, port, rate) as server:
        shown = f"[{host}]" if ":" in host else host
        say(f"{system.description.name} at http://{shown}:{server.server_address[1]}/, Ctrl-C to quit")
        if not server.is_local:
            say("warning: the server is open to everyone on the network, without password and encryption")
        server.serve_forever(poll_interval=0.2)
    return {}
