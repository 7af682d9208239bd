"""Stress-test `rnnsmt translate --serve`: large and abandoned requests, SIGTERM, memory.

    python benchmarks/server.py SYSTEM [--requests N]

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
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

SENTENCE = "The boats are in the harbour."


@contextmanager
def server(system: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start a server; yield its process and its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        command = [sys.executable, "-m", "rnnsmt", "translate", "--system", system, "--serve", str(port)]
        with subprocess.Popen(command) as process:
            while process.poll() is None:
                with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health"):
                    break
                time.sleep(0.1)
            try:
                yield process, port
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
    """Test one sentence beside eight abandoned requests of 1,000 lines, and beside eight requests that wait."""
    large = json.dumps({"text": "\n".join([SENTENCE] * 1000), "nbest": 100}).encode()
    head = (
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    )
    with server(system) as (_, port):
        alone, found = waits(port), {}
        for name in ("abandoned", "patient"):
            with ExitStack() as stack:
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
    with server(system) as (process, port), ThreadPoolExecutor(40) as pool:
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
    with server(system) as (process, port):

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


def main() -> None:
    """Run all parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("system")
    parser.add_argument("--requests", type=int, default=10_000)
    args = parser.parse_args()
    results = [crowd(args.system), stopping(args.system), memory(args.system, args.requests)]
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
