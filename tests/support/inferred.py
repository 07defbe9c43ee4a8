"""What is known of an op's outputs before it runs, for tables of cases: shapes as lists, None for an unknown rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold_core import opdefs
from tenfold_core.shape_inference import infer_shapes
from tenfold_core.tensor_shape import TensorShape


def shapes_of(op: str, inputs: list[Any], values: dict[int, Any], attrs: dict[str, Any]) -> list[Any]:
    """`values` are the inputs that are constants, by number. Raises ValueError as the op's shape function does."""
    row = opdefs.get(op)
    every = {each.name: each.default for each in row.attrs if each.has_default} | attrs
    arrays = {i: np.array(value, np.int32) for i, value in values.items()}
    found = infer_shapes(row, every, [TensorShape(each) for each in inputs], arrays.get, len(row.outputs))
    return [None if shape.ndims is None else shape.as_list() for shape in found]
