"""The process that runs a submitted run: `python -m tenfold.runs.supervise FOLDER`. Started by the control service.

It belongs to the run, not to the service: it goes on when the service dies, and the tasks end with it. What it needs
stands in `run.json` of its folder; the folder's lock is held as long as it lives, so no run has two. `state.json` has
the end of the run, for a service that was not there to be told. Tasks are started by the launcher that the submission
names; what the programs have left is ended before the end of the run is reported (descent.py).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenfold.cli.signals import parent_gone, stop_signals
from tenfold.control import ControlClient
from tenfold.launchers import LaunchRefusedError
from tenfold.launchers.local import LocalLauncher, LocalProcesses
from tenfold.launchers.registry import launcher
from tenfold.runs import output_sender, program_report, recorded_news
from tenfold.runs.driver import RunDriver
from tenfold.runs.plan import plan_of
from tenfold.runs.reporter import RunReporter, this_process
from tenfold.runs.task_logs import TaskLogs
from tenfold_core import log_setup
from tenfold_core.access.credentials import shown_token
from tenfold_core.checkpoint.files import AtomicFile
from tenfold_core.errors import OpError
from tenfold_core.run_states import WITH_SERVICE, RunState

if TYPE_CHECKING:
    import signal

    from tenfold.cli.children import Echo
    from tenfold.launchers import TaskProcesses
    from tenfold.runs.plan import RunPlan

#: Seconds that a control service has to take the first report: nothing is started before, so that of two supervisors on
#: two machines only one starts anything.
_FIRST_REPORT_S = 60.0
#: Seconds that the control service has to take the last report; afterwards it finds state.json.
_LAST_REPORT_S = 30.0
#: Seconds for each request.
_REQUEST_S = 10.0


def main(folder: Path) -> int:
    """Runs it to its end; 0 when it has ended in any way, 1 when another process has it or its end is known."""
    log_setup.configure("info", "text")
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        logging.info("another process has this run")
        return 1
    if (folder / "state.json").exists():
        logging.info("this run has ended already")
        return 1
    os.ftruncate(lock, 0)
    os.write(lock, f"{os.getpid()}\n".encode())
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    _supervise(folder, run)
    return 0


def _supervise(folder: Path, run: dict[str, Any]) -> None:
    (folder / "errors").mkdir(exist_ok=True)
    token = shown_token()
    with (
        TaskLogs(folder / "logs") as logs,
        ControlClient(run["control"], token, _REQUEST_S) as client,
        contextlib.ExitStack() as held,
    ):
        driver: RunDriver | None = None

        def stop(reason: str) -> None:
            assert driver is not None
            driver.stop(reason)

        def say(text: str) -> None:
            logs.write("run", text)

        reporter = RunReporter(client, run["id"], this_process(), stop)
        try:
            plan = plan_of(run["submission"])
            os.chdir(run["submission"].get("working_dir") or folder)
            processes = _processes(run, plan, folder, logs.write)
            environment = program_report.of_run(run["id"], run["control"])
            if isinstance(processes, LocalProcesses):
                environment |= recorded_news.folder_variables(folder, run["id"], run.get("details", {}))
            else:
                environment |= {**token.carried(), output_sender.SEND: "1"}
            driver = RunDriver(plan, processes, say=say, observe=reporter.put, environment=environment)
            if not reporter.begin(_FIRST_REPORT_S):
                return
            reporter.start()
            held.enter_context(processes)
            with stop_signals(lambda received: stop(why_stopped(received))):
                driver.run()
            last = driver.report()
        except (OSError, ValueError, LaunchRefusedError) as error:
            if driver is None:
                last = {"state": str(RunState.FAILED), "reason": f"it cannot be started: {error}"}
                last |= {"attempt": 0, "restarts": 0, "tasks": []}
            else:
                last = driver.not_started(str(error))
            say(last["reason"])
            reporter.put(last)
            reporter.start()
        try:
            with AtomicFile(str(folder / "state.json")) as file:
                file.write(json.dumps(last).encode())
        except (OpError, OSError) as error:
            # what is told still counts
            logging.warning("the end of the run cannot be written down: %s", error)
        if not reporter.finish(_LAST_REPORT_S):
            logging.warning("the control service was not told of the end; state.json has it")


def why_stopped(received: signal.Signals) -> str:
    """What a stop signal means. The service asks before it ends; one that was killed is seen to be gone."""
    return WITH_SERVICE if parent_gone.is_set() else f"stopped by {received.name}"


def _processes(run: dict[str, Any], plan: RunPlan, folder: Path, echo: Echo) -> TaskProcesses:
    """What starts the tasks. Raises LaunchRefusedError."""
    submission = run["submission"]
    name = run.get("launcher", LocalLauncher.name)
    if name == LocalLauncher.name:
        return LocalProcesses(echo, len(plan.tasks), errors=folder / "errors", whole=True)
    page = f"{run['control'].partition(',')[0]}/#/runs/{run['id']}"
    request = plan.request(run["id"], os.getcwd(), submission.get("launcher_options") or {}, page)
    return launcher(name).open(request, echo)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
