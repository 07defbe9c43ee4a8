"""What a canned estimator takes as its optimizer: an object, a name, or a function that makes one.

Follows TensorFlow 1.15's `estimator/canned/optimizers.py`.
"""

from __future__ import annotations

from typing import Any

from tenfold import train
from tenfold.train.optimizer import Optimizer

#: Name → the class of `tf.train`.
_CLASSES = {
    "Adagrad": "AdagradOptimizer",
    "Adam": "AdamOptimizer",
    "Ftrl": "FtrlOptimizer",
    "RMSProp": "RMSPropOptimizer",
    "SGD": "GradientDescentOptimizer",
}


def get_optimizer_instance(opt: Any, learning_rate: float | None = None) -> Optimizer:
    """The optimizer; `learning_rate` is for one that is given by its name.

    Raises ValueError for an unknown name, for a name without a learning rate, and for what is no optimizer.
    """
    if isinstance(opt, str):
        if opt not in _CLASSES:
            raise ValueError(f"Unsupported optimizer name: {opt}. Supported names are: {tuple(sorted(_CLASSES))}")
        if not learning_rate:
            raise ValueError("learning_rate must be specified when opt is string.")
        made: Optimizer = getattr(train, _CLASSES[opt])(learning_rate=learning_rate)
        return made
    if callable(opt):
        opt = opt()
    if not isinstance(opt, Optimizer):
        raise ValueError(f"The given object is not an Optimizer instance. Given: {opt}")
    return opt
