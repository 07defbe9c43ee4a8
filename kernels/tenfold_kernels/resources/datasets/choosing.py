"""Datasets that leave elements out by what they are or by chance: those met before, and a sample.

Used by cpu/dataset_experimental.py. Follows unique_dataset_op.cc and sampling_dataset_op.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold_kernels.arrays import invalid
from tenfold_kernels.philox import to_float
from tenfold_kernels.resources.datasets.core import Array, Dataset, Element, Like, Machine, Run
from tenfold_kernels.resources.datasets.shuffle_buffer import Numbers


class Unique(Like):
    """The elements, each value once. They have one component, of integers or strings."""

    def __init__(self, dataset: Dataset) -> None:
        super().__init__(dataset)
        if len(dataset.types) != 1:
            raise invalid("UniqueDataset only supports inputs with a single component.")
        if dataset.types[0].name not in ("int32", "int64", "string"):
            raise invalid(
                f"UniqueDataset only supports inputs with a single `tf.int32`, `tf.int64`, or `tf.string` component, "
                f"got {dataset.types[0].name}."
            )

    def iterate(self, run: Run) -> Machine:
        source = self.input.iterate(run)
        seen: dict[Any, Array] = {}

        def following() -> Element | None:
            while (element := source.following()) is not None:
                run.check()
                key = _key(element[0])
                if key not in seen:
                    seen[key] = element[0]
                    return element
            return None

        def restore(state: Any) -> None:
            seen.clear()
            seen.update((_key(array), array) for array in state[0])
            source.restore(state[1])

        return Machine(following, lambda: (list(seen.values()), source.save()), restore)


def _key(array: Array) -> Any:
    if array.dtype == object:
        return array.shape, tuple(array.flat)
    return array.shape, array.tobytes()


class Sampling(Like):
    """Each element with a chance of `rate`."""

    def __init__(self, dataset: Dataset, rate: float, seed: int, seed2: int) -> None:
        super().__init__(dataset)
        self._rate, self._seeds = rate, (seed, seed2)

    def iterate(self, run: Run) -> Machine:
        source = self.input.iterate(run)
        sequence = Numbers(self._seeds)

        def following() -> Element | None:
            while (element := source.following()) is not None:
                run.check()
                if _uniform(sequence.one()) < self._rate:
                    return element
            return None

        def restore(state: Any) -> None:
            nonlocal sequence
            drawn, inner = state
            sequence = Numbers(self._seeds, drawn)
            source.restore(inner)

        return Machine(following, lambda: (sequence.drawn, source.save()), restore)


def _uniform(number: int) -> float:
    return float(to_float(np.array(number, np.uint32)))
