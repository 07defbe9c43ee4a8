# Written by `make stubs` from the table of tf.bitwise in namespaces.py.

from tenfold.ops.generated_ops import bitwise_and
from tenfold.ops.generated_ops import bitwise_or
from tenfold.ops.generated_ops import bitwise_xor
from tenfold.ops.generated_ops import invert
from tenfold.ops.generated_ops import left_shift
from tenfold.ops.generated_ops import right_shift

__all__ = [
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "invert",
    "left_shift",
    "right_shift",
]
