"""`tf.estimator.inputs.numpy_input_fn`: batches of NumPy arrays. Follows TF 1.15's estimator/inputs/numpy_io.py."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.estimator.inputs.feeding_functions import _enqueue_data

if TYPE_CHECKING:
    from collections.abc import Callable

#: The name of a target that has none, among the features.
_TARGET_KEY = "__target_key__"


def check_shuffle(shuffle: Any) -> None:
    """Raises ValueError unless it is a bool: there is no right default for training and evaluation alike."""
    if not isinstance(shuffle, bool):
        raise ValueError(
            "shuffle must be provided and explicitly set as boolean (it is recommended to set it as True for "
            f"training); got {shuffle}"
        )


def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], Any]:
    """An input function that gives batches of `x`, or pairs of batches of `x` and `y`.

    `x` and `y` are arrays, or dictionaries of arrays, of one length; features and labels have their form. `num_epochs`
    None repeats for ever; else the last batch may be smaller. Raises ValueError unless `shuffle` is a bool; the input
    function raises ValueError for empty data, keys in both, or lengths that differ, TypeError for other data. As
    TensorFlow 1.15's `tf.estimator.inputs.numpy_input_fn`.
    """
    check_shuffle(shuffle)

    def input_fn() -> Any:
        features = _validate_and_convert_features(x)
        feature_keys = list(features)
        targets = _targets(y, features)
        data = collections.OrderedDict([*features.items(), *targets.items()])
        if len({value.shape[0] for value in data.values()}) != 1:
            shape_of_y = {key: value.shape for key, value in targets.items()} if isinstance(y, dict) else None
            raise ValueError(
                "Length of tensors in x and y is mismatched. All elements in x and y must have the same length.\n"
                f"Shapes in x: { ({key: features[key].shape for key in feature_keys}) }\n"
                f"Shapes in y: {shape_of_y or (None if y is None else y.shape)}\n"
            )
        queue = _enqueue_data(
            data, queue_capacity, shuffle=bool(shuffle), num_threads=num_threads, enqueue_size=batch_size,
            num_epochs=num_epochs,
        )  # fmt: skip
        batch = queue.dequeue_many(batch_size) if num_epochs is None else queue.dequeue_up_to(batch_size)
        # the first component is the row's number
        columns = dict(zip(data, batch[1:], strict=True))
        inputs = {key: columns[key] for key in feature_keys} if isinstance(x, dict) else columns[feature_keys[0]]
        if y is None:
            return inputs
        return inputs, {key: columns[key] for key in targets} if isinstance(y, dict) else columns[next(iter(targets))]

    return input_fn


def _validate_and_convert_features(x: Any) -> collections.OrderedDict[Any, Any]:
    """Name → array, by name. Raises ValueError for empty data, TypeError for what is neither array nor dictionary."""
    if isinstance(x, dict):
        if not x:
            raise ValueError("x cannot be an empty dict")
        return _sorted_arrays(x)
    if isinstance(x, np.ndarray):
        if x.size == 0:
            raise ValueError("x cannot be an empty array")
        return collections.OrderedDict({"__direct_np_input__": x})
    raise TypeError(f"x must be a dict or array; got {type(x).__name__}")


def _targets(y: Any, features: collections.OrderedDict[Any, Any]) -> collections.OrderedDict[Any, Any]:
    """Name → array of the targets, whose names are not those of features."""
    if y is None:
        return collections.OrderedDict()
    if not isinstance(y, dict):
        return collections.OrderedDict({_get_unique_target_key(features): _array(y)})
    if not y:
        raise ValueError("y cannot be empty dict, use None instead.")
    twice = set(features) & set(y)
    if twice:
        raise ValueError(f"{len(twice)} duplicate keys are found in both x and y: {twice}")
    return _sorted_arrays(y)


def _sorted_arrays(data: dict[Any, Any]) -> collections.OrderedDict[Any, Any]:
    return collections.OrderedDict((key, _array(data[key])) for key in sorted(data))


def _array(value: Any) -> Any:
    """A column of pandas' as an array of NumPy's: its texts have a type of pandas' own."""
    return np.asarray(value) if hasattr(value, "__array__") else value


def _get_unique_target_key(features: collections.OrderedDict[Any, Any]) -> str:
    key = _TARGET_KEY
    while key in features:
        key += "_n"
    return key
