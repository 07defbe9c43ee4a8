"""RunStep past protocol buffers: requests without their large contents, answers in pieces; the same bytes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold_core import errors, tensor_util
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
    whole.target.extend(["t"] * large._MOST_FIELDS)

    step = parse_run_step(whole.SerializeToString())

    assert step.request == whole
    assert step.contents == {}
