"""README and docs: their commands work on a finished run of the demo corpus."""

import gzip
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.fake_moses import install
from tests.workflow.conftest import ROOT, Workflow

pytestmark = pytest.mark.slow

SITE = sorted((ROOT / "docs").glob("*.md"))
PAGES = [*(ROOT / folder / "README.md" for folder in (".", "config", "examples", "profiles")), *SITE]

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)

PRELUDE = """
set -euo pipefail
trap 'test -z "${server:-}" || kill "$server"' EXIT
snakemake() { command snakemake --snakefile "$ROOT/Snakefile" --dry-run "$@" < /dev/null; }
make() { command make --dry-run -C "$ROOT" "$@"; }
pip() { :; }
source() { :; }
srun() { while [[ $1 == --* ]]; do shift; done; "$@"; }
moses() { type -P moses > /dev/null || return 0; command moses "$@"; }
"""
"""What commands of the pages are here: the workflow is planned, nothing is installed, Moses runs where there is one."""


MINE = """
corpora:
  - {name: mine, role: bitext, source: mine.en.gz, target: mine.fr.gz}
  - {name: dev, role: dev, source: dev.en, target: dev.fr}
  - {name: test, role: test, source: test.en, target: test.fr}
"""
"""The reader's configuration, for pages without one."""


def blocks(page: Path, *kinds: str) -> list[str]:
    """Return the code blocks of a page of these kinds."""
    return [block for kind, block in BLOCK.findall(page.read_text()) if kind in kinds]


def runnable(block: str, port: int) -> str:
    """Return a code block with its server in the background, on another port."""
    block = block.replace("8000", str(port))
    waiting = rf" & server=$!; until curl -s http://127.0.0.1:{port}/ > /dev/null; do kill -0 $server; sleep 0.2; done"
    return re.sub(rf"(--serve {port})( +#.*)?$", rf"\1{waiting}", block, flags=re.M)


def prepare(directory: Path, page: Path) -> None:
    """Write the reader's files: `mine.yaml`, its texts and those of mini-wmt, a letter, a Moses model directory."""
    configs = [MINE, *(block for block in blocks(page, "yaml") if "corpora:" in block)]
    (directory / "mine.yaml").write_text(configs[-1])
    (directory / "config.yaml").write_text((ROOT / "config.yaml").read_text())  # as in a directory of `rnnsmt init`
    texts = {
        lang: gzip.decompress((directory / f"results/corpus/joined/truecased/dev.{lang}.gz").read_bytes()).decode()
        for lang in ("en", "fr")
    }
    for name in ("workflow", "notebooks"):
        (directory / name).symlink_to(ROOT / name)
    (directory / "data").mkdir()
    for config in (*configs, (ROOT / "workflow/configs/mini-wmt.yaml").read_text()):
        for corpus in yaml.safe_load(config)["corpora"]:
            for side, lang in (("source", "en"), ("target", "fr")):
                if side in corpus:
                    lines = (f"{corpus['name']} {line}\n" for line in texts[lang].splitlines())
                    (directory / "data" / corpus[side]).write_text("".join(lines))
    (directory / "letter.en").write_text("The boats are in the harbour.\n")
    (directory / "my.align.gz").write_bytes((directory / "results/align/model4/forward.gz").read_bytes())
    if page.stem == "moses":
        (directory / "model").symlink_to("results/systems/baseline/run1")
        for name, lang in (("dev.en", "en"), ("dev.fr", "fr"), ("test.en", "en")):
            (directory / name).write_text(texts[lang])


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_commands_of_the_page_run(page: Path, copy_of_finished: Workflow):
    directory = copy_of_finished.directory
    prepare(directory, page)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = PRELUDE + "".join(
        f"(\n{block})\n" if "cd " in block else runnable(block, port) for block in blocks(page, "", "bash")
    )
    for number, block in enumerate(blocks(page, "python")):
        if re.search("^(import|from) rnnsmt", block, re.M):
            (directory / f"example{number}.py").write_text(block)
            script += f"python example{number}.py\n"
    script = re.sub(r"data_dir=(/where/the/files/are|DIR)", f"data_dir={directory}/data", script)
    script = re.sub(r"\brnnsmt run\b", "rnnsmt run --dry-run", script)
    home = os.environ.get("MOSES_HOME") or str(install(directory / "moses"))
    environment = os.environ | {
        "ROOT": str(ROOT),
        "MOSES_HOME": home,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    done = subprocess.Popen(
        ["bash", "-c", script], cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = done.communicate(timeout=1500)
    finally:
        if done.poll() is None:
            os.killpg(done.pid, signal.SIGKILL)
    assert done.returncode == 0, output[-5000:]
