"""`ServerRegistration`: a tf.train.Server of a program by hand as a registered task of its cluster.

Started by train/server_lib.py where TENFOLD_CONTROL names a service. One thread, `control-register`, declares the
cluster if nobody has, and registers; TaskRegistration's thread goes on from there. The program's own cluster spec
counts: what the service knows of addresses is not given to the server. A service that is not there is asked again, and
so is one that still waits for a former life of this server, which was killed: until that one's lease has run out.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from typing import TYPE_CHECKING, Any

from tenfold.runs.program_report import keep_quiet
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold.control import ControlClient, TaskRegistration
    from tenfold.runs.given_place import GivenPlace
    from tenfold_core.access.credentials import Shown

log = logging.getLogger(__name__)

#: Seconds for one request, between attempts while the service is not there, and for the release at the end.
_REQUEST_S, _AGAIN_S, _RELEASE_S = 5.0, 2.0, 2.0


class ServerRegistration:
    """Keeps one task registered between `start` and `stop`, neither of which raises."""

    def __init__(
        self,
        url: str,
        token: Shown,
        cluster: str,
        job: str,
        index: int,
        address: str,
        *,
        jobs: Mapping[str, int],
        server: Any,
        given: GivenPlace | None = None,
    ) -> None:
        """`jobs`: sizes of the cluster, for a service that does not know it. `server`: the BackgroundServer. `given`: a
        registration that there is already, which goes over to this object."""
        self._url, self._token, self._cluster = url, token, cluster
        self.job, self.index, self._address, self._jobs, self._server = job, index, address, dict(jobs), server
        self._stopping = threading.Event()
        self._registration: TaskRegistration | None = None if given is None else given.registration
        self._client: ControlClient | None = None if given is None else given.client
        self._thread = threading.Thread(target=self._register, name="control-register", daemon=True)

    def start(self) -> None:
        """Never blocks."""
        self._thread.start()

    def stop(self, *, state: str = "finished", exit_code: int | None = 0, reason: str | None = None) -> None:
        """Leaves as `state`. Blocks for a moment at most."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._thread.join(_RELEASE_S)
        if self._registration is not None:
            self._registration.stop(state=state, exit_code=exit_code, reason=reason, timeout=_RELEASE_S)
        if self._client is not None:
            self._client.close()

    # -- the thread

    def _register(self) -> None:
        from tenfold.control import ControlClient, TaskRegistration
        from tenfold.control.devices import devices_of
        from tenfold.control.retry import NO_RETRY

        keep_quiet()
        if self._registration is not None:
            self._registration.figures = self._server.figures
            self._registration.on_lease = self._server.hold_lease
            try:
                self._registration.update_devices(devices_of(self._server))
            except errors.OpError as error:
                log.info("%s: its devices are not known to the control service: %s", self._name, error.message)
            return
        self._client = client = ControlClient(self._url, self._token, _REQUEST_S, retry=NO_RETRY)
        said = False
        while not self._stopping.is_set():
            try:
                self._declare(client)
                registration = TaskRegistration(
                    client,
                    self._cluster,
                    self.job,
                    self.index,
                    self._address,
                    devices=devices_of(self._server),
                    insecure=self._server.insecure,
                    figures=self._server.figures,
                    on_lease=self._server.hold_lease,
                    on_told=lambda state, reason: self._say(f"says that it is {state}: {reason}"),
                    on_lost=self._say,
                    on_drain=self._drain,
                )
                self._registration = registration.start(timeout=0.0)
                return
            except (errors.UnavailableError, errors.DeadlineExceededError) as error:
                if not said:
                    said = True
                    log.info("%s is not registered yet: %s", self._name, error.message)
                self._stopping.wait(_AGAIN_S)
            except errors.OpError as error:
                if not isinstance(error, errors.AlreadyExistsError) or not self._held_by_former_life(client):
                    self._say(f"does not register it: {error.message}")
                    return
                if not said:
                    said = True
                    log.info("%s waits for the lease of its former life to run out: %s", self._name, error.message)
                self._stopping.wait(_AGAIN_S)
            except RuntimeError:
                return  # the server was stopped meanwhile

    def _held_by_former_life(self, client: ControlClient) -> bool:
        """Whether the index belongs to this very address. No other process serves there now that this one does."""
        try:
            known = client.spec(self._cluster)
        except errors.OpError:
            return False
        return known.addresses.get(self.job, {}).get(self.index) == self._address

    def _drain(self, grace: float, reason: str) -> None:
        """Ends the server after its running steps, and then the program, as `tenfold stop` ends it. Never blocks."""

        def drain() -> None:
            self._server.stop(grace, why=f"is being drained ({reason}): it takes no new work, another task does")
            self.stop(state="stopped", exit_code=0, reason=f"drained: {reason}"[:500])
            os.kill(os.getpid(), signal.SIGTERM)

        self._say(f"drains it: {reason}")
        threading.Thread(target=drain, name="control-drain", daemon=True).start()

    def _declare(self, client: ControlClient) -> None:
        """Declares the cluster unless it has this task. Another cluster of that name is left as it is while one of its
        tasks is alive; registering is refused then."""
        try:
            known = client.spec(self._cluster)
        except errors.NotFoundError:
            client.declare_cluster(self._cluster, self._jobs)
            return
        if self.index < known.jobs.get(self.job, 0):
            return
        if "ready" not in known.states.values():
            client.declare_cluster(self._cluster, self._jobs)
            return
        raise errors.FailedPreconditionError(
            None,
            None,
            f"cluster {self._cluster!r} has the jobs {dict(known.jobs)} and tasks that are alive. Set "
            "TENFOLD_CLUSTER_NAME to another name for this cluster.",
        )

    @property
    def _name(self) -> str:
        return f"/job:{self.job}/replica:0/task:{self.index}"

    def _say(self, text: str) -> None:
        if not self._stopping.is_set():
            log.warning("%s: the control service at %s %s", self._name, self._url, text)
