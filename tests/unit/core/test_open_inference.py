"""Open Inference Protocol tensors: what is written is read back, and what is wrong is said."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tenfold_core import errors
from tenfold_core import open_inference as oip

NUMERIC = [dtype for dtype in oip.DATATYPES.values() if dtype.kind != "O"]
ARRAYS = st.sampled_from(NUMERIC).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)
TEXTS = hnp.arrays(
    np.dtype(object), hnp.array_shapes(min_dims=0, max_dims=2, max_side=3), elements=st.binary(max_size=8)
)


def assert_same(left: np.ndarray, right: np.ndarray) -> None:
    assert (left.dtype, left.shape) == (right.dtype, right.shape)
    np.testing.assert_array_equal(left, right)


@given(st.one_of(ARRAYS, TEXTS))
def test_json_round_trip(array: np.ndarray) -> None:
    text = json.dumps(oip.to_json("x", array), allow_nan=False)

    name, back = oip.from_json(oip.parse_json(text.encode()))

    assert name == "x"
    assert_same(back, array)


@given(st.lists(st.one_of(ARRAYS, TEXTS), max_size=3))
def test_binary_round_trip(arrays: list[np.ndarray]) -> None:
    heads, parts = oip.write_tensors((f"t{i}", array, i % 2 == 0) for i, array in enumerate(arrays))

    back = oip.read_tensors(json.loads(json.dumps(heads)), memoryview(b"".join(parts)), "inputs")

    assert list(back) == [f"t{i}" for i in range(len(arrays))]
    for left, right in zip(back.values(), arrays, strict=True):
        assert_same(left, right)


def test_nested_data_and_bare_scalars() -> None:
    nested = {"name": "x", "datatype": "INT32", "shape": [2, 2], "data": [[1, 2], [3, 4]]}
    scalar = {"name": "x", "datatype": "FP32", "shape": [], "data": 1.5}

    assert oip.from_json(nested)[1].tolist() == [[1, 2], [3, 4]]
    assert oip.from_json(scalar)[1] == np.float32(1.5)


def test_what_stands_for_nan_and_infinity() -> None:
    tensor = oip.to_json("x", np.array([np.nan, np.inf, -np.inf, 1], np.float32))

    assert tensor["data"] == ["NaN", "Infinity", "-Infinity", 1.0]


def tensor(**changes: Any) -> dict[str, Any]:
    return {"name": "x", "datatype": "INT8", "shape": [2], "data": [1, 2]} | changes


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([], "a tensor is an object"),
        (tensor(name=""), "no 'name'"),
        (tensor(datatype="FLOAT"), "must be one of BOOL"),
        (tensor(shape="2"), "needs a 'shape'"),
        (tensor(shape=[-1]), "at least 0"),
        (tensor(shape=[True]), "whole numbers"),
        (tensor(shape=[1 << 20, 1 << 20]), "too large"),
        (tensor(shape=[1] * 40), "at most 32"),
        (tensor(data=[1]), "has 1 values"),
        (tensor(data=[1, 300]), "300 does not fit INT8"),
        (tensor(data=[1, 2.5]), "takes whole numbers; its data holds float"),
        (tensor(data=[1, None]), "holds NoneType"),
        (tensor(data=[True, 1]), "holds bool"),
        (tensor(shape=[2, 1], data=[[1, 2]]), "does not nest"),
        (tensor(datatype="FP32", data=[1, "1.5"]), "'1.5' is no number"),
        (tensor(datatype="FP16", data=[1, 1e30]), "does not fit FP16"),
        (tensor(datatype="FP64", data=[1, 10**400]), "too large for FP64"),
        (tensor(datatype="BOOL", data=[1, 0]), "takes true and false"),
        (tensor(datatype="BYTES", data=[1, "a"]), "takes texts"),
        (tensor(datatype="BYTES", data=["%", "a"], parameters={"encoding": "base64"}), "not"),
        (tensor(datatype="BYTES", data=["\ud800", "a"]), "surrogate"),
        (tensor(parameters=3), "must be an object"),
    ],
)
def test_wrong_tensors_are_named(wrong: Any, said: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=said):
        oip.read_tensors([wrong], memoryview(b""), "inputs")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"{", "not JSON"),
        (b"[NaN]", "NaN is not part of JSON"),
        (b"\xff", "not UTF-8"),
        (b"[" * 100_000, "nested too deeply|not JSON"),
    ],
)
def test_what_is_no_json(text: bytes, said: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=said):
        oip.parse_json(text)


@pytest.mark.parametrize("size", [-1, 9, "4", 2**70])
def test_binary_sizes_are_checked(size: Any) -> None:
    head = {"name": "x", "datatype": "INT8", "shape": [4], "parameters": {"binary_data_size": size}}

    with pytest.raises(errors.InvalidArgumentError, match="bytes of binary data"):
        oip.read_tensors([head], memoryview(b"1234"), "inputs")


def test_bytes_left_over_are_refused() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="belong to no tensor"):
        oip.read_tensors([], memoryview(b"1"), "inputs")


@given(st.binary(max_size=40))
def test_hostile_binary_strings(raw: bytes) -> None:
    head = {"name": "x", "datatype": "BYTES", "shape": [2], "parameters": {"binary_data_size": len(raw)}}

    with contextlib.suppress(errors.InvalidArgumentError):
        oip.read_tensors([head], memoryview(raw), "inputs")


def test_rows_of_other_lengths_do_not_nest_even_if_their_sum_is_right() -> None:
    tensor = {"name": "x", "datatype": "FP32", "shape": [2, 2], "data": [[1.0], [2.0, 3.0, 4.0]]}

    with pytest.raises(errors.InvalidArgumentError, match=r"'x': its data does not nest as its shape \[2, 2\] does"):
        oip.from_json(tensor)
