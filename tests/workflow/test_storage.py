"""The workflow with its files in an S3 storage, of a server on this machine (moto)."""

import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.workflow.conftest import SMALL, Workflow

PACKAGES = ("snakemake_storage_plugin_s3", "moto", "flask")

pytestmark = pytest.mark.skipif(
    not all(map(find_spec, PACKAGES)), reason="pip install snakemake-storage-plugin-s3 'moto[s3,server]'"
)

STORAGE = ["--default-storage-provider", "s3", "--default-storage-prefix", "s3://bucket/run"]


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, str]]:
    """Start a server with an empty bucket; yield the environment of its clients."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **quiet) as process:
        try:
            until = time.monotonic() + 60
            while socket.socket().connect_ex(("127.0.0.1", port)):
                assert process.poll() is None and time.monotonic() < until
                time.sleep(0.2)
            variables = {"ENDPOINT_URL": f"http://127.0.0.1:{port}", "ACCESS_KEY": "a", "SECRET_KEY": "b"}
            environment = {f"SNAKEMAKE_STORAGE_S3_{name}": value for name, value in variables.items()}
            client(environment).create_bucket(Bucket="bucket")
            yield environment
        finally:
            process.kill()


def client(environment: dict[str, str]) -> Any:
    """Return a client of the server."""
    import boto3

    url, key, secret = environment.values()
    names = {"aws_access_key_id": key, "aws_secret_access_key": secret, "region_name": "us-east-1"}
    return boto3.client("s3", endpoint_url=url, **names)


def test_the_plan_in_a_storage_is_that_of_files(server, plan, workflow):
    """Snakemake keeps the constraints of wildcards, which tell rules apart that write files of one directory."""
    assert workflow.plan(*STORAGE, **server) == plan


def test_corpora_by_address(server, tmp_path):
    """A corpus may be in a storage, also if the run is on local files; the prepared text is the same."""
    texts = {
        name: "".join(f"{name} {number}\n" for number in range(30))
        for name in (f"{corpus}.{lang}" for corpus in ("train", "dev", "test") for lang in ("en", "fr"))
    }
    (tmp_path / "data").mkdir()
    for name, text in texts.items():
        client(server).put_object(Bucket="bucket", Key=f"data/{name}", Body=text.encode())
        (tmp_path / "data" / name).write_text(text)
    roles = {"train": "bitext", "dev": "dev", "test": "test"}
    corpora = [
        {"name": f"my-{name}", "role": role, "source": f"{name}.en", "target": f"{name}.fr", "check": False}
        for name, role in roles.items()
    ]
    corpora[0]["source"] = "s3://bucket/data/train.en"
    prepared = {}
    for place in (str(tmp_path / "data"), "s3://bucket/data"):
        workflow = Workflow(tmp_path / str(len(prepared)))
        workflow.directory.mkdir()
        config = workflow.directory / "mine.yaml"
        config.write_text(yaml.safe_dump({"corpora": corpora, "data_dir": place}))
        done = workflow.call("--configfile", str(config), "--until", "prepare_bitext", **server)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "does not exist" not in done.stdout + done.stderr
        files = sorted(workflow.directory.glob("results/corpus/tokenized/*.gz"))
        prepared[place] = {path.name: path.read_bytes() for path in files}
    first, second = prepared.values()
    assert len(first) == 6 and first == second


@pytest.mark.slow
def test_the_whole_run_in_a_storage(server, tmp_path):
    """The default target makes the same bytes with all files in a bucket as with local files."""
    settings = {key: value for key, value in SMALL.items() if key not in ("networks", "seq2seq", "systems")}
    settings |= {"tuning": SMALL["tuning"] | {"runs": 1}, "compare": ["baseline", "cslm_rnn"]}
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(settings))
    options = ["--configfile", str(tmp_path / "small.yaml"), "--show-failed-logs"]
    for name, added in (("local", []), ("storage", STORAGE)):
        (tmp_path / name).mkdir()
        done = Workflow(tmp_path / name).call(*options, *added, timeout=1500, **server)
        assert done.returncode == 0, done.stdout + done.stderr
    assert not (tmp_path / "storage/results").exists()
    pages = client(server).get_paginator("list_objects_v2").paginate(Bucket="bucket", Prefix="run/results/")
    keys = [item["Key"].removeprefix("run/") for page in pages for item in page.get("Contents", ())]
    same = [key for key in keys if not key.startswith(("results/logs/", "results/report/", "results/provenance"))]
    differ = [key for key in same if differs(tmp_path / "local" / key, client(server), f"run/{key}")]
    assert len(same) > 150 and not differ


def differs(path: Path, storage: Any, key: str) -> bool:
    """Return whether a local file and an object differ, apart from places and times of the files that they name."""
    content = storage.get_object(Bucket="bucket", Key=key)["Body"].read()
    times = re.compile(rb'"mtime_ns\\": \d+')  # of the text of lm.binary.safetensors
    content = content.replace(b".snakemake/storage/s3/bucket/run/", b"")
    return times.sub(b"", path.read_bytes()) != times.sub(b"", content)
