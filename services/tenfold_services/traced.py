"""A task that writes traces: its master and its worker with their spans.

server.py takes these in the place of the plain ones where traces are on when the task starts; a task without traces has
nothing of it on any way. Spans below each other come by the context of the event loop's tasks; what comes from other
processes by metadata (rpc/traced.py) and by links (tenfold_link/aio/traced.py). docs/opentelemetry.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_core import telemetry

from .master.master import Master
from .worker.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold_protos.config_pb2 import RunMetadata
    from tenfold_protos.graph_pb2 import GraphDef

    from .exchange.plan import ExchangePlan, Push
    from .interfaces import Done, ExecOptions, RunGraphResult, Value
    from .worker.graph_run import GraphRun

#: Names of fetches that a span has at most, and their characters.
_FETCHES, _CHARACTERS = 10, 200


class TracedMaster(Master):
    """A master whose sessions and steps are spans. Steps take the scheduled path: what runs on its caller's thread
    tells nobody where it is."""

    async def create_session(self, graph_def: GraphDef, *rest: Any, **named: Any) -> tuple[str, int]:
        """As Master.create_session."""
        with telemetry.span("master CreateSession", task=self._env.task, nodes=len(graph_def.node)) as opened:
            handle, version = await super().create_session(graph_def, *rest, **named)
            opened.set_attribute("tenfold.session", handle)
            return handle, version

    def find_step(self, *_: Any, **__: Any) -> None:
        """None: see the class."""

    def run_at_once(self, *_: Any, **__: Any) -> None:
        """None: see the class."""

    async def run_step(
        self,
        handle: str,
        feeds: Mapping[str, Value],
        fetches: Sequence[str],
        targets: Sequence[str],
        *rest: Any,
        **named: Any,
    ) -> tuple[list[Value], RunMetadata]:
        """As Master.run_step."""
        names = ",".join([*fetches, *targets][:_FETCHES])[:_CHARACTERS]
        with telemetry.span("master RunStep", task=self._env.task, session=handle, fetches=names):
            return await super().run_step(handle, feeds, fetches, targets, *rest, **named)


class TracedWorker(Worker):
    """A worker whose parts of steps, and tensors that others ask it for, are spans."""

    def start_run(
        self,
        session_handle: str,
        graph_handle: str,
        step_id: int,
        feeds: Mapping[str, Value],
        fetches: Sequence[str],
        options: ExecOptions,
        done: Done,
        plan: ExchangePlan | None = None,
        push: Push | None = None,
    ) -> GraphRun:
        """As GraphManager.start_run."""
        opened = telemetry.begin("worker RunGraph", task=self.task, session=session_handle, step=f"{step_id:x}")

        def ended(result: RunGraphResult | None, error: Any) -> None:
            telemetry.end(opened, error)
            done(result, error)

        def noted(task: str, step_id: int, tensors: Any) -> None:
            opened.add_event("push", {"tenfold.task": task, "tenfold.tensors": len(tensors)})
            assert push is not None
            push(task, step_id, tensors)

        try:
            return super().start_run(
                session_handle,
                graph_handle,
                step_id,
                feeds,
                fetches,
                options,
                ended,
                plan,
                None if push is None else noted,
            )
        except BaseException as error:
            telemetry.end(opened, error)
            raise

    def run_at_once(
        self, session_handle: str, graph_handle: str, step_id: int, *rest: Any, **named: Any
    ) -> RunGraphResult | None:
        """As GraphManager.run_at_once; a run that has to be started otherwise is no span here."""
        opened = telemetry.begin("worker RunGraph", task=self.task, session=session_handle, step=f"{step_id:x}")
        try:
            result = super().run_at_once(session_handle, graph_handle, step_id, *rest, **named)
        except BaseException as error:
            telemetry.end(opened, error)
            raise
        if result is not None:
            telemetry.end(opened, None)
        return result

    async def recv_tensor(self, step_id: int, key: str) -> tuple[Value, bool]:
        """As Worker.recv_tensor."""
        with telemetry.span("worker RecvTensor", task=self.task, step=f"{step_id:x}", key=key[:_CHARACTERS]):
            return await super().recv_tensor(step_id, key)
