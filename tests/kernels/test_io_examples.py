"""Examples read by compiled loops: what protobuf's parser makes of the same bytes, and what is left to that."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.room import assert_wants
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.cpu import _examples, _examples_at_once, io_parsing_examples
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


_ROWS = (
    example(x=[1.0, 2.0], v=[1.0, 2.0, 3.0, 4.0], w=[b"a"], s=[b"p", b"q"], i=[5], n=[3]),
    example(v=[5.0, 6.0], w=[b"b", b"cc"], i=[]),
    example(s=[b"r"], x=[3.0, 4.0], i=[-1, 1 << 40]),
)
_NONE = np.empty(0, object)


def listed() -> tuple[list[Column], list[DenseFeature], list[Column]]:
    return (
        [Column("s", _S), Column("i", _I)],
        [
            DenseFeature("x", _F, (2,), np.float32([7, 8])),
            DenseFeature("v", _F, (-1, 2), np.float32([0.5])),
            DenseFeature("w", _S, (-1,), np.array([b"-"], object)),
            DenseFeature("n", _I, (), np.array(9, np.int64)),
            DenseFeature("x", _F, (1, 2), np.float32([[7, 8]])),
        ],
        [Column("s", _S, dtypes.int32), Column("v", _F, _I)],
    )


#: Records → what the features of `listed` are: values and shapes.
_LISTED: list[tuple[Any, list[Any]]] = [
    (vector(*_ROWS), [
        [[0, 0], [0, 1], [2, 0]], [[0, 0], [2, 0], [2, 1]], [b"p", b"q", b"r"], [5, -1, 1 << 40], [3, 2], [3, 2],
        [[1, 2], [7, 8], [3, 4]], [[[1, 2], [3, 4]], [[5, 6], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]],
        [[b"a", b"-"], [b"b", b"cc"], [b"-", b"-"]], [3, 9, 9], [[[1, 2]], [[7, 8]], [[3, 4]]],
        [b"p", b"q", b"r"], [1, 2, 3, 4, 5, 6], [0, 2, 2, 3], [0, 4, 6, 6],
    ]),
    (np.array(_ROWS[0], object), [
        [[0], [1]], [[0]], [b"p", b"q"], [5], [2], [1],
        [1, 2], [[1, 2], [3, 4]], [b"a"], 3, [[1, 2]], [b"p", b"q"], [1, 2, 3, 4], [], [],
    ]),
    (np.array(_ROWS[2], object), [
        [[0]], [[0], [1]], [b"r"], [-1, 1 << 40], [1], [2],
        [3, 4], np.zeros((0, 2)), [], 9, [[3, 4]], [b"r"], [], [], [],
    ]),
    (vector(_ROWS[1]), [
        np.zeros((0, 2)), np.zeros((0, 2)), [], [], [1, 0], [1, 0],
        [[7, 8]], [[[5, 6]]], [[b"b", b"cc"]], [9], [[[7, 8]]], [], [5, 6], [0, 0], [0, 2],
    ]),
    (vector(example(), example()), [
        np.zeros((0, 2)), np.zeros((0, 2)), [], [], [2, 0], [2, 0],
        [[7, 8]] * 2, np.zeros((2, 0, 2)), np.zeros((2, 0)), [9, 9], [[[7, 8]]] * 2, [], [], [0, 0, 0], [0, 0, 0],
    ]),
    (vector(), [
        np.zeros((0, 2)), np.zeros((0, 2)), [], [], [0, 0], [0, 0],
        np.zeros((0, 2)), np.zeros((0, 0, 2)), np.zeros((0, 0)), [], np.zeros((0, 1, 2)), [], [], [0], [0],
    ]),
]  # fmt: skip
_TYPES = [
    *(np.int64, np.int64, object, np.int64, np.int64, np.int64),
    *(np.float32, np.float32, object, np.int64, np.float32),
    *(object, np.float32, np.int32, np.int64),
]


@pytest.mark.parametrize("serialized", _LISTED, ids=range(len(_LISTED)))
def test_both_readers_give_what_stands_in_the_records(serialized: Any) -> None:
    records, expected = serialized
    for found in (AtOnce(*listed()).outputs(records), by_protobuf(AtOnce(*listed()), records)):
        assert found is not None
        for mine, other, dtype in zip(found, expected, _TYPES, strict=True):
            assert (mine.tolist(), mine.shape, mine.dtype) == (np.array(other).tolist(), np.shape(other), dtype)


def test_a_wrong_record_is_left_to_protobuf_wherever_it_stands() -> None:
    good, none = example(x=[1.0, 2.0]), np.empty(0, np.float32)
    fixed = AtOnce([], [DenseFeature("x", _F, (2,), none)], [])
    for wrong in (b"\xff\xff", example(x=[1]), example(x=[1.0]), example(), example(x=[1.0, 2.0, 3.0])):
        for rows in ((wrong, good), (good, wrong), (wrong,)):
            assert fixed.outputs(vector(*rows)) is None
    assert fixed.outputs(vector(good, good)) is not None
    padding, none_wide = np.float32([0]), np.zeros((3, 0), np.float32)
    for shape, rows in (((-1, 2), [example(x=[1.0])]), ((-1, 0), [example()]), ((-1, 0), [])):
        assert AtOnce([], [DenseFeature("x", _F, shape, padding)], []).outputs(vector(*rows)) is None
    found = AtOnce([], [DenseFeature("x", _F, (0,), none_wide[0])], []).outputs(vector(example(x=[])))
    assert found is None, "what is empty may be missing as well"


def test_memory_is_asked_for_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, none = vector(example(x=[1.0, 2.0], i=[1, 2, 3]), example(x=[3.0, 4.0], i=[4, 5])), np.empty(0, np.float32)
    fixed = AtOnce([], [DenseFeature("x", _F, (2,), none)], [])
    assert_wants(monkeypatch, 2 * 2 * 4, lambda: fixed.outputs(rows))
    varies = AtOnce([], [DenseFeature("i", _I, (-1,), np.array([0], np.int64))], [])
    assert_wants(monkeypatch, 2 * 3 * 8, lambda: varies.outputs(rows))
    assert_wants(monkeypatch, 2 * 3 * 8, lambda: by_protobuf(varies, rows))
    for several in (AtOnce([Column("i", _I)], [], []), AtOnce([], [], [Column("i", _I, _I)])):
        assert_wants(monkeypatch, 5 * 8, lambda several=several: several.outputs(rows))


# -- the ops


def v2(
    ops: Any, serialized: Any, *, names: Any = _NONE, sparse: Any = (), dense: Any = (), ragged: Any = (), **more: Any
) -> Any:
    """`sparse`: (key, type); `dense`: (key, type, shape, default); `ragged`: (key, type, splits)."""
    attrs: dict[str, Any] = {
        "num_sparse": len(sparse), "sparse_types": [each[1] for each in sparse], "Tdense": [each[1] for each in dense],
        "ragged_value_types": [each[1] for each in ragged], "ragged_split_types": [each[2] for each in ragged],
        "dense_shapes": [TensorShape(each[2]) for each in dense],
    }  # fmt: skip
    keys = [vector(*(each[0] for each in group)) for group in (sparse, dense, ragged)]
    return ops.run("ParseExampleV2", [serialized, names, *keys, *(each[3] for each in dense)], **{**attrs, **more})


def v1(ops: Any, serialized: Any, *, names: Any = _NONE, sparse: Any = (), dense: Any = ()) -> Any:
    keys = [np.array(each[0], object) for each in (*sparse, *dense)]
    return ops.run(
        "ParseExample", [serialized, names, *keys, *(each[3] for each in dense)], Nsparse=len(sparse),
        Ndense=len(dense), sparse_types=[each[1] for each in sparse], Tdense=[each[1] for each in dense],
        dense_shapes=[TensorShape(each[2]) for each in dense],
    )  # fmt: skip


def one(ops: Any, serialized: Any, *, sparse: Any = (), dense: Any = ()) -> Any:
    return ops.run(
        "ParseSingleExample", [serialized, *(each[3] for each in dense)], num_sparse=len(sparse),
        sparse_keys=[each[0] for each in sparse], dense_keys=[each[0] for each in dense],
        sparse_types=[each[1] for each in sparse], Tdense=[each[1] for each in dense],
        dense_shapes=[TensorShape(each[2]) for each in dense],
    )  # fmt: skip


_DENSE = (b"x", _F, [2], np.float32([7, 8]))
_NEEDED = (b"x", _F, [2], np.empty(0, np.float32))
_VARIES = (b"v", _F, [None, 2], np.float32([0.5]))


def test_plain_records_are_read_without_their_messages(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(io_parsing_examples, "Rows", None)
    rows = vector(*_ROWS)
    want: dict[str, Any] = {"sparse": [(b"s", _S)], "dense": [_DENSE, _VARIES]}
    for found in (
        v2(ops, rows, **want),
        v2(ops, rows, names=vector(b"1", b"2", b"3"), **want),
        v1(ops, rows, **want),
        v1(ops, rows, names=vector(b"1", b"2", b"3"), **want),
    ):
        assert found[1].tolist() == [b"p", b"q", b"r"]
        assert found[3].tolist() == [[1, 2], [7, 8], [3, 4]]
    for found in (one(ops, np.array(_ROWS[0], object), **want), v2(ops, np.array(_ROWS[0], object), **want)):
        assert found[3].tolist() == [1, 2]
    both = v2(ops, rows, ragged=[(b"s", _S, _I)], **want)
    assert [each.tolist() for each in both[5:]] == [[b"p", b"q", b"r"], [0, 2, 2, 3]]
    assert v2(ops, rows, dense=[_DENSE]).tolist() == [[1, 2], [7, 8], [3, 4]]
    assert v2(ops, rows) is None


def test_what_keys_ask_for_is_found_out_once(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Counted(AtOnce):
        def __init__(self, *given: Any) -> None:
            made.append(given)
            super().__init__(*given)

    found = []
    monkeypatch.setattr(examples, "scan", lambda scan=examples.scan: (found.append("scan"), scan())[1])
    monkeypatch.setattr(examples, "fill", lambda fill=examples.fill: (found.append("fill"), fill())[1])
    monkeypatch.setattr(_examples_at_once, "AtOnce", Counted)
    attrs: dict[str, Any] = {
        "num_sparse": 0, "sparse_types": [], "Tdense": [_F], "ragged_value_types": [], "ragged_split_types": [],
        "dense_shapes": [TensorShape([2])],
    }  # fmt: skip
    row = vector(example(x=[1.0, 2.0], y=[3.0, 4.0]))
    inputs = [row, vector(), vector(), vector(b"x"), vector(), np.empty(0, np.float32)]
    compute, _ = ops.build("ParseExampleV2", inputs, attrs)
    assert (found, made) == (["scan", "fill"], []), "loops are looked for before the first step"
    for _ in range(2):
        assert compute(*inputs).tolist() == [[1, 2]]
    assert len(made) == 1
    inputs[3] = vector(b"y")
    assert compute(*inputs).tolist() == [[3, 4]]
    assert len(made) == 2


def test_many_calls_at_once(ops: Any) -> None:
    attrs: dict[str, Any] = {
        "num_sparse": 0, "sparse_keys": [], "dense_keys": [b"x", b"n"], "sparse_types": [], "Tdense": [_F, _I],
        "dense_shapes": [TensorShape([2]), TensorShape([])],
    }  # fmt: skip
    defaults = [np.float32([7, 8]), np.array(9, np.int64)]

    def rows(values: Any, has_rows: Any, **more: Any) -> Any:
        return ops.build("ParseSingleExample", [values[0], *values[1:]], {**attrs, **more})[0].rows(3, values, has_rows)

    values = [vector(*_ROWS), *defaults]
    assert [each.tolist() for each in rows(values, [True, False, False])] == [[[1, 2], [7, 8], [3, 4]], [3, 9, 9]]
    for has_rows in ([True, True, False], [True, False, True]):
        assert rows(values, has_rows) is None
    assert rows([values[0].reshape(3, 1), *defaults], [True, False, False]) is None
    varies = {"dense_shapes": [TensorShape([None]), TensorShape([])]}
    assert rows([values[0], np.float32([7]), defaults[1]], [True, False, False], **varies) is None
    sparse = {"num_sparse": 1, "sparse_keys": [b"s"], "sparse_types": [_S]}
    assert rows(values, [True, False, False], **sparse) is None
    torn = vector(_ROWS[0], b"\xff", _ROWS[1])
    assert rows([torn, *defaults], [True, False, False]) is None
    many: dict[str, Any] = {
        "num_sparse": 0, "sparse_types": [], "Tdense": [], "ragged_value_types": [_S], "ragged_split_types": [_I],
        "dense_shapes": [],
    }  # fmt: skip
    inputs = [vector(*_ROWS), vector(), vector(), vector(), vector(b"s")]
    assert ops.build("ParseExampleV2", inputs, many)[0].rows(3, inputs, [True] + [False] * 4) is None


def refused(text: str, run: Any, *inputs: Any, **attrs: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError) as error:
        run(*inputs, **attrs)
    assert error.value.message == text


def test_wrong_records_are_named(ops: Any) -> None:
    good = example(x=[1.0, 2.0], s=[b"p"], v=[1.0, 2.0])
    sparse, ragged = [(b"s", _S)], [(b"s", _S, _I)]
    types = "Data types don't match. Data type: int64 but expected type: string"
    for row, want, text in (
        (example(s=[1]), {"sparse": sparse}, f"Key: s, Index: 1.  {types}"),
        (example(s=[1]), {"ragged": ragged}, f"Key: s, Index: 1.  {types}"),
        (example(v=[1.0] * 3), {"dense": [_VARIES]},
         "Key: v, Index: 1.  Number of float values is not a multiple of stride length. Saw 3 values but output shape "
         "is: [?,2]"),
        (example(), {"dense": [(b"v", _F, [None, 0], np.float32([1]))]}, ""),
        (example(x=[1.0]), {"dense": [_DENSE]},
         "Key: x, Index: 1.  Number of float values != expected.  Values size: 1 but output shape: [2]"),
        (example(), {"dense": [_NEEDED]}, "Feature: x (data type: float) is required but could not be found."),
        (example(), {"dense": [(b"w", _S, [], vector())]},
         "Feature: w (data type: string) is required but could not be found."),
    ):  # fmt: skip
        for call in (v2, v1):
            if call is v1 and "ragged" in want:
                continue
            for names, first, second in ((_NONE, "<unknown>", "<unknown>"), (vector(b"n1", b"n\xff"), "n1", "n\ufffd")):
                if not text:
                    whole = (
                        f"Name: {first}, Key: v, Index: 0.  Number of float values is not a multiple of stride length. "
                        "Saw 2 values but output shape is: [?,0]"
                    )
                else:
                    whole = f"Name: {second}, {text}"
                    if "is required" in text and "Feature: w" in text:
                        whole = f"Name: {first}, {text}"
                refused(whole, call, ops, vector(good, row), names=names, **want)
    for row, want, text in (
        (example(s=[1]), {"sparse": sparse}, f"Key: s.  {types}"),
        (example(v=[1.0] * 3), {"dense": [_VARIES]},
         "Error while parsing feature with key v: number of elements should be divisible by 2, found 3 instead"),
        (example(), {"dense": [(b"v", _F, [None, 0], np.float32([1]))]},
         "Error while parsing feature with key v: number of elements should be divisible by 0, found 0 instead"),
        (example(x=[1.0]), {"dense": [_DENSE]},
         "Key: x.  Can't parse serialized Example: Some float_list slice was not parsed."),
        (example(), {"dense": [_NEEDED]}, "Feature: x (data type: float) is required but could not be found."),
        (b"\xff", {"dense": [_NEEDED]}, "Could not parse example input, value: '\ufffd'"),
    ):  # fmt: skip
        for call in (one, v2):
            refused(text, call, ops, np.array(row, object), **want)


def test_nodes_and_inputs_that_do_not_fit(ops: Any) -> None:
    rows, row = vector(_ROWS[0], _ROWS[0]), np.array(_ROWS[0], object)
    refused("Expected serialized to be a scalar, got shape: [2]", one, ops, rows, dense=[_DENSE])
    refused("Expected serialized to be a vector, got shape: []", v1, ops, row, dense=[_DENSE])
    refused("Expected serialized to be a vector, got shape: [1,2]", v1, ops, rows[None], dense=[_DENSE])
    refused("Expected serialized to be a scalar or vector, got shape: [1,2]", v2, ops, rows[None], dense=[_DENSE])
    for call in (v1, v2):
        text = "Expected names have the same shape as serialized: name.shape=[1], serialized.shape=[2]"
        refused(text, call, ops, rows, names=vector(b"n"), dense=[_DENSE])
    for call in (v1, v2, one):
        given = row if call is one else rows
        for shape, default in (
            ([2, None], np.float32([1])),
            (None, np.float32([1])),
            ([None, 2, None], np.float32([1])),
        ):
            text = f"dense_shapes[1] has unknown rank or unknown inner dimensions: {TensorShape(shape)}"
            refused(text, call, ops, given, dense=[_DENSE, (b"y", _F, shape, default)])
        text = (
            "dense_shape[1] is a variable length shape: [?,2], therefore def_value[1] must contain a single element "
            "(the padding element).  But its shape is: [2]"
        )
        refused(text, call, ops, given, dense=[_DENSE, (b"y", _F, [None, 2], np.float32([1, 2]))])
        text = "def_value[1].shape() == [2,1] is not compatible with dense_shapes_[1] == [2]"
        refused(text, call, ops, given, dense=[_DENSE, (b"y", _F, [2], np.float32([[1], [2]]))])
    padded = v2(ops, rows, dense=[(b"y", _F, [None, 2], np.float32(1))])
    assert padded.shape == (2, 0, 2)
    missing = "Name: <unknown>, Feature: y (data type: float) is required but could not be found."
    refused(missing, v2, ops, rows, dense=[(b"y", _F, [2, 0], np.zeros((2, 0), np.float32))])
    text = (
        "Expected len(dense_defaults) == len(dense_keys) == len(dense_shapes) == len(dense_types) but got: 1, 2, 1, 1"
    )
    attrs: dict[str, Any] = {
        "num_sparse": 1, "sparse_types": [_S], "Tdense": [_F], "ragged_value_types": [_S], "ragged_split_types": [_I],
        "dense_shapes": [TensorShape([2])],
    }  # fmt: skip
    inputs = [rows, vector(), vector(b"s"), vector(b"x"), vector(b"s"), np.float32([7, 8])]

    def changed(place: int, value: Any) -> list[Any]:
        return [*inputs[:place], value, *inputs[place + 1 :]]

    assert len(ops.run("ParseExampleV2", inputs, **attrs)) == 6
    refused(text, ops.run, "ParseExampleV2", changed(3, vector(b"x", b"y")), **attrs)
    for place in (2, 4):
        text = "Expected as many keys as types but got: 2 vs. 1"
        refused(text, ops.run, "ParseExampleV2", changed(place, vector(b"s", b"i")), **attrs)
    text = "Expected as many keys as types but got: 1 vs. 1"
    refused(text, ops.run, "ParseExampleV2", inputs, **{**attrs, "ragged_split_types": []})


def test_inputs_are_taken_in_order() -> None:
    a, b, c = (np.array(key, object) for key in (b"a", b"b", b"\xff"))
    inputs = _examples.Inputs((a, b, c, a))
    assert inputs.one() is a
    assert inputs.keys(2) == ["b", "\udcff"]
    assert inputs.take(0) == ()
    assert inputs.take(1) == (a,)
    refused("Expected 5 inputs at least, by the attributes, but got: 4", inputs.one)
    assert _examples.Inputs(()).keys(0) == []
    refused("a key must be a scalar, got shape [1]", _examples.Inputs((a[None],)).keys, 1)
    refused("a key must be a string, got float32", _examples.Inputs((np.array(1, np.float32),)).keys, 1)
    assert _examples.keys_of(np.array([[b"a", b"\xc3\xa9"]], object)) == ["a", "é"]
    assert _examples.outputs_in_order([]) is None
    assert _examples.outputs_in_order([a]) is a
    assert _examples.outputs_in_order([a, b]) == (a, b)


def test_a_default_is_not_handed_out_itself() -> None:
    """What is made in its place may be written over."""
    default, record = np.float32([7, 8]), np.array(example(), object)
    wanted_one = AtOnce([], [DenseFeature("x", _F, (2,), default)], [])
    for found in (wanted_one.outputs(record), by_protobuf(wanted_one, record)):
        assert found is not None
        assert found[0].tolist() == [7, 8]
        assert not np.may_share_memory(found[0], default)
