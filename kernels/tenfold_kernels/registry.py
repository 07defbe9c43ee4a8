"""Which function computes an op on a device type. Looked up once per node, when a partition is compiled.

A row is either a kernel (`@kernel`, on a builder), an op that the executor runs itself (`executor_op`), or a written
absence with its reason (`no_kernel`). Family modules under cpu/ and cuda/ hold the rows; families.py finds those of
a family, which are imported on the first look-up of one of its ops. A row of a GPU says which arguments stay in the
host's memory. Follows TensorFlow's op_kernel.cc and kernel_def.proto in meaning.
"""

from __future__ import annotations

import difflib
import importlib
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from tenfold_core import errors, opdefs
from tenfold_core.dtypes import DType
from tenfold_kernels import families, narrow
from tenfold_kernels.cuda import absences

if TYPE_CHECKING:
    from tenfold_core.op_def import ArgDef
    from tenfold_kernels.resources.state import ResourceManager
    from tenfold_kernels.resources.waiting import Waiting
    from tenfold_protos.attr_value_pb2 import AttrValue

#: Positional inputs → None (no outputs), one value (one output) or a tuple (several). Never awaits. Inputs are never
#: written to. Outputs have exactly the NumPy type of the node's output; they may be strided, and may be views of an
#: input only where the row says so. Called inside `quiet()`. One registered as blocking may return a waiting.Waiting.
Compute: TypeAlias = Callable[..., Any]


def bindable(compute: Compute, bind: Callable[[Any], Callable[..., Any]]) -> Compute:
    """`compute` for an op on a resource. `bind(handle)` gives a function of its other inputs, which a loop calls in
    each turn where its handle is always the same. What that returns is the output only if there are no other inputs.
    """
    compute.bind = bind  # type: ignore[attr-defined]
    return compute


def binder(compute: Any) -> Callable[[Any], Callable[..., Any]] | None:
    """What a loop may bind of a kernel, or None."""
    bind: Callable[[Any], Callable[..., Any]] | None = getattr(compute, "bind", None)
    return bind


def quiet() -> np.errstate:
    """The context that computes run in: IEEE results (inf, nan), no warnings. Entered once a program run."""
    return np.errstate(all="ignore")


@dataclass(frozen=True, slots=True)
class KernelNode:
    """What a builder may know of its node: everything that is fixed before the first step."""

    name: str
    op: str
    #: Resolved: defaults filled in, allowed values checked.
    attrs: Mapping[str, Any]
    input_types: tuple[DType, ...]
    output_types: tuple[DType, ...]
    #: Full name, such as /job:ps/replica:0/task:0/device:CPU:0.
    device: str
    #: The containers of the task that this node runs on, as its session sees them.
    resources: ResourceManager
    #: Calls functions of the graph's library; None where there is none.
    functions: FunctionCaller | None = None
    #: The session is one that this process opened: it may call functions of the process (py_func).
    is_own_session: bool = False


class Function(Protocol):
    """A function of a graph's library, its attributes filled in."""

    def start(self, values: Sequence[Any]) -> list[Any] | Waiting:
        """Calls it: its outputs in order, or a Waiting for that list. For kernels registered as blocking."""
        ...

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Calls it and blocks until it is over."""
        ...

    def by_rows(self, ranks: Sequence[tuple[int, bool]]) -> ByRows | None:
        """The function of many elements at once; None where there is none. `ranks` are those of the parameters for one
        element, and whether a parameter has a row for each of many.
        """
        ...

    def stateful_op(self) -> str | None:
        """An op in it, or in a function that it calls, that has a state of its own; None where there is none."""
        ...


class ByRows(Protocol):
    """A function of many elements at once."""

    #: It never fails, and is never slower than a call for each element.
    is_sure: bool

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """The outputs, each with a row for each element. Raises what some element raises, having changed nothing."""
        ...


class FunctionCaller(Protocol):
    """What a kernel sees of the worker's functions (services: worker/functions.py)."""

    #: Turns that a loop of calls may take.
    most_turns: int

    def instantiate(self, name: str, attrs: Mapping[str, AttrValue], device: str) -> Function:
        """Raises NotFoundError for an unknown function, InvalidArgumentError for attributes that do not fit."""
        ...

    def later(self, work: Callable[[], None]) -> None:
        """Runs `work` on another thread soon. Never blocks."""
        ...


Builder: TypeAlias = Callable[[KernelNode], Compute]

#: Says of a GPU's row that all its arguments stay in the host's memory.
EVERYTHING = "*"


@dataclass(frozen=True, slots=True)
class _KernelRow:
    op: str
    device_type: str
    #: attr name → allowed types; an empty mapping allows every type.
    types: Mapping[str, frozenset[DType]]
    builder: Builder
    #: file:line of the builder, for the clash error.
    place: str
    #: Its computes may return a waiting.Waiting.
    blocking: bool = False
    #: The arguments, by their names in the op's definition, that a GPU's kernel takes and gives as the host's arrays.
    host: frozenset[str] = frozenset()
    #: What a kernel of a GPU launches hangs on shapes, attributes and the host's inputs alone.
    replays: bool = True

    def accepts(self, attrs: Mapping[str, Any]) -> bool:
        for attr, allowed in self.types.items():
            value = attrs.get(attr)
            if value is None:
                continue
            wanted = value if isinstance(value, (list, tuple)) else (value,)
            if not all(t in allowed for t in wanted):
                return False
        return True


@dataclass(frozen=True, slots=True)
class Absence:
    """A written reason why `op` has no kernel on a device type; `executor` says that the executor runs it itself."""

    op: str
    device_type: str
    why: str
    executor: bool = False


_rows: dict[tuple[str, str], list[_KernelRow]] = {}
_absences: dict[tuple[str, str], Absence] = {}
#: (op, device type) whose kernels may have to wait.
_blocking: set[tuple[str, str]] = set()
#: (op, device type) whose outputs may share memory with an input.
_views: set[tuple[str, str]] = set()
#: (op, device type) whose kernels open files.
_files: set[tuple[str, str]] = set()
_loaded: set[tuple[str, str]] = set()
#: Guards the tables above; re-entrant because importing a family module registers rows.
_lock = threading.RLock()


def kernel(
    *ops: str,
    device: str = "CPU",
    blocking: bool = False,
    views: bool = False,
    files: bool = False,
    host: Collection[str] = (),
    replays: bool = True,
    **types: DType | Collection[DType],
) -> Callable[[Builder], Builder]:
    """Registers a builder for `ops` on `device`; a keyword such as T=NUMERIC limits the types of that attr.

    A `blocking` kernel may return a waiting.Waiting in place of its outputs. An output of one that `views` may share
    memory with an input; the tests of kernels hold the others to it. One that uses `files` may be held up by a disk.
    `host` names the arguments of a GPU's kernel that are arrays of the host; the others are DeviceArrays. One that does
    not `replays` launches other things at the next call though its inputs look the same (a generator of random numbers
    that counts on the host), or waits for the GPU: no step that has it is recorded (cuda/_replaying.py).
    Raises AlreadyExistsError, naming both places, when another row of the op accepts some of the same types.
    """
    allowed = {
        attr: frozenset((value,)) if isinstance(value, DType) else frozenset(value) for attr, value in types.items()
    }

    def register(builder: Builder) -> Builder:
        code = builder.__code__ if hasattr(builder, "__code__") else None
        place = f"{code.co_filename}:{code.co_firstlineno}" if code else repr(builder)
        with _lock:
            for op in ops:
                rows = _rows.setdefault((op, device), [])
                for other in rows:
                    if _overlap(other.types, allowed):
                        raise errors.already_exists(
                            f"Two {device} kernels for op '{op}' accept the same types: {other.place} and {place}."
                        )
                rows.append(_KernelRow(op, device, allowed, builder, place, blocking, frozenset(host), replays))
                if blocking:
                    _blocking.add((op, device))
                if views:
                    _views.add((op, device))
                if files:
                    _files.add((op, device))
        return builder

    return register


def shared_kernel(*ops: str, host: Collection[str], **types: DType | Collection[DType]) -> None:
    """Registers the CPU's kernels of `ops` for a GPU too: they look at shapes only, and so take DeviceArrays as well,
    but for the arguments `host`. With EVERYTHING they get none: what is small and decides shapes is computed where
    shapes are needed.
    """

    def build(node: KernelNode) -> Compute:
        return lookup(node, "CPU")(node)

    # of the module that writes the row down, as any builder is
    build.__module__ = sys._getframe(1).f_globals["__name__"]
    kernel(*ops, device="GPU", host=host, **types)(build)  # type: ignore[arg-type] # names of attributes only


def no_kernel(*ops: str, device: str, why: str) -> None:
    """Writes down that `ops` have no kernel on `device`, and why; the reason is part of the look-up error."""
    with _lock:
        for op in ops:
            _absences[op, device] = Absence(op, device, why)


def executor_op(*ops: str, device: str, why: str) -> None:
    """Writes down that the executor runs `ops` itself: they can be placed on `device`, but not looked up."""
    with _lock:
        for op in ops:
            _absences[op, device] = Absence(op, device, why, executor=True)


def lookup(node: KernelNode, device_type: str) -> Builder:
    """The builder for `node` on `device_type`; imports the op's family on first use, compiles nothing.

    A narrow float without a kernel of its own gets the CPU's of float32, see narrow.py.

    Raises NotFoundError for an op without a kernel on any device, InvalidArgumentError when the op has kernels but
    not for this device type or these types; both name what there is.
    """
    rows = _rows_of(node.op, device_type)
    for row in rows:
        if row.accepts(node.attrs):
            return row.builder
    found = _wide_row(node.op, node.attrs, rows) if device_type == "CPU" else None
    if found is not None:
        row, wide = found
        return narrow.around(row.builder, wide)
    raise _lookup_error(node, device_type, rows)


def memory_of(op: str, attrs: Mapping[str, Any], device_type: str) -> tuple[tuple[bool, ...], tuple[bool, ...]] | None:
    """(which inputs, which outputs) are in the memory of the device; None where none is, as of every op on a CPU.

    One flag for each argument, lists and all. An op that the executor runs itself has none: what it hands on stays
    where it is.
    """
    if device_type == "CPU":
        return None
    row = next((row for row in _rows_of(op, device_type) if row.accepts(attrs)), None)
    if row is None or EVERYTHING in row.host:
        return None
    definition = opdefs.get(op)
    return _on_device(definition.inputs, attrs, row.host), _on_device(definition.outputs, attrs, row.host)


def may_replay(op: str, attrs: Mapping[str, Any], device_type: str) -> bool:
    """Whether what the op's kernel launches may be recorded once and launched again."""
    row = next((row for row in _rows_of(op, device_type) if row.accepts(attrs)), None)
    return row is not None and row.replays


def _on_device(arguments: Sequence[ArgDef], attrs: Mapping[str, Any], host: frozenset[str]) -> tuple[bool, ...]:
    flags: list[bool] = []
    for argument in arguments:
        count = 1
        if argument.number_attr:
            count = int(attrs[argument.number_attr])
        elif argument.type_list_attr:
            count = len(attrs[argument.type_list_attr])
        flags += [argument.name not in host] * count
    return tuple(flags)


def is_blocking(op: str, device_type: str = "CPU") -> bool:
    """Whether kernels of `op` may return a waiting.Waiting: no program with it runs where nothing can wait."""
    _rows_of(op, device_type)
    return (op, device_type) in _blocking


def uses_files(op: str, device_type: str = "CPU") -> bool:
    """Whether kernels of `op` read or write files, and may take as long as a disk likes."""
    _rows_of(op, device_type)
    return (op, device_type) in _files


def may_view_input(op: str, device_type: str = "CPU") -> bool:
    """Whether an output of `op` may share memory with an input. A GPU's may where the CPU's may: it may be the same."""
    _rows_of(op, device_type)
    _rows_of(op, "CPU")
    return (op, device_type) in _views or (op, "CPU") in _views


def devices_with_kernel(
    op: str, attrs: Mapping[str, Any], device_types: Collection[str] = tuple(families.FOLDERS)
) -> tuple[str, ...]:
    """The device types, of those asked for, that can run `op` with these attrs; ops of the executor run wherever it
    does.

    For the placer. Imports the op's family module, never a compiler. An unknown op gives ().
    """
    found = []
    for device_type in device_types:
        rows = _rows_of(op, device_type)
        absence = _absences.get((op, device_type))
        runs = any(row.accepts(attrs) for row in rows) or (absence is not None and absence.executor)
        if runs or (device_type == "CPU" and _wide_row(op, attrs, rows) is not None):
            found.append(device_type)
    return tuple(found)


def absence(op: str, device_type: str) -> Absence | None:
    """The written reason why `op` has no kernel on `device_type`, its own or its family's, or None."""
    rows = _rows_of(op, device_type)
    written = _absences.get((op, device_type))
    if written is None and device_type == "GPU" and not rows and (why := absences.why(op)):
        written = Absence(op, device_type, why)
    return written


def has_kernel(op: str, device_type: str) -> bool:
    """Whether some kernel of `op` exists on `device_type`, for whatever types."""
    return bool(_rows_of(op, device_type))


def _overlap(a: Mapping[str, frozenset[DType]], b: Mapping[str, frozenset[DType]]) -> bool:
    """Whether some assignment of types satisfies both rows."""
    return all(a[attr] & b[attr] for attr in a.keys() & b.keys())


def _wide_row(op: str, attrs: Mapping[str, Any], rows: list[_KernelRow]) -> tuple[_KernelRow, Mapping[str, Any]] | None:
    """The row that runs `op` with float32 in place of narrow floats, and the attributes that it gets then. NumPy rounds
    them, so a GPU has none.
    """
    wide = narrow.wide_attrs(op, attrs)
    if wide is None:
        return None
    fit = (row for row in rows if row.accepts(wide) and not row.blocking and row.device_type == "CPU")
    return next(((row, wide) for row in fit), None)


def _rows_of(op: str, device_type: str) -> list[_KernelRow]:
    family = opdefs.family_of(op) if opdefs.has(op) else None
    if family is not None and (family, device_type) not in _loaded:
        with _lock:
            for module in families.modules_of(device_type).get(family, ()):
                importlib.import_module(module)
            _loaded.add((family, device_type))
    return _rows.get((op, device_type), [])


def _lookup_error(node: KernelNode, device_type: str, rows: list[_KernelRow]) -> errors.OpError:
    op = node.op
    if not opdefs.has(op):
        near = difflib.get_close_matches(op, opdefs.names(), n=3)
        hint = f" Did you mean {', '.join(near)}?" if near else ""
        return errors.not_found(f"No kernel for op '{op}' of node '{node.name}': there is no such op.{hint}")
    if rows:
        have = "; ".join(_types_text(row) for row in rows)
        asked = ", ".join(
            f"{attr}={_name(node.attrs.get(attr))}" for attr in sorted({a for r in rows for a in r.types})
        )
        return errors.invalid_argument(
            f"No {device_type} kernel for op '{op}' of node '{node.name}' with {asked}. There are kernels for: {have}."
        )
    written = absence(op, device_type)
    why = f" ({written.why})" if written is not None else ""
    others = [d for d in families.FOLDERS if d != device_type and has_kernel(op, d)]
    if others:
        return errors.invalid_argument(
            f"No {device_type} kernel for op '{op}' of node '{node.name}'{why}. "
            f"Device types with a kernel: {', '.join(others)}."
        )
    with _lock:
        known = sorted({name for name, _ in _rows})
    near = difflib.get_close_matches(op, known, n=3)
    hint = f" The nearest ops with a kernel: {', '.join(near)}." if near else ""
    return errors.not_found(f"No kernel for op '{op}' of node '{node.name}' on any device type{why}.{hint}")


def _types_text(row: _KernelRow) -> str:
    if not row.types:
        return "any types"
    return ", ".join(f"{attr} in [{', '.join(sorted(t.name for t in ts))}]" for attr, ts in row.types.items())


def _name(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_name(v) for v in value) + "]"
    return value.name if isinstance(value, DType) else repr(value)
