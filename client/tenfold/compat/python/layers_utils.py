"""`tensorflow.python.layers.utils`: arguments of layers made plain, and lengths after a convolution."""

from __future__ import annotations

from typing import Any

from tenfold.layers.convolutional import format_of as normalize_data_format
from tenfold.layers.convolutional import op_format as convert_data_format
from tenfold.layers.convolutional import padding_of as normalize_padding
from tenfold.layers.convolutional import tuple_of as normalize_tuple
from tenfold.ops.control_flow_cond import smart_cond, smart_constant_value

__all__ = [
    "constant_value",
    "conv_input_length",
    "conv_output_length",
    "convert_data_format",
    "deconv_output_length",
    "normalize_data_format",
    "normalize_padding",
    "normalize_tuple",
    "smart_cond",
]

_PADDINGS = ("same", "valid", "full")


def conv_output_length(
    input_length: int | None, filter_size: int, padding: str, stride: int, dilation: int = 1
) -> int | None:
    """The length after a convolution; None for an unknown one. Raises ValueError for another padding."""
    if input_length is None:
        return None
    _check(padding)
    window = filter_size + (filter_size - 1) * (dilation - 1)
    length = {"same": input_length, "valid": input_length - window + 1, "full": input_length + window - 1}[padding]
    return (length + stride - 1) // stride


def conv_input_length(output_length: int | None, filter_size: int, padding: str, stride: int) -> int | None:
    """The least length that a convolution takes to that one."""
    if output_length is None:
        return None
    _check(padding)
    pad = {"same": filter_size // 2, "valid": 0, "full": filter_size - 1}[padding]
    return (output_length - 1) * stride - 2 * pad + filter_size


def deconv_output_length(input_length: int | None, filter_size: int, padding: str, stride: int) -> int | None:
    """The length after a transposed convolution."""
    if input_length is None:
        return None
    _check(padding)
    length = input_length * stride
    if padding == "valid":
        return length + max(filter_size - stride, 0)
    return length - (stride + filter_size - 2) if padding == "full" else length


def constant_value(pred: Any) -> bool | None:
    """The value of a condition that is known now, else None. Raises TypeError for something that is not a condition."""
    if isinstance(pred, int):
        pred = bool(pred)
    return smart_constant_value(pred)


def _check(padding: str) -> None:
    if padding not in _PADDINGS:
        raise ValueError(f"padding is one of {', '.join(_PADDINGS)}, not {padding!r}")
