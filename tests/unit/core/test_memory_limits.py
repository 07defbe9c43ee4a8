"""What one tensor may take: the limit, what is free, TensorFlow's words, and who asks."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tenfold as tf
from tenfold_core import errors, memory_limits, tensor_util
from tenfold_kernels.resources import messages as tensors
from tenfold_protos.tensor_pb2 import TensorProto
from tenfold_protos.types_pb2 import DT_FLOAT, DT_STRING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MIB = 1 << 20


@pytest.fixture
def limit() -> Iterator[int]:
    """One tensor may take 8 MiB."""
    before = memory_limits.tensor_limit()
    memory_limits.limit_tensor(8 * MIB)
    yield 8 * MIB
    memory_limits.limit_tensor(before)


def test_a_tensor_up_to_the_limit_is_allowed(limit: int) -> None:
    memory_limits.allow((limit // 4,), np.float32)
    with pytest.raises(errors.ResourceExhaustedError) as caught:
        memory_limits.allow((2, limit // 8 + 1), np.float32)
    assert caught.value.message == (
        "OOM when allocating tensor with shape[2,1048577] and type float: it would take 8388616 bytes, and 8388608 is "
        "the limit for one tensor here."
    )


def test_elements_that_cannot_be_counted_are_no_question_of_memory() -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"overflow .* of shape \[4611686018427387904,8\]: more than"):
        memory_limits.allow((1 << 62, 8), np.float64)


@pytest.mark.parametrize("shape", [(0, 1 << 62, 8), (1,) * 65, (0,) * 65])
def test_an_array_that_there_is_none_of_is_refused_however_little_it_takes(shape: tuple[int, ...]) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"There is no array of shape \["):
        memory_limits.allow(shape, np.float32)
    memory_limits.allow((0, 1 << 40), np.float32)


def test_the_default_is_half_of_the_memory() -> None:
    before = memory_limits.tensor_limit()
    memory_limits.limit_tensor(0)
    try:
        assert memory_limits.tensor_limit() == memory_limits.memory() // 2 > 0
    finally:
        memory_limits.limit_tensor(before)


def test_what_is_not_free_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limits, "available", lambda: 512 * MIB)
    memory_limits.allow((128 * MIB,), np.uint8)
    with pytest.raises(errors.ResourceExhaustedError, match=r"uint8: it would take 419430400 bytes, and 536870912 "):
        memory_limits.allow((200 * MIB,), np.uint8, 2)


def test_what_another_thread_was_just_allowed_is_not_free_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limits, "available", lambda: 700 * MIB)
    monkeypatch.setattr(memory_limits, "_granted", {})
    other = threading.Thread(target=memory_limits.allow, args=((300 * MIB,), np.uint8))
    other.start()
    other.join()
    with pytest.raises(errors.ResourceExhaustedError, match="419430400 are free"):
        memory_limits.allow((300 * MIB,), np.uint8)


def test_what_a_thread_was_allowed_before_is_not_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limits, "available", lambda: 700 * MIB)
    monkeypatch.setattr(memory_limits, "_granted", {})
    for _ in range(3):
        memory_limits.allow((300 * MIB,), np.uint8)


def test_nothing_new_is_kept_when_memory_has_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    memory_limits.check_room("a new session")
    monkeypatch.setattr(memory_limits, "available", lambda: 10 * MIB)
    with pytest.raises(errors.ResourceExhaustedError, match="OOM: a new session is refused, only 10485760 bytes are"):
        memory_limits.check_room("a new session")


def test_the_environment_may_set_the_limit() -> None:
    assert memory_limits.tensor_bytes_from_environment({}) == 0
    assert memory_limits.tensor_bytes_from_environment({"TENFOLD_TENSOR_BYTES": "1000"}) == 1000
    for wrong in ("-1", "1e9", "much", "²"):
        with pytest.raises(errors.InvalidArgumentError, match="TENFOLD_TENSOR_BYTES is"):
            memory_limits.tensor_bytes_from_environment({"TENFOLD_TENSOR_BYTES": wrong})


# -- who asks ---------------------------------------------------------------------------------------------------------

#: An op whose output's size comes from a value → how it is made from a number n: [n] elements or more.
MAKERS: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "Fill": lambda n: tf.fill([n], 1.0),
    "Range": lambda n: tf.range(n),
    "RangeOfFloats": lambda n: tf.range(0.0, tf.cast(n, tf.float32)),
    "LinSpace": lambda n: tf.linspace(0.0, 1.0, n),
    "Tile": lambda n: tf.tile(tf.zeros([2]), [n]),
    "Pad": lambda n: tf.pad(tf.zeros([2]), [[0, n]]),
    "OneHot": lambda n: tf.one_hot([0, 1], n),
    "BroadcastTo": lambda n: tf.broadcast_to(1.0, [n]),
    "RandomUniform": lambda n: tf.random_uniform([n]),
    "RandomStandardNormal": lambda n: tf.random_normal([n]),
    "TruncatedNormal": lambda n: tf.truncated_normal([n]),
    "ScatterNd": lambda n: tf.scatter_nd([[0]], [1.0], [n]),
    "UnsortedSegmentSum": lambda n: tf.unsorted_segment_sum([1.0], [0], n),
    "Concat": lambda n: tf.concat([tf.fill([n // 3 + 1], 1.0)] * 3, 0),
    "Pack": lambda n: tf.stack([tf.fill([n // 3 + 1], 1.0)] * 3),
    "Bincount": lambda n: tf.bincount([1], minlength=n),
}


@pytest.mark.parametrize("name", MAKERS)
def test_kernels_ask_before_they_allocate(name: str, limit: int) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        count = tf.placeholder(tf.int32, [])
        made = MAKERS[name](count)
        assert session.run(tf.size(made), {count: 10}) >= 10
        with pytest.raises(tf.errors.ResourceExhaustedError, match=r"OOM when allocating tensor with shape\["):
            session.run(made, {count: 5_000_000 if name != "Bincount" else 50_000_000})


def test_a_message_that_promises_more_than_it_holds_is_not_expanded(limit: int) -> None:
    proto = TensorProto(dtype=DT_FLOAT, float_val=[1.0])
    proto.tensor_shape.dim.add(size=limit // 4 + 1)
    with pytest.raises(errors.ResourceExhaustedError, match="OOM when allocating tensor"):
        tensor_util.proto_to_tensor(proto)
    proto.tensor_shape.dim[0].size = limit // 4
    assert tensor_util.proto_to_tensor(proto).size == limit // 4


def test_strings_that_are_only_promised_are_not_made(limit: int) -> None:
    proto = TensorProto(dtype=DT_STRING)
    proto.tensor_shape.dim.add(size=limit // 8 + 1)
    with pytest.raises(errors.ResourceExhaustedError, match="type string"):
        tensor_util.proto_to_tensor(proto)
    proto.tensor_content = b"\x00" * 100
    proto.tensor_shape.dim[0].size = 200
    with pytest.raises(errors.InvalidArgumentError, match="ends within the 200 lengths"):
        tensor_util.proto_to_tensor(proto)


def test_a_tensor_that_no_message_can_hold_is_refused_before_it_is_copied() -> None:
    huge = np.broadcast_to(np.float32(0), (1 << 30,))
    with pytest.raises(errors.ResourceExhaustedError, match=r"a message 2 GiB at most"):
        tensors.encode_into(TensorProto(), huge)


def test_an_error_that_is_kept_keeps_nothing_else() -> None:
    class Held:
        pass

    def fail() -> weakref.ref[Held]:
        held = Held()
        seen.append(weakref.ref(held))
        try:
            raise ValueError("inner")
        except ValueError as inner:
            raise errors.InternalError(None, None, "outer") from inner

    seen: list[weakref.ref[Held]] = []
    kept: list[BaseException] = []
    gc.disable()
    try:
        try:
            fail()
        except errors.InternalError as error:
            kept.append(error)
        assert seen[0]() is not None
        errors.forget_frames(kept[0])
        assert seen[0]() is None
    finally:
        gc.enable()
    assert kept[0].__cause__ is not None


def test_a_matrix_without_rows_must_not_be_endlessly_wide(limit: int) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        shape = tf.placeholder(tf.int64, [2])
        values = tf.svd(tf.fill(shape, 1.0), compute_uv=False)
        assert session.run(values, {shape: [0, 5]}).shape == (0,)
        with pytest.raises(tf.errors.ResourceExhaustedError, match=r"shape\[1,1099511627776\]"):
            session.run(values, {shape: [0, 1 << 40]})
