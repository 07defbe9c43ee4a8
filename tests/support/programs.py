"""Partitions compiled as a worker does it, and a small straight program, for tests without an event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from support.parts import PartBuilder
from tenfold_compiler.node_kernels import Target
from tenfold_core import dtypes
from tenfold_core.op_gradients import no_gradients
from tenfold_kernels.resources.state import ResourceManager
from tenfold_services.limits import DEFAULT_LIMITS, Limits
from tenfold_services.worker.dynamic_executor import DynamicExecution
from tenfold_services.worker.program_loader import ProgramLoader

if TYPE_CHECKING:
    from tenfold_core.op_gradients import OpGradients
    from tenfold_kernels.fusion.compiler import FusionCompiler
    from tenfold_kernels.registry import FunctionCaller
    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_services.worker.execution import StepIO
    from tenfold_services.worker.loaded_program import LoadedProgram

TASK = "/job:localhost/replica:0/task:0"


def compile_program(
    graph_def: GraphDef,
    task: str,
    resources: ResourceManager,
    limits: Limits = DEFAULT_LIMITS,
    *,
    compiler: FusionCompiler | None = None,
    functions: FunctionCaller | None = None,
    gradients: OpGradients = no_gradients,
) -> LoadedProgram:
    """A partition's program, as a worker makes it; with a `compiler` it is fused once it is hot."""
    target = Target(
        task,
        resources,
        limits.nodes_per_graph,
        functions=functions,
        fuses=compiler is not None and compiler.options.mode != "off",
        most_turns=limits.loop_turns,
    )
    return ProgramLoader(target, limits, compiler, gradients).load(graph_def)


def compiled(part: PartBuilder) -> LoadedProgram:
    return compile_program(part.graph_def, TASK, ResourceManager())


def node_by_node(program: LoadedProgram, io: StepIO) -> DynamicExecution:
    """A step on the dynamic executor, whatever the program."""
    return DynamicExecution(program.compiled, program.node_edges, io)


class Sums(NamedTuple):
    """x + y and x - y, as a program."""

    program: LoadedProgram
    x: str
    y: str
    plus: str
    minus: str


def sums() -> Sums:
    part = PartBuilder()
    x, y = part.feed("x"), part.feed("y")
    part.node("Add", "plus", ["x", "y"], T=dtypes.float32)
    part.node("Sub", "minus", ["x", "y"], T=dtypes.float32)
    plus, minus = part.fetch("plus"), part.fetch("minus")
    return Sums(compiled(part), x, y, plus, minus)


def numbers(*values: float) -> list[np.ndarray]:
    return [np.float32(value) + np.zeros(1, np.float32) for value in values]
