"""`tf.keras.initializers`: those that have Keras's arguments and defaults in `tf.initializers`, too.

Keras's random_normal, random_uniform and truncated_normal draw narrower by default than TensorFlow's of these names:
they are left out, so that no program gets the others.
"""

from __future__ import annotations

from tenfold.ops.init_ops import constant_initializer as constant
from tenfold.ops.init_ops import (
    glorot_normal_initializer,
    glorot_uniform_initializer,
    he_normal,
    he_uniform,
    lecun_normal,
    lecun_uniform,
)
from tenfold.ops.init_ops import ones_initializer as ones
from tenfold.ops.init_ops import orthogonal_initializer as orthogonal
from tenfold.ops.init_ops import variance_scaling_initializer as VarianceScaling
from tenfold.ops.init_ops import zeros_initializer as zeros

__all__ = [
    "Constant",
    "Ones",
    "Orthogonal",
    "VarianceScaling",
    "Zeros",
    "constant",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "lecun_normal",
    "lecun_uniform",
    "ones",
    "orthogonal",
    "zeros",
]

Constant, Ones, Orthogonal, Zeros = constant, ones, orthogonal, zeros
glorot_normal, glorot_uniform = glorot_normal_initializer, glorot_uniform_initializer
