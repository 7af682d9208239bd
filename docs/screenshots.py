"""Take pictures of the report and of the page of a system, from a finished run: docs/screenshots.py RUN SYSTEM.

Needs Chromium (Debian: chromium), or the program that CHROMIUM names.
"""

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

PICTURES = Path(__file__).parent / "pictures"


class Browser:
    """Chromium, headless, with one page; called by its DevTools protocol over pipes."""

    def __init__(self, program: str, profile: str) -> None:
        """Start it."""
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()

        def connect() -> None:
            first, second = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(first, 3)
            os.dup2(second, 4)

        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"]
        self.process = subprocess.Popen(
            [program, *options, f"--user-data-dir={profile}"], preexec_fn=connect, close_fds=False,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._number, self._rest, self._session = 0, b"", {}
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = {"sessionId": self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}

    def call(self, method: str, **params: object) -> dict:
        """Call a method; return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params, **self._session}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self._rest:
                self._rest += os.read(self._in, 1 << 20)
            text, _, self._rest = self._rest.partition(b"\0")
            answer = json.loads(text)
            if answer.get("id") == self._number:
                return answer["result"]

    def value(self, expression: str) -> object:
        """Return the value of an expression of JavaScript in the page."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def picture(self, url: str, name: str, width: int, ready: str, clip: str) -> None:
        """Write a picture of a part of a page: ``clip`` is an expression with [top, height], once ``ready`` is true."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url=url)
        for _ in range(100):
            time.sleep(0.2)
            if self.value(ready):
                break
        else:
            sys.exit(f"{url}: not ready: {ready}")
        top, height = self.value(clip)
        area = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
        data = self.call("Page.captureScreenshot", clip=area, captureBeyondViewport=True)["data"]
        (PICTURES / f"{name}.png").write_bytes(base64.b64decode(data))


def main(run: Path, system: str) -> None:
    """Write the pictures."""
    program = shutil.which(os.environ.get("CHROMIUM", "chromium"))
    if program is None:
        sys.exit("there is no chromium on PATH: install Chromium, or set CHROMIUM")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    directory = run / "results/systems" / system / "run1"
    server = subprocess.Popen(["rnnsmt", "translate", "--system", directory, "--serve", str(port)])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            report = (run / "results/report/index.html").resolve().as_uri()
            browser.picture(report, "report", 1100, "document.readyState == 'complete'", "[0, 1000]")
            while server.poll() is None:
                with suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health")
                    break
                time.sleep(0.5)
            # from the text to the scores of a phrase; the other translations of the page are left out
            ready = "document.querySelectorAll('#result .row button').length > 0"
            clip = """(() => {
                get("examples").hidden = get("hint").hidden = get("form").querySelector("button").hidden = true;
                get("text").style.minHeight = "0";
                get("text").style.height = "2.5rem";
                document.querySelectorAll("#result .row button")[2].click();
                document.querySelector("#result details").open = true;
                const top = get("label").getBoundingClientRect().top - 8;
                return [top, get("documents").getBoundingClientRect().top - top];
            })()"""
            text = "The+boats+are+in+the+harbour."
            browser.picture(f"http://127.0.0.1:{port}/?text={text}", "translate", 900, ready, clip)
        finally:
            browser.process.terminate()
            browser.process.wait()
            server.terminate()
            server.wait()
    print(f"the pictures are {PICTURES}/report.png and {PICTURES}/translate.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
