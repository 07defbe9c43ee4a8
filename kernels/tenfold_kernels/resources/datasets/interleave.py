"""Datasets that take turns between datasets: of each element one (flat_map, interleave), or of several that are given.

Used by cpu/dataset*.py. Follows interleave_dataset_op.cc, parallel_interleave_dataset_op.cc and
directed_interleave_dataset_op.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_kernels.arrays import invalid
from tenfold_kernels.resources.datasets.core import INFINITE, UNKNOWN, Dataset, Element, Machine, Run, State, dataset_of
from tenfold_kernels.resources.datasets.prefetch import Prefetch
from tenfold_kernels.resources.datasets.statistics import figures_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape
    from tenfold_kernels.registry import Function


class _Open:
    """One dataset of the cycle, and the element that it was made of; None for one that could not be made."""

    __slots__ = ("argument", "machine")

    def __init__(self, argument: Element | None, machine: Machine) -> None:
        self.argument, self.machine = argument, machine


def _failed(left: list[errors.OpError]) -> _Open:
    """In the place of a dataset that could not be made: one element, which is the error."""

    def following() -> Element | None:
        if left:
            raise left.pop()
        return None

    def restore(state: Any) -> None:
        left[:] = [errors.from_code(int(code), str(message)) for code, message in state]

    return _Open(None, Machine(following, lambda: [(int(error.code), error.message) for error in left], restore))


class Interleave(Dataset):
    """A dataset for each element; `cycle` of them are open, and each gives `block` elements in its turn.

    With a cycle of 1 this is flat_map. `ahead` elements of each that is open are made on other threads. One that has
    ended makes room in its place, which is taken when its turn comes, or at once where `fills_at_once`: that is the
    order of `tf.contrib.data.parallel_interleave`, of which an error is an element in its turn.
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
        ahead: int = 0,
        fills_at_once: bool = False,
    ) -> None:
        super().__init__(types, shapes, dataset)
        for name, value in (("cycle_length", cycle), ("block_length", block)):
            if value <= 0:
                raise invalid(f"`{name}` must be > 0")
        self._input, self._function, self._captured = dataset, function, captured
        self.functions = (function,)
        self._cycle, self._block, self._ahead, self._fills_at_once = cycle, block, ahead, fills_at_once

    def iterate(self, run: Run) -> Machine:
        source = self._input.iterate(run)
        figures = figures_of(run, self, "ParallelInterleaveDatasetV2") if self._ahead else None
        cycle, block, at_once = self._cycle, self._block, self._fills_at_once
        # Slots are made as they are needed: the cycle's length is what a program says.
        slots: list[_Open | None] = []
        at = given = 0
        is_over = False

        def turn() -> None:
            nonlocal at, given
            at, given = (at + 1) % cycle, 0

        def opened(argument: Element) -> _Open:
            result = run.call(self._function, (*argument, *self._captured))
            if len(result) != 1:
                raise invalid(f"`f` must return one dataset, but it returned {len(result)} components.")
            inner = dataset_of(result[0])
            return _Open(argument, Prefetch(inner, self._ahead).iterate(run))

        def next_opened() -> _Open | None:
            nonlocal is_over
            try:
                argument = None if is_over else source.following()
                is_over = argument is None
                return None if argument is None else opened(argument)
            except errors.CancelledError:
                raise
            except errors.OpError as error:
                if not at_once:
                    raise
                return _failed([error])

        def fill(slot: int) -> None:
            made = next_opened()
            if made is None:
                return
            while slot >= len(slots):
                slots.append(None)
            slots[slot] = made

        def given_one() -> None:
            nonlocal given
            given += 1
            if given == block:
                turn()

        def following() -> Element | None:
            if figures is not None:
                figures.scalar("thread_utilization", sum(slot is not None for slot in slots) / cycle)
            while at_once and not is_over and len(slots) < cycle:
                run.check()
                fill(len(slots))
            while not is_over or any(slot is not None for slot in slots):
                run.check()
                current = slots[at] if at < len(slots) else None
                if current is not None:
                    try:
                        element = current.machine.following()
                    except errors.CancelledError:
                        raise
                    except errors.OpError:
                        if at_once:
                            given_one()
                        raise
                    if element is None:
                        slots[at] = None
                        if at_once:
                            fill(at)
                        turn()
                        continue
                    given_one()
                    return element
                if is_over:
                    turn()
                else:
                    fill(at)
            return None

        def save() -> State:
            open_ones = [None if slot is None else (slot.argument, slot.machine.save()) for slot in slots]
            return at, given, is_over, open_ones, source.save()

        def restore(state: Any) -> None:
            nonlocal at, given, is_over
            at, given, is_over, open_ones, inner = state
            slots[:] = [None] * len(open_ones)
            for number, one in enumerate(open_ones):
                if one is not None:
                    slot = slots[number] = _failed([]) if one[0] is None else opened(tuple(one[0]))
                    slot.machine.restore(one[1])
            source.restore(inner)

        return Machine(following, save, restore)


class Directed(Dataset):
    """For each number that the first input gives, an element of the other input of that number.

    With `stops`, it ends with the first input that ends; otherwise those that have ended are passed over.
    """

    def __init__(
        self,
        types: Sequence[DType],
        shapes: Sequence[TensorShape],
        selector: Dataset,
        datasets: Sequence[Dataset],
        stops: bool,
    ) -> None:
        super().__init__(types, shapes, selector, *datasets)
        self._selector, self._datasets, self._stops = selector, tuple(datasets), stops

    def iterate(self, run: Run) -> Machine:
        selector = self._selector.iterate(run)
        sources: list[Machine | None] = [dataset.iterate(run) for dataset in self._datasets]
        is_over = False

        def following() -> Element | None:
            nonlocal is_over
            while not is_over:
                run.check()
                chosen = selector.following()
                if chosen is None:
                    break
                number = int(chosen[0].flat[0])
                if not 0 <= number < len(sources):
                    raise invalid(
                        f"Selector index out of range: {number} >= {len(sources)}"
                        if number >= 0
                        else f"Selector index out of range: {number} < 0"
                    )
                source = sources[number]
                if source is None:
                    continue
                element = source.following()
                if element is not None:
                    return element
                sources[number] = None
                if self._stops or not any(sources):
                    break
            is_over = True
            return None

        def save() -> State:
            return is_over, selector.save(), [None if source is None else (source.save(),) for source in sources]

        def restore(state: Any) -> None:
            nonlocal is_over
            is_over, chosen, inner = state
            selector.restore(chosen)
            for number, one in enumerate(inner):
                sources[number] = machine = None if one is None else self._datasets[number].iterate(run)
                if machine is not None:
                    machine.restore(one[0])

        return Machine(following, save, restore)

    def cardinality(self) -> int:
        """As TensorFlow: the sum where the selector never ends and nothing stops it; else nothing is said."""
        counts = [dataset.cardinality() for dataset in self._datasets]
        if self._selector.cardinality() != INFINITE or UNKNOWN in counts:
            return UNKNOWN
        if self._stops:
            return INFINITE if set(counts) == {INFINITE} else UNKNOWN
        return INFINITE if INFINITE in counts else sum(counts)


class Fastest(Dataset):
    """One of several datasets with the same elements; which does not matter but for speed: the first."""

    def __init__(self, types: Sequence[DType], shapes: Sequence[TensorShape], datasets: Sequence[Dataset]) -> None:
        super().__init__(types, shapes, *datasets)
        counts = {dataset.cardinality() for dataset in datasets}
        if len(counts - {UNKNOWN}) > 1:
            listed = ", ".join(str(dataset.cardinality()) for dataset in datasets)
            raise invalid(
                f"All inputs of ChooseFastestDataset must have the same elements; their numbers are {listed}."
            )

    def iterate(self, run: Run) -> Machine:
        return self.inputs[0].iterate(run)

    def cardinality(self) -> int:
        known = [dataset.cardinality() for dataset in self.inputs if dataset.cardinality() != UNKNOWN]
        return known[0] if known else UNKNOWN
