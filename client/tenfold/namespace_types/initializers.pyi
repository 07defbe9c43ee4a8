# Written by `make stubs` from the table of tf.initializers in namespaces.py.

from tenfold.ops.init_ops import constant_initializer as constant
from tenfold.ops.init_ops import glorot_normal_initializer as glorot_normal
from tenfold.ops.init_ops import glorot_uniform_initializer as glorot_uniform
from tenfold.ops.init_ops import he_normal
from tenfold.ops.init_ops import he_uniform
from tenfold.ops.init_ops import identity
from tenfold.ops.init_ops import lecun_normal
from tenfold.ops.init_ops import lecun_uniform
from tenfold.ops.init_ops import ones_initializer as ones
from tenfold.ops.init_ops import orthogonal
from tenfold.ops.init_ops import random_normal_initializer as random_normal
from tenfold.ops.init_ops import random_uniform_initializer as random_uniform
from tenfold.ops.init_ops import truncated_normal_initializer as truncated_normal
from tenfold.ops.init_ops import uniform_unit_scaling
from tenfold.ops.init_ops import variance_scaling_initializer as variance_scaling
from tenfold.ops.init_ops import zeros_initializer as zeros
from tenfold.ops.lookup import tables_initializer
from tenfold.ops.variables import global_variables_initializer as global_variables
from tenfold.ops.variables import local_variables_initializer as local_variables
from tenfold.ops.variables import variables_initializer as variables

__all__ = [
    "constant",
    "global_variables",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "identity",
    "lecun_normal",
    "lecun_uniform",
    "local_variables",
    "ones",
    "orthogonal",
    "random_normal",
    "random_uniform",
    "tables_initializer",
    "truncated_normal",
    "uniform_unit_scaling",
    "variables",
    "variance_scaling",
    "zeros",
]
