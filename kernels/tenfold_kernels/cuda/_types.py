"""Sets of element types, as GPUs' kernels are registered for them.

int32 is TensorFlow's type of sizes and counters: as there, an op on int32 placed on a GPU computes in the host's
memory, where shapes are needed. An int32 that a kernel reads beside its data (labels, indices) is on the GPU.
"""

from __future__ import annotations

from tenfold_core import dtypes
from tenfold_kernels.typesets import COMPLEX

#: What kernels of floats compute with.
FLOATS = frozenset((dtypes.float32, dtypes.float64))
#: What most of them take too, read as float32: see narrow_text.py.
NARROW = frozenset((dtypes.float16, dtypes.bfloat16))
ANY_FLOATS = FLOATS | NARROW
#: What is only moved, or compared: all of a fixed size but int32.
MOVED = frozenset(
    (
        *FLOATS,
        *NARROW,
        dtypes.bool_,
        dtypes.int8,
        dtypes.int16,
        dtypes.int64,
        dtypes.uint8,
        dtypes.uint16,
        *COMPLEX,
    )
)
#: What kernels of numbers have arithmetic for.
ANY_NUMBERS = ANY_FLOATS | frozenset((dtypes.int8, dtypes.int16, dtypes.int64, dtypes.uint8, dtypes.uint16))
#: What stays in the host's memory.
ON_HOST = frozenset((dtypes.int32,))
INDICES = frozenset((dtypes.int32, dtypes.int64))
