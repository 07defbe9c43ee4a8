"""What outlives a step on one task: variables and other resources, in named containers.

A reference variable (VariableV2) and a resource variable (VarHandleOp) are the same `Variable` behind two op
families: the first updates its buffer in place under the eyes of every reader, the second copies before it writes
when a reader still holds a snapshot. Used by cpu/state*.py and by the worker's sessions. Follows TF's
resource_mgr.h, resource_var.h and variable_ops.cc.
"""

from __future__ import annotations

import math
import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tenfold_core import errors, variable_memory
from tenfold_core.reference_counts import ALWAYS_HELD, reference_count, reference_counts_are_exact
from tenfold_core.variable_memory import VariableMemory
from tenfold_kernels.resources.quota import StateQuota, size_of
from tenfold_kernels.resources.read_in_pieces import ReadInPieces, is_readable
from tenfold_kernels.resources.unfinished_steps import UnfinishedSteps
from tenfold_protos import resource_handle_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape
    from tenfold_kernels.resources.quota import Account

#: The container of resources that name none.
DEFAULT_CONTAINER = "localhost"

T = TypeVar("T")
Array = np.ndarray[Any, np.dtype[Any]]


#: How many times a variable of this process has got another shape. A lost count between threads does no harm.
_reshapes = [0]


def reshapes() -> int:
    """A number that is another one once any variable's value has another shape: measured times are void then."""
    return _reshapes[0]


class Variable:
    """A mutable tensor with a lock. `shape` is what the graph declared; the held array's shape may refine it.

    Readers get read-only views: of a reference variable (`value`) they see later updates, of a resource variable
    (`snapshot`) they do not, because `buffer(exclusive=True)` copies while a view is alive. Peers that read a large
    value where it is (tenfold_core.variable_memory) never see an update: a writer that finds one moves the variable.
    """

    __slots__ = (
        *("__weakref__", "_anchor", "_buffer", "_memory", "_reading", "_view"),
        *("account", "dtype", "lock", "name", "shape"),
    )

    def __init__(self, name: str, dtype: DType, shape: TensorShape, account: Account | None = None) -> None:
        """`account` is charged for its value; None: nobody counts it."""
        self.name, self.account = name, account
        self.dtype = dtype.base_dtype
        self.shape = shape
        #: Held while the buffer is replaced or written; several variables are locked in the order of their ids.
        self.lock = threading.RLock()
        #: Writable and C-contiguous; None until the first assignment.
        self._buffer: Array | None = None
        #: A read-only view of the buffer, always replaced together with it: making one takes as long as a small kernel.
        self._view: Array | None = None
        #: What all views of the buffer refer to: numpy collapses chains of views. Without `_memory` the buffer itself.
        self._anchor: Array | None = None
        #: The memory of a large value.
        self._memory: VariableMemory | None = None
        #: Who copies the present value in pieces; nothing is kept for one that nobody has any more.
        self._reading: weakref.ref[ReadInPieces] | None = None

    def __repr__(self) -> str:
        return f"<Variable {self.name} dtype={self.dtype.name} shape={self.shape} initialized={self.is_initialized}>"

    def _present(self) -> Any:
        """What holds the value now; None while uninitialized."""
        return self._buffer

    @property
    def is_initialized(self) -> bool:
        return self._buffer is not None

    @property
    def nbytes(self) -> int:
        """Bytes of its value, 0 while uninitialized. Any thread, without the lock."""
        buffer = self._buffer
        return 0 if buffer is None else buffer.nbytes

    def check_initialized(self) -> None:
        """Raises FailedPreconditionError while uninitialized."""
        if self._buffer is None:
            raise errors.failed_precondition(f"Attempting to use uninitialized value {self.name}")

    @property
    def value(self) -> Array:
        """A read-only view of the current value. Raises FailedPreconditionError while uninitialized."""
        view = self._view
        if view is None:
            raise errors.failed_precondition(f"Attempting to use uninitialized value {self.name}")
        memory = self._memory
        if memory is not None and memory.to_be_shared:
            del view, memory
            return self._settled()
        return view

    @property
    def anchor(self) -> Array | None:
        """The base of every view of the present value; None while uninitialized."""
        return self._anchor

    def snapshot(self) -> Array:
        """`value`, once no update is under way: what a resource variable's reader gets. Waits for the lock."""
        with self.lock:
            return self.value

    def buffer(self, *, exclusive: bool = False, rows: Array | None = None) -> Array:
        """The writable buffer, for a kernel that holds `lock`. Raises FailedPreconditionError while uninitialized.

        With `exclusive`, a buffer that some reader still views is copied first, so that the reader keeps its snapshot;
        without, one that a peer reads. One that is copied in pieces stays where it is for a kernel that says which
        `rows` it changes.
        """
        if self._buffer is None:
            raise errors.failed_precondition(f"Attempting to use uninitialized value {self.name}")
        memory = self._memory
        if memory is None:
            if exclusive and self._is_read():
                self._put(self._buffer.copy())
        elif (
            memory.lent
            or (exclusive and self._is_read())
            or (memory.to_be_shared and not self._is_read())
            or (self._reading is not None and not self._keeps(rows))
        ):
            held = self._buffer
            self._settle(self._new_memory(held.shape), held.shape)
            np.copyto(self._buffer, held)
        return self._buffer

    def assign(self, value: Array, *, validate_shape: bool = True, in_place: bool = True) -> None:
        """Replaces the value by a copy of `value`, into the existing buffer when `in_place` and the shapes agree.

        With `validate_shape`, raises InvalidArgumentError unless `value` has the variable's shape (or one that the
        declared shape allows). Without it the shape may change.
        """
        with self.lock:
            buffer = self._buffer
            if validate_shape:
                self._check_shape(value)
            stays = in_place and buffer is not None and buffer.shape == value.shape and self._reader() is None
            if stays and not (self._memory is not None and self._memory.lent):
                if self.account is not None and value.dtype.hasobject:
                    self.account.resize(size_of((value,)))
                np.copyto(buffer, value)  # type: ignore[arg-type] # None does not stay
            elif self._is_large(value.shape):
                # written before it is the variable's: no reader sees half of it
                memory = self._new_memory(value.shape)
                np.copyto(self._in(memory, value.shape), value)
                self._settle(memory, value.shape)
            else:
                self._put(np.array(value, dtype=self.dtype.as_numpy_dtype, order="C", copy=True))

    def adopt(self, value: Array) -> None:
        """Takes over `value`, which the caller made for this purpose and will not touch again, as the new buffer."""
        with self.lock:
            if value.flags.c_contiguous and self._is_large(value.shape):
                self._settle(VariableMemory(value.reshape(-1).view(np.uint8), self.lock), value.shape)
            else:
                self._put(value)

    def begin_reading(self, marks: Array | None = None) -> ReadInPieces | None:
        """What copies the present value in pieces, for who holds the lock; `marks` is of `prepared`. None where the
        value is small, or its rows are large, and while another one copies it."""
        memory, buffer = self._memory, self._buffer
        if memory is None or buffer is None or not is_readable(buffer) or self._reader() is not None:
            return None
        # of an array of its own, so that nobody counts as a reader of the buffer
        reading = ReadInPieces(self._in(memory, buffer.shape), self.lock, marks)
        self._reading = weakref.ref(reading)
        return reading

    def _reader(self) -> ReadInPieces | None:
        """Who copies the present value and has not done so yet."""
        reading = None if self._reading is None else self._reading()
        if reading is None or reading.is_done:
            self._reading = None
            return None
        return reading

    def _keeps(self, rows: Array | None) -> bool:
        """Whether all who copy the value in pieces may see these rows change, or any if none are named."""
        reading = self._reader()
        if reading is None:
            return True
        if rows is None:
            return False
        reading.keep(rows)
        return True

    # -- where the value is --------------------------------------------------------------------------------------------

    def _is_large(self, shape: tuple[int, ...]) -> bool:
        """Whether a value of that shape has memory that is lent."""
        dtype = np.dtype(self.dtype.as_numpy_dtype)
        return not dtype.hasobject and math.prod(shape) * dtype.itemsize >= variable_memory.LENDABLE

    def _put(self, buffer: Array) -> None:
        """The buffer is the value now, without memory that is lent."""
        if self.account is not None:
            self.account.resize(size_of((buffer,)) if buffer.dtype.hasobject else buffer.nbytes)
        self._leave()
        self._note_new_shape(self._buffer, buffer.shape)
        view = buffer.view()
        view.setflags(write=False)
        self._anchor = self._buffer = buffer
        self._view, self._memory = view, None

    def _settle(self, memory: VariableMemory, shape: tuple[int, ...]) -> None:
        """What is in `memory` is the value now."""
        buffer = self._in(memory, shape)
        if self.account is not None:
            self.account.resize(buffer.nbytes)
        self._leave()
        self._note_new_shape(self._buffer, shape)
        view = buffer.view()
        view.setflags(write=False)
        self._anchor, self._buffer, self._view, self._memory = buffer.base, buffer, view, memory

    @staticmethod
    def _note_new_shape(held: Any, shape: tuple[int, ...]) -> None:
        if held is not None and held.shape != shape:
            _reshapes[0] += 1

    def _leave(self) -> None:
        # what was here stays as it is for who copies it
        self._reading = None
        if self._memory is not None:
            self._memory.current = False

    def _in(self, memory: VariableMemory, shape: tuple[int, ...]) -> Array:
        return memory.tensor(np.dtype(self.dtype.as_numpy_dtype), shape)

    def _new_memory(self, shape: tuple[int, ...]) -> VariableMemory:
        """Memory for the next value: shared if the present one's is, or should be."""
        nbytes = math.prod(shape) * np.dtype(self.dtype.as_numpy_dtype).itemsize
        held = self._memory
        if held is not None and (held.to_be_shared or held.block is not None):
            found = held.allocate_shared(nbytes)
            if found is not None:
                return found
        return variable_memory.allocate(nbytes, self.lock)

    def _settled(self) -> Array:
        """`value` for a reader, of a variable that is to be shared: it is moved if it has no other reader."""
        if self.lock.acquire(blocking=False):
            try:
                memory = self._memory
                if memory is not None and memory.to_be_shared and not self._is_read():
                    memory.to_be_shared = False
                    held = self._buffer
                    assert held is not None
                    found = memory.allocate_shared(held.nbytes)
                    if found is not None:
                        np.copyto(self._in(found, held.shape), held)
                        self._settle(found, held.shape)
            finally:
                self.lock.release()
        assert self._view is not None
        return self._view

    def _is_read(self) -> bool:
        """Whether a reader has the view, or a view of the buffer, or the buffer itself."""
        buffer, view, anchor = _OWN_REFERENCES if self._memory is None else _OWN_REFERENCES_LENDABLE
        return (
            reference_count(self._view) > view
            or reference_count(self._buffer) > buffer
            or reference_count(self._anchor) > anchor
        )

    def _check_shape(self, value: Any) -> None:
        held = self._present()
        if self.shape.is_fully_defined() and held is None:
            mine: object = list(self.shape.as_list())
            agree = tuple(self.shape.as_list()) == value.shape
        elif held is not None:
            mine, agree = list(held.shape), held.shape == value.shape
        else:
            mine, agree = self.shape, self.shape.is_compatible_with(value.shape)
        if not agree:
            raise errors.invalid_argument(
                "Assign requires shapes of both tensors to match. "
                f"lhs shape= {_shape_text(mine)} rhs shape= {_shape_text(list(value.shape))}"
            )


class _Probe:
    """Refers to arrays as a Variable does, with memory that is lent and without."""

    __slots__ = ("_anchor", "_buffer", "_view")

    def __init__(self, *, lendable: bool) -> None:
        self._buffer = np.zeros(8, np.uint8).view(np.int64).reshape(1) if lendable else np.zeros(1)
        self._anchor = self._buffer.base if lendable else self._buffer
        self._view = self._buffer.view()

    def counts(self) -> tuple[int, int, int]:
        return reference_count(self._buffer), reference_count(self._view), reference_count(self._anchor)


def _own_references(*, lendable: bool) -> tuple[int, int, int]:
    """How many references a buffer, a view and an anchor have that only their variable refers to; measured, because
    interpreters differ."""
    return _Probe(lendable=lendable).counts() if reference_counts_are_exact() else (ALWAYS_HELD,) * 3


_OWN_REFERENCES = _own_references(lendable=False)
_OWN_REFERENCES_LENDABLE = _own_references(lendable=True)


def _shape_text(shape: object) -> str:
    return "[" + ",".join(str(d) for d in shape) + "]" if isinstance(shape, list) else str(shape)


class locked:
    """`with locked(a, b):` holds the locks of all variables, taken in one order so that two kernels cannot deadlock."""

    __slots__ = ("_held", "_variables")

    def __init__(self, *variables: Variable) -> None:
        self._variables = sorted(variables, key=id) if len(variables) > 1 else variables
        self._held: list[threading.RLock] = []

    def __enter__(self) -> None:
        for variable in self._variables:
            variable.lock.acquire()
            self._held.append(variable.lock)

    def __exit__(self, *error: object) -> None:
        while self._held:
            self._held.pop().release()


@dataclass(frozen=True, slots=True)
class ResourceHandle:
    """The value on a DT_RESOURCE edge (inside a 0-d object array): names a resource on the device that owns it."""

    device: str
    container: str
    name: str
    hash_code: int = 0
    type_name: str = ""

    def to_proto(self) -> resource_handle_pb2.ResourceHandleProto:
        return resource_handle_pb2.ResourceHandleProto(
            device=self.device,
            container=self.container,
            name=self.name,
            hash_code=self.hash_code,
            maybe_type_name=self.type_name,
        )

    @classmethod
    def from_proto(cls, proto: resource_handle_pb2.ResourceHandleProto) -> ResourceHandle:
        return cls(proto.device, proto.container, proto.name, proto.hash_code, proto.maybe_type_name)

    def as_array(self) -> Array:
        """This handle as it travels: a read-only 0-d object array."""
        array = np.empty((), dtype=object)
        array[()] = self
        array.setflags(write=False)
        return array


class ResourceManager:
    """The resources of one task by container, type and name. Thread-safe; never blocks except inside `factory`."""

    def __init__(self, default_container: str = DEFAULT_CONTAINER, quota: StateQuota | None = None) -> None:
        self.default_container = default_container
        #: What its variables, queues, tables, … may take together; by default all that there is.
        self.quota = quota if quota is not None else StateQuota()
        #: Guards the dictionaries, and makes a factory run once per name.
        self._lock = threading.RLock()
        self._containers: dict[str, dict[tuple[type[Any], str], Any]] = {}
        self.unfinished = UnfinishedSteps()
        #: Goes up whenever a resource is forgotten: what was found before may be kept while this stays the same.
        self.generation = 0

    def lookup_or_create(self, container: str, name: str, type_: type[T], factory: Callable[[], T]) -> T:
        """The resource of that name, made by `factory` if there is none."""
        key = (type_, name)
        container = container or self.default_container
        found = self._containers.get(container, {}).get(key)
        if found is None:
            with self._lock:
                held = self._containers.setdefault(container, {})
                found = held.get(key)
                if found is None:
                    found = held[key] = factory()
        assert isinstance(found, type_)
        return found

    def lookup(self, container: str, name: str, type_: type[T]) -> T:
        """The resource of that name. Raises NotFoundError naming container, name and type."""
        found = self._containers.get(container or self.default_container, {}).get((type_, name))
        if found is None:
            raise self._not_found(container, name, type_)
        assert isinstance(found, type_)
        return found

    def delete(self, container: str, name: str, type_: type[Any]) -> None:
        """Forgets the resource. Raises NotFoundError if there is none."""
        with self._lock:
            held = self._containers.get(container or self.default_container, {})
            found = held.pop((type_, name), None)
            if found is None:
                raise self._not_found(container, name, type_)
            _close_account(found)
            self.generation += 1

    def forget(self, handle: ResourceHandle) -> list[Any]:
        """Forgets what a handle names, whatever it is; what that was, empty where there is none. What it has under way
        goes on until somebody ends it."""
        with self._lock:
            held = self._containers.get(handle.container or self.default_container, {})
            found = {
                key: resource
                for key, resource in held.items()
                if key[1] == handle.name and _is_of(resource, key[0], handle)
            }
            for key, resource in found.items():
                del held[key]
                _close_account(resource)
            self.generation += bool(found)
        return [*found.values()]

    def clear(self, containers: Sequence[str] = ()) -> None:
        """Forgets every resource of the named containers; of the default container when none is named."""
        with self._lock:
            for container in containers or (self.default_container,):
                held = self._containers.pop(container or self.default_container, {})
                for found in held.values():
                    _close_account(found)
            self.generation += 1

    def work(self) -> list[Callable[[], None]]:
        """What ends the work that resources have under way, such as an iterator's; may have to wait for a disk."""
        with self._lock:
            every = [found for held in self._containers.values() for found in held.values()]
        return [found.end_work for found in every if hasattr(found, "end_work")]

    def names(self, container: str = "") -> list[str]:
        """The names of all resources of a container, sorted."""
        with self._lock:
            return sorted(name for _, name in self._containers.get(container or self.default_container, {}))

    def every(self, type_: type[T]) -> list[T]:
        """All resources of that type, of every container. Never waits, not even for a `factory`."""
        # making a list of a dictionary is one operation, which no other thread's change comes into
        return [
            found
            for held in list(self._containers.values())
            for (kind, _), found in list(held.items())
            if kind is type_
        ]

    def _not_found(self, container: str, name: str, type_: type[Any]) -> errors.NotFoundError:
        return errors.not_found(
            f"Resource {container or self.default_container}/{name}/{type_.__name__} does not exist."
        )


def _is_of(resource: Any, type_: type[Any], handle: ResourceHandle) -> bool:
    """Whether a resource, known by that type, is what a handle of that name means; one without a type means any."""
    names = (type(resource).__name__, type_.__name__, getattr(type_, "HANDLE_TYPE", ""))
    return not handle.type_name or handle.type_name in names


def _close_account(resource: Any) -> None:
    account = getattr(resource, "account", None)
    if account is not None:
        account.close()
