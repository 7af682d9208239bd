"""A Slurm of one node for tests: its daemons run as the user of the tests, with all files in a directory.

Needs slurmctld, slurmd, munged and the commands of Slurm (Debian: ``apt install slurm-wlm munge``). There are no
cgroups: processes are found by their parents, and memory is looked at every second (OverMemoryKill).
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

DAEMONS = ("munged", "slurmctld", "slurmd")
CLIENTS = ("sbatch", "srun", "squeue", "scancel", "scontrol")

PATHS = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])

CONFIGURATION = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket
CredType=cred/munge
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2,bf_interval=2
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill,NoShared
JobCompType=jobcomp/filetxt
JobCompLoc={directory}/completed
MinJobAge=3600
KillWait=5
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverTimeLimit=0
"""


def missing() -> str | None:
    """What this machine lacks for a Slurm of its own; None where nothing is missing."""
    lacking = [name for name in DAEMONS + CLIENTS if shutil.which(name, path=PATHS) is None]
    return f"no {', '.join(lacking)} on PATH" if lacking else None


def free_ports(number: int) -> list[int]:
    """Ports that nobody listens on at the moment."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def wait_until(what: Callable[[], object], seconds: float, message: str) -> None:
    """Wait until something is true; AssertionError after the seconds."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"not after {seconds} s: {message}"
        time.sleep(0.2)


class SlurmCluster:
    """The daemons, from ``start`` to ``stop``; ``environment`` is what its commands need.

    Args:
        directory: an empty one, with a short path (the socket of munged is in it).
        cpus, memory: of the node, in MB, whatever the machine has.
    """

    def __init__(self, directory: Path, cpus: int, memory: int) -> None:
        import getpass

        self.directory = directory
        bin_directory = directory / "bin"
        self.environment = {"SLURM_CONF": str(directory / "slurm.conf"), "PATH": f"{bin_directory}{os.pathsep}{PATHS}"}
        self._daemons: list[subprocess.Popen[bytes]] = []
        text = CONFIGURATION.format(
            host=socket.gethostname().split(".")[0], directory=directory, ports=free_ports(2), user=getpass.getuser(),
            cpus=cpus, memory=memory,
        )  # fmt: skip
        (directory / "slurm.conf").write_text(text)
        (directory / "munge.key").write_bytes(os.urandom(1024))
        (directory / "munge.key").chmod(0o600)
        for name in ("state", "spool", "bin"):
            (directory / name).mkdir()
        # Snakemake's executor takes SLURM_CONF out of the environment of its srun: these commands know it.
        for name in CLIENTS:
            command = bin_directory / name
            command.write_text(
                f'#!/bin/sh\nSLURM_CONF={directory}/slurm.conf exec {shutil.which(name, path=PATHS)} "$@"\n'
            )
            command.chmod(0o755)

    def start(self) -> None:
        """Start the daemons, one after the other, and wait until the node takes jobs."""
        inside = {name: str(self.directory / f"munge.{name}") for name in ("socket", "pid", "seed", "log", "key")}
        options = [
            f"--{'key' if name == 'key' else name}-file={path}" for name, path in inside.items() if name != "socket"
        ]
        self._launch("munged", "--foreground", "--force", f"--socket={inside['socket']}", *options)
        wait_until(Path(inside["socket"]).exists, 20, "munged listens")
        self._launch("slurmctld", "-D", "-f", self.environment["SLURM_CONF"])
        self._launch("slurmd", "-D", "-f", self.environment["SLURM_CONF"])
        wait_until(
            lambda: "idle" in self.call("sinfo", "--noheader", "--format=%t"), 60, f"a node, see {self.directory}"
        )

    def _launch(self, name: str, *options: str) -> None:
        program = shutil.which(name, path=PATHS)
        assert program is not None
        with (self.directory / f"{name}.log").open("wb") as log:
            self._daemons.append(
                subprocess.Popen([program, *options], stdout=log, stderr=log, env=os.environ | self.environment)
            )

    def call(self, *command: str) -> str:
        """What a command of Slurm prints."""
        return subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=False, env=os.environ | self.environment
        ).stdout

    def jobs(self) -> dict[str, tuple[str, str]]:
        """State and comment (rule and wildcards) of all jobs by their number."""
        lines = self.call("squeue", "--noheader", "--states=all", "--format=%A|%T|%k").splitlines()
        return {number: (state, comment) for number, state, comment in (line.split("|", 2) for line in lines)}

    def alive(self) -> list[str]:
        """The numbers of the jobs that have not ended."""
        return self.call("squeue", "--noheader", "--format=%A").split()

    def stop(self) -> None:
        """End the jobs, then the daemons that ``start`` has started, and nothing else."""
        if numbers := self.alive():
            self.call("scancel", *numbers)
            with suppress(AssertionError):
                wait_until(lambda: not self.alive(), 30, "no jobs")
        for daemon in reversed(self._daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
