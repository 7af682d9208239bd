"""Connections of the server: many, idle, half-closed and abandoned ones, and clients that do not read."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from rnnsmt.translation import connections, request_queue
from rnnsmt.translation.connections import Server, bound_socket
from rnnsmt.translation.serve import application
from rnnsmt.translation.system import System


class Running:
    """A server that runs in a thread."""

    def __init__(self, system: System) -> None:
        opened = threading.Event()
        bound = bound_socket("127.0.0.1", 0)
        self.address = bound.getsockname()
        self.server = Server(application(system), bound, opened.set)
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()
        assert opened.wait(30)

    def connected(self, small: bool = False) -> socket.socket:
        """Return a new connection; ``small``: the client's buffer is small."""
        client = socket.socket()
        client.settimeout(30)
        if small:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(self.address)
        return client

    def status(self, path: str = "/health") -> int:
        """Return the status of a request on a new connection."""
        connection = http.client.HTTPConnection(*self.address, timeout=30)
        connection.request("GET", path)
        return connection.getresponse().status

    def becomes(self, condition: Callable[[], bool]) -> bool:
        """Wait until a condition of the server is true; return False if it is not within 20 s."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if condition():
                return True
            time.sleep(0.01)
        return False


@pytest.fixture
def running(system: System, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """Run a server that sends no interim responses, however long it computes."""
    monkeypatch.setattr(connections, "HALF_CLOSED_SECONDS", 600)
    server = Running(system)
    yield server
    server.server.should_exit = True
    server.thread.join(30)


def posted(content: object) -> bytes:
    """Return a request to translate."""
    body = json.dumps(content).encode()
    head = (
        f"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    )
    return f"{head}\r\n\r\n".encode() + body


def received(client: socket.socket) -> bytes:
    """Return everything that a server sends until it closes the connection."""
    pieces = []
    while piece := client.recv(1 << 16):
        pieces.append(piece)
    return b"".join(pieces)


def test_packets_do_not_wait_for_each_other(running: Running) -> None:
    with running.connected():
        assert running.becomes(lambda: len(running.server.server_state.connections) == 1)
        (connection,) = running.server.server_state.connections
        used = connection.transport.get_extra_info("socket")
        assert used.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_idle_connections_are_replaced(
    system: System,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """There are never more connections than allowed, new clients are answered, and the log has one line."""
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 5)
    running = Running(system)
    state = running.server.server_state
    half = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx"
    idle = []
    for number in range(40):
        idle.append(running.connected())
        idle[-1].sendall((b"", b"GET /hea", half)[number % 3])
    for _ in range(10):
        assert running.status() == 200
        assert len(state.connections) <= 5
    assert capsys.readouterr().err.count("connections at once") == 1
    for client in idle:
        client.close()
    running.server.should_exit = True
    running.thread.join(30)


@pytest.mark.parametrize("request_", [b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", posted({"text": "a b"})])
def test_a_client_may_close_its_side(running: Running, request_: bytes) -> None:
    with running.connected() as client:
        client.sendall(request_)
        client.shutdown(socket.SHUT_WR)
        assert received(client).startswith(b"HTTP/1.1 200 ")


def test_a_half_closed_client_waits_and_an_abandoned_request_is_dropped(
    running: Running,
    system: System,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "HALF_CLOSED_SECONDS", 0.1)
    go_on = threading.Event()
    monkeypatch.setattr(system, "translate_all", lambda lines, _: go_on.wait(60) and list(lines))
    try:
        waiting = running.connected()
        waiting.sendall(posted({"text": "a"}))
        waiting.shutdown(socket.SHUT_WR)
        state = running.server.server_state
        assert running.becomes(lambda: len(state.tasks) == 1)
        with running.connected() as abandoned:
            abandoned.sendall(posted({"text": "b"}))
            assert running.becomes(lambda: len(state.tasks) == 2)
        assert running.becomes(lambda: len(state.tasks) == 1)
    finally:
        go_on.set()
    answer = received(waiting)
    assert answer.startswith(b"HTTP/1.1 102 \r\n\r\n")
    assert b"HTTP/1.1 200 OK\r\n" in answer
    assert answer.endswith(b'{"translations":[{"translation":"a"}]}')
    waiting.close()


LARGE = {"q": "a b c d a b c d" + "\n" * 90_000, "source": "en", "target": "fr", "alternatives": 99}
"""A request with an answer of several MB."""


def test_a_large_answer_is_complete(running: Running) -> None:
    with running.connected() as client:
        client.sendall(posted(LARGE))
        client.shutdown(socket.SHUT_WR)
        head, _, body = received(client).partition(b"\r\n\r\n")
    assert f"content-length: {len(body)}".encode() in head
    found = json.loads(body)
    assert len(found["alternatives"]) > 10
    assert {text.count("\n") for text in (found["translatedText"], *found["alternatives"])} == {90_000}


def test_unread_answers_are_limited(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that clients do not read count until the clients are disconnected; small requests are answered."""
    monkeypatch.setattr(request_queue, "MOST_ANSWERS", 30_000_000)
    monkeypatch.setattr(connections, "UNREAD_SECONDS", 0.5)
    state = running.server.server_state
    first = running.connected(small=True)
    first.sendall(posted(LARGE))
    assert running.becomes(lambda: any(one.flow.write_paused for one in state.connections))
    statuses = []
    for content in (LARGE, {"text": "a"}):
        with running.connected() as client:
            client.sendall(posted(content))
            client.shutdown(socket.SHUT_WR)
            statuses.append(received(client)[9:12])
    assert statuses == [b"503", b"200"]
    assert running.becomes(lambda: not state.tasks)
    with running.connected() as client:
        client.sendall(posted(LARGE))
        client.shutdown(socket.SHUT_WR)
        assert received(client).startswith(b"HTTP/1.1 200 ")
    first.close()
