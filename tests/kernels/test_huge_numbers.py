"""No number that an input or an attribute can hold takes a task's memory or its time: support/huge_numbers.py, in a
child process with little of both, and programs of one line where a number is a size.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support import huge_numbers
from tenfold_core import memory_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCRIPT = Path(huge_numbers.__file__)
ROOT = SCRIPT.parents[2]
#: Each of them was a fault once: it computed without end, took memory that nobody had allowed, or met an error of
#: Python's.
ONCE = (
    "AddManySparseToTensorsMap", "AsString", "AudioSpectrogram", "BatchToSpace", "Conv2D", "DecodeWav", "Dilation2D",
    "EncodeWav", "ExtractImagePatches", "FixedUnigramCandidateSampler", "FractionalAvgPool", "FractionalMaxPool",
    "Mfcc", "ParameterizedTruncatedNormal", "RandomPoissonV2", "SampleDistortedBoundingBoxV2", "Shape", "SpaceToBatch",
)  # fmt: skip


def faults(seed: int, most: int, ops: list[str]) -> list[str]:
    """What is wrong with the answers of `most` calls of each op; a child that dies is started again behind the call."""
    found: list[str] = []
    first, waiting = 0, ops
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests")))}
    while waiting:
        command = [sys.executable, str(SCRIPT), str(seed), str(most), str(first), *waiting]
        # warnings of computing with such numbers are nobody's business
        ran = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
        )
        lines, call = ran.stdout.splitlines(), ""
        for line in lines:
            if line.startswith("!"):
                found.append(f"{call}: {line[2:]}")
            elif line != ".":
                call = line
        if lines[-1:] == ["."]:
            break
        assert call, f"the child ended by {ran.returncode} before it tried anything"
        found.append(f"{call}: ended by {ran.returncode}")
        op, number = call.split()[:2]
        waiting, first = waiting[waiting.index(op) :], int(number) + 1
    return found


def test_numbers_that_ask_for_too_much() -> None:
    """Of some ops, drawn anew with each seed, and of those that failed once."""
    some = random.Random(0).sample(huge_numbers.names(), 40)

    assert faults(0, 6, sorted({*some, *ONCE})) == []


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_of_every_op() -> None:
    assert faults(1, 40, huge_numbers.names()) == []


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_of_every_op_more() -> None:
    assert faults(2, 400, huge_numbers.names()) == []


@pytest.fixture
def small_tensors() -> Iterator[None]:
    """No tensor of more than 8 MiB."""
    before = memory_limits.tensor_limit()
    memory_limits.limit_tensor(8 << 20)
    yield
    memory_limits.limit_tensor(before)


INT32, INT64 = (1 << 31) - 1, (1 << 63) - 1


def _list(*shape: int) -> Any:
    return tf.raw_ops.TensorListReserve(
        element_shape=np.array(shape), num_elements=np.int32(2), element_dtype=tf.float32
    )


def _long(count: int) -> Any:
    """A string of so many characters."""
    return tf.reduce_join(tf.fill([count], b"x"))


def _next(dataset: Any) -> Any:
    return dataset.make_one_shot_iterator().get_next()


#: What a program asks for, and what it is told.
PROGRAMS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "the shape of what is too wide for int32": (
        lambda: tf.shape(tf.placeholder_with_default(np.zeros((0, 1 << 33), np.float32), [None, None])),
        tf.errors.InvalidArgumentError, "Shape output type is 32-bit but dim 1 is 8589934592"),
    "shapes of such": (
        lambda: tf.shape_n([tf.placeholder_with_default(np.zeros((0, 1 << 33), np.float32), [None, None])] * 2),
        tf.errors.InvalidArgumentError, "32-bit but dim 1"),
    "a list's element of a negative length": (
        lambda: tf.raw_ops.TensorListConcatV2(
            input_handle=_list(-1, 3), element_shape=np.array([-1, 3]), leading_dims=np.array([-1, -1]),
            element_dtype=tf.float32)[0],
        tf.errors.InvalidArgumentError, r"leading_dims\[0\] is -1"),
    "a list's element of a huge length": (
        lambda: tf.raw_ops.TensorListConcatV2(
            input_handle=_list(-1, 3), element_shape=np.array([-1, 3]), leading_dims=np.array([INT32, INT32]),
            element_dtype=tf.float32)[0],
        tf.errors.ResourceExhaustedError, "OOM when allocating"),
    "a list": (
        lambda: tf.raw_ops.TensorListLength(input_handle=tf.raw_ops.TensorListResize(
            input_handle=_list(3), size=np.int32(INT32))),
        tf.errors.ResourceExhaustedError, "is the limit"),
    "an array of tensors": (
        lambda: tf.TensorArray(tf.float32, size=INT32).size(), tf.errors.ResourceExhaustedError, "is the limit"),
    "an element of an array far away": (
        lambda: tf.TensorArray(tf.float32, size=0, dynamic_size=True).write(INT32 - 1, 1.0).size(),
        tf.errors.ResourceExhaustedError, "is the limit"),
    "a place in a stitch": (
        lambda: tf.dynamic_stitch([[INT32]], [[1.0]]), tf.errors.ResourceExhaustedError, r"shape\[2147483648\]"),
    "a number's width": (
        lambda: tf.as_string(1.5, width=INT32), tf.errors.InvalidArgumentError, "width is 2147483647; it can be"),
    "a number's precision": (
        lambda: tf.as_string(1.5, precision=INT32), tf.errors.InvalidArgumentError, "precision is 2147483647"),
    "many wide numbers": (
        lambda: tf.as_string(tf.ones([100]), width=1 << 20), tf.errors.ResourceExhaustedError, "OOM"),
    "a text beside many": (
        lambda: tf.string_join([tf.fill([1000], b"y"), _long(1 << 15)]),
        tf.errors.ResourceExhaustedError, "StringJoin would give strings of"),
    "a separator": (
        lambda: tf.string_join([tf.fill([1000], b"y"), "z"], separator="-" * 10_000),
        tf.errors.ResourceExhaustedError, "StringJoin would give strings of"),
    "a separator of all": (
        lambda: tf.reduce_join(tf.fill([1000], b"x"), separator="y" * 10_000),
        tf.errors.ResourceExhaustedError, "ReduceJoin would give strings of"),
    "one segment's strings": (
        lambda: tf.strings.unsorted_segment_join(tf.fill([10_000], b"x" * 1000), tf.zeros([10_000], tf.int32), 1),
        tf.errors.ResourceExhaustedError, "UnsortedSegmentJoin would give strings of"),
    "what replaces each letter": (
        lambda: tf.regex_replace(_long(10_000), "x", "y" * 1000),
        tf.errors.ResourceExhaustedError, "RegexReplace would give strings of"),
    "parts of one text": (
        lambda: tf.substr(_long(1 << 15), tf.zeros([1000], tf.int32), tf.fill([1000], INT32)),
        tf.errors.ResourceExhaustedError, "Substr would give strings of"),
    "a padded batch": (
        lambda: _next(tf.data.Dataset.range(3).map(lambda x: tf.fill([2], x)).padded_batch(2, [INT32])),
        tf.errors.ResourceExhaustedError, "OOM when allocating"),
    "a batch of a large tensor": (
        lambda: _next(tf.data.Dataset.from_tensors(np.zeros(1 << 19, np.float32)).repeat(8).batch(INT64)),
        tf.errors.ResourceExhaustedError, "OOM when allocating"),
    "a range": (lambda: tf.range(np.int64(0), INT64, 1), tf.errors.ResourceExhaustedError, "OOM"),
    "a histogram": (
        lambda: tf.histogram_fixed_width([1.0], [0.0, 1.0], nbins=INT32), tf.errors.ResourceExhaustedError, "OOM"),
    "a rate": (
        lambda: tf.random.poisson([np.float64(1e19)], [1], dtype=tf.int64),
        tf.errors.InvalidArgumentError, "a rate of 1e.19 gives samples that int64 does not hold"),
}  # fmt: skip


@pytest.mark.usefixtures("small_tensors")
@pytest.mark.parametrize("asks_for", PROGRAMS)
def test_a_program_that_asks_for_too_much(asks_for: str) -> None:
    build, kind, text = PROGRAMS[asks_for]
    with tf.Graph().as_default(), tf.Session() as session, pytest.raises(kind, match=text):
        session.run(build())


def test_segments_of_strings_are_joined_as_before() -> None:
    """A separator comes after the first string that is not empty."""
    texts = [b"", b"a", b"", b"b", b"c", b""]
    with tf.Graph().as_default(), tf.Session() as session:
        joined = tf.strings.unsorted_segment_join(texts, [0, 0, 0, 1, 0, 2], 4, separator="-")
        assert session.run(joined).tolist() == [b"a--c", b"b", b"", b""]
