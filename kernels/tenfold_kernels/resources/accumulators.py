"""Conditional accumulators: gradients are summed up until enough have come, then taken as one and the step goes on.

A synchronous machine under one lock. A gradient older than the accumulator's global step is dropped without a word;
a taker waits in line until `num_required` have come, and each take moves the global step on by one. A dense gradient
is an array, a sparse one is (indices [K], values [K, ...]). SyncReplicasOptimizer stands on this. Used by
cpu/data_flow_accumulator.py. Follows conditional_accumulator_base.cc and {,sparse_}conditional_accumulator.h.

Beyond TensorFlow: a chief of ours that comes back adds an offset to all steps (tenfold_core/chief_generation.py), so
that gradients of its former generation are old. A TensorFlow client that starts afterwards knows of no offset. Its op
was built after the generation began, which tells it from one built before: its step counts as one of the new one.
"""

from __future__ import annotations

import itertools
import math
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_core import chief_generation, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.arrays import invalid, shape_text, truncated_quotient
from tenfold_kernels.resources.queues import shape_text as partial_text
from tenfold_kernels.resources.waiting import GRADIENTS, Lack, Waiting

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core.dtypes import DType
    from tenfold_kernels.resources.quota import Account

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_moments = itertools.count(1)


def moment() -> int:
    """Now, in the order of all moments asked for: when an op was built, or a generation of the chief began. Never 0."""
    return next(_moments)


class Accumulator(ABC):
    """What both kinds share: counting, dropping, waiting. No method blocks."""

    def __init__(
        self, name: str, dtype: DType, shape: TensorShape, reduction: str, account: Account | None = None
    ) -> None:
        """`reduction` is "MEAN" or "SUM"; `shape` is what every gradient must be compatible with. `account` is charged
        for the sum; None: nobody counts it."""
        self.name, self.dtype, self.shape, self.reduction = name, dtype, shape, reduction
        self.account = account
        self._lock = threading.Lock()
        self._global_step = 0
        #: What the chief's generation adds to its steps, and the moment when it began.
        self._offset, self._began = 0, 0
        #: Whether a generation is about to begin: nothing is accepted.
        self._closed = False
        #: Gradients since the last take.
        self._count = 0
        #: Who waits, first come first served: where the result goes → gradients required.
        self._takers: OrderedDict[Waiting, int] = OrderedDict()

    @property
    def count(self) -> int:
        """Gradients that have come since the last take."""
        return self._count

    def set_global_step(self, step: int) -> None:
        """Gradients of earlier steps are dropped from now on."""
        with self._lock:
            if self._closed:
                self._offset, self._began = chief_generation.offset_of(step), moment()
            self._closed = chief_generation.closes(step)
            self._global_step = step

    def take(self, required: int) -> Any:
        """The reduced gradient once `required` have come: the outputs, or a Waiting. Raises InvalidArgumentError."""
        if required <= 0:
            raise invalid(f"Argument num_required must be positive, but was {required}")
        with self._lock:
            if not self._takers and self._count >= required:
                return self._take()
            waiting = Waiting(lambda: self._leave(waiting))
            waiting.lack = lambda: self._lack(required)
            self._takers[waiting] = required
        return waiting

    def _lack(self, required: int) -> Lack:
        there = self._count
        return Lack(GRADIENTS, self.name, there, required, f"{there} of {required} gradients have come")

    def _apply(self, local_step: int, gradient: Any, built: int) -> None:
        with self._lock:
            if local_step < chief_generation.STRIDE and built > self._began:
                local_step += self._offset
            if self._closed or local_step < self._global_step:
                return
            self._check(gradient)
            account = self.account
            if account is not None:
                # a sum of slices grows by all of them at most
                account.check(self._bytes_more(gradient))
            if self._count:
                self._add(gradient)
            else:
                self._set(gradient)
            if account is not None:
                account.add(self._bytes() - account.bytes)
            self._count += 1
            served = self._serve()
        for waiting, outputs in served:
            waiting.deliver(outputs)

    def _serve(self) -> list[tuple[Waiting, Any]]:
        served = []
        while self._takers:
            waiting, required = next(iter(self._takers.items()))
            if waiting.is_open and self._count < required:
                break
            del self._takers[waiting]
            if waiting.claim():
                served.append((waiting, self._take()))
        return served

    def _leave(self, waiting: Waiting) -> None:
        with self._lock:
            self._takers.pop(waiting, None)
            served = self._serve()
        for other, outputs in served:
            other.deliver(outputs)

    def _take(self) -> Any:
        self._global_step += 1
        outputs = self._reduced()
        self._count = 0
        if self.account is not None:
            self.account.add(-self.account.bytes)
        return outputs

    # -- what differs ------------------------------------------------------------------------------------------------

    @abstractmethod
    def _check(self, gradient: Any) -> None:
        """Raises InvalidArgumentError for a gradient that does not fit."""

    @abstractmethod
    def _set(self, gradient: Any) -> None:
        """It is the first of a sum."""

    @abstractmethod
    def _add(self, gradient: Any) -> None:
        """It is another one."""

    @abstractmethod
    def _reduced(self) -> Any:
        """The outputs, which are held nowhere else."""

    @abstractmethod
    def _bytes(self) -> int:
        """Of the sum, once there is one."""

    @abstractmethod
    def _bytes_more(self, gradient: Any) -> int:
        """By how much the sum grows with the gradient, at most."""


class DenseAccumulator(Accumulator):
    """Sums arrays of one shape."""

    _sum: Array

    def apply(self, local_step: int, gradient: Array, built: int = 0) -> None:
        """Adds a gradient of `local_step`, unless it is stale. The array is read only.

        `built` is the `moment` at which the op was built that brings it.
        """
        self._apply(local_step, gradient, built)

    def _check(self, gradient: Array) -> None:
        wanted = TensorShape(self._sum.shape) if self._count else self.shape
        if self._count and self._sum.shape != gradient.shape:
            raise _mismatch(wanted, gradient)
        if not self.shape.is_compatible_with(TensorShape(gradient.shape)):
            raise _mismatch(self.shape, gradient)

    def _set(self, gradient: Array) -> None:
        self._sum = gradient.copy()

    def _add(self, gradient: Array) -> None:
        self._sum += gradient

    def _bytes(self) -> int:
        return self._sum.nbytes

    def _bytes_more(self, gradient: Array) -> int:
        return 0 if self._count else gradient.nbytes

    def _reduced(self) -> Array:
        total, self._sum = self._sum, np.empty(0)
        return _divided(total, self._count) if self.reduction == "MEAN" else total


class SparseAccumulator(Accumulator):
    """Sums slices by index. Indices of one gradient are expected sorted and without repetition."""

    _indices: Array
    _values: Array
    #: How many gradients had each index.
    _counts: Array

    def __init__(
        self,
        name: str,
        dtype: DType,
        shape: TensorShape,
        reduction: str,
        walk: Callable[..., int] | None = None,
        account: Account | None = None,
    ) -> None:
        """`walk` does what `walk_in_step` does, which is what runs without it."""
        super().__init__(name, dtype, shape, reduction, account)
        self._walk = walk or walk_in_step

    def apply(self, local_step: int, indices: Array, values: Array, shape: Array | None, built: int = 0) -> None:
        """Adds a gradient of `local_step`, unless it is stale; `shape` is the dense shape where it is known.

        `built` as in DenseAccumulator.
        """
        self._apply(local_step, (indices, values, shape), built)

    def _check(self, gradient: tuple[Array, Array, Array | None]) -> None:
        indices, values, shape = gradient
        if indices.ndim != 1:
            raise invalid(f"Input indices should be vector but received shape: {shape_text(indices.shape)}")
        if not values.ndim:
            raise invalid("Values cannot be 0-dimensional.")
        if len(values) != len(indices):
            raise invalid(f"Expected {len(indices)} non-empty input values, got {len(values)}")
        declared = [] if self.shape.ndims is None else self.shape.as_list()
        if shape is not None:
            if len(declared) > shape.size:
                text = f"expected shape rank at least {len(declared)}, got {shape.size}"
                raise invalid(f"Shape mismatch: {text}")
            for axis, size in enumerate(declared):
                if size is not None and size != shape[axis]:
                    raise invalid(f"Shape mismatch: expected shape dim {axis} to be {size}, got {shape[axis]}")
        if declared and declared[0] is not None:
            beyond = np.flatnonzero(indices >= declared[0])
            if beyond.size:
                slice_ = int(beyond[0])
                raise invalid(
                    f"Shape mismatch: index of slice {slice_} exceeded limits of shape; "
                    f"index is {indices[slice_]} exceeded {declared[0]}"
                )
        if self._count:
            wanted: list[int | None] = list(self._values.shape)
            if len(wanted) != values.ndim:
                raise invalid(f"Shape mismatch: expected values rank {len(wanted)}, got {values.ndim}")
        else:
            wanted = declared
            if len(wanted) > values.ndim:
                raise invalid(f"Shape mismatch: expected values rank at least {len(wanted)}, got {values.ndim}")
        for axis, size in enumerate(wanted):
            if axis and size is not None and size != values.shape[axis]:
                text = f"expected values dim {axis} to be {size}, got {values.shape[axis]}"
                raise invalid(f"Shape mismatch: {text}")

    def _set(self, gradient: tuple[Array, Array, Array | None]) -> None:
        indices, values, _ = gradient
        self._indices, self._values = indices.copy(), values.copy()
        self._counts = np.ones(len(indices), dtype=np.int64)

    def _add(self, gradient: tuple[Array, Array, Array | None]) -> None:
        indices, values, _ = gradient
        limit, row = len(self._indices) + len(indices), values.shape[1:]
        merged, counts = np.empty(limit, np.int64), np.empty(limit, np.int64)
        total = np.empty((limit, *row), self._values.dtype)
        width = math.prod(row)
        rows = self._walk(
            self._indices,
            self._values.reshape(len(self._values), width),
            self._counts,
            np.ascontiguousarray(indices),
            np.ascontiguousarray(values).reshape(len(values), width),
            merged,
            total.reshape(limit, width),
            counts,
        )
        self._indices, self._values, self._counts = merged[:rows], total[:rows], counts[:rows]

    def _bytes(self) -> int:
        return self._indices.nbytes + self._values.nbytes + self._counts.nbytes

    def _bytes_more(self, gradient: tuple[Array, Array, Array | None]) -> int:
        indices, values, _ = gradient
        return 2 * indices.nbytes + values.nbytes

    def _reduced(self) -> tuple[Array, Array, Array]:
        values = self._values
        if self.reduction == "MEAN":
            values = _divided(values, self._counts.reshape(-1, *(1,) * (values.ndim - 1)))
        declared = [] if self.shape.ndims is None else self.shape.as_list()
        first = -1 if not declared or declared[0] is None else declared[0]
        shape = np.array([first, *values.shape[1:]], dtype=np.int64)
        return self._indices, values, shape


def walk_in_step(
    ours_N: Array,
    sums_NW: Array,
    counts_N: Array,
    theirs_M: Array,
    values_MW: Array,
    idx_K: Array,
    out_KW: Array,
    times_K: Array,
) -> int:
    """Adds a sparse gradient (theirs, values) to a sum (ours, sums, how often each index came); K is N + M.

    Fills `idx`, `out` and `times` with the new sum, of the indices of both in the order of `merge`, and returns how
    many rows it has.
    """
    ours, theirs, merged = merge(ours_N, theirs_M)
    mine, other, rows = ours >= 0, theirs >= 0, len(merged)
    out_KW[:rows], times_K[:rows], idx_K[:rows] = 0, 0, merged
    out_KW[:rows][mine] = sums_NW[ours[mine]]
    times_K[:rows][mine] = counts_N[ours[mine]]
    out_KW[:rows][other] += values_MW[theirs[other]]
    times_K[:rows][other] += 1
    return rows


def merge(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """(row of `a` or -1, row of `b` or -1, index) of each row of the sum of two sparse gradients.

    Sorted inputs give the sorted union; others what walking both in step gives, as in TensorFlow.
    """
    if (np.diff(a) > 0).all() and (np.diff(b) > 0).all():
        merged = np.union1d(a, b)
        return _rows_in(a, merged), _rows_in(b, merged), merged
    rows: list[tuple[int, int]] = []
    i = j = 0
    while i < len(a) and j < len(b):
        rows.append((i if a[i] <= b[j] else -1, j if b[j] <= a[i] else -1))
        i, j = i + (rows[-1][0] >= 0), j + (rows[-1][1] >= 0)
    rows.extend((row, -1) for row in range(i, len(a)))
    rows.extend((-1, row) for row in range(j, len(b)))
    table = np.array(rows, dtype=np.int64).reshape(-1, 2)
    ours, theirs = table[:, 0], table[:, 1]
    indices = [a[x] if x >= 0 else b[y] for x, y in rows]
    return ours, theirs, np.array(indices, dtype=np.int64)


def _rows_in(part: Array, whole: Array) -> Array:
    rows = np.full(len(whole), -1, dtype=np.int64)
    rows[np.searchsorted(whole, part)] = np.arange(len(part))
    return rows


def _divided(total: Array, count: Any) -> Array:
    """`total / count` in the type of `total`; integers are cut off towards zero."""
    if np.issubdtype(total.dtype, np.integer):
        divisor = np.asarray(count).astype(total.dtype)
        return np.asarray(truncated_quotient(total, divisor), dtype=total.dtype)
    return np.asarray(total / np.asarray(count).astype(total.dtype), dtype=total.dtype)


def _mismatch(wanted: TensorShape, gradient: Array) -> errors.OpError:
    return invalid(f"Shape mismatch: expected {partial_text(wanted)}, got {shape_text(gradient.shape)}")
