"""The kinds of scope around an operation while it is made: unique names, device, control dependencies.

Each scope is a small object on a stack of the Graph (graph/scope_stacks.py), which applies all of them when it adds an
operation. The rules are those of TensorFlow 1.x: the innermost device overrides field by field, device functions see
the operation with the device that it has so far, a control dependency already implied by an input is dropped.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tenfold_core.device import DeviceSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tenfold.graph.operation import Operation

VALID_OP_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*\Z")
VALID_SCOPE_NAME = re.compile(r"[A-Za-z0-9_.\\/>-]*\Z")


class UniqueNames:
    """The names in use in a graph. Compared without case, so that names differ on every file system."""

    def __init__(self) -> None:
        #: Lower-case name → number of requests for it.
        self._uses: dict[str, int] = {}

    def claim(self, name: str, mark_as_used: bool = True) -> str:
        """`name`, or `name_1`, `name_2`, … if it was taken."""
        key = name.lower()
        uses = self._uses.get(key, 0)
        if uses == 0:
            if mark_as_used:
                self._uses[key] = 1
            return name
        suffix = uses
        while f"{key}_{suffix}" in self._uses:
            suffix += 1
        if mark_as_used:
            self._uses[key] = suffix + 1
            self._uses[f"{key}_{suffix}"] = 1
        return f"{name}_{suffix}"

    def mark(self, name: str) -> None:
        """Takes exactly `name`, which an imported or explicitly named node has."""
        self._uses.setdefault(name.lower(), 1)


class DeviceScope:
    """One `with graph.device(…)`: a (partial) spec, or a function of the operation."""

    __slots__ = ("_cache", "function", "spec")

    def __init__(self, device: str | DeviceSpec | Callable[[Operation], Any]) -> None:
        self.spec: DeviceSpec | None = None
        self.function: Callable[[Operation], Any] | None = None
        #: Device so far → merged device; programs use few distinct devices for many operations.
        self._cache: dict[str, str] = {}
        if isinstance(device, DeviceSpec):
            self.spec = device
        elif isinstance(device, str):
            self.spec = DeviceSpec.from_string(device)
        elif callable(device):
            self.function = device
        else:
            raise TypeError(f"A device is a string, a DeviceSpec, a function or None, not {device!r}")

    def apply(self, op: Operation) -> str:
        """The device of `op` after this scope; `op.device` is what the scopes inside this one gave."""
        if self.function is not None:
            device = self.function(op)
            if device is None:
                return ""
            return device.to_string() if isinstance(device, DeviceSpec) else str(device)
        current = op.device
        merged = self._cache.get(current)
        if merged is None:
            assert self.spec is not None
            merged = self._cache[current] = self.spec.make_merged_spec(DeviceSpec.from_string(current)).to_string()
        return merged

    def __str__(self) -> str:
        if self.spec is not None:
            return self.spec.to_string()
        return f"<function {getattr(self.function, '__name__', self.function)!s}>"


class ControlScope:
    """One `with graph.control_dependencies(…)`."""

    __slots__ = ("control_inputs", "seen")

    def __init__(self, control_inputs: Iterable[Operation]) -> None:
        self.control_inputs = list(control_inputs)
        #: Operations made inside this scope; they and their consumers already wait for the control inputs.
        self.seen: set[Operation] = set()

    def needed_by(self, inputs: set[Operation]) -> list[Operation]:
        """The control inputs that an operation with these `inputs` must be given: none if an input implies them."""
        if not self.seen.isdisjoint(inputs):
            return []
        return [op for op in self.control_inputs if op not in inputs]
