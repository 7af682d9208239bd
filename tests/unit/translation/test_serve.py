"""The HTTP interface: responses, rejections, fair turns, LibreTranslate's format, and a process that is stopped."""

import asyncio
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import jsonschema
import pytest
from fastapi.testclient import TestClient

from rnnsmt.translation import request_queue
from rnnsmt.translation.markup import alternatives, html_template, plain_template
from rnnsmt.translation.request_queue import FullError, Job, LineTranslation, RequestQueue
from rnnsmt.translation.serve import application
from rnnsmt.translation.system import System

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def client_of(system: System, names: Sequence[str] = ()) -> TestClient:
    """Return a client of a local server; to be used as a context manager."""
    return TestClient(application(system, names), "http://localhost", raise_server_exceptions=False)


@pytest.fixture(scope="module")
def client(system: System) -> Iterator[TestClient]:
    """Yield a client of a server."""
    with client_of(system) as opened:
        yield opened


def test_translations(client, system):
    text = "a b c\n\nc d"
    answer = client.post("/translate", json={"text": text})
    assert answer.status_code == 200
    expected = system.translate_all(text.split("\n"))
    assert answer.json() == {"translations": [{"translation": line} for line in expected]}
    found = client.post("/translate", json={"text": text, "nbest": 2, "explain": True}).json()["translations"]
    assert [one["translation"] for one in found] == expected
    assert [len(one["nbest"]) for one in found] == [2, 0, 2]
    assert found[0]["nbest"][0]["translation"] == expected[0]
    assert " ".join(use["source"] for use in sorted(found[2]["phrases"], key=lambda use: use["first"])) == "c d"
    assert set(found[2]["phrases"][0]) == {"first", "last", "source", "target", "scores", "runners_up", "evidence"}
    assert sum(found[0]["contributions"].values()) == pytest.approx(found[0]["score"])


def test_the_page_and_what_is_served(client):
    answer = client.get("/?text=a")
    assert (answer.status_code, answer.text[:15]) == (200, "<!DOCTYPE html>")
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert "http://" not in answer.text  # no external resources
    assert "https://" not in answer.text
    assert '<textarea id="text" maxlength="100000" dir="auto"' in answer.text
    assert answer.text.count("lang: ") == answer.text.count('dir: "auto"') == 3  # text from right to left
    about = client.get("/system").json()
    assert {name: about[name] for name in ("name", "source", "target_name")} == {
        "name": "tiny",
        "source": "en",
        "target_name": "French",
    }
    assert about["features"][0].startswith("phrase table")
    assert about["warnings"] == []
    assert client.get("/health").json() == {"status": "ok"}
    answer = client.get("/docs")
    assert answer.status_code == 200
    assert "POST /translate" in answer.text and "alternatives" in answer.text
    assert "<script" not in answer.text and "//" not in answer.text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize("path", ["/", "/health", "/languages", "/system", "/spec", "/docs", "/none"])
def test_head_is_get_without_a_body(client, path):
    got, head = client.get(path), client.head(path)
    assert (head.status_code, head.headers["Content-Length"], head.content) == (
        got.status_code,
        got.headers["Content-Length"],
        b"",
    )


def test_the_page_warns_of_filtered_tables(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "description", replace(system.description, filtered=True))
    (warning,) = client_of(system).get("/system").json()["warnings"]
    assert warning.startswith("tiny contains phrase pairs for its dev and test sets only")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/%2e%2e/system.json", 404),
        ("/moses.ini", 404),
        ("//etc/passwd", 404),
        ("/model-card", 404),
        ("/translate", 405),
    ],
)
def test_no_file_is_given_out(client, path, status):
    answer = client.get(path)
    assert answer.status_code == status
    assert set(answer.json()) == {"error"}


def test_documents_of_a_system(system, tmp_path, monkeypatch):
    directory = tmp_path / "results/systems/tiny/run1"
    directory.mkdir(parents=True)
    (directory / "MODEL_CARD.md").write_text("# tiny: é")
    (tmp_path / "results/provenance.json").write_text("{}")
    monkeypatch.setattr(system, "directory", directory)
    client = client_of(system)
    assert [one["path"] for one in client.get("/system").json()["documents"]] == ["model-card", "provenance"]
    assert client.get("/model-card").text == "# tiny: é"
    assert client.get("/model-card").headers["Content-Type"] == "text/plain; charset=utf-8"
    assert client.get("/provenance").json() == {}


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"x", 400, "is not valid application/json"),
        (b"\xff\xfe\x00", 400, "is not valid application/json"),
        (b"[" * 100_000, 400, "is not valid application/json"),
        ({}, 400, "text: "),
        ({"text": "a", "further": 1}, 400, "further: "),
        (b'{"text": "a", "\\ud800": 1}', 400, ""),
        (b'{"text": "\\ud800"}', 400, "is not valid application/json"),
        ({"text": "a\n" + "a " * 4001, "explain": True}, 400, "segment 2"),
        ({"text": "a", "nbest": 101}, 400, "nbest: "),
        ({"text": "a\n" * 1001}, 400, "at most 1000 lines"),
        ({"text": "a " * 4001}, 400, "more than 4,000 words"),
        ({"text": "a" * 150_000}, 400, "the maximum is 100,000"),
        (b"a" * 10_000_000, 413, "at most 200,000 bytes"),
    ],
)  # fmt: skip
def test_refusals_have_error_messages(client, body, status, said):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = client.post("/translate", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == status
    assert set(answer.json()) == {"error"}
    assert said in answer.json()["error"]


@pytest.mark.parametrize("text", ["\x00\x07", "a ||| b | c", "<script>&amp;", "🐟 a", " \t "])
def test_strange_text_is_translated(client, text):
    answer = client.post("/translate", json={"text": text})
    assert answer.status_code == 200
    assert len(answer.json()["translations"]) == 1


@pytest.mark.parametrize("more", [{}, {"alternatives": 2}])
def test_times_of_subtitles_are_not_translated(client, system, more):
    times = [
        "00:00:02,000 --> 00:00:11,400",
        "00:02.000 --> 00:11.400 align:start",
        "[00:00:02.000 --> 00:00:03.000]  ",
    ]
    texts = [times[0] + "\r\n" + times[1] + "\na b", times[2] + "a b", "a 00:00:02,000 --> 00:00:11,400 b"]
    answer = client.post("/translate", json={"q": texts, "source": "en", "target": "fr", **more}).json()
    plain = system.translate("a b")
    assert answer["translatedText"][:2] == [f"{times[0]}\r\n{times[1]}\n{plain}", times[2] + plain]
    assert len(answer["translatedText"][2].split("\n")) == 1
    for one in answer.get("alternatives", [[], []])[:2]:
        assert all("-->" in text for text in one)
    asked = {"text": times[0], "explain": True}
    assert client.post("/translate", json=asked).json()["translations"][0]["translation"] == times[0]
    assert system.translate(times[0] + "\r") == times[0]


def test_pages_of_others_do_not_reach_it(client, system):
    def status(**headers: str) -> int:
        return client.post("/translate", json={"text": "a"}, headers=headers).status_code

    for name in ("evil.example", "evil.example:80", "127.0.0.1.evil.example"):
        assert status(Host=name) == 403
        for path in ("/", "/docs", "/spec", "/health", "/none"):
            assert client.get(path, headers={"Host": name}).status_code == 403
    assert status(Host="127.0.0.1:8000", Origin="http://127.0.0.1:8000") == 200
    assert status(Origin="http://evil.example") == status(Origin="null") == status(Origin="") == 403
    assert status(**{"Content-Type": "text/plain"}) == 415
    assert status(Host="[") == status(Origin="http://[") == 400
    for name in ("localhost", "localhost:1", "[::1]:80", "[::1]", "127.0.0.2"):
        assert status(Host=name) == 200
    named = client_of(system, names=["Translate.example", "abc"])
    assert named.get("/", headers={"Host": "translate.example"}).status_code == 200
    extension = {"Origin": "chrome-extension://abc"}  # of a browser extension, with its ID
    assert named.get("/", headers=extension).status_code == 200
    assert "origin chrome-extension://abc; to allow" in client.get("/", headers=extension).json()["error"]
    assert named.get("/", headers={"Host": "evil.example"}).status_code == 403


def test_long_requests_take_linear_time(client):
    """Parse requests in linear time: one thread answers all connections, so a slow request would delay them all."""
    start = time.process_time()
    body = {"q": "<" + "a" * 190_000, "source": "en", "target": "fr", "format": "html"}
    assert client.post("/translate", json=body).status_code == 400
    assert time.process_time() - start < 0.5
    for template_of, marks in (
        (html_template, "<b>" * 60_000),
        (html_template, "</b>" * 60_000),
        (html_template, "<code>" * 30_000 + "</p>" * 10_000 + "</code>" * 30_000),
        (html_template, "<p translate" + "='" * 90_000 + ">"),
        (html_template, "<pre>" + "\n" * 90_000 + "</pre>"),
        (plain_template, "\n" * 90_000),
    ):
        start = time.process_time()
        found = alternatives(template_of(f"{marks}a b", []), [[f"{rank}" for rank in range(100)]], 99)
        assert time.process_time() - start < 0.5
        assert found == [f"{marks}{rank}" for rank in range(1, 100)]


@pytest.mark.parametrize(
    ("text", "lines", "result"),
    [
        ("<p>in the <b>harbour</b>.</p>", ["in the harbour."], "<p><b>0</b></p>"),
        ("is <i>red &amp; <B class='x'>blue</B></i> ", ["is red & blue"], "<i><B class='x'>0</B></i> "),
        ("un<em>believ</em>able", ["unbelievable"], "<em>0</em>"),
        ("<a href='x'>See</a> the <u>x</u> now", ["See the x now"], "<a href='x'><u>0</u></a>"),
        ("<b>one</b> two <i>three</i>", ["one two three"], "<b></b><i>0</i>"),
        ("a <b>b<br>c</b> d", ["a b", "c d"], "<b>0<br>1</b>"),
        ("<a>Home</a> <a>News</a><a>b</a>", ["Home", "News", "b"], "<a>0</a> <a>1</a><a>2</a>"),
        ("<td>a</td><td> <b> b </b> </td>", ["a", "b"], "<td>0</td><td> <b> 1 </b> </td>"),
        ("<b></b> <i>&nbsp;</i>", [], "<b></b> <i>&nbsp;</i>"),
        ("Use <code>ls <b>-l</b></code> to list", ["Use", "to list"], "0 <code>ls <b>-l</b></code> 1"),
        ("See <a translate='no'>Acme</a> now", ["See", "now"], "0 <a translate='no'>Acme</a> 1"),
        ("<DIV TRANSLATE=NO>a<DIV>b</DIV></DIV> c", ["c"], "<DIV TRANSLATE=NO>a<DIV>b</DIV></DIV> 0"),
        (
            "<ul><li translate='no'>a<ul><li>b</ul>c<li>d</ul>",
            ["d"],
            "<ul><li translate='no'>a<ul><li>b</ul>c<li>0</ul>",
        ),
        ("<p translate=no>a<p>b", ["b"], "<p translate=no>a<p>0"),
        ("<!-->a<!--->b<!-- c --!>d", ["a", "b", "d"], "<!-->0<!--->1<!-- c --!>2"),
        ("<p title='translate=no'>a</p>", ["a"], "<p title='translate=no'>0</p>"),
        ("<p translate='yes'>a</p><img translate='no'>b", ["a", "b"], "<p translate='yes'>0</p><img translate='no'>1"),
        ("<p>a <time>noon</p> b", ["a", "b"], "<p>0 <time>noon</p> 1"),
        ("<code>a", [], "<code>a"),
        ("<code/>a", ["a"], "<code/>0"),
        ("<pre>one two\n  <b>three</b>\r\n\nfour</pre>", ["one two", "three", "four"], None),
        ("<pre>a</pre> b\nc", ["a", "b c"], "<pre>0</pre> 1"),
    ],
)
def test_tags_inside_a_sentence(text, lines, result):
    found = []
    template = html_template(text, found)
    assert found == lines
    if result is None:
        result = text
        for number, line in enumerate(lines):
            result = result.replace(line, f"{number}")
    assert "".join(map(str, template)) == result


def test_a_failure_is_reported_and_the_next_request_is_answered(client, system, monkeypatch):
    monkeypatch.setattr(system, "explain_all", lambda *_, **__: 1 / 0)
    answer = client.post("/translate", json={"text": "a", "explain": True})
    assert (answer.status_code, answer.json()) == (500, {"error": "the translation failed; see the log"})
    assert client.post("/translate", json={"text": "a"}).status_code == 200


def test_one_bad_text_does_not_spoil_those_beside_it(client):
    with ThreadPoolExecutor(20) as pool:
        bodies = [{"text": "a " * 4001 if number % 2 else "a b"} for number in range(20)]
        found = [one.status_code for one in pool.map(lambda body: client.post("/translate", json=body), bodies)]
    assert found == [200, 400] * 10


class Recorder:
    """A system that returns the lines, and records its searches."""

    def __init__(self) -> None:
        self.searches: list[list[str]] = []

    def translate_all(self, lines: list[str], _first: int) -> list[str]:
        """Return the lines."""
        self.searches.append([line[:1] for line in lines])
        return lines

    def nbest(self, line: str, _n: int, _first: int) -> list[object]:
        """Return no translation."""
        self.searches.append([line])
        return []


def str_of(line: LineTranslation) -> str:
    """Return the translation."""
    return line.translation


def test_turns():
    """Lines are taken in turn from every job, up to the cost of a batch; those of abandoned jobs are skipped."""

    async def searches() -> list[list[str]]:
        system = Recorder()
        queue = RequestQueue(system)  # type: ignore[arg-type]
        jobs = [
            *(
                Job(lines, pack=str_of)
                for lines in (["1", "2", "x" * request_queue.BATCH_COST, "3"], ["4", "5"], ["6"])
            ),
            Job(["7"], nbest=2, pack=str_of),
        ]
        waiting = [asyncio.ensure_future(queue.translate(job)) for job in jobs]
        await asyncio.sleep(0)
        waiting.pop(2).cancel()
        found = await asyncio.gather(*waiting)
        assert [[line[:1] for line in lines] for lines in found] == [["1", "2", "x", "3"], ["4", "5"], [""]]
        return system.searches

    assert asyncio.run(searches()) == [["1", "4", "2", "5", "x"], ["7"], ["3"]]


def test_the_queue_is_limited(monkeypatch):
    async def admitted(*requests: list[str]) -> int:
        queue = RequestQueue(Recorder())  # type: ignore[arg-type]
        jobs = [Job(lines, pack=str_of) for lines in requests]
        found = await asyncio.gather(*map(queue.translate, jobs), return_exceptions=True)
        return sum(not isinstance(answer, FullError) for answer in found)

    assert asyncio.run(admitted(*[["a"]] * 410)) == request_queue.MOST_WAITING == 400
    monkeypatch.setattr(request_queue, "MOST_COST", 100)
    assert asyncio.run(admitted(["a" * 1000])) == 1
    assert asyncio.run(admitted(["a" * 30], ["a" * 30], ["a"])) == 2


def test_answers_count_until_they_are_sent(monkeypatch):
    monkeypatch.setattr(request_queue, "MOST_ANSWERS", 10_000_000)

    async def admitted() -> list[bool]:
        queue = RequestQueue(Recorder())  # type: ignore[arg-type]
        large = [Job(["a"], nbest=100, pack=str_of, copied=30_000) for _ in range(3)]
        jobs = [large[0], large[1], Job(["a"], pack=str_of), large[2]]
        found = []
        for job in jobs:
            if job is large[2]:
                queue.release(large[0])
            try:
                found.append(bool(await queue.translate(job)))
            except FullError:
                found.append(False)
        return found

    assert asyncio.run(admitted()) == [True, False, True, True]


def test_responses_are_as_specified(client):
    document = client.get("/spec").json()

    def check(name: str, content: object) -> None:
        schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
        jsonschema.validate(content, schema)

    native = {"text": "a b", "explain": True, "nbest": 2}
    libretranslate = {"q": ["a b"], "source": "auto", "target": "fr", "alternatives": 2}
    bodies = document["paths"]["/translate"]["post"]["requestBody"]["content"]
    for body in (native, libretranslate):
        jsonschema.validate(body, bodies["application/json"]["schema"])
    check("TranslationsResponse", client.post("/translate", json=native).json())
    check("LibreTranslateTranslations", client.post("/translate", json=libretranslate).json())
    check("Error", client.get("/none").json())
    assert set(document["paths"]) == {"/", "/translate", "/languages", "/system", "/health"}


def test_requests_of_libretranslate_clients(client, system):
    """Requests of LibreTranslate clients are answered: JSON with all fields, a form, a list of HTML."""

    def answer(body: dict[str, object]) -> dict[str, object]:
        return client.post("/translate", json=body).json()

    best = system.translate("a b")
    assert client.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["fr"]},
        {"code": "fr", "name": "French", "targets": []},
    ]
    body = {"q": "a b", "source": "en", "target": "fr", "format": "text", "alternatives": 3, "api_key": ""}
    found = answer(body)
    assert found["translatedText"] == best
    others = [one.text for one in system.nbest("a b", 4)[1:]]
    assert found["alternatives"] == others
    found = client.post("/translate", content=b"q=a+b%0A%0Ac&source=auto&target=fr&api_key=&format=", headers=FORM)
    assert found.status_code == 200
    assert found.json() == {
        "translatedText": f"{best}\n\n{system.translate('c')}",
        "detectedLanguage": {"language": "en", "confidence": 0.0},
    }
    fields = {"q": "a b\n\nc", "source": "auto", "target": "fr", "format": ""}
    assert found.json() == client.post("/translate", files={name: (None, text) for name, text in fields.items()}).json()
    assert client.post("/translate", content=b"q", headers={"Content-Type": "multipart/form-data"}).status_code == 400
    body = {"q": ["<p class='x'> <b>a b</b></p><!-- c --><script>a</script>", ""], "source": "en", "target": "fr"}
    found = answer({**body, "format": "html"})["translatedText"]
    assert found == [f"<p class='x'> <b>{best}</b></p><!-- c --><script>a</script>", ""]
    marks = "<a title=\"it's > b\" href='>'>", "<img alt='>'/>", "<p it's>", '<p x=">'  # the last quotes are not closed
    for mark in marks:
        found = answer({**body, "q": f"{mark}a b</a>", "format": "html"})["translatedText"]
        assert found == f"{mark}{best}</a>"
    spaced = answer({**body, "q": ["  a b\n\t a b \n", " \u3000a b "]})["translatedText"]
    assert spaced == [f"  {best}\n\t {best} \n", f" \u3000{best} "]
    assert answer({**body, "q": []}) == {"translatedText": []}
    assert answer({**body, "q": ""}) == {"translatedText": ""}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"source": "de"}, "source must be en or auto"),
        ({"target": "de"}, "and target must be fr"),
        ({"q": ["a"] * 1001}, "at most 1000 lines"),
        ({"q": "a\n" * 1001}, "at most 1000 lines"),
        ({"alternatives": 100}, "alternatives: "),
        ({"q": f"a &#{'1' * 5000}; b", "format": "html"}, "q: a character reference has too many digits"),
    ],
)
def test_what_libretranslate_clients_are_refused(client, change, said):
    answer = client.post("/translate", json={"q": "a", "source": "en", "target": "fr", **change})
    assert answer.status_code == 400
    assert said in answer.json()["error"]


def part(name: str, value: bytes = b"a b", more: str = "") -> bytes:
    """Return a part of a form with the boundary x."""
    return f"--x\r\nContent-Disposition: form-data; {name}{more}\r\n\r\n".encode() + value + b"\r\n"


LANGUAGES = part('name="source"', b"en") + part("name=target", b"fr")
PARTS = {"Content-Type": "multipart/form-data; boundary=x"}


@pytest.mark.parametrize(
    ("body", "headers", "address", "words"),
    [
        (b"q=a+b&source=en&target=fr", FORM, "", "a b"),
        (b"", {}, "?q=a+b&source=en&target=fr", "a b"),
        (b"source=en&target=fr", FORM, "?q=a+b", "a b"),
        (part('name="q"') + LANGUAGES + b"--x--", PARTS, "", "a b"),
        (part("name=q") + LANGUAGES + b"--x--\r\n", PARTS, "", "a b"),
        (part('name="q"', b"a --x b") + LANGUAGES + b"--x--", PARTS, "", "a --x b"),
        (
            part("name=q", more='; filename="a.txt"\r\nContent-Type: text/plain') + LANGUAGES + b"--x--",
            PARTS,
            "",
            "a b",
        ),
        (LANGUAGES + b"--x--", PARTS, "?q=a+b", "a b"),
    ],
)
def test_forms(client, system, body, headers, address, words):
    answer = client.post(f"/translate{address}", content=body, headers=headers)
    assert (answer.status_code, answer.json()) == (200, {"translatedText": system.translate(words)})


@pytest.mark.parametrize(
    ("body", "headers", "address", "status"),
    [
        ("q=é&source=en&target=fr".encode("latin-1"), FORM, "", 400),
        (b"q=%E9&source=en&target=fr", FORM, "", 400),
        (b"", {}, "?q=%E9&source=en&target=fr", 400),
        (b"&" * 2000 + b"q=a&source=en&target=fr", FORM, "", 400),
        (b"", {}, "?source=en", 400),
        (b"", {}, "", 415),
        (b"q=a", {"Content-Type": "text/plain"}, "?q=a&source=en&target=fr", 415),
        (part("name=q", "é".encode("latin-1")) + LANGUAGES + b"--x--", PARTS, "", 400),
        (part("name=q") + LANGUAGES, PARTS, "", 400),
        (part("name=q") + LANGUAGES + b"--x--", {"Content-Type": "multipart/form-data"}, "", 400),
        (part("file=q") + LANGUAGES + b"--x--", PARTS, "", 400),
        (part("name=q") * 1100 + LANGUAGES + b"--x--", PARTS, "", 400),
        (b"--x\r\nno header", PARTS, "", 400),
    ],
)
def test_forms_that_are_refused(client, capsys, body, headers, address, status):
    answer = client.post(f"/translate{address}", content=body, headers=headers)
    assert (answer.status_code, set(answer.json())) == (status, {"error"})
    assert capsys.readouterr().err == ""


RECORDED = {"Accept-Encoding": "identity", "User-Agent": "Python-urllib/3.11", "Connection": "close", **FORM}
"""Headers that ``LibreTranslateAPI`` of libretranslatepy 2.1.4 sends, recorded from a socket."""


@pytest.mark.parametrize("key", [b"", b"&api_key=secret"])
def test_recorded_requests_of_the_python_client(client, system, key):
    """They are `translate("a b c\\nc & d é", "en", "fr")`, `languages()` and `detect("a b c")`."""
    body = b"q=a+b+c%0Ac+%26+d+%C3%A9&source=en&target=fr" + key
    answer = client.post("/translate", content=body, headers=RECORDED)
    lines = system.translate_all(["a b c", "c & d é"])
    assert (answer.status_code, answer.json()) == (200, {"translatedText": "\n".join(lines)})
    assert answer.headers["Content-Type"] == "application/json"
    answer = client.request("GET", "/languages", content=key[1:], headers=RECORDED)
    assert (answer.status_code, [one["code"] for one in answer.json()]) == (200, ["en", "fr"])
    answer = client.post("/detect", content=b"q=a+b+c" + key, headers=RECORDED)
    assert (answer.status_code, set(answer.json())) == (404, {"error"})


def test_a_process_is_stopped_after_its_requests(system: System) -> None:
    """Abandoned requests are dropped; SIGTERM ends the process with status 0 after the requests in progress."""
    command = [sys.executable, "-m", "rnnsmt", "translate", "--system", str(system.directory), "--serve", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        assert process.stderr is not None
        found = next(match for line in process.stderr if (match := re.search(r" at http://127\.0\.0\.1:(\d+)/", line)))

        def sent(content: object) -> http.client.HTTPConnection:
            connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=60)
            connection.request("POST", "/translate", json.dumps(content), {"Content-Type": "application/json"})
            return connection

        for _ in range(8):
            sent({"text": "a b c d a b c d\n" * 1000, "nbest": 100}).close()
        assert sent({"text": "a"}).getresponse().status == 200
        waiting = [sent({"text": "a b\n" * 100}) for _ in range(20)]
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        assert [one.getresponse().status for one in waiting] == [200] * 20
        assert process.wait(60) == 0
        assert "stopping: no new connections" in process.stderr.read()
