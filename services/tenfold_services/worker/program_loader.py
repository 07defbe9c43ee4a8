"""Makes programs of partitions, ready to run: compiled, with the functions of their graph, and watched for fusion.

A hot program is fused in the background and swapped, never in a step (tenfold_kernels/fusion/compiler.py). In
TensorFlow: graph_mgr.cc's InitItem; XLA's auto-clustering, in spirit.
"""

from __future__ import annotations

import contextlib
import weakref
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_compiler.build import build, fused
from tenfold_compiler.part.graph_sizes import SMALL_NODES
from tenfold_core import collector
from tenfold_core.op_gradients import no_gradients
from tenfold_kernels.cuda._arrays import DeviceArray
from tenfold_kernels.fusion.cache import program_name
from tenfold_kernels.fusion.compiler import attempt

from ..limits import DEFAULT_LIMITS, Limits
from .functions import FunctionRuntime
from .loaded_program import LoadedProgram

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_compiler.fuse.nodes import Shape
    from tenfold_compiler.node_kernels import Target
    from tenfold_core.op_gradients import OpGradients
    from tenfold_kernels.fusion.compiler import FusionCompiler
    from tenfold_kernels.resources.state import ResourceManager
    from tenfold_protos.graph_pb2 import GraphDef

#: A program of more fusible nodes than this is hot after fewer steps, but not before some: many run only once.
_USUAL_NODES, _FEWEST_STEPS = 250, 4
#: Seconds of steps after which a program is hot, however few they were; of which a step counts so many at most, for
#: from one to the next the program may have been idle.
_HOT_SECONDS, _STEP_SECONDS = 0.5, 0.1
#: What has a shape to note.
_ARRAYS = (np.ndarray, DeviceArray)


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
        loaded = LoadedProgram(build(graph_def, target), self.limits.inline_nanoseconds, target.resources.unfinished)
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
        generated.namespace["tick"] = Tier(loaded, compiler, target.resources).tick


class Tier:
    """The way of one program from cold to fused.

        cold      generated code, one kernel a node; a tick a step counts, to one if an earlier process has fused it,
                  and what steps take adds up: half a second of long ones will do
        probed    for one step each fusible kernel notes the shapes it sees, then takes itself out
        queued    a thread of its own groups the nodes, a process of its own runs LLVM, the result comes from disk
        fused     `LoadedProgram.compiled` is another one from the next step on; the ticks are gone

    Eager probes the first step and compiles at the beginning of the third, in its thread: for tests and for measuring.
    """

    def __init__(self, program: LoadedProgram, compiler: FusionCompiler, resources: ResourceManager | None) -> None:
        """`resources`: those of the program's session."""
        self._program = weakref.ref(program)
        self._compiler, self._resources = compiler, resources
        self._nodes = program.compiled.fusible or ()
        #: Node → shapes of the inputs and of the output in the probed step. Written by the probes.
        self._shapes: dict[int, tuple[tuple[Shape, ...], Shape]] = {}
        self._eager = compiler.options.mode == "eager"
        #: What other processes know it by.
        self._name = program_name(repr([(each.op, each.inputs, each.controls) for each in program.compiled.part.nodes]))
        #: Ticks until probing, then until fusing. A lost count between threads does no harm.
        known = self._eager or compiler.cache.was_hot(self._name)
        steps = int(not self._eager) if known else _steps_until_hot(compiler.options.hot_steps, len(self._nodes))
        self._until_probe, self._until_fuse = steps, 2 if known else 4
        #: When the step before this one began, None of the first; seconds that count.
        self._began: float | None = None
        self._spent = 0.0

    def tick(self) -> None:
        """Called at the beginning of each step. Never blocks, unless eager."""
        if self._until_probe > 0:
            now = perf_counter()
            if self._began is not None:
                self._spent += min(now - self._began, _STEP_SECONDS)
            self._began = now
            self._until_probe = 0 if self._spent >= _HOT_SECONDS else self._until_probe - 1
            return
        program = self._program()
        if program is None:
            return
        generated = program.compiled.generated
        assert generated is not None
        if not self._shapes:
            self._shapes[-1] = ((), ())
            for node in self._nodes:
                generated.namespace[f"k{node.index}"] = _probe(node.index, generated.namespace, self._shapes)
        self._until_fuse -= 1
        if self._until_fuse > 0:
            return
        if not self._eager and not self._compiler.submit(self.fuse):
            self._until_fuse = self._compiler.options.hot_steps
            return
        generated.namespace["tick"] = lambda: None
        if self._eager:
            attempt(self.fuse)

    def fuse(self) -> None:
        """Groups, compiles and swaps. Blocks for seconds."""
        program = self._program()
        if program is None:
            return
        self._shapes.pop(-1, None)
        with collector.held_back() if len(self._nodes) >= SMALL_NODES else contextlib.nullcontext():
            fusion = fused(program.compiled, dict(self._shapes), self._compiler.cache, self._resources)
        if not fusion.groups:
            return
        if not self._eager:
            self._compiler.compile_elsewhere([group.source for group in fusion.groups if group.source is not None])
            if self._compiler.stopping:
                return
        program.swap(fusion)
        self._compiler.cache.note_hot(self._name)


def _steps_until_hot(hot_steps: int, nodes: int) -> int:
    """As many as for _USUAL_NODES fusible nodes, by what they cost: 4 of 64 for a chain of thousands."""
    return min(hot_steps, max(_FEWEST_STEPS, hot_steps * _USUAL_NODES // max(nodes, 1)))


def _probe(index: int, namespace: dict[str, Any], shapes: dict[int, Any]) -> Callable[..., Any]:
    name = f"k{index}"
    kernel = namespace[name]

    def probe(*inputs: Any) -> Any:
        output = kernel(*inputs)
        namespace[name] = kernel
        if type(output) in _ARRAYS and all(type(value) in _ARRAYS for value in inputs):
            shapes[index] = tuple(value.shape for value in inputs), output.shape
        return output

    return probe
