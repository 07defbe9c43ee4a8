"""Examples read by compiled loops: what protobuf's parser makes of the same bytes, and what is left to that."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.cpu import _examples
from tenfold_kernels.cpu._compiled import compiling, examples
from tenfold_kernels.cpu._examples import Column, DenseFeature, Rows
from tenfold_kernels.cpu._examples_at_once import AtOnce
from tenfold_protos import example_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

_F, _I, _S = dtypes.float32, dtypes.int64, dtypes.string


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "loops", compiling.Loops("blocking"))


def example(**features: Any) -> bytes:
    message = example_pb2.Example()
    for key, values in features.items():
        feature = message.features.feature[key]
        if not values:
            continue
        field = {bytes: "bytes_list", float: "float_list", int: "int64_list"}[type(values[0])]
        getattr(feature, field).value.extend(values)
    return message.SerializeToString()


def vector(*items: bytes) -> Any:
    out = np.empty(len(items), object)
    out[:] = items
    return out


def wanted() -> AtOnce:
    none = np.empty(0, np.float32)
    return AtOnce(
        [Column("s", _S), Column("i", _I)],
        [
            DenseFeature("x", _F, (2,), none),
            DenseFeature("n", _I, (), np.array(-7, np.int64)),
            DenseFeature("v", _F, (-1, 2), np.array([0.5], np.float32)),
            DenseFeature("t", _S, (), np.array(b"none", object)),
        ],
        [Column("f", _F, dtypes.int32), Column("s", _S, _I)],
    )


def by_protobuf(features: AtOnce, serialized: Any) -> list[Any]:
    rows = Rows(serialized, None, example_pb2.Example)
    maps = [proto.features.feature for proto in rows.protos]
    return _examples.features_of(rows, maps, features.sparse, features.dense, features.ragged)


def same(ours: Any, theirs: Any) -> None:
    assert ours is not None
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine.shape, mine.dtype) == (other.shape, other.dtype)
        assert mine.tolist() == other.tolist()


PLAIN = {
    "all": example(
        x=[1.0, -2.5], n=[1 << 62], v=[1.0] * 4, t=[b"word"], s=[b"", b"b" * 300], i=[-1, 0, 5], f=[float("inf")]
    ),
    "defaults": example(x=[0.0, 3.0]),
    "not asked for": example(x=[1.0, 2.0], other=[3, 4], more=[b"x"], n=[-(1 << 63)]),
    "empty lists": example(x=[1.0, 2.0], s=[], n=[]),
}


@pytest.mark.parametrize("name", PLAIN)
def test_one_record_alone(name: str) -> None:
    serialized = np.array(PLAIN[name], object)
    same(wanted().outputs(serialized), by_protobuf(wanted(), serialized))


def test_a_batch_of_records() -> None:
    for serialized in (vector(*PLAIN.values(), PLAIN["all"]), vector()):
        same(wanted().outputs(serialized), by_protobuf(wanted(), serialized))


def test_other_spellings_of_the_same_values() -> None:
    """Values that are not packed, lists in pieces, several sets of features, a key that comes twice."""
    floats = b"\x12\x0a" + b"\x0d\0\0\x80\x3f" + b"\x0d\0\0\0\x40"
    ints = b"\x1a\x06\x08\x05\x0a\x02\x06\x07"
    entry = b"\x0a\x01x\x12" + bytes((len(floats),)) + floats
    other = b"\x0a\x01i\x12" + bytes((len(ints),)) + ints
    first = b"\x0a" + bytes((len(entry) + 2,)) + b"\x0a" + bytes((len(entry),)) + entry
    second = b"\x0a" + bytes((len(other) + 2,)) + b"\x0a" + bytes((len(other),)) + other
    serialized = vector(first + second, example(x=[9.0, 9.0]) + first)

    found = wanted().outputs(serialized)

    same(found, by_protobuf(wanted(), serialized))
    assert found is not None
    assert found[3].tolist() == [5, 6, 7]


@pytest.mark.parametrize(
    "row",
    [
        b"\xff\xff",
        example(x=[1, 2]),
        example(x=[1.0]),
        example(),
        example(x=[1.0, 2.0], v=[1.0]),
        example(x=[1.0, 2.0])[:-1],
        b"\x0a\x05\x0a\x03\x0a\x01\xff",
    ],
    # a message with a map has not the same bytes in each process
    ids=["no message", "integers", "one number", "nothing", "one more feature", "cut off", "no text"],
)
def test_what_is_wrong_or_unusual_is_left_to_protobuf(row: bytes) -> None:
    assert wanted().outputs(vector(PLAIN["all"], row)) is None


def _mutated(chance: random.Random) -> Iterator[bytes]:
    rows = list(PLAIN.values())
    while True:
        row = bytearray(chance.choice(rows))
        for _ in range(chance.randrange(1, 3)):
            at = chance.randrange(len(row))
            how = chance.randrange(3)
            if how == 0:
                row[at] = chance.choice((0, 8, 10, 13, 18, 26, 127, 128, 255, chance.randrange(256)))
            elif how == 1:
                del row[at : at + chance.randrange(1, 3)]
            else:
                row.insert(at, chance.randrange(256))
        yield bytes(row)


def test_whatever_is_read_is_what_protobuf_reads() -> None:
    """Broken records are never read: either both agree, or the loops leave them alone."""
    features, read = wanted(), 0
    chance = random.Random(71)
    for row, _ in zip(_mutated(chance), range(3000), strict=False):
        serialized = vector(row)
        ours = features.outputs(serialized)
        if ours is not None:
            read += 1
            np.testing.assert_equal(ours, by_protobuf(features, serialized))
    assert read > 300, "a test that reads nothing shows nothing"


def test_the_op_says_what_is_wrong_with_a_record(ops: Any) -> None:
    attrs: dict[str, Any] = dict(
        num_sparse=0, sparse_types=[], Tdense=[_F], ragged_value_types=[], ragged_split_types=[],
        dense_shapes=[TensorShape([2])],
    )  # fmt: skip
    inputs = [vector(), vector(), vector(b"x"), vector(), np.empty(0, np.float32)]
    good = example(x=[1.0, 2.0])
    for row, message in (
        (b"\xff", "Could not parse example input, value: '"),
        (example(x=[1]), "Key: x, Index: 1.  Data types don't match. Data type: int64 but expected type: float"),
        (example(), r"Feature: x \(data type: float\) is required but could not be found."),
        (example(x=[1.0]), r"Number of float values != expected.  Values size: 1 but output shape: \[2\]"),
    ):
        with pytest.raises(errors.InvalidArgumentError, match=message):
            ops.run("ParseExampleV2", [vector(good, row), *inputs], **attrs)
    assert ops.run("ParseExampleV2", [vector(good), *inputs], **attrs).tolist() == [[1.0, 2.0]]


def test_the_stand_in_fills_what_the_loop_fills() -> None:
    serialized = vector(*PLAIN.values())
    whole = wanted()
    slow = wanted()
    slow._fill = examples._fill_in_python
    same(slow.outputs(serialized), whole.outputs(serialized))
