"""`tf.sparse`: the functions of ops/sparse.py and ops/sparse_math.py under short names.

Names are those of TF 1.15.
"""

from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.ops.accumulators import SparseConditionalAccumulator
from tenfold.ops.sparse import from_dense
from tenfold.ops.sparse import sparse_concat as concat
from tenfold.ops.sparse import sparse_expand_dims as expand_dims
from tenfold.ops.sparse import sparse_eye as eye
from tenfold.ops.sparse import sparse_fill_empty_rows as fill_empty_rows
from tenfold.ops.sparse import sparse_mask as mask
from tenfold.ops.sparse import sparse_merge as merge
from tenfold.ops.sparse import sparse_placeholder as placeholder
from tenfold.ops.sparse import sparse_reorder as reorder
from tenfold.ops.sparse import sparse_reset_shape as reset_shape
from tenfold.ops.sparse import sparse_reshape as reshape
from tenfold.ops.sparse import sparse_retain as retain
from tenfold.ops.sparse import sparse_slice as slice
from tenfold.ops.sparse import sparse_split as split
from tenfold.ops.sparse import sparse_tensor_to_dense as to_dense
from tenfold.ops.sparse import sparse_to_indicator as to_indicator
from tenfold.ops.sparse import sparse_transpose as transpose
from tenfold.ops.sparse_cross import sparse_cross as cross
from tenfold.ops.sparse_cross import sparse_cross_hashed as cross_hashed
from tenfold.ops.sparse_math import sparse_add as add
from tenfold.ops.sparse_math import sparse_maximum as maximum
from tenfold.ops.sparse_math import sparse_minimum as minimum
from tenfold.ops.sparse_math import sparse_reduce_max as reduce_max
from tenfold.ops.sparse_math import sparse_reduce_max_sparse as reduce_max_sparse
from tenfold.ops.sparse_math import sparse_reduce_sum as reduce_sum
from tenfold.ops.sparse_math import sparse_reduce_sum_sparse as reduce_sum_sparse
from tenfold.ops.sparse_math import sparse_segment_mean as segment_mean
from tenfold.ops.sparse_math import sparse_segment_sqrt_n as segment_sqrt_n
from tenfold.ops.sparse_math import sparse_segment_sum as segment_sum
from tenfold.ops.sparse_math import sparse_softmax as softmax
from tenfold.ops.sparse_math import sparse_tensor_dense_matmul as matmul
from tenfold.ops.sparse_math import sparse_tensor_dense_matmul as sparse_dense_matmul

__all__ = [
    "SparseConditionalAccumulator",
    "SparseTensor",
    "add",
    "concat",
    "cross",
    "cross_hashed",
    "expand_dims",
    "eye",
    "fill_empty_rows",
    "from_dense",
    "mask",
    "matmul",
    "maximum",
    "merge",
    "minimum",
    "placeholder",
    "reduce_max",
    "reduce_max_sparse",
    "reduce_sum",
    "reduce_sum_sparse",
    "reorder",
    "reset_shape",
    "reshape",
    "retain",
    "segment_mean",
    "segment_sqrt_n",
    "segment_sum",
    "slice",
    "softmax",
    "sparse_dense_matmul",
    "split",
    "to_dense",
    "to_indicator",
    "transpose",
]
