"""Datasets that group elements by a key that a function gives them: windows of one key, and reductions of each key.

Used by cpu/dataset_experimental.py. Follows group_by_window_dataset_op.cc and group_by_reducer_dataset_op.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tenfold_core import dtypes
from tenfold_kernels.arrays import invalid
from tenfold_kernels.resources.datasets.core import INFINITE, UNKNOWN, Dataset, Element, Machine, Run, State, dataset_of
from tenfold_kernels.resources.datasets.functional import check_outputs
from tenfold_kernels.resources.datasets.sources import Listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape
    from tenfold_kernels.registry import Function


class Bound(NamedTuple):
    """A function and the values that it captured, which come last."""

    function: Function
    captured: Element

    def call(self, run: Run, *values: Any) -> Element:
        return run.call(self.function, (*values, *self.captured))


def key_of(run: Run, function: Bound, element: Element) -> int:
    """Raises InvalidArgumentError for anything but one int64."""
    result = function.call(run, *element)
    if len(result) != 1 or result[0].ndim or result[0].dtype != dtypes.int64.as_numpy_dtype:
        raise invalid("`key_func` must return a scalar int64.")
    return int(result[0])


class GroupByWindow(Dataset):
    """For each window of elements with one key, the elements of the dataset that a function makes of it.

    How many elements a window of a key has is what another function says of the key, when it is first met.
    """

    is_slow = True

    def __init__(
        self,
        types: Sequence[DType],
        shapes: Sequence[TensorShape],
        dataset: Dataset,
        key: Bound,
        reduce: Bound,
        size: Bound,
    ) -> None:
        super().__init__(types, shapes, dataset)
        self._input, self._key, self._reduce, self._size = dataset, key, reduce, size
        self.functions = (key.function, reduce.function, size.function)

    def iterate(self, run: Run) -> Machine:
        source = self._input.iterate(run)
        # Both by key; a key without elements is in `sizes` alone. What is left at the end is closed in the keys' order.
        groups: dict[int, list[Element]] = {}
        sizes: dict[int, int] = {}
        current: Machine | None = None
        #: What `current` was made of.
        made_of: tuple[int, list[Element]]
        is_over = False

        def open_window(key: int, elements: list[Element]) -> Machine:
            window = Listed(self._input.types, self._input.shapes, elements)
            result = self._reduce.call(run, _scalar(key), window.as_array())
            check_outputs("reduce_func", len(result), 1)
            return dataset_of(result[0]).iterate(run)

        def close(key: int) -> None:
            nonlocal current, made_of
            made_of = key, groups.pop(key)
            sizes.pop(key, None)
            current = open_window(*made_of)

        def following() -> Element | None:
            nonlocal current, is_over
            while True:
                run.check()
                if current is not None:
                    element = current.following()
                    if element is not None:
                        return element
                    current = None
                if is_over:
                    if not groups:
                        return None
                    close(min(groups))
                    continue
                element = source.following()
                if element is None:
                    is_over = True
                    continue
                key = key_of(run, self._key, element)
                if key not in sizes:
                    sizes[key] = self._size_of(run, key)
                group = groups.setdefault(key, [])
                group.append(element)
                if len(group) == sizes[key]:
                    close(key)

        def save() -> State:
            opened = None if current is None else (*made_of, current.save())
            return [list(groups.items()), list(sizes.items()), opened, is_over, source.save()]

        def restore(state: Any) -> None:
            nonlocal current, made_of, is_over
            groups.clear()
            sizes.clear()
            groups.update((key, [tuple(element) for element in elements]) for key, elements in state[0])
            sizes.update((key, size) for key, size in state[1])
            current, is_over = None, state[3]
            if state[2] is not None:
                key, elements, inner = state[2]
                made_of = key, [tuple(element) for element in elements]
                current = open_window(*made_of)
                current.restore(inner)
            source.restore(state[4])

        return Machine(following, save, restore)

    def _size_of(self, run: Run, key: int) -> int:
        result = self._size.call(run, _scalar(key))
        if len(result) != 1 or result[0].ndim or result[0].dtype != dtypes.int64.as_numpy_dtype:
            raise invalid("`window_size_func` must return a scalar int64.")
        size = int(result[0])
        if size <= 0:
            raise invalid(f"Window size must be greater than zero, but got {size}.")
        return size

    def cardinality(self) -> int:
        count = self._input.cardinality()
        return count if count in (0, INFINITE) else UNKNOWN


class GroupByReducer(Dataset):
    """One element for each key, in the order in which keys were first met: a state that has seen all its elements."""

    is_slow = True

    def __init__(
        self,
        types: Sequence[DType],
        shapes: Sequence[TensorShape],
        dataset: Dataset,
        key: Bound,
        init: Bound,
        reduce: Bound,
        finalize: Bound,
    ) -> None:
        super().__init__(types, shapes, dataset)
        self._input, self._key = dataset, key
        self._init, self._reduce, self._finalize = init, reduce, finalize
        self.functions = tuple(each.function for each in (key, init, reduce, finalize))

    def iterate(self, run: Run) -> Machine:
        source = self._input.iterate(run)
        states: dict[int, Element] = {}
        #: The keys of `states`, once there will be no more.
        keys: list[int] = []
        is_over, given = False, 0

        def following() -> Element | None:
            nonlocal is_over, given
            while not is_over:
                run.check()
                element = source.following()
                if element is None:
                    is_over = True
                    break
                key = key_of(run, self._key, element)
                if key not in states:
                    states[key] = self._init.call(run, _scalar(key))
                states[key] = self._reduce.call(run, *states[key], *element)
            if given == len(states):
                return None
            if not keys:
                keys.extend(states)
            given += 1
            return self._finalize.call(run, *states[keys[given - 1]])

        def restore(state: Any) -> None:
            nonlocal is_over, given
            states.clear()
            keys.clear()
            states.update((key, tuple(held)) for key, held in state[0])
            is_over, given = state[1], state[2]
            source.restore(state[3])

        return Machine(following, lambda: [list(states.items()), is_over, given, source.save()], restore)


def _scalar(key: int) -> Any:
    return np.array(key, np.int64)
