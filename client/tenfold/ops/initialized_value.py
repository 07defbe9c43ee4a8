"""Lets the initial value of a variable depend on other variables, in whatever order they are initialized.

`guarded(value)` rewrites an expression such as `2 * w.read` to use the *initial* value of `w` while `w` is
uninitialized. Called by the variable classes when they build their initializer. Follows TensorFlow's ops/variables.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.collections import GraphKeys
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.tensor import Tensor
from tenfold.ops.control_flow_cond import cond
from tenfold_core.opdefs.runtime_ops import VARIABLE_OPS

if TYPE_CHECKING:
    from tenfold.graph.graph import Graph
    from tenfold.graph.operation import Operation

#: Ops that are not copied: a copy would test another state, or run a branch twice.
_KEPT_OPS = ("IsVariableInitialized", "VarIsInitializedOp", "ReadVariableOp", "If")


def initialized_value(variable: Any) -> Tensor:
    """The value of `variable` if it has one when the step runs, else its initial value.

    A conditional, so that only the one that is needed is computed and an uninitialized variable is not read.
    """
    # Not subject to the caller's control dependencies: the result may be part of an initializer.
    with variable.graph.control_dependencies(None):
        value: Tensor = cond(variable.is_initialized(), variable.read_value, lambda: variable.initial_value)
        return value


def initial_tensor(graph: Graph, initial_value: Any, dtype: Any) -> Tensor:
    """What a variable is given to begin with, made if it is callable, in a name scope of its own and on no device."""
    with graph.name_scope("Initializer"), graph.device(None):
        return convert_to_tensor(
            initial_value() if callable(initial_value) else initial_value, name="initial_value", dtype=dtype
        )


def guarded(name: str, initial_value: Tensor) -> Tensor:
    """`initial_value`, or a copy of its expression in which variables are replaced by their initialized values.

    `name` is the scope of the variable that gets the value. An expression with a cycle is returned unchanged.
    """
    if not isinstance(initial_value, Tensor):
        raise TypeError(f"initial_value needs to be a Tensor: {initial_value}")
    if _has_cycle(initial_value.op):
        return initial_value
    return _Copier(name).tensor(initial_value)


def _has_cycle(start: Operation) -> bool:
    # Depth first without recursion: an initial value may be a long chain.
    started: set[Operation] = set()
    finished: set[Operation] = set()
    stack: list[tuple[Operation, bool]] = [(start, False)]
    while stack:
        op, done = stack.pop()
        if done:
            finished.add(op)
            continue
        if op in finished:
            continue
        if op in started:
            return True
        started.add(op)
        stack.append((op, True))
        for before in [*(tensor.op for tensor in op.inputs), *op.control_inputs]:
            if before not in finished:
                if before in started:
                    return True
                stack.append((before, False))
    return False


class _Copier:
    def __init__(self, name: str) -> None:
        self._name = name
        #: Operation → the one that replaces it, possibly itself.
        self._copies: dict[Operation, Operation] = {}

    def tensor(self, tensor: Tensor) -> Tensor:
        copy = self._copies.get(tensor.op)
        if copy is None:
            copy = self._copies[tensor.op] = self._copy(tensor.op)
        return copy.outputs[tensor.value_index]

    def _copy(self, op: Operation) -> Operation:
        if op.type in _KEPT_OPS:
            return op
        if op.type in VARIABLE_OPS:
            initialized = _initialized_value_of(op)
            return op if initialized is None else initialized.op
        inputs = [self.tensor(tensor) for tensor in op.inputs]
        if all(new is old for new, old in zip(inputs, op.inputs, strict=True)):
            return op
        new_type = "Switch" if op.type == "RefSwitch" else op.type
        new_name = f"{op.name}_{self._name}".replace(":", "_").rstrip("/")
        node_def = op.node_def
        return op.graph.create_op(
            new_type, inputs, name=new_name, attrs={key: node_def.attr[key] for key in node_def.attr}
        )


def _initialized_value_of(variable_op: Operation) -> Any:
    graph = variable_op.graph
    for key in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES):
        for variable in graph.get_collection(key):
            if variable.op is variable_op:
                return variable.initialized_value()
    return None
