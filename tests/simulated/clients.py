"""Simulated clients: sessions of TensorFlow's protocol over gRPC. What they do with them is in programs.py.

A client knows what it may be told: values that are exact, errors that name a task, an answer before its own deadline as
long as nothing is wrong with its master and the way there. What it asked for and got goes into the ledger.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from grpc import aio

from simulated.graphs import graph_def
from tenfold_core import errors
from tenfold_kernels.resources.messages import decode, encode_into
from tenfold_protos import master_pb2
from tenfold_services.rpc.status import from_rpc_error

if TYPE_CHECKING:
    from simulated.ledger import Requests
    from simulated.tasks import Task
    from simulated.world import World

#: Seconds in which a call that has no deadline of its own is answered whatever happens to other tasks: a graph may be
#: registered, its links be arranged and the step be run, each with a task that has just ceased to answer.
PATIENCE = 45.0
#: … and how much later than its deadline the answer to a step may come: other parts get two seconds to stop.
_GRACE = 4.5
_CREATE_SECONDS, _CLOSE_SECONDS = 30.0, 25.0
#: Errors that have to name a task, and the beginnings of those texts of TensorFlow's that speak of a session instead.
_NAMING = (errors.UNAVAILABLE, errors.DEADLINE_EXCEEDED, errors.ABORTED)
_OF_SESSIONS = ("Session ", "The same request was received twice")


class LostError(Exception):
    """The answer to a call did not come: it may have been served."""


class Client:
    """On `host`; has a session at `master`, which it opens again where it is lost. A subclass runs steps."""

    def __init__(
        self, world: World, number: int, master: Task, other: Task, ps: int, ledger: dict[str, Requests], until: float
    ) -> None:
        self.world, self.host, self.master, self.until = world, f"client{number}", master, until
        self._ledger = ledger
        self._graph = graph_def(master.name, other.name, ps)
        self._handle, self._version = "", 0
        self._channel: Any = None
        self._port = 0
        self._request_ids = iter(range((number + 1) << 32, (number + 2) << 32))
        #: Sessions that may stay open at the master: created or closed with an answer that never came.
        self.orphans = 0
        #: Elements of the queue and sums that were taken out, perhaps, and did not come.
        self.lost_elements = self.lost_sums = 0
        #: What it waits for now, in words.
        self.waits_for = ""
        self.is_done = False

    def _dial(self) -> None:
        self._port = self.master.port
        self._channel = aio.insecure_channel(f"{self.master.host}:{self._port}", options=())

    def _look_at(self, error: errors.OpError) -> None:
        self.world.note(f"{self.host} got {error.code} {error.message!r}")
        if error.code in (errors.INTERNAL, errors.UNKNOWN, errors.DATA_LOSS):
            self.world.broken(f"{self.host} got an error that says nothing: {error!r}")
        elif error.code in _NAMING and "/job:" not in error.message and not error.message.startswith(_OF_SESSIONS):
            self.world.broken(f"{self.host} got an error that names no task: {error!r}")

    # -- calls -------------------------------------------------------------------------------------------------------

    async def _call(self, method: str, request: Any, response: Any, seconds: float) -> Any:
        """Raises OpError with what the master said, LostError where nobody knows whether the call was served.

        An answer is due within `seconds`, unless something is wrong with the master or the way there.
        """
        began = self.world.now
        call = self._channel.unary_unary(
            f"/tensorflow.MasterService/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=response.FromString,
        )(request, timeout=seconds)
        self.waits_for = f"{method} since {began - 1000:.3f}"
        try:
            answer = await call
        except aio.AioRpcError as failure:
            error = from_rpc_error(failure, self.master.name, f"{self.master.host}:{self.master.port}", method)
            if call.expired and self.world.untroubled(self.host, self.master.host, began):
                self.world.broken(f"{self.host}: {method} was not answered within {seconds:g} s")
            if error.code == errors.UNAVAILABLE or call.expired:
                self._look_at(error)
                if "connection refused" not in error.message:
                    raise LostError(f"{method}: {error.message}") from None
            raise error from None
        finally:
            self.waits_for = ""
        return answer

    async def _run(
        self,
        feeds: dict[str, Any],
        fetches: tuple[str, ...],
        targets: tuple[str, ...] = (),
        *,
        milliseconds: int = 0,
        partial: str = "",
        request_id: int = 0,
    ) -> list[Any]:
        """A step, sent again with the same number while its answer is lost."""
        request = master_pb2.RunStepRequest(
            session_handle=self._handle,
            fetch=fetches,
            target=targets,
            partial_run_handle=partial,
            store_errors_in_response_body=True,
            request_id=request_id or next(self._request_ids),
        )
        request.options.timeout_in_ms = milliseconds
        for name, value in feeds.items():
            encode_into(request.feed.add(name=name).tensor, value)
        seconds = milliseconds / 1000 + _GRACE if milliseconds else PATIENCE
        attempts = self.world.chance.choice((1, 2, 3))
        while True:
            attempts -= 1
            try:
                response = await self._call("RunStep", request, master_pb2.RunStepResponse, seconds)
                break
            except LostError:
                if not attempts:
                    raise
                await asyncio.sleep(self.world.chance.random() * 0.2)
        if response.status_code:
            raise errors.from_code(int(response.status_code), response.status_error_message)
        return [decode(each.tensor, each.name) for each in response.tensor]

    def _some_time(self) -> int:
        """Milliseconds for a step that needs no one else; 0 for none."""
        return int(self.world.chance.choice((0, 0, 300, 2000, 6000)))

    # -- sessions ----------------------------------------------------------------------------------------------------

    async def _open(self) -> None:
        if self._port != self.master.port:
            await self._channel.close()
            self._dial()
        request = master_pb2.CreateSessionRequest(graph_def=self._graph)
        request.config.SetInParent()
        try:
            answer = await self._call("CreateSession", request, master_pb2.CreateSessionResponse, _CREATE_SECONDS)
        except LostError:
            self.orphans += 1
            raise
        self._handle, self._version = answer.session_handle, 0

    async def _close(self) -> None:
        handle, self._handle = self._handle, ""
        if not handle:
            return
        request = master_pb2.CloseSessionRequest(session_handle=handle)
        try:
            await self._call("CloseSession", request, master_pb2.CloseSessionResponse, _CLOSE_SECONDS)
        except LostError:
            self.orphans += 1
        except errors.OpError as error:
            if error.code == errors.UNAVAILABLE:
                self.orphans += 1
            self._look_at(error)

    async def _reopen(self) -> None:
        await self._close()
        await self._open()
