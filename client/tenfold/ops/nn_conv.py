"""Convolutions of `tf.nn`, in one to three dimensions, transposed, dilated, depthwise. Exported by ops/nn.py.

`strides` and `dilations` may be one number, one a spatial dimension, or all of them. Dilation goes through
SpaceToBatchND as in TensorFlow 1.15 (nn_ops.py, nn_impl.py), because there is no CPU kernel for the gradient of a
dilated convolution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph.constant_value import known_value
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import tensor_op
from tenfold.ops import array
from tenfold.ops.array import _alias
from tenfold.ops.array_blocks import required_space_to_batch_paddings
from tenfold_core import dtypes
from tenfold_core.tensor_shape import as_shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.graph.argument_types import TensorLike
    from tenfold.graph.tensor import Tensor


def sizes_of(value: Any, data_format: str, name: str, spatial: int = 2) -> list[int]:
    """`ksize`, `strides` or `dilations`, one number a dimension. Raises ValueError for another number of them."""
    items: list[int] = [1] if value is None else [int(value)] if isinstance(value, (int, np.integer)) else list(value)
    if len(items) == spatial + 2:
        return items
    if len(items) not in (1, spatial):
        raise ValueError(f"{name} should be of length 1, {spatial} or {spatial + 2} but was {len(items)}")
    inner = items * spatial if len(items) == 1 else items
    return [1, 1, *inner] if data_format.startswith("NC") else [1, *inner, 1]


def _padding(padding: Any, data_format: str) -> dict[str, Any]:
    """The attributes of `padding`: a name, or a pair for each dimension. Raises ValueError for other lists."""
    if not isinstance(padding, (list, tuple)):
        return {"padding": padding}
    channels = 1 if data_format == "NCHW" else 3
    if len(padding) != 4 or any(len(pair) != 2 for pair in padding):
        raise ValueError(f"explicit padding takes four pairs (before, after), got {padding}")
    if any(padding[0]) or any(padding[channels]):
        raise ValueError(f"explicit padding of the batch and channel dimensions must be zero, got {padding}")
    return {"padding": "EXPLICIT", "explicit_paddings": [int(n) for pair in padding for n in pair]}


# --- two dimensions ---


def conv2d(
    input: TensorLike,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """The two-dimensional convolution; `padding` is "SAME", "VALID" or four pairs of numbers.

    # input (B batch, H, W, C), filter (R, S, C, K) → (B, H', W', K)
    """
    data_format = data_format or "NHWC"
    return tensor_op(
        "Conv2D",
        name,
        input=input,
        filter=_alias("filter", filter, "filters", filters),
        strides=sizes_of(strides, data_format, "strides"),
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        data_format=data_format,
        dilations=sizes_of(dilations, data_format, "dilations"),
        **_padding(padding, data_format),
    )


def conv2d_backprop_input(
    input_sizes: Any,
    filter: Any = None,
    out_backprop: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """The gradient of `conv2d` with respect to its input."""
    return tensor_op(
        "Conv2DBackpropInput",
        name,
        input_sizes=input_sizes,
        filter=_alias("filter", filter, "filters", filters),
        out_backprop=out_backprop,
        strides=sizes_of(strides, data_format, "strides"),
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        data_format=data_format,
        dilations=sizes_of(dilations, data_format, "dilations"),
        **_padding(padding, data_format),
    )


def conv2d_backprop_filter(
    input: TensorLike,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of `conv2d` with respect to its filter."""
    return tensor_op(
        "Conv2DBackpropFilter",
        name,
        input=input,
        filter_sizes=filter_sizes,
        out_backprop=out_backprop,
        strides=sizes_of(strides, data_format, "strides"),
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        data_format=data_format,
        dilations=sizes_of(dilations, data_format, "dilations"),
        **_padding(padding, data_format),
    )


def conv2d_transpose(
    value: TensorLike | None = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    name: str | None = None,
    input: TensorLike | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The transposed convolution (the gradient of `conv2d`) into `output_shape`.

    # value (B, H', W', K), filter (R, S, C, K) → (B, H, W, C)
    """
    value = _alias("input", input, "value", value)
    filter = _alias("filters", filters, "filter", filter)
    data_format = data_format or "NHWC"
    with name_scope(name, "conv2d_transpose", [value, filter, output_shape]) as scope:
        return conv2d_backprop_input(
            output_shape, filter, value, strides, padding, data_format=data_format,
            dilations=1 if dilations is None else dilations, name=scope,
        )  # fmt: skip


# --- one and three dimensions ---


def conv1d(
    value: TensorLike | None = None,
    filters: Any = None,
    stride: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool | None = None,
    data_format: str | None = None,
    name: str | None = None,
    input: TensorLike | None = None,
    dilations: Any = None,
) -> Tensor:
    """The one-dimensional convolution: a two-dimensional one of height 1.

    # value (B, W, C), filters (S, C, K) → (B, W', K)
    """
    value = _alias("input", input, "value", value)
    wide, axis = _widened(data_format)
    with name_scope(name, "conv1d", [value, filters]) as scope:
        rates = [1, *_inner(dilations, wide)] if dilations is not None else 1
        result = conv2d(
            array.expand_dims(value, axis),
            array.expand_dims(filters, 0),
            [1, *_inner(stride, wide)],
            padding,
            use_cudnn_on_gpu=True if use_cudnn_on_gpu is None else use_cudnn_on_gpu,
            data_format=wide,
            dilations=rates,
            name=scope,
        )
        return array.squeeze(result, [axis])


def _widened(data_format: str | None) -> tuple[str, int]:
    """The two-dimensional format of a one-dimensional one, and the position of the new dimension."""
    match data_format or "NWC":
        case "NWC" | "NHWC":
            return "NHWC", 1
        case "NCW" | "NCHW":
            return "NCHW", 2
    raise ValueError(f"data_format must be 'NWC' or 'NCW', got {data_format!r}")


def _inner(value: Any, wide: str) -> list[int]:
    """The spatial size of a one-dimensional stride, dilation or window."""
    if isinstance(value, (list, tuple)):
        if len(value) == 3:
            return [value[1] if wide == "NHWC" else value[2]]
        return list(value)
    return [value]


def conv1d_transpose(
    input: TensorLike,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: str = "SAME",
    data_format: str = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The transposed one-dimensional convolution into `output_shape`."""
    wide, axis = _widened(data_format)
    with name_scope(name, "conv1d_transpose", [input, filters, output_shape]):
        sizes = convert_to_tensor(output_shape)
        place = array.constant([1], sizes.dtype)
        full = array.concat([sizes[:axis], place, sizes[axis:]], 0)
        result = conv2d_backprop_input(
            full, array.expand_dims(filters, 0), array.expand_dims(input, axis), [1, *_inner(strides, wide)], padding,
            data_format=wide, dilations=1 if dilations is None else [1, *_inner(dilations, wide)],
        )  # fmt: skip
        return array.squeeze(result, [axis])


def conv3d(
    input: TensorLike,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """The three-dimensional convolution.

    # input (B, D, H, W, C), filter (P, R, S, C, K) → (B, D', H', W', K)
    """
    return tensor_op(
        "Conv3D",
        name,
        input=input,
        filter=_alias("filter", filter, "filters", filters),
        strides=sizes_of(strides, data_format, "strides", 3),
        padding=padding,
        data_format=data_format,
        dilations=sizes_of(dilations, data_format, "dilations", 3),
    )


def conv3d_transpose(
    value: TensorLike,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: str = "SAME",
    data_format: str = "NDHWC",
    name: str | None = None,
    input: TensorLike | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The transposed three-dimensional convolution into `output_shape`."""
    value = value if input is None else input
    filter = _alias("filters", filters, "filter", filter)
    with name_scope(name, "conv3d_transpose", [value, filter, output_shape]) as scope:
        return tensor_op(
            "Conv3DBackpropInputV2",
            scope,
            input_sizes=output_shape,
            filter=filter,
            out_backprop=value,
            strides=sizes_of(strides, data_format, "strides", 3),
            padding=padding,
            data_format=data_format,
            dilations=sizes_of(dilations, data_format, "dilations", 3),
        )


def conv3d_backprop_filter(
    input: TensorLike,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: str,
    data_format: str = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of `conv3d` with respect to its filter."""
    return tensor_op(
        "Conv3DBackpropFilterV2", name, input=input, filter_sizes=filter_sizes, out_backprop=out_backprop,
        strides=list(strides), padding=padding, data_format=data_format, dilations=list(dilations),
    )  # fmt: skip


def conv_transpose(
    input: TensorLike,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: str = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The transposed convolution of as many dimensions as `output_shape` has without batch and channels."""
    dims = output_shape.shape.as_list()[0] if hasattr(output_shape, "shape") else len(output_shape)
    match dims - 2:
        case 1:
            return conv1d_transpose(input, filters, output_shape, strides, padding, data_format or "NWC", name=name)
        case 2:
            return conv2d_transpose(
                None, filters, output_shape, strides, padding, data_format or "NHWC", name, input=input,
                dilations=dilations,
            )  # fmt: skip
        case 3:
            return conv3d_transpose(
                input, filters, output_shape, strides, padding, data_format or "NDHWC", name, dilations=dilations
            )
    raise ValueError(f"output_shape must be of length 3, 4 or 5 but was {dims}")


# --- any number of dimensions, dilation ---


def with_space_to_batch(
    input: TensorLike,
    dilation_rate: Any,
    padding: str,
    op: Callable[..., Tensor],
    filter_shape: Any = None,
    spatial_dims: Any = None,
    data_format: str | None = None,
) -> Tensor:
    """Runs `op(input, num_spatial_dims, padding)` as if its window were dilated by `dilation_rate`.

    `spatial_dims` are the dimensions to dilate (default: those after the batch, or after the channels of "NC…").
    Raises ValueError for rates below 1, and for SAME padding without `filter_shape`.
    """
    input = convert_to_tensor(input, name="input")
    blocks = convert_to_tensor(dilation_rate, dtypes.int32, name="dilation_rate")
    rates = convert_static(blocks)
    count = len(rates)
    if any(rate < 1 for rate in rates):
        raise ValueError(f"dilation_rate must be positive, got {rates}")
    first = 2 if data_format is not None and data_format.startswith("NC") else 1
    dims = [*range(first, first + count)] if spatial_dims is None else sorted(int(d) for d in spatial_dims)
    if dims != [*range(dims[0], dims[0] + count)]:
        raise ValueError(f"the spatial dimensions must follow each other, got {dims}")
    if all(rate == 1 for rate in rates):
        return op(input, num_spatial_dims=count, padding=padding)
    base = np.zeros((count, 2), np.int32)
    if padding == "SAME":
        if filter_shape is None:
            raise ValueError("filter_shape must be specified for SAME padding")
        extra = (np.asarray(convert_static(filter_shape))[:count] - 1) * np.asarray(rates)
        base = np.stack([extra // 2, extra - extra // 2], axis=1).astype(np.int32)
    elif padding != "VALID":
        raise ValueError(f"Invalid padding method {padding!r}")
    sizes = [input.shape.as_list()[dim] for dim in dims] if input.shape.ndims is not None else [None]
    spatial: Any = sizes
    if None in sizes:
        spatial = tensor_op("GatherV2", None, params=array.shape(input), indices=dims, axis=0)
    paddings, crops = (
        part if (known := known_value(part)) is None else known
        for part in required_space_to_batch_paddings(spatial, blocks, base)
    )
    # SpaceToBatchND takes all dimensions from the first on.
    lead = dims[0] - 1
    if lead:
        none = np.zeros((lead, 2), np.int32)
        paddings, crops = array.concat([none, paddings], 0), array.concat([none, crops], 0)
    shape = np.array([1] * lead + rates, np.int32)
    spread = tensor_op("SpaceToBatchND", None, input=input, block_shape=shape, paddings=paddings)
    result = op(spread, num_spatial_dims=count, padding="VALID")
    return tensor_op("BatchToSpaceND", None, input=result, block_shape=shape, crops=crops)


def convert_static(shape: Any) -> list[int]:
    """A shape as numbers. Raises ValueError if it is not known before the graph runs."""
    if hasattr(shape, "graph"):
        value = known_value(shape)
        if value is None:
            raise ValueError(f"this must be known when the graph is built, got {shape!r}")
        return [int(n) for n in value]
    return [int(n) for n in as_shape(shape).as_list() if n is not None]


def convolution(
    input: TensorLike,
    filter: Any,
    padding: str,
    strides: Any = None,
    dilation_rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The convolution of one, two or three dimensions, as many as the filter has; strides or dilation, not both.

    Raises ValueError for other ranks, and if both strides and dilation are larger than 1.
    """
    filter = _alias("filter", filter, "filters", filters)
    dilation_rate = _alias("dilation_rate", dilation_rate, "dilations", dilations)
    with name_scope(name, "convolution", [input, filter]) as scope:
        input = convert_to_tensor(input, name="input")
        filter = convert_to_tensor(filter, name="filter")
        rank = filter.shape.ndims if filter.shape.ndims is not None else input.shape.ndims
        if rank not in (3, 4, 5):
            raise ValueError(f"num_spatial_dims must be 1, 2 or 3: the filter has shape {filter.shape}")
        count = rank - 2
        strides_, rates = strides_and_rates(count, strides, dilation_rate)
        first = data_format is not None and data_format.startswith("NC")
        channels = input.shape.as_list()[1 if first else -1] if input.shape.ndims is not None else None
        taken = filter.shape.as_list()[-2] if filter.shape.ndims is not None else None
        if channels is not None and taken is not None and channels % taken:
            raise ValueError(
                f"number of input channels does not match corresponding dimension of filter, {channels} vs {taken}"
            )

        def op(x: Tensor, num_spatial_dims: int, padding: str) -> Tensor:
            match count:
                case 1:
                    return conv1d(x, filter, strides_[0], padding, data_format=data_format or "NWC", name=scope)
                case 2:
                    return conv2d(x, filter, strides_, padding, data_format=data_format or "NHWC", name=scope)
            return conv3d(x, filter, strides_, padding, data_format=data_format or "NDHWC", name=scope)

        return with_space_to_batch(input, rates, padding, op, filter.shape, data_format=data_format)


def strides_and_rates(count: int, strides: Any, dilation_rate: Any) -> tuple[list[int], list[int]]:
    """Strides and dilation rates, one a spatial dimension. Raises ValueError unless one of them is all ones."""

    def filled(value: Any, what: str) -> list[int]:
        items = [1] * count if value is None else [value] if isinstance(value, int) else [int(v) for v in value]
        items = items * count if len(items) == 1 else items
        if len(items) != count:
            raise ValueError(f"len({what})={len(items)} but should be {count}")
        if any(item < 1 for item in items):
            raise ValueError(f"all values of {what} must be positive, got {items}")
        return items

    stride, rate = filled(strides, "strides"), filled(dilation_rate, "dilation_rate")
    if any(s > 1 for s in stride) and any(r > 1 for r in rate):
        raise ValueError("strides > 1 not supported in conjunction with dilation_rate > 1")
    return stride, rate


def atrous_conv2d(value: TensorLike, filters: Any, rate: int, padding: str, name: str | None = None) -> Tensor:
    """The two-dimensional convolution with `rate - 1` gaps between the elements of the filter."""
    return convolution(value, filters, padding, dilation_rate=[rate, rate], name=name)


def atrous_conv2d_transpose(
    value: TensorLike, filters: Any, output_shape: Any, rate: int, padding: str, name: str | None = None
) -> Tensor:
    """The transposed `atrous_conv2d` into `output_shape`."""
    with name_scope(name, "atrous_conv2d_transpose", [value, filters, output_shape]):
        return conv2d_backprop_input(output_shape, filters, value, 1, padding, dilations=rate)


# --- depthwise ---


def depthwise_conv2d(
    input: TensorLike,
    filter: Any,
    strides: Any,
    padding: str,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """A separate convolution of each channel, with M filters per channel.

    # input (B, H, W, C), filter (R, S, C, M) → (B, H', W', C * M)
    """
    rate = _alias("dilations", dilations, "rate", rate)
    with name_scope(name, "depthwise", [input, filter]) as scope:
        input = convert_to_tensor(input, name="tensor_in")
        filter = convert_to_tensor(filter, name="filter_in")
        return _depthwise(input, filter, strides, padding, rate, scope, data_format)


def _depthwise(
    input: Any, filter: Tensor, strides: Any, padding: str, rate: Any, name: str, data_format: str | None
) -> Tensor:
    def op(x: Tensor, num_spatial_dims: int, padding: str) -> Tensor:
        return tensor_op(
            "DepthwiseConv2dNative", name, input=x, filter=filter, strides=list(strides), padding=padding,
            data_format=data_format or "NHWC",
        )  # fmt: skip

    rates = [1, 1] if rate is None else [rate, rate] if isinstance(rate, int) else list(rate)
    return with_space_to_batch(input, rates, padding, op, array.shape(filter), data_format=data_format)


def separable_conv2d(
    input: TensorLike,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: str,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """`depthwise_conv2d`, then a convolution of 1 by 1 that mixes the channels.

    Raises ValueError if the filters' channels do not match.
    """
    rate = _alias("dilations", dilations, "rate", rate)
    with name_scope(name, "separable_conv2d", [input, depthwise_filter, pointwise_filter]) as scope:
        depthwise_filter = convert_to_tensor(depthwise_filter, name="depthwise_filter")
        pointwise_filter = convert_to_tensor(pointwise_filter, name="pointwise_filter")
        shape = pointwise_filter.shape.with_rank(4)
        shape.dims[0].assert_is_compatible_with(1)
        shape.dims[1].assert_is_compatible_with(1)
        input = convert_to_tensor(input, name="tensor_in")
        deep = _depthwise(input, depthwise_filter, strides, padding, rate, "depthwise", data_format)
        return conv2d(deep, pointwise_filter, 1, "VALID", data_format=data_format or "NHWC", name=scope)
