"""Feeds arrays, data frames or iterators to an estimator, a batch at a time: what `fit(x, y, batch_size)` reads from.

A feeder makes placeholders (`input_builder`) and a function from nothing to a feed dictionary (`get_feed_dict_fn`),
which raises StopIteration at the end. Follows TensorFlow 1.15's `contrib/learn/python/learn/learn_io/data_feeder.py`.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any

import numpy as np

from tenfold import logging
from tenfold.ops import array
from tenfold_core import dtypes

#: How many examples a batch has if nobody says so: all of them.
_ALL = None


def _pandas() -> Any:
    """Pandas if the program has loaded it: nobody else can have made a data frame."""
    return sys.modules.get("pandas")


def extract_pandas_data(data: Any) -> Any:
    """A data frame as floats, anything else unchanged. Raises ValueError for columns that are no numbers."""
    return _numbers(data, "data", lambda frame: frame.values.astype("float"))


def extract_pandas_labels(labels: Any) -> Any:
    """A data frame of one column as an array, anything else unchanged. Raises ValueError."""
    pandas = _pandas()
    if pandas is not None and isinstance(labels, pandas.DataFrame) and len(labels.columns) > 1:
        raise ValueError("Only one column for labels is allowed.")
    return _numbers(labels, "labels", lambda frame: frame.values)


def extract_pandas_matrix(data: Any) -> Any:
    """A data frame as an array of its own types, anything else unchanged."""
    pandas = _pandas()
    return data.values if pandas is not None and isinstance(data, pandas.DataFrame) else data


def _numbers(data: Any, what: str, convert: Any) -> Any:
    pandas = _pandas()
    if pandas is None or not isinstance(data, pandas.DataFrame):
        return data
    bad = [column for column in data if data[column].dtype.kind not in "iufb"]
    if bad:
        found = ", ".join(f"'{column}' type='{data[column].dtype.name}'" for column in bad)
        raise ValueError(f"Data types for extracting pandas {what} must be int, float, or bool. Found: {found}")
    return convert(data)


def _shapes(shape: Any, features: bool, n_classes: Any, batch: int) -> Any:
    """The shape of a batch: features get a second dimension, labels lose one of size 1, classes add one."""
    if isinstance(shape, dict):
        return {key: _shapes(each, features, (n_classes or {}).get(key), batch) for key, each in shape.items()}
    rest = list(shape[1:])
    if features:
        return [batch, *(rest or [1])]
    if rest and rest[0] == 1:
        rest = rest[1:]
    return [batch, *rest, n_classes] if n_classes is not None and n_classes > 1 else [batch, *rest]


def _mapped(function: Any, value: Any) -> Any:
    return {key: function(each) for key, each in value.items()} if isinstance(value, dict) else function(value)


def check_array(value: Any, dtype: Any) -> Any:
    """An array of that type; what is neither an array nor a list is returned unchanged."""
    return np.asarray(value, dtype=dtype) if isinstance(value, (np.ndarray, list)) else value


def _check_dtype(dtype: Any) -> Any:
    if np.dtype(dtype) == np.float64:
        logging.warning("float64 is not supported by many models, consider casting to float32.")
    return dtype


def _is_iterator(value: Any) -> bool:
    return hasattr(value, "__next__")


class DataFeeder:
    """Feeds arrays (or dictionaries of them): in order, or shuffled anew in each epoch; `epochs` times, or for ever.

    `n_classes` makes labels one-hot. Raises ValueError for a batch size below 1.
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        n_classes: Any,
        batch_size: int | None = None,
        shuffle: bool = True,
        random_state: Any = None,
        epochs: int | None = None,
    ) -> None:
        y = np.array(y) if isinstance(y, list) else y
        x = np.array(x) if isinstance(x, list) else x
        self._x = _mapped(lambda each: check_array(each, each.dtype), x)
        self._y = None if y is None else _mapped(lambda each: check_array(each, each.dtype), y)
        if n_classes is not None and not isinstance(y, dict):
            self._y = None if y is None else check_array(y, np.int64 if n_classes > 1 else np.float32)
        self.n_classes = n_classes
        self.max_epochs = epochs
        self._size = len(next(iter(self._x.values()))) if isinstance(self._x, dict) else len(self._x)
        self._set_shapes(
            _mapped(np.shape, self._x), None if self._y is None else _mapped(np.shape, self._y), batch_size
        )
        self._input_dtype = _mapped(lambda each: _check_dtype(each.dtype), self._x)
        self._output_dtype: Any = np.float32
        if y is not None:
            self._output_dtype = _mapped(lambda each: _check_dtype(each.dtype), self._y)
        if isinstance(n_classes, dict):
            self._output_dtype = {
                key: np.float32 if key in n_classes else dtype for key, dtype in self._output_dtype.items()
            }
        self._shuffle = shuffle
        self.random_state = np.random.RandomState(42) if random_state is None else random_state
        self.indices = self._order()
        self.offset = 0
        self.epoch = 0
        self._epoch_placeholder: Any = None
        self._input_placeholder: Any = None
        self._output_placeholder: Any = None

    def _set_shapes(self, x_shape: Any, y_shape: Any, batch_size: int | None) -> None:
        if batch_size is not None and batch_size <= 0:
            raise ValueError(f"Invalid batch_size {batch_size}.")
        first = next(iter(x_shape.values())) if isinstance(x_shape, dict) else x_shape
        self._batch_size = int(first[0]) if batch_size is _ALL else batch_size
        self.input_shape = _shapes(x_shape, True, None, self._batch_size)
        self.output_shape: Any = None if y_shape is None else _shapes(y_shape, False, self.n_classes, self._batch_size)

    def _order(self) -> Any:
        return self.random_state.permutation(self._size) if self._shuffle else np.arange(self._size)

    @property
    def x(self) -> Any:
        """The features."""
        return self._x

    @property
    def y(self) -> Any:
        """The labels."""
        return self._y

    @property
    def shuffle(self) -> bool:
        """Whether the order changes with each epoch."""
        return self._shuffle

    @property
    def input_dtype(self) -> Any:
        """The type of the features."""
        return self._input_dtype

    @property
    def output_dtype(self) -> Any:
        """The type of the labels."""
        return self._output_dtype

    @property
    def batch_size(self) -> int:
        """How many examples a batch has; the last one may have fewer."""
        return self._batch_size

    def make_epoch_variable(self) -> Any:
        """A placeholder, int32 [1], that is fed the number of the epoch."""
        self._epoch_placeholder = array.placeholder(dtypes.int32, [1], name="epoch")
        return self._epoch_placeholder

    def input_builder(self) -> tuple[Any, Any]:
        """Placeholders of features and labels; the latter None without labels."""
        self._input_placeholder = _placeholders(self.input_shape, self._input_dtype, "input")
        self._output_placeholder = _placeholders(self.output_shape, self._output_dtype, "output")
        return self._input_placeholder, self._output_placeholder

    def set_placeholders(self, input_placeholder: Any, output_placeholder: Any) -> None:
        """Feeds these instead of placeholders of its own."""
        self._input_placeholder = input_placeholder
        self._output_placeholder = output_placeholder

    def get_feed_params(self) -> dict[str, Any]:
        """Where the feeder is."""
        return {"epoch": self.epoch, "offset": self.offset, "batch_size": self._batch_size}

    def get_feed_dict_fn(self) -> Any:
        """A function that gives the next batch as a feed dictionary by names; raises StopIteration at the end."""

        def feed_dict_fn() -> dict[str, Any]:
            if self.max_epochs is not None and self.epoch + 1 > self.max_epochs:
                raise StopIteration
            assert self._input_placeholder is not None
            feeds: dict[str, Any] = {}
            if self._epoch_placeholder is not None:
                feeds[self._epoch_placeholder.name] = [self.epoch]
            chosen = self.indices[self.offset : self.offset + self._batch_size]
            _fed(feeds, self._input_placeholder, _mapped(lambda each: _features(each, chosen), self._x))
            self.offset += self._batch_size
            if self.offset >= self._size:
                self.indices = self._order()
                self.offset = 0
                self.epoch += 1
            if self._output_placeholder is not None:
                _fed(feeds, self._output_placeholder, self._labels(chosen))
            return feeds

        return feed_dict_fn

    def _labels(self, chosen: Any) -> Any:
        if not isinstance(self._y, dict):
            return _labels(self._y, self.output_shape, self._output_dtype, self.n_classes, chosen)
        classes = self.n_classes or {}
        return {
            key: _labels(each, self.output_shape[key], self._output_dtype[key], classes.get(key), chosen)
            for key, each in self._y.items()
        }


class StreamingDataFeeder(DataFeeder):
    """Feeds what iterators give: one example at each turn."""

    def __init__(self, x: Any, y: Any, n_classes: Any, batch_size: int | None) -> None:
        first = next(x)
        self._x = itertools.chain([first], x)
        first_label: Any = None
        self._y = None
        if y is not None:
            first_label = next(y)
            self._y = itertools.chain([first_label], y)
        self.n_classes = n_classes
        label_shape = None if y is None else _mapped(lambda each: [1, *np.shape(each)], first_label)
        self._set_shapes(_mapped(lambda each: [1, *each.shape], first), label_shape, batch_size)
        self._input_dtype = _mapped(lambda each: _check_dtype(each.dtype), first)
        self._output_dtype = None
        if n_classes is not None and not isinstance(first_label, dict):
            self._output_dtype = np.float32
        elif y is not None:
            self._output_dtype = _mapped(lambda each: _check_dtype(np.asarray(each).dtype), first_label)
        self.stopped = False

    def get_feed_params(self) -> dict[str, Any]:
        return {"batch_size": self._batch_size}

    def get_feed_dict_fn(self) -> Any:
        self.stopped = False

        def feed_dict_fn() -> dict[str, Any]:
            if self.stopped:
                raise StopIteration
            examples = list(itertools.islice(self._x, self._batch_size))
            self.stopped = len(examples) < self._batch_size
            if not examples:
                raise StopIteration
            feeds: dict[str, Any] = {}
            _fed(feeds, self._input_placeholder, _filled(examples, self.input_shape, self._input_dtype, None))
            if self._y is not None:
                labels = list(itertools.islice(self._y, len(examples)))
                _fed(
                    feeds,
                    self._output_placeholder,
                    _filled(labels, self.output_shape, self._output_dtype, self.n_classes),
                )
            return feeds

        return feed_dict_fn


def _placeholders(shape: Any, dtype: Any, name: str) -> Any:
    if shape is None:
        return None
    if isinstance(shape, dict):
        return {key: _placeholders(shape[key], dtype[key], f"{name}_{key}") for key in shape}
    return array.placeholder(dtypes.as_dtype(dtype), [None, *shape[1:]], name=name)


def _fed(feeds: dict[str, Any], placeholder: Any, value: Any) -> None:
    if isinstance(placeholder, dict):
        feeds.update({placeholder[key].name: value[key] for key in placeholder})
    else:
        feeds[placeholder.name] = value


def _at(data: Any, chosen: Any) -> Any:
    return data.iloc[chosen] if hasattr(data, "iloc") else data[chosen]


def _features(data: Any, chosen: Any) -> Any:
    found = _at(data, chosen)
    return np.array(found).reshape((len(chosen), 1)) if len(data.shape) == 1 else found


def _labels(data: Any, shape: Any, dtype: Any, n_classes: Any, chosen: Any) -> Any:
    found = np.asarray(_at(data, chosen))
    if n_classes is None or n_classes <= 1:
        return found.reshape([len(chosen), *shape[1:]]).astype(dtype)
    return _one_hot(found, [len(chosen), *shape[1:]], dtype)


def _one_hot(classes: Any, shape: Any, dtype: Any) -> Any:
    """Class ids [batch] or [batch, n] as vectors."""
    classes = np.asarray(classes).astype(np.int64).reshape(shape[:-1])
    return (np.arange(shape[-1]) == classes[..., None]).astype(dtype)


def _filled(examples: Any, shape: Any, dtype: Any, n_classes: Any) -> Any:
    if isinstance(shape, dict):
        classes = n_classes or {}
        return {
            key: _filled([each[key] for each in examples], shape[key], dtype[key], classes.get(key)) for key in shape
        }
    size = [len(examples), *shape[1:]]
    values = np.asarray(examples)
    if n_classes is not None and n_classes > 1:
        return _one_hot(values, size, dtype)
    return values.reshape(size).astype(dtype)


def setup_train_data_feeder(
    x: Any, y: Any, n_classes: Any, batch_size: int | None = None, shuffle: bool = True, epochs: int | None = None
) -> DataFeeder:
    """The feeder for arrays, data frames or iterators. Raises ValueError if only one of `x` and `y` is an iterator."""
    x, y = extract_pandas_data(x), extract_pandas_labels(y)
    if not _is_iterator(x):
        return DataFeeder(x, y, n_classes, batch_size, shuffle=shuffle, epochs=epochs)
    if y is not None and not _is_iterator(y):
        raise ValueError("Both x and y should be iterators for streaming learning to work.")
    return StreamingDataFeeder(x, y, n_classes, batch_size)


def setup_predict_data_feeder(x: Any, batch_size: int | None = None) -> Any:
    """Batches of `x`: a list, or an iterator if it is one. Raises ValueError for a batch size below 1."""
    x = extract_pandas_data(x)
    if batch_size is not None and batch_size <= 0:
        raise ValueError(f"Invalid batch_size {batch_size}.")
    if _is_iterator(x):
        return _batches(x, batch_size)
    x = np.reshape(x, (-1, 1)) if len(x.shape) == 1 else x
    step = len(x) if batch_size is None else batch_size
    return [x[start : start + step] for start in range(0, len(x), step)]


def _batches(x: Any, batch_size: int | None) -> Any:
    while examples := list(itertools.islice(x, batch_size)):
        if isinstance(examples[0], dict):
            yield {key: np.asarray([each[key] for each in examples]) for key in examples[0]}
        else:
            yield np.asarray(examples)


def setup_processor_data_feeder(x: Any) -> Any:
    """What preprocessors iterate over."""
    return extract_pandas_matrix(x)
