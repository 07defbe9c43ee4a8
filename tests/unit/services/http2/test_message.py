"""Messages out of DATA frames' bytes: whole, in pieces, compressed, too large, too many, cut off."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold_core.errors import INTERNAL, RESOURCE_EXHAUSTED, UNIMPLEMENTED
from tenfold_services.http2 import message
from tenfold_services.http2.message import Budget, Inflation, MessageReader, Refused


def allocate(size: int) -> np.ndarray[Any, Any]:
    return np.empty(size, np.uint8)


def reader(limit: int = 1 << 20, budget: Budget | None = None) -> MessageReader:
    return MessageReader(limit, budget or Budget(1 << 30), allocate)


def framed(text: bytes, flag: int = 0) -> bytes:
    return bytes((flag,)) + len(text).to_bytes(4, "big") + text


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
    found = one.finish(encoding)
    if not isinstance(found, Inflation):
        return bytes(found)
    while found.text is None:
        found.reserve()
        found.settle(found.inflate())
    return bytes(found.text)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.integers(1, 50), st.booleans())
def test_a_message_in_whatever_pieces(text: bytes, size: int, direct: bool) -> None:
    assert read(framed(text), size, direct=direct) == text


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
    found = one.finish(b"identity")
    assert (np.frombuffer(found, np.uint8).ctypes.data + wanted) % 64 == 0


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


# -- edges -------------------------------------------------------------------------------------------------------------


def give(one: MessageReader, sent: bytes, cut: int) -> None:
    """Hands over `sent`, `cut` bytes at a time."""
    for at in range(0, len(sent), cut):
        one.take(memoryview(sent[at : at + cut]))


class Memory:
    """What is asked for; it may have too little."""

    def __init__(self, most: int = 1 << 30) -> None:
        self.most, self.asked = most, []

    def __call__(self, size: int) -> np.ndarray[Any, Any]:
        self.asked.append(size)
        if size > self.most:
            raise MemoryError
        return np.empty(size, np.uint8)


@pytest.mark.parametrize(("size", "fits"), [(0, True), (99, True), (100, True), (101, False)])
@pytest.mark.parametrize("cut", [1, 4, 5, 6, 50, 1 << 20])
def test_a_message_as_long_as_the_limit_is_read(size: int, fits: bool, cut: int) -> None:
    one, sent = MessageReader(100, Budget(100), allocate), framed(bytes(range(size)))
    if not fits:
        with pytest.raises(Refused, match=r"^Received message larger than max \(101 vs. 100\)\.$") as caught:
            give(one, sent, cut)
        assert caught.value.failure.code == RESOURCE_EXHAUSTED
        return
    give(one, sent, cut)
    assert bytes(one.finish(b"identity")) == bytes(range(size))  # type: ignore[arg-type]


def test_a_whole_message_in_one_frame_needs_no_memory_of_its_own() -> None:
    memory, budget = Memory(), Budget(10)
    one = MessageReader(100, budget, memory)
    one.take(memoryview(framed(b"0123456789")))
    assert (memory.asked, budget.taken, one.space()) == ([], 10, None)
    with pytest.raises(Refused, match=r"^More than one message was sent in a unary call\.$"):
        one.take(memoryview(b"x"))
    empty = MessageReader(100, budget, memory)
    give(empty, framed(b""), 1)
    assert (memory.asked, empty.finish(b"identity")) == ([], b"")
    flagged = MessageReader(100, Budget(10), memory)
    flagged.take(memoryview(framed(b"x", 1)))
    with pytest.raises(Refused, match=r"^A message with flag 1 in the encoding 'br'\.$"):
        flagged.finish(b"br")


def test_a_budget_may_be_used_up_and_no_more() -> None:
    budget = Budget(10)
    budget.take(4)
    budget.take(6)
    with pytest.raises(Refused, match=r"^Requests take 10 bytes, the server's limit\.$") as caught:
        budget.take(1)
    assert (budget.taken, caught.value.failure.code) == (10, RESOURCE_EXHAUSTED)
    budget.give(3)
    budget.take(3)
    assert budget.taken == 10


@pytest.mark.parametrize("size", [99, 100, 101, 250])
def test_a_message_gets_the_rest_of_its_memory_once_the_first_part_is_full(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message, "_AT_FIRST", 100)
    memory, budget = Memory(), Budget(1 << 20)
    one, text = MessageReader(1 << 20, budget, memory), bytes(range(size))
    one.take(memoryview(framed(text)[:6]))
    assert memory.asked == [min(size, 100) + 128]
    one.take(memoryview(text[1:99]))
    assert (len(memory.asked), budget.taken) == (1, 99)
    one.take(memoryview(text[99:]))
    assert memory.asked[1:] == ([size + 128] if size > 100 else [])
    assert bytes(one.finish(b"identity")) == text  # type: ignore[arg-type]
    assert budget.taken == size
    one.close()
    assert budget.taken == 0


@pytest.mark.parametrize("at", ["first", "rest"])
def test_a_message_for_which_there_is_no_memory(at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message, "_AT_FIRST", 100)
    size, most = (90, 90 + 127) if at == "first" else (500, 500 + 127)
    one, sent = MessageReader(1 << 20, Budget(1 << 20), Memory(most)), framed(bytes(size))
    with pytest.raises(Refused, match=rf"^There is no memory for a message of {size} bytes\.$") as caught:
        give(one, sent, 1)
    assert caught.value.failure.code == RESOURCE_EXHAUSTED


def test_where_to_align_is_asked_where_more_is_to_come() -> None:
    asked: list[bytes] = []

    def aligned(first: memoryview) -> int:
        asked.append(bytes(first))
        return 5

    for cut in (8, 9, 10, 1 << 20):
        one = reader()
        one.aligned = aligned
        sent = framed(b"abcd")
        # the length is known with the first piece; the rest of it is the beginning
        one.take(memoryview(sent[:3]))
        one.take(memoryview(sent[3:cut]))
        one.take(memoryview(sent[cut:]))
        assert bytes(one.finish(b"identity")) == b"abcd"  # type: ignore[arg-type]
    assert asked == [b"abc"]


@pytest.mark.parametrize(("limit", "fits"), [(400, True), (399, False)])
def test_an_inflated_message_may_be_as_long_as_the_limit(limit: int, fits: bool) -> None:
    squeezed, budget = gzip.compress(bytes(400), mtime=0), Budget(1 << 20)
    one = reader(limit, budget)
    one.take(memoryview(framed(squeezed, 1)))
    if fits:
        assert finished(one, b"gzip") == bytes(400)
        assert budget.taken == len(squeezed) + 400
    else:
        with pytest.raises(Refused, match=r"^Received message larger than max \(decompressed, 399\)\.$") as caught:
            finished(one, b"gzip")
        assert caught.value.failure.code == RESOURCE_EXHAUSTED
    one.close()
    assert budget.taken == 0


def test_a_portion_is_reserved_first_and_what_it_did_not_need_given_back() -> None:
    squeezed, budget = gzip.compress(bytes(400), mtime=0), Budget(1 << 30)
    one = reader(8 << 20, budget)
    one.take(memoryview(framed(squeezed, 1)))
    inflation = one.finish(b"gzip")
    assert isinstance(inflation, Inflation)
    assert inflation.text is None
    inflation.reserve()
    assert budget.taken == len(squeezed) + (1 << 20)
    size = inflation.inflate()
    assert size == 400
    inflation.settle(size)
    assert budget.taken == len(squeezed) + 400
    assert inflation.text == bytes(400)


def test_an_inflation_without_memory_is_refused() -> None:
    inflation = Inflation(memoryview(b"x"), 31, 100, lambda count: count)

    class NoMemory:
        eof = False

        def decompress(self, data: Any, room: int) -> bytes:
            raise MemoryError

    inflation._inflater = NoMemory()  # type: ignore[assignment]
    inflation.reserve()
    with pytest.raises(Refused, match=r"^There is no memory for the decompressed request\.$") as caught:
        inflation.inflate()
    assert caught.value.failure.code == RESOURCE_EXHAUSTED


@pytest.mark.parametrize(
    ("size", "fits"), [(99, True), (100, True), (101, True), (250, True), (251, False), (300, False)]
)
def test_a_message_of_several_portions_may_be_as_long_as_the_limit(
    size: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message, "_PORTION", 100)
    text = bytes(range(256))[:size] if size <= 256 else bytes(size)
    squeezed, budget = zlib.compress(text), Budget(1 << 20)
    one = MessageReader(1 << 20, budget, allocate)
    one.take(memoryview(framed(squeezed, 1)))
    one._limit = 250
    inflation = one.finish(b"deflate")
    assert isinstance(inflation, Inflation)
    sizes: list[int] = []

    def portions() -> None:
        while inflation.text is None:
            inflation.reserve()
            assert budget.taken == len(squeezed) + sum(sizes) + min(100, 250 - sum(sizes))
            sizes.append(inflation.inflate())
            inflation.settle(sizes[-1])
            assert budget.taken == len(squeezed) + sum(sizes)

    if fits:
        portions()
        assert inflation.text == text
        assert max(sizes) <= 101
    else:
        with pytest.raises(Refused, match=r"^Received message larger than max \(decompressed, 250\)\.$"):
            portions()


def test_a_request_that_ends_within_the_length_of_its_message_ends_inside_it() -> None:
    for sent in (b"\0", b"\0\0\0\0", framed(b"ab")[:5], framed(b"ab")[:6]):
        one = reader()
        one.take(memoryview(sent))
        with pytest.raises(Refused, match=r"^The request ended inside its message\.$") as caught:
            one.finish(b"identity")
        assert caught.value.failure.code == INTERNAL
    with pytest.raises(Refused, match=r"^A unary call without a message\.$") as caught:
        reader().finish(b"identity")
    assert caught.value.failure.code == UNIMPLEMENTED
