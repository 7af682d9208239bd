"""Heads and bodies of HTTP requests, sent to a running server of a tiny system."""

import json
import random
import re
import socket
import threading
from contextlib import suppress

from rnnsmt.base.io import InputError
from rnnsmt.cli import main
from rnnsmt.moses.ini import MosesIni
from rnnsmt.translation.server import Server
from rnnsmt.translation.system import System
from rnnsmt.translation.translator import ClientLog

from ..unit.search.twin import tiny_model
from .harness import Case, Harness
from .mutation import mutated_text, mutated_value

BODIES = {
    "own": ("application/json", json.dumps({"text": "a b c\nc d", "nbest": 2, "explain": True})),
    "libretranslate": ("application/json", json.dumps({"q": ["<b>a b</b>", "c"], "source": "auto", "target": "fr",
                                                       "format": "html", "alternatives": 2})),
    "form": ("application/x-www-form-urlencoded", "q=a%20b+c&source=en&target=fr&format=text&alternatives=1"),
}  # fmt: skip
"""Content types and bodies of `POST /translate`."""

GETS = ["/", "/?text=a%20b", "/system", "/languages", "/health", "/spec", "/nothing"]

TOKENS = (
    b"Content-Length: -1~Content-Length: 99999999999999999999999~Content-Length: 0~Transfer-Encoding: chunked~"
    b"Host: [~0\r\n\r\n"
    b"~Host: x~Origin: http://[~Origin: null~Expect: 100-continue~Connection: close~Connection: keep-alive~Upgrade: h2c"
    b"~HTTP/2.0~HTTP/1.0~HTTP/0.9~X-Forwarded-For: 1.2.3.4, ::1~..%2f~%00~%~{~[~\"\\ud800\"~1e999~<!--~&lt;~<b>~q=~"
    b"text=~nbest~GET ~PUT ~POST /translate HTTP/1.1~\r\n~\r\n\r\n~: ~chunked~5;x=y\r\nhello\r\n"
).split(b"~")  # fmt: skip
"""Words of HTTP and of the interface."""


CLOSE = "Connection: close"


class WholeLog(ClientLog):
    """Log without a size limit, so that no traceback is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def say(self, text: str) -> None:
        """Record a line."""
        self.texts.append(text)


class HttpRequests(Harness):
    """HTTP requests; every response is a result or has an error message, and never status 500."""

    name = "http"

    def prepare(self) -> None:
        """Create a system."""
        tiny_model(self.directory / "system", 3)
        ini = self.directory / "system" / "moses.ini"
        MosesIni.read(ini).write(ini)
        words = ["translation", "describe", "--name", "tiny", "--source-lang", "en", "--target-lang", "fr"]
        assert main([*words, "--output-dir", str(ini.parent)]) == 0
        self.system = System(ini.parent)
        self.system.explain_all(["a b"])
        self.system.nbest("a b", 2)
        for name, (kind, body) in BODIES.items():
            self.originals[name] = _post(kind, body.encode())
        for path in GETS:
            self.originals[path] = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        self.server: Server | None = None

    def expected(self, target: str) -> str:
        """Return an empty string: an accepted request may have any response."""
        return ""

    def start(self) -> None:
        """Start the server in the worker, since a fork has no threads of its parent."""
        self.server = Server(self.system, "127.0.0.1", 0, rate=1_000_000)
        self.server.log = self.log = WholeLog()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def case(self, number: int, rng: random.Random) -> Case:
        """Return a request with a damaged head or body; half of the bodies are JSON with other values."""
        target = self.target(number)
        data = self.originals[target]
        other = rng.choice(list(self.originals.values()))
        if target in BODIES and rng.random() < 0.6:
            kind, body = BODIES[target]
            if kind == "application/json" and rng.random() < 0.6:
                content = mutated_value(json.loads(body), rng, ["text", "q", "nbest", "explain", "source", "format"])
                changed = json.dumps(content, ensure_ascii=rng.random() < 0.5).encode("utf-8", "replace")
            else:
                changed = mutated_text(body.encode(), rng, TOKENS, other)
            return Case(target, _post(kind, changed), True)
        return Case(target, mutated_text(data, rng, TOKENS, other), True)

    def use(self, case: Case) -> str:
        """Send a request, closing the sending side unless the request is complete; return the response."""
        assert self.server is not None
        answer = b""
        with socket.create_connection(self.server.server_address[:2], timeout=10) as connection:
            with suppress(ConnectionError):
                connection.sendall(case.content)
                if not _is_whole(case.content):  # a client that has closed its side gets no translation
                    connection.shutdown(socket.SHUT_WR)
            with suppress(ConnectionError):
                while received := connection.recv(1 << 16):
                    answer += received
        assert not (failed := [text for text in self.log.texts if "Traceback" in text]), failed
        if not answer:  # an empty request, or a client that has closed its side before the translation
            assert not case.content.strip() or b"POST" in case.content, "no answer"
            return ""
        status = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
        assert status, answer[:200]
        assert status[1] != b"500", answer
        if status[1] in (b"200", b"100"):
            return ""
        body = answer.rpartition(b"\r\n\r\n")[2]
        raise InputError(f"status {status[1].decode()}: {json.loads(body)['error'] if body else 'to HEAD'}")


def _post(kind: str, body: bytes) -> bytes:
    """Return a request with a body."""
    head = f"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}"
    return f"{head}\r\n{CLOSE}\r\n\r\n".encode() + body


def _is_whole(request: bytes) -> bool:
    """Return whether a request is one of ``_post``, which the server answers and then closes the connection."""
    head, _, body = request.partition(b"\r\n\r\n")
    return head.endswith(f"Content-Length: {len(body)}\r\n{CLOSE}".encode()) and head.startswith(
        b"POST /translate HTTP"
    )
