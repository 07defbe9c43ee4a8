"""What every head checks of its labels, its logits, its weights and a loss function of the user.

Shapes in comments: D0 … DN are the dimensions of a batch, the last one is that of the logits. Called by the heads
beside it; the messages are those of TensorFlow 1.15's `estimator/canned/head.py`, and for the heads that a program
makes itself those of `estimator/head/base_head.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold import losses
from tenfold.estimator.util import fn_args
from tenfold.feature_column.base import Features
from tenfold.feature_column.numeric import NumericColumn, numeric_column
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import control_dependencies, name_scope
from tenfold.graph.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from tenfold.ops import array, check_ops, math
from tenfold.ops.casts import to_float
from tenfold.ops.control_flow import Assert

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tenfold.graph.tensor import Tensor


class LabelTexts(NamedTuple):
    """Where the messages about labels differ in a word: TensorFlow's two families of heads have texts of their own."""

    missing: str
    sparse: str
    sparse_fix: str
    another_dimension: str
    #: What a user gave `n_classes` to.
    owner: str
    #: Of a label that is too large, and of one below 0.
    outside: tuple[str, str]


_MISSING = (
    "You must provide a labels Tensor. Given: None. Suggested troubleshooting steps: Check that your data {} your "
    "label feature. Check that your input_fn properly parses and returns labels."
)
OF_ESTIMATORS = LabelTexts(
    _MISSING.format("contain"),
    "labels must",
    " Suggested Fix",
    "Suggested Fix:If your classifier expects one-hot encoding label,check",
    "estimator",
    ("Labels must <= n_classes - 1", "Labels must >= 0"),
)
OF_HEADS = LabelTexts(
    _MISSING.format("contains"),
    "Labels must",
    "Suggested Fix",
    "Suggested Fix: If your classifier expects one-hot encoding label, check",
    "head",
    ("Labels must be <= n_classes - 1", "Labels must be >= 0"),
)


def checked_labels(labels: Any, logits: Tensor, dimension: int, texts: LabelTexts) -> Tensor:
    """Labels as [D0, …, DN, dimension]; those of [D0, …, DN] get a last dimension of 1.

    Raises ValueError for none, for a SparseTensor, and for a static shape that does not fit; the step fails for one
    that is known only then.
    """
    if labels is None:
        raise ValueError(texts.missing)
    with name_scope(None, "labels", (labels, logits)) as scope:
        labels = convert_to_tensor_or_sparse_tensor(labels)
        if isinstance(labels, SparseTensor):
            raise ValueError(
                f"SparseTensor labels are not supported. {texts.sparse} be a Tensor of shape [D0, D1, ..., DN, "
                f"{dimension}], e.g. [batch_size, {dimension}].{texts.sparse_fix} (1): Check the label feature in your "
                f"data. Each example must contain {dimension} value(s). If not, your choice of label was probably "
                "incorrect. Suggested Fix (2): In your input_fn, use tf.sparse_tensor_to_dense() to turn labels into "
                "a Tensor."
            )
        if _lacks_last(labels, logits):
            labels = array.expand_dims(labels, -1)
        message = (
            f"labels shape must be [D0, D1, ... DN, {dimension}]. Suggested Fix: check your n_classes argument to the "
            f"{texts.owner} and/or the shape of your label."
        )
        with control_dependencies([check_ops.assert_rank_at_least(labels, 2, message=message)]):
            last = _last_dimension(labels)
            if last is not None and last != dimension:
                raise ValueError(
                    f"Mismatched label shape. Expected labels dimension={dimension}.  Received {last}. "
                    f"{texts.another_dimension} your n_classes argument to the estimator and/or the shape of your "
                    "label. Otherwise, check the shape of your label."
                )
            shape = array.shape(labels)
            expected = array.concat([array.shape(logits)[:-1], [dimension]], axis=0)
            data = ["expected_labels_shape: ", expected, "labels_shape: ", shape]
            fits = _checked(math.equal(expected, shape), message, data)
            with control_dependencies([fits]):
                return array.identity(labels, name=scope)


def checked_weights(features: Mapping[str, Any], weight_column: Any, logits: Tensor, per_logit: bool = False) -> Any:
    """The examples' weights, [D0, …, DN, 1] or, if `per_logit`, as the logits too; 1.0 without a column.

    Raises TypeError for another column than a numeric one; the step fails for a shape that does not fit.
    """
    message = "weights shape must be [D0, D1, ... DN] or [D0, D1, ... DN, 1]"
    if per_logit:
        message = "weights shape must be [D0, D1, ... DN], [D0, D1, ... DN, 1] or [D0, D1, ... DN, logits_dimension]"
    with name_scope(None, "weights", (*features.values(), logits)) as scope:
        if weight_column is None:
            return 1.0
        if isinstance(weight_column, str):
            weight_column = numeric_column(weight_column, shape=(1,))
        if not isinstance(weight_column, NumericColumn):
            raise TypeError(
                f"Weight column must be either a string or _NumericColumn. Given type: {type(weight_column)}."
            )
        weights = Features(features).get(weight_column)
        if not (weights.dtype.is_floating or weights.dtype.is_integer):
            raise ValueError(f"Weight column should be castable to float. Given dtype: {weights.dtype}")
        weights = to_float(weights, name="weights")
        shape = array.shape(weights, name="weights_shape")
        logits_shape = array.shape(logits, name="logits_shape")
        data = ["logits_shape: ", logits_shape, "weights_shape: ", shape]
        if _lacks_last(weights, logits):
            fits = _checked(math.equal(logits_shape[:-1], shape), message, data)
            with control_dependencies([fits]):
                return array.expand_dims(weights, -1, name=scope)
        single = array.concat([logits_shape[:-1], [1]], axis=0)
        if per_logit:
            either = [math.reduce_all(math.equal(each, shape)) for each in (logits_shape, single)]
            fits = _checked(math.reduce_any(array.stack(either)), message, data)
        else:
            fits = _checked(math.equal(single, shape), message, data)
        with control_dependencies([fits]):
            return array.identity(weights, name=scope)


def checked_logits(logits: Any, dimension: Any) -> Tensor:
    """Float32 logits of at least two dimensions, the last of them `dimension`. Raises ValueError for another one."""
    message = "logits shape must be [D0, D1, ... DN, logits_dimension]"
    with name_scope(None, "logits", (logits,)) as scope:
        logits = to_float(logits)
        shape = array.shape(logits)
        with control_dependencies([check_ops.assert_rank_at_least(logits, 2, data=[shape], message=message)]):
            last = _last_dimension(logits)
            if last is not None:
                if isinstance(dimension, int) and last != dimension:
                    raise ValueError(f"{message}, got {logits.shape}.")
                return logits  # type: ignore[no-any-return]
            fits = _checked(math.equal(dimension, shape[-1]), message, [shape])
            with control_dependencies([fits]):
                return array.identity(logits, name=scope)


def in_range(labels: Tensor, n_classes: Any, outside: tuple[str, str]) -> Tensor:
    """The labels; the step fails for one outside of [0, n_classes), with the first text above it, the second below."""
    with name_scope(None, "assert_range", (labels,)):
        greatest = convert_to_tensor(n_classes - 1, dtype=labels.dtype)
        data = ["labels: ", labels]
        checks = (
            _checked(math.less_equal(labels, greatest), outside[0], data),
            _checked(math.greater_equal(labels, 0), outside[1], data),
        )
        with control_dependencies(checks):
            return array.identity(labels)


def _checked(holds: Any, message: str, data: Sequence[Any]) -> Any:
    """Fails the step unless all hold. Never fails before: TensorFlow does not see through these shapes either."""
    return Assert(math.reduce_all(holds), [message, *data])


def called(
    loss_fn: Callable[..., Any], labels: Tensor, logits: Tensor, features: Mapping[str, Any], dimension: int = 1
) -> Tensor:
    """What the user's loss function gives; the step fails unless that is [D0, …, DN, dimension]."""
    more = {"features": features} if "features" in fn_args(loss_fn) else {}
    with name_scope(None, "call_loss_fn", [labels, logits, *features.values()]):
        loss = loss_fn(labels=labels, logits=logits, **more)
        logits_shape = array.shape(logits, name="logits_shape")
        expected = array.concat([logits_shape[:-1], [dimension]], axis=0, name="expected_loss_shape")
        shape = array.shape(loss, name="loss_shape")
        text = f"loss_fn must return Tensor of shape [D0, D1, ... DN, {dimension}]. "
        fits = Assert(
            math.reduce_all(math.equal(shape, expected)),
            [text, "logits_shape: ", logits_shape, "loss_shape: ", shape],
            name="check_loss_shape",
        )
        with control_dependencies([fits]):
            return array.identity(loss)


def check_loss_fn(loss_fn: Any, also: Sequence[str] = ()) -> None:
    """Raises ValueError unless the function takes labels and logits, and of others only features and `also`."""
    names = fn_args(loss_fn)
    for needed in ("labels", "logits"):
        if needed not in names:
            raise ValueError(f"loss_fn must contain argument: {needed}. Given arguments: {names}")
    unexpected = [name for name in names if name not in ("labels", "logits", "features", *also)]
    if unexpected:
        raise ValueError(f"loss_fn has unexpected args: {unexpected}")


def check_loss_reduction(reduction: Any) -> None:
    """Raises ValueError for a reduction that is unknown, or that does not reduce."""
    if reduction not in losses.Reduction.all() or reduction == losses.Reduction.NONE:
        raise ValueError(f"Invalid loss_reduction: {reduction}. See `tf.losses.Reduction` for valid options.")


def checked_thresholds(thresholds: Any) -> tuple[float, ...]:
    """The thresholds. Raises ValueError for one outside of (0, 1)."""
    found = tuple(thresholds) if thresholds else ()
    for threshold in found:
        if threshold <= 0.0 or threshold >= 1.0:
            raise ValueError(f"thresholds not in (0, 1): {(found,)}.")
    return found


def checked_n_classes(n_classes: Any) -> Any:
    """The number of classes. Raises ValueError unless it is above 2."""
    if n_classes is None:
        raise ValueError("n_classes cannot be None")
    if isinstance(n_classes, int):
        if n_classes <= 2:
            raise ValueError(f"n_classes must be > 2: {n_classes}.")
        return n_classes
    check_ops.assert_greater(convert_to_tensor(n_classes), 2, message="n_classes must be greater than 2")
    return n_classes


def _lacks_last(tensor: Tensor, logits: Tensor) -> bool:
    """Whether it is known to have one dimension less than the logits."""
    rank, whole = tensor.shape.ndims, logits.shape.ndims
    return rank is not None and whole is not None and rank == whole - 1


def _last_dimension(tensor: Tensor) -> int | None:
    return None if tensor.shape.ndims is None else tensor.shape.as_list()[-1]
