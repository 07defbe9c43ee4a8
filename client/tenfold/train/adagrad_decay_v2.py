"""AdagradDecay with a smaller second slot: one count for each row, instead of one for each element.

What it trains is what AdagradDecayOptimizer (adagrad_decay.py) trains, and so are the names of its slots, so a
checkpoint of one of them is not one of the other's. Follows DeepRec's training/adagrad_decay_v2.py.
"""

from __future__ import annotations

from typing import Any

from tenfold.ops.embedding_variables import is_embedding_variable
from tenfold.train.adagrad_decay import AdagradDecayOptimizer
from tenfold_core.tensor_shape import TensorShape


class AdagradDecayOptimizerV2(AdagradDecayOptimizer):
    """AdagradDecayOptimizer that counts by rows: its slot `_1` has a number for each row of a variable, or one for a
    scalar. Arguments and errors are those of AdagradDecayOptimizer."""

    def _shape_of_counts(self, var: Any) -> TensorShape:
        shape = var.get_shape()
        return TensorShape([1]) if is_embedding_variable(var) else TensorShape(shape[:1])
