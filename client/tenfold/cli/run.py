"""`tenfold run`: one training program as every task of a cluster on this machine, until its workers are done.

Each task is a process of its own with TF_CONFIG in its environment (children.py); its output is printed with the task's
name in front. No server runs in this process: each program starts its own `tf.train.Server`.
"""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tenfold.cli.children import Children

#: Stages of the children: parameter servers are stopped after the workers.
_PS_STAGE, _WORKER_STAGE = 0, 1
#: Seconds that parameter servers have to end by themselves after the workers.
_SERVERS_S = 5.0


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What to start: job → addresses, and how the program learns them."""

    cluster: dict[str, list[str]]
    program: tuple[str, ...]
    #: Whether --ps_hosts, --worker_hosts, --job_name and --task_index are added, as in TensorFlow's guide.
    guide_flags: bool
    as_tensorflow: bool

    @property
    def tasks(self) -> list[tuple[str, int]]:
        """Every (job, index), parameter servers first."""
        return [(job, index) for job, tasks in self.cluster.items() for index in range(len(tasks))]

    def command(self, job: str, index: int) -> list[str]:
        """The task's program and arguments, as children.py takes them."""
        command = ["-m", "tenfold.cli.run_as_tensorflow"] if self.as_tensorflow else []
        command += self.program
        if self.guide_flags:
            command += [f"--{each}_hosts={','.join(tasks)}" for each, tasks in self.cluster.items()]
            command += [f"--job_name={job}", f"--task_index={index}"]
        return command

    def environment(self, job: str, index: int) -> dict[str, str]:
        """TF_CONFIG, and that parameter servers end with the workers."""
        config = {"cluster": self.cluster, "task": {"type": job, "index": index}}
        return {"TF_CONFIG": json.dumps(config), "TENFOLD_STOP_WITH_WORKERS": "1"}


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--ps", type=click.IntRange(min=0), default=1, show_default=True, help="Parameter servers.")
@click.option("--workers", type=click.IntRange(min=0), default=2, show_default=True, help="Workers.")
@click.option("--chief", is_flag=True, help="Add a task of its own for the chief, /job:chief/task:0.")
@click.option(
    "--guide-flags", is_flag=True, help="Add --ps_hosts, --worker_hosts, --job_name and --task_index to the arguments."
)
@click.option("--as-tensorflow", is_flag=True, help="Let `import tensorflow` give Tenfold.")
@click.option(
    "--restarts",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="How many times tasks that fail are started again, all together.",
)
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Seconds that the others have to end by themselves after a failure.",
)
@click.argument("program", required=True)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(
    ps: int,
    workers: int,
    chief: bool,
    guide_flags: bool,
    as_tensorflow: bool,
    restarts: int,
    grace: float,
    program: str,
    arguments: tuple[str, ...],
) -> None:
    """Run PROGRAM (a file, or `-m MODULE`) as every task of a cluster on this machine.

    Each task finds the cluster and its own place in TF_CONFIG, on free ports of loopback. Ends when the workers and
    the chief have ended, and stops the parameter servers then; the exit code is that of the first task that failed,
    or 0. A parameter server that fails ends the run, unless --restarts lets it come back. After a worker's failure the
    others have --grace seconds to end, then they are stopped.
    """
    from tenfold.cli.children import Children
    from tenfold.cli.signals import StopSignalError, stop_signals
    from tenfold.cli.up import prefixed

    sizes = {"ps": ps, "chief": int(chief), "worker": workers}
    if workers + int(chief) == 0:
        raise click.UsageError("there is nobody to end the run: give --workers, or --chief")
    if program != "-m" and not os.path.isfile(program):
        raise click.UsageError(f"there is no program {program!r}: give a file, or -m MODULE")
    plan = RunPlan(_free_cluster(sizes), (program, *arguments), guide_flags, as_tensorflow)
    with stop_signals() as stop:
        try:
            with Children(prefixed()) as children:
                code = _drive(plan, children, restarts, grace)
        except StopSignalError as signal:
            click.echo(f"stopped by {signal}")
            raise SystemExit(stop.exit_code) from None
    raise SystemExit(code)


def _drive(plan: RunPlan, children: Children, restarts: int, grace: float) -> int:
    """Starts every task and waits for those that end the run. The first failure's exit code, or 0."""
    from tenfold_core.blas_env import thread_share

    share = thread_share(len(plan.tasks))

    def start(job: str, index: int) -> None:
        stage = _PS_STAGE if job == "ps" else _WORKER_STAGE
        environment = {**plan.environment(job, index), **share}
        children.start(f"{job}/{index}", plan.command(job, index), stage=stage, env=environment)

    for task in plan.tasks:
        start(*task)
    running = {f"{job}/{index}": (job, index) for job, index in plan.tasks}
    first_failure, deadline = 0, None
    while any(job != "ps" for job, _ in running.values()):
        ended = children.wait_for_exit(list(running), None if deadline is None else deadline - time.monotonic())
        if ended is None:
            left = ", ".join(name for name, (job, _) in running.items() if job != "ps")
            click.echo(f"{grace:g} s after the first failure: stopping {left}.", err=True)
            return first_failure
        name, code = ended
        job, index = running.pop(name)
        if code == 0:
            continue
        click.echo(f"Error: {children.failure(name)}", err=True)
        if restarts > 0:
            restarts -= 1
            click.echo(f"Starting {name} again; {restarts} more restarts allowed.", err=True)
            children.forget(name)
            start(job, index)
            running[name] = job, index
            continue
        # a shell's convention: 128 plus the signal's number
        first_failure = first_failure or (code if code > 0 else 128 - code)
        deadline = time.monotonic() + grace if deadline is None else deadline
        if job == "ps":
            click.echo("A parameter server is gone: stopping the others.", err=True)
            return first_failure
    _let_servers_end(children, set(running))
    return first_failure


def _let_servers_end(children: Children, running: set[str]) -> None:
    """Waits a bounded time for the parameter servers to notice that the workers are done, and end."""
    deadline = time.monotonic() + _SERVERS_S
    while running and (ended := children.wait_for_exit(list(running), max(deadline - time.monotonic(), 0.0))):
        running.discard(ended[0])


def _free_cluster(sizes: dict[str, int]) -> dict[str, list[str]]:
    """Job → addresses on free ports of loopback; jobs without tasks are left out."""
    with ExitStack() as held:
        # all sockets stay open until the end, so that the ports differ
        def address() -> str:
            port = held.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
            return f"localhost:{port}"

        return {job: [address() for _ in range(size)] for job, size in sizes.items() if size}
