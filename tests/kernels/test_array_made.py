"""Constants, placeholders, pass-through ops and what fills arrays: copies, variants, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.op_values import ints, refused
from support.room import assert_wants
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_core.tensor_util import tensor_to_proto
from tenfold_kernels.arrays import is_frozen
from tenfold_kernels.resources.tensor_lists import TensorList

F = np.float32


def test_a_constant_is_a_copy_of_its_value(ops: Any) -> None:
    value = F([1, 2])
    compute, _ = ops.build("Const", [], {"value": value, "dtype": dtypes.float32})
    value[:] = 9
    assert compute().tolist() == [1, 2]
    assert value.flags.writeable


@pytest.mark.parametrize("value", [F([1, 2]), np.array([b"a"], object), np.int64(3)])
def test_a_constant_may_come_as_on_the_wire(ops: Any, value: Any) -> None:
    array = np.asarray(value)
    compute, _ = ops.build("Const", [], {"value": tensor_to_proto(array), "dtype": dtypes.as_dtype(array.dtype)})
    assert compute().tolist() == array.tolist()
    assert is_frozen(compute())
    assert compute() is compute()


def test_a_constant_has_the_type_that_it_says(ops: Any) -> None:
    proto = tensor_to_proto(F([1]))
    text = "Type mismatch between value (float) and dtype (int32)"
    refused(ops, "Const", [], text, value=proto, dtype=dtypes.int32)
    proto.dtype = 9999
    text = "Type mismatch between value (unknown type number 9999) and dtype (int32)"
    refused(ops, "Const", [], text, value=proto, dtype=dtypes.int32)


@pytest.mark.parametrize("op", ["Placeholder", "PlaceholderV2"])
@pytest.mark.parametrize(
    ("shape", "wanted"), [(None, ""), ([], ""), ([2], " and shape [2]"), ([None, 3], " and shape [?,3]")]
)
def test_a_placeholder_says_what_it_wants(ops: Any, op: str, shape: Any, wanted: str) -> None:
    with pytest.raises(errors.InvalidArgumentError) as raised:
        ops.run(op, [], shape=TensorShape(shape), dtype=dtypes.float64, name="p")
    assert raised.value.message == f"You must feed a value for placeholder tensor 'p' with dtype double{wanted}"


@pytest.mark.parametrize(
    "op", ["Identity", "StopGradient", "PreventGradient", "Snapshot", "DebugGradientIdentity", "GuaranteeConst"]
)
def test_an_input_goes_on_as_it_is(ops: Any, op: str) -> None:
    for x in (F([1, 2]), np.array([b"a"], object), np.array(True)):
        compute, _ = ops.build(op, [x], {})
        assert compute(x) is x


def test_a_default_goes_on_and_a_copy_does_not(ops: Any) -> None:
    x = F([1, 2])
    compute, _ = ops.build("PlaceholderWithDefault", [x], {"shape": TensorShape([2])})
    assert compute(x) is x
    copy = ops.run("DeepCopy", [x])
    assert copy.tolist() == [1, 2]
    assert not np.shares_memory(copy, x)


def test_a_reference_goes_on_uninitialized(ops: Any) -> None:
    variable = ops.variable(F([1]))
    assert ops.run("RefIdentity", [variable]) is variable


def test_one_input_is_no_tuple(ops: Any) -> None:
    x, y = F([1]), ints(2)
    one, _ = ops.build("IdentityN", [x], {})
    assert one(x) is x
    two, _ = ops.build("IdentityN", [x, y], {})
    first, second = two(x, y)
    assert first is x
    assert second is y


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("dims", [[], [3], [2, 0], [2, 3]])
def test_an_array_is_filled(ops: Any, kind: Any, dims: Any) -> None:
    for value in (F(7), F([7]), np.array(True), np.array(b"x", object), np.complex64(1j)):
        array = np.asarray(value)
        found = ops.run("Fill", [np.array(dims, kind), array])
        assert (found.shape, found.tolist()) == (tuple(dims), np.full(dims, array.item(), array.dtype).tolist())
    assert ops.run("Fill", [np.array(3, kind), F(7)]).tolist() == [7, 7, 7]


@pytest.mark.parametrize(
    ("dims", "value", "text"),
    [
        ([2], [1, 2], "value must represent a scalar, got shape [2]"),
        ([2], [], "value must represent a scalar, got shape [0]"),
        ([2], [[1]], "value must represent a scalar, got shape [1,1]"),
        ([[2]], 1, "dims must represent a vector, got shape [1,1]"),
        ([2, -1], 1, "Dimension -1 must be >= 0: dims[1] of [2,-1]"),
    ],
)
def test_what_cannot_be_filled(ops: Any, dims: Any, value: Any, text: str) -> None:
    refused(ops, "Fill", [np.array(dims, np.int32), np.array(value, F)], text)


@pytest.mark.parametrize(
    ("dtype", "nothing"), [(dtypes.float32, 0), (dtypes.string, b""), (dtypes.bool_, False), (dtypes.int64, 0)]
)
def test_empty_arrays_hold_nothing_of_others(ops: Any, dtype: Any, nothing: Any) -> None:
    found = ops.run("Empty", [ints(2, 3)], dtype=dtype)
    assert found.tolist() == [[nothing] * 3] * 2
    like = ops.run("ZerosLike", [found])
    assert like.tolist() == [[nothing] * 3] * 2
    if dtype is not dtypes.string:
        assert ops.run("OnesLike", [found]).tolist() == [[nothing + 1] * 3] * 2


def test_what_is_filled_is_asked_for(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_wants(monkeypatch, 3 * 5 * 8, lambda: ops.run("Fill", [ints(3, 5), np.ones((), np.int64)]))
    assert_wants(monkeypatch, 3 * 5 * 4, lambda: ops.run("Empty", [ints(3, 5)], dtype=dtypes.float32))
    assert_wants(monkeypatch, 3 * 5 * 64, lambda: ops.run("Empty", [ints(3, 5)], dtype=dtypes.string))


def test_zeros_like_a_list_are_a_list_of_zeros(ops: Any) -> None:
    made = TensorList(dtypes.float32, TensorShape([2]), [F([1, 2])]).as_array()
    found = ops.run("ZerosLike", [made], T=dtypes.variant)
    assert [element.tolist() for element in found[()].elements] == [[0, 0]]
