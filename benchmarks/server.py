"""Stress-test `rnnsmt translate --serve`: idle connections, abandoned requests, SIGTERM, memory, malformed HTTP.

    python benchmarks/server.py SYSTEM [--requests N] [--fuzz N] [--seed N]

SYSTEM: directory of a tuned system. A server is started on a free port for every part. If a part fails, the exit status
is 1.
"""

import argparse
import http.client
import json
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

SENTENCE = "The boats are in the harbour."

SEEDS = (
    b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b'Content-Length: 13\r\n\r\n{"text": "a"}',
    b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    b"Content-Length: 27\r\n\r\nq=a%20b&source=en&target=fr",
    b"GET /health HTTP/1.1\r\nHost: [\r\nOrigin: http://[\r\n\r\n",
    b"POST /translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
    b"Expect: 100-continue\r\n\r\n0\r\n\r\n",
    b"GET /?text=a HTTP/1.0\r\nConnection: keep-alive\r\nX-Forwarded-For: 1.2.3.4, ::1\r\n\r\n",
    b"POST /translate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 68\r\n\r\n"
    b'{"q": ["<b>a</b>"], "source": "auto", "target": "fr", "format":"html"}',
)
"""Requests that the fuzzer damages."""

PIECES = (
    b"\r\n", b"\n", b"\0", b" ", b":", b"[", b"]", b"{" * 50, b"\xff\xfe", b"Content-Length: -1\r\n", b"\r\n ", b"%",
    b"HTTP/2.0",
    b"Content-Length: 99999999999999999999999\r\n", b"Host: x\r\n", b"A" * 20_000, b'"\\ud800"', b"1e999", b"[" * 3000,
    b"Transfer-Encoding: chunked\r\n", b"<" * 2000, b"<!--", b"//", b"..%2f", b"GET ", b"PUT ", b"\x16\x03\x01",
)  # fmt: skip
"""Byte strings that the fuzzer inserts into requests."""


@contextmanager
def server(system: str) -> Iterator[tuple[subprocess.Popen[bytes], int, Path]]:
    """Start a server; yield its process, its port and its log."""
    with socket.socket() as free, tempfile.NamedTemporaryFile() as log:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        command = [sys.executable, "-m", "rnnsmt", "translate", "--system", system, "--serve", str(port)]
        with subprocess.Popen([*command, "--rate", "1000000"], stderr=log) as process:
            while process.poll() is None:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.1)
            try:
                yield process, port, Path(log.name)
            finally:
                process.terminate()
                process.wait(60)


def posted(port: int, content: object, connection: http.client.HTTPConnection | None = None) -> int:
    """Return the status of a translation."""
    own = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    own.request("POST", "/translate", json.dumps(content), {"Content-Type": "application/json"})
    answer = own.getresponse()
    answer.read()
    if connection is None:
        own.close()
    return answer.status


def waits(port: int, number: int = 8) -> float:
    """Return the longest time in seconds that a well-behaved client waits for one sentence."""
    longest = 0.0
    for _ in range(number):
        started = time.monotonic()
        assert posted(port, {"text": SENTENCE}) == 200
        longest = max(longest, time.monotonic() - started)
    return longest


def crowd(system: str) -> bool:
    """Test 300 idle connections and eight abandoned requests of 1,000 lines, then eight requests that wait."""
    large = json.dumps({"text": "\n".join([SENTENCE] * 1000), "nbest": 100}).encode()
    head = (
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    )
    with server(system) as (_, port, _log):
        alone, found = waits(port), {}
        for name in ("abandoned", "patient"):
            with ExitStack() as stack:
                for _ in range(300):
                    stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                for _ in range(8):
                    one = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                    one.sendall(head % len(large) + large)
                    if name == "abandoned":
                        one.close()
                found[name] = waits(port)
    print(f"crowd: alone {alone:.2f} s, " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in found.items()))
    return all(seconds < alone + 2 for seconds in found.values())


def stopping(system: str) -> bool:
    """Test SIGTERM while 40 clients wait."""
    with server(system) as (process, port, _log), ThreadPoolExecutor(40) as pool:
        text = "\n".join([SENTENCE] * 100)
        sockets = [http.client.HTTPConnection("127.0.0.1", port, timeout=60) for _ in range(40)]
        answers = [pool.submit(posted, port, {"text": text}, one) for one in sockets]
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        cut = sum(one.exception() is not None or one.result() != 200 for one in answers)
        status = process.wait(60)
    print(f"SIGTERM: {cut} of 40 requests cut, exit status {status}")
    return not cut and not status


def memory(system: str, number: int) -> bool:
    """Test the resident memory, in MB, over many requests."""
    with server(system) as (process, port, _log):

        def resident() -> float:
            status = Path(f"/proc/{process.pid}/status").read_text()
            return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024

        rng, figures = random.Random(1), []
        for part in range(10):
            for _ in range(number // 10):
                words = [*SENTENCE.split(), f"w{rng.randrange(10**6)}"]
                assert posted(port, {"text": " ".join(words), "explain": bool(rng.randrange(2))}) == 200
            figures.append(resident())
            print(f"memory: {(part + 1) * number // 10} requests, {figures[-1]:.1f} MB", flush=True)
    return figures[-1] < 1.05 * figures[1]


def damaged(rng: random.Random) -> bytes:
    """Return a damaged request."""
    content = bytearray(rng.choice(SEEDS))
    for _ in range(rng.randrange(1, 6)):
        place = rng.randrange(len(content) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            content[place:place] = rng.choice(PIECES)
        elif kind == 1:
            del content[place : place + rng.randrange(1, 30)]
        elif kind == 2 and place < len(content):
            content[place] ^= 1 << rng.randrange(8)
        else:
            content[place:place] = content[: rng.randrange(200)]
    return bytes(content)


def fuzz(port: int, number: int, seed: int) -> Counter[str]:
    """Send damaged requests; count the statuses, and ``hang`` and ``unanswered``."""
    rng, found, lock = random.Random(seed), Counter[str](), threading.Lock()
    requests = [damaged(rng) for _ in range(number)]

    def one(content: bytes) -> None:
        answer, outcome = b"", ""
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            try:
                with suppress(ConnectionError):
                    connection.sendall(content)
                    connection.shutdown(socket.SHUT_WR)
                while received := connection.recv(1 << 16):
                    answer += received
            except TimeoutError:
                outcome = "hang"
            except ConnectionError:
                pass
        status = re.match(rb"HTTP/1\.1 (\d{3})", answer)
        # a complete request may be unanswered: a client that closes its side does not wait for the answer
        outcome = outcome or (status[1].decode() if status else "unanswered")
        with lock:
            found[outcome] += 1
            if outcome in ("hang", "unanswered", "500"):
                print(f"fuzz: {outcome}: {content[:300]!r}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, requests))
    return found


def malformed(system: str, number: int, seed: int) -> bool:
    """Test damaged heads and bodies."""
    with server(system) as (_, port, log):
        found = fuzz(port, number, seed)
        fine = posted(port, {"text": SENTENCE}) == 200
        traces = log.read_text().count("Traceback")
    print(f"fuzz: {number} requests, statuses {dict(sorted(found.items()))}, {traces} tracebacks")
    return fine and not traces and not found["hang"] and not found["unanswered"] and not found["500"]


def main() -> None:
    """Run all parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("system")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--fuzz", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    results = [crowd(args.system), stopping(args.system), malformed(args.system, args.fuzz, args.seed)]
    results.append(memory(args.system, args.requests))
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
