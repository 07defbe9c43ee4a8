"""Sparse tensors as strings and as variants: there and back, batches, and what is no sparse tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_core.tensor_util import tensor_to_proto
from tenfold_kernels.cpu import sparse_serialize
from tenfold_kernels.resources.tensor_variants import TensorVariant
from tenfold_protos import tensor_pb2


def longs(*values: Any) -> Any:
    return np.array(values, np.int64)


INDICES, VALUES, SHAPE = longs([0, 1], [2, 0], [2, 3]), np.float32([5, 7, 9]), longs(3, 4)
KINDS = [dtypes.string, dtypes.variant]


def back(ops: Any, packed: Any, kind: Any, dtype: Any = dtypes.float32) -> list[Any]:
    found = ops.run("DeserializeSparse", [packed], dtype=dtype, Tserialized=kind)
    return [each.tolist() for each in found]


@pytest.mark.parametrize("kind", KINDS)
def test_one_there_and_back(ops: Any, kind: Any) -> None:
    packed = ops.run("SerializeSparse", [INDICES, VALUES, SHAPE], out_type=kind)
    assert packed.shape == (3,)
    assert [part.value.dtype if kind is dtypes.variant else None for part in packed] == (
        [np.int64, np.float32, np.int64] if kind is dtypes.variant else [None] * 3
    )
    assert back(ops, packed, kind) == [INDICES.tolist(), VALUES.tolist(), SHAPE.tolist()]


def test_no_index_of_a_single_one_is_looked_at(ops: Any) -> None:
    packed = ops.run("SerializeSparse", [INDICES + 9, VALUES, SHAPE])
    assert back(ops, packed, dtypes.string)[0] == (INDICES + 9).tolist()
    with pytest.raises(errors.InvalidArgumentError, match=r"^Number of elements in indices \(3\) and values \(2\)"):
        ops.run("SerializeSparse", [INDICES, VALUES[:2], SHAPE])


@pytest.mark.parametrize("kind", KINDS)
def test_members_of_a_batch(ops: Any, kind: Any) -> None:
    packed = ops.run("SerializeManySparse", [INDICES, VALUES, SHAPE], out_type=kind)
    assert packed.shape == (3, 3)
    for member, (places, numbers) in enumerate((([[1]], [5]), ([], []), ([[0], [3]], [7, 9]))):
        found = back(ops, packed[member], kind)
        assert found == [places, numbers, [4]]
    assert back(ops, packed, kind) == [INDICES.tolist(), VALUES.tolist(), SHAPE.tolist()]
    # two leading dimensions, and the sizes of the largest member
    other = ops.run("SerializeSparse", [longs([6]), np.float32([1]), longs(8)], out_type=kind)
    table = np.stack([packed[:2], np.stack([other, packed[2]])])
    assert back(ops, table, kind) == [
        [[0, 0, 1], [1, 0, 6], [1, 1, 0], [1, 1, 3]],
        [5, 1, 7, 9],
        [2, 2, 8],
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_texts_and_a_batch_of_nobody(ops: Any, kind: Any) -> None:
    words = np.array([b"x", b"", b"\xff"], object)
    packed = ops.run("SerializeManySparse", [INDICES, words, SHAPE], out_type=kind)
    assert back(ops, packed, kind, dtypes.string)[1] == words.tolist()
    none = ops.run("SerializeManySparse", [INDICES[:0], VALUES[:0], longs(0, 4)], out_type=kind)
    assert none.shape == (0, 3)


def test_variants_are_copies(ops: Any) -> None:
    indices, values, shape = INDICES.copy(), VALUES.copy(), SHAPE.copy()
    compute, _ = ops.build("SerializeSparse", [indices, values, shape], {"out_type": dtypes.variant})
    packed = compute(indices[:], values[:], shape[:])
    indices[:], values[:], shape[:] = 0, 0, 0
    assert back(ops, packed, dtypes.variant) == [INDICES.tolist(), VALUES.tolist(), SHAPE.tolist()]
    assert not packed[1].value.flags.writeable


@pytest.mark.parametrize(
    ("indices", "shape", "text"),
    [
        (longs([0], [1], [2]), longs(3), r"^Rank of input SparseTensor should be > 1, but saw rank: 1$"),
        (longs([0, 1], [0, 1], [2, 0]), SHAPE, r"^indices\[1\] = \[0,1\] is repeated$"),
        (longs([0, 1], [2, 0], [2, 0]), SHAPE, r"^indices\[2\] = \[2,0\] is repeated$"),
        (longs([0, 1], [2, 3], [2, 0]), SHAPE, r"^indices\[2\] = \[2,0\] is out of order\. Many sparse ops require"),
        (longs([1, 0], [0, 3], [2, 0]), SHAPE, r"^indices\[1\] = \[0,3\] is out of order\. Many sparse ops require"),
        (longs([0, 1], [2, 0], [3, 0]), SHAPE, r"^indices\[2\] = \[3,0\] is out of bounds"),
    ],
)
def test_batches_that_cannot_be(ops: Any, indices: Any, shape: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run("SerializeManySparse", [indices, VALUES, shape])


def test_memory_for_a_batch_is_asked_for_first(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(sparse_serialize, "allow", lambda dims, dtype: asked.append((dims, dtype)))
    ops.run("SerializeManySparse", [INDICES, VALUES, SHAPE])
    assert asked == [((3, 3), np.int64)]


def strings(*parts: Any) -> Any:
    out = np.empty(len(parts), object)
    out[:] = [part if isinstance(part, bytes) else tensor_to_proto(part).SerializeToString() for part in parts]
    return out


@pytest.mark.parametrize("op", ["DeserializeSparse", "DeserializeManySparse"])
@pytest.mark.parametrize(
    ("packed", "text"),
    [
        (np.array(b"x", object), r"^Serialized sparse should have 3 as the last dimension, got \[\]$"),
        (strings(b"", b""), r"^Serialized sparse should have 3 as the last dimension, got \[2\]$"),
        (strings(b"", b"", b"")[:, None], r"^Serialized sparse should have 3 as the last dimension, got \[3,1\]$"),
        (np.empty((0, 3), object), "^Must have at least 1 serialized SparseTensor, but input matrix has 0 rows$"),
        (strings(INDICES, b"odd", SHAPE)[None], "^Could not parse serialized proto$"),
        (
            strings(INDICES, VALUES.astype(np.int32), SHAPE)[None],
            r"^Requested SparseTensor of type float but SparseTensor\[0\]\.values\.dtype\(\) == int32$",
        ),
        (
            np.stack([strings(INDICES, VALUES, SHAPE), strings(INDICES.astype(np.int32), VALUES, SHAPE)]),
            r"^Requested SparseTensor of type int64 but SparseTensor\[1\]\.indices\.dtype\(\) == int32$",
        ),
        (
            strings(INDICES, VALUES, np.float32([3, 4]))[None],
            r"^Requested SparseTensor of type int64 but SparseTensor\[0\]\.shape\.dtype\(\) == float$",
        ),
        (strings(INDICES, VALUES[:2], SHAPE)[None], r"^Number of elements in indices \(3\) and values \(2\)"),
        (
            np.stack([strings(INDICES, VALUES, SHAPE), strings(longs([1]), VALUES[:1], longs(2))]),
            r"^Inconsistent shape across SparseTensors: rank prior to SparseTensor\[1\] was: 2 but rank of "
            r"SparseTensor\[1\] is: 1$",
        ),
    ],
)
def test_what_is_no_sparse_tensor(ops: Any, op: str, packed: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(op, [packed], dtype=dtypes.float32)


def test_a_proto_without_a_type(ops: Any) -> None:
    nothing = tensor_pb2.TensorProto().SerializeToString()
    with pytest.raises(errors.InvalidArgumentError, match=r"^TensorProto has unknown type number 0$"):
        ops.run("DeserializeSparse", [strings(nothing, VALUES, SHAPE)], dtype=dtypes.float32)


@pytest.mark.parametrize(("place", "part"), [(0, "indices"), (1, "values"), (2, "shape")])
def test_variants_of_another_type(ops: Any, place: int, part: str) -> None:
    packed = np.empty(3, object)
    packed[:] = [TensorVariant(each) for each in (INDICES, VALUES, SHAPE)]
    assert back(ops, packed, dtypes.variant) == [INDICES.tolist(), VALUES.tolist(), SHAPE.tolist()]
    packed[place] = TensorVariant(packed[place].value.astype(np.uint8))
    with pytest.raises(
        errors.InvalidArgumentError, match=rf"^Requested SparseTensor of type float but {part} is uint8$"
    ):
        back(ops, packed, dtypes.variant)
