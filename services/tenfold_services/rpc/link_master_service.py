"""Serves the steps of sessions over one link: decode → call → encode.

A step that is one short part of this task is run within the read that brought it (caller_steps.py) and answered at
once; any other takes the scheduled path through the master. Everything else that a session asks comes over gRPC. The
other end is tenfold/session/link_master.py.
"""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError

from tenfold_core import errors, graph_wire, message_parts
from tenfold_core.access.roles import Role
from tenfold_link.aio.methods import LinkMethod
from tenfold_link.wire.calls import (
    HAS_NAMES,
    HAS_OPTIONS,
    RUN_STEP,
    RUN_STEP_ANSWER,
    STEP_DONE,
    UNKNOWN_NUMBER,
    LinkCall,
    StepNames,
)
from tenfold_link.wire.short_ids import KnownIds
from tenfold_protos.config_pb2 import RunOptions
from tenfold_protos.master_pb2 import RunStepRequest
from tenfold_services.exchange.step_frames import pack_result, quick_reader, reader

from ..master.client_graph import MAX_NAMES, check_counts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from tenfold_link.aio.methods import PeerLink
    from tenfold_link.wire.values import ValueReader
    from tenfold_protos.config_pb2 import RunMetadata
    from tenfold_services.master.caller_graph import CallerStep
    from tenfold_services.master.master import Master

    from ..interfaces import Value

    Reply = tuple[bytes, Sequence[Any]]

_NO_OPTIONS = RunOptions()
_UNKNOWN: tuple[bytes, Sequence[Any]] = (RUN_STEP_ANSWER.pack(UNKNOWN_NUMBER, 0, 0), ())


class _NumberedStep:
    """What a number stands for. Raises ResourceExhaustedError for too many names."""

    __slots__ = ("names", "step")

    def __init__(self, request: RunStepRequest) -> None:
        check_counts(len(request.feed), len(request.fetch), len(request.target))
        self.names = StepNames.of(request)
        #: Once it is known that the step needs no other task.
        self.step: CallerStep | None = None


class MasterEndpoint:
    """One client's link. On the event loop's thread only."""

    def __init__(self, link: PeerLink, master: Master) -> None:
        self._link, self._master = link, master
        self._steps: KnownIds[_NumberedStep] = KnownIds()

    def methods(self) -> dict[int, LinkMethod]:
        return {LinkCall.RUN_STEP: LinkMethod("RunStep", self.run_step, Role.RUN_UNTRUSTED)}

    def run_step(self, link: PeerLink, header: bytes, buffers: list[Any]) -> Reply | Awaitable[Reply]:
        """A step. Raises InvalidArgumentError for a malformed frame, and what the step raises."""
        try:
            number, flags, feed_count, length = RUN_STEP.unpack_from(header)
        except struct.error as error:
            raise errors.invalid_argument(f"RunStep: the frame's header is cut off: {error}") from None
        offset = RUN_STEP.size + length
        options, request_id = _NO_OPTIONS, 0
        if length:
            request = _request(header[RUN_STEP.size : offset])
            if flags & HAS_NAMES:
                self._master.check_caller(request.session_handle, link.peer_caller)
                self._steps.learn(number, _NumberedStep(request))
            if flags & HAS_OPTIONS:
                options, request_id = request.options, request.request_id
        known = self._steps.find(number)
        if known is None:
            return _UNKNOWN
        names = known.names
        if feed_count != len(names.feeds):
            raise errors.invalid_argument(
                f"RunStep brings {feed_count} feeds for {len(names.feeds)}: {', '.join(names.feeds)}."
            )
        try:
            values = _values(quick_reader(header, offset, buffers), feed_count) if feed_count else []
        except graph_wire.ReadApartError:
            return self._read_apart(names, reader(header, offset, buffers), options, request_id)
        if not flags & HAS_OPTIONS:
            step = known.step
            if step is None:
                step = known.step = self._master.find_step(*names)
            if step is not None and step.is_short(values):
                fetched = step.run_timed(values)
                if fetched is not None:
                    return self._answer(fetched, None)
                known.step = None
        return self._run(names, values, options, request_id)

    async def _read_apart(self, names: StepNames, records: ValueReader, options: RunOptions, request_id: int) -> Reply:
        """A step whose feeds take long to read, which is done in a thread."""
        values = await asyncio.wrap_future(graph_wire.apart(_values, records, len(names.feeds)))
        return await self._run(names, values, options, request_id)

    async def _run(self, names: StepNames, values: list[Value], options: RunOptions, request_id: int) -> Reply:
        feeds = dict(zip(names.feeds, values, strict=True))
        fetched, metadata = await self._master.run_step(
            names.session_handle, feeds, names.fetches, names.targets, options, request_id
        )
        return self._answer(fetched, metadata)

    def _answer(self, fetched: Sequence[Value], metadata: RunMetadata | None) -> Reply:
        recorded = b"" if metadata is None else metadata.SerializeToString()
        parts = [RUN_STEP_ANSWER.pack(STEP_DONE, len(fetched), len(recorded)), recorded]
        buffers: list[Any] = []
        for value in fetched:
            pack_result(value, parts, buffers, self._link)
        return b"".join(parts), buffers


def _request(message: bytes) -> RunStepRequest:
    """What a step's frame says beside its feeds. Raises InvalidArgumentError, ResourceExhaustedError for too much."""
    request = RunStepRequest()
    try:
        if len(message) <= message_parts.PORTION:
            request.MergeFromString(message)
        else:
            message_parts.Parts(2 * MAX_NAMES).merge(request, memoryview(message))
    except message_parts.TooLargeError as error:
        raise errors.resource_exhausted(f"RunStep: {error}.") from None
    except DecodeError as error:
        raise errors.invalid_argument(f"RunStep: its message is malformed: {error}") from None
    return request


def _values(records: ValueReader, count: int) -> list[Value]:
    return [records.read()[0] for _ in range(count)]
