"""A process that has imported Snakemake and runs it in forks of itself: imports are half of the time of a dry run.

A line on standard input is a request as JSON; a line on standard output is the exit status of its fork.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path


@cache
def _server() -> subprocess.Popen:
    """Start the process at the first call."""
    server = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(server.communicate)
    return server


def run(options: list[str], environment: dict[str, str], timeout: float) -> subprocess.CompletedProcess:
    """Run ``python -m snakemake`` with these options and variables; return the completed process."""
    with tempfile.TemporaryDirectory() as directory:
        files = [str(Path(directory) / name) for name in ("stdout", "stderr")]
        request = {"options": options, "environment": environment, "timeout": timeout, "files": files}
        server = _server()
        assert server.stdin and server.stdout
        server.stdin.write(json.dumps(request | {"directory": str(Path.cwd())}) + "\n")
        server.stdin.flush()
        status = os.waitstatus_to_exitcode(int(server.stdout.readline()))
        return subprocess.CompletedProcess(options, status, *(Path(file).read_text() for file in files))


def search_path() -> list[str]:
    """Return the directories of PYTHONPATH."""
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


def _snakemake(request: dict) -> None:
    """Run Snakemake in a forked process."""
    from snakemake.cli import main

    os.chdir(request["directory"])
    before = search_path()
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[1:] = [*search_path(), *(path for path in sys.path[1:] if path not in before)]
    for number, path in enumerate(request["files"], 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["snakemake", *request["options"]]
    signal.setitimer(signal.ITIMER_REAL, request["timeout"])
    main()


def _serve() -> None:
    """Answer requests until the end of the input."""
    import smart_open  # noqa: F401 - Snakemake imports these two when it reads a Snakefile
    import snakemake.cli
    import yte  # noqa: F401

    snakemake.cli.get_argument_parser()  # imports the plugins

    for line in sys.stdin:
        child = os.fork()
        if not child:
            status = 1
            try:
                _snakemake(json.loads(line))
                status = 0
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else bool(end.code)
            except BaseException:
                traceback.print_exc()
            finally:
                atexit._run_exitfuncs()
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        print(os.waitpid(child, 0)[1], flush=True)


if __name__ == "__main__":
    sys.path[0] = ""
    _serve()
