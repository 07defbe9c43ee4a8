# Written by `make stubs` from the table of tf.math in namespaces.py.

from tenfold.ops.check_ops import is_non_decreasing
from tenfold.ops.check_ops import is_strictly_increasing
from tenfold.ops.confusion_matrix import confusion_matrix
from tenfold.ops.generated_ops import bessel_i0e
from tenfold.ops.generated_ops import bessel_i1e
from tenfold.ops.generated_ops import betainc
from tenfold.ops.generated_ops import igamma
from tenfold.ops.generated_ops import igammac
from tenfold.ops.generated_ops import next_after as nextafter
from tenfold.ops.generated_ops import polygamma
from tenfold.ops.generated_ops import segment_max
from tenfold.ops.generated_ops import segment_mean
from tenfold.ops.generated_ops import segment_min
from tenfold.ops.generated_ops import segment_prod
from tenfold.ops.generated_ops import unsorted_segment_max
from tenfold.ops.generated_ops import unsorted_segment_min
from tenfold.ops.generated_ops import unsorted_segment_prod
from tenfold.ops.generated_ops import xdivy
from tenfold.ops.generated_ops import zeta
from tenfold.ops.math import abs
from tenfold.ops.math import accumulate_n
from tenfold.ops.math import acos
from tenfold.ops.math import acosh
from tenfold.ops.math import add
from tenfold.ops.math import add_n
from tenfold.ops.math import argmax
from tenfold.ops.math import argmin
from tenfold.ops.math import asin
from tenfold.ops.math import asinh
from tenfold.ops.math import atan
from tenfold.ops.math import atan2
from tenfold.ops.math import atanh
from tenfold.ops.math import ceil
from tenfold.ops.math import cos
from tenfold.ops.math import cosh
from tenfold.ops.math import count_nonzero
from tenfold.ops.math import cumprod
from tenfold.ops.math import cumsum
from tenfold.ops.math import digamma
from tenfold.ops.math import div_no_nan as divide_no_nan
from tenfold.ops.math import divide
from tenfold.ops.math import equal
from tenfold.ops.math import erf
from tenfold.ops.math import erfc
from tenfold.ops.math import exp
from tenfold.ops.math import expm1
from tenfold.ops.math import floor
from tenfold.ops.math import floordiv
from tenfold.ops.math import floormod
from tenfold.ops.math import floormod as mod
from tenfold.ops.math import greater
from tenfold.ops.math import greater_equal
from tenfold.ops.math import is_finite
from tenfold.ops.math import is_inf
from tenfold.ops.math import is_nan
from tenfold.ops.math import less
from tenfold.ops.math import less_equal
from tenfold.ops.math import lgamma
from tenfold.ops.math import log
from tenfold.ops.math import log1p
from tenfold.ops.math import logical_and
from tenfold.ops.math import logical_not
from tenfold.ops.math import logical_or
from tenfold.ops.math import logical_xor
from tenfold.ops.math import maximum
from tenfold.ops.math import minimum
from tenfold.ops.math import multiply
from tenfold.ops.math import negative
from tenfold.ops.math import not_equal
from tenfold.ops.math import pow
from tenfold.ops.math import reciprocal
from tenfold.ops.math import reduce_all
from tenfold.ops.math import reduce_any
from tenfold.ops.math import reduce_euclidean_norm
from tenfold.ops.math import reduce_logsumexp
from tenfold.ops.math import reduce_max
from tenfold.ops.math import reduce_mean
from tenfold.ops.math import reduce_min
from tenfold.ops.math import reduce_prod
from tenfold.ops.math import reduce_std
from tenfold.ops.math import reduce_sum
from tenfold.ops.math import reduce_variance
from tenfold.ops.math import rint
from tenfold.ops.math import round
from tenfold.ops.math import rsqrt
from tenfold.ops.math import scalar_mul
from tenfold.ops.math import segment_sum
from tenfold.ops.math import sigmoid
from tenfold.ops.math import sign
from tenfold.ops.math import sin
from tenfold.ops.math import sinh
from tenfold.ops.math import sqrt
from tenfold.ops.math import square
from tenfold.ops.math import squared_difference
from tenfold.ops.math import subtract
from tenfold.ops.math import tan
from tenfold.ops.math import tanh
from tenfold.ops.math import truediv
from tenfold.ops.math import unsorted_segment_sum
from tenfold.ops.math import xlogy
from tenfold.ops.math_complex import angle
from tenfold.ops.math_complex import conj
from tenfold.ops.math_complex import imag
from tenfold.ops.math_complex import real
from tenfold.ops.math_histogram import bincount
from tenfold.ops.math_segments import unsorted_segment_mean
from tenfold.ops.math_segments import unsorted_segment_sqrt_n
from tenfold.ops.math_special import bessel_i0
from tenfold.ops.math_special import bessel_i1
from tenfold.ops.math_special import cumulative_logsumexp
from tenfold.ops.math_special import lbeta
from tenfold.ops.math_special import log_sigmoid
from tenfold.ops.math_special import multiply_no_nan
from tenfold.ops.math_special import polyval
from tenfold.ops.math_special import reciprocal_no_nan
from tenfold.ops.nn import in_top_k
from tenfold.ops.nn import log_softmax
from tenfold.ops.nn import softmax
from tenfold.ops.nn import softplus
from tenfold.ops.nn import softsign
from tenfold.ops.nn import top_k
from tenfold.ops.nn import zero_fraction
from tenfold.ops.nn_norm import l2_normalize
from tenfold.ops.slicing import invert_permutation

__all__ = [
    "abs",
    "accumulate_n",
    "acos",
    "acosh",
    "add",
    "add_n",
    "angle",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bessel_i0",
    "bessel_i0e",
    "bessel_i1",
    "bessel_i1e",
    "betainc",
    "bincount",
    "ceil",
    "confusion_matrix",
    "conj",
    "cos",
    "cosh",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "cumulative_logsumexp",
    "digamma",
    "divide",
    "divide_no_nan",
    "equal",
    "erf",
    "erfc",
    "exp",
    "expm1",
    "floor",
    "floordiv",
    "floormod",
    "greater",
    "greater_equal",
    "igamma",
    "igammac",
    "imag",
    "in_top_k",
    "invert_permutation",
    "is_finite",
    "is_inf",
    "is_nan",
    "is_non_decreasing",
    "is_strictly_increasing",
    "l2_normalize",
    "lbeta",
    "less",
    "less_equal",
    "lgamma",
    "log",
    "log1p",
    "log_sigmoid",
    "log_softmax",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "multiply_no_nan",
    "negative",
    "nextafter",
    "not_equal",
    "polygamma",
    "polyval",
    "pow",
    "real",
    "reciprocal",
    "reciprocal_no_nan",
    "reduce_all",
    "reduce_any",
    "reduce_euclidean_norm",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_std",
    "reduce_sum",
    "reduce_variance",
    "rint",
    "round",
    "rsqrt",
    "scalar_mul",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_prod",
    "segment_sum",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "softmax",
    "softplus",
    "softsign",
    "sqrt",
    "square",
    "squared_difference",
    "subtract",
    "tan",
    "tanh",
    "top_k",
    "truediv",
    "unsorted_segment_max",
    "unsorted_segment_mean",
    "unsorted_segment_min",
    "unsorted_segment_prod",
    "unsorted_segment_sqrt_n",
    "unsorted_segment_sum",
    "xdivy",
    "xlogy",
    "zero_fraction",
    "zeta",
]
