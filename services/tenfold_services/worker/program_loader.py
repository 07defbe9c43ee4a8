"""Makes programs of partitions, ready to run: compiled, with the functions of their graph, and watched for fusion."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tenfold_compiler.build import build
from tenfold_core.op_gradients import no_gradients

from ..limits import DEFAULT_LIMITS, Limits
from .functions import FunctionRuntime
from .fusion_tiers import Tier
from .loaded_program import LoadedProgram

if TYPE_CHECKING:
    from tenfold_compiler.node_kernels import Target
    from tenfold_core.op_gradients import OpGradients
    from tenfold_kernels.fusion.compiler import FusionCompiler
    from tenfold_protos.graph_pb2 import GraphDef


@dataclass(frozen=True, slots=True)
class ProgramLoader:
    """Makes programs of partitions, for one session at one task."""

    target: Target
    limits: Limits = DEFAULT_LIMITS
    #: Fuses programs that are hot; None: none is.
    compiler: FusionCompiler | None = None
    #: Of ops, of which gradients of functions are put together.
    gradients: OpGradients = no_gradients

    def load(self, graph_def: GraphDef) -> LoadedProgram:
        """Compiles a partition. Blocks while kernels are built, so call it in a thread.

        Raises InvalidArgumentError, NotFoundError, UnimplementedError or ResourceExhaustedError naming the node that
        cannot be compiled, or the limit.
        """
        target = self.target
        if target.functions is None and graph_def.library.function:
            runtime = FunctionRuntime(graph_def.library, self._load_body, self.gradients, target.most_turns)
            target = replace(target, functions=runtime)
        loaded = LoadedProgram(build(graph_def, target), self.limits.inline_nanoseconds)
        if self.compiler is not None and target.fuses:
            _watch(loaded, self.compiler, target)
        return loaded

    def _load_body(self, body: GraphDef, runtime: FunctionRuntime) -> LoadedProgram:
        """The body of a function: it shares its caller's functions, and its stateful kernels are its own."""
        target = replace(self.target, functions=runtime, stateful=None)
        return replace(self, target=target, gradients=no_gradients).load(body)


def _watch(loaded: LoadedProgram, compiler: FusionCompiler, target: Target) -> None:
    """Has the program fused once it is hot, and its halves once they are."""
    for half in loaded.halves:
        _watch(half, compiler, target)
    generated = loaded.compiled.generated
    if loaded.compiled.fusible is not None and generated is not None:
        resources = target.resources if loaded.compiled.uses_gpu else None
        generated.namespace["tick"] = Tier(loaded, compiler, resources).tick
