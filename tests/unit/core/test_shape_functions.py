"""Shape functions meet shapes, values and attributes of anybody: they give shapes, or say what is wrong.

What they are given fits the op's definition, as it does when a node has been read; whether it makes sense is what they
find out. Each case is made from the op's name and a number, so that it can be made again.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors, opdefs
from tenfold_core.shape_inference import infer_shapes
from tenfold_core.tensor_shape import TensorShape
from tenfold_core.tensor_util import tensor_to_proto

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold_core.op_def import ArgDef, AttrDef, OpDef

CASES, MORE_CASES = 12, 500
SIZES = (0, 1, 2, 3, 5)
NUMBERS = (-2, -1, 0, 1, 2, 3, 4, 5, 7)
TEXTS = (b"", b"a", b"NHWC", b"NCHW", b"SAME", b"VALID", b"ab,bc->ac", b"...")
TYPES = (dtypes.float32, dtypes.int32, dtypes.int64, dtypes.string, dtypes.as_dtype("bool"))


def with_shape_functions() -> list[str]:
    return [name for name in opdefs.names() if opdefs.get(name).shape_fn is not None]


class Case:
    """A node of an op with random attributes, shapes of inputs, and values of some of them."""

    def __init__(self, op: OpDef, number: int) -> None:
        self._chance = random.Random(f"{op.name} {number}")
        self.attrs = {attr.name: self._attribute(attr) for attr in op.attrs}
        types = self._types(op.inputs)
        self.output_count = len(self._types(op.outputs))
        self.values = {i: self._value(dtype) for i, dtype in enumerate(types) if self._chance.random() < 0.5}
        given = {i: TensorShape(value.shape) for i, value in self.values.items()}
        self.shapes = [given[i] if i in given else self._shape() for i in range(len(types))]

    def _shape(self) -> TensorShape:
        if self._chance.random() < 0.1:
            return TensorShape(None)
        return TensorShape([self._chance.choice((None, *SIZES)) for _ in range(self._chance.randrange(6))])

    def _attribute(self, attr: AttrDef) -> Any:
        if attr.has_default and self._chance.random() < 0.3:
            return attr.default
        if not attr.type.startswith("list("):
            return self._one(attr, attr.type)
        return [self._one(attr, attr.type[5:-1]) for _ in range(max(self._chance.randrange(7), attr.minimum or 0))]

    def _one(self, attr: AttrDef, kind: str) -> Any:
        chance = self._chance
        if attr.allowed:
            return chance.choice(attr.allowed)
        made = {
            "int": lambda: max(chance.choice(NUMBERS), attr.minimum if attr.type == "int" and attr.minimum else -9),
            "bool": lambda: chance.random() < 0.5,
            "float": lambda: chance.choice((-1.0, 0.0, 0.5, 2.0)),
            "string": lambda: chance.choice(TEXTS),
            "type": lambda: chance.choice(TYPES),
            "shape": self._shape,
            "tensor": lambda: tensor_to_proto(np.zeros((2, 2), np.float32)),
            "func": lambda: None,
        }
        return made[kind]()

    def _types(self, args: Iterable[ArgDef]) -> list[Any]:
        found: list[Any] = []
        for arg in args:
            if arg.type_list_attr:
                found += self.attrs[arg.type_list_attr] or []
            else:
                count = max(self.attrs[arg.number_attr], 0) if arg.number_attr else 1
                found += [arg.type or self.attrs.get(arg.type_attr)] * count
        return found

    def _value(self, dtype: Any) -> np.ndarray:
        shape = tuple(self._chance.choice(SIZES) for _ in range(self._chance.choice((0, 1, 1, 1, 2, 2, 3))))
        if dtype is dtypes.string:
            return np.full(shape, b"a", object)
        numbers = np.array([self._chance.choice(NUMBERS) for _ in range(math.prod(shape))]).reshape(shape)
        return numbers.astype(np.bool_ if dtype is TYPES[-1] else np.int64)


def ask(name: str, number: int) -> None:
    op = opdefs.get(name)
    case = Case(op, number)
    try:
        infer_shapes(op, case.attrs, case.shapes, case.values.get, case.output_count)
    except (ValueError, errors.InvalidArgumentError):
        pass
    except Exception as error:
        raise AssertionError(f"{name}, case {number}: {case.shapes}, {case.values}, {case.attrs}") from error


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
