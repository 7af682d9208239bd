"""The connections of the server: uvicorn with limits for clients that send or read slowly, or not at all.

* There are never more connections than file descriptors. A new one replaces the one that has sent nothing for the
  longest time and waits for no answer.
* An answer is sent in pieces, so that an unread one does not fill the memory of the socket. A client that reads none
  of it for ``UNREAD_SECONDS`` is disconnected.
* A client may close its side after the request and still gets the answer. One that has closed the connection looks the
  same until something is sent: after ``HALF_CLOSED_SECONDS``, it gets the interim response 102, and its work is dropped
  if the connection does not exist any more.
* The port opens when requests can be answered. After the first signal, connections that exist are answered.
"""

import asyncio
import errno
import ipaddress
import logging
import resource
import socket
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import h11
import uvicorn
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from rnnsmt.base.errors import InputError
from rnnsmt.base.progress import say, warn

DRAIN_SECONDS = 30
"""Time limit in seconds for the requests in progress after the server was requested to stop."""

MOST_CONNECTIONS = 500
"""Maximum number of connections."""

ACCEPTED = 8
"""Maximum number of connections that are accepted at a time."""

OTHER_DESCRIPTORS = 40
"""Number of file descriptors for other files, and for connections that are accepted before others are closed."""

BACKLOG = 1024
"""Maximum number of connections that the operating system keeps until they are accepted."""

UNREAD_SECONDS = 30
"""Time in seconds in which a client must read a part of an answer."""

HALF_CLOSED_SECONDS, PROBE_SECONDS = 1.0, 0.2
"""Seconds after which a client that has closed its side is sent the first and the second interim response."""

FIRST_REQUEST_SECONDS = 1
"""Time in seconds for the first request of a connection when the server was requested to stop."""

PIECE = 1 << 16
"""Number of bytes of an answer that are sent at a time."""


class Answer(Response):
    """A response in JSON that is sent in pieces, each when the client has read most of those before."""

    media_type = "application/json"

    def __init__(self, content: bytes, release: Callable[[], None]) -> None:
        """Create a response; ``release`` is called when it has been sent, or cannot be sent."""
        super().__init__(content)
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            for begin in range(0, max(len(self.body), 1), PIECE):
                piece, more = bytes(self.body[begin : begin + PIECE]), begin + PIECE < len(self.body)
                await send({"type": "http.response.body", "body": piece, "more_body": more})
        finally:
            self._release()


class _State(ServerState):
    """State of the server that its connections share.

    Attributes:
        most: maximum number of connections.
        is_full: whether there have been as many.
    """

    def __init__(self) -> None:
        super().__init__()
        self.most, self.is_full = _most_connections(), False


def _most_connections() -> int:
    """Return the maximum number of connections, given the limit of file descriptors and the open files."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    opened = sum(1 for _ in Path("/dev/fd").iterdir())
    return max(min(limit - opened - OTHER_DESCRIPTORS, MOST_CONNECTIONS), 1)


class Connection(H11Protocol):
    """A connection with one client."""

    server_state: _State
    transport: asyncio.Transport

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._heard = self.loop.time()
        self._is_half_closed = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection; the one that has been idle for the longest time is closed if there are too many."""
        super().connection_made(transport)
        # otherwise the head and the body of an answer, which are two packets, wait for each other
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        state = self.server_state
        if len(state.connections) > state.most:
            idle = [other for other in state.connections if isinstance(other, Connection) and not other._is_waiting]
            oldest = min(idle, key=lambda other: other._heard)
            state.connections.discard(oldest)  # not again, although it is closed later
            oldest.transport.abort()
            if not state.is_full:
                state.is_full = True
                warn(f"{state.most} connections at once; from now on, new ones replace idle ones")

    @property
    def _is_waiting(self) -> bool:
        """Return whether the client has sent a request and waits for the answer."""
        return self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        self._heard = self.loop.time()
        super().data_received(data)

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Keep a connection whose client has closed its side and waits for an answer."""
        if not self._is_waiting:
            return None
        self._is_half_closed = True
        self._timer = self.loop.call_later(HALF_CLOSED_SECONDS, self._probe)
        return True

    def _probe(self) -> None:
        """Send an interim response to a client that sends nothing more: if it has gone, writing fails."""
        if not self._is_waiting or self.cycle.response_started:
            return
        if self.cycle.scope["http_version"] == "1.0":  # without interim responses
            self.transport.abort()
            return
        self.transport.write(self.conn.send(h11.InformationalResponse(status_code=102, headers=[])))
        self._timer = self.loop.call_later(PROBE_SECONDS, self._probe)

    def on_response_complete(self) -> None:
        """Go on with the next request, or close a connection whose client cannot send one."""
        super().on_response_complete()
        if self._is_half_closed and not self._is_waiting:
            self.transport.close()

    def pause_writing(self) -> None:
        """Wait until the client has read a part of the answer."""
        super().pause_writing()
        self._timer = self.loop.call_later(UNREAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Send the next part of the answer."""
        super().resume_writing()
        self._cancel_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the request in progress."""
        self._cancel_timer()
        super().connection_lost(exc)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def shutdown(self) -> None:
        """Close the connection after the request in progress, or its first one, which may be on its way."""
        if self.cycle is None:
            self.loop.call_later(FIRST_REQUEST_SECONDS, self._shutdown_later)
        else:
            super().shutdown()

    def _shutdown_later(self) -> None:
        if not self.transport.is_closing():
            super().shutdown()


class Server(uvicorn.Server):
    """Server that opens its port when it can answer requests, and logs the first signal."""

    def __init__(self, app: Any, listening: socket.socket, started: Callable[[], None]) -> None:
        """Create a server.

        Args:
            app: the ASGI application.
            listening: a socket of ``bound_socket``.
            started: called when the port is open.
        """
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                ws="none",
                backlog=ACCEPTED,
                lifespan="off",
                log_config=None,
                log_level="error",
                timeout_graceful_shutdown=DRAIN_SECONDS,
            )
        )
        self._listening, self._started = listening, started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the port."""
        self.server_state = _State()
        await super().startup([self._listening])
        self._listening.listen(BACKLOG)  # asyncio accepts as many connections at a time as its own backlog
        self._started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop after the requests in progress at the first signal, immediately at the second Ctrl-C."""
        if not self.should_exit:
            say(f"stopping: no new connections; up to {DRAIN_SECONDS} s for the requests in progress")
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish the requests in progress; those that are not finished in time are one line in the log."""
        await super().shutdown([self._listening])
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # no tracebacks of the requests it has cancelled


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a socket with an address, without opening the port."""
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if ":" in host:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind((host, port))
    except (OSError, OverflowError) as error:
        bound.close()
        raise refused_port(host, port, error) from None
    return bound


def refused_port(host: str, port: int, error: Exception) -> InputError:
    """Return the error for a port that cannot be opened."""
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return InputError(f"--serve {port}: port {port} is in use; choose another port")
    reason = getattr(error, "strerror", None) or error
    return InputError(f"--serve {port} --host {host}: {reason}; choose another port or address")


def is_loopback(name: str) -> bool:
    """Return whether a name is an address of the loopback interface."""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
