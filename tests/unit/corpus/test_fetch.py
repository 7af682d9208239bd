"""``rnnsmt corpus fetch``: complete files or none, and downloads in several parts."""

import fcntl
import hashlib
import subprocess
import sys
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

    ``ranges``: supports range requests; ``tagged``: also sends an ETag. ``cutN``: closes the connection after N bytes.
    ``firstN``: only the first response has N bytes. ``busyN``: responds with 503 N times first. ``other``: serves
    another file. ``updated``: serves the other file from the second response on. ``moved``: redirects to the rest of
    the path. ``N``: responds with this status. ``asked`` lists the requests.
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
        content = OTHER if "other" in words or ("updated" in words and times) else CONTENT
        tag = f'"{hashlib.sha256(content).hexdigest()[:8]}"'
        begin = 0
        asked = self.headers["Range"]
        if asked and "ranges" in words and self.headers["If-Range"] in (None, tag):
            begin = int(asked.removeprefix("bytes=").removesuffix("-"))
        if begin >= len(content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            self.end_headers()
            return
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        if "tagged" in words:
            self.send_header("ETag", tag)
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
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the list of pauses between attempts; ``time.sleep`` is replaced."""
    made: list[float] = []
    monkeypatch.setattr(download.time, "sleep", made.append)
    return made


def fetch(output: Path, url: str, sha256: str, *mirrors: str) -> int:
    words = ["--url", url, "--sha256", sha256, "--output", str(output)]
    options = ["--mirror", *mirrors[:1], "--mirror", *mirrors[1:]] if len(mirrors) > 1 else ["--mirror", *mirrors]
    return main(["corpus", "fetch", *words, *(options if mirrors else [])])


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize("sha256", [SUM, SUM.upper(), "none"])
@pytest.mark.parametrize("path", ["/whole", "/moved/ranges/tagged", "/busy2"])
def test_fetch(server: str, tmp_path: Path, path: str, sha256: str) -> None:
    """A file is downloaded through redirects and from a server that is busy at first."""
    assert fetch(tmp_path / "new" / "f", server + path, sha256) == 0
    assert (tmp_path / "new" / "f").read_bytes() == CONTENT
    assert names(tmp_path / "new") == ["f"]


@pytest.mark.parametrize("sha256", [SUM, "none"])
def test_connections_that_break_off(server: str, tmp_path: Path, pauses: list[float], sha256: str) -> None:
    """After an interrupted connection, only the missing rest is requested, also after a redirect."""
    path = "/moved/ranges/tagged/cut3000"
    assert fetch(tmp_path / "f", server + path, sha256) == 0
    assert (tmp_path / "f").read_bytes() == CONTENT
    ranges = [asked for path, asked in Site.asked if "moved" not in path]
    assert ranges == [None, "bytes=3000-", "bytes=6000-", "bytes=9000-"]
    assert pauses == list(download.PAUSES[:3])
    assert names(tmp_path) == ["f"]


def test_an_attempt_that_receives_data_is_not_a_failure(
    server: str, tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attempt that receives data is not counted as a failure, and the pauses start again with the shortest."""
    monkeypatch.setattr(download, "BLOCK", 100)
    assert fetch(tmp_path / "f", f"{server}/ranges/tagged/cut500", "none") == 0
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert pauses == [download.PAUSES[0]] * (len(CONTENT) // 500)


@pytest.mark.parametrize("path", ["/first4000", "/tagged/first4000", "/ranges/first4000"])
def test_without_ranges_or_version_it_starts_again(server: str, tmp_path: Path, path: str) -> None:
    """A download starts from the beginning if the server does not support ranges or sends no version of the file."""
    assert fetch(tmp_path / "f", server + path, "none") == 0
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert [asked for _, asked in Site.asked] == [None, "bytes=4000-" if "tagged" in path else None]


def test_a_file_that_changes_on_the_server(server: str, tmp_path: Path) -> None:
    """If the file changes on the server, the new file is downloaded completely."""
    assert fetch(tmp_path / "f", f"{server}/ranges/tagged/updated/first4000", "none") == 0
    assert (tmp_path / "f").read_bytes() == OTHER


def test_a_checksum_detects_mixed_versions(server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If the SHA-256 of a resumed download is wrong and the server sends no version, the file is downloaded again."""
    url = f"{server}/ranges/updated/first4000"
    assert fetch(tmp_path / "f", url, hashlib.sha256(OTHER).hexdigest()) == 0
    assert (tmp_path / "f").read_bytes() == OTHER
    assert "downloading again from the beginning" in capsys.readouterr().err
    assert [asked for _, asked in Site.asked] == [None, "bytes=4000-", None]


def test_the_next_run_resumes(server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The next run resumes an incomplete download, from a mirror if the SHA-256 is known."""
    assert fetch(tmp_path / "f", f"{server}/tagged/cut5000", SUM) == 2
    assert names(tmp_path) == ["f.part", "f.part.json"]
    assert (tmp_path / "f.part").read_bytes() == CONTENT[:5000]
    assert f"5,000 bytes are kept in {tmp_path}/f.part" in capsys.readouterr().err
    Site.asked.clear()
    assert fetch(tmp_path / "f", f"{server}/404", SUM, f"{server}/ranges") == 0
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert Site.asked == [("/404", "bytes=5000-"), ("/ranges", "bytes=5000-")]
    assert names(tmp_path) == ["f"]


def test_another_address_without_a_checksum_starts_again(server: str, tmp_path: Path) -> None:
    assert fetch(tmp_path / "f", f"{server}/tagged/cut5000", "none") == 2
    assert fetch(tmp_path / "f", f"{server}/ranges/tagged/other", "none") == 0
    assert (tmp_path / "f").read_bytes() == OTHER


def test_killed_after_the_last_byte(server: str, tmp_path: Path) -> None:
    """A complete temporary file of a killed process is used; one that is too long is discarded."""
    (tmp_path / "f.part").write_bytes(CONTENT)
    (tmp_path / "f.part.json").write_text("damaged")
    assert fetch(tmp_path / "f", f"{server}/ranges", SUM) == 0
    assert (tmp_path / "f").read_bytes() == CONTENT
    (tmp_path / "f.part").write_bytes(CONTENT + b"more")
    assert fetch(tmp_path / "g", f"{server}/ranges", SUM) == 0
    (tmp_path / "h.part").write_bytes(CONTENT + b"more")
    assert fetch(tmp_path / "h", f"{server}/ranges", SUM) == 0
    assert (tmp_path / "h").read_bytes() == CONTENT


def test_mirrors_in_their_order(server: str, tmp_path: Path, pauses: list[float]) -> None:
    """Mirrors are tried in order: a busy server, a missing file, a wrong file, a local file."""
    (tmp_path / "here").write_bytes(CONTENT)
    url = (tmp_path / "here").as_uri()
    mirrors = (f"{server}/404", f"{server}/other", "file:///no/such", url, f"{server}/whole")
    assert fetch(tmp_path / "f", f"{server}/busy99", SUM, *mirrors) == 0
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert [path for path, _ in Site.asked] == ["/busy99"] * 5 + ["/404", "/other"]
    assert pauses == list(download.PAUSES)


def test_two_processes(server: str, tmp_path: Path) -> None:
    """A second process waits for the first one and uses its file."""
    output = tmp_path / "f"
    with (tmp_path / "f.part").open("ab") as part:
        fcntl.flock(part, fcntl.LOCK_EX)
        code = "import sys; from rnnsmt.cli import main; sys.exit(main(sys.argv[1:]))"
        words = ["corpus", "fetch", "--url", f"{server}/whole", "--sha256", "none", "--output", str(output)]
        with subprocess.Popen([sys.executable, "-c", code, *words], stderr=subprocess.PIPE, text=True) as second:
            assert second.stderr is not None
            assert (
                second.stderr.readline() == f"another process is downloading {tmp_path}/f.part; waiting until it ends\n"
            )
            part.write(OTHER)
            (tmp_path / "f.part").rename(output)
            fcntl.flock(part, fcntl.LOCK_UN)
            assert second.wait(60) == 0
            assert "from another process" in second.stderr.read()
    assert output.read_bytes() == OTHER
    assert not Site.asked
    assert names(tmp_path) == ["f"]


def test_a_full_disk(server: str, tmp_path: Path) -> None:
    """On a full disk, the error says where the incomplete download is kept; the next run downloads the rest."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); "
        "from rnnsmt.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    words = ["corpus", "fetch", "--url", f"{server}/ranges/tagged", "--sha256", "none", "--output", str(tmp_path / "f")]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"{tmp_path}/f: cannot be written (File too large); the incomplete download is kept in" in done.stderr
    assert (tmp_path / "f.part").read_bytes() == CONTENT[:4096]
    assert main(words) == 0
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert Site.asked[-1][1] == "bytes=4096-"


def test_a_right_file_is_not_fetched_again(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(CONTENT)
    assert fetch(tmp_path / "f", "http://127.0.0.1:9/nothing", SUM) == 0


def test_a_wrong_file_is_replaced(server: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"half")
    assert fetch(tmp_path / "f", f"{server}/whole", SUM) == 0
    assert (tmp_path / "f").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("path", "sha256", "message", "left"),
    [
        ("/whole", "0" * 64, f"its sha256 is {SUM}, not {'0' * 64}", []),
        ("/404", SUM, "404", []),
        ("/503", "none", "503", []),
        ("/cut500", "none", f"ended after 500 of {len(CONTENT)} bytes", ["f.part", "f.part.json"]),
        ("/cut500", SUM, "ended after", ["f.part", "f.part.json"]),
        ("/whole", "abc", '64 hexadecimal digits or "none"', []),
    ],
)
def test_refused(
    server: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    path: str,
    sha256: str,
    message: str,
    left: list[str],
) -> None:
    assert fetch(tmp_path / "f", server + path, sha256) == 2
    assert message in capsys.readouterr().err.strip().split("\n")[-1]
    assert names(tmp_path) == left


@pytest.mark.parametrize("url", ["no url", "file:///no/such/file", "http://127.0.0.1:9/x", "gopher://x/y", "http://"])
def test_bad_addresses(tmp_path: Path, capsys: pytest.CaptureFixture[str], url: str) -> None:
    assert fetch(tmp_path / "f", url, "none") == 2
    assert "cannot be downloaded" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
