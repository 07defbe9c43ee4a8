"""The frames of a step between two tasks: RunGraph with its answer, and Push. Encodes and decodes, decides nothing.

The layouts are in tenfold_link/wire/calls.py, the records of single tensors in tenfold_link/wire/values.py. Used by
both ends of the asyncio links (rpc/link_worker.py, rpc/link_worker_service.py) and by steps on their caller's thread
(master/caller_cluster_steps.py).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, TypeAlias

from google.protobuf.message import DecodeError

from tenfold_core import errors, graph_wire, message_parts
from tenfold_kernels.resources.messages import decode, encode
from tenfold_link.wire import values
from tenfold_link.wire.calls import (
    HAS_NAMES,
    KEY_NUMBER,
    PUSH,
    RECORD_COSTS,
    RECORD_PARTITION_GRAPHS,
    RECORD_TIMELINE,
    RUN_GRAPH,
    RUN_GRAPH_ANSWER,
    STEP_DONE,
    LinkCall,
)
from tenfold_link.wire.short_ids import AssignedIds
from tenfold_protos.step_stats_pb2 import StepStats
from tenfold_protos.tensor_pb2 import TensorProto
from tenfold_services.interfaces import DEFAULT_EXEC_OPTIONS, ExecOptions, RunGraphResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tenfold_link.aio.methods import PeerLink
    from tenfold_link.blocking.step_link import StepLink
    from tenfold_link.wire.buffers import Answer
    from tenfold_services.interfaces import Brought, Value

    from .plan import ExchangePlan, Sent

    #: What sends frames: a link of the event loop, or that of a step on its caller's thread.
    LinkLike: TypeAlias = PeerLink | StepLink

#: Key of LinkEnd.state: the numbers of plans on that link.
_NUMBERS = "plans"


# -- tensors -----------------------------------------------------------------------------------------------------------


def pack(value: Value, is_dead: bool, parts: list[bytes], buffers: list[Any], link: LinkLike | None = None) -> None:
    """Appends a record. Large tensors go out by reference.

    With a `link`, they are copied for it now, because the value may change after this call: the copy is the one into
    shared memory where there is shared memory.
    """
    if is_dead:
        values.pack_dead(parts)
        return
    count = len(buffers)
    values.pack_value(value, parts, buffers, encode)
    if link is not None and len(buffers) > count:
        buffers[count] = link.stage(buffers[count])


def pack_result(value: Value, parts: list[bytes], buffers: list[Any], link: LinkLike) -> None:
    """`pack` for a fetched value: what is read-only belongs to a variable, which may change."""
    flags = getattr(value, "flags", None)
    pack(value, False, parts, buffers, None if flags is None or flags.writeable else link)


#: Bytes of tensors that come as messages, strings, which are read where they came.
_AT_ONCE = 256 << 10


def reader(header: bytes, offset: int, buffers: Sequence[Any]) -> values.ValueReader:
    """Reads the records from `offset` on."""
    return values.ValueReader(header, offset, buffers, _from_proto)


def quick_reader(header: bytes, offset: int, buffers: Sequence[Any]) -> values.ValueReader:
    """The same for an event loop's thread: raises ReadApartError for large tensors that come as messages."""
    left = _AT_ONCE

    def from_small_proto(content: bytes) -> Value:
        nonlocal left
        left -= len(content)
        if left < 0:
            raise graph_wire.ReadApartError
        return _from_proto(content)

    return values.ValueReader(header, offset, buffers, from_small_proto)


def _from_proto(content: bytes) -> Value:
    try:
        proto = message_parts.parse(TensorProto, content)
    except message_parts.TooLargeError as error:
        raise errors.resource_exhausted(f"A tensor that came over a link: {error}.") from None
    except DecodeError as error:
        text = f"A link's frame holds a malformed TensorProto: {error}"
        raise errors.InvalidArgumentError(None, None, text) from None
    return decode(proto, "A tensor that came over a link")


# -- RunGraph ----------------------------------------------------------------------------------------------------------


def run_frame(
    link: LinkLike,
    plan: ExchangePlan,
    step_id: int,
    feeds: Mapping[str, Value],
    brought: Brought,
    options: ExecOptions,
    *,
    known: bool = True,
) -> tuple[int, bytes, list[Any]]:
    """(method, header, buffers) of a RunGraph; says what the plan is the first time, and unless it is `known`."""
    numbers: AssignedIds | None = link.state.get(_NUMBERS)
    if numbers is None:
        numbers = link.state[_NUMBERS] = AssignedIds()
    number = numbers.find(plan) if known else None
    flags, message = 0, b""
    if number is None:
        number = numbers.give(plan)
        flags, message = HAS_NAMES, plan.to_message().SerializeToString()
    record = 0
    if options is not DEFAULT_EXEC_OPTIONS:
        record = sum(bit for bit, name in _RECORDS.items() if getattr(options, name))
    parts = [RUN_GRAPH.pack(number, step_id, flags, record, len(plan.feeds), len(brought), len(message)), message]
    buffers: list[Any] = []
    for key in plan.feeds:
        pack(feeds[key], False, parts, buffers, link)
    for index, value, is_dead in brought:
        parts.append(KEY_NUMBER.pack(index))
        pack(value, is_dead, parts, buffers, link)
    return LinkCall.RUN_GRAPH, b"".join(parts), buffers


def read_numbered(header: bytes, records: values.ValueReader, count: int, keys: Sequence[str]) -> Iterator[Sent]:
    """So many tensors, each behind the number of its key. Raises struct.error and IndexError for a malformed frame."""
    for _ in range(count):
        (number,) = KEY_NUMBER.unpack_from(header, records.offset)
        records.offset += KEY_NUMBER.size
        yield keys[number], *records.read()


def read_answer(
    plan: ExchangePlan, answer: Answer, deliver: Callable[[str, Value, bool], None]
) -> RunGraphResult | None:
    """The result in a RunGraph's answer; calls `deliver(key, value, is_dead)` for each tensor that came along.

    None when the peer does not know the plan's number: send the frame again with the plan. Raises InvalidArgumentError
    for a malformed answer.
    """
    header, buffers = answer
    try:
        status, fetched, brought, length = RUN_GRAPH_ANSWER.unpack_from(header)
        if status != STEP_DONE:
            return None
        offset = RUN_GRAPH_ANSWER.size + length
        stats = StepStats.FromString(header[RUN_GRAPH_ANSWER.size : offset]) if length else None
        if fetched != len(plan.fetches):
            raise malformed("RunGraph's answer", f"{fetched} values for {len(plan.fetches)}")
        result = RunGraphResult(step_stats=stats)
        if not fetched and not brought:
            return result
        records = reader(header, offset, buffers)
        for key in plan.fetches:
            result.values[key] = records.read()[0]
        for sent in read_numbered(header, records, brought, plan.answer_keys):
            deliver(*sent)
        return result
    except (struct.error, DecodeError, IndexError) as error:
        raise malformed("RunGraph's answer", error) from None


def answer_frame(result: RunGraphResult, fetches: Sequence[str], link: LinkLike) -> tuple[bytes, list[Any]]:
    """(header, buffers) of a RunGraph's answer: what was fetched, and what the caller consumes."""
    recorded = b"" if result.step_stats is None else result.step_stats.SerializeToString()
    parts = [RUN_GRAPH_ANSWER.pack(STEP_DONE, len(fetches), len(result.answered), len(recorded)), recorded]
    buffers: list[Any] = []
    for key in fetches:
        pack_result(result.values[key], parts, buffers, link)
    for number, value, is_dead in result.answered:
        parts.append(KEY_NUMBER.pack(number))
        pack(value, is_dead, parts, buffers, link)
    return b"".join(parts), buffers


#: What a RunGraph may ask to record: the bit, and the field of ExecOptions.
_RECORDS = {
    RECORD_TIMELINE: "record_timeline",
    RECORD_COSTS: "record_costs",
    RECORD_PARTITION_GRAPHS: "record_partition_graphs",
}


def options_of(record: int) -> ExecOptions:
    """What a RunGraph asks to record."""
    if not record:
        return DEFAULT_EXEC_OPTIONS
    return ExecOptions(**{name: bool(record & bit) for bit, name in _RECORDS.items()})


# -- Push --------------------------------------------------------------------------------------------------------------


def push(link: LinkLike, step_id: int, tensors: Sequence[Sent]) -> None:
    """Sends tensors to the other end. They may change when this returns. Raises UnavailableError."""
    parts = [PUSH.pack(step_id, len(tensors))]
    buffers: list[Any] = []
    for key, value, is_dead in tensors:
        name = key.encode()
        parts.append(KEY_NUMBER.pack(len(name)))
        parts.append(name)
        pack(value, is_dead, parts, buffers, link)
    link.notify_nowait(LinkCall.PUSH, b"".join(parts), buffers)


def read_push(header: bytes, buffers: Sequence[Any], deliver: Callable[[int, str, Value, bool], None]) -> None:
    """Calls `deliver(step_id, key, value, is_dead)` for each tensor of a PUSH.

    Raises InvalidArgumentError for a malformed frame.
    """
    try:
        step_id, count = PUSH.unpack_from(header)
        records = reader(header, PUSH.size, buffers)
        for _ in range(count):
            (length,) = KEY_NUMBER.unpack_from(header, records.offset)
            begin = records.offset + KEY_NUMBER.size
            records.offset = begin + length
            key = header[begin : records.offset].decode()
            value, is_dead = records.read()
            deliver(step_id, key, value, is_dead)
    except (struct.error, UnicodeDecodeError) as error:
        raise malformed("Push", error) from None


def malformed(what: str, why: object) -> errors.OpError:
    """The error for a frame that cannot be read."""
    return errors.InvalidArgumentError(None, None, f"A link's frame is malformed: {what}: {why}.")
