"""RunStep past protocol buffers: requests without their large contents, answers in pieces; the same bytes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold_core import errors, graph_wire, tensor_util
from tenfold_kernels.resources.messages import decode
from tenfold_protos import master_pb2
from tenfold_services.rpc import large
from tenfold_services.rpc.large import LARGE, first_content, is_large, parse_run_step, pieces


def request(*feeds: Any) -> master_pb2.RunStepRequest:
    made = master_pb2.RunStepRequest(session_handle="abc", fetch=["y:0"], request_id=1 << 62)
    for index, feed in enumerate(feeds):
        made.feed.add(name=f"x{index}:0").tensor.CopyFrom(tensor_util.tensor_to_proto(feed))
    made.options.timeout_in_ms = 5
    return made


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([0, 3, LARGE // 4 - 1, LARGE // 4, LARGE]), max_size=4))
def test_nothing_of_a_request_is_lost(sizes: list[int]) -> None:
    feeds = [np.arange(size, dtype=np.float32) for size in sizes]
    whole = request(*feeds)
    step = parse_run_step(whole.SerializeToString())
    assert set(step.contents) == {index for index, size in enumerate(sizes) if size * 4 >= LARGE}
    for index, feed in enumerate(step.request.feed):
        np.testing.assert_array_equal(decode(feed.tensor, "x", step.contents.get(index)), feeds[index])
        if index in step.contents:
            assert not feed.tensor.tensor_content
            feed.tensor.tensor_content = bytes(step.contents[index])
    assert step.request == whole


def test_contents_are_views_where_they_were_received() -> None:
    data = np.frombuffer(request(np.ones(LARGE, np.float32)).SerializeToString(), np.uint8)
    at = first_content(data[:200].data)
    aligned = np.empty(data.size + 128, np.uint8)
    begin = -(aligned.ctypes.data + at) % 64
    aligned[begin : begin + data.size] = data
    step = parse_run_step(aligned[begin : begin + data.size].data)
    value = decode(step.request.feed[0].tensor, "x", step.contents[0])
    assert np.shares_memory(value, aligned)
    assert not value.flags.writeable
    shifted = np.empty(data.size + 128, np.uint8)
    shifted[begin + 1 : begin + 1 + data.size] = data
    step = parse_run_step(shifted[begin + 1 : begin + 1 + data.size].data)
    assert decode(step.request.feed[0].tensor, "x", step.contents[0]).flags.aligned


def test_strings_are_read_from_their_content() -> None:
    made = request()
    tensor = made.feed.add(name="x:0").tensor
    tensor.dtype = 7  # type: ignore[assignment]
    tensor.tensor_shape.dim.add().size = 1
    tensor.tensor_content = b"\x80\x80\x02" + b"s" * (1 << 15)
    step = parse_run_step(made.SerializeToString())
    assert decode(step.request.feed[0].tensor, "x", step.contents[0]).tolist() == [b"s" * (1 << 15)]


def test_a_content_of_the_wrong_size_is_refused() -> None:
    made = request(np.ones(LARGE, np.float32))
    made.feed[0].tensor.tensor_shape.dim[0].size = 5
    step = parse_run_step(made.SerializeToString())
    with pytest.raises(errors.InvalidArgumentError, match="x: tensor_content has 65536 bytes"):
        decode(step.request.feed[0].tensor, "x", step.contents[0])


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 200))
def test_garbage_is_a_decode_error_or_a_request(garbage: bytes, at: int) -> None:
    data = bytearray(request(np.zeros(LARGE, np.float32)).SerializeToString())
    data[at : at + len(garbage)] = garbage
    first_content(memoryview(data)[:300])
    try:
        found = parse_run_step(bytes(data)).request
    except DecodeError:
        return
    assert isinstance(found, master_pb2.RunStepRequest)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(LARGE, dtype=np.float64).reshape(64, -1),
        np.arange(2 * LARGE, dtype=np.int32)[::2],
        np.ones((128, 256), bool).T,
        np.ones(LARGE, ml_dtypes.bfloat16),
        np.ones(LARGE, np.complex64),
    ],
    ids=["matrix", "strided", "transposed bool", "bfloat16", "complex"],
)
def test_an_answer_in_pieces_is_the_message(array: np.ndarray[Any, Any]) -> None:
    assert is_large(array)
    small = master_pb2.RunStepResponse(status_error_message="beside")
    got = master_pb2.RunStepResponse.FromString(b"".join([small.SerializeToString(), *pieces("y:0", array)]))
    [tensor] = got.tensor
    assert (tensor.name, got.status_error_message) == ("y:0", "beside")
    np.testing.assert_array_equal(decode(tensor.tensor, "y"), array)


def test_an_array_is_sent_from_its_own_memory() -> None:
    array = np.zeros(LARGE, np.float32)
    content = pieces("y:0", array)[-1]
    assert np.shares_memory(np.frombuffer(content, np.uint8), array)


def test_what_is_not_large() -> None:
    assert not is_large(np.zeros(3, np.float32))
    assert not is_large(np.array([b"x"] * LARGE, object))


def test_a_request_of_many_small_fields_is_left_to_protocol_buffers() -> None:
    whole = request(np.ones(LARGE, np.float32))
    whole.target.extend(["t"] * 20_000)

    step = parse_run_step(whole.SerializeToString())

    assert step.request == whole
    assert step.contents == {}


# -- what is read apart ------------------------------------------------------------------------------------------------


def padded(made: master_pb2.RunStepRequest, size: int) -> bytes:
    """The request with a session's handle that makes it so long."""
    made.session_handle = "s" * (size - 100_000)
    made.session_handle += "s" * (size - made.ByteSize())
    assert made.ByteSize() == size
    return made.SerializeToString()


@pytest.mark.parametrize("more", [-1, 0])
def test_a_request_without_large_contents_is_read_where_it_came_up_to_256_kib(more: int) -> None:
    data = padded(request(), graph_wire.LARGE + more)
    if more < 0:
        assert parse_run_step(data).request.ByteSize() == len(data)
    else:
        with pytest.raises(graph_wire.ReadApartError):
            parse_run_step(data)


def test_beside_large_contents_there_may_be_less_than_a_mib() -> None:
    content = np.zeros(LARGE, np.uint8)
    for size in range((1 << 20) + LARGE - 8, (1 << 20) + LARGE + 16):
        found = parse_or_none(padded(request(content), size))
        if found is None:
            break
        longest = len(found)
    assert longest == (1 << 20) - 1


def parse_or_none(data: bytes) -> bytes | None:
    """The request without its contents; None where it is to be read apart."""
    try:
        return parse_run_step(data).request.SerializeToString()
    except graph_wire.ReadApartError:
        return None


@pytest.mark.parametrize("more", [0, 1])
def test_strings_are_taken_out_one_by_one_up_to_256_kib(more: int) -> None:
    made = request()
    for name, size in (("a", LARGE), ("b", graph_wire.LARGE - LARGE + more)):
        tensor = made.feed.add(name=name).tensor
        tensor.dtype = 7  # type: ignore[assignment]
        tensor.tensor_content = b"\0" * size
    if more:
        with pytest.raises(graph_wire.ReadApartError):
            parse_run_step(made.SerializeToString())
    else:
        assert set(parse_run_step(made.SerializeToString()).contents) == {0, 1}


def test_a_request_that_is_read_apart_has_its_feeds_decoded() -> None:
    step = large.parse_run_step_apart(request(np.ones(LARGE, np.float32), np.float32(2)).SerializeToString())
    assert step.contents == {}
    assert step.feeds is not None
    assert list(step.feeds) == ["x0:0", "x1:0"]
    assert step.feeds["x0:0"].shape == (LARGE,)
    with pytest.raises(DecodeError):
        large.parse_run_step_apart(b"\xff")


def test_an_endpoint_is_fed_once() -> None:
    made = request(np.float32(1), np.float32(2), np.float32(3))
    made.feed[2].name = "x1:0"
    with pytest.raises(errors.InvalidArgumentError, match=r'^Endpoint "x1:0" fed more than once\.$'):
        large.decoded(made, {})


def test_names_are_counted_before_feeds_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[Any] = []
    made = request(np.float32(1), np.float32(2))
    made.target.extend(["t"] * 3)
    monkeypatch.setattr(large, "check_counts", lambda *counts: counted.append(counts))
    large.decoded(made, {})
    assert counted == [(2, 1, 3)]


def test_a_feed_that_cannot_be_decoded_is_named() -> None:
    made = request(np.float32(1))
    made.feed[0].tensor.tensor_content = b"abc"
    with pytest.raises(errors.InvalidArgumentError, match="The value fed for 'x0:0'"):
        large.decoded(made, {})


@pytest.mark.parametrize("more", [-1, 0])
def test_contents_are_large_from_16_kib_on(more: int) -> None:
    array = np.zeros(LARGE + more, np.uint8)
    step = parse_run_step(request(np.float32(1), array, np.float32(2)).SerializeToString())
    assert set(step.contents) == ({1} if more == 0 else set())
    assert is_large(array) is (more == 0)
    data = request(array).SerializeToString()
    assert first_content(memoryview(data)) == (data.index(bytes(LARGE)) if more == 0 else 0)


@pytest.mark.parametrize("kind", [0, 1, 5, 2])
def test_fields_of_every_kind_are_gone_over(kind: int) -> None:
    value = {0: b"\x96\x01", 1: b"x" * 8, 5: b"x" * 4, 2: b"\x03abc"}[kind]
    unknown = bytes((15 << 3 | kind,)) + value
    data = unknown + request(np.zeros(LARGE, np.uint8)).SerializeToString()
    assert set(parse_run_step(data).contents) == {0}
    assert data[first_content(memoryview(data)) :][:LARGE] == bytes(LARGE)


@pytest.mark.parametrize(
    ("cut", "text"),
    [(b"\x7b", "wire type 3"), *((cut, "does not end") for cut in (b"\x7a\x05ab", b"\x7d123", b"\x80"))],
)
def test_a_field_that_is_none_is_a_decode_error(cut: bytes, text: str) -> None:
    data = request(np.zeros(LARGE, np.uint8)).SerializeToString() + cut
    with pytest.raises(DecodeError, match=text):
        parse_run_step(data)


def test_of_a_beginning_the_last_value_may_end_beyond() -> None:
    data = request(np.zeros(LARGE, np.uint8)).SerializeToString()
    at = first_content(memoryview(data))
    assert at > 0
    assert first_content(memoryview(data)[:at]) == at
    assert first_content(memoryview(data)[: at - 5]) == 0
    assert first_content(memoryview(b"\xff")) == 0


def test_so_many_fields_are_gone_over_here(monkeypatch: pytest.MonkeyPatch) -> None:
    data = request(np.zeros(LARGE, np.uint8)).SerializeToString()
    counted = sum(len(list(large._fields(view))) for view in nested(memoryview(data)))
    for most, contents in ((counted, {0}), (counted - 1, set())):
        monkeypatch.setattr(large, "_MOST_FIELDS", most)
        assert set(parse_run_step(data).contents) == contents


def nested(view: memoryview) -> list[memoryview]:
    """The messages down to the content: request, feed, tensor."""
    found = [view]
    for number in (2, 2):
        _, _, _, begin, end = next(each for each in large._fields(found[-1]) if each[0] == number)
        found.append(found[-1][begin:end])
    return found
