"""What tests of datasets share: functions that are Python's, small sources, what a machine and what a step gives."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.datasets.core import Dataset, Machine, Run
from tenfold_kernels.resources.datasets.functional import Map
from tenfold_kernels.resources.datasets.sources import Range
from tenfold_kernels.resources.tensor_variants import TensorVariant
from tenfold_kernels.resources.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_kernels.registry import ByRows

INT, SCALAR = (dtypes.int64,), (TensorShape([]),)
ANY = (TensorShape(None),)
#: A test waits so long for another thread, at most.
SOON_S = 20.0


class Called:
    """A function of a graph's library: calls Python."""

    def __init__(self, body: Callable[..., Any], stateful_op: str | None = None) -> None:
        self._body, self._stateful_op = body, stateful_op

    def start(self, values: Sequence[Any]) -> Any:
        result = self._body(*values)
        if isinstance(result, Waiting):
            return result
        return [np.asarray(v) for v in (result if isinstance(result, tuple) else (result,))]

    def __call__(self, values: Sequence[Any]) -> Any:
        return self.start(values)

    def by_rows(self, ranks: Sequence[tuple[int, bool]]) -> ByRows | None:
        return None

    def stateful_op(self) -> str | None:
        return self._stateful_op


class AtOnce(Called):
    """The same for a block of elements too, by a function of all their values."""

    def __init__(self, body: Callable[..., Any], rows: Callable[..., Any], is_sure: bool = True) -> None:
        super().__init__(body)
        self.is_sure, self._rows = is_sure, rows

    def by_rows(self, ranks: Sequence[tuple[int, bool]]) -> ByRows | None:
        return _Rows(self._rows, self.is_sure)


class _Rows:
    def __init__(self, rows: Callable[..., Any], is_sure: bool) -> None:
        self.is_sure, self._rows = is_sure, rows

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        return [self._rows(*values)]


def numbers(stop: int) -> Dataset:
    return Range(INT, SCALAR, 0, stop, 1)


def mapped(dataset: Dataset, body: Callable[..., Any]) -> Dataset:
    return Map(INT, ANY, dataset, Called(body), ())


def plain(element: Any) -> Any:
    """One component as a number or a list, several as a tuple of them; of variants what they hold."""
    found = [_values(array) for array in element]
    return found[0] if len(found) == 1 else tuple(found)


def _values(array: Any) -> Any:
    if array.size and all(isinstance(item, TensorVariant) for item in array.flat):
        return [item.value.tolist() for item in array.flat]
    return array.tolist()


def drained(dataset: Dataset | Machine, most: int = 100) -> list[Any]:
    machine = dataset.iterate(Run()) if isinstance(dataset, Dataset) else dataset
    out: list[Any] = []
    while len(out) < most and (element := machine()) is not None:
        assert all(type(a) is np.ndarray for a in element)
        out.append(plain(element))
    assert len(out) == most or machine() is None, "an end is the end"
    return out


def told(machine: Machine, most: int = 40) -> list[Any]:
    """Elements, and in their places the messages of errors, until the end."""
    found: list[Any] = []
    while len(found) < most:
        try:
            element = machine()
        except errors.InvalidArgumentError as error:
            found.append(error.message)
            continue
        if element is None:
            break
        found.append(plain(element))
    return found


def failing(*at: int) -> Any:
    """A function of an element that gives it back, and an error at these."""

    def body(n: Any) -> Any:
        if n in at:
            raise errors.InvalidArgumentError(None, None, f"no {n}")
        return n

    return body


def ints(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


def one(value: Any) -> np.ndarray[Any, Any]:
    return np.array(value, np.int64)


def result(answer: Any) -> Any:
    """What a step gets. Fails the test where nothing comes."""
    if not isinstance(answer, Waiting):
        return answer
    over, found = threading.Event(), list[Any]()

    def done(outputs: Any, error: errors.OpError | None) -> None:
        found.extend((outputs, error))
        over.set()

    answer.listen(done)
    assert over.wait(SOON_S), "the step was not completed"
    if found[1] is not None:
        raise found[1]
    return found[0]
