"""Builds the kernels of a part's nodes, and the values of its constants, for the task that will run them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_compiler.part.cross_memory import device_type_of
from tenfold_compiler.part.part_graph import node_error
from tenfold_compiler.values import read_only
from tenfold_core import opdefs
from tenfold_core.opdefs.runtime_ops import CONSTANT_OPS, JOINED_OPS
from tenfold_kernels import registry
from tenfold_kernels.arrays import contiguous
from tenfold_kernels.loop_turns import MOST_TURNS
from tenfold_kernels.resources.waiting import Waiting

if TYPE_CHECKING:
    from tenfold_compiler.part.part_graph import PartGraph, PartNode
    from tenfold_kernels.registry import FunctionCaller
    from tenfold_kernels.resources.state import ResourceManager

#: (node name, op, device) → the one kernel of that node in its session.
StatefulKernels: TypeAlias = dict[tuple[str, str, str], Callable[..., Any]]
#: Ops that copy a constant into a variable's memory, whatever its strides.
_COPY_THEIR_INPUT = frozenset(("Assign", "AssignVariableOp"))
#: Makes of a kernel one whose result is waited for.
Beside: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Waiting]]


@dataclass(frozen=True, slots=True)
class Target:
    """The task that a part is compiled for: what its kernels use, and what bounds it."""

    task: str
    resources: ResourceManager
    #: Nodes that a part may have.
    most_nodes: int
    #: Keeps the kernels of a session's stateful ops: a random op goes on in its sequence when another run signature
    #: uses it. TensorFlow's OpSegment does the same. None: each part has its own.
    stateful: StatefulKernels | None = None
    #: Calls functions of the graph's library; None for a graph without.
    functions: FunctionCaller | None = None
    #: This process opened the session, which may call functions of it.
    is_own_session: bool = False
    #: Runs a kernel that uses files elsewhere; None: on the step's thread.
    with_files: Beside | None = None
    #: Whether hot programs are fused.
    fuses: bool = False
    #: Turns that loops take in a step.
    most_turns: int = MOST_TURNS

    def constants(self, part: PartGraph) -> dict[int, tuple[Any, ...]]:
        """The values of a part's constants, a variable's handle among them. Raises what `kernel` raises.

        What fills nothing but variables may hold a number that is repeated once, with strides of 0; others are whole.
        """
        fresh = Target(self.task, self.resources, self.most_nodes)
        read_elsewhere = {
            source
            for node in part.nodes
            for source in node.sources
            if node.op not in _COPY_THEIR_INPUT or node.memory is not None
        }
        constants = {}
        for node in part.nodes:
            if node.op in CONSTANT_OPS:
                value = np.asarray(fresh.kernel(node)())
                value = contiguous(value) if node.index in read_elsewhere else value
                constants[node.index] = (read_only(value),)
        return constants

    def kernel(self, node: PartNode, device_type: str = "") -> Callable[..., Any]:
        """The node's kernel, for the type of its own device unless another one is given.

        Raises the OpError of the look-up or the builder, naming the node.
        """
        device = node.node_def.device or f"{self.task}/device:CPU:0"
        key = (node.name, node.op, device)
        kernel_node = registry.KernelNode(
            node.name,
            node.op,
            node.attrs,
            node.input_types,
            node.output_types,
            device,
            self.resources,
            functions=self.functions,
            is_own_session=self.is_own_session,
        )
        try:
            builder = registry.lookup(kernel_node, device_type or device_type_of(device))
            if self.stateful is None or node.op in JOINED_OPS or not opdefs.get(node.op).is_stateful:
                return builder(kernel_node)
            # Two graphs may be compiled at once; all use the first kernel made.
            return self.stateful.get(key) or self.stateful.setdefault(key, builder(kernel_node))
        except Exception as error:
            raise node_error(node, error) from error
