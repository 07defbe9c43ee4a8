"""The tasks of one run as pods. kubernetes_run.py has the objects, kubernetes_status.py what a pod says,
kubernetes_tasks.py what follows from it; here are the threads and the calls.

Threads: the driver's, which creates and waits; one that watches the pods; one that looks after the run (tells the
server which tasks are to end, puts off the deadline of the lease, notices what takes too long); and one for each log.
They meet at one condition. What the server does not take now it is told later. One that is silent for as long as the
lease has ended the run on its side, and so it is ended on this one.
"""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from tenfold.launchers.interface import LaunchRefusedError
from tenfold.launchers.kubernetes_api import GONE, NOT_FOUND, ApiRefusedError, KubernetesApi, Stop, version_of
from tenfold.launchers.kubernetes_run import RunObjects
from tenfold.launchers.kubernetes_status import view
from tenfold.launchers.kubernetes_tasks import KILL, KILL_GRACE, TERM, PodTask, PodTasks
from tenfold_core.access.tokens import new_token
from tenfold_core.loopback import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from tenfold.launchers.interface import LaunchRequest
    from tenfold.launchers.kubernetes_objects import Object, PodSettings

log = logging.getLogger(__name__)

#: Seconds between two looks at what takes too long; for a call of the thread that looks; before a broken watch or log
#: is asked for again.
_LOOK_S, _CALL_S, _AGAIN_S = 1.0, 5.0, 5.0
#: Seconds on leaving: for tasks to end by themselves, once they are killed, and for threads.
_LEAVE_S, _KILLED_S, _THREAD_S = 10.0, 45.0, 5.0
#: By any of these a task shows who it is; without one the run makes a token of its own.
_CREDENTIALS = ("TENFOLD_TOKEN", "TENFOLD_TOKEN_FILE", "TENFOLD_TLS_CERT")
_CONTROL = "TENFOLD_CONTROL"
#: What a server says to a version that it does not understand.
_BAD_REQUEST = 400


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What the launcher's options say of the run as a whole; seconds."""

    name: str
    pods: PodSettings
    sync: bool
    control: str | None
    patience: int
    lease: int


class KubernetesProcesses:
    """See TaskProcesses. Entering it creates the run's lease and its service."""

    def __init__(self, request: LaunchRequest, echo: Callable[[str, str], None], run: RunSettings) -> None:
        self._request, self._echo, self._run = request, echo, run
        self._changed = threading.Condition()
        #: Guarded by the condition, as all of its tasks.
        self._tasks = PodTasks(run.pods.grace, run.patience)
        self._starts = 0
        self._token: str | None = None
        self._over = False
        self._stop = Stop()
        #: Those that watch and look, and those of the logs. Guarded by the condition.
        self._threads: list[threading.Thread] = []
        self._api: KubernetesApi | None = None
        self._objects = RunObjects(run.name, "", run.pods, request, run.sync)
        self._owner: Object = {}
        self._pieces = 0
        #: When the lease was made, and when the server was last heard; monotonic.
        self._begun = self._heard = 0.0
        #: Why there is no lease any more; empty while there is.
        self._lost = ""
        self._said_control = False
        #: Whether `echo` still takes lines.
        self._shown = True

    # -- beginning and ending

    def __enter__(self) -> Self:
        options = self._request.options
        try:
            self._api = KubernetesApi(options.get("kubeconfig"), options.get("context"), options.get("namespace"))
            self._objects = RunObjects(
                self._run.name, self._api.namespace, self._run.pods, self._request, self._run.sync
            )
            self._begin(self._api)
        except ApiRefusedError as error:
            self._leave()
            raise LaunchRefusedError(f"Kubernetes: {error}") from error
        except BaseException:
            self._leave()
            raise
        return self

    def _begin(self, api: KubernetesApi) -> None:
        self._begun = self._heard = time.monotonic()
        self._owner = self._objects.owner(api.create_job(self._objects.lease(self._run.lease)))
        api.create_service(self._objects.service(self._owner))
        if self._run.sync:
            self._send_files(api)
        _, version = api.list_pods(self._objects.selector)
        self._start_thread(lambda: self._watch(version), "watch-pods")
        self._start_thread(self._look_after, "look-after-pods")
        self._say(f"the run is job/{self._run.name} in namespace {api.namespace}")

    def _send_files(self, api: KubernetesApi) -> None:
        from tenfold.runs.package import pack

        with tempfile.TemporaryFile() as package:
            try:
                pack(Path(self._request.working_dir), package)
            except OSError as error:
                raise LaunchRefusedError(f"kubernetes: {self._request.working_dir} cannot be sent: {error}") from error
            secrets = self._objects.files(package, self._owner)
        for secret in secrets:
            api.create_secret(secret)
        self._pieces = len(secrets)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """1 SIGTERM to what runs, the last stage first · 2 SIGKILL · 3 the lease is deleted, and all that it owns
        with it · 4 the threads end. Each within a bound."""
        try:
            with self._changed:
                running = self._tasks.running
            deadline = time.monotonic() + _LEAVE_S
            for stage in sorted({task.stage for task in running}, reverse=True):
                members = [task for task in running if task.stage == stage]
                self._ask(members, TERM)
                self._wait_for(members, deadline - time.monotonic())
            self._ask(running, KILL)
            self._wait_for(running, _KILLED_S)
        finally:
            self._leave()

    def _leave(self) -> None:
        with self._changed:
            self._over = True
            threads = list(self._threads)
            self._changed.notify_all()
        self._stop.set()
        if self._api is None:
            return
        if self._owner:
            try:
                self._api.delete_job(self._run.name, _CALL_S if self._lost else _LEAVE_S)
            except ApiRefusedError as error:
                self._say(f"job/{self._run.name} is not deleted ({error}); it ends within {self._run.lease} s")
        for thread in threads:
            thread.join(_THREAD_S)
        self._api.close()

    def _wait_for(self, tasks: Sequence[PodTask], seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: all(task.exit_code is not None for task in tasks), max(0.0, seconds))

    def _start_thread(self, body: Callable[[], None], name: str) -> None:
        """Starts it. A fault of ours in it ends the run: nobody would hear of its pods."""

        def guarded() -> None:
            try:
                body()
            except Exception as error:
                log.exception("%s has failed", name)
                self._lose(f"{name} has failed: {error!r}")

        thread = threading.Thread(target=guarded, name=name, daemon=True)
        with self._changed:
            self._threads = [*(each for each in self._threads if each.is_alive()), thread]
            thread.start()

    # -- tasks, for the driver

    def addresses(self, jobs: Mapping[str, int]) -> dict[str, list[str]]:
        if self._token is None:
            self._token = new_token()
        return self._objects.addresses(jobs)

    def start(
        self,
        name: str,
        program: Sequence[str],
        *,
        stage: int = 0,
        env: Mapping[str, str] | None = None,
        interpreter: Sequence[str] = (),
    ) -> None:
        assert self._api is not None
        with self._changed:
            before = self._tasks.get(name)
            self._starts += 1
            pod = self._objects.pod_name(name, self._starts)
            task = self._tasks.begin(name, pod, stage, time.monotonic())
            if self._lost:
                self._tasks.lose_all(self._lost, time.monotonic())
                return
        secret = self._objects.task_secret(pod, name, program, interpreter, self._variables(env or {}), self._owner)
        try:
            if before is not None:
                self._api.delete_pod(before.pod, 0)
                self._api.delete_secret(before.pod)
            self._api.create_secret(secret)
            self._api.create_pod(self._objects.pod(pod, name, self._pieces, self._owner))
        except ApiRefusedError as error:
            with self._changed:
                self._tasks.refuse(task, str(error), time.monotonic())
            return
        with self._changed:
            task.created = True

    def _variables(self, given: Mapping[str, str]) -> dict[str, str]:
        """The task's environment."""
        # a node may be drained, or a pod preempted: the program is told by SIGTERM (train/monitored_session.py)
        found = {"TENFOLD_SAVE_AT_SIGTERM": "1", **given}
        if self._token is not None and not any(found.get(each) for each in _CREDENTIALS):
            found["TENFOLD_TOKEN"] = self._token
        if found.get(_CONTROL):
            if self._run.control is not None:
                found[_CONTROL] = self._run.control
            elif is_loopback(urlsplit(found[_CONTROL]).hostname or "") and not self._said_control:
                self._said_control = True
                self._say(f"pods do not reach {found[_CONTROL]}: give -o control=URL, by which they reach the service")
        return found

    def terminate(self, name: str) -> None:
        self._ask([self._tasks[name]], TERM)

    def kill(self, name: str) -> None:
        self._ask([self._tasks[name]], KILL)

    def _ask(self, tasks: Sequence[PodTask], signal: int) -> None:
        with self._changed:
            self._tasks.ask(tasks, signal)
            self._changed.notify_all()

    def wait_for_exit(
        self, names: Sequence[str], timeout: float | None = None, *, unless: Callable[[], bool] | None = None
    ) -> tuple[str, int] | None:
        def first() -> PodTask | None:
            done = [self._tasks[name] for name in names if self._tasks[name].exit_code is not None]
            return min(done, key=lambda task: task.over_at, default=None)

        with self._changed:
            self._changed.wait_for(lambda: first() is not None or (unless is not None and unless()), timeout)
            task = first()
            return None if task is None or task.exit_code is None else (task.name, task.exit_code)

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def last_lines(self, name: str, count: int) -> list[str]:
        with self._changed:
            return list(self._tasks[name].lines)[-count:]

    def error(self, name: str) -> dict[str, str] | None:
        return self._tasks[name].error

    def place(self, name: str) -> dict[str, Any]:
        """The node, or the pod before it has one. A process id means nothing outside of the pod."""
        with self._changed:
            task = self._tasks[name]
            node = None if task.view is None else task.view.node
            return {"host": node or f"pod/{task.pod}", "pid": None}

    def clear(self) -> None:
        """A container that has ended has left no process."""

    # -- the thread that watches

    def _watch(self, version: str) -> None:
        """Body of a thread: all that happens to the run's pods, whatever becomes of a connection."""
        assert self._api is not None
        pause = 0.0
        while not self._stop.wait(pause):
            try:
                if not version:
                    version = self._look_at_all(self._api)
                for kind, pod in self._api.watch_pods(self._objects.selector, version, self._stop):
                    version = version_of(pod) or version
                    pause = 0.0
                    self._on_pod(kind, pod)
            except ApiRefusedError as error:
                # one that is too old: what was missed is in a new list; any other trouble may pass
                version = "" if error.status in (GONE, _BAD_REQUEST) else version
                pause = 0.0 if error.status == GONE else min(_AGAIN_S, 2 * pause + 0.2)
                log.info("the watch of %s: %s", self._run.name, error)

    def _look_at_all(self, api: KubernetesApi) -> str:
        """Takes up what a watch has missed; the version from which on to watch."""
        with self._changed:
            known = [task for task in self._tasks.running if task.created]
        pods, version = api.list_pods(self._objects.selector)
        for pod in pods:
            self._on_pod("MODIFIED", pod)
        with self._changed:
            self._heard = time.monotonic()
            self._tasks.on_list(known, {view(pod).name for pod in pods}, self._heard)
            self._changed.notify_all()
        return version

    def _on_pod(self, kind: str, pod: Mapping[str, Any]) -> None:
        with self._changed:
            self._heard = time.monotonic()
            if kind == "BOOKMARK":
                return
            news = self._tasks.on_pod(view(pod), kind == "DELETED", self._heard)
            self._changed.notify_all()
        if (task := news.follow) is not None:
            self._start_thread(lambda: self._follow(task), f"log:{task.name}")
        if news.say:
            self._say(news.say)

    # -- the threads of the logs

    def _follow(self, task: PodTask) -> None:
        """Body of a thread: all lines of a task's container, over broken connections, to their end."""
        assert self._api is not None
        last, heard, tries = "", 0.0, 0
        while not self._stop.is_set():
            resumed, since = last, time.monotonic() - heard + _AGAIN_S if last else None
            why = ""
            try:
                for moment, text in self._api.follow_log(task.pod, self._stop, since):
                    heard = time.monotonic()
                    if moment > resumed:
                        last = max(last, moment)
                        self._line(task, text)
            except ApiRefusedError as error:
                why = str(error)
                if error.status == NOT_FOUND:
                    break
            with self._changed:
                # a log that ends before its container has lost its connection
                self._changed.wait_for(lambda: task.ended is not None or self._over, _AGAIN_S if why else _LOOK_S)
                if task.ended is not None and (not why or tries):
                    break
                tries += 1 if task.ended is not None else 0
        with self._changed:
            self._tasks.all_read(task, time.monotonic())
            self._changed.notify_all()

    def _line(self, task: PodTask, text: str) -> None:
        with self._changed:
            task.lines.append(text)
        self._show(task.name, text)

    # -- the thread that looks after the run

    def _look_after(self) -> None:
        """Body of a thread."""
        due = self._begun + self._run.lease / 3
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._over or bool(self._tasks.to_tell(time.monotonic())), _LOOK_S)
                if self._over:
                    return
                wishes = self._tasks.to_tell(time.monotonic())
            for task in wishes:
                self._tell(task)
            if time.monotonic() >= due and not self._lost:
                due = time.monotonic() + (self._run.lease / 3 if self._renew() else _LOOK_S)
            now = time.monotonic()
            if not self._lost and now > self._heard + self._run.lease:
                self._lose(f"the API server has not answered for {self._run.lease} s")
            with self._changed:
                said = self._tasks.overdue(now)
                unwanted = self._tasks.take_unwanted()
                self._changed.notify_all()
            for text in said:
                self._say(text)
            for pod, grace in unwanted.items():
                self._remove(pod, grace)

    def _tell(self, task: PodTask) -> None:
        """Deletes the pod: SIGTERM, and SIGKILL after the grace."""
        assert self._api is not None
        signal = task.asked or TERM
        try:
            self._api.delete_pod(task.pod, self._run.pods.grace if signal == TERM else KILL_GRACE, _CALL_S)
        except ApiRefusedError as error:
            with self._changed:
                self._tasks.not_told(task, time.monotonic())
            self._say(f"{task.name} is not stopped yet: {error}")
        else:
            with self._changed:
                self._tasks.told(task, signal, time.monotonic())

    def _renew(self) -> bool:
        """Puts off the deadline of the lease, counted from its start, of which ours is no later than the server's."""
        assert self._api is not None
        seconds = int(time.monotonic() - self._begun) + self._run.lease
        try:
            self._api.patch_job(self._run.name, {"spec": {"activeDeadlineSeconds": seconds}}, _CALL_S)
        except ApiRefusedError as error:
            if error.status == NOT_FOUND:
                self._lose(f"job/{self._run.name} is gone: somebody has deleted it, or its deadline has passed")
            else:
                log.info("the lease of %s is not renewed: %s", self._run.name, error)
            return False
        with self._changed:
            self._heard = time.monotonic()
        return True

    def _lose(self, why: str) -> None:
        """The run is over on the server's side."""
        with self._changed:
            self._lost = why
            self._tasks.lose_all(why, time.monotonic())
            self._changed.notify_all()
        self._say(why)

    def _remove(self, pod: str, grace: int) -> None:
        assert self._api is not None
        try:
            self._api.delete_pod(pod, grace, _CALL_S)
        except ApiRefusedError as error:
            self._say(f"pod/{pod} is not removed: {error}")

    def _say(self, text: str) -> None:
        self._show("run", text)

    def _show(self, name: str, text: str) -> None:
        """To who watches; one who is gone is no reason to stop."""
        if self._shown:
            try:
                self._echo(name, text)
            except Exception:
                self._shown = False
                log.exception("the output of the run is not shown any more")
