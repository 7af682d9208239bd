# After kill -9 or a power cut the same command goes on.
#
# Snakemake then leaves a lock and marks of incomplete files behind, and refuses to start. A file lock of the system goes
# with its process: whoever gets it knows that no other run is alive in this folder, so what lies there is stale. Jobs of
# a cluster may outlive the run that submitted them: with a mark of such a job, everything stays for the user to decide.
import base64
import fcntl
import json
import shutil
from pathlib import Path

ALIVE = Path(".snakemake/alive")
ALIVE.parent.mkdir(exist_ok=True)
ALIVE_FILE = ALIVE.open("w")


def remove_stale_marks():
    """Remove Snakemake's lock, and every output file that a killed run had marked as incomplete."""
    marks = [
        path
        for path in Path(".snakemake/incomplete").glob("**/*")
        if path.is_file() and path.name != "migration_underway"
    ]
    if any(json.loads(mark.read_text() or "{}").get("external_jobid") for mark in marks):
        return
    for mark in marks:
        name = "".join(part.removeprefix("@") for part in mark.relative_to(".snakemake/incomplete").parts)
        Path(base64.urlsafe_b64decode(name).decode()).unlink(missing_ok=True)
        mark.unlink()
    shutil.rmtree(".snakemake/locks", ignore_errors=True)


try:
    fcntl.flock(ALIVE_FILE, fcntl.LOCK_EX | fcntl.LOCK_NB)
    remove_stale_marks()
except BlockingIOError:
    pass  # another run is alive here; Snakemake's own lock speaks
