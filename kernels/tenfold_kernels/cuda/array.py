"""Constants, what hands on, and what looks at shapes only: the CPU's kernels serve, on arrays of a GPU too."""

from __future__ import annotations

from tenfold_core import dtypes, opdefs
from tenfold_kernels.cuda._types import MOVED, ON_HOST
from tenfold_kernels.registry import EVERYTHING, no_kernel, shared_kernel

# A constant is made on the host, and copied once to where it is wanted.
shared_kernel("Const", host=(EVERYTHING,), dtype=MOVED | ON_HOST)
shared_kernel("Shape", "ShapeN", "Size", "Rank", host=("output",), T=MOVED)
shared_kernel("Shape", "ShapeN", "Size", "Rank", host=(EVERYTHING,), T=ON_HOST)
shared_kernel("Identity", "StopGradient", "PreventGradient", "Snapshot", host=(), T=MOVED)
shared_kernel("IdentityN", host=(), T=MOVED)
shared_kernel("Reshape", host=("shape",), T=MOVED)
shared_kernel("ExpandDims", host=("dim",), T=MOVED)
shared_kernel("Squeeze", "EnsureShape", host=(), T=MOVED)
shared_kernel("Identity", "StopGradient", "PreventGradient", "Snapshot", "IdentityN", host=(EVERYTHING,), T=ON_HOST)
# A handle stays with what it is a handle of, on whatever device: what hands it on must be able to stand there too.
shared_kernel("Identity", host=(EVERYTHING,), T=(dtypes.resource, dtypes.variant, dtypes.string))
shared_kernel("Reshape", "ExpandDims", "Squeeze", "EnsureShape", host=(EVERYTHING,), T=ON_HOST)
shared_kernel("InvertPermutation", host=(EVERYTHING,))
shared_kernel("GuaranteeConst", "RefIdentity", "DebugGradientIdentity", host=(), T=MOVED)

no_kernel("EditDistance", "Fingerprint", device="GPU", why="TensorFlow has none either: they work on strings and sets")
no_kernel("TileGrad", device="GPU", why="of graphs of 2015, whose programs had no kernel for a GPU either")
no_kernel("UnravelIndex", device="GPU", why="TensorFlow has none either")
no_kernel("LowerBound", "UpperBound", "DeepCopy", device="GPU", why="no program of the op census uses it")
no_kernel(
    *(op for op in opdefs.names() if op.startswith(("FakeQuant", "QuantizeAndDequantize"))),
    device="GPU",
    why="no program of the op census uses them",
)
