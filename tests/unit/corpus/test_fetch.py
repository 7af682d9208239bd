"""``rnnsmt corpus fetch``: complete files or none, and downloads in several parts."""

import hashlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from rnnsmt.cli import main
from rnnsmt.corpus import download

CONTENT = bytes(range(256)) * 40
SUM = hashlib.sha256(CONTENT).hexdigest()
OTHER = CONTENT[::-1]


class Site(BaseHTTPRequestHandler):
    """HTTP server of one file; the words of the path select its behaviour.

    ``ranges``: supports range requests. ``cutN``: closes the connection after N bytes. ``firstN``: only the first
    response has N bytes. ``busyN``: responds with 503 N times first. ``other``: serves another file. ``moved``:
    redirects to the rest of the path. ``N``: responds with this status. ``asked`` lists the requests.
    """

    asked: list[tuple[str, str | None]] = []  # noqa: RUF012, one for all answers

    def do_GET(self) -> None:
        self.close_connection = True
        times = sum(path == self.path for path, _ in self.asked)
        self.asked.append((self.path, self.headers["Range"]))
        words = self.path.strip("/").split("/")
        numbers = {word.rstrip("0123456789"): int(word.lstrip("abcdefghijklmnopqrstuvwxyz") or 0) for word in words}
        if "moved" in words:
            self.send_response(302)
            self.send_header("Location", "/" + self.path.split("/moved/")[1])
            self.end_headers()
            return
        if words[0].isdecimal() or times < numbers.get("busy", 0):
            self.send_error(int(words[0]) if words[0].isdecimal() else 503)
            return
        content = OTHER if "other" in words else CONTENT
        asked = self.headers["Range"]
        begin = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and "ranges" in words else 0
        if begin >= len(content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            self.end_headers()
            return
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        most = numbers.get("cut")
        if not times:
            most = numbers.get("first", most)
        self.wfile.write(content[begin:][:most])

    def log_message(self, *_args: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as httpd:
        Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()


@pytest.fixture
def server(address: str) -> str:
    Site.asked.clear()
    return address


@pytest.fixture(autouse=True)
def one_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "RETRIES", 1)


def part(output: Path, key: str) -> Path:
    """Return the file of an incomplete download."""
    return output.with_name(f"{output.name}.{key[:10]}.part")


def fetch(output: Path, url: str, sha256: str, *mirrors: str) -> int:
    words = ["--url", url, "--sha256", sha256, "--output", str(output)]
    options = ["--mirror", *mirrors[:1], "--mirror", *mirrors[1:]] if len(mirrors) > 1 else ["--mirror", *mirrors]
    return main(["corpus", "fetch", *words, *(options if mirrors else [])])


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize("sha256", [SUM, SUM.upper(), "none"])
@pytest.mark.parametrize("path", ["/whole", "/moved/ranges", "/busy1"])
def test_fetch(server: str, tmp_path: Path, path: str, sha256: str) -> None:
    """A file is downloaded through redirects and from a server that is busy at first."""
    assert fetch(tmp_path / "new" / "f", server + path, sha256) == 0
    assert (tmp_path / "new" / "f").read_bytes() == CONTENT
    assert names(tmp_path / "new") == ["f"]


@pytest.mark.parametrize("sha256", [SUM, "none"])
def test_connections_that_break_off(server: str, tmp_path: Path, sha256: str) -> None:
    """After an interrupted connection, only the missing rest is requested, also after a redirect."""
    assert fetch(tmp_path / "f", f"{server}/moved/ranges/cut3000", sha256) == 0
    assert (tmp_path / "f").read_bytes() == CONTENT
    ranges = [asked for path, asked in Site.asked if "moved" not in path]
    assert ranges == [None, "bytes=3000-", "bytes=6000-", "bytes=9000-"]
    assert names(tmp_path) == ["f"]


def test_without_ranges_it_starts_again(server: str, tmp_path: Path) -> None:
    assert fetch(tmp_path / "f", f"{server}/first4000", "none") == 0
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert [asked for _, asked in Site.asked] == [None, "bytes=4000-", None]


def test_the_next_run_resumes(server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The next run resumes an incomplete download, from a mirror if the SHA-256 is known."""
    part(tmp_path / "f", SUM).write_bytes(CONTENT[:5000])
    assert fetch(tmp_path / "f", f"{server}/404", SUM) == 2
    assert f"5,000 bytes are kept in {part(tmp_path / 'f', SUM)}" in capsys.readouterr().err
    Site.asked.clear()
    assert fetch(tmp_path / "f", f"{server}/404", SUM, f"{server}/ranges") == 0
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert Site.asked == [("/404", "bytes=5000-"), ("/ranges", "bytes=5000-")]
    assert names(tmp_path) == ["f"]


def test_a_checksum_detects_mixed_versions(server: str, tmp_path: Path) -> None:
    """If the SHA-256 of a download that an earlier run began is wrong, the file is downloaded again."""
    part(tmp_path / "f", SUM).write_bytes(OTHER[:5000])
    assert fetch(tmp_path / "f", f"{server}/ranges", SUM) == 0
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert [asked for _, asked in Site.asked] == ["bytes=5000-", None]


@pytest.mark.parametrize("content", [CONTENT, CONTENT + b"more"])
@pytest.mark.parametrize("place", ["server", "disk"])
def test_killed_after_the_last_byte(server: str, tmp_path: Path, place: str, content: bytes) -> None:
    (tmp_path / "here").write_bytes(CONTENT)
    part(tmp_path / "f", SUM).write_bytes(content)
    assert fetch(tmp_path / "f", f"{server}/ranges" if place == "server" else (tmp_path / "here").as_uri(), SUM) == 0
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_mirrors_in_their_order(server: str, tmp_path: Path) -> None:
    """Mirrors are tried in order: a busy server, a missing file, a wrong file, a local file."""
    (tmp_path / "here [1]").write_bytes(CONTENT)
    url = (tmp_path / "here [1]").as_uri()
    mirrors = (f"{server}/404", f"{server}/other", "file:///no/such", url, f"{server}/whole")
    assert fetch(tmp_path / "f", f"{server}/busy99", SUM, *mirrors) == 0
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert [path for path, _ in Site.asked] == ["/busy99"] * 2 + ["/404", "/other"]


def test_a_right_file_is_not_fetched_again(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(CONTENT)
    assert fetch(tmp_path / "f", "http://127.0.0.1:9/nothing", SUM) == 0


def test_a_wrong_file_is_replaced(server: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"half")
    assert fetch(tmp_path / "f", f"{server}/whole", SUM) == 0
    assert (tmp_path / "f").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("path", "sha256", "message"),
    [
        ("/whole", "0" * 64, f"its sha256 is {SUM}, not {'0' * 64}"),
        ("/404", SUM, "404"),
        ("/503", "none", "503"),
    ],
)
def test_refused(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str, sha256: str, message: str
) -> None:
    assert fetch(tmp_path / "f", server + path, sha256) == 2
    assert message in capsys.readouterr().err.strip().split("\n")[-1]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("url", ["no url", "file:///no/such/file", "http://127.0.0.1:9/x", "http://"])
def test_bad_addresses(tmp_path: Path, capsys: pytest.CaptureFixture[str], url: str) -> None:
    assert fetch(tmp_path / "f", url, "none") == 2
    assert f"({url}: curl: (" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_without_curl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert fetch(tmp_path / "f", "http://127.0.0.1:9/x", "none") == 2
    assert "http://127.0.0.1:9/x cannot be downloaded, because curl is not installed" in capsys.readouterr().err
