"""`tenfold run`: one training program as every task of a cluster, until its workers are done.

Each task is a process of its own with TF_CONFIG in its environment, here or where a launcher starts it
(tenfold.launchers); its output is printed with the task's name in front. What is started when, and when it is over, is
decided in tenfold.runs. No server runs in this process: each program starts its own `tf.train.Server`.
"""

from __future__ import annotations

import os
import re
import signal
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tenfold.cli.cluster_options import cluster_options
from tenfold.cli.described import described_options
from tenfold.cli.group import ProgramCommand
from tenfold.cli.launching import launch_options
from tenfold.cli.log_options import asked_variables, log_options
from tenfold.cli.tokens import token_option
from tenfold.runs.task_logs import SEGMENT_BYTES, SEGMENTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.cli.children import Echo
    from tenfold.cli.cluster_options import ClusterOptions
    from tenfold.launchers import Resources, TaskProcesses
    from tenfold.runs.plan import RunPlan
    from tenfold.runs.reporter import RunReporter
    from tenfold.runs.task_logs import TaskLogs
    from tenfold_core.access.credentials import ShownToken

#: Seconds for each request to the control service.
_REQUEST_S = 5.0
#: The launcher whose tasks are processes of this machine.
_LOCAL = "local"


@click.command(cls=ProgramCommand, context_settings={"allow_interspersed_args": False})
@cluster_options
@click.option(
    "--restarts",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="How many times tasks that fail are started again: alone, or with --on all tasks together.",
)
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Seconds that the others have to end by themselves after a failure.",
)
@click.option(
    "--control", envvar="TENFOLD_CONTROL", show_envvar=True, help="URL of a control service to report the run to."
)
@click.option(
    "--log-bytes",
    type=click.IntRange(min=4096),
    default=SEGMENT_BYTES * SEGMENTS,
    show_default=True,
    help="Bytes of output that are kept of each task, the newest, for `tenfold logs`; only with --control.",
)
@described_options
@launch_options
@log_options
@token_option
@click.argument("program", required=True)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(
    cluster: ClusterOptions,
    restarts: int,
    grace: float,
    control: str | None,
    on: str,
    launcher_options: dict[str, str],
    resources: dict[str, Resources],
    described: dict[str, Any],
    token: ShownToken,
    log_bytes: int,
    program: str,
    arguments: tuple[str, ...],
) -> None:
    """Run PROGRAM (a file, `-m MODULE`, or either after `python` and options of it) as every task of a cluster.

    The tasks run here or, with --on, on an engine (`tenfold launchers`). Each finds the cluster and its own place in
    TF_CONFIG, on free ports. Ends when the workers, the
    chief and the evaluator have ended, and stops the parameter servers then; the exit code is that of the first task
    that failed, or 0. A parameter server that fails ends the run, unless --restarts lets it come back. After a worker's
    failure the others have --grace seconds to end, then they are stopped. With --control the run is listed by `tenfold
    runs`, under the name and with the tags, notes and parameters given here, and can be stopped there.
    """
    from tenfold.cli.up import prefixed
    from tenfold.launchers import LaunchRefusedError
    from tenfold.launchers.registry import launcher
    from tenfold.runs.entrypoint import is_python, read_entrypoint
    from tenfold.runs.plan import RunPlan, RunPolicy

    given = (program, *arguments)
    entrypoint = read_entrypoint(given if is_python(program) else ("python", *given))
    if entrypoint.file is not None and not os.path.isfile(entrypoint.file):
        raise click.UsageError(f"there is no program {entrypoint.file!r}: give a file, or -m MODULE")
    plan = RunPlan(
        cluster.jobs,
        entrypoint.program,
        entrypoint.command,
        interpreter=entrypoint.interpreter,
        guide_flags=cluster.guide_flags,
        as_tensorflow=cluster.as_tensorflow,
        # where a host may go, those that it leaves begin anew with the others, elsewhere
        policy=RunPolicy(restarts=restarts, grace=grace, gang=on != _LOCAL),
        resources=resources,
    )
    output = _Output(prefixed())
    shown = token.variables() if on == _LOCAL else token.carried()
    run_name = f"{os.path.basename(entrypoint.program[-1 if entrypoint.program[0] == '-m' else 0])[:30]}-{os.getpid()}"
    request = plan.request(re.sub(r"[^A-Za-z0-9]+", "-", run_name), os.getcwd(), launcher_options)
    try:
        with launcher(on).open(request, output) as processes:
            listing = _Listing(control, token, log_bytes, described) if control else None
            raise SystemExit(_drive(plan, processes, output, listing, shown, on != _LOCAL))
    except LaunchRefusedError as error:
        raise click.ClickException(str(error)) from None


class _Output:
    """Where lines of the tasks go: they are shown, and kept once there are logs. From any thread."""

    def __init__(self, show: Echo) -> None:
        self._show = show
        self.logs: TaskLogs | None = None

    def __call__(self, name: str, line: str) -> None:
        self._show(name, line)
        self._keep(name, line)

    def say(self, line: str) -> None:
        """A line of the run itself."""
        click.echo(line, err=True)
        self._keep("run", line)

    def _keep(self, name: str, line: str) -> None:
        if (logs := self.logs) is not None:
            try:
                logs.write(name, line)
            except OSError as error:
                self.logs = None
                click.echo(f"The logs of this run are not kept any more: {error.strerror or error}", err=True)


def _drive(
    plan: RunPlan,
    processes: TaskProcesses,
    output: _Output,
    listing: _Listing | None,
    shown: dict[str, str],
    on_engine: bool,
) -> int:
    """Runs it to its end, and tells the control service if there is one. The exit code. `shown`: the variables by which
    tasks have the token."""
    from tenfold.cli.signals import stop_signals
    from tenfold.runs.driver import RunDriver

    with ExitStack() as stack:
        told = _Told(listing, plan, stack) if listing is not None else None
        if told is not None:
            output.logs = told.kept(on_engine)
            stack.callback(setattr, output, "logs", None)

        def stop(reason: str, exit_code: int) -> None:
            driver.stop(reason, exit_code)

        driver = RunDriver(
            plan,
            processes,
            say=output.say,
            observe=told.observe if told is not None else None,
            environment={
                **asked_variables(),
                **shown,
                **(told.environment if told is not None else {}),
            },
        )
        if told is not None:
            told.start(stop)
        with stop_signals(lambda each: stop(f"stopped by {each.name}", 128 + each)) as signals:
            verdict = driver.run()
        if told is not None:
            told.finish()
    if signals.received is not None:
        click.echo(verdict.reason)
        if on_engine and driver.all_finished:
            # an engine took back what it had given, and every program has saved what it had
            return 0
    return verdict.exit_code


@dataclass(frozen=True, slots=True)
class _Listing:
    """How a control service is told of a run."""

    control: str
    token: ShownToken
    #: Bytes of output that are kept of each task.
    log_bytes: int
    #: What the run is called: members of its submission.
    described: dict[str, Any]


class _Told:
    """What a control service is told of this run. A service that does not answer is no error: the run continues."""

    def __init__(self, listing: _Listing, plan: RunPlan, stack: ExitStack) -> None:
        from tenfold.control import ControlClient
        from tenfold.runs import program_report
        from tenfold.runs.by_hand import REPORT
        from tenfold.runs.source import source_of
        from tenfold_core import errors

        self._stack, self._listing = stack, listing
        self._client = stack.enter_context(ControlClient(listing.control, listing.token, _REQUEST_S))
        self._described = {**listing.described, "source": source_of(os.getcwd())}
        self._reporter: RunReporter | None = None
        #: The run's name there; None where it is not taken.
        self._run: str | None = None
        self.environment: dict[str, str] = {}
        try:
            self._run = self._client.submit_run(
                plan.entrypoint,
                launcher="external",
                jobs=plan.jobs,
                working_dir=os.getcwd(),
                restarts={"limit": plan.policy.restarts, "gang": plan.policy.gang},
                guide_flags=plan.guide_flags,
                as_tensorflow=plan.as_tensorflow,
                **self._described,
            )["name"]
        except errors.OpError as error:
            click.echo(f"This run is not reported to the control service: {error.message}", err=True)
            # else each task would try to join a run by itself, and say the same again
            self.environment = {REPORT: "0"}
            return
        click.echo(f"This is {self._run} at {listing.control}", err=True)
        self.environment = program_report.of_run(self._run, listing.control)

    def kept(self, on_engine: bool) -> TaskLogs | None:
        """Where the output is kept for `tenfold logs`, beside a file that says what the run is called and what its
        program recorded; None for a run that is not listed, or a disk that takes none."""
        from tenfold.runs import recorded_news
        from tenfold.runs.kept_logs import kept_logs
        from tenfold_core.user_folders import run_folder

        if self._run is None:
            return None
        try:
            logs = self._stack.enter_context(kept_logs(self._run, self._listing.log_bytes))
            variables = recorded_news.folder_variables(run_folder(self._run), self._run, self._described)
        except OSError as error:
            click.echo(f"The logs of this run are not kept: {error}", err=True)
            return None
        if not on_engine:
            self.environment |= variables
        return logs

    def start(self, stop: Callable[[str, int], None]) -> None:
        """`stop(reason, exit code)` is called when somebody stops the run at the service."""
        from tenfold.runs.reporter import RunReporter, this_process

        if self._run is not None:
            code = 128 + signal.SIGTERM
            self._reporter = RunReporter(self._client, self._run, this_process(), lambda reason: stop(reason, code))
            self._reporter.start()

    def observe(self, report: dict[str, Any]) -> None:
        if self._reporter is not None:
            self._reporter.put(report)

    def finish(self) -> None:
        """Waits, within a bound, until the service has the end."""
        if self._reporter is not None and not self._reporter.finish(_REQUEST_S):
            click.echo("The end of this run was not reported to the control service.", err=True)
