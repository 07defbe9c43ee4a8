"""Data sets in local files: CSV tables, iris and Boston's houses.

Nothing is downloaded: a file that is missing gets an error that says which goes where. Follows TensorFlow 1.15's
`contrib/learn/python/learn/datasets/base.py`.
"""

from __future__ import annotations

import csv
import os
import random
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tenfold import gfile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Where data sets are looked for that a program names without a path.
FOLDER = os.path.join("~", ".tenfold", "datasets")


class Dataset(NamedTuple):
    """Features, a row for each example, and what they belong to."""

    data: Any
    target: Any


class Datasets(NamedTuple):
    """The three parts of a data set."""

    train: Any
    validation: Any
    test: Any


def load_csv_with_header(filename: Any, target_dtype: Any, features_dtype: Any, target_column: int = -1) -> Dataset:
    """A table whose first line begins with the numbers of its rows and of its features."""
    with gfile.GFile(filename) as lines:
        rows = csv.reader(lines)
        header = next(rows)
        samples, features = int(header[0]), int(header[1])
        data = np.zeros((samples, features), dtype=features_dtype)
        target = np.zeros((samples,), dtype=target_dtype)
        for index, row in enumerate(rows):
            target[index] = np.asarray(row.pop(target_column), dtype=target_dtype)
            data[index] = np.asarray(row, dtype=features_dtype)
    return Dataset(data=data, target=target)


def load_csv_without_header(filename: Any, target_dtype: Any, features_dtype: Any, target_column: int = -1) -> Dataset:
    """A table of features and a target in each line."""
    data, target = [], []
    with gfile.GFile(filename) as lines:
        for row in csv.reader(lines):
            target.append(row.pop(target_column))
            data.append(np.asarray(row, dtype=features_dtype))
    return Dataset(data=np.array(data), target=np.array(target, dtype=target_dtype))


def shrink_csv(filename: str, ratio: int) -> None:
    """Writes each `ratio`-th line beside the file, as `<name>_small.<ending>`."""
    with gfile.GFile(filename.replace(".", "_small."), "w") as small, gfile.GFile(filename) as lines:
        writer = csv.writer(small)
        for index, row in enumerate(csv.reader(lines)):
            if index % ratio == 0:
                writer.writerow(row)


def load_iris(data_path: str | None = None) -> Dataset:
    """150 irises: 4 features and one of 3 kinds, float64 and int64.

    From `data_path`, by default `~/.tenfold/datasets/iris.csv` (the format of `load_csv_with_header`), or from
    scikit-learn if that is installed. Raises FileNotFoundError.
    """
    path = data_path or _default("iris.csv")
    if data_path is None and not gfile.Exists(path):
        found = _from_sklearn()
        if found is not None:
            return found
    _check(path, "iris.csv", "150,4,setosa,versicolor,virginica")
    return load_csv_with_header(path, target_dtype=np.int64, features_dtype=np.float64)


def load_boston(data_path: str | None = None) -> Dataset:
    """506 tracts of Boston: 13 features and the price of a house, float64.

    From `data_path`, by default `~/.tenfold/datasets/boston_house_prices.csv` (the format of `load_csv_with_header`).
    Raises FileNotFoundError.
    """
    path = data_path or _default("boston_house_prices.csv")
    _check(path, "boston_house_prices.csv", "506,13")
    return load_csv_with_header(path, target_dtype=np.float64, features_dtype=np.float64)


def _default(name: str) -> str:
    return os.path.expanduser(os.path.join(FOLDER, name))


def _check(path: str, name: str, header: str) -> None:
    if not gfile.Exists(path):
        raise FileNotFoundError(
            f"{path} is missing. Tenfold downloads no data sets: put {name} there, as it lies in TensorFlow 1's "
            f"contrib/learn/python/learn/datasets/data (its first line begins with {header}), or give `data_path`"
        )


def _from_sklearn() -> Dataset | None:
    try:
        from sklearn import datasets
    except ImportError:
        return None
    found = datasets.load_iris()
    return Dataset(data=np.asarray(found.data, np.float64), target=np.asarray(found.target, np.int64))


def retry(
    initial_delay: float,
    max_delay: float,
    factor: float = 2.0,
    jitter: float = 0.25,
    is_retriable: Callable[[Exception], bool] | None = None,
) -> Any:
    """A decorator: calls a function again while it fails, after growing delays. Raises ValueError."""
    if factor < 1:
        raise ValueError(f"factor must be >= 1; was {factor:f}")
    if jitter >= 1:
        raise ValueError(f"jitter must be < 1; was {jitter:f}")

    def delays() -> Iterator[float]:
        delay = initial_delay
        while delay <= max_delay:
            yield delay * random.uniform(1 - jitter, 1 + jitter)
            delay *= factor

    def wrap(function: Any) -> Any:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            for delay in delays():
                try:
                    return function(*args, **kwargs)
                except Exception as error:
                    if is_retriable is None:
                        continue
                    if not is_retriable(error):
                        raise
                    time.sleep(delay)
            return function(*args, **kwargs)

        return wrapped

    return wrap


def maybe_download(filename: str, work_directory: str, source_url: str) -> str:
    """The path of a file that is in the folder already. Raises FileNotFoundError, which says where to get it."""
    path = os.path.join(work_directory, filename)
    if not gfile.Exists(path):
        raise FileNotFoundError(f"{path} is missing. Tenfold downloads no data sets: fetch it from {source_url}")
    return path


def urlretrieve_with_retry(url: str, filename: str | None = None) -> Any:
    """Raises FileNotFoundError: nothing is downloaded."""
    raise FileNotFoundError(f"Tenfold downloads no data sets: fetch {url} to {filename or 'a file'} yourself")
