"""`tf.quantization.quantize_and_dequantize`: values rounded to what a few bits hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.op_builder import tensor_op

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def quantize_and_dequantize(
    input: Any,
    input_min: Any,
    input_max: Any,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> Tensor:
    """`input` rounded to `num_bits` within the range, its own unless `range_given`; with `axis`, one for each."""
    return tensor_op(
        "QuantizeAndDequantizeV2", name, input=input, input_min=input_min, input_max=input_max,
        signed_input=signed_input, num_bits=num_bits, range_given=range_given, round_mode=round_mode,
        narrow_range=narrow_range, axis=-1 if axis is None else axis,
    )  # fmt: skip
