"""A real Slurm for tests: munged, slurmctld and several slurmd on this machine, as root, with all files in a folder.

Partitions `low` and `long`, and `high`, a job of which takes the nodes of one of the others, which is requeued.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from typing import TYPE_CHECKING

from support.process_trees import kill_tree
from support.task_processes import PATIENCE
from tenfold.launchers.local import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Seconds. Slurm looks at its nodes and its queue now and then, and some of what it does takes several such looks.
SLURM_PATIENCE = 3 * PATIENCE
_PROGRAMS = ("slurmctld", "slurmd", "srun", "sbatch", "munged")
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def why_not() -> str | None:
    """Why there can be no Slurm here."""
    absent = [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]
    if absent:
        return f"{absent[0]} is not installed: make engines"
    return None if os.getuid() == 0 else "Slurm's daemons are started as root"


class SlurmCluster:
    """Nodes n1, n2, … as its arguments say. `variables` is what a client needs in its environment."""

    def __init__(self, folder: Path, nodes: int = 3, *, cores: int = 2, memory: int = 2000) -> None:
        """Each node has so many cores and MiB of memory, whatever this machine has."""
        self.folder, self.nodes = folder, [f"n{number}" for number in range(1, nodes + 1)]
        self.variables = {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": _PATH}
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("state", "spool", "munge"):
            (folder / name).mkdir()
        self._munge = folder / "munge" / "socket"
        key = folder / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        (folder / "munge").chmod(0o755)
        self._start(
            "munged",
            [
                *("munged", "--foreground", "--force", "--num-threads=2"),
                *(f"--socket={self._munge}", f"--key-file={key}", f"--seed-file={folder / 'munge' / 'seed'}"),
                *(f"--pid-file={folder / 'munged.pid'}", f"--log-file={folder / 'munged.log'}"),
            ],
        )
        _until(self._munge.exists, "munged")
        ports = free_ports(nodes + 1, "")
        host = socket.gethostname().partition(".")[0]
        lines = [
            "ClusterName=tests",
            f"SlurmctldHost={host}(127.0.0.1)",
            "SlurmUser=root",
            "AuthType=auth/munge",
            f"AuthInfo=socket={self._munge}",
            "CredType=cred/munge",
            f"StateSaveLocation={folder / 'state'}",
            f"SlurmdSpoolDir={folder / 'spool'}/%n",
            f"SlurmctldPort={ports[0]}",
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core",
            f"SlurmctldPidFile={folder / 'slurmctld.pid'}",
            f"SlurmdPidFile={folder}/slurmd-%n.pid",
            f"SlurmctldLogFile={folder / 'slurmctld.log'}",
            f"SlurmdLogFile={folder}/slurmd-%n.log",
            "PreemptType=preempt/partition_prio",
            "PreemptMode=REQUEUE",
            "SchedulerParameters=sched_interval=1,batch_sched_delay=0,bf_interval=1",
            "KillWait=5",
            "SlurmdTimeout=10",
            "ReturnToService=2",
            "MpiDefault=none",
            "SlurmdParameters=config_overrides",
            # a het job is planned by the back-fill scheduler
            "SchedulerType=sched/backfill",
        ]
        for name, port in zip(self.nodes, ports[1:], strict=True):
            lines.append(
                f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cores} RealMemory={memory}"
            )
        members = ",".join(self.nodes)
        lines += [
            f"PartitionName=low Nodes={members} Default=YES MaxTime=INFINITE State=UP PriorityTier=1",
            f"PartitionName=long Nodes={members} MaxTime=INFINITE State=UP PriorityTier=1",
            f"PartitionName=high Nodes={members} MaxTime=INFINITE State=UP PriorityTier=10",
        ]
        (folder / "slurm.conf").write_text("\n".join(lines) + "\n")
        self._start("slurmctld", ["slurmctld", "-D"])
        for name in self.nodes:
            self.start_node(name)
        self.wait_for_nodes()

    def start_node(self, name: str) -> None:
        self._start(name, ["slurmd", "-N", name, "-D"])

    @contextlib.contextmanager
    def without_node(self, name: str) -> Iterator[None]:
        """Kills the node's daemon and all that it runs, at once. It is back afterwards."""
        daemon = self._daemons.pop(name)
        kill_tree(daemon.pid)
        daemon.wait()
        try:
            yield
        finally:
            self.start_node(name)
            self.wait_for_nodes()

    def run(self, *command: str, check: bool = True) -> str:
        """One of Slurm's commands; what it writes."""
        done = subprocess.run(
            command,
            env={**os.environ, **self.variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=SLURM_PATIENCE,
        )
        assert not check or done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def jobs(self) -> list[str]:
        """The jobs that wait or run, "ID STATE"."""
        return self.run("squeue", "--noheader", "--format=%i %T").splitlines()

    def wait_for_state(self, job: str, state: str) -> None:
        """Until the job is in that state, as squeue has it."""
        _until(lambda: f"{job} {state}" in self.jobs(), f"job {job}, {state},", self._words)

    def wait_for_nodes(self) -> None:
        """Until all nodes are up and have nothing to do."""
        _until(lambda: self._idle() == len(self.nodes), "the nodes", self._words)

    def close(self) -> None:
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            for job in self.jobs():
                self.run("scancel", job.split()[0], check=False)
        for name, daemon in reversed(self._daemons.items()):
            if name in self.nodes:
                kill_tree(daemon.pid)
            else:
                daemon.terminate()
            daemon.wait(PATIENCE)

    def _start(self, name: str, command: list[str]) -> None:
        with (self.folder / f"{name}.out").open("wb") as out:
            self._daemons[name] = subprocess.Popen(
                command, env={**os.environ, **self.variables}, stdout=out, stderr=out, stdin=subprocess.DEVNULL
            )

    def _idle(self) -> int:
        found = self.run("sinfo", "--noheader", "--Node", "--partition=low", "--format=%t", check=False)
        return found.split().count("idle")

    def _words(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-2000:] for path in self.folder.glob("*.[lo]*"))


def _until(is_so, what, words=lambda: "") -> None:  # type: ignore[no-untyped-def]
    end = time.monotonic() + SLURM_PATIENCE
    while not is_so():
        assert time.monotonic() < end, f"{what} did not come up: {words()}"
        time.sleep(0.1)
