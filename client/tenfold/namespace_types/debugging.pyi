# Written by `make stubs` from the table of tf.debugging in namespaces.py.

from tenfold.ops.check_ops import assert_equal
from tenfold.ops.check_ops import assert_greater
from tenfold.ops.check_ops import assert_greater_equal
from tenfold.ops.check_ops import assert_integer
from tenfold.ops.check_ops import assert_less
from tenfold.ops.check_ops import assert_less_equal
from tenfold.ops.check_ops import assert_near
from tenfold.ops.check_ops import assert_negative
from tenfold.ops.check_ops import assert_non_negative
from tenfold.ops.check_ops import assert_non_positive
from tenfold.ops.check_ops import assert_none_equal
from tenfold.ops.check_ops import assert_positive
from tenfold.ops.check_ops import assert_proper_iterable
from tenfold.ops.check_ops import assert_rank
from tenfold.ops.check_ops import assert_rank_at_least
from tenfold.ops.check_ops import assert_rank_in
from tenfold.ops.check_ops import assert_same_float_dtype
from tenfold.ops.check_ops import assert_scalar
from tenfold.ops.check_ops import assert_type
from tenfold.ops.check_ops import is_non_decreasing
from tenfold.ops.check_ops import is_numeric_tensor
from tenfold.ops.check_ops import is_strictly_increasing
from tenfold.ops.control_flow import Assert
from tenfold.ops.generated_ops import check_numerics
from tenfold.ops.math import is_finite
from tenfold.ops.math import is_inf
from tenfold.ops.math import is_nan
from tenfold.ops.numerics import verify_tensor_all_finite as assert_all_finite

__all__ = [
    "Assert",
    "assert_all_finite",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_integer",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_proper_iterable",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_same_float_dtype",
    "assert_scalar",
    "assert_type",
    "check_numerics",
    "is_finite",
    "is_inf",
    "is_nan",
    "is_non_decreasing",
    "is_numeric_tensor",
    "is_strictly_increasing",
]
