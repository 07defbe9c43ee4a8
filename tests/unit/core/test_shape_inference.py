"""Shape functions meet shapes, values and attributes of anybody: they give shapes, or say what is wrong.

What they are given fits the op's definition, as it does when a node has been read; whether it makes sense is what they
find out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.random_nodes import RandomNode
from tenfold_core import dtypes, errors, opdefs
from tenfold_core.shape_inference import infer_shapes
from tenfold_core.tensor_shape import TensorShape

CASES, MORE_CASES = 12, 500


def with_shape_functions() -> list[str]:
    return [name for name in opdefs.names() if opdefs.get(name).shape_fn is not None]


def ask(name: str, number: int) -> None:
    op = opdefs.get(name)
    node = RandomNode(op, number)
    values = {
        i: node.array(each, node.few_sizes()) for i, each in enumerate(node.input_types) if node.chance.random() < 0.5
    }
    shapes = [TensorShape(values[i].shape) if i in values else node.shape() for i in range(len(node.input_types))]
    try:
        infer_shapes(op, node.attrs, shapes, values.get, len(node.output_types))
    except (ValueError, errors.InvalidArgumentError):
        pass
    except Exception as error:
        raise AssertionError(f"{name}, case {number}: {shapes}, {values}, {node.attrs}") from error


def test_they_give_shapes_or_say_what_is_wrong() -> None:
    for name in with_shape_functions():
        for number in range(CASES):
            ask(name, number)


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_of_many_cases_too() -> None:
    for name in with_shape_functions():
        for number in range(CASES, MORE_CASES):
            ask(name, number)


@pytest.mark.parametrize(
    ("name", "attrs", "shapes", "values", "text"),
    [
        ("Conv2D", {"strides": [1, 1, 1]}, [[1, 4, 4, 1], [2, 2, 1, 1]], {}, "stride attribute to contain 4 values"),
        ("MaxPool", {"ksize": [1, 2]}, [[1, 4, 4, 1]], {}, "ksize attribute to contain 4 values, but got: 2"),
        ("MaxPoolV2", {}, [[1, 4, 4, 1], [2], [4]], {1: [2, 2], 2: [1, 1, 1, 1]}, "Dimension must be 4 but is 2"),
        ("ResizeArea", {}, [[1, 4, 4, 1], [3]], {1: [2, 2, 2]}, "Dimension must be 2 but is 3"),
        ("ResizeArea", {}, [[1, 4, 4, 1], [2]], {1: [2, -2]}, r"must not be negative, got \[2, -2\]"),
        ("Transpose", {}, [[2, 3], [2]], {1: [0, 2]}, "perm dim 2 is out of range of input rank 2"),
        ("SplitV", {"num_split": 3}, [[6], [2], []], {1: [3, 3], 2: 0}, "equal to num_outputs: 2 vs 3"),
        ("MatrixDiagPartV2", {}, [[2, 2], [0], []], {1: []}, "one or two elements. It has 0 elements"),
        ("Pad", {}, [[2, 3], [2, 2]], {1: [[0, 1], [-1, 0]]}, "Paddings must be non-negative"),
        ("Pad", {}, [None, [2, 2]], {1: [[0, 1], [-1, 0]]}, "Paddings must be non-negative"),
        ("Pad", {}, [[2, 3, 4], [2, 2]], {1: [[0, 1], [1, 0]]}, "must have rank 2"),
        ("MirrorPadGrad", {}, [[4, 3], [2, 2]], {1: [[0, 1], [-1, 0]]}, "Paddings must be non-negative"),
        ("SpaceToBatchND", {}, [[1, 4], [1], [1, 1]], {1: [2], 2: [[0]]}, r"paddings should have shape \[1, 2\]"),
        ("ExtractImagePatches", {"strides": [1, 0, 1, 1], "padding": b"VALID"}, [[1, 4, 4, 1]], {}, "must be > 0"),
        ("ParseExample", {"Nsparse": 1, "sparse_types": []}, [[None]], {}, "as many Nsparse as sparse_types"),
    ],
)
def test_what_is_wrong_is_said(name: str, attrs: Any, shapes: Any, values: Any, text: str) -> None:
    op = opdefs.get(name)
    plain = {"list(int)": [1, 1, 1, 1], "int": 1, "type": dtypes.float32, "string": b"VALID", "bool": False}
    all_attrs = {each.name: each.default if each.has_default else plain.get(each.type, []) for each in op.attrs}
    arrays = {i: np.array(value, np.int64) for i, value in values.items()}
    with pytest.raises(ValueError, match=text):
        infer_shapes(op, all_attrs | attrs, list(map(TensorShape, shapes)), arrays.get, attrs.get("num_split", 1))


def test_a_function_of_each_element_gives_as_many_as_there_are() -> None:
    attrs = {"Targuments": [dtypes.float32] * 2, "output_shapes": [TensorShape([2]), TensorShape(None)]}

    def inferred(*shapes: Any) -> list[TensorShape]:
        return infer_shapes(opdefs.get("MapDefun"), attrs, [TensorShape(each) for each in shapes], {}.get, 2)

    assert [shape.ndims and shape.as_list() for shape in inferred([None, 3], [7])] == [[7, 2], None]
    assert inferred(None, None)[0].as_list() == [None, 2]
    with pytest.raises(ValueError, match="same dimension 0"):
        inferred([3], [4])
    with pytest.raises(ValueError, match="Input 1 has rank of 0"):
        inferred([3], [])


@pytest.mark.parametrize(
    ("shape", "n", "says"),
    [
        ([3, 4], -1, "must be non-negative but is -1"),
        ([3, 4], 4, "must have last dimension > n = 4"),
        ([3, 4], [1], "scalar but has rank 1"),
        ([], 0, "at least rank 1 but is rank 0"),
    ],
)
def test_the_nth_element_is_there(shape: list[int], n: Any, says: str) -> None:
    op, values = opdefs.get("NthElement"), {1: np.array(n, np.int32)}

    with pytest.raises(ValueError, match=says):
        infer_shapes(op, {}, [TensorShape(shape), TensorShape(values[1].shape)], values.get, 1)
    (found,) = infer_shapes(op, {}, [TensorShape([3, 4]), TensorShape([])], {1: np.array(3)}.get, 1)
    assert found.as_list() == [3]
