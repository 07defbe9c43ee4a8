"""The float32 functions that fused runs compute, for the loops of single ops: two ways, one result.

Named in intrinsics.py. After an edit of fusion/vector_math.py touch activations.py, for the disk cache of its loops
watches nothing else.
"""

from tenfold_kernels.fusion.vector_math import sigmoid_single, tanh_single

__all__ = ["sigmoid_single", "tanh_single"]
