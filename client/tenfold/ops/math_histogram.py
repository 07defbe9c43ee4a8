"""Counts and histograms: `tf.bincount`, `tf.histogram_fixed_width`. Node names follow TensorFlow 1.15."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import tensor_op
from tenfold.ops import array, math
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def bincount(
    arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None, dtype: Any = dtypes.int32
) -> Tensor:
    """How often each number 0, 1, … appears (or the sum of its weights), at least `minlength` entries."""
    with name_scope("bincount"):
        arr = math.cast(convert_to_tensor(arr, name="arr"), dtypes.int32)
        some = math.greater(array.size(arr), 0)
        size = math.cast(some, dtypes.int32) * (math.reduce_max(arr) + 1)
        if minlength is not None:
            size = math.maximum(convert_to_tensor(minlength, dtypes.int32, name="minlength"), size)
        if maxlength is not None:
            size = math.minimum(convert_to_tensor(maxlength, dtypes.int32, name="maxlength"), size)
        if weights is not None:
            weights = convert_to_tensor(weights, name="weights")
            return math.unsorted_segment_sum(weights, arr, size)
        return tensor_op("Bincount", None, arr=arr, size=size, weights=array.constant([], as_dtype(dtype)))


def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """The index of each value's bin among `nbins` equal ones over `value_range`; values outside go to the end bins."""
    with name_scope(name, "histogram_fixed_width_bins", [values, value_range, nbins]):
        values = convert_to_tensor(values, name="values")
        shape = array.shape(values)
        flat = array.reshape(values, [-1])
        low_high = convert_to_tensor(value_range, name="value_range")
        bins = convert_to_tensor(nbins, dtype=dtypes.int32, name="nbins")
        exact = math.cast(bins, values.dtype.base_dtype)
        scaled = math.truediv(flat - low_high[0], low_high[1] - low_high[0], name="scaled_values")
        places = math.cast(math.floor(exact * scaled), dtypes.int32, name="indices")
        last = bins - 1
        places = math.maximum(math.minimum(places, last), array.constant(0, dtypes.int32))
        result: Tensor = math.cast(array.reshape(places, shape), as_dtype(dtype))
        return result


def histogram_fixed_width(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """How many values fall into each of `nbins` equal bins over `value_range`."""
    with name_scope(name, "histogram_fixed_width", [values, value_range, nbins]) as scope:
        return tensor_op(
            "HistogramFixedWidth", scope, values=values, value_range=value_range, nbins=nbins, dtype=as_dtype(dtype)
        )
