"""TensorArrays and stacks: what loops of control flow v1 keep their steps' tensors in. They live as long as their step.

Nothing here waits or looks anything up: an edge carries the object itself (handles.LocalHandle), so it goes when the
last edge of its step goes. Elements are shared, not copied: within a step an edge's value is never written to. A
gradient array adds up what is written to the same index and reads zeros where nothing was. Used by
cpu/data_flow_array.py. Follows tensor_array.h, tensor_array.cc and stack.h.
"""

from __future__ import annotations

import functools
import itertools
import threading
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_core import errors
from tenfold_core.memory_limits import allow
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.arrays import invalid
from tenfold_kernels.resources.elements import HOST
from tenfold_kernels.resources.queues import shape_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core.dtypes import DType
    from tenfold_kernels.resources.elements import Elements

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: Elements of one array, list or stack. A size comes from the client and must not exhaust the memory by itself.
MAX_ELEMENTS = 1 << 24

_numbers = itertools.count()
_ON_HOST = (np.ndarray, np.generic)


class _Slot:
    """One element that was written, or whose shape is known (a gradient array's)."""

    __slots__ = ("cleared", "read", "shape", "tensor")

    def __init__(self, shape: tuple[int, ...], tensor: Array | None) -> None:
        self.shape = shape
        #: None: zeros of that shape.
        self.tensor = tensor
        self.read = self.cleared = False


class TensorArray:
    """Tensors of one type by index. Thread-safe."""

    def __init__(
        self,
        name: str,
        dtype: DType,
        size: int,
        element_shape: TensorShape,
        *,
        dynamic_size: bool = False,
        clear_after_read: bool = True,
        identical_element_shapes: bool = False,
        is_gradient: bool = False,
        marked_size: int = 0,
        elements: Elements = HOST,
    ) -> None:
        """Raises InvalidArgumentError for a negative size, ResourceExhaustedError for one beyond the limit."""
        if size < 0:
            raise invalid("Size should be >= 0.")
        check_count(size, f"TensorArray {name}")
        self.name, self.dtype, self.size = name, dtype, size
        #: Of the memory that the elements are in.
        self.elements = elements
        self.element_shape = element_shape
        self.dynamic_size = dynamic_size
        self._clear_after_read, self._identical = clear_after_read, identical_element_shapes
        self._is_gradient = is_gradient
        #: A gradient array: what its source was unpacked or split into, which is what it is packed from.
        self._marked_size = marked_size
        self._lock = threading.RLock()
        self._closed = False
        #: Only the indices that something is known of: a size costs no memory.
        self._slots: dict[int, _Slot] = {}
        #: Gradient arrays by source.
        self._gradients: dict[str, TensorArray] = {}
        #: What stands for them on edges, kept by their kernel.
        self.gradient_handles: dict[str, Any] = {}
        #: A shape that goes with `element_shape`, as the last element had it.
        self._fits: tuple[int, ...] | None = None

    @property
    def pack_size(self) -> int:
        """How many elements a pack or concat has."""
        self._check_open()
        return self._marked_size if self._is_gradient else self.size

    def open_size(self) -> int:
        """How many elements it has room for. Raises InvalidArgumentError once it is closed."""
        self._check_open()
        return self.size

    def mark_size(self, size: int) -> None:
        """An unpack or split of `size` elements took place."""
        if not self._is_gradient:
            self._marked_size = size

    def close(self) -> None:
        """Drops the elements; nothing can be read or written any more."""
        with self._lock:
            self._closed = True
            self._slots.clear()
            self.gradient_handles.clear()

    def merge_element_shape(self, shape: TensorShape) -> None:
        """Elements have this shape too. Raises InvalidArgumentError if they cannot."""
        with self._lock:
            self.element_shape, self._fits = merged(self.element_shape, shape), None

    def write(self, index: int, value: Array) -> None:
        """Raises InvalidArgumentError for an index out of range or written already, or another shape or type."""
        with self._lock:
            self._check_open()
            if index < 0 or (not self.dynamic_size and index >= self.size):
                raise self._error(
                    f"Tried to write to index {index} but array is not resizeable and size is: {self.size}"
                )
            if index >= self.size:
                check_count(index + 1, f"TensorArray {self.name}")
                self.size = index + 1
            if value.shape != self._fits:
                self._check_shape(index, TensorShape(value.shape))
                self._fits = value.shape
            slot = self._slots.get(index)
            if slot is None:
                self._slots[index] = _Slot(value.shape, value)
                return
            if slot.read:
                raise self._error(f"Could not write to TensorArray index {index} because it has already been read.")
            if not self._is_gradient:
                raise self._error(
                    f"Could not write to TensorArray index {index} because it has already been written to."
                )
            if slot.shape != value.shape:
                raise self._error(
                    f"Could not aggregate to TensorArray index {index} because the existing shape is "
                    f"{shape_text(TensorShape(slot.shape))} but the new input shape is "
                    f"{shape_text(TensorShape(value.shape))}."
                )
            slot.tensor = value if slot.tensor is None else self.elements.add(slot.tensor, value)

    def _check_shape(self, index: int, shape: TensorShape) -> None:
        if not self.element_shape.is_compatible_with(shape):
            raise self._error(
                f"Could not write to TensorArray index {index} because the value shape is {shape_text(shape)} "
                "which is incompatible with the TensorArray's inferred element shape: "
                f"{shape_text(self.element_shape)} (consider setting infer_shape=False)."
            )
        if self._identical and not self.element_shape.is_fully_defined():
            self.element_shape = shape

    def read(self, index: int) -> Array:
        """The element; of a gradient array zeros where nothing was written. Raises InvalidArgumentError."""
        with self._lock:
            self._check_open()
            if index < 0 or (not self._is_gradient and index >= self.size):
                raise invalid(f"Tried to read from index {index} but array size is: {self.size}")
            slot = self._slots.get(index)
            if slot is None:
                slot = self._unwritten(index)
            if slot.cleared:
                raise self._error(
                    f"Could not read index {index} twice because it was cleared after a previous read "
                    "(perhaps try setting clear_after_read = false?)."
                )
            value = slot.tensor
            if value is None:
                value = self.elements.zeros(slot.shape, self.dtype)
            if self._clear_after_read:
                slot.tensor, slot.cleared = None, True
            slot.read = True
            return value

    def _unwritten(self, index: int) -> _Slot:
        if not self.element_shape.is_fully_defined():
            raise self._error(
                f"Could not read from TensorArray index {index}.  Furthermore, the element shape is not fully "
                f"defined: {shape_text(self.element_shape)}.  It is possible you are working with a resizeable "
                "TensorArray and stop_gradients is not allowing the gradients to be written.  If you set the full "
                "element_shape property on the forward TensorArray, the proper all-zeros tensor will be returned "
                "instead of incurring this error."
            )
        check_count(index + 1, f"TensorArray {self.name}")
        self.size = max(self.size, index + 1)
        slot = self._slots[index] = _Slot(tuple(d or 0 for d in self.element_shape.as_list()), None)
        return slot

    def gradient(self, source: str, shape_to_prepend: tuple[int, ...] | None = None) -> TensorArray:
        """The array of this one's gradients for one call of tf.gradients; from now on this one keeps its size."""
        with self._lock:
            self._check_open()
            self.dynamic_size = False
            found = self._gradients.get(source)
            if found is None:
                found = self._gradients[source] = self._make_gradient(source, shape_to_prepend or ())
            return found

    def _make_gradient(self, source: str, prefix: tuple[int, ...]) -> TensorArray:
        shape = self.element_shape
        if prefix and shape.ndims is not None:
            shape = TensorShape([*prefix, *shape.as_list()])
        gradient = TensorArray(
            f"{self.name}@{source}",
            self.dtype,
            self.size,
            shape,
            identical_element_shapes=self._identical,
            is_gradient=True,
            marked_size=self._marked_size,
            elements=self.elements,
        )
        gradient._slots = {index: _Slot((*prefix, *slot.shape), None) for index, slot in self._slots.items()}
        return gradient

    def _check_open(self) -> None:
        if self._closed:
            raise invalid(f"TensorArray {self.name} has already been closed.")

    def _error(self, text: str) -> errors.OpError:
        return invalid(f"TensorArray {self.name}: {text}")


class Stack:
    """Last in, first out. Thread-safe."""

    def __init__(self, name: str, dtype: DType, max_size: int) -> None:
        """A negative `max_size` means no limit but MAX_ELEMENTS."""
        self.name, self.dtype = name, dtype
        self._max_size = max_size
        self._lock = threading.Lock()
        self._closed = False
        self._elements: list[Array] = []
        #: Below them: scalars that a compiled loop has pushed.
        self._scalars: Array = _none_of(dtype)

    def push(self, value: Array) -> None:
        """Raises InvalidArgumentError when it is full or closed."""
        with self._lock:
            self._check_open()
            count = self._scalars.size + len(self._elements)
            if 0 <= self._max_size <= count:
                raise invalid(f"Stack[{self.name}] overflowed its max_size ({self._max_size})")
            check_count(count + 1, f"Stack[{self.name}]")
            self._elements.append(value)

    def pop(self) -> Array:
        """Raises InvalidArgumentError when it is empty or closed."""
        with self._lock:
            self._check_open()
            if self._elements:
                return self._elements.pop()
            if not self._scalars.size:
                raise invalid(f"Stack[{self.name}] is empty when calling Pop().")
            value: Array = self._scalars[-1, ...]
            self._scalars = self._scalars[:-1]
            return value

    def pusher(self) -> Callable[[Array], Any]:
        """`push` for one loop of at most MAX_ELEMENTS turns: the list's own where there is nothing else to look at."""
        with self._lock:
            if self._closed or self._max_size >= 0 or self._scalars.size + len(self._elements) > MAX_ELEMENTS:
                return self.push
            return self._elements.append

    def popper(self) -> Callable[[], Array]:
        """`pop` for one loop, which may raise IndexError when the stack is empty."""
        with self._lock:
            return self.pop if self._closed or self._scalars.size else self._elements.pop

    def takes(self, count: int) -> bool:
        """Whether so many elements more may be pushed."""
        count += self._scalars.size + len(self._elements)
        return not self._closed and count <= (MAX_ELEMENTS if self._max_size < 0 else self._max_size)

    def push_scalars(self, values: Array) -> None:
        """Pushes the elements of a vector, which is the stack's from now on."""
        with self._lock:
            if self._scalars.size or self._elements:
                self._elements.extend(values[number, ...] for number in range(values.size))
            else:
                self._scalars = values

    def scalars(self) -> Array | None:
        """All elements as a vector, the last pushed at the end; None when it is closed, or some are not scalars of the
        host's memory.
        """
        with self._lock:
            if self._closed or any(each.ndim or not isinstance(each, _ON_HOST) for each in self._elements):
                return None
            if self._elements:
                added = np.array(self._elements, self._scalars.dtype)
                self._scalars, self._elements = np.concatenate([self._scalars, added]), []
            return self._scalars

    def drop(self, count: int) -> None:
        """Pops so many of what `scalars` gave."""
        with self._lock:
            self._scalars = self._scalars[: self._scalars.size - count]

    def close(self) -> None:
        """Drops the elements."""
        with self._lock:
            self._closed = True
            self._elements.clear()
            self._scalars = self._scalars[:0]

    def _check_open(self) -> None:
        if self._closed:
            raise invalid(f"Stack[{self.name}] has already been closed.")


@functools.cache
def _none_of(dtype: DType) -> Array:
    return np.empty(0, dtype.as_numpy_dtype)


def empty_stack() -> errors.OpError:
    """What a pop of a stack without elements raises, where the list's own does not say it."""
    return invalid("A stack is empty when calling Pop().")


def unique_name(stem: str) -> str:
    """`stem` and a number that is given once in this process."""
    return f"{stem}_{next(_numbers)}"


def merged(a: TensorShape, b: TensorShape) -> TensorShape:
    """What both shapes say. Raises InvalidArgumentError when they contradict each other."""
    if not a.is_compatible_with(b):
        if a.ndims != b.ndims:
            raise invalid(f"PartialTensorShape: Incompatible ranks during merge: {a.ndims} vs. {b.ndims}")
        text = f"{shape_text(a)} vs. {shape_text(b)}"
        raise invalid(f"PartialTensorShape: Incompatible shapes during merge: {text}")
    return a.merge_with(b)


def check_count(count: int, what: str) -> None:
    """Raises ResourceExhaustedError for more elements than any program has, or than one tensor may."""
    if count > MAX_ELEMENTS:
        raise errors.resource_exhausted(f"{what} would have {count} elements; {MAX_ELEMENTS} is the limit.")
    allow((count,), object)
