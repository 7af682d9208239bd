"""``rnnsmt corpus fetch``: whole files or none."""

import hashlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from rnnsmt.cli import main

CONTENT = b"some text\n" * 1000
SUM = hashlib.sha256(CONTENT).hexdigest()


class Server(BaseHTTPRequestHandler):
    """/good gives the content, /short breaks off in the middle, anything else is not there."""

    def do_GET(self) -> None:
        self.send_response(404 if self.path not in ("/good", "/short") else 200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write({"/good": CONTENT, "/short": CONTENT[:500]}.get(self.path, b""))
        self.close_connection = True

    def log_message(self, *_args: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as httpd:
        Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()


def fetch(output: Path, url: str, sha256: str, *mirrors: str) -> int:
    words = ["--url", url, "--sha256", sha256, "--output", str(output)]
    options = ["--mirror", *mirrors[:1], "--mirror", *mirrors[1:]] if len(mirrors) > 1 else []
    return main(["corpus", "fetch", *words, *options])


@pytest.mark.parametrize("sha256", [SUM, SUM.upper(), "none"])
def test_fetch(server: str, tmp_path: Path, sha256: str) -> None:
    assert fetch(tmp_path / "new" / "f", f"{server}/good", sha256) == 0
    assert (tmp_path / "new" / "f").read_bytes() == CONTENT


def test_file_url_and_mirrors(server: str, tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(CONTENT)
    url = (tmp_path / "here").as_uri()
    assert fetch(tmp_path / "f", f"{server}/missing", SUM, f"{server}/short", "file:///no/such", url) == 0
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_a_right_file_is_not_fetched_again(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(CONTENT)
    assert fetch(tmp_path / "f", "http://127.0.0.1:9/nothing", SUM) == 0


def test_a_wrong_file_is_replaced(server: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"half")
    assert fetch(tmp_path / "f", f"{server}/good", SUM) == 0
    assert (tmp_path / "f").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("path", "sha256", "message"),
    [
        ("/good", "0" * 64, f"its sha256 is {SUM}, not {'0' * 64}"),
        ("/missing", SUM, "404"),
        ("/short", "none", f"ended after 500 of {len(CONTENT)} bytes"),
        ("/short", SUM, "ended after"),
        ("/good", "abc", '64 hexadecimal digits or "none"'),
    ],
)
def test_refused(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str, sha256: str, message: str
) -> None:
    assert fetch(tmp_path / "f", server + path, sha256) == 2
    assert message in capsys.readouterr().err.strip().split("\n")[-1]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("url", ["no url", "file:///no/such/file", "http://127.0.0.1:9/x", "gopher://x/y", "http://"])
def test_bad_addresses(tmp_path: Path, capsys: pytest.CaptureFixture[str], url: str) -> None:
    assert fetch(tmp_path / "f", url, "none") == 2
    assert "could not be fetched" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
