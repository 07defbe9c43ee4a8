"""`ControlClient` and `AsyncControlClient`: every path of the REST interface as a method.

The methods are in the `*_calls.py` beside this file, once for both clients; calls.py says how to add one. Errors are
those of tf.errors. Sessions come back as `RemoteSession`; a task that wants to stay registered uses `TaskRegistration`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from tenfold.control.calls import Awaiting, Blocking, call
from tenfold.control.cluster_answers import Service, SessionStatus
from tenfold.control.cluster_calls import ClusterCalls
from tenfold.control.experiment_calls import ExperimentCalls
from tenfold.control.master_calls import MasterCalls
from tenfold.control.model_calls import ModelCalls
from tenfold.control.remote_session import AsyncRemoteSession, RemoteSession, session_request
from tenfold.control.request import Request, one, pages
from tenfold.control.retry import DEFAULT_RETRY, RetryPolicy
from tenfold.control.run_calls import RunCalls
from tenfold.control.sweep_calls import SweepCalls
from tenfold.control.trace_calls import TraceCalls
from tenfold.control.transport import AsyncTransport, Transport
from tenfold.control.watch_calls import WatchCalls
from tenfold.control.why_calls import WhyCalls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.control.request import Requests
    from tenfold_core.access.credentials import Shown
    from tenfold_protos.config_pb2 import ConfigProto


class ControlCalls(
    ClusterCalls, ExperimentCalls, MasterCalls, ModelCalls, RunCalls, SweepCalls, TraceCalls, WatchCalls, WhyCalls
):
    """What both clients can do."""

    @call
    def sessions(
        self, *, cluster: str | None = None, job: str | None = None, state: str | None = None
    ) -> Requests[list[SessionStatus]]:
        """Every open session, the newest first; those of one cluster, at a master of one job, or that are `ready` or
        `lost`."""
        params = {"cluster": cluster, "job": job, "state": state}
        return (yield from pages("/v1/sessions", "sessions", SessionStatus, params))

    @call
    def service(self) -> Request[Service]:
        """The service itself: its version, who is accepted and by what. Raises NotFoundError for one of before."""
        return Request("GET", "/v1/service", one(Service))


class ControlClient(ControlCalls, Blocking):
    """A client of a control service. Blocking and thread-safe. Of several that share a database, `http://a:1,http://b:1`,
    it asks the next one when one cannot be reached.

    `token` is a token, or a function that gives the one to show and is asked for each request, as
    `tenfold_core.access.credentials.shown_token()` is: then it may change under way.
    `timeout` bounds each request, in seconds (waits and steps have their own). Every method raises UnavailableError
    when the service cannot be reached, and the class of the problem's canonical code when it refuses;
    `problem_of(error)` has the rest of its answer.
    """

    def __init__(
        self, url: str, token: Shown = None, timeout: float = 12.0, *, retry: RetryPolicy = DEFAULT_RETRY
    ) -> None:
        self._transport = Transport(url, token, timeout, retry)

    @property
    def url(self) -> str:
        return self._transport.peer.addresses.current

    def learn(self, services: Sequence[str]) -> None:
        """Other services with the same database, which are asked where the present one cannot be reached."""
        self._transport.peer.addresses.learn(services)

    def create_session(
        self,
        cluster: str,
        graph_def: Any = None,
        *,
        job: str | None = None,
        index: int | None = None,
        config: ConfigProto | None = None,
        timeout: float = 120.0,
        wait: float = 0.0,
    ) -> RemoteSession:
        """Opens a session on a task's master (default: the first ready one of chief, master, worker, any). `graph_def`
        is a GraphDef, its bytes, or a Graph. Raises UnavailableError at once if tasks that it needs are lost or
        missing; with `wait` it waits so many seconds for them, at most a minute."""
        request = session_request(cluster, graph_def, job=job, index=index, config=config, timeout=timeout, wait=wait)
        return self.session(self._transport.carry_out(request))

    def session(self, session_id: str) -> RemoteSession:
        """A session that is already open, e.g. one that another process created."""
        return RemoteSession(self._transport, session_id)

    def close(self) -> None:
        """Closes the connections. Sessions at the service stay open."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncControlClient(ControlCalls, Awaiting):
    """The same with coroutines, for one event loop. A stream (`events`, `follow_run_logs`) is an async iterator, to be
    closed by `contextlib.aclosing` where it is left early."""

    def __init__(
        self, url: str, token: Shown = None, timeout: float = 12.0, *, retry: RetryPolicy = DEFAULT_RETRY
    ) -> None:
        self._transport = AsyncTransport(url, token, timeout, retry)

    @property
    def url(self) -> str:
        return self._transport.peer.addresses.current

    def learn(self, services: Sequence[str]) -> None:
        """Other services with the same database, which are asked where the present one cannot be reached."""
        self._transport.peer.addresses.learn(services)

    async def create_session(
        self,
        cluster: str,
        graph_def: Any = None,
        *,
        job: str | None = None,
        index: int | None = None,
        config: ConfigProto | None = None,
        timeout: float = 120.0,  # noqa: ASYNC109 # the request's, with what the service may take
        wait: float = 0.0,
    ) -> AsyncRemoteSession:
        """Opens a session as `ControlClient.create_session` does."""
        request = session_request(cluster, graph_def, job=job, index=index, config=config, timeout=timeout, wait=wait)
        return self.session(await self._transport.carry_out(request))

    def session(self, session_id: str) -> AsyncRemoteSession:
        """A session that is already open, e.g. one that another process created."""
        return AsyncRemoteSession(self._transport, session_id)

    async def close(self) -> None:
        """Closes the connections. Sessions at the service stay open."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
