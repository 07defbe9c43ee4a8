# Written by `make stubs` from the table of tf.manip in namespaces.py.

from tenfold.ops.array import reshape
from tenfold.ops.array import tile
from tenfold.ops.generated_ops import batch_to_space_nd
from tenfold.ops.generated_ops import roll
from tenfold.ops.generated_ops import space_to_batch_nd
from tenfold.ops.slicing import gather_nd
from tenfold.ops.slicing import reverse
from tenfold.ops.slicing import scatter_nd

__all__ = [
    "batch_to_space_nd",
    "gather_nd",
    "reshape",
    "reverse",
    "roll",
    "scatter_nd",
    "space_to_batch_nd",
    "tile",
]
