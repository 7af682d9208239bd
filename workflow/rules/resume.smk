# After kill -9 or a power cut the same command goes on.
#
# Snakemake then leaves a lock and marks of incomplete files behind, and refuses to start. A file lock of the system goes
# with its process: whoever gets it knows that no other run is alive in this folder, so Snakemake's lock is stale, and
# what is marked can be made again. Jobs of a cluster outlive the process that submitted them: where such a run did not
# end well, everything stays for the user to decide. Only calls that execute jobs look at this: neither a plan nor the
# Snakemake inside a job removes anything.
import fcntl
import shutil
from pathlib import Path

from snakemake_interface_executor_plugins.settings import ExecMode

ALIVE = Path(".snakemake/alive")
ELSEWHERE = Path(".snakemake/jobs-elsewhere")
snakemake_execute = workflow.execute


def lock_of_the_living():
    """The locked file of a run, to be kept open; None where another run has it, or there are no locks to know by."""
    ALIVE.parent.mkdir(exist_ok=True)
    file = ALIVE.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return None
    return file


def execute(executor_plugin, **settings):
    """What Snakemake calls to execute or plan jobs, with what a dead run left out of its way."""
    kind = executor_plugin.common_settings
    executes = workflow.exec_mode == ExecMode.DEFAULT and not (kind.dryrun_exec or kind.touch_exec)
    alive = lock_of_the_living() if executes else None
    if (alive or kind.dryrun_exec) and not ELSEWHERE.exists():
        workflow.dag_settings.force_incomplete = True
        if alive:
            shutil.rmtree(".snakemake/locks", ignore_errors=True)
    if alive and not kind.local_exec:
        ELSEWHERE.touch()
    snakemake_execute(executor_plugin=executor_plugin, **settings)
    if alive:
        ELSEWHERE.unlink(missing_ok=True)


workflow.execute = execute
