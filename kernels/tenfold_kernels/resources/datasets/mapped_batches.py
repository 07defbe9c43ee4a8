"""Batches of a map that are one dataset: an element that fails takes its whole batch with it, and no other.

Used by cpu/dataset.py. Follows map_and_batch_dataset_op.cc in what a program sees; the map itself is in parallel.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_kernels.arrays import invalid, shape_text
from tenfold_kernels.resources.datasets.batches import Batch
from tenfold_kernels.resources.datasets.core import Machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_kernels.resources.datasets.core import Array, Element, Run


class MapAndBatch(Batch):
    """As Batch, but where an element fails, the rest of its batch is made and left: the next one begins where it would.

    Where an element of a Batch fails, the next batch begins behind that element.
    """

    def iterate(self, run: Run) -> Machine:
        source, size = self._input.iterate(run), self._size
        #: Elements of this batch that were asked for, those that failed among them.
        taken: int

        def one() -> Element | None:
            nonlocal taken
            taken += 1
            return source.following()

        def several(most: int) -> Element | None:
            nonlocal taken
            assert source.block is not None
            taken += 1  # what fails here is one element
            rows = source.block(most)
            taken += len(rows[0]) - 1 if rows is not None else -1
            return rows

        batches = self._batches(
            Machine(one, source.save, source.restore, None if source.block is None else several), run
        )

        def following() -> Element | None:
            nonlocal taken
            taken = 0
            try:
                return batches.following()
            except errors.CancelledError:
                raise
            except errors.OpError:
                self._leave(source, size - taken, run)
                raise

        return Machine(following, batches.save, batches.restore)

    @staticmethod
    def _leave(source: Machine, count: int, run: Run) -> None:
        for _ in range(count):
            run.check()
            try:
                if source.following() is None:
                    return
            except errors.CancelledError:
                raise
            except errors.OpError:
                continue  # the first error is the batch's

    def _join(self, number: int, arrays: Sequence[Array]) -> Array:
        for array in arrays:
            if array.size != arrays[0].size:
                raise invalid(
                    "Cannot add tensor to the batch: number of elements does not match. Shapes are: [tensor]: "
                    f"{shape_text(array.shape)}, [batch]: {shape_text(arrays[0].shape)}"
                )
        return super()._join(number, arrays)
