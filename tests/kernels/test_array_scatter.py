"""ScatterNd, TensorScatter*, Inplace* and SparseToDense update by update; repeated places, refusals, kept inputs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from support.kernel_runs import make_node
from support.op_values import ints, refused
from support.room import assert_wants
from tenfold_core import errors
from tenfold_kernels.cpu import _nd_places as nd_places
from tenfold_kernels.resources.state import ResourceManager

F = np.float32
MEETS: dict[str, Any] = {
    "TensorScatterAdd": lambda old, new: old + new,
    "TensorScatterSub": lambda old, new: old - new,
    "TensorScatterMax": max,
    "TensorScatterMin": min,
    "TensorScatterUpdate": lambda old, new: new,
    "ScatterNdNonAliasingAdd": lambda old, new: old + new,
}


def filled(shape: tuple[int, ...], start: int = 1, dtype: Any = np.float32) -> np.ndarray:
    return np.arange(start, start + int(np.prod(shape))).astype(dtype).reshape(shape)


def one_by_one(out: np.ndarray, indices: np.ndarray, updates: np.ndarray, meet: Any) -> list[Any]:
    out = out.copy()
    for at in np.ndindex(indices.shape[:-1]):
        place, new = tuple(indices[at]), updates[at]
        for inner in np.ndindex(new.shape):
            out[place + inner] = meet(out[place + inner], new[inner])
    return out.tolist()  # type: ignore[no-any-return]


PLACES = [
    ((4,), [[1], [3], [1]]), ((4,), [[[0], [0]], [[2], [0]]]), ((3, 2), [[2], [0], [2]]),
    ((3, 2), [[2, 1], [0, 0], [2, 1]]), ((2, 2, 2), [[1, 0]]), ((3,), np.zeros((0, 1))), ((2, 3), [1]),
]  # fmt: skip


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize(("shape", "places"), PLACES)
def test_updates_meet_what_is_there(ops: Any, kind: Any, shape: tuple[int, ...], places: Any) -> None:
    indices, tensor = np.array(places, kind), filled(shape)
    updates = filled((*indices.shape[:-1], *shape[indices.shape[-1] :]), 3) % 5
    for op, meet in MEETS.items():
        found = ops.run(op, [tensor, indices, updates])
        assert found.tolist() == one_by_one(tensor, indices, updates, meet)
    assert tensor.tolist() == filled(shape).tolist()
    found = ops.run("ScatterNd", [indices, updates, np.array(shape, kind)])
    assert found.tolist() == one_by_one(np.zeros(shape), indices, updates, MEETS["TensorScatterAdd"])


def test_texts_are_joined_and_truths_are_ored(ops: Any) -> None:
    words = np.array([b"a", b"b", b"c"], object)
    truths = np.array([True, False, False])
    places = ints([1], [1], [0])
    assert ops.run("ScatterNd", [places, words, ints(3)]).tolist() == [b"c", b"ab", b""]
    assert ops.run("TensorScatterUpdate", [words, places[1:], words[1:]]).tolist() == [b"c", b"b", b"c"]
    assert ops.run("TensorScatterAdd", [words, places[:1], words[:1]]).tolist() == [b"a", b"ba", b"c"]
    assert ops.run("ScatterNd", [places, truths, ints(3)]).tolist() == [False, True, False]
    assert ops.run("ScatterNdNonAliasingAdd", [truths, places, ~truths]).tolist() == [True, True, False]


OPS = [*MEETS, "ScatterNd"]


def inputs_of(op: str, shape: Any, indices: Any, updates: Any) -> list[Any]:
    if op == "ScatterNd":
        return [indices, updates, np.array(shape, np.int32)]
    return [np.ones(shape, F), indices, updates]


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(
    ("shape", "indices", "updates", "text"),
    [
        ((3,), np.int32(1), np.ones(1, F), "Indices shape must have rank at least one. Found: []"),
        ((3,), ints([1]), F(1), "Updates shape must have rank at least one. Found: []"),
        ((), ints([1]), np.ones(1, F), "Output must be at least 1-D, got shape: []"),
        ((0, 2), ints([0]), np.ones((1, 2), F),
         "Indices and updates specified for empty output.  indices shape: [1,1]"),
        ((3, 2), np.zeros((0, 1), np.int32), np.ones((1, 2), F),
         "Indices and updates specified for empty output.  indices shape: [0,1]"),
        ((3, 2), ints([0]), np.ones((0, 2), F),
         "Indices and updates specified for empty output.  indices shape: [1,1]"),
        ((3, 2), ints([0], [1]), np.ones((1, 2), F), "Dimensions [0,1) of indices[shape=[2,1]] must match dimensions "
         "[0,1) of updates[shape=[1,2]]"),
        ((3, 2), ints([[0], [1]]), np.ones((2, 2), F), "Dimensions [0,2) of indices[shape=[1,2,1]] must match "
         "dimensions [0,2) of updates[shape=[2,2]]"),
        ((3, 2), ints([0, 0, 0]), np.ones(1, F), "Dimensions [3,2) of input[shape=[3,2]] must match dimensions [1,1) "
         "of updates[shape=[1]]"),
        ((3, 2), ints([0]), np.ones((1, 3), F), "Dimensions [1,2) of input[shape=[3,2]] must match dimensions [1,2) "
         "of updates[shape=[1,3]]"),
        ((3, 2), ints([0]), np.ones((1, 2, 1), F), "Dimensions [1,2) of input[shape=[3,2]] must match dimensions "
         "[1,3) of updates[shape=[1,2,1]]"),
        ((3, 2), ints([0, 1], [3, 0]), np.ones(2, F), "indices[1] = [3, 0] does not index into shape [3,2]"),
        ((3, 2), ints([[0, 1], [0, 2]]), np.ones((1, 2), F), "indices[0,1] = [0, 2] does not index into shape [3,2]"),
        ((3, 2), ints([-1, 0], [0, 0]), np.ones(2, F), "indices[0] = [-1, 0] does not index into shape [3,2]"),
        ((3, 2), ints([0, 0], [0, -1]), np.ones(2, F), "indices[1] = [0, -1] does not index into shape [3,2]"),
    ],
)  # fmt: skip
def test_updates_that_do_not_fit(ops: Any, op: str, shape: Any, indices: Any, updates: Any, text: str) -> None:
    refused(ops, op, inputs_of(op, shape, indices, updates), text)


def test_a_shape_is_a_vector(ops: Any) -> None:
    refused(ops, "ScatterNd", [ints([0]), np.ones(1, F), ints([3])], "Shape must be a vector")
    refused(ops, "ScatterNd", [ints([0]), np.ones(1, F), np.int32(3)], "Shape must be a vector")
    refused(ops, "ScatterNd", [ints([0]), np.ones(1, F), ints(-3)], "Dimension -3 must be >= 0")


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("shape", [(0, 2), (3, 0)])
def test_nothing_may_be_scattered_into_nothing(ops: Any, op: str, shape: Any) -> None:
    inputs = inputs_of(op, shape, np.zeros((0, 1), np.int32), np.ones((0, *shape[1:]), F))
    assert ops.run(op, inputs).shape == shape


@pytest.mark.parametrize("op", OPS)
def test_bad_places_are_left_out_where_that_is_asked_for(ops: Any, op: str) -> None:
    indices, updates = ints([2, 0], [0, 1], [0, 2], [-1, 0], [0, -1], [1, 1]), filled((6,), 3)
    keep = np.array([False, True, False, False, False, True])
    inputs = inputs_of(op, (2, 2), indices, updates)
    wanted = ops.run(op, inputs_of(op, (2, 2), indices[keep], updates[keep]))
    assert ops.run(op, inputs, bad_indices_policy=b"IGNORE").tolist() == wanted.tolist()
    for policy in (b"", b"ERROR", b"DEFAULT"):
        refused(ops, op, inputs, "indices[0] = [2, 0] does not index", bad_indices_policy=policy)
    text = "bad_indices_policy is 'ignore'; it must be DEFAULT, ERROR or IGNORE."
    refused(ops, op, inputs, text, bad_indices_policy=b"ignore")


def test_a_good_row_has_all_its_numbers_inside() -> None:
    inputs = [np.ones((2, 3), F), ints([0, 0]), np.ones(1, F)]
    node = make_node("TensorScatterAdd", inputs, {"bad_indices_policy": b"IGNORE"}, ResourceManager(), "n")
    good = nd_places.good_rows(node)
    assert good is not None
    rows = ints([[0, 0], [1, 2]], [[2, 0], [0, 3]], [[-1, 2], [1, -1]])
    assert good(rows, (2, 3)).tolist() == [[True, True], [False, False], [False, False]]
    assert good(rows[..., :1], (2, 3)).tolist() == [[True, True], [False, True], [False, True]]


def test_index_tuples_become_an_array_for_each_dimension() -> None:
    found = nd_places.nd_index(ints([[0, 1, 9], [1, 2, 0]]), (2, 3, 10, 4), "it")
    assert [each.tolist() for each in found] == [[[0, 1]], [[1, 2]], [[9, 0]]]
    with pytest.raises(
        errors.InvalidArgumentError, match=r"^indices\[0,1\] = \[1, 3\] does not index into it \[2,3\]$"
    ):
        nd_places.nd_index(ints([[0, 1], [1, 3]], [[2, 0], [0, 0]]), (2, 3), "it")
    out = np.zeros((2, 2))
    place, index = nd_places.update_place(out, np.zeros((2, 3, 0), np.int32))
    assert [each.shape for each in index] == [(2, 3)]
    place[index] = 5
    assert out.tolist() == [[5, 5], [5, 5]]


def test_what_scattering_takes_is_asked_for(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = lambda: ops.run("ScatterNd", [ints([0]), np.ones((1, 7), F), ints(5, 7)])  # noqa: E731
    assert_wants(monkeypatch, 5 * 7 * 4, run)
    sparse = lambda: ops.run("SparseToDense", [ints([0, 1]), ints(5, 7), np.ones(1), np.zeros(())])  # noqa: E731
    assert_wants(monkeypatch, 5 * 7 * 8, sparse)


# -- rows in place -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3,), (3, 2), (3, 0), (2, 2, 2), (1, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
@pytest.mark.parametrize("rows", [[], [1], [0, 1, 1], [-1, 3, 7, -4]])
def test_rows_are_changed_and_their_numbers_go_round(ops: Any, shape: Any, dtype: Any, rows: list[int]) -> None:
    x, values = filled(shape, 1, dtype), filled((len(rows), *shape[1:]), 20, dtype)
    for op, sign in (("InplaceUpdate", 0), ("InplaceAdd", 1), ("InplaceSub", -1)):
        wanted = x.copy()
        for row, value in zip(rows, values, strict=True):
            wanted[row % len(x)] = wanted[row % len(x)] + sign * value if sign else value
        assert ops.run(op, [x, np.array(rows, np.int32), values]).tolist() == wanted.tolist()
    assert x.tolist() == filled(shape, 1, dtype).tolist()


@pytest.mark.parametrize("op", ["InplaceUpdate", "InplaceAdd", "InplaceSub"])
@pytest.mark.parametrize(
    ("x", "rows", "values", "text"),
    [
        ((3, 2), 0, (2,), "i must be a vector, got shape []"),
        ((3, 2), [[0]], (1, 1, 2), "i must be a vector, got shape [1,1]"),
        ((), [], (0,), "v must have the shape of the rows of x that i names: [0]"),
        ((3, 2), [0, 1], (1, 2), "v must have the shape of the rows of x that i names: [1,2]"),
        ((3, 2), [0], (1, 1), "v must have the shape of the rows of x that i names: [1,1]"),
        ((3, 2), [0], (2,), "v must have the shape of the rows of x that i names: [2]"),
    ],
)
def test_rows_that_do_not_fit(ops: Any, op: str, x: Any, rows: Any, values: Any, text: str) -> None:
    refused(ops, op, [np.ones(x, F), np.array(rows, np.int32), np.ones(values, F)], text)


def test_no_rows_stay_none(ops: Any) -> None:
    for op in ("InplaceUpdate", "InplaceAdd", "InplaceSub"):
        assert ops.run(op, [np.ones((0, 2), F), ints(3), np.ones((1, 2), F)]).shape == (0, 2)


# -- SparseToDense -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.bool_, object])
def test_places_get_values_and_others_the_default(ops: Any, kind: Any, dtype: Any) -> None:
    def value(number: int) -> Any:
        return b"%d" % number if dtype is object else number % 2 if dtype is np.bool_ else number

    rest = np.array(value(8), dtype)
    for shape, places in (((4,), [[0], [3]]), ((2, 3), [[0, 0], [0, 2], [1, 1]]), ((2, 2), np.zeros((0, 2)))):
        indices = np.array(places, kind)
        values = np.array([value(n + 1) for n in range(len(indices))], dtype)
        wanted, ones = np.full(shape, rest[()], dtype), np.full(shape, rest[()], dtype)
        for place, each in zip(indices, values, strict=True):
            wanted[tuple(place)], ones[tuple(place)] = each, value(3)
        dims = np.array(shape, kind)
        assert ops.run("SparseToDense", [indices, dims, values, rest]).tolist() == wanted.tolist()
        assert ops.run("SparseToDense", [indices, dims, np.array(value(3), dtype), rest]).tolist() == ones.tolist()
        if len(shape) == 1:
            assert ops.run("SparseToDense", [indices[:, 0], dims, values, rest]).tolist() == wanted.tolist()


def test_a_scalar_is_one_place(ops: Any) -> None:
    assert ops.run("SparseToDense", [2, ints(4), F(5), F(0)]).tolist() == [0, 0, 5, 0]
    assert ops.run("SparseToDense", [2, ints(4), F([5]), F(0)]).tolist() == [0, 0, 5, 0]


def test_places_in_any_order_where_nobody_looks(ops: Any) -> None:
    inputs = [ints([1, 1], [0, 2], [1, 1]), ints(2, 3), F([1, 2, 3]), F(0)]
    assert ops.run("SparseToDense", inputs, validate_indices=False).tolist() == [[0, 0, 2], [0, 3, 0]]


@pytest.mark.parametrize(
    ("indices", "shape", "values", "default", "text"),
    [
        ([[[0]]], [3], [1], 0, "sparse_indices should be a scalar, vector, or matrix, got shape [1,1,1]"),
        ([[0]], 3, [1], 0, "output_shape must be rank 1, got shape []"),
        ([[0]], [[3]], [1], 0, "output_shape must be rank 1, got shape [1,1]"),
        ([[0, 0]], [3], [1], 0, "output_shape has incorrect number of elements: 1 should be: 2"),
        ([[0], [1]], [3, 3], [1, 1], 0, "output_shape has incorrect number of elements: 2 should be: 1"),
        ([[0], [1]], [3], [1], 0, "sparse_values has incorrect shape [1], should be [] or [2]"),
        ([[0]], [3], [[1]], 0, "sparse_values has incorrect shape [1,1], should be [] or [1]"),
        ([[0]], [3], [1], [0], "default_value should be a scalar, got shape [1]"),
        ([[0]], [-3], [1], 0, "Dimension -3 must be >= 0: output_shape[0] of [-3]"),
    ],
)
@pytest.mark.parametrize("validate", [True, False])
def test_what_cannot_be_made_dense(
    ops: Any, indices: Any, shape: Any, values: Any, default: Any, text: str, validate: bool
) -> None:
    inputs = [np.array(each, np.int32) for each in (indices, shape)]
    inputs += [np.array(each, F) for each in (values, default)]
    refused(ops, "SparseToDense", inputs, text, validate_indices=validate)


LATER = ". Many sparse ops require sorted indices.\n    Use `tf.sparse.reorder` to create a correctly ordered copy.\n\n"


@pytest.mark.parametrize(
    ("indices", "text", "unlooked"),
    [
        ([[0, 0], [2, 0]], "indices[1] = [2,0] is out of bounds: need 0 <= index < [2,3]", True),
        ([[0, 3], [1, 0]], "indices[0] = [0,3] is out of bounds: need 0 <= index < [2,3]", True),
        ([[-1, 0], [1, 0]], "indices[0] = [-1,0] is out of bounds: need 0 <= index < [2,3]", True),
        ([[0, 0], [0, -1]], "indices[1] = [0,-1] is out of bounds: need 0 <= index < [2,3]", True),
        ([[0, 1], [0, 1]], "indices[1] = [0,1] is repeated", False),
        ([[0, 0], [0, 2], [0, 1]], f"indices[2] = [0,1] is out of order{LATER}", False),
        ([[1, 0], [0, 2]], f"indices[1] = [0,2] is out of order{LATER}", False),
    ],
)
def test_places_that_are_wrong_are_named(ops: Any, indices: Any, text: str, unlooked: bool) -> None:
    inputs = [np.array(indices, np.int32), ints(2, 3), np.ones(len(indices), F), F(0)]
    with pytest.raises(errors.InvalidArgumentError) as raised:
        ops.run("SparseToDense", inputs)
    assert raised.value.message == text
    if unlooked:
        refused(ops, "SparseToDense", inputs, text, validate_indices=False)
    else:
        ops.run("SparseToDense", inputs, validate_indices=False)


def test_the_first_wrong_place_is_named(ops: Any) -> None:
    for order in itertools.permutations(([0, 5], [1, 0], [7, 0])):
        first = next(i for i, place in enumerate(order) if place != [1, 0])
        inputs = [np.array(order, np.int32), ints(2, 3), np.ones(3, F), F(0)]
        refused(ops, "SparseToDense", inputs, f"indices[{first}] = [", validate_indices=False)
