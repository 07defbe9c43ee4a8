"""`tf.estimator.inputs.pandas_input_fn`: batches of a data frame. Follows TF 1.15's estimator/inputs/pandas_io.py.

pandas is no requirement of Tenfold: a program with a data frame has it.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.estimator.inputs.feeding_functions import _enqueue_data, is_data_frame
from tenfold.estimator.inputs.numpy_io import check_shuffle

if TYPE_CHECKING:
    from collections.abc import Callable


def pandas_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int | None = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Callable[[], Any]:
    """An input function that gives batches of the columns of `x` by name, with `y` as labels.

    `x` is a DataFrame, `y` a Series or DataFrame with the same index; `target_column` is the name that a Series gets
    meanwhile. A `queue_capacity` of None is about the length of `x`. Raises ValueError unless `shuffle` is a bool, for
    a column of that name in `x`, and for another index; TypeError for what is no data frame. As TensorFlow 1.15's
    `tf.estimator.inputs.pandas_input_fn`.
    """
    if not is_data_frame(x):
        raise TypeError(
            f"x must be a pandas DataFrame (pip install pandas), not {type(x).__name__}: for arrays there is "
            "tf.estimator.inputs.numpy_input_fn"
        )
    check_shuffle(shuffle)
    if not isinstance(target_column, str):
        raise TypeError("target_column must be a string type")
    data = x.copy()
    targets: list[tuple[Any, Any]] = []
    if y is not None:
        if target_column in data:
            raise ValueError(
                f"Cannot use name {target_column} for target column: DataFrame already has a column with that name: "
                f"{data.columns}"
            )
        if not np.array_equal(data.index, y.index):
            raise ValueError(f"Index for x and y are mismatched.\nIndex for x: {data.index}\nIndex for y: {y.index}\n")
        if is_data_frame(y):
            targets = [(column, _get_unique_target_key(data, column)) for column in y]
            for column, key in targets:
                data[key] = y[column]
        else:
            targets = [(None, target_column)]
            data[target_column] = y
    capacity = queue_capacity or (4 * len(data) if shuffle else len(data))

    def input_fn() -> Any:
        queue = _enqueue_data(
            data, capacity, shuffle=bool(shuffle), min_after_dequeue=max(capacity / 4, 1), num_threads=num_threads,
            enqueue_size=batch_size, num_epochs=num_epochs,
        )  # fmt: skip
        batch = queue.dequeue_many(batch_size) if num_epochs is None else queue.dequeue_up_to(batch_size)
        # the first component is the index
        features = dict(zip(data.columns, batch[1:], strict=True))
        if y is None:
            return features
        labels = {column: features.pop(key) for column, key in targets}
        return features, labels if is_data_frame(y) else labels[None]

    return input_fn


def _get_unique_target_key(features: Any, target_column_name: str) -> str:
    return f"{target_column_name}_{uuid.uuid4()}" if target_column_name in features else target_column_name
