"""What estimators of `tf.contrib.learn` share: their inputs, metrics and predictions.

Used by estimator.py and sk_compat.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tenfold.contrib.learn.data_feeder import setup_train_data_feeder
from tenfold.contrib.learn.metric_spec import MetricSpec
from tenfold.graph import Graph, Tensor
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.ops import array
from tenfold.ops.control_flow import no_op
from tenfold.ops.sparse import sparse_placeholder
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class NotFittedError(ValueError, AttributeError):
    """There is no checkpoint yet to evaluate or to predict with."""


def check_inputs(x: Any, y: Any, input_fn: Any, feed_fn: Any, batch_size: int | None) -> None:
    if input_fn is None:
        if x is None:
            raise ValueError("Either x or input_fn must be provided.")
        if any(isinstance(each, (Tensor, SparseTensor)) for each in (x, y)):
            raise ValueError("Inputs cannot be tensors. Please provide input_fn.")
        if feed_fn is not None:
            raise ValueError("Can not provide both feed_fn and x or y.")
        return
    if x is not None or y is not None:
        raise ValueError("Can not provide both input_fn and x or y.")
    if batch_size is not None:
        raise ValueError("Can not provide both input_fn and batch_size.")


class TensorSignature(NamedTuple):
    """What a tensor of an input is like; the size of the batch may change."""

    dtype: Any
    shape: Any
    is_sparse: bool


def signature_of(tensors: Any) -> Any:
    """The TensorSignature of a tensor, of each value of a dictionary, None of None."""
    if isinstance(tensors, dict):
        return {key: signature_of(each) for key, each in tensors.items()}
    if tensors is None:
        return None
    if isinstance(tensors, SparseTensor):
        return TensorSignature(tensors.dtype, None, True)
    shape = tensors.get_shape()
    shape = TensorShape([None, *shape[1:]]) if shape.ndims else shape
    return TensorSignature(tensors.dtype, shape, False)


def check_signature(what: str, tensors: Any, wanted: Any) -> None:
    """Raises ValueError unless the tensors ("Features" or "Labels") are like those that `wanted` was made of."""
    if not _alike(signature_of(tensors), wanted):
        raise ValueError(
            f"{what} are incompatible with given information. Given {what.lower()}: {tensors}, required signatures: "
            f"{wanted}."
        )


def _alike(found: Any, wanted: Any) -> bool:
    if isinstance(found, dict) and isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(_alike(found[key], wanted[key]) for key in found)
    if not isinstance(found, TensorSignature) or not isinstance(wanted, TensorSignature):
        return found is None and wanted is None
    return (
        found.dtype.base_dtype == wanted.dtype.base_dtype
        and found.is_sparse == wanted.is_sparse
        and (found.is_sparse or found.shape.is_compatible_with(wanted.shape))
    )


def input_of(
    x: Any, y: Any, input_fn: Any, feed_fn: Any, batch_size: int | None, shuffle: bool = False, epochs: int | None = 1
) -> tuple[Any, Any]:
    """An input function, and the function that feeds its placeholders or None. Raises ValueError."""
    check_inputs(x, y, input_fn, feed_fn, batch_size)
    if input_fn is not None:
        return input_fn, feed_fn
    feeder = setup_train_data_feeder(x, y, n_classes=None, batch_size=batch_size, shuffle=shuffle, epochs=epochs)
    return feeder.input_builder, feeder.get_feed_dict_fn()


def infer_real_valued_columns_from_input_fn(input_fn: Callable[[], Any]) -> list[Any]:
    """A real-valued column for each feature of an input function. Raises ValueError for what is not numbers."""
    from tenfold.contrib.feature_columns import infer_real_valued_columns

    with Graph().as_default():
        features, _ = input_fn()
        return infer_real_valued_columns(features)


def infer_real_valued_columns_from_input(x: Any) -> list[Any]:
    """The same for arrays."""
    input_fn, _ = input_of(x, None, None, None, None)
    return infer_real_valued_columns_from_input_fn(input_fn)


def metric_ops(metrics: dict[Any, Any], features: Any, labels: Any, predictions: Any) -> dict[str, Any]:
    """Name → metric. A metric is a MetricSpec, or a function of predictions and labels, then its key may be
    (name, key of the prediction). Raises ValueError."""
    only = next(iter(labels.values())) if isinstance(labels, dict) and len(labels) == 1 else labels
    found: dict[str, Any] = {}
    for key, metric in sorted(metrics.items(), key=lambda each: str(each[0])):
        if isinstance(metric, MetricSpec):
            found[key] = metric.create_metric_ops(features, labels, predictions)
        elif isinstance(key, tuple):
            if len(key) != 2:
                raise ValueError(f"Invalid metric for {key}. It returned a tuple with len {len(key)}, expected 2.")
            if not isinstance(predictions, dict):
                raise ValueError(
                    "Metrics passed provide (name, prediction), but predictions are not dict. "
                    f"Metrics: {metrics}, Predictions: {predictions}."
                )
            label = labels[key[1]] if isinstance(labels, dict) and key[1] in labels else only
            found[key[0]] = metric(predictions[key[1]], label)
        elif isinstance(predictions, dict):
            raise ValueError(
                "Metrics passed provide only name, no prediction, but predictions are dict. "
                f"Metrics: {metrics}, Labels: {only}."
            )
        else:
            found[key] = metric(predictions, only)
    # A metric without a state has nothing to update.
    return {key: tuple(each) if isinstance(each, (tuple, list)) else (each, no_op()) for key, each in found.items()}


def without_arguments(input_fn: Any) -> Any:
    """An input function for `tf.estimator`, without the arguments that it offers."""
    return lambda: input_fn()


def placeholder_like(value: Any) -> Any:
    if isinstance(value, SparseTensor):
        return sparse_placeholder(value.dtype)
    shape = value.get_shape()
    return array.placeholder(value.dtype, shape=None if shape.ndims is None else [None, *shape.as_list()[1:]])


def picked(predictions: Any, outputs: Any) -> Any:
    """The predictions of some keys. Raises ValueError if there are none, or no keys."""
    if not outputs:
        return predictions
    if not isinstance(predictions, dict):
        raise ValueError("outputs argument is not valid in case of non-dict predictions.")
    found = {key: value for key, value in predictions.items() if key in outputs}
    if not found:
        raise ValueError(f"Expected to run at least one output from {predictions.keys()}, provided {outputs}.")
    return found


def each_prediction(session: Any, predictions: Any, feed_fn: Any, batches: bool, once: bool) -> Iterator[Any]:
    with session:
        while not session.should_stop():
            try:
                feeds = feed_fn() if feed_fn else None
            except StopIteration:
                return
            found = session.run(predictions, feeds)
            if batches:
                yield found
            elif not isinstance(found, dict):
                yield from found
            else:
                first = next(iter(found.values()))
                size = first.dense_shape[0] if hasattr(first, "dense_shape") else len(first)
                for index in range(size):
                    yield {key: value[index] for key, value in found.items()}
            if once:
                return


def joined(batches: list[Any]) -> Any:
    """The predictions of all batches as one array, or a dictionary of arrays."""
    if not isinstance(batches[0], dict):
        return np.concatenate(batches, axis=0)
    return {key: np.concatenate([each[key] for each in batches], axis=0) for key in batches[0]}
