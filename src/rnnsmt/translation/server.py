"""HTTP server of a tuned system: a web page for people, JSON for programs (``api``).

``GET /`` returns the page; ``/?text=...`` translates a text immediately. ``POST /translate`` translates. ``GET`` of
``/system``, ``/languages``, ``/health`` and ``/spec`` describe the system and the interface.

One thread reads and answers all connections (asyncio), another one translates (``translator``). h11 parses and writes
HTTP. This module also implements what ASGI servers usually leave to a proxy: time limits for heads and bodies, limits
per client on connections and waiting work, and detection of disconnected clients. The size of all input is limited.
"""

import asyncio
import errno
import ipaddress
import json
import re
import select
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from http import HTTPStatus
from importlib import resources
from typing import Any
from urllib.parse import urlsplit

import h11

from rnnsmt import __version__
from rnnsmt.base.io import InputError
from rnnsmt.base.progress import say
from rnnsmt.plan.corpora import language_name
from rnnsmt.translation import api
from rnnsmt.translation.api import JSON, RefusedError, documents, features
from rnnsmt.translation.system import System
from rnnsmt.translation.translator import ClientLog, FullError, Job, RateLimit, Translator, network_of, plain_address

MOST_CONNECTIONS = 512
"""Maximum number of open connections."""

MOST_CONNECTIONS_OF_CLIENT = 256
"""Maximum number of open connections of one address."""

MOST_HEAD_BYTES = 16_384
"""Maximum size of the head of a request in bytes."""

MOST_WORDS = 500
"""Maximum number of words of a line, which is searched as a whole while others wait."""

SECONDS = 30.0
"""Time limit in seconds for a request to arrive, for an idle connection, and for a client to receive data."""

ANSWER_SECONDS = 600.0
"""Time limit in seconds for a translation."""

POLL_SECONDS = 0.25
"""Interval in seconds between checks whether a client is still connected."""

LINGER_SECONDS, LINGER_BYTES = 2.0, 20_000_000
"""Maximum time in seconds and number of bytes for reading the rest of a rejected request, so that its client can read
the response."""

DRAIN_SECONDS = 30.0
"""Time limit in seconds for the requests in progress after the server was requested to stop."""

LAST_REQUEST_SECONDS = 1.0
"""Time in seconds for a request to begin on an open connection after the server was requested to stop."""

POST_ROUTE = "/translate"

SECURITY_HEADERS = [
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
]

_REPEATED = re.compile(r"bytearray|b['\"]")
"""Beginning of the part of an h11 message that quotes data of the client."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Server:
    """HTTP server of a system."""

    def __init__(
        self,
        system: System,
        host: str,
        port: int,
        rate: int,
        proxies: Sequence[Network] = (),
        names: Sequence[str] = (),
    ) -> None:
        """Bind the address and start the translator.

        Args:
            system: the system.
            host, port: address to listen on.
            rate: maximum number of requests per address and minute.
            proxies: networks of the reverse proxies whose ``X-Forwarded-For`` is trusted.
            names: public names of the server, which are accepted in the ``Host`` header.

        Raises:
            InputError: the address is not available.
        """
        self.socket = _listening(host, port)
        self.server_address = self.socket.getsockname()
        self.is_local = host == "localhost" or _is_loopback(host)
        self.proxies, self.names = proxies, frozenset(name.lower() for name in names)
        self.translator, self.limit, self.log = Translator(system), RateLimit(rate), ClientLog()
        self.connections: dict[Connection, None] = {}  # in the order in which they were opened
        self.documents = documents(system.directory)
        self.routes = self._routes(system)
        self.is_stopping = False
        self.answered = 0
        self._asked, self._ended = threading.Event(), threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.translator.start()

    def _routes(self, system: System) -> dict[str, Callable[[], tuple[HTTPStatus, str, bytes]]]:
        """Return the functions that create the responses to GET requests, by path."""
        system_description = system.description
        page = resources.files("rnnsmt.translation").joinpath("page.html").read_bytes()
        description = {
            "name": system_description.name,
            **{side: getattr(system_description, side) for side in ("source", "target")},
            "source_name": language_name(system_description.source),
            "target_name": language_name(system_description.target),
            "features": features(system.description, system.ini),
            "examples": system_description.examples,
            "warnings": system_description.warnings,
            "documents": [{"title": document.title, "path": document.path} for document in self.documents],
        }

        def always(kind: str, content: bytes) -> Callable[[], tuple[HTTPStatus, str, bytes]]:
            return lambda: (HTTPStatus.OK, kind, content)

        return {
            "/": always("text/html; charset=utf-8", page),
            "/system": always(JSON, _encoded(description)),
            "/languages": always(JSON, _encoded(api.languages(system_description))),
            "/spec": always(JSON, _encoded(api.specification(system_description))),
            "/health": self._health,
            **{f"/{document.path}": always(document.kind, document.content) for document in self.documents},
        }

    def _health(self) -> tuple[HTTPStatus, str, bytes]:
        if self.is_stopping or not self.translator.is_alive():
            return HTTPStatus.SERVICE_UNAVAILABLE, JSON, _encoded({"status": "stopping"})
        return HTTPStatus.OK, JSON, _encoded({"status": "ok"})

    def serve_forever(self) -> None:
        """Serve until ``shutdown``, SIGTERM or Ctrl-C; then finish the requests in progress, see ``DRAIN_SECONDS``."""
        try:
            asyncio.run(self._serve())
        finally:
            self.server_close()
            self._ended.set()

    def shutdown(self) -> None:
        """Request the server to stop, from another thread, and wait until it has stopped."""
        self._asked.set()
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._stop)
        self._ended.wait()

    def server_close(self) -> None:
        """Stop listening."""
        self.socket.close()

    async def _serve(self) -> None:
        loop = self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                if signal.getsignal(number) != signal.SIG_IGN:
                    loop.add_signal_handler(number, self._stop_by_signal, number)
        if self._asked.is_set():
            self._stop()
        self._listen()
        try:
            await self._stopped.wait()
            self.is_stopping = True
            self._accept()  # for their clients, connections in the kernel's queue are already established
        finally:
            loop.remove_reader(self.socket)
            self.socket.close()
        await self._drain()

    def _listen(self) -> None:
        """Register the socket with the event loop, which then calls ``_accept`` for new connections."""
        if not self.is_stopping:
            asyncio.get_running_loop().add_reader(self.socket, self._accept)

    def _stop(self) -> None:
        self._stopped.set()

    def _stop_by_signal(self, number: int) -> None:
        """Stop after the requests in progress at the first signal; exit immediately at the second one."""
        if self._stopped.is_set():
            raise SystemExit(128 + number)
        say(f"stopping: no new connections; up to {DRAIN_SECONDS:.0f} s for the requests in progress")
        self._stop()

    async def _drain(self) -> None:
        """Finish the requests in progress, and close idle connections."""
        end = time.monotonic() + DRAIN_SECONDS
        idle_end = time.monotonic() + LAST_REQUEST_SECONDS
        while self.connections and time.monotonic() < end:
            if time.monotonic() > idle_end:
                for connection in [connection for connection in self.connections if connection.is_silent]:
                    connection.close()
            await asyncio.sleep(0.02)
        if cut := sum(connection.is_busy for connection in self.connections):
            say(f"warning: {cut} requests were not finished within {DRAIN_SECONDS:.0f} s")
        for connection in list(self.connections):
            connection.close()
        await asyncio.gather(*(connection.task for connection in self.connections), return_exceptions=True)

    def _accept(self) -> None:
        """Accept all pending connections."""
        for _ in range(MOST_CONNECTIONS):
            try:
                accepted, address = self.socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # out of file descriptors or memory
                self.log.say(f"warning: a connection could not be accepted ({error.strerror})")
                if not self._close_idle(list(self.connections)) and not self.is_stopping:
                    loop = asyncio.get_running_loop()
                    loop.remove_reader(self.socket)
                    loop.call_later(POLL_SECONDS, self._listen)
                return
            accepted.setblocking(False)
            with suppress(OSError):
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(self, accepted, plain_address(address[0]))
            if self._has_room(connection):
                self.connections[connection] = None
                connection.task = asyncio.get_running_loop().create_task(connection.run())
            else:
                connection.refuse()
                connection.socket.close()

    def _has_room(self, connection: "Connection") -> bool:
        """Return whether a connection may be opened; if there are too many, close the oldest idle one."""
        connections = [other for other in self.connections if other.network == connection.network]
        if len(connections) >= MOST_CONNECTIONS_OF_CLIENT and not self.is_proxy(connection.peer):
            return self._close_idle(connections)
        if len(self.connections) < MOST_CONNECTIONS:
            return True
        networks: dict[str, list[Connection]] = {}
        for other in self.connections:
            networks.setdefault(other.network, []).append(other)
        most = sorted(networks.values(), key=len, reverse=True)
        return any(self._close_idle(some) for some in most)

    def _close_idle(self, connections: "Sequence[Connection]") -> bool:
        """Close the oldest connection that has no complete request; return whether there was one."""
        for connection in connections:
            if not connection.is_busy and not connection.is_closing:
                connection.refuse()
                connection.close()
                self.connections.pop(connection, None)
                return True
        return False

    def is_proxy(self, address: str) -> bool:
        """Return whether an address is that of a trusted proxy."""
        with suppress(ValueError):
            parsed = ipaddress.ip_address(address)
            return any(parsed in network for network in self.proxies)
        return False

    def client_of(self, peer: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """Return the address of a client: the last address in ``X-Forwarded-For`` that is not a trusted proxy."""
        if not self.is_proxy(peer):
            return peer
        named = [value for name, value in headers if name == b"x-forwarded-for"]
        for hop in reversed(b",".join(named).decode("latin-1").split(",")):
            try:
                address = plain_address(str(ipaddress.ip_address(hop.strip())))
            except ValueError:
                break
            if not self.is_proxy(address):
                return address
        return peer


class Connection:
    """One connection.

    Attributes:
        peer: address at the other end.
        network: key by which the connections of a client are counted, see ``network_of``.
        is_busy: whether a complete request is being answered.
        is_silent: whether no part of the next request has arrived.
        is_closing: whether the connection is about to be closed.
    """

    def __init__(self, server: Server, accepted: socket.socket, peer: str) -> None:
        self.server, self.socket, self.peer, self.network = server, accepted, peer, network_of(peer)
        self.h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEAD_BYTES)
        self.is_busy = self.is_closing = self._is_head = self._must_close = False
        self.is_silent = self._is_fresh = True
        self.task: asyncio.Task[None]

    async def run(self) -> None:
        """Answer requests until either side closes the connection."""
        try:
            while await self._answer_one():
                self.h11.start_next_cycle()
                self.is_silent = not self.h11.trailing_data[0]
            if self.h11.their_state is not h11.CLOSED:
                await self._linger()
        except (OSError, TimeoutError):
            pass  # the client has disconnected, or does not receive data
        except Exception as error:  # a bug in one connection must not affect the others
            self.server.log.say("a connection failed: " + "".join(traceback.format_exception(error)))
            with suppress(Exception):
                await self._error(HTTPStatus.INTERNAL_SERVER_ERROR, "the request failed; see the log")
        finally:
            self.server.connections.pop(self, None)
            self.socket.close()

    def close(self) -> None:
        """Close the connection as soon as possible."""
        self.is_closing = True
        self.task.cancel()

    def refuse(self) -> None:
        """Send status 503 to a client that has not received a response yet, without waiting."""
        if self._is_fresh:
            body = _encoded({"error": "too many connections; try again later"})
            head = f"HTTP/1.1 503 Service Unavailable\r\nContent-Type: {JSON}\r\nContent-Length: {len(body)}"
            with suppress(OSError):
                self.socket.send(f"{head}\r\nConnection: close\r\n\r\n".encode() + body)

    async def _answer_one(self) -> bool:
        """Read and answer one request; return whether another one may follow."""
        end, self._is_head = time.monotonic() + SECONDS, False
        try:
            request = await self._next_event(end)
            if isinstance(request, h11.ConnectionClosed):
                return False
            assert isinstance(request, h11.Request)
            self._is_head = request.method == b"HEAD"
            body = await self._body(request, end)
            self.is_busy = True
            if request.method == b"POST":
                await self._translate(request, body)
            else:
                await self._send(*self.server.routes[_path(request)]())
        except RefusedError as refused:
            await self._error(refused.status, str(refused))
        except h11.RemoteProtocolError as error:
            reason = _REPEATED.split(str(error), maxsplit=1)[0].rstrip(" :,")
            self.server.log.say(f"a malformed request was rejected: {reason}")
            await self._error(HTTPStatus(error.error_status_hint), f"malformed request: {reason}")
        except TimeoutError:
            if self.is_busy:  # the client does not receive the response; nothing can follow one that was sent in part
                raise
            if not self.is_silent:
                await self._error(HTTPStatus.REQUEST_TIMEOUT, "the request is incomplete")
        self.server.answered += 1
        return self.h11.our_state is h11.DONE and self.h11.their_state is h11.DONE

    async def _next_event(self, end: float) -> Any:
        """Return the next event of h11.

        Args:
            end: time limit, in seconds of the monotonic clock.

        Raises:
            TimeoutError: no event until ``end``.
            h11.RemoteProtocolError: the received data are not HTTP.
        """
        loop = asyncio.get_running_loop()
        while (event := self.h11.next_event()) is h11.NEED_DATA:
            async with asyncio.timeout(max(0.0, end - time.monotonic())):
                if self.h11.they_are_waiting_for_100_continue:
                    informed = self.h11.send(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))
                    await loop.sock_sendall(self.socket, informed or b"")
                received = await loop.sock_recv(self.socket, 1 << 16)
            self.is_silent = self.is_silent and not received
            self.h11.receive_data(received)
        return event

    async def _body(self, request: h11.Request, end: float) -> bytes:
        """Check the head of a request, and read its body if it is a request to ``POST_ROUTE``.

        Raises:
            RefusedError: the request is rejected, regardless of its body.
        """
        headers = {name: value.decode("latin-1") for name, value in request.headers}
        if request.http_version not in (b"1.0", b"1.1"):
            raise RefusedError(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "use HTTP/1.1")
        self._check_origin(headers)
        if request.method not in (b"GET", b"HEAD", b"POST"):
            raise RefusedError(HTTPStatus.NOT_IMPLEMENTED, "use GET, HEAD or POST")
        path = _path(request)
        if request.method != b"POST":
            if path not in self.server.routes:
                raise self._no_such_route()
            self.h11.next_event()  # end of the message; the body of a GET is not read, and the connection is closed
            return b""
        if path != POST_ROUTE:
            raise self._no_such_route()
        if b"transfer-encoding" in headers:
            raise RefusedError(
                HTTPStatus.BAD_REQUEST, "the request must have a Content-Length and no Transfer-Encoding"
            )
        if b"content-length" not in headers:
            raise RefusedError(HTTPStatus.LENGTH_REQUIRED, "the request must have a Content-Length")
        if int(headers[b"content-length"][:20]) > api.MOST_BYTES:
            sentence = f"a request can have at most {api.MOST_BYTES:,} bytes"
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, sentence)
        body = bytearray()
        while isinstance(event := await self._next_event(end), h11.Data):
            body += event.data
        return bytes(body)

    def _no_such_route(self) -> RefusedError:
        served = ", ".join(self.server.routes)
        return RefusedError(HTTPStatus.NOT_FOUND, f"no such route; available: GET {served}, POST {POST_ROUTE}")

    def _check_origin(self, headers: dict[bytes, str]) -> None:
        """Check that a request is meant for this server.

        Requests from web pages of other origins are rejected. A server on the loopback interface accepts only local
        host names and its public names, so that web pages of other servers cannot reach it through the user's browser
        (DNS rebinding).

        Raises:
            RefusedError: the request is not meant for this server, or ``Host`` or ``Origin`` is malformed.
        """
        host = headers.get(b"host", "")
        origin = headers.get(b"origin")
        try:
            name = urlsplit(f"//{host}").hostname or ""
            foreign = origin is not None and urlsplit(origin).netloc != host
        except ValueError:
            self.server.log.say("a malformed request was rejected: the Host or Origin header is invalid")
            raise RefusedError(HTTPStatus.BAD_REQUEST, "the Host or Origin header is invalid") from None
        is_open = not self.server.is_local and not self.server.names
        if foreign or not (is_open or name in ("", "localhost", *self.server.names) or _is_loopback(name)):
            sentence = "this server does not accept requests for this host name; see --host and --public-name"
            raise RefusedError(HTTPStatus.FORBIDDEN, sentence)

    async def _translate(self, request: h11.Request, body: bytes) -> None:
        """Translate the text of a request, and send the translations.

        Raises:
            RefusedError: the request is rejected, or the translation failed.
        """
        client, translator = network_of(self.server.client_of(self.peer, request.headers)), self.server.translator
        if not self.server.limit.allows(client, time.monotonic()):
            sentence = f"more than {self.server.limit.number} requests per minute; try again later"
            raise RefusedError(HTTPStatus.TOO_MANY_REQUESTS, sentence)
        kind = next((value for name, value in request.headers if name == b"content-type"), b"").decode("latin-1")
        query = api.read_query(kind.partition(";")[0].strip().lower(), body, translator.system.description)
        job = Job(client, query.lines, query.nbest, query.explain)
        try:
            translator.submit(job)
        except FullError:
            raise RefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE, "too many requests are waiting; try again later"
            ) from None
        try:
            answer = await self._answer_of(job)
            await self._send(HTTPStatus.OK, JSON, _encoded(query.response(answer)))
        finally:
            translator.release(job)

    async def _answer_of(self, job: Job) -> list[dict[str, Any]]:
        """Wait for the answer of a job while the client is connected.

        Raises:
            RefusedError: the translation failed, or took too long.
            ConnectionError: the client has disconnected.
        """
        end = time.monotonic() + ANSWER_SECONDS
        answer = asyncio.wrap_future(job.answer)
        try:
            while not (await asyncio.wait({answer}, timeout=POLL_SECONDS))[0]:
                if _is_gone(self.socket):
                    raise ConnectionAbortedError
                if time.monotonic() > end:
                    raise RefusedError(HTTPStatus.GATEWAY_TIMEOUT, "the translation took too long; send less text")
            return answer.result()
        except InputError as error:
            raise RefusedError(HTTPStatus.BAD_REQUEST, str(error)) from None
        except (RefusedError, OSError):
            raise
        except Exception as error:
            self.server.log.say("a request failed: " + "".join(traceback.format_exception(error)))
            raise RefusedError(HTTPStatus.INTERNAL_SERVER_ERROR, "the translation failed; see the log") from None
        finally:
            if not answer.cancel() and not answer.cancelled():
                answer.exception()  # otherwise, asyncio logs that the exception was never retrieved

    async def _error(self, status: HTTPStatus, sentence: str) -> None:
        """Send an error, and close the connection."""
        if self.h11.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._must_close = True
            await self._send(status, JSON, _encoded({"error": sentence}))

    async def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        """Send a response."""
        keep = self.h11.their_state is h11.DONE and not (self._must_close or self.server.is_stopping)
        busy = status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
        headers = [
            ("Server", f"rnnsmt/{__version__}"),
            ("Content-Type", kind),
            ("Content-Length", str(len(content))),
            *SECURITY_HEADERS,
            *([] if keep else [("Connection", "close")]),
            *([("Retry-After", "10")] if busy else []),
        ]
        parts = [
            self.h11.send(h11.Response(status_code=status, headers=headers, reason=status.phrase.encode())),
            None if self._is_head else self.h11.send(h11.Data(data=content)),
            self.h11.send(h11.EndOfMessage()),
        ]
        self._is_fresh = False
        whole, loop = memoryview(b"".join(piece or b"" for piece in parts)), asyncio.get_running_loop()
        for first in range(0, len(whole), 1 << 16):
            async with asyncio.timeout(SECONDS):
                await loop.sock_sendall(self.socket, whole[first : first + (1 << 16)])
        self.is_busy = False

    async def _linger(self) -> None:
        """Read the remaining input of a client: closing with unread input would reset the connection.

        After a reset, the client could not read the response.
        """
        loop, read = asyncio.get_running_loop(), 0
        with suppress(OSError, TimeoutError):
            self.socket.shutdown(socket.SHUT_WR)
            async with asyncio.timeout(LINGER_SECONDS):
                while read < LINGER_BYTES and (received := await loop.sock_recv(self.socket, 1 << 18)):
                    read += len(received)


def _path(request: h11.Request) -> str:
    return request.target.partition(b"?")[0].decode("latin-1")


def _encoded(content: object) -> bytes:
    return json.dumps(content).encode("ascii")


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address.

    Raises:
        InputError: the address is not available.
    """
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(MOST_CONNECTIONS)
        listening.setblocking(False)
    except (OSError, OverflowError) as error:
        listening.close()
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise InputError(f"--serve {port}: port {port} is in use; choose another port") from None
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"--serve {port} --host {host}: {reason}; choose another port or address") from None
    return listening


def _is_gone(connection: socket.socket) -> bool:
    """Return whether the other end has closed a connection, even if some data of it are still unread."""
    poll = select.poll()
    poll.register(connection, getattr(select, "POLLRDHUP", 0))
    return bool(poll.poll(0))


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def serve(
    system: System, host: str, port: int, rate: int, proxies: Sequence[str] = (), names: Sequence[str] = ()
) -> dict[str, object]:
    """Serve a system until Ctrl-C or SIGTERM.

    Args:
        system: the system.
        host, port: address to listen on.
        rate: maximum number of requests per address and minute.
        proxies: addresses or networks of the reverse proxies whose ``X-Forwarded-For`` is trusted.
        names: public names of the server.

    Raises:
        InputError: the address is not available, or one of ``proxies`` is not an address.
    """
    try:
        networks = [ipaddress.ip_network(proxy) for proxy in proxies]
    except ValueError as error:
        raise InputError(f"--trusted-proxy: {error}; specify addresses such as 127.0.0.1 or 10.0.0.0/8") from None
    server = Server(system, host, port, rate, networks, names)
    system.explain_all(["a"])  # compile or load the kernels of the search before the first request
    system.nbest("a", 2)
    shown = f"[{host}]" if ":" in host else host
    say(f"{system.description.name} at http://{shown}:{server.server_address[1]}/, Ctrl-C to quit")
    if not server.is_local:
        say("warning: the server accepts connections from the network, without authentication and encryption")
    server.serve_forever()
    return {"requests": server.answered}
