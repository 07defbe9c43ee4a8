# Written by `make stubs` from the table of tf.quantization in namespaces.py.

from tenfold.ops.array_quantize import quantize_and_dequantize
from tenfold.ops.generated_ops import fake_quant_with_min_max_args
from tenfold.ops.generated_ops import fake_quant_with_min_max_args_gradient
from tenfold.ops.generated_ops import fake_quant_with_min_max_vars
from tenfold.ops.generated_ops import fake_quant_with_min_max_vars_gradient
from tenfold.ops.generated_ops import fake_quant_with_min_max_vars_per_channel
from tenfold.ops.generated_ops import fake_quant_with_min_max_vars_per_channel_gradient

__all__ = [
    "fake_quant_with_min_max_args",
    "fake_quant_with_min_max_args_gradient",
    "fake_quant_with_min_max_vars",
    "fake_quant_with_min_max_vars_gradient",
    "fake_quant_with_min_max_vars_per_channel",
    "fake_quant_with_min_max_vars_per_channel_gradient",
    "quantize_and_dequantize",
]
