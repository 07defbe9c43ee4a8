"""Programs that neither `tenfold submit` nor `tenfold run` has started: they are listed as runs, too.

Where TENFOLD_CONTROL or the session's target names a control service, or the program has asked one for the cluster of
its session, the first session or server of the process starts its reports (program_report.py). As a tf.train.Server's
process it is a task of the run of its cluster; else it is a client, and clients of one program on one cluster are one
run. Nothing of it blocks or raises in the program, and TENFOLD_REPORT=0 turns it off.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import logging
import os
import signal
import socket
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold.runs import run_cluster
from tenfold.runs.program_end import how_it_ended, watch_exit
from tenfold.runs.program_report import CONTROL, RUN, Place, ProgramReporter
from tenfold.runs.server_registration import ServerRegistration
from tenfold.session import observing
from tenfold_core import errors
from tenfold_core.access.credentials import shown_token
from tenfold_core.run_states import SERVERS, error_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold.control import ControlClient
    from tenfold.runs.given_place import GivenPlace
    from tenfold_core.access.credentials import Shown
    from tenfold_core.cluster_spec import ClusterSpec

log = logging.getLogger(__name__)

#: The variable that turns it off.
REPORT = "TENFOLD_REPORT"
#: The job of programs that are no task of the cluster.
CLIENT = "client"
#: Of several servers in one process the program is the first of these; then the others, parameter servers last.
_LEADERS = ("chief", "master", "worker")
#: Characters and parts of a command line that are told.
_CHARACTERS, _PARTS = 4000, 1000


@dataclass(frozen=True, slots=True)
class Service:
    """Where to report: a control service, and the cluster's name there."""

    url: str
    token: Shown
    cluster: str


class ByHand:
    """This process as a member of the run of its programs."""

    is_supervised, joins_again = False, True

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        # now: the interpreter takes the name of its script away when that has ended
        self._program = program_name()
        self._lock = threading.Lock()
        #: The servers of this process: job, index and the addresses of their cluster. Guarded by _lock.
        self._servers: list[tuple[str, int, dict[str, dict[int, str]]]] = []
        self._stopping = self._finished = False

    def add_server(self, job: str, index: int, addresses: dict[str, dict[int, str]]) -> None:
        with self._lock:
            self._servers.append((job, index, addresses))

    def remove_server(self, job: str, index: int) -> bool:
        """Whether that was the last one, with which the program has finished its part of the run."""
        with self._lock:
            left = [each for each in self._servers if each[:2] != (job, index)]
            self._finished = bool(self._servers) and not left
            if not self._finished:  # the last report is still that task's
                self._servers = left
            return self._finished

    def find(self, client: ControlClient, active: bool, ending: bool, timeout: float) -> Place | None:
        """Joins. A program that has run no step begins no run: it serves others, or has done nothing yet; unless it
        ends with an error."""
        create = active or (ending and how_it_ended()["state"] == "failed")
        with self._lock:
            servers = sorted(self._servers, key=_rank)
        if not servers and not create:
            return None
        try:
            found = client.join_run(
                **identity(self._cluster, self._program, servers[0] if servers else None),
                entrypoint=[part[:_CHARACTERS] for part in sys.orig_argv[:_PARTS]],
                working_dir=_folder(),
                process=self._process(),
                create=create,
                timeout=timeout,
            )
        except errors.NotFoundError:
            return None  # nobody whom it serves has begun a run yet
        return Place(found.run, found.job, found.index)

    def members(self, ending: bool) -> dict[str, Any]:
        told: dict[str, Any] = {"process": self._process()}
        if ending:
            known = {"state": "stopped"} if self._stopping else {"state": "succeeded"} if self._finished else None
            told["ending"] = known or how_it_ended()
        return told

    def stop(self) -> None:
        self._stopping = True

    def end(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    @staticmethod
    def _process() -> dict[str, Any]:
        return {"host": socket.gethostname(), "pid": os.getpid()}


def identity(
    cluster: str, program: str, server: tuple[str, int, Mapping[str, Mapping[int, str]]] | None
) -> dict[str, Any]:
    """What says which run this is and which task of it: key, job, index and jobs. A restarted program has the same."""
    if server is None:
        return {"key": _hash([cluster, CLIENT, program]), "job": CLIENT, "index": None, "jobs": {}}
    job, index, addresses = server
    same = {name: {str(at): address for at, address in tasks.items()} for name, tasks in addresses.items()}
    return {"key": _hash([cluster, same]), "job": job, "index": index, "jobs": sizes(addresses)}


def program_name() -> str:
    """The path of this process's script, else what follows the interpreter on its command line."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    return " ".join(sys.orig_argv[1:]) if script is None else os.path.realpath(script)


def note_session(target: str) -> None:
    """This process opens a session. Never blocks, never raises."""
    if _this.reporter is None and _this.wanted:
        service = _named() or _asked(target)
        if service is not None:
            _this.begin(service)


def serve(
    job: str, index: int, cluster: ClusterSpec, server: Any, given: GivenPlace | None
) -> ServerRegistration | None:
    """This process serves a task: `server` is the BackgroundServer. Registers it where the environment names a control
    service, or takes over the place that it was `given`; the caller stops what it gets. Never blocks, never raises."""
    service = _named()
    address = cluster.task_address(job, index)
    if service is None or (given is None and (not _this.wanted or address.rpartition(":")[2] == "0")):
        return None  # a port that nobody knows before is that of no cluster
    addresses = {
        name: {at: cluster.task_address(name, at) for at in cluster.task_indices(name)} for name in cluster.jobs
    }
    if _this.wanted:
        _this.begin(service).add_server(job, index, addresses)
    registration = ServerRegistration(
        service.url,
        service.token,
        service.cluster,
        job,
        index,
        address,
        jobs=sizes(addresses),
        server=server,
        given=given,
    )
    registration.start()
    return registration


def leave(registration: ServerRegistration, finished: bool) -> None:
    """The server of this registration stops; the program has `finished` with it, or ends as it can be seen."""
    ended: dict[str, Any] = {"state": "succeeded"} if finished else how_it_ended()
    if finished:
        _this.leave(registration.job, registration.index)
    if ended["state"] == "succeeded":
        registration.stop()
    elif ended["state"] == "stopped":
        registration.stop(state="stopped", exit_code=None, reason="stopped by SIGINT")
    else:
        reason = f"its program failed{error_line(ended['error'])}"[:500]
        registration.stop(state="lost", exit_code=ended["exit_code"], reason=reason)


def sizes(addresses: Mapping[str, Mapping[int, str]]) -> dict[str, int]:
    """Job → number of tasks, as a cluster is declared: a sparse one up to its last task."""
    return {job: max(tasks) + 1 for job, tasks in addresses.items() if tasks}


class _Process:
    """The reports of this process: none, or one reporter until the program has stopped its servers, or ends."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        #: A task of a run reports as such; and some want no reports.
        self.wanted = not os.environ.get(RUN) and os.environ.get(REPORT, "1").lower() not in ("0", "false", "no")
        self.reporter: ProgramReporter | None = None
        self.member: ByHand | None = None

    def begin(self, service: Service) -> ByHand:
        with self.lock:
            if self.member is None:
                observing.watch()
                watch_exit()
                self.member = ByHand(service.cluster)
                self.reporter = ProgramReporter(self.member, service.url, service.token)
                self.reporter.start()
                atexit.register(self.reporter.finish)
            return self.member

    def leave(self, job: str, index: int) -> None:
        """The program has stopped that server: after the last one it reports once more, and what it does later is
        another run's. Blocks for a moment."""
        with self.lock:
            if self.member is None or self.reporter is None or not self.member.remove_server(job, index):
                return
            reporter, self.member, self.reporter = self.reporter, None, None
        atexit.unregister(reporter.finish)
        reporter.finish()
        with self.lock:
            if self.member is None:
                observing.end()


def _named() -> Service | None:
    """The service that the environment names."""
    url = os.environ.get(CONTROL)
    if not url:
        return None
    try:
        return Service(url, shown_token(), os.environ.get("TENFOLD_CLUSTER_NAME") or "default")
    except errors.InvalidArgumentError as error:
        log.warning("this program is not reported to the control service: %s", error.message)
        return None


def _asked(target: str) -> Service | None:
    """The service that the target names, or that the program has asked for the cluster of this target."""
    if target.startswith("tenfold://"):
        if run_cluster.of_target(target) is not None:
            return None  # the cluster of its own run: there is nobody to tell
        from tenfold.control.targets import ControlTarget

        try:
            named = ControlTarget.parse(target)
            return Service(named.url, shown_token(), named.cluster)
        except errors.InvalidArgumentError:
            return None  # the session says so
    used = sys.modules.get("tenfold.control.used")
    found = None if used is None or not target else used.service_of(target)
    return None if found is None else Service(found.url, found.token, found.cluster)


def _rank(server: tuple[str, int, Any]) -> tuple[int, str, int]:
    job, index, _ = server
    rank = _LEADERS.index(job) if job in _LEADERS else len(_LEADERS) + (job == SERVERS)
    return rank, job, index


def _hash(identity: Any) -> str:
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]


def _folder() -> str | None:
    try:
        return os.getcwd()[:_CHARACTERS]
    except OSError:
        return None


_this = _Process()


def _after_fork() -> None:
    """The reporter's thread does not exist in the child, which is another program if it opens a session of its own."""
    global _this
    if _this.reporter is not None:
        atexit.unregister(_this.reporter.finish)
        observing.end()
    _this = _Process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
