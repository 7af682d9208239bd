"""A Slurm cluster for tests, whose only node is this machine; its daemons run as the user, in a directory.

It requires slurmctld, slurmd, munged and the commands of Slurm (Debian: ``apt install slurm-wlm munge``). There are no
cgroups: processes are found by their parents, and memory is checked every second (OverMemoryKill).
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
SelectTypeParameters=CR_CPU_Memory,CR_LLN
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
NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs={cpus} RealMemory={memory} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverTimeLimit=0
"""

NODE = "node1"
"""Name of the node."""


def missing() -> str | None:
    """Return which programs a Slurm cluster would need that this machine lacks, or None."""
    lacking = [name for name in DAEMONS + CLIENTS if shutil.which(name, path=PATHS) is None]
    return f"no {', '.join(lacking)} on PATH" if lacking else None


def free_ports(number: int) -> list[int]:
    """Return free ports."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def wait_until(what: Callable[[], object], seconds: float, message: str) -> None:
    """Wait until a condition is true; raise AssertionError after the given seconds."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"not after {seconds} s: {message}"
        time.sleep(0.2)


class SlurmCluster:
    """The daemons of a cluster; ``environment`` is the environment of its commands.

    Args:
        directory: an empty directory with a short path (the socket of munged is in it).
        cpus: number of processors of the node, independent of those of the machine.
        memory: memory of the node in MB, independent of that of the machine.
    """

    def __init__(self, directory: Path, cpus: int, memory: int) -> None:
        import getpass

        self.directory = directory
        bin_directory = directory / "bin"
        self.environment = {"SLURM_CONF": str(directory / "slurm.conf"), "PATH": f"{bin_directory}{os.pathsep}{PATHS}"}
        self._daemons: list[subprocess.Popen[bytes]] = []
        host = socket.gethostname().split(".")[0]
        settings = {"host": host, "directory": directory, "user": getpass.getuser(), "node": NODE}
        text = CONFIGURATION.format(**settings, ports=free_ports(2), cpus=cpus, memory=memory)
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
        """Start the daemons one after the other, and wait until the node accepts jobs."""
        inside = {name: str(self.directory / f"munge.{name}") for name in ("socket", "pid", "seed", "log", "key")}
        options = [
            f"--{'key' if name == 'key' else name}-file={path}" for name, path in inside.items() if name != "socket"
        ]
        self._launch("munged", "--foreground", "--force", f"--socket={inside['socket']}", *options)
        wait_until(Path(inside["socket"]).exists, 20, "munged listens")
        self._launch("slurmctld", "-D", "-f", self.environment["SLURM_CONF"])
        self._launch("slurmd", "-D", "-f", self.environment["SLURM_CONF"], "-N", NODE)
        wait_until(
            lambda: self.call("sinfo", "--noheader", "--Node", "--format=%t").split() == ["idle"],
            60,
            f"the node, see {self.directory}",
        )

    def _launch(self, name: str, *options: str) -> None:
        program = shutil.which(name, path=PATHS)
        assert program is not None
        with (self.directory / f"{name}.log").open("wb") as file:
            self._daemons.append(
                subprocess.Popen([program, *options], stdout=file, stderr=file, env=os.environ | self.environment)
            )

    def call(self, *command: str) -> str:
        """Return the output of a Slurm command."""
        return subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=False, env=os.environ | self.environment
        ).stdout

    def jobs(self) -> dict[str, tuple[str, str]]:
        """Return state and comment (rule and wildcards) of all jobs by number."""
        lines = self.call("squeue", "--noheader", "--states=all", "--format=%A|%T|%k").splitlines()
        return {number: (state, comment) for number, state, comment in (line.split("|", 2) for line in lines)}

    def alive(self) -> list[str]:
        """Return the numbers of the jobs that have not ended."""
        return self.call("squeue", "--noheader", "--format=%A").split()

    def stop(self) -> None:
        """End the jobs, then the daemons started by ``start``."""
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
