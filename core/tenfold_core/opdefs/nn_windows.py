"""Op definitions: gradients of grey-scale dilation, and pools whose windows differ in size.

Loaded by nn.py, rows as there: TensorFlow's registry at 2.21 is the source of every name, order and default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core.opdefs.table import family
from tenfold_core.tensor_shape import TensorShape, from_dims

if TYPE_CHECKING:
    from tenfold_core.shape_inference import ShapeContext

    Shapes = list[TensorShape]

op = family("nn")


def _as_image(c: ShapeContext) -> Shapes:
    return [c.input(0).with_rank(4)]


def _as_filter(c: ShapeContext) -> Shapes:
    return [c.input(1).with_rank(3)]


def _of_image_shape(c: ShapeContext) -> Shapes:
    return [c.partial(0).with_rank(4)]


def _fractional(c: ShapeContext) -> Shapes:
    """Every dimension divided by its ratio, and the two sequences of where windows begin. Raises ValueError."""
    ratios = c.attrs["pooling_ratio"]
    if min(ratios) < 1:
        raise ValueError(f"pooling_ratio cannot be smaller than 1, got {list(ratios)}")
    dims = c.input(0).with_rank(4).as_list()
    out = [None if dim is None else int(dim / ratio) for dim, ratio in zip(dims, ratios, strict=True)]
    return [from_dims(out), *(from_dims([None if size is None else size + 1]) for size in out[1:3])]


_DILATION = ("T: {real}", "strides: list(int) >= 4", "rates: list(int) >= 4", "padding: {'SAME', 'VALID'}")
_FRACTIONAL = (
    "pooling_ratio: list(float) >= 4",
    "pseudo_random: bool = false",
    "overlapping: bool = false",
    "deterministic: bool = false",
    "seed: int = 0",
    "seed2: int = 0",
    "T: {float, double, int32, int64}",
)
_POOLED = "output: T, row_pooling_sequence: int64, col_pooling_sequence: int64"
_SEQUENCES = "row_pooling_sequence: int64, col_pooling_sequence: int64"
_OF_POOLED = ("overlapping: bool = false", "T: {float, double, int32, int64}")

op(
    "Dilation2DBackpropFilter",
    "input: T, filter: T, out_backprop: T",
    "filter_backprop: T",
    *_DILATION,
    shape=_as_filter,
)
op("Dilation2DBackpropInput", "input: T, filter: T, out_backprop: T", "in_backprop: T", *_DILATION, shape=_as_image)
op("FractionalAvgPool", "value: T", _POOLED, *_FRACTIONAL, shape=_fractional)
op(
    "FractionalAvgPoolGrad",
    f"orig_input_tensor_shape: int64, out_backprop: T, {_SEQUENCES}",
    "output: T",
    *_OF_POOLED,
    shape=_of_image_shape,
    sized_by="orig_input_tensor_shape",
)
op("FractionalMaxPool", "value: T", _POOLED, *_FRACTIONAL, shape=_fractional)
op(
    "FractionalMaxPoolGrad",
    f"orig_input: T, orig_output: T, out_backprop: T, {_SEQUENCES}",
    "output: T",
    *_OF_POOLED,
    shape=_as_image,
)
