"""Tasks as steps of a Slurm job: one agent a task, at the other end of an `srun`.

Within a job (`sbatch`, a script of `tenfold render slurm`) the steps are the job's. Outside of one an allocation is
asked for with `salloc` and given back at the end, so that a run from a shell or from the control service takes what it
uses and no more. Slurm accounts each task as a step of its own, with its cores, memory and GPUs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Self

from tenfold.launchers.agent_pipe import AgentPipe
from tenfold.launchers.agent_processes import AgentProcesses, AgentSpec
from tenfold.launchers.interface import LaunchRefusedError, Resources, checked_options
from tenfold.launchers.placing import own_agents

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from tenfold.launchers.interface import LaunchRequest

#: Our options that are one of sbatch's and salloc's.
_SAME = ("partition", "account", "qos", "time", "constraint", "reservation", "nodelist", "exclude")
#: Seconds for an allocation to be given back.
_RETURN_S = 30.0
_JOB = "SLURM_JOB_ID"


class SlurmLauncher:
    """See Launcher."""

    name: ClassVar[str] = "slurm"
    summary: ClassVar[str] = "steps of a Slurm job; its own, or one of salloc's"
    options: ClassVar[Mapping[str, str]] = {
        "partition": "as salloc's --partition",
        "account": "as salloc's --account",
        "qos": "as salloc's --qos",
        "time": "as salloc's --time: 30 (minutes), 2:00:00, 1-12",
        "constraint": "as salloc's --constraint",
        "reservation": "as salloc's --reservation",
        "nodelist": "as salloc's --nodelist",
        "exclude": "as salloc's --exclude",
        "folder": "the path of the working directory on the nodes (default: the same as here)",
        "scratch": "a folder of each node for temporary files, as /scratch/$SLURM_JOB_ID: TMPDIR is one below it",
        "patience": "seconds to wait for the allocation (default: as long as it takes)",
        "python": "the interpreter there that has Tenfold (default: the path of this one)",
    }

    def missing(self) -> str | None:
        absent = [name for name in ("srun", "salloc") if not shutil.which(name)]
        return f"there is no `{absent[0]}` here: this is no machine of a Slurm cluster" if absent else None

    def open(self, request: LaunchRequest, echo: Callable[[str, str], None]) -> SlurmProcesses:
        if (why := self.missing()) is not None:
            raise LaunchRefusedError(why)
        patience = checked_options(self, request.options).get("patience")
        if patience is not None and not patience.isdecimal():
            raise LaunchRefusedError(f"slurm: patience={patience} is not a number of seconds")
        return SlurmProcesses(request, echo)


class SlurmProcesses(AgentProcesses):
    """The tasks of a run as steps. Entering it takes the allocation, and may block for long."""

    def __init__(self, request: LaunchRequest, echo: Callable[[str, str], None]) -> None:
        super().__init__(request, echo, [], partial(own_agents, request.jobs))
        #: What each component of the job has, one by job where it is heterogeneous; known with the job.
        self._groups = 1
        #: Whether all tasks had their steps once.
        self._began = False
        #: What holds the allocation that we asked for.
        self._salloc: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        jobs = self._request.jobs
        if job := os.environ.get(_JOB, ""):
            self._groups = int(os.environ.get("SLURM_HET_SIZE") or 1)
        else:
            job = self._allocated()
        if self._groups not in (1, len(jobs)):
            raise LaunchRefusedError(
                f"Slurm: job {job} has {self._groups} components, and the run the jobs {', '.join(jobs)}: it needs "
                "one, or one for each"
            )
        self.set_agents([self._spec(job, name, index) for name, size in jobs.items() for index in range(size)])
        return super().__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            super().__exit__(kind, error, tb)
        finally:
            if self._salloc is not None:
                self._give_back(self._salloc)

    def addresses(self, jobs: Mapping[str, int]) -> dict[str, list[str]]:
        try:
            found = super().addresses(jobs)
        except LaunchRefusedError as error:
            if self._began and self._requeued():
                raise LaunchRefusedError(f"{error}; the job is queued again") from None
            raise
        self._began = True
        return found

    def _requeued(self) -> bool:
        """Has Slurm queue this job again, if that is a batch job, since the nodes that it has do not do any more. Slurm
        does so itself, but only once it has noticed that a node is gone, which takes it minutes."""
        job = os.environ.get(_JOB)
        if self._salloc is not None or job is None or shutil.which("scontrol") is None:
            return False
        asked = subprocess.run(
            ["scontrol", "requeue", job], capture_output=True, text=True, check=False, timeout=_RETURN_S
        )
        if asked.returncode:
            self._say(f"job {job} is not queued again: {asked.stderr.strip() or asked.stdout.strip()}")
        return asked.returncode == 0

    def _spec(self, job: str, name: str, index: int) -> AgentSpec:
        group = [f"--het-group={list(self._request.jobs).index(name)}"] if self._groups > 1 else []
        agent = [self._request.options.get("python", sys.executable), "-P", "-m", "tenfold.launchers.agent"]
        command = ["srun", f"--jobid={job}", *group, "--ntasks=1", "--nodes=1", "--exact", "--unbuffered"]
        command += [f"--job-name={name}", "--kill-on-bad-exit=1", *of_resources(self._request.resources.get(name))]
        # what sbatch and salloc set for the whole job would be taken for the step's own
        environment = {key: value for key, value in os.environ.items() if key not in _OF_THE_JOB}
        return AgentSpec(f"{name}/{index}", partial(AgentPipe, [*command, *agent], environment=environment))

    def _allocated(self) -> str:
        """Asks for the nodes; the job's number. Raises LaunchRefusedError with what Slurm says.

        The nodes are given back when what salloc runs has ended: `cat`, whose input ends with this process.
        """
        patience = self._request.options.get("patience")
        asked = [f"--job-name=tenfold-{self._request.run}", *site_options(self._request.options)]
        asked += ["--immediate=" + patience] if patience else []
        components = components_of(self._request.jobs, self._request.resources)
        self._groups = len(components)
        command = ["salloc"]
        for number, needs in enumerate(components):
            command += [*([":"] if number else []), *asked, *needs]
        self._salloc = process = subprocess.Popen(
            [*command, "sh", "-c", "echo job ${SLURM_JOB_ID:-$SLURM_JOB_ID_HET_GROUP_0}; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        words = [""]
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if (found := re.fullmatch(r"job (\d+)\s*", line)) is not None:
                    return found[1]
                words.append(line.strip())
                self._echo("run", words[-1])
        except BaseException:
            # a wish to stop, while it waits: what was asked for is not wanted any more
            self._give_back(process)
            raise
        self._give_back(process)
        self._salloc = None
        said = next((word for word in reversed(words) if "error" in word), words[-1])
        raise LaunchRefusedError(f"Slurm gives no nodes: {said.removeprefix('salloc: error: ')}")

    @staticmethod
    def _give_back(process: subprocess.Popen[str]) -> None:
        """Ends salloc, which returns the nodes."""
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(_RETURN_S)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait(_RETURN_S)
        process.stdout.close()


#: Variables by which a step would ask for what the whole job has.
_OF_THE_JOB = (
    *("SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE", "SLURM_CPUS_PER_TASK", "SLURM_TRES_PER_TASK"),
    *("SLURM_MEM_PER_CPU", "SLURM_MEM_PER_NODE", "SLURM_GPUS", "SLURM_GPUS_PER_TASK", "SLURM_NNODES"),
)


def site_options(options: Mapping[str, str]) -> list[str]:
    """Those of our options that are one of sbatch's and salloc's."""
    return [f"--{name}={options[name]}" for name in _SAME if name in options]


def of_resources(resources: Resources | None) -> list[str]:
    """Options of srun and sbatch for one task."""
    found = [f"--cpus-per-task={(resources.cores if resources else None) or 1}"]
    if resources is not None and resources.memory is not None:
        found.append(f"--mem={-(-resources.memory // (1 << 20))}M")
    if resources is not None and resources.gpus:
        found.append(f"--gres=gpu:{resources.gpus}")
    return found


def components_of(jobs: Mapping[str, int], resources: Mapping[str, Resources]) -> list[list[str]]:
    """What a run needs, as options of each component of its job: one for all tasks where they need the same, else one
    for each of `jobs`, of a heterogeneous job."""
    needs = [resources.get(name, Resources()) for name in jobs]
    if len({(needed.cores or 1, needed.memory, needed.gpus) for needed in needs}) == 1:
        return [request_of(jobs, resources)]
    return [request_of({name: size}, resources) for name, size in jobs.items()]


def request_of(jobs: Mapping[str, int], resources: Mapping[str, Resources]) -> list[str]:
    """What all tasks of a run need together, as options of one allocation: the most that any job asks for, for each
    task."""
    each = [resources.get(name, Resources()) for name in jobs]
    memory = [needed.memory for needed in each if needed.memory is not None]
    found = [f"--ntasks={sum(jobs.values())}", f"--cpus-per-task={max(needed.cores or 1 for needed in each)}"]
    if memory:
        cores = max(needed.cores or 1 for needed in each)
        found.append(f"--mem-per-cpu={-(-max(memory) // (cores << 20))}M")
    if gpus := max(needed.gpus for needed in each):
        found.append(f"--gpus-per-task={gpus}")
    return found
