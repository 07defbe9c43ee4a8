"""Mathematics, second part: complex numbers, counts and histograms, segment means, special functions, types.

The family's first part is ops/math.py; what is one operation is in ops/one_op.py. Node names follow TensorFlow 1.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import array, math, slicing
from tenfold.ops.op_builder import tensor_op
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor

#: The real type of a complex one, and the reverse.
_REAL = {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}
_COMPLEX = {real: kind for kind, real in _REAL.items()}


# --- complex numbers and types ---


def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """real + imag j. Raises TypeError unless both are float32 or both float64."""
    real = convert_to_tensor(real, name="real")
    imag = convert_to_tensor(imag, name="imag")
    with name_scope(name, "Complex", [real, imag]) as scope:
        kinds = (real.dtype.base_dtype, imag.dtype.base_dtype)
        if kinds[0] != kinds[1] or kinds[0] not in _COMPLEX:
            raise TypeError(f"real and imag have incorrect types: {kinds[0].name} {kinds[1].name}")
        return tensor_op("Complex", scope, real=real, imag=imag, Tout=_COMPLEX[kinds[0]])


def _part(op_type: str, input: Any, name: str | None) -> Tensor:
    with name_scope(name, op_type, [input]) as scope:
        input = convert_to_tensor(input, name="input")
        if not input.dtype.is_complex:
            real: Tensor = input
            return real
        return tensor_op(op_type, scope, input=input, Tout=_REAL[input.dtype.base_dtype])


def real(input: Any, name: str | None = None) -> Tensor:
    """The real part; a real tensor as it is."""
    return _part("Real", input, name)


def imag(input: Any, name: str | None = None) -> Tensor:
    """The imaginary part; zeros of a real tensor."""
    with name_scope(name, "Imag", [input]) as scope:
        input = convert_to_tensor(input, name="input")
        if not input.dtype.is_complex:
            return array.zeros_like(input)
        return tensor_op("Imag", scope, input=input, Tout=_REAL[input.dtype.base_dtype])


def angle(input: Any, name: str | None = None) -> Tensor:
    """The argument of complex numbers, in radians; zeros of a real tensor."""
    with name_scope(name, "Angle", [input]) as scope:
        input = convert_to_tensor(input, name="input")
        if not input.dtype.is_complex:
            return array.zeros_like(input)
        return tensor_op("Angle", scope, input=input, Tout=_REAL[input.dtype.base_dtype])


def conj(x: Any, name: str | None = None) -> Tensor:
    """The complex conjugate; a real tensor as it is. Raises TypeError for what is no number."""
    x = convert_to_tensor(x, name="x")
    if x.dtype.is_complex or x.dtype.base_dtype == dtypes.variant:
        return tensor_op("Conj", name, input=x)
    if x.dtype.is_floating or x.dtype.is_integer:
        same: Tensor = x
        return same
    raise TypeError(f"Expected numeric or variant tensor, got dtype {x.dtype!r}")


def to_bfloat16(x: Any, name: str = "ToBFloat16") -> Any:
    """`cast` to bfloat16."""
    return math.cast(x, dtypes.bfloat16, name)


def to_complex64(x: Any, name: str = "ToComplex64") -> Any:
    """`cast` to complex64."""
    return math.cast(x, dtypes.complex64, name)


def to_complex128(x: Any, name: str = "ToComplex128") -> Any:
    """`cast` to complex128."""
    return math.cast(x, dtypes.complex128, name)


# --- functions of one or two tensors ---


def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """log(1 / (1 + exp(-x))), without overflow."""
    with name_scope(name, "LogSigmoid", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return math.negative(tensor_op("Softplus", None, features=math.negative(x)), name=scope)


def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """1 / x, and 0 where x is 0."""
    with name_scope(name, "reciprocal_no_nan", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return math.div_no_nan(array.constant(1, x.dtype.base_dtype, name="one"), x, name=scope)


def multiply_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x * y, and 0 where y is 0, even if x is infinite or not a number."""
    with name_scope(name, "multiply_no_nan", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, name="y", dtype=x.dtype.base_dtype)
        return tensor_op("MulNoNan", scope, x=x, y=y)


def polyval(coeffs: Any, x: Any, name: str | None = None) -> Tensor:
    """The polynomial with these coefficients, the highest first, at x."""
    with name_scope(name, "polyval", [x, *coeffs] if isinstance(coeffs, list) else [x]):
        if not isinstance(coeffs, list):
            raise ValueError(f"Argument coeffs must be list type found {type(coeffs)}.")
        x = convert_to_tensor(x, name="x")
        if not coeffs:
            return array.zeros_like(x, name=name)
        terms = [convert_to_tensor(c, name=f"p{i}") for i, c in enumerate(coeffs)]
        total = terms[0]
        for term in terms[1:]:
            total = term + total * x
        return total


def cumulative_logsumexp(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """The running log(sum(exp(x))) along `axis`."""
    with name_scope(name, "CumulativeLogsumexp", [x]) as scope:
        return tensor_op("CumulativeLogsumexp", scope, x=x, axis=axis, exclusive=exclusive, reverse=reverse)


def lbeta(x: Any, name: str | None = None) -> Tensor:
    """The logarithm of the multivariate beta function along the last dimension."""
    with name_scope(name, "lbeta", [x]):
        x = convert_to_tensor(x, name="x")
        logs = math.reduce_sum(math.lgamma(x), axis=[-1])
        return math.subtract(logs, math.lgamma(math.reduce_sum(x, axis=[-1])))


def trace(x: Any, name: str | None = None) -> Tensor:
    """The sum of the diagonal of each matrix."""
    with name_scope(name, "Trace", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return math.reduce_sum(tensor_op("MatrixDiagPart", "diag_part", input=x), [-1], name=scope)


# --- counts ---


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
    """The bin of each value among `nbins` equal ones over `value_range`; the outer bins take what is beyond."""
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


def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
    weights: Any = None,
) -> Tensor:
    """How often (or with which weight) class i was predicted as class j, at row i and column j.

    # labels [B], predictions [B] → [num_classes, num_classes]
    """
    with name_scope(name, "confusion_matrix", [predictions, labels, num_classes, weights]):
        from tenfold.ops.control_flow import with_dependencies

        predictions = convert_to_tensor(predictions, name="predictions")
        labels = convert_to_tensor(labels, name="labels")
        labels, predictions = remove_squeezable_dimensions(labels, predictions)
        predictions, labels = math.cast(predictions, dtypes.int64), math.cast(labels, dtypes.int64)
        labels = with_dependencies([_not_negative(labels, "`labels` contains negative values")], labels)
        predictions = with_dependencies(
            [_not_negative(predictions, "`predictions` contains negative values")], predictions
        )
        if num_classes is None:
            classes = math.maximum(math.reduce_max(predictions), math.reduce_max(labels)) + 1
        else:
            classes = math.cast(num_classes, dtypes.int64)
            labels = with_dependencies([_below(labels, classes, "`labels` out of bound")], labels)
            predictions = with_dependencies([_below(predictions, classes, "`predictions` out of bound")], predictions)
        kind = as_dtype(dtype)
        if weights is None:
            values = array.ones_like(predictions, kind)
        else:
            weights = convert_to_tensor(weights, name="weights")
            predictions.shape.assert_is_compatible_with(weights.shape)
            values = math.cast(weights, kind)
        shape = array.stack([classes, classes])
        return slicing.scatter_nd(array.stack([labels, predictions], axis=1), values, shape)


def _not_negative(x: Tensor, message: str) -> Any:
    from tenfold.ops.control_flow import Assert

    return Assert(math.reduce_all(math.greater_equal(x, array.constant(0, x.dtype.base_dtype))), [message, x])


def _below(x: Tensor, limit: Tensor, message: str) -> Any:
    from tenfold.ops.control_flow import Assert

    return Assert(math.reduce_all(math.less(x, limit)), [message, x, "should be below", limit])


def remove_squeezable_dimensions(
    labels: Any, predictions: Any, expected_rank_diff: int = 0, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Drops a last dimension of size 1 of the one that has a rank too many. Static ranks only decide."""
    with name_scope(name, "remove_squeezable_dimensions", [labels, predictions]):
        predictions, labels = convert_to_tensor(predictions), convert_to_tensor(labels)
        if predictions.shape.ndims is not None and labels.shape.ndims is not None:
            difference = predictions.shape.ndims - labels.shape.ndims
            if difference == expected_rank_diff + 1 and predictions.shape[-1].is_compatible_with(1):
                predictions = array.squeeze(predictions, [-1])
            elif difference == expected_rank_diff - 1 and labels.shape[-1].is_compatible_with(1):
                labels = array.squeeze(labels, [-1])
            return labels, predictions
        from tenfold.ops.control_flow_cond import cond

        gap = array.rank(predictions) - array.rank(labels)
        if predictions.shape.ndims is None or predictions.shape[-1].is_compatible_with(1):
            whole = predictions
            predictions = cond(
                math.equal(expected_rank_diff + 1, gap), lambda: array.squeeze(whole, [-1]), lambda: whole
            )
        if labels.shape.ndims is None or labels.shape[-1].is_compatible_with(1):
            full = labels
            labels = cond(math.equal(expected_rank_diff - 1, gap), lambda: array.squeeze(full, [-1]), lambda: full)
        return labels, predictions


# --- segments ---


def _segment_counts(segment_ids: Any, num_segments: Any, like: Tensor) -> Tensor:
    """How many slices each segment has, at least 1, shaped to divide sums of slices of `like`."""
    segment_ids = convert_to_tensor(segment_ids)
    ones = array.ones(array.shape(segment_ids), like.dtype.base_dtype)
    counts = math.unsorted_segment_sum(array.reshape(ones, [-1]), array.reshape(segment_ids, [-1]), num_segments)
    extra = array.rank(like) - array.rank(segment_ids)
    view = array.concat([array.reshape(num_segments, [1]), array.fill(array.reshape(extra, [1]), 1)], 0)
    return math.maximum(array.reshape(counts, view), array.constant(1, counts.dtype))


def unsorted_segment_mean(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The mean of the slices of `data` that have the same segment id."""
    with name_scope(name, "UnsortedSegmentMean"):
        data = convert_to_tensor(data)
        size = convert_to_tensor(num_segments)
        summed = math.unsorted_segment_sum(data, segment_ids, size)
        return summed / _segment_counts(segment_ids, size, data)


def unsorted_segment_sqrt_n(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The sum of the slices of `data` that have the same segment id, over the square root of their number."""
    with name_scope(name, "UnsortedSegmentSqrtN"):
        data = convert_to_tensor(data)
        size = convert_to_tensor(num_segments)
        summed = math.unsorted_segment_sum(data, segment_ids, size)
        return summed / math.sqrt(_segment_counts(segment_ids, size, data))


def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of a matrix and a vector; of more dimensions, for each pair.

    # a (…, M, K), b (…, K) → (…, M)
    """
    with name_scope(name, "MatVec", [a, b]) as scope:
        column = array.expand_dims(b, axis=-1)
        product = math.matmul(a, column, transpose_a=transpose_a, adjoint_a=adjoint_a)
        return array.squeeze(product, axis=-1, name=scope)


def divide_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y, and 0 where y is 0."""
    return math.div_no_nan(x, y, name)
