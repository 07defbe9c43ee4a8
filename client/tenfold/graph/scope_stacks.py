"""The scopes of a Graph: `name_scope`, `device`, `control_dependencies`, `colocate_with`, `container` and others.

Mixed into graph/graph.py; the rules of each kind of scope are in graph/scopes.py. Scopes belong to the graph and not to
a thread until `switch_to_thread_local` is called: before that, build a graph from one thread at a time.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tenfold.graph.scopes import VALID_OP_NAME, VALID_SCOPE_NAME, ControlScope, DeviceScope, UniqueNames
from tenfold_protos import attr_value_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tenfold.graph.control_flow_context import ControlFlowContext
    from tenfold.graph.operation import Operation


class _Open:
    """The scopes that are open in a graph."""

    def __init__(self) -> None:
        self.name = ""
        self.devices: list[DeviceScope | None] = []
        self.controls: list[ControlScope] = []
        self.colocations: list[Operation] = []


class _OpenInThread(threading.local):
    """The scopes that are open in each thread; those of a new one begin as the graph's were, but for the name."""

    def __init__(self, before: _Open) -> None:
        super().__init__()
        self.name = ""
        self.devices, self.controls = list(before.devices), list(before.controls)
        self.colocations = list(before.colocations)


def _of_open(part: str) -> Any:
    """What a graph's `_open` has under the name `part`."""
    return property(lambda graph: getattr(graph._open, part), lambda graph, value: setattr(graph._open, part, value))


class ScopeStacks:
    """The open scopes, which apply to the operation that is made next."""

    #: The current scope without its trailing slash; empty at the top.
    _name_stack: str = _of_open("name")
    #: Outermost first. None stands for `device(None)`, which hides what is outside it.
    _device_stack: list[DeviceScope | None] = _of_open("devices")
    _control_stack: list[ControlScope] = _of_open("controls")
    _colocation_stack: list[Operation] = _of_open("colocations")

    def __init__(self) -> None:
        self._open: _Open | _OpenInThread = _Open()
        self._unique_names = UniqueNames()
        #: The branch or loop that operations are made in.
        self._control_flow_context: ControlFlowContext | None = None
        self._container = ""
        self._gradient_override: dict[str, str] = {}
        #: Attributes that operations made now get unless they have them.
        self._scoped_attrs: dict[str, attr_value_pb2.AttrValue] = {}

    def switch_to_thread_local(self) -> None:
        """From now on each thread has its own open scopes of names, devices, colocations and control dependencies.

        Other threads begin in the scopes that are open now, but without a scope of names.
        """
        if isinstance(self._open, _Open):
            name = self._open.name
            self._open = _OpenInThread(self._open)
            self._open.name = name

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """A name in the current scope that no operation and no scope has."""
        if self._name_stack:
            name = f"{self._name_stack}/{name}"
        return self._unique_names.claim(name, mark_as_used)

    def get_name_scope(self) -> str:
        """The current name scope, without a trailing slash."""
        return self._name_stack

    @contextmanager
    def name_scope(self, name: str | bytes | None) -> Iterator[str]:
        """Prefixes the names of operations made inside with `name/`, made unique; yields the prefix.

        A name that ends with "/" re-enters that scope; None or "" returns to the top level.
        Raises ValueError for an invalid name.
        """
        if isinstance(name, bytes):
            name = name.decode()
        if name is not None and not isinstance(name, str):
            raise TypeError(f"scope name must be a string, not {name!r}")
        if name:
            pattern = VALID_SCOPE_NAME if self._name_stack else VALID_OP_NAME
            if not pattern.match(name):
                raise ValueError(f"'{name}' is not a valid scope name")
        outer = self._name_stack
        if not name:
            inner = ""
        elif name.endswith("/"):
            inner = name[:-1]
        else:
            inner = self.unique_name(name)
        self._name_stack = inner
        try:
            yield f"{inner}/" if inner else ""
        finally:
            self._name_stack = outer

    @contextmanager
    def device(self, device_name_or_function: Any) -> Iterator[None]:
        """Requests a device for the operations made inside.

        A string or DeviceSpec may be partial; inner scopes override field by field. A function gets the operation, with
        the device that inner scopes gave it, and returns its device. None ignores the scopes outside this one.
        """
        scope = None if device_name_or_function is None else DeviceScope(device_name_or_function)
        self._device_stack.append(scope)
        try:
            yield
        finally:
            self._device_stack.pop()

    @property
    def _device_functions_outer_to_inner(self) -> tuple[DeviceScope | None, ...]:
        return tuple(self._device_stack)

    def _apply_device_functions(self, op: Operation) -> None:
        for scope in reversed(self._device_stack):
            if scope is None:
                break
            op._set_device(scope.apply(op))

    @contextmanager
    def control_dependencies(self, control_inputs: Any) -> Iterator[None]:
        """Operations made inside run after all `control_inputs` (operations, tensors, variables or their names).

        None clears the control dependencies of the scopes outside, and leaves the branches and loops around.
        """
        outer, outer_context = self._control_stack, self._control_flow_context
        if control_inputs is None:
            self._control_stack = [ControlScope(())]
            self._control_flow_context = None
        else:
            ops = dict.fromkeys(self._control_input(item) for item in control_inputs)
            self._control_stack = [*outer, ControlScope(ops)]
        try:
            yield
        finally:
            self._control_stack = outer
            if control_inputs is None:
                self._control_flow_context = outer_context

    def _get_control_flow_context(self) -> ControlFlowContext | None:
        return self._control_flow_context

    def _set_control_flow_context(self, context: ControlFlowContext | None) -> None:
        self._control_flow_context = context

    def _control_input(self, item: Any) -> Operation:
        raise NotImplementedError

    def _control_dependencies_for_inputs(self, input_ops: set[Operation]) -> list[Operation]:
        if not self._control_stack:
            return []
        return list(dict.fromkeys(op for scope in self._control_stack for op in scope.needed_by(input_ops)))

    @contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Operations made inside run on the device of `op` (an operation, or what converts to a tensor).

        `op=None` with `ignore_existing=True` leaves all colocation. Devices requested outside do not apply inside.
        """
        if op is None and not ignore_existing:
            raise ValueError("Trying to reset colocation (op is None) but ignore_existing is not True")
        target = None if op is None else self._colocation_op(op)
        outer_devices, outer_colocation = self._device_stack, self._colocation_stack
        self._device_stack = []
        self._colocation_stack = [] if ignore_existing else [*outer_colocation]
        if target is not None:
            self._colocation_stack.append(target)
        try:
            yield
        finally:
            self._device_stack, self._colocation_stack = outer_devices, outer_colocation

    def _colocation_op(self, op: Any) -> Operation:
        raise NotImplementedError

    def _apply_colocation(self, op: Operation) -> None:
        if not self._colocation_stack:
            return
        groups: set[bytes] = set()
        for other in self._colocation_stack:
            groups.update(other.colocation_groups())
        for other in reversed(self._colocation_stack):
            if other.device:
                op._set_device(other.device)
                break
        op._set_attr("_class", attr_value_pb2.AttrValue(list={"s": sorted(groups)}))

    @contextmanager
    def container(self, container_name: str) -> Iterator[str]:
        """Stateful operations made inside keep their state in the resource container `container_name`."""
        outer = self._container
        self._container = container_name
        try:
            yield container_name
        finally:
            self._container = outer

    @contextmanager
    def gradient_override_map(self, op_type_map: Mapping[str, str]) -> Iterator[None]:
        """Operations of the given types, made inside, use the gradient registered under another name."""
        for op_type, mapped in op_type_map.items():
            if not isinstance(op_type, str) or not isinstance(mapped, str):
                raise TypeError(f"op_type_map must be a dictionary of strings to strings, not {op_type!r}: {mapped!r}")
        outer = self._gradient_override
        self._gradient_override = {**outer, **op_type_map}
        try:
            yield
        finally:
            self._gradient_override = outer

    @contextmanager
    def _attr_scope(self, attrs: Mapping[str, attr_value_pb2.AttrValue | None]) -> Iterator[None]:
        """Operations made inside get `attrs` where they lack them; None takes one of an outer scope away."""
        outer = self._scoped_attrs
        merged: dict[str, Any] = {**outer, **attrs}
        self._scoped_attrs = {name: value for name, value in merged.items() if value is not None}
        try:
            yield
        finally:
            self._scoped_attrs = outer
