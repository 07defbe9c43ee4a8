"""`tf.CriticalSection`: parts of a graph of which one runs at a time, on all tasks that know its mutex.

A part begins with a MutexLock, which waits for its turn, and ends with a ConsumeMutexLock. The kernels are
kernels/cpu/data_flow_mutex.py. Follows TensorFlow 1.15's ops/critical_section_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold import nest
from tenfold.graph import (
    add_to_collections,
    colocate_with,
    control_dependencies,
    get_collection,
    get_default_graph,
    init_scope,
    name_scope,
)
from tenfold.graph.op_builder import apply_op
from tenfold.graph.operation import Operation
from tenfold.ops import array, control_flow
from tenfold.ops.tensor_array import TensorArray
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tenfold.graph.tensor import Tensor

__all__ = ["CriticalSection"]

#: Collections of a graph, by TensorFlow's names.
_SECTIONS = "critical_sections"
_EXECUTIONS = "critical_section_executions"


class _Execution(NamedTuple):
    """One `execute`: its lock, its mutex, what it uses, and whether nobody else may."""

    op: Operation
    handle: Tensor
    resources: list[Tensor]
    exclusive_resource_access: bool


class CriticalSection:
    """A mutex in the graph. `shared_name` is its name at the task, by default that of its operation.

    Raises ValueError for a name together with a `critical_section_def`, NotImplementedError for the latter.
    """

    def __init__(
        self,
        name: str | None = None,
        shared_name: str | None = None,
        critical_section_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if critical_section_def and name is not None:
            raise ValueError("critical_section_def and shared_name are mutually exclusive.")
        if critical_section_def:
            raise NotImplementedError("A critical section has no message: make it anew, with the same shared_name")
        with name_scope(name, "CriticalSection", []) as scope, init_scope():
            shared = scope if shared_name is None else shared_name
            container = get_default_graph()._container or ""
            self._handle: Tensor = apply_op("MutexV2", scope, shared_name=shared, container=container)
        add_to_collections(_SECTIONS, self)

    @property
    def name(self) -> str:
        """The name of the mutex's operation."""
        return self._handle.op.name

    def execute(self, fn: Callable[[], Any], exclusive_resource_access: bool = True, name: str | None = None) -> Any:
        """What `fn` returns, at least one tensor. Nothing else of the section runs while what it added does.

        `exclusive_resource_access` says that other sections use none of its resources. Raises ValueError if one does,
        and if `fn` uses this very section, which would wait for itself.
        """
        with name_scope(name, "critical_section_execute", []):
            lock = apply_op("MutexLock", mutex=self._handle)
            graph = get_default_graph()
            with graph._lock:
                before = set(graph.get_operations())
                with control_dependencies([lock]):
                    returned = fn()
                created = [op for op in graph.get_operations() if op not in before]
            _wait_for_arguments(lock.op, created)
            resources = list(
                dict.fromkeys(each for op in created for each in op.inputs if each.dtype == dtypes.resource)
            )
            if any(self._is_self_handle(each) for each in resources):
                raise ValueError(
                    "The function fn attempts to directly access the CriticalSection in which it would be running.  "
                    "This is illegal and would cause deadlocks."
                )
            self._refuse_shared(resources, exclusive_resource_access)
            done = [_identity(each) for each in nest.flatten(returned)]
            with control_dependencies(done):
                with colocate_with(self._handle):
                    released = apply_op("ConsumeMutexLock", mutex_lock=lock)
                together = nest.pack_sequence_as(returned, control_flow.tuple(nest.flatten(returned)))
            with control_dependencies([released]):
                outputs = nest.map_structure(_identity, together)
            add_to_collections(_EXECUTIONS, _Execution(lock.op, self._handle, resources, exclusive_resource_access))
            return outputs

    def _is_self_handle(self, tensor: Tensor) -> bool:
        """Whether a tensor is this section's mutex: one of that name at the same place."""
        op, own = tensor.op, self._handle.op
        return (
            op.type == "MutexV2"
            and bool(op._attrs["shared_name"])
            and op._attrs["shared_name"] == own._attrs["shared_name"]
            and (op.device == own.device or op.colocation_groups() == own.colocation_groups())
        )

    def _refuse_shared(self, resources: list[Tensor], exclusive: bool) -> None:
        for other in get_collection(_EXECUTIONS):
            if self._is_self_handle(other.handle) or not (exclusive or other.exclusive_resource_access):
                continue
            shared = [each for each in resources if each in other.resources]
            if shared:
                raise ValueError(
                    f"This execution would access resources: {shared}.  Either this lock (CriticalSection: "
                    f"{self._handle}) or lock '{other}' (CriticalSection: {other.handle}) requested exclusive resource "
                    "access of this resource.  Did you mean to call execute with keyword argument "
                    "exclusive_resource_access=False?"
                )


def _identity(value: Any) -> Any:
    if isinstance(value, TensorArray):
        return value.identity()
    if isinstance(value, Operation):
        return control_flow.group(value)
    return array.identity(value)


def _wait_for_arguments(lock: Operation, created: Iterable[Operation]) -> None:
    """Makes the lock wait for all that the part takes from outside: nothing is waited for while it is held."""
    inside = {*created, lock, *lock.control_inputs, *(tensor.op for tensor in lock.inputs)}
    outside: dict[Operation, None] = {}
    for op in created:
        outside.update(dict.fromkeys(tensor.op for tensor in op.inputs if tensor.op not in inside))
        outside.update(dict.fromkeys(before for before in op.control_inputs if before not in inside))
    if outside:
        # Grouped here, so that what is outside a loop around the lock is brought into it.
        lock._add_control_input(control_flow.group(*outside))
