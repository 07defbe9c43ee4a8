"""Large tensors of RunStep, past protocol buffers: a megabyte in a message costs six copies there, and none here.

A request is read without the contents of its large tensors, which stay where they were received. An answer is written
as pieces: the bytes around an array, and the array's own memory. What comes and goes are TensorFlow's messages all the
same. Used by master_service.py; the encoding is that of protocol buffers: tag, length, bytes.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from tenfold_core import dtypes, errors, graph_wire, message_parts
from tenfold_core.checkpoint.coding import get_varint, put_varint
from tenfold_core.tensor_util import describe
from tenfold_kernels.resources.messages import decode
from tenfold_protos import master_pb2
from tenfold_protos.tensor_pb2 import TensorProto

from ..master.client_graph import check_counts
from .service import Parser

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..http2.handler import Buffer

#: From so many bytes on it pays.
LARGE = 16 << 10
#: From a RunStepRequest down to the bytes of a tensor: feed, tensor, tensor_content. And a NamedTensorProto's tensor.
_TO_CONTENT = (2, 2, 4)
_BYTES = 2
#: A message of more is read by protocol buffers alone, which go through small fields much faster.
_MOST_FIELDS = 20_000


#: Bytes beside large contents that are read where they came: more takes too long there.
_AT_ONCE = 1 << 20


class RunStep(NamedTuple):
    """A request, and those contents of its feeds that are not in it, by the feed's place."""

    request: master_pb2.RunStepRequest
    contents: dict[int, memoryview]
    #: The feeds by name, where they were decoded already.
    feeds: dict[str, Any] | None = None


def parse_run_step(data: Buffer) -> RunStep:
    """Reads a RunStepRequest. Contents are views of `data`, aligned as it is. Raises DecodeError, and ReadApartError
    for one with so many small parts that it would hold up who reads it."""
    contents: dict[int, memoryview] = {}
    whole = data
    if len(data) >= LARGE:
        try:
            data = _without_contents(memoryview(data), 0, contents, 0, [_MOST_FIELDS])
        except _TooMany:
            contents.clear()
        if len(data) >= _AT_ONCE or (len(data) == len(whole) >= graph_wire.LARGE):
            raise graph_wire.ReadApartError
    request = master_pb2.RunStepRequest.FromString(data)  # type: ignore[arg-type]
    strings = 0  # which are taken out one by one
    for place, content in contents.items():
        if request.feed[place].tensor.dtype not in dtypes.FIXED_SIZE:
            strings += len(content)
    if strings > graph_wire.LARGE:
        raise graph_wire.ReadApartError
    return RunStep(request, contents)


def parse_run_step_apart(data: Buffer) -> RunStep:
    """The same for any, in a thread, with the feeds decoded. Raises DecodeError, TooLargeError, and OpError for what is
    wrong with feeds."""
    request = message_parts.parse(master_pb2.RunStepRequest, data)
    return RunStep(request, {}, decoded(request, {}))


def decoded(request: master_pb2.RunStepRequest, contents: Mapping[int, memoryview]) -> dict[str, Any]:
    """The feeds by name. Raises InvalidArgumentError, and ResourceExhaustedError before it decodes any if they are too
    many."""
    check_counts(len(request.feed), len(request.fetch), len(request.target))
    feeds = {
        feed.name: decode(feed.tensor, f"The value fed for '{feed.name}'", contents.get(index))
        for index, feed in enumerate(request.feed)
    }
    if len(feeds) < len(request.feed):
        twice = Counter(feed.name for feed in request.feed).most_common()[0][0]
        raise errors.invalid_argument(f'Endpoint "{twice}" fed more than once.')
    return feeds


def first_content(data: memoryview) -> int:
    """Where the first large content of a RunStepRequest begins, whose beginning is `data`; 0 where that is not seen."""
    start = 0
    try:
        for number in _TO_CONTENT:
            for field, kind, _, begin, end in _fields(data[start:], cut=True):
                if field == number and kind == _BYTES and end - begin >= LARGE:
                    start += begin
                    break
            else:
                return 0
    except DecodeError:
        return 0
    return start


class _TooMany(Exception):
    """Going through the fields here would take long."""


def _without_contents(
    data: memoryview, depth: int, contents: dict[int, memoryview], feed: int, left: list[int]
) -> bytes:
    """The message without large contents, which are put into `contents`. Looks at `left[0]` fields, then _TooMany."""
    out: list[bytes | memoryview] = []
    kept, count = 0, -1
    for field, kind, start, begin, end in _fields(data):
        left[0] -= 1
        if left[0] < 0:
            raise _TooMany
        if field != _TO_CONTENT[depth] or kind != _BYTES:
            continue
        count += 1
        if end - begin < LARGE:
            continue
        out.append(data[kept:start])
        kept = end
        if depth == len(_TO_CONTENT) - 1:
            contents[feed] = data[begin:end]
        else:
            inner = _without_contents(data[begin:end], depth + 1, contents, feed if depth else count, left)
            out += (_tag(field), put_varint(len(inner)), inner)
    out.append(data[kept:])
    return b"".join(out)


def _fields(data: memoryview, *, cut: bool = False) -> Iterator[tuple[int, int, int, int, int]]:
    """(number, wire type, start, start and end of the value) of a message's fields. Raises DecodeError.

    `cut`: only the message's beginning is there, and a value may end beyond it.
    """
    at, size = 0, len(data)
    while at < size:
        start = at
        key, at = _read_varint(data, at)
        kind = key & 7
        begin = at
        if kind == _BYTES:
            length, begin = _read_varint(data, at)
            at = begin + length
        elif kind == 0:
            _, at = _read_varint(data, at)
        elif kind in _FIXED:
            at += _FIXED[kind]
        else:
            raise DecodeError(f"a field of wire type {kind}")
        if at > size and not cut:
            raise DecodeError("a field that does not end")
        yield key >> 3, kind, start, begin, at


_FIXED = {1: 8, 5: 4}


def _read_varint(data: memoryview, at: int) -> tuple[int, int]:
    try:
        return get_varint(data, at)
    except ValueError as error:
        raise DecodeError(str(error)) from None


def _tag(field: int) -> bytes:
    return bytes((field << 3 | _BYTES,))


#: For TableService.
RUN_STEP = Parser(parse_run_step, parse_run_step_apart, first_content)


def is_large(value: Any) -> bool:
    """Whether `pieces` sends this value, and without loss: an array of numbers."""
    return type(value) is np.ndarray and value.nbytes >= LARGE and value.dtype != object


def pieces(name: str, array: np.ndarray[Any, np.dtype[Any]]) -> list[Buffer]:
    """One `tensor` of a RunStepResponse, in pieces; they may stand beside the bytes of another such message.

    `array` is sent from its own memory and must stay as it is.
    """
    array = np.ascontiguousarray(array)
    proto = TensorProto()
    describe(proto, dtypes.as_dtype(array.dtype), array.shape)
    content = array.reshape(-1).view(np.uint8).data
    # from the inside to the outside: tensor_content = 4, tensor = 2 after name = 1, tensor = 1
    head = proto.SerializeToString() + _tag(4) + put_varint(len(content))
    title = name.encode()
    head = _tag(1) + put_varint(len(title)) + title + _tag(2) + put_varint(len(head) + len(content)) + head
    return [_tag(1) + put_varint(len(head) + len(content)) + head, content]
