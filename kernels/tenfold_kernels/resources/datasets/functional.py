"""Datasets that call a function for each element: map, filter, take_while, scan, and a reduction of all of them.

The calls are made one after the other, in order, on the thread that asks for an element; parallel.py makes several at
once, prefetch.py works ahead. A function that works row by row is called once for a block of rows. Used by
cpu/dataset*.py. Follows map_dataset_op.cc, filter_dataset_op.cc, scan_dataset_op.cc and reduce_dataset_op.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_kernels.arrays import invalid
from tenfold_kernels.resources.datasets.core import UNKNOWN, Dataset, Element, Like, Machine, Run, element_of
from tenfold_kernels.resources.datasets.map_blocks import Apart, Blocks
from tenfold_kernels.resources.datasets.statistics import figures_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape
    from tenfold_kernels.registry import ByRows, Function


def call_for_element(run: Run, function: Function, values: Sequence[Any], keeps_count: bool) -> Element | None:
    """The function's outputs. None where it says that this is the end, and may; otherwise that is an error."""
    try:
        return run.call(function, values)
    except errors.OutOfRangeError as error:
        if not keeps_count:
            return None
        raise invalid(f"Function invocation produced OutOfRangeError: {error.message}") from None


class Map(Dataset):
    """What the function makes of each element and the captured values."""

    is_slow = True

    def __init__(
        self,
        types: Sequence[DType],
        shapes: Sequence[TensorShape],
        dataset: Dataset,
        function: Function,
        captured: Element,
        keeps_count: bool = True,
        is_counted: bool | None = None,
    ) -> None:
        """With `keeps_count` false, an OutOfRangeError of the function is the end. `is_counted` says whether the number
        of elements is still told, as release 1.15 does; by default it goes with `keeps_count`.
        """
        super().__init__(types, shapes, dataset)
        self._input, self._function, self._captured, self._keeps = dataset, function, captured, keeps_count
        self.functions = (function,)
        self._is_counted = keeps_count if is_counted is None else is_counted

    def iterate(self, run: Run) -> Machine:
        source = Apart(self._input.iterate(run))
        take, function, captured, keeps = source.following, self._function, self._captured, self._keeps

        def following() -> Element | None:
            element = take()
            if element is None:
                return None
            return call_for_element(run, function, (*element, *captured), keeps)

        mapping = Blocks(source, run, self._at_once, self._captured)
        return Machine(mapping.timed(following), source.save, source.restore, mapping.block)

    def _at_once(self) -> ByRows | None:
        ranks = [shape.ndims for shape in self._input.shapes]
        if None in ranks:
            return None
        of_elements = [(rank, True) for rank in ranks if rank is not None]
        return self._function.by_rows([*of_elements, *((array.ndim, False) for array in self._captured)])

    def cardinality(self) -> int:
        return self._input.cardinality() if self._is_counted else UNKNOWN

    def at(self, index: int, run: Run) -> Element:
        element = self._input.at(index, run)
        found = call_for_element(run, self._function, (*element, *self._captured), keeps_count=True)
        assert found is not None
        return found


class Computed(Dataset):
    """What a function of ours makes of each element."""

    is_slow = True

    def __init__(
        self,
        types: Sequence[DType],
        shapes: Sequence[TensorShape],
        dataset: Dataset,
        function: Callable[[Element], Element],
    ) -> None:
        super().__init__(types, shapes, dataset)
        self._input, self._function = dataset, function

    def iterate(self, run: Run) -> Machine:
        source = self._input.iterate(run)

        def following() -> Element | None:
            element = source.following()
            return None if element is None else element_of(self._function(element))

        return Machine(following, source.save, source.restore)

    def cardinality(self) -> int:
        return self._input.cardinality()


class _Chosen(Like):
    """Elements of the input, by what a function says of each and the captured values."""

    is_slow = True

    def __init__(self, dataset: Dataset, function: Function, captured: Element) -> None:
        super().__init__(dataset)
        self._function, self._captured = function, captured
        self.functions = (function,)

    def _is_wanted(self, run: Run, element: Element) -> bool:
        """Raises InvalidArgumentError for anything but one bool."""
        result = run.call(self._function, (*element, *self._captured))
        if len(result) != 1 or result[0].dtype != bool or result[0].size != 1:
            raise invalid("Filter predicate `f` must return a scalar bool tensor.")
        return bool(result[0].item())


class Filter(_Chosen):
    """The elements for which the function says true."""

    def iterate(self, run: Run) -> Machine:
        source = self.input.iterate(run)
        figures = figures_of(run, self, "FilterDataset")
        counts = {"filtered_elements": 0, "dropped_elements": 0}

        def following() -> Element | None:
            while (element := source.following()) is not None:
                run.check()
                is_kept = self._is_wanted(run, element)
                if figures is not None:
                    name = "filtered_elements" if is_kept else "dropped_elements"
                    counts[name] += 1
                    figures.scalar(name, counts[name])
                if is_kept:
                    return element
            return None

        return Machine(following, source.save, source.restore)


class TakeWhile(_Chosen):
    """The elements before the first one for which the function says false."""

    def iterate(self, run: Run) -> Machine:
        source = self.input.iterate(run)
        is_over = False

        def following() -> Element | None:
            nonlocal is_over
            element = None if is_over else source.following()
            is_over = element is None or not self._is_wanted(run, element)
            return None if is_over else element

        def restore(state: Any) -> None:
            nonlocal is_over
            is_over, inner = state
            source.restore(inner)

        return Machine(following, lambda: (is_over, source.save()), restore)


class LastIsTrue(Dataset):
    """The elements whose last component is true, without it."""

    is_slow = True

    def __init__(self, types: Sequence[DType], shapes: Sequence[TensorShape], dataset: Dataset) -> None:
        super().__init__(types, shapes, dataset)
        self._input = dataset

    def iterate(self, run: Run) -> Machine:
        source = self._input.iterate(run)

        def following() -> Element | None:
            while (element := source.following()) is not None:
                run.check()
                if element[-1].flat[0]:
                    return element[:-1]
            return None

        return Machine(following, source.save, source.restore)


class Scan(Dataset):
    """What the function makes of a state and each element: the next state, and what the dataset gives."""

    is_slow = True

    def __init__(
        self,
        types: Sequence[DType],
        shapes: Sequence[TensorShape],
        dataset: Dataset,
        function: Function,
        initial: Element,
        captured: Element,
        keeps_count: bool = False,
    ) -> None:
        super().__init__(types, shapes, dataset)
        self.functions = (function,)
        self._input, self._function, self._initial = dataset, function, initial
        self._captured, self._keeps = captured, keeps_count

    def iterate(self, run: Run) -> Machine:
        source, state = self._input.iterate(run), self._initial
        count = len(self._initial)

        def following() -> Element | None:
            nonlocal state
            element = source.following()
            if element is None:
                return None
            outputs = call_for_element(run, self._function, (*state, *element, *self._captured), self._keeps)
            if outputs is None:
                return None
            check_outputs("scan_func", len(outputs), count + len(self.types))
            state = outputs[:count]
            return outputs[count:]

        def restore(saved: Any) -> None:
            nonlocal state
            state = tuple(saved[0])
            source.restore(saved[1])

        return Machine(following, lambda: (state, source.save()), restore)

    def cardinality(self) -> int:
        return self._input.cardinality() if self._keeps else UNKNOWN


def check_outputs(name: str, count: int, wanted: int) -> None:
    """Raises InvalidArgumentError for a function that gave another number of tensors than its dataset needs."""
    if count != wanted:
        raise invalid(f"`{name}` must return {wanted} components, but it returned {count}.")


def reduced(dataset: Dataset, run: Run, function: Function, initial: Element, captured: Element) -> Element:
    """The state that is left after the function has seen every element. Blocks until then."""
    state, machine = initial, dataset.iterate(run)
    while (element := machine.following()) is not None:
        run.check()
        outputs = run.call(function, (*state, *element, *captured))
        check_outputs("reduce_func", len(outputs), len(initial))
        state = outputs
    return state


def only_element(dataset: Dataset, run: Run) -> Element:
    """Of a dataset with one element. Raises InvalidArgumentError for none and for more."""
    machine = dataset.iterate(run)
    element = machine.following()
    if element is None:
        raise invalid("Dataset was empty.")
    if machine.following() is not None:
        raise invalid("Dataset had more than one element.")
    return element
