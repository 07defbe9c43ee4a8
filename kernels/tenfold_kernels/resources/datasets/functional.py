"""Datasets that call a function for each element: map, filter, flat_map, interleave.

The calls are made one after the other, in order, on the thread that asks for an element; prefetch.py works ahead.
Used by cpu/dataset_transforms.py. Follows map_dataset_op.cc, filter_dataset_op.cc, interleave_dataset_op.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_kernels.resources.datasets.core import UNKNOWN, Dataset, Element, Like, Machine, Run, dataset_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape
    from tenfold_kernels.registry import Function


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
    ) -> None:
        super().__init__(types, shapes, dataset)
        self._input, self._function, self._captured, self._keeps = dataset, function, captured, keeps_count

    def iterate(self, run: Run) -> Machine:
        source = self._input.iterate(run)

        def following() -> Element | None:
            element = source()
            if element is None:
                return None
            try:
                return run.call(self._function, [*element, *self._captured])
            except errors.OutOfRangeError as error:
                if not self._keeps:
                    return None  # a function may say that this is the end
                raise errors.InvalidArgumentError(
                    None, None, f"Function invocation produced OutOfRangeError: {error.message}"
                ) from None

        return following

    def cardinality(self) -> int:
        return self._input.cardinality() if self._keeps else UNKNOWN


class Filter(Like):
    """The elements for which the function says true."""

    is_slow = True

    def __init__(self, dataset: Dataset, function: Function, captured: Element) -> None:
        super().__init__(dataset)
        self._function, self._captured = function, captured

    def iterate(self, run: Run) -> Machine:
        source = self.input.iterate(run)

        def following() -> Element | None:
            while (element := source()) is not None:
                run.check()
                result = run.call(self._function, [*element, *self._captured])
                if len(result) != 1 or result[0].dtype != bool or result[0].size != 1:
                    raise errors.InvalidArgumentError(
                        None, None, "Filter predicate `f` must return a scalar bool tensor."
                    )
                if result[0].reshape(())[()]:
                    return element
            return None

        return following


class LastIsTrue(Dataset):
    """The elements whose last component is true, without it."""

    is_slow = True

    def __init__(self, types: Sequence[DType], shapes: Sequence[TensorShape], dataset: Dataset) -> None:
        super().__init__(types, shapes, dataset)
        self._input = dataset

    def iterate(self, run: Run) -> Machine:
        source = self._input.iterate(run)

        def following() -> Element | None:
            while (element := source()) is not None:
                run.check()
                if bool(element[-1].reshape(-1)[0]):
                    return element[:-1]
            return None

        return following


class Interleave(Dataset):
    """A dataset for each element; `cycle` of them are open, and each gives `block` elements in its turn.

    With a cycle of 1 this is flat_map.
    """

    is_slow = True

    def __init__(
        self,
        types: Sequence[DType],
        shapes: Sequence[TensorShape],
        dataset: Dataset,
        function: Function,
        captured: Element,
        cycle: int = 1,
        block: int = 1,
    ) -> None:
        super().__init__(types, shapes, dataset)
        for name, value in (("cycle_length", cycle), ("block_length", block)):
            if value <= 0:
                raise errors.InvalidArgumentError(None, None, f"`{name}` must be > 0")
        self._input, self._function, self._captured = dataset, function, captured
        self._cycle, self._block = cycle, block

    def iterate(self, run: Run) -> Machine:
        source = self._input.iterate(run)
        # Slots are made as they are needed: the cycle's length is what a program says.
        slots: list[Machine | None] = []
        at = given = 0
        is_over = False

        def turn() -> None:
            nonlocal at, given
            at, given = (at + 1) % self._cycle, 0

        def following() -> Element | None:
            nonlocal given, is_over
            while not is_over or any(slot is not None for slot in slots):
                run.check()
                current = slots[at] if at < len(slots) else None
                if current is not None:
                    element = current()
                    if element is None:
                        slots[at] = None
                        turn()
                        continue
                    given += 1
                    if given == self._block:
                        turn()
                    return element
                if is_over:
                    turn()
                    continue
                argument = source()
                if argument is None:
                    is_over = True
                    continue
                (inner,) = run.call(self._function, [*argument, *self._captured])
                if at == len(slots):
                    slots.append(None)
                slots[at] = dataset_of(inner).iterate(run)
            return None

        return following
