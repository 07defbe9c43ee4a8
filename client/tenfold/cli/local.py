"""A cluster on this machine: the control service and its tasks, each a real process. `tenfold up` and `make demo`.

The children are the commands `tenfold control` and `tenfold task`, exactly as a user would start them. Each prints one
line with its address (control.py, task.py); this module reads nothing else of their output.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tenfold.cli.children import Children, Echo
from tenfold.cli.scratch import scratch_folder
from tenfold_core.blas_env import thread_share
from tenfold_core.port_users import refusal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

#: Name of the control service among the children.
CONTROL = "control"
#: Children are stopped from the last stage to the first: clients, tasks, control service.
CONTROL_STAGE, TASK_STAGE, CLIENT_STAGE = 0, 1, 2
#: Seconds for a child to print where it listens. Generous: a busy machine may start several interpreters at once.
START_TIMEOUT_S = 60.0


class LocalCluster:
    """`ps` parameter servers and `workers` workers behind a control service. A context manager.

    Entering starts everything and blocks until all of it listens; raises ChildFailedError, with the child's last lines,
    if something does not come up. Leaving stops everything.
    """

    def __init__(
        self,
        ps: int = 1,
        workers: int = 2,
        control_port: int = 0,
        echo: Echo | None = None,
        *,
        stop_with_workers: bool = False,
        database: str | None = None,
        models: str | None = None,
        trainings: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`stop_with_workers`: the parameter servers end once every worker has finished. `database`: an SQLite file
        that keeps runs, their curves and logs for the next cluster, and is this one's alone (held_database.py); without
        one they go when this object ends. `models`: a folder of SavedModels to serve;
        `trainings`: one of trainings that they may follow. `environment` is added to that
        of every child."""
        if ps < 0 or workers < 0 or ps + workers == 0:
            raise ValueError(f"a cluster needs at least one task: got {ps} ps and {workers} workers")
        #: Jobs that have tasks, and how many.
        self.jobs = {job: size for job, size in (("ps", ps), ("worker", workers)) if size}
        self.children = Children(echo)
        #: URL of the control service; set once it listens.
        self.control_url = ""
        #: (job, index) → "host:port"; complete once entered.
        self.addresses: dict[tuple[str, int], str] = {}
        self._control_port = control_port
        self._stop_with_workers = stop_with_workers
        self._given_database, self._models, self._trainings = database, models, trainings
        self._environment = dict(environment or {})

    def __enter__(self) -> LocalCluster:
        self._held = ExitStack()
        try:
            if self._given_database is None:
                self._start(str(self._held.enter_context(scratch_folder("up")) / "control.db"))
            else:
                self._start(self._given_database)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def wait_for_exit(self, timeout: float | None = None) -> tuple[str, int] | None:
        """Blocks until any child ends, which none should by itself; its name and exit code, None in time-out."""
        return self.children.wait_for_exit(timeout=timeout)

    def stop(self) -> None:
        """Stops clients, tasks and the control service, in this order, within a bound. Idempotent."""
        try:
            self.children.stop()
        finally:
            self._held.close()

    def _start(self, database: str) -> None:
        # Settings in the environment that are meant for one task must not reach every child.
        clean = dict.fromkeys(
            (
                *("TENFOLD_JOB", "TENFOLD_INDEX", "TENFOLD_CLUSTER", "TENFOLD_CLUSTER_NAME", "TENFOLD_CONTROL"),
                *("TENFOLD_ADDRESS", "TENFOLD_BIND", "TENFOLD_HTTP_HOST", "TENFOLD_HTTP_PORT", "TENFOLD_DATABASE"),
                *("TENFOLD_LINK_PORT", "TENFOLD_METRICS_PORT", "TENFOLD_JOBS", "TENFOLD_STOP_WITH_WORKERS"),
                "TF_CONFIG",
            ),
            "",
        )
        program = ["-m", "tenfold.cli", "control", "--port", str(self._control_port), "--database", database]
        # what the database still has of the cluster is of processes that ended with their parent
        program += ["--jobs", ",".join(f"{job}={size}" for job, size in self.jobs.items()), "--anew", "--allow-runs"]
        program += ["--stop-with-workers"] if self._stop_with_workers else []
        program += ["--models", self._models] if self._models else []
        program += ["--trainings", self._trainings] if self._trainings else []
        clean["TENFOLD_CONTROL_RUNS_END_WITH_SERVICE"] = "1"
        # nor must a file that is meant for `tenfold control` and `tenfold task`
        clean["TENFOLD_CONFIG"] = os.devnull
        clean |= self._environment
        self.children.start(CONTROL, program, stage=CONTROL_STAGE, env=clean)
        found = self.children.wait_for_line(CONTROL, r"listening on (https?://\S+)", START_TIMEOUT_S)
        self.control_url = found[1]

        tasks = [(job, index) for job, size in self.jobs.items() for index in range(size)]
        self._task_environment = {**clean, **thread_share(len(tasks))}
        for job, index in tasks:
            self.start_task(job, index)
        for job, index in tasks:
            found = self.children.wait_for_line(f"{job}/{index}", r"listening on grpc://(\S+)", START_TIMEOUT_S)
            self.addresses[job, index] = found[1]

    def start_task(self, job: str, index: int) -> bool:
        """Starts a task, also in place of one that has ended: then at the address that this had, unless something else
        has taken its port meanwhile. Whether it is at that address. Does not wait for it to listen."""
        name = f"{job}/{index}"
        if self.children.knows(name):
            self.children.forget(name)
        program = ["-m", "tenfold.cli", "task", "--job", job, "--index", str(index), "--control", self.control_url]
        former = self.addresses.get((job, index))
        same = False
        if former is not None:
            host, _, port = former.rpartition(":")
            if same := not refusal(int(port), host):
                program += ["--bind", former]
        self.children.start(name, program, stage=TASK_STAGE, env=self._task_environment)
        return same
