"""Makes a program of a partition: reads it, builds its kernels and constants, optimizes it.

Called once per RegisterGraph by worker.py, in a thread, because kernels may compile; and by functions.py for bodies.
In TensorFlow: graph_mgr.cc's InitItem.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_compiler.optimize import optimize
from tenfold_compiler.part import host_functions
from tenfold_compiler.part.creation_order import keep_order
from tenfold_compiler.part.cross_memory import device_type_of, insert_copies, note_memory
from tenfold_compiler.part.node_facts import views_of_references
from tenfold_compiler.part.part_graph import PartGraph, PartNode, node_error
from tenfold_compiler.part.private_inputs import steered_by_others, with_copies
from tenfold_compiler.part.read_part import read_part
from tenfold_compiler.values import read_only
from tenfold_core import errors, opdefs
from tenfold_core.op_gradients import no_gradients
from tenfold_core.opdefs.runtime_ops import (
    ALIAS_OPS,
    CONSTANT_OPS,
    COPY_OPS,
    DYNAMIC_OPS,
    ORDER_OPS,
    RECV_OPS,
    SEND_OPS,
)
from tenfold_kernels import contexts, registry
from tenfold_kernels.cuda import copies
from tenfold_kernels.host_threads import on_a_thread
from tenfold_kernels.resources.waiting import Waiting

from ..limits import DEFAULT_LIMITS, Limits
from .functions import FunctionRuntime
from .program import Program

if TYPE_CHECKING:
    from tenfold_core.op_gradients import OpGradients
    from tenfold_kernels.fusion.compiler import FusionCompiler
    from tenfold_kernels.resources.state import ResourceManager
    from tenfold_protos.graph_pb2 import GraphDef

#: (node name, op, device) → the one kernel of that node in its session.
StatefulKernels: TypeAlias = dict[tuple[str, str, str], Callable[..., Any]]
#: Makes of a kernel one whose result is waited for.
Beside: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Waiting]]


def compile_program(
    graph_def: GraphDef,
    task: str,
    resources: ResourceManager,
    limits: Limits = DEFAULT_LIMITS,
    stateful: StatefulKernels | None = None,
    compiler: FusionCompiler | None = None,
    functions: FunctionRuntime | None = None,
    gradients: OpGradients = no_gradients,
    is_own_session: bool = False,
    with_files: Beside | None = None,
) -> Program:
    """Compiles a partition. Blocks while kernels are built, so call it in a thread.

    `stateful` keeps the kernels of a session's stateful ops: a random op goes on in its sequence when another run
    signature uses it. TensorFlow's OpSegment does the same. `compiler` fuses the program once it is hot. `functions` is
    given for the body of a function, which shares its caller's; else they are those of the graph's library, whose
    gradients are put together from `gradients` of ops. `is_own_session`: this process opened the session, which may
    call functions of it. `with_files` runs a kernel that uses files elsewhere; None: on the step's thread.

    Raises InvalidArgumentError, NotFoundError or UnimplementedError naming the node that cannot be compiled.
    """
    part = read_part(graph_def, task, limits.nodes_per_graph)

    if functions is None and graph_def.library.function:
        functions = FunctionRuntime(
            graph_def.library,
            lambda body, runtime: compile_program(
                body,
                task,
                resources,
                limits,
                None,
                compiler,
                runtime,
                is_own_session=is_own_session,
                with_files=with_files,
            ),
            gradients,
            limits.loop_turns,
        )

    def build(node: PartNode, device_type: str = "") -> Callable[..., Any]:
        return build_kernel(node, task, resources, stateful, functions, is_own_session, device_type)

    uses_gpu = note_memory(part)
    constants = build_constants(part, task, resources)
    optimize(part, constants, partial(build, device_type="CPU"))
    if uses_gpu:
        insert_copies(part, constants, views_of_references(part, constants))
    views = views_of_references(part, constants)
    kernels: dict[int, Any] = {}
    for node in part.nodes:
        if _is_executors_own(node):
            _check_transfer(node)
        elif node.op in COPY_OPS:
            if node.index not in constants:
                place = node.node_def.device if node.op == "_CopyToDevice" else ""
                kernels[node.index] = copies.begin if node.op == "_BeginCopyToHost" else copies.kernel(place)
        elif node.index not in constants:
            kernels[node.index] = build(node)
            if views and (places := steered_by_others(node, views)):
                kernels[node.index] = with_copies(kernels[node.index], places)
            device_type = device_type_of(node.node_def.device)
            node.blocking = registry.is_blocking(node.op, device_type)
            if with_files is not None and registry.uses_files(node.op, device_type):
                kernels[node.index], node.blocking = with_files(kernels[node.index]), True
    contexts.watch_next_calls()
    for index in host_functions.independent(part):
        kernels[index], part.nodes[index].blocking = on_a_thread(kernels[index]), True
    keep_order(part)
    return Program(
        part,
        kernels,
        constants,
        compiler,
        limits.inline_nanoseconds,
        most_turns=limits.loop_turns,
        resources=resources if uses_gpu else None,
    )


def build_constants(part: PartGraph, task: str, resources: ResourceManager) -> dict[int, tuple[Any, ...]]:
    """The values of a part's constants, a variable's handle among them. Raises what `compile_program` raises."""
    return {
        node.index: (read_only(np.asarray(build_kernel(node, task, resources, None)())),)
        for node in part.nodes
        if node.op in CONSTANT_OPS
    }


def _is_executors_own(node: PartNode) -> bool:
    return node.op in RECV_OPS | SEND_OPS | DYNAMIC_OPS | ALIAS_OPS | ORDER_OPS


def _check_transfer(node: PartNode) -> None:
    """Raises InvalidArgumentError for a Send or Recv whose key cannot be made."""
    if node.op in RECV_OPS or node.op in SEND_OPS:
        try:
            node.rendezvous_key()
        except (UnicodeDecodeError, TypeError, ValueError) as error:
            raise node_error(node, errors.invalid_argument(f"Its attributes make no key: {error}")) from error


def build_kernel(
    node: PartNode,
    task: str,
    resources: ResourceManager,
    stateful: StatefulKernels | None,
    functions: FunctionRuntime | None = None,
    is_own_session: bool = False,
    device_type: str = "",
) -> Callable[..., Any]:
    """The node's kernel, for the type of its own device unless another one is given. Raises the OpError of the look-up
    or the builder, naming the node.
    """
    try:
        return _build_kernel(node, task, resources, stateful, functions, is_own_session, device_type)
    except Exception as error:
        raise node_error(node, error) from error


def _build_kernel(
    node: PartNode,
    task: str,
    resources: ResourceManager,
    stateful: StatefulKernels | None,
    functions: FunctionRuntime | None,
    is_own_session: bool,
    device_type: str,
) -> Callable[..., Any]:
    device = node.node_def.device or f"{task}/device:CPU:0"
    kernel_node = registry.KernelNode(
        name=node.name,
        op=node.op,
        attrs=node.attrs,
        input_types=node.input_types,
        output_types=node.output_types,
        device=device,
        resources=resources,
        functions=functions,
        is_own_session=is_own_session,
    )
    builder = registry.lookup(kernel_node, device_type or device_type_of(device))
    if stateful is None or not opdefs.get(node.op).is_stateful:
        return builder(kernel_node)
    key = (node.name, node.op, device)
    kernel = stateful.get(key)
    if kernel is None:
        # Two graphs may be compiled at once; all use the first kernel made.
        kernel = stateful.setdefault(key, builder(kernel_node))
    return kernel
