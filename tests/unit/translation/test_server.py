"""The HTTP interface on a socket: responses, invalid requests, concurrency and robustness."""

import http.client
import importlib.util
import ipaddress
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from http import HTTPStatus

import jsonschema
import pytest

from rnnsmt.cli import main
from rnnsmt.moses.ini import MosesIni
from rnnsmt.translation import api
from rnnsmt.translation import server as module
from rnnsmt.translation import translator as module_of_queue
from rnnsmt.translation.server import Server
from rnnsmt.translation.system import Description, System
from rnnsmt.translation.translator import FullError, Job, RateLimit, Translator, plain_address
from tests.conftest import ROOT

from ..search.twin import tiny_model

SPEC = importlib.util.spec_from_file_location("server_benchmark", ROOT / "benchmarks/server.py")
assert SPEC is not None
benchmark = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(benchmark)


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> System:
    """Create a tiny system."""
    directory = tmp_path_factory.mktemp("system")
    tiny_model(directory, 3)
    MosesIni.read(directory / "moses.ini").write(directory / "moses.ini")
    words = ["translation", "describe", "--name", "tiny", "--source-lang", "en", "--target-lang", "fr"]
    assert main([*words, "--output-dir", str(directory)]) == 0
    return System(directory)


def started(system: System, rate: int, names: Sequence[str] = ()) -> Server:
    """Start a server in a thread."""
    server = Server(system, "127.0.0.1", 0, rate, names=names)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture(scope="module")
def server(system: System) -> Iterator[Server]:
    """Yield a server with a high rate limit."""
    server = started(system, 1_000_000)
    yield server
    server.shutdown()
    server.server_close()


def ask(server: Server, path: str = "/translate", body: object = None, **headers: str) -> tuple[int, bytes]:
    """Send a request; return status and content. body: content to POST; None: GET."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    content = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    if content is not None:
        headers = {"Content-Type": "application/json", **headers}
    connection.request("GET" if body is None else "POST", path, content, headers)
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def test_translations(server, system):
    text = "a b c\n\nc d"
    status, content = ask(server, body={"text": text})
    assert status == 200
    expected = system.translate_all(text.split("\n"))
    assert json.loads(content) == {"translations": [{"translation": line} for line in expected]}
    status, content = ask(server, body={"text": text, "nbest": 2, "explain": True})
    found = json.loads(content)["translations"]
    assert [one["translation"] for one in found] == expected
    assert [len(one["nbest"]) for one in found] == [2, 0, 2]
    assert found[0]["nbest"][0]["translation"] == expected[0]
    assert " ".join(use["source"] for use in sorted(found[2]["phrases"], key=lambda use: use["first"])) == "c d"
    assert sum(found[0]["contributions"].values()) == pytest.approx(found[0]["score"])


def test_the_page_and_what_is_served(server):
    status, page = ask(server, "/?text=a")
    assert (status, page[:15]) == (200, b"<!DOCTYPE html>")
    assert b"http://" not in page  # no external resources
    assert b"https://" not in page
    assert b'<textarea id="text" maxlength="100000" dir="auto"' in page
    assert page.count(b"lang: ") == page.count(b'dir: "auto"') == 3  # text from right to left
    about = json.loads(ask(server, "/system")[1])
    assert {name: about[name] for name in ("name", "source", "target_name")} == {
        "name": "tiny",
        "source": "en",
        "target_name": "French",
    }
    assert about["features"][0].startswith("phrase table")
    assert about["warnings"] == []


def test_the_page_warns_of_filtered_tables(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "description", replace(system.description, filtered=True))
    (warning,) = json.loads(Server(system, "127.0.0.1", 0, 1).routes["/system"]()[2])["warnings"]
    assert warning.startswith("tiny contains phrase pairs for its dev and test sets only")


@pytest.mark.parametrize("path", ["/../system.json", "/moses.ini", "//etc/passwd", "/%2e%2e/moses.ini", "/translate"])
def test_no_file_is_given_out(server, path):
    status, content = ask(server, path)
    assert status == 404
    assert json.loads(content)["error"].startswith("no such route; available: GET /, /system, ")


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"x", 400, "is not valid JSON"),
        (b"\xff\xfe\x00", 400, "is not valid JSON"),
        (b"[" * 100_000, 400, "is not valid JSON"),
        ({"text": 1}, 400, "has no text"),
        ([], 400, "has no text"),
        ({"text": "a", "further": 1}, 400, "unknown key further"),
        (b'{"text": "a", "\\ud800": 1}', 400, "unknown key"),
        ({"text": "a\n" + "a " * 4001, "explain": True}, 400, "segment 2"),
        ({"text": "a", "nbest": 101}, 400, "nbest must be an integer from 0 to 100"),
        ({"text": "a", "nbest": True}, 400, "nbest must be an integer from 0 to 100"),
        ({"text": "a", "explain": "yes"}, 400, "explain must be true or false"),
        ({"text": "a\n" * 1001}, 400, "at most 1000 lines"),
        ({"text": "a " * 4001}, 400, "more than 4,000 words"),
        ({"text": "a" * 150_000}, 400, "the maximum is 100,000"),
        (b"a" * 10_000_000, 413, "at most 200,000 bytes"),
    ],
)  # fmt: skip
def test_refusals_have_error_messages(server, body, status, said):
    try:
        found, content = ask(server, body=body)
    except (ConnectionError, http.client.HTTPException):
        assert status == 413  # the connection is closed if the client continues to send
        return
    assert found == status
    assert said in json.loads(content)["error"]


def test_strange_text_is_translated(server):
    for text in ("\x00\x07", "a ||| b | c", "<script>&amp;", "\ud800", "🐟 a", " \t "):
        status, content = ask(server, body={"text": text})
        assert status == 200
        assert len(json.loads(content)["translations"]) == 1


def test_pages_of_others_do_not_reach_it(server):
    for name in ("evil.example", "evil.example:80", "127.0.0.1.evil.example"):
        assert ask(server, "/", Host=name)[0] == 403
        assert ask(server, body={"text": "a"}, Host=name)[0] == 403
    address = f"127.0.0.1:{server.server_address[1]}"
    assert ask(server, body={"text": "a"}, Host=address, Origin=f"http://{address}")[0] == 200
    assert ask(server, body={"text": "a"}, Origin="http://evil.example")[0] == 403
    assert ask(server, body={"text": "a"}, **{"Content-Type": "text/plain"})[0] == 415
    for name in ("localhost", "localhost:1", "[::1]:80", "[::1]", "127.0.0.2"):
        assert ask(server, "/", Host=name)[0] == 200


def test_a_thousand_at_once(server, system):
    expected = system.translate("a b")
    with ThreadPoolExecutor(200) as pool:
        answers = list(pool.map(lambda _: ask(server, body={"text": "a b"}), range(1000)))
    found = Counter(status for status, _ in answers)
    assert set(found) <= {200, 503}
    assert found[200] > 100
    assert {json.loads(content)["translations"][0]["translation"] for status, content in answers if status == 200} == {
        expected
    }
    assert ask(server, body={"text": "a b"})[0] == 200


def test_half_a_request_holds_nobody_up(server, monkeypatch):
    monkeypatch.setattr(module, "SECONDS", 0.5)
    address = server.server_address
    begin = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    with socket.create_connection(address) as one, socket.create_connection(address) as other:
        one.sendall(begin)
        other.sendall(b"POST /translate HTTP/1.1\r\nHo")
        assert ask(server, body={"text": "a"})[0] == 200
        one.settimeout(10)
        assert b"408" in one.recv(1000)
    with socket.create_connection(address) as slow:  # sending a byte from time to time does not extend the time limit
        slow.sendall(begin)
        slow.settimeout(10)
        with suppress(OSError):
            for _ in range(20):
                slow.sendall(b" ")
                time.sleep(0.1)
        assert b"408" in slow.recv(1000)


def test_a_client_that_does_not_receive_a_response_is_disconnected(server, monkeypatch):
    """Send nothing after a response that was sent in part: the client would read it as part of that response."""
    monkeypatch.setattr(module, "SECONDS", 0.5)
    monkeypatch.setitem(server.routes, "/large", lambda: (HTTPStatus.OK, "text/plain", bytes(50_000_000)))
    with socket.create_connection(server.server_address) as one:
        one.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(1.5)
        monkeypatch.setattr(module, "SECONDS", 30.0)
        one.settimeout(10)
        with suppress(OSError):
            one.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        received = 0
        with suppress(ConnectionResetError):
            while part := one.recv(1 << 20):
                received += len(part)
                assert b'{"status"' not in part
        assert received < 50_000_000


def test_long_requests_take_linear_time(server):
    """Parse requests in linear time: one thread answers all connections, so a slow request would delay them all."""
    start = time.process_time()
    body = {"q": "<" + "a" * 190_000, "source": "en", "target": "fr", "format": "html"}
    assert ask(server, body=body)[0] == 400
    with socket.create_connection(server.server_address) as one:
        one.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\na" + b" " * 16_000 + b"\r\n\r\n")
        assert one.recv(1000).startswith(b"HTTP/1.1 400 ")
    assert time.process_time() - start < 0.5
    for kind, marks in (("html", "<b>" * 60_000), ("text", "\n" * 90_000)):
        body |= {"q": f"{marks}a b", "format": kind, "alternatives": 99}
        query = api.read_query(api.JSON, json.dumps(body).encode(), Description("tiny", "en", "fr"))
        start = time.process_time()
        found = query.response([{"translation": "0", "nbest": [{"translation": f"{rank}"} for rank in range(100)]}])
        assert time.process_time() - start < 0.5
        assert found["alternatives"] == [f"{marks}{rank}" for rank in range(1, 100)]


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST /translate HTTP/1.1\r\nHost: localhost\r\n\r\n", b"411"),
        (b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}", b"400"),
        (b"POST /translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
        (b"PUT / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"501"),
        (b"nonsense\r\n\r\n", b"400"),
    ],
)  # fmt: skip
def test_what_the_protocol_does_not_allow(server, head, status):
    with socket.create_connection(server.server_address) as one:
        one.sendall(head)
        one.settimeout(10)
        answer = b"".join(iter(lambda: one.recv(10_000), b""))
    assert status in answer.split(b"\r\n")[0] or b"\r\n\r\n" not in answer  # HTTP/0.9 has no head
    assert b'{"error": ' in answer


def test_the_content_of_a_get_is_no_request(server):
    hidden = b"GET /system HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.create_connection(server.server_address) as one:
        one.sendall(b"GET /system HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(hidden) + hidden)
        one.settimeout(5)
        answer = b"".join(iter(lambda: one.recv(10_000), b""))
    assert answer.count(b"HTTP/1.1 ") == 1


def test_too_many_connections_are_reported(server):
    with ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(server.server_address)) for _ in range(300)]
        assert ask(server, "/health")[0] == 200  # the server accepts connections in order: it has accepted all of them
        told = 0
        for one in idle:
            one.settimeout(0.01)
            with suppress(OSError):
                told += b"too many connections" in one.recv(1000)
        assert told >= 300 - module.MOST_CONNECTIONS_OF_CLIENT
    for _ in range(100):
        with suppress(OSError, http.client.HTTPException):
            if ask(server, body={"text": "a"})[0] == 200:
                return
        time.sleep(0.05)
    raise AssertionError("it does not answer any more")


def test_a_failure_is_reported_and_the_next_request_is_answered(server, system, monkeypatch, capsys):
    monkeypatch.setattr(system, "explain_all", lambda *_: 1 / 0)
    status, content = ask(server, body={"text": "a", "explain": True})
    assert (status, json.loads(content)["error"]) == (500, "the translation failed; see the log")
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert ask(server, body={"text": "a"})[0] == 200


def test_one_bad_text_does_not_spoil_those_beside_it(server):
    with ThreadPoolExecutor(20) as pool:
        bodies = [{"text": "a " * 4001 if number % 2 else "a b"} for number in range(20)]
        found = [status for status, _ in pool.map(lambda body: ask(server, body=body), bodies)]
    assert found == [200, 400] * 10


def test_rate_of_an_address(system):
    server = started(system, 3)
    assert [ask(server, body={"text": "a"})[0] for _ in range(4)] == [200, 200, 200, 429]
    server.shutdown()
    server.server_close()
    limit = RateLimit(2)
    assert [limit.allows("x", now) for now in (0.0, 1.0, 2.0, 60.5, 60.6, 61.5)] == [
        True,
        True,
        False,
        True,
        False,
        True,
    ]
    assert limit.allows("y", 2.0)


def test_an_unexpected_failure_of_a_batch_is_answered(server, system, monkeypatch, capsys):
    monkeypatch.setattr(system, "translate_all", lambda *_: 1 / 0)
    assert ask(server, body={"text": "a"})[0] == 500
    monkeypatch.undo()
    assert ask(server, body={"text": "a"})[0] == 200


@pytest.mark.parametrize("head", ["Host: [", "Host: localhost\r\nOrigin: http://["])
def test_malformed_addresses_are_answered_and_logged(server, head, capsys):
    with socket.create_connection(server.server_address) as one:
        one.settimeout(10)
        one.sendall(f"GET / HTTP/1.1\r\n{head}\r\n\r\n".encode())
        assert b" 400 " in one.recv(10_000)
    assert "a malformed request was rejected: the Host or Origin" in capsys.readouterr().err


def test_damaged_requests_are_answered(server, capsys):
    found = benchmark.fuzz(server.server_address[1], 200, 7)
    assert not {"hang", "unanswered", "500"} & set(found)
    assert "Traceback" not in capsys.readouterr().err


def test_idle_connections_and_large_requests_hold_nobody_up(server, system):
    large = json.dumps({"text": "\n".join(["a b c d"] * 1000), "nbest": 100}).encode()
    head = (
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    )
    with ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(socket.create_connection(server.server_address))
        for _ in range(8):
            one = stack.enter_context(socket.create_connection(server.server_address))
            one.sendall(head % len(large) + large)
        assert ask(server, body={"text": "a"})[0] == 200
        assert server.translator.waiting() > 0  # the large jobs are still waiting
    for _ in range(600):
        if not server.translator.waiting():
            return
        time.sleep(0.1)
    raise AssertionError("abandoned requests are still translated")


def test_turns():
    """Lines are translated in turn, for every client and every job; the queue of a client is limited."""
    translator = Translator(None)  # type: ignore[arg-type]
    jobs = [Job("a", ["1", "2"]), Job("a", ["3", "4"]), Job("b", ["5", "6"]), Job("c", ["7"])]
    for job in jobs:
        translator.submit(job)
    translator.release(jobs[3])
    assert [job.lines[index] for job, index in translator._batch()] == ["1", "5", "3", "6", "2", "4"]
    assert translator.waiting() == 3
    for _ in range(module_of_queue.MOST_WAITING_OF_CLIENT):
        translator.submit(Job("d", ["1"]))
    with pytest.raises(FullError):
        translator.submit(Job("d", ["1"]))
    translator.submit(Job("e", ["1"]))


def test_a_stop_finishes_what_has_begun(system):
    server = started(system, 1_000_000)
    with ThreadPoolExecutor(40) as pool:
        answers = [pool.submit(ask, server, body={"text": "a b\n" * 1000}) for _ in range(40)]
        for _ in range(10_000):
            # only connections that were accepted are finished: all requests must have arrived, some must be unanswered
            begun = server.translator.waiting()
            if begun and begun + sum(one.done() for one in answers) >= 40:
                break
            time.sleep(0.001)
        server.shutdown()
        assert [one.result()[0] for one in answers] == [200] * 40
    with pytest.raises(ConnectionError):
        ask(server, "/health")


def test_health(server, monkeypatch):
    assert ask(server, "/health") == (200, b'{"status": "ok"}')
    monkeypatch.setattr(server, "is_stopping", True)
    assert ask(server, "/health") == (503, b'{"status": "stopping"}')


FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def test_requests_of_libretranslate_clients(server, system):
    """Requests of LibreTranslate clients are answered: JSON with all fields, a form, a list of HTML."""
    best = system.translate("a b")
    assert json.loads(ask(server, "/languages")[1])[0] == {"code": "en", "name": "English", "targets": ["fr"]}
    body = {"q": "a b", "source": "en", "target": "fr", "format": "text", "alternatives": 3, "api_key": ""}
    found = json.loads(ask(server, body=body)[1])
    assert found["translatedText"] == best
    others = [one.text for one in system.nbest("a b", 4)[1:]]
    assert found["alternatives"] == others
    status, content = ask(server, body=b"q=a+b%0A%0Ac&source=auto&target=fr&api_key=", **FORM)
    assert status == 200
    assert json.loads(content) == {
        "translatedText": f"{best}\n\n{system.translate('c')}",
        "detectedLanguage": {"language": "en", "confidence": 0.0},
    }
    body = {"q": ["<p class='x'> <b>a b</b></p><!-- c --><script>a</script>", ""], "source": "en", "target": "fr"}
    found = json.loads(ask(server, body={**body, "format": "html"})[1])["translatedText"]
    assert found == [f"<p class='x'> <b>{best}</b></p><!-- c --><script>a</script>", ""]
    marks = "<a title=\"it's > b\" href='>'>", "<img alt='>'/>", "<p it's>", '<p x=">'  # the last quotes are not closed
    for mark in marks:
        found = json.loads(ask(server, body={**body, "q": f"{mark}a b</a>", "format": "html"})[1])["translatedText"]
        assert found == f"{mark}{best}</a>"
    assert json.loads(ask(server, body={**body, "q": []})[1]) == {"translatedText": []}


RECORDED = (
    b"Accept-Encoding: identity\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n"
    b"Host: 127.0.0.1:5000\r\nUser-Agent: Python-urllib/3.11\r\nConnection: close\r\n\r\n%s"
)
"""What ``LibreTranslateAPI`` of libretranslatepy 2.1.4 sends after the request line, recorded from a socket."""


@pytest.mark.parametrize("is_split", [False, True])
@pytest.mark.parametrize("key", [b"", b"api_key=secret"])
def test_recorded_requests_of_the_python_client(server, system, key, is_split):
    """Recorded requests of the Python client are answered, with and without a key.

    They are `translate("a b c\\nc & d é", "en", "fr")`, `languages()` and `detect("a b c")`.
    """

    def replayed(line: bytes, body: bytes) -> tuple[int, object]:
        content = b"&".join(part for part in (body, key) if part)
        request = line + b" HTTP/1.1\r\n" + RECORDED % (len(content), content)
        head = request.index(b"\r\n\r\n") + 4
        with socket.create_connection(server.server_address) as one:
            one.settimeout(10)
            for part in (request[:head], request[head:]) if is_split else (request,):
                one.sendall(part)
                time.sleep(0.05 * is_split)
            answer = http.client.HTTPResponse(one)
            answer.begin()
            assert answer.getheader("Content-Type") == "application/json"
            assert answer.getheader("Connection") == "close"
            return answer.status, json.loads(answer.read())

    lines = system.translate_all(["a b c", "c & d é"])
    translated = replayed(b"POST /translate", b"q=a+b+c%0Ac+%26+d+%C3%A9&source=en&target=fr")
    assert translated == (200, {"translatedText": "\n".join(lines)})
    status, known = replayed(b"GET /languages", b"")
    assert (status, [one["code"] for one in known]) == (200, ["en", "fr"])
    status, error = replayed(b"POST /detect", b"q=a+b+c")
    assert status == 404
    assert error["error"].startswith("no such route; available: GET /, ")
    assert error["error"].endswith(", POST /translate")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"source": "de"}, "source must be en or auto"),
        ({"target": None}, "and target must be fr"),
        ({"q": 1}, "q must be a string or a list"),
        ({"q": ["a"] * 1001}, "at most 1000 lines"),
        ({"format": "pdf"}, "format must be text or html"),
        ({"alternatives": 100}, "alternatives must be an integer from 0 to 99"),
        ({"alternatives": -1}, "alternatives must be an integer from 0 to 99"),
    ],
)
def test_what_libretranslate_clients_are_refused(server, change, said):
    status, content = ask(server, body={"q": "a", "source": "en", "target": "fr", **change})
    assert status == 400
    assert said in json.loads(content)["error"]


def test_responses_are_as_specified(server):
    document = json.loads(ask(server, "/spec")[1])
    assert document["components"]["schemas"]["LibreTranslateQuery"]["properties"]["source"]["enum"] == ["en", "auto"]

    def check(name: str, content: bytes) -> None:
        schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
        jsonschema.validate(json.loads(content), schema)

    check("Translations", ask(server, body={"text": "a b", "explain": True, "nbest": 2})[1])
    libretranslate = {"q": ["a b"], "source": "auto", "target": "fr", "alternatives": 2}
    check("LibreTranslateTranslation", ask(server, body=libretranslate)[1])
    check("System", ask(server, "/system")[1])
    check("Health", ask(server, "/health")[1])
    check("Error", ask(server, "/none")[1])
    assert set(document["paths"]) == {"/translate", "/languages", "/system", "/health", "/spec"}


def test_addresses_behind_a_proxy(system):
    server = Server(system, "127.0.0.1", 0, 10, [ipaddress.ip_network("10.0.0.0/8")], ["Translate.example"])
    server.server_close()
    named = [(b"x-forwarded-for", b"6.6.6.6, 1.2.3.4"), (b"x-forwarded-for", b"10.1.1.1")]
    assert server.client_of("10.0.0.1", named) == "1.2.3.4"  # 6.6.6.6 may be forged by the client
    assert server.client_of("9.9.9.9", named) == "9.9.9.9"
    assert server.client_of("10.0.0.1", [(b"x-forwarded-for", b"1.2.3.4, nonsense")]) == "10.0.0.1"
    assert server.client_of("10.0.0.1", []) == "10.0.0.1"
    assert plain_address("::ffff:1.2.3.4") == "1.2.3.4"
    server = started(system, 10, names=["Translate.example"])
    assert ask(server, "/", Host="translate.example")[0] == 200
    assert ask(server, "/", Host="evil.example")[0] == 403
    server.shutdown()
