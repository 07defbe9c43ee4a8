"""`tf.train.experimental`: loss scales for half precision, and optimizers with them."""

from __future__ import annotations

from tenfold.train.loss_scale import DynamicLossScale, FixedLossScale, LossScale
from tenfold.train.loss_scale_optimizer import (
    MixedPrecisionLossScaleOptimizer,
    disable_mixed_precision_graph_rewrite,
    enable_mixed_precision_graph_rewrite,
)

__all__ = [
    "DynamicLossScale",
    "FixedLossScale",
    "LossScale",
    "MixedPrecisionLossScaleOptimizer",
    "disable_mixed_precision_graph_rewrite",
    "enable_mixed_precision_graph_rewrite",
]
