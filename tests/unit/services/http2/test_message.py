"""Messages out of DATA frames' bytes: whole, in pieces, compressed, too large, too many, cut off."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold_services.http2.handler import INTERNAL, RESOURCE_EXHAUSTED, UNIMPLEMENTED
from tenfold_services.http2.message import Budget, Inflation, MessageReader, Refused


def allocate(size: int) -> np.ndarray[Any, Any]:
    return np.empty(size, np.uint8)


def reader(limit: int = 1 << 20, budget: Budget | None = None) -> MessageReader:
    return MessageReader(limit, budget or Budget(1 << 30), allocate)


def framed(message: bytes, flag: int = 0) -> bytes:
    return bytes((flag,)) + len(message).to_bytes(4, "big") + message


def read(sent: bytes, size: int = 1 << 20, encoding: bytes = b"identity", *, direct: bool = False) -> bytes:
    one = reader()
    while sent:
        space = one.space() if direct else None
        if space:
            part = sent[: min(size, len(space))]
            space[: len(part)] = part
            one.filled(len(part))
        else:
            part = sent[:size]
            one.take(memoryview(part))
        sent = sent[len(part) :]
    return finished(one, encoding)


def finished(one: MessageReader, encoding: bytes) -> bytes:
    """The message, inflated as calls.py does it."""
    message = one.finish(encoding)
    if not isinstance(message, Inflation):
        return bytes(message)
    while message.text is None:
        message.reserve()
        message.settle(message.inflate())
    return bytes(message.text)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.integers(1, 50), st.booleans())
def test_a_message_in_whatever_pieces(message: bytes, size: int, direct: bool) -> None:
    assert read(framed(message), size, direct=direct) == message


@pytest.mark.parametrize("size", [1, 1 << 20])
@pytest.mark.parametrize(
    ("encoding", "squeezed"),
    [(b"gzip", gzip.compress(b"text" * 99, mtime=0)), (b"deflate", zlib.compress(b"text" * 99))],
)
def test_compressed_messages(encoding: bytes, squeezed: bytes, size: int) -> None:
    assert read(framed(squeezed, 1), size, encoding) == b"text" * 99
    assert read(framed(b"plain"), size, encoding) == b"plain"


@pytest.mark.parametrize(
    ("sent", "encoding", "code", "text"),
    [
        (b"", b"identity", UNIMPLEMENTED, "without a message"),
        (b"\0\0", b"identity", INTERNAL, "ended inside"),
        (framed(b"12345")[:-1], b"identity", INTERNAL, "ended inside"),
        (framed(b"1") + framed(b"2"), b"identity", INTERNAL, "More than one"),
        (framed(b"") + b"\0", b"identity", INTERNAL, "More than one"),
        (framed(bytes((1 << 20) + 1)), b"identity", RESOURCE_EXHAUSTED, r"larger than max \(1048577 vs. 1048576\)"),
        (framed(b"x", 1), b"identity", INTERNAL, "flag 1"),
        (framed(b"x", 2), b"gzip", INTERNAL, "flag 2"),
        (framed(b"no gzip", 1), b"gzip", INTERNAL, "cannot be decompressed"),
        (framed(gzip.compress(b"text", mtime=0)[:-1], 1), b"gzip", INTERNAL, "cut off"),
        (framed(gzip.compress(bytes(1 << 21), mtime=0), 1), b"gzip", RESOURCE_EXHAUSTED, "larger than max"),
    ],
)
def test_what_is_refused(sent: bytes, encoding: bytes, code: int, text: str) -> None:
    with pytest.raises(Refused, match=text) as caught:
        read(sent, encoding=encoding)
    assert caught.value.failure.code == code


def test_memory_is_taken_as_bytes_come_and_given_back() -> None:
    budget = Budget(100)
    one = reader(budget=budget)
    one.take(memoryview(framed(bytes(80))[:45]))
    assert budget.taken == 40
    other = reader(budget=budget)
    with pytest.raises(Refused, match="the server's limit"):
        other.take(memoryview(framed(bytes(61))))
    other.close()
    assert budget.taken == 40
    one.close()
    one.close()
    assert budget.taken == 0


def test_an_announced_size_takes_no_memory_before_its_bytes_come() -> None:
    asked: list[int] = []

    def note(size: int) -> np.ndarray[Any, Any]:
        asked.append(size)
        return np.empty(size, np.uint8)

    one = MessageReader(1 << 31, Budget(1 << 40), note)
    one.take(memoryview(framed(b"abc")[:1] + (1 << 31).to_bytes(4, "big") + b"abc"))
    assert len(asked) == 1
    assert asked[0] < 65 << 20


@pytest.mark.parametrize("wanted", [0, 1, 13, 63, 64, 1000])
def test_a_byte_is_where_it_should_be_aligned(wanted: int) -> None:
    one = reader()
    one.aligned = lambda first: wanted
    one.take(memoryview(framed(bytes(2000))[:100]))
    one.take(memoryview(bytes(2000 - 95)))
    message = one.finish(b"identity")
    assert (np.frombuffer(message, np.uint8).ctypes.data + wanted) % 64 == 0


@pytest.mark.parametrize("left", [0, 5, 399, 400, 3 << 20])
def test_an_inflated_message_takes_no_more_than_the_budget_leaves(left: int) -> None:
    squeezed = gzip.compress(bytes(400), mtime=0)
    budget = Budget(len(squeezed) + left)
    one = reader(budget=budget)
    one.take(memoryview(framed(squeezed, 1)))
    if left < 400:
        with pytest.raises(Refused, match="all bytes of the server's limit"):
            finished(one, b"gzip")
    else:
        assert finished(one, b"gzip") == bytes(400)
        assert budget.taken == len(squeezed) + 400
    one.close()
    assert budget.taken == 0


def test_a_large_message_is_inflated_in_portions() -> None:
    text = np.random.default_rng(0).integers(0, 9, 5 << 20, np.uint8).tobytes()
    one = reader(limit=8 << 20)
    one.take(memoryview(framed(zlib.compress(text, 1), 1)))
    inflation = one.finish(b"deflate")
    assert isinstance(inflation, Inflation)
    sizes = []
    while inflation.text is None:
        inflation.reserve()
        sizes.append(inflation.inflate())
        inflation.settle(sizes[-1])
    assert max(sizes) <= (1 << 20) + 1
    assert inflation.text == text
