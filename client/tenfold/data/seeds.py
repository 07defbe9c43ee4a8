"""The pair of seeds of a dataset that draws random numbers, as int64 tensors.

As `tf.get_seed`, but (0, 0) from tensors is avoided when the graph runs. Follows TensorFlow 1.15's
data/util/random_seed.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import array, math, random_seed, slicing
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def get_seed(seed: Any) -> tuple[Tensor, Tensor]:
    """The seeds for a dataset whose caller gave `seed`: a number, a scalar int64 tensor, or None."""
    first, second_seed = random_seed.get_seed(seed)
    seed_tensor = (
        array.constant(0, dtypes.int64, name="seed")
        if first is None
        else convert_to_tensor(first, dtypes.int64, name="seed")
    )
    if second_seed is None:
        return seed_tensor, array.constant(0, dtypes.int64, name="seed2")
    with name_scope("seed2") as scope:
        second = convert_to_tensor(second_seed, dtypes.int64)
        both_zero = math.logical_and(math.equal(seed_tensor, 0), math.equal(second, 0))
        other = array.constant(2**31 - 1, dtypes.int64)
        return seed_tensor, slicing.where(both_zero, other, second, name=scope)
