"""Snakemake with an executor plugin whose client records what is submitted: ``recorder.py EXECUTOR FILE OPTION...``.

The submission code of the plugin itself runs. The process ends when the jobs have been submitted that are expected.
"""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

EXPECTED = 2
"""Number of jobs."""

REQUESTS: list[Any] = []


def record(request: Any) -> None:
    """Add a request to the file; end the process after the last."""
    REQUESTS.append(request)
    Path(sys.argv[2]).write_text(json.dumps(REQUESTS))
    if len(REQUESTS) == EXPECTED:
        os._exit(0)


def kubernetes() -> None:
    """Replace the interfaces to the cluster."""
    import kubernetes as package

    class Batch(mock.MagicMock):
        def create_namespaced_job(self, namespace: str, body: Any) -> Any:
            record(package.client.ApiClient().sanitize_for_serialization(body))
            return body

    package.config.load_kube_config = mock.MagicMock()
    package.client.BatchV1Api, package.client.CoreV1Api = Batch, mock.MagicMock


def aws_batch() -> None:
    """Replace the client of the plugin."""
    import snakemake_executor_plugin_aws_batch as plugin

    class Client:
        def __init__(self, region_name: str) -> None:
            pass

        def register_job_definition(self, **definition: Any) -> dict:
            self.definition = definition
            return {"jobDefinitionName": definition["jobDefinitionName"], "revision": 1}

        def submit_job(self, **job: Any) -> dict:
            record({"definition": self.definition, "job": job})
            return {"jobName": job["jobName"], "jobId": str(len(REQUESTS))}

    plugin.BatchClient = Client


def googlebatch() -> None:
    """Replace the client of the plugin."""
    from google.cloud import batch_v1

    class Client:
        def create_job(self, request: Any) -> Any:
            record(json.loads(batch_v1.CreateJobRequest.to_json(request)))
            return SimpleNamespace(name=str(len(REQUESTS)))

    batch_v1.BatchServiceClient = Client


if __name__ == "__main__":
    {"kubernetes": kubernetes, "aws-batch": aws_batch, "googlebatch": googlebatch}[sys.argv[1]]()
    from snakemake.cli import main

    main(["--executor", sys.argv[1], *sys.argv[3:]])
