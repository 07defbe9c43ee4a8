"""Pooling of `tf.nn`: maximum or mean of windows, and morphology. Exported by ops/nn.py.

`ksize` and `strides` may be one number, one a spatial dimension, or all of them. Node names follow TensorFlow 1.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.ops import array
from tenfold.ops.array import _alias
from tenfold.ops.elementwise import negative
from tenfold.ops.nn_conv import _inner, _widened, sizes_of, strides_and_rates, with_space_to_batch
from tenfold_core.dtypes import as_dtype

if TYPE_CHECKING:
    from tenfold.graph.argument_types import TensorLike
    from tenfold.graph.tensor import Tensor


def _pool(
    op_type: str, argument: str, value: Any, ksize: Any, strides: Any, padding: Any, data_format: str, name: str | None
) -> Tensor:
    spatial = 3 if op_type.endswith("3D") else 2
    with name_scope(name, op_type, [value]) as scope:
        return tensor_op(
            op_type,
            scope,
            **{argument: convert_to_tensor(value, name=argument)},
            ksize=sizes_of(ksize, data_format, "ksize", spatial),
            strides=sizes_of(strides, data_format, "strides", spatial),
            padding=padding,
            data_format=data_format,
        )


def max_pool(
    value: TensorLike | None = None,
    ksize: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NHWC",
    name: str | None = None,
    input: TensorLike | None = None,
) -> Tensor:
    """The largest element of each window."""
    return _pool("MaxPool", "input", _alias("input", input, "value", value), ksize, strides, padding, data_format, name)


def avg_pool(
    value: TensorLike | None = None,
    ksize: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NHWC",
    name: str | None = None,
    input: TensorLike | None = None,
) -> Tensor:
    """The mean of each window."""
    return _pool("AvgPool", "value", _alias("input", input, "value", value), ksize, strides, padding, data_format, name)


def max_pool2d(
    input: TensorLike, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """`max_pool` with `input` first."""
    return max_pool(input, ksize, strides, padding, data_format, name or "max_pool2d")


avg_pool2d = avg_pool


def max_pool3d(
    input: TensorLike, ksize: Any, strides: Any, padding: Any, data_format: str = "NDHWC", name: str | None = None
) -> Tensor:
    """The largest element of each window of three dimensions."""
    return _pool("MaxPool3D", "input", input, ksize, strides, padding, data_format, name)


def avg_pool3d(
    input: TensorLike, ksize: Any, strides: Any, padding: Any, data_format: str = "NDHWC", name: str | None = None
) -> Tensor:
    """The mean of each window of three dimensions."""
    return _pool("AvgPool3D", "input", input, ksize, strides, padding, data_format, name)


def _pool1d(
    kind: str, input: Any, ksize: Any, strides: Any, padding: Any, data_format: str, name: str | None
) -> Tensor:
    wide, axis = _widened(data_format)
    with name_scope(name, f"{kind}_pool1d", [input]) as scope:
        function = max_pool if kind == "max" else avg_pool
        flat = array.expand_dims(input, axis)
        windows, steps = [1, *_inner(ksize, wide)], [1, *_inner(strides, wide)]
        return array.squeeze(function(flat, windows, steps, padding, wide), [axis], name=scope)


def max_pool1d(
    input: TensorLike, ksize: Any, strides: Any, padding: Any, data_format: str = "NWC", name: str | None = None
) -> Tensor:
    """The largest element of each window of one dimension."""
    return _pool1d("max", input, ksize, strides, padding, data_format, name)


def avg_pool1d(
    input: TensorLike, ksize: Any, strides: Any, padding: Any, data_format: str = "NWC", name: str | None = None
) -> Tensor:
    """The mean of each window of one dimension."""
    return _pool1d("avg", input, ksize, strides, padding, data_format, name)


def _pool_any(
    kind: str, input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None, name: str | None
) -> Tensor:
    input = convert_to_tensor(input)
    count = (len(data_format) if data_format is not None else input.shape.ndims or 0) - 2
    functions = {
        "max": {1: max_pool1d, 2: max_pool, 3: max_pool3d},
        "avg": {1: avg_pool1d, 2: avg_pool, 3: avg_pool3d},
    }[kind]
    if count not in functions:
        raise ValueError(f"Input tensor must be of rank 3, 4 or 5 but was {count + 2}.")
    function: Any = functions[count]
    formats = {1: "NWC", 2: "NHWC", 3: "NDHWC"}
    pooled: Tensor = function(input, ksize, strides, padding, data_format or formats[count], name)
    return pooled


def max_pool_v2(
    input: TensorLike, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """The largest element of each window, of as many dimensions as the input has."""
    return _pool_any("max", input, ksize, strides, padding, data_format, name)


def avg_pool_v2(
    input: TensorLike, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """The mean of each window, of as many dimensions as the input has."""
    return _pool_any("avg", input, ksize, strides, padding, data_format, name)


def max_pool_with_argmax(
    input: TensorLike,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str = "NHWC",
    Targmax: Any = None,
    name: str | None = None,
    output_dtype: Any = None,
    include_batch_in_index: bool = False,
) -> Any:
    """`(output, argmax)`: the largest element of each window, and its place in the flattened input."""
    if data_format != "NHWC":
        raise ValueError("Data formats other than 'NHWC' are not yet supported")
    kind = _alias("output_dtype", output_dtype, "Targmax", Targmax)
    return apply_op(
        "MaxPoolWithArgmax", name, input=input, ksize=list(ksize), strides=list(strides), padding=padding,
        Targmax=as_dtype("int64" if kind is None else kind), include_batch_in_index=include_batch_in_index,
    )  # fmt: skip


def pool(
    input: TensorLike,
    window_shape: Any,
    pooling_type: str,
    padding: str,
    dilation_rate: Any = None,
    strides: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Pools windows, possibly dilated, of one to three dimensions; `pooling_type` is "MAX" or "AVG".

    Raises ValueError for another type, and if both strides and dilation are larger than 1.
    """
    rate = _alias("dilation_rate", dilation_rate, "dilations", dilations)
    kind = {"MAX": "max", "AVG": "avg"}.get(pooling_type)
    if kind is None:
        raise ValueError(f"pooling_type must be 'MAX' or 'AVG', got {pooling_type!r}")
    with name_scope(name, f"{kind}_pool", [input]) as scope:
        input = convert_to_tensor(input, name="input")
        windows = [window_shape] if isinstance(window_shape, int) else list(window_shape)
        if input.shape.ndims is not None and len(windows) != input.shape.ndims - 2:
            windows = windows * (input.shape.ndims - 2) if len(windows) == 1 else windows
        steps, rates = strides_and_rates(len(windows), strides, rate)
        if padding == "SAME" and kind == "avg" and any(r > 1 for r in rates):
            raise ValueError("pooling with 'SAME' padding is not implemented for dilated average pooling")

        def op(x: Tensor, num_spatial_dims: int, padding: str) -> Tensor:
            layout = data_format or ("NWC", "NHWC", "NDHWC")[min(len(windows), 3) - 1]  # of any rank, if it is unknown
            return _pool_any(str(kind), x, windows, steps, padding, layout, scope)

        return with_space_to_batch(input, rates, padding, op, windows, data_format=data_format)


def dilation2d(
    input: TensorLike,
    filter: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: str | None = None,
    name: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Grey-scale dilation: the largest sum of an element and the filter's, over each window."""
    return tensor_op(
        "Dilation2D", name, input=input, filter=_alias("filter", filter, "filters", filters), strides=strides,
        rates=_alias("rates", rates, "dilations", dilations), padding=padding,
    )  # fmt: skip


def erosion2d(
    value: TensorLike, kernel: Any, strides: Any, rates: Any, padding: str, name: str | None = None
) -> Tensor:
    """Grey-scale erosion: the smallest difference of an element and the kernel's, over each window."""
    with name_scope(name, "erosion2d", [value, kernel]) as scope:
        flipped = tensor_op("ReverseV2", None, tensor=kernel, axis=[0, 1])
        dilated = tensor_op(
            "Dilation2D", None, input=negative(value), filter=flipped, strides=strides, rates=rates, padding=padding
        )
        return negative(dilated, name=scope)
