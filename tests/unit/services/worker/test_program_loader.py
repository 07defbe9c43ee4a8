"""When a program is fused: ticks until it is probed, ticks until it is queued, and what a lost program leaves alone."""

from __future__ import annotations

import gc
import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from support.parts import PartBuilder
from support.programs import TASK, compile_program, compiled
from tenfold_compiler.node_kernels import Target
from tenfold_core import dtypes
from tenfold_kernels.fusion.compiler import FusionCompiler, FusionOptions
from tenfold_kernels.resources.state import ResourceManager
from tenfold_protos.graph_pb2 import GraphDef
from tenfold_services.limits import DEFAULT_LIMITS
from tenfold_services.worker import program_loader
from tenfold_services.worker.execution import StepIO
from tenfold_services.worker.program_loader import ProgramLoader, Tier, _probe, _steps_until_hot

if TYPE_CHECKING:
    from pathlib import Path

    from tenfold_services.worker.loaded_program import LoadedProgram

F32 = dtypes.float32


@pytest.fixture(autouse=True)
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps take none, so that their number alone makes a program hot, on a busy machine too."""
    monkeypatch.setattr(program_loader, "perf_counter", lambda: 0.0)


class Cache:
    """Knows programs, and has no code of any."""

    def __init__(self) -> None:
        self.hot: list[str] = []

    def was_hot(self, program: str) -> bool:
        return program in self.hot

    def note_hot(self, program: str) -> None:
        self.hot.append(program)


class Compiler:
    """A queue that takes jobs or refuses them, and runs none by itself."""

    def __init__(self, mode: str = "auto", hot_steps: int = 3, takes: bool = True, cache: Cache | None = None) -> None:
        self.options, self.takes = SimpleNamespace(mode=mode, hot_steps=hot_steps), takes
        self.cache, self.stopping = cache or Cache(), False
        self.jobs: list[Any] = []
        self.elsewhere: list[Any] = []

    def submit(self, job: Any) -> bool:
        if self.takes:
            self.jobs.append(job)
        return self.takes

    def compile_elsewhere(self, sources: list[Any]) -> None:
        self.elsewhere.append(sources)


def chain(length: int = 2) -> tuple[PartBuilder, str, str]:
    part = PartBuilder()
    x = part.feed("x")
    name = "x"
    for number in range(length):
        name = part.node("Neg" if number % 2 else "Square", f"n{number}", [name], T=F32)
    return part, x, part.fetch(name)


def watched(compiler: Compiler, length: int = 2) -> tuple[LoadedProgram, str, str]:
    part, x, y = chain(length)
    return compile_program(part.graph_def, TASK, ResourceManager(), compiler=cast("Any", compiler)), x, y


def step(program: LoadedProgram, x: str, y: str) -> Any:
    execution = program.start(StepIO({x: np.float32([2])}, lambda *_: None))
    execution.advance()
    return execution.fetched()[y].tolist()


def tier_of(program: LoadedProgram) -> Tier:
    assert program.compiled.generated is not None
    found: Tier = program.compiled.generated.namespace["tick"].__self__
    return found


@pytest.mark.parametrize(
    ("hot", "nodes", "steps"),
    [(64, 0, 64), (64, 250, 64), (64, 251, 63), (64, 500, 32), (64, 4000, 4), (64, 10**6, 4), (3, 10**6, 3), (0, 5, 0)],
)
def test_a_large_program_is_hot_after_fewer_steps_but_not_before_some(hot: int, nodes: int, steps: int) -> None:
    assert _steps_until_hot(hot, nodes) == steps


def test_a_hot_program_is_probed_and_queued_once() -> None:
    compiler = Compiler(hot_steps=3)
    program, x, y = watched(compiler)
    tier = tier_of(program)
    for _ in range(3):
        assert step(program, x, y) == [-4.0]
    assert not tier._shapes
    step(program, x, y)
    assert {key: shapes for key, shapes in tier._shapes.items() if key >= 0} == {
        node.index: (((1,),), (1,)) for node in tier._nodes
    }
    for _ in range(2):
        step(program, x, y)
    assert compiler.jobs == []
    step(program, x, y)
    assert compiler.jobs == [tier.fuse]
    for _ in range(9):
        assert step(program, x, y) == [-4.0]
    assert len(compiler.jobs) == 1
    assert program.compiled.generated is not None
    assert not hasattr(program.compiled.generated.namespace["tick"], "__self__")


@pytest.mark.parametrize(
    ("between", "steps"),
    [(0.04, 14 + 4), (0.001, 64 + 4), (60.0, 6 + 4)],
    ids=["long steps", "short steps", "one a minute"],
)
def test_a_program_of_long_steps_is_hot_after_half_a_second_of_them(
    between: float, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count()
    monkeypatch.setattr(program_loader, "perf_counter", lambda: between * next(clock))
    compiler = Compiler(hot_steps=64)
    program, x, y = watched(compiler)

    taken = 0
    while not compiler.jobs:
        step(program, x, y)
        taken += 1

    assert taken == steps


@pytest.mark.parametrize(
    ("mode", "length", "steps"),
    [("auto", 2, 3), ("auto", 3, 64 + 4), ("eager", 2, 2)],
    ids=["fused before", "another program", "eager"],
)
def test_a_program_that_was_hot_in_an_earlier_process_is_probed_in_its_second_step(
    mode: str, length: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_loader, "attempt", lambda job: compiler.submit(job))
    cache = Cache()
    earlier, _, _ = watched(Compiler(cache=cache))
    cache.note_hot(tier_of(earlier)._name)
    compiler = Compiler(mode, hot_steps=64, cache=cache)
    program, x, y = watched(compiler, length)

    taken = 0
    while not compiler.jobs:
        step(program, x, y)
        taken += 1

    assert taken == steps


def test_a_program_is_known_once_it_was_swapped(tmp_path: Path) -> None:
    def fused_after(compiler: FusionCompiler) -> int:
        part, x, y = chain()
        program = compile_program(part.graph_def, TASK, ResourceManager(), compiler=compiler)
        tier, taken = tier_of(program), 0
        while compiler._thread is None:
            step(program, x, y)
            taken += 1
        compiler.join(100)
        assert (tmp_path / tier._name).exists()
        assert step(program, x, y) == [-4.0]
        return taken

    options = FusionOptions(hot_steps=8, cache_folder=tmp_path)
    compilers = [FusionCompiler(options), FusionCompiler(options)]

    taken = [fused_after(compiler) for compiler in compilers]

    for compiler in compilers:
        compiler.close(100)
    assert taken == [8 + 4, 3]


def test_a_queue_that_is_full_is_asked_again_later() -> None:
    compiler = Compiler(hot_steps=2, takes=False)
    program, x, y = watched(compiler)
    for _ in range(2 + 4):
        step(program, x, y)
    assert tier_of(program)._until_fuse == 2
    compiler.takes = True
    step(program, x, y)
    assert compiler.jobs == []
    step(program, x, y)
    assert len(compiler.jobs) == 1


def test_eager_probes_the_first_step_and_fuses_at_the_beginning_of_the_third(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[Any] = []
    monkeypatch.setattr(program_loader, "attempt", jobs.append)
    program, x, y = watched(Compiler("eager"))
    tier = tier_of(program)

    step(program, x, y)
    assert len(tier._shapes) == 3  # two nodes, and the mark that they are probed
    assert jobs == []
    step(program, x, y)

    assert jobs == [tier.fuse]
    step(program, x, y)
    assert len(jobs) == 1


def fusing(monkeypatch: pytest.MonkeyPatch, groups: list[Any]) -> list[Any]:
    """What `fused` is asked for; it finds these groups."""
    asked: list[Any] = []

    def fused(*arguments: Any) -> Any:
        asked.append(arguments)
        return SimpleNamespace(groups=groups)

    monkeypatch.setattr(program_loader, "fused", fused)
    return asked


def test_what_is_fused_is_compiled_elsewhere_first_and_swapped_in(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [SimpleNamespace(source="a"), SimpleNamespace(source=None), SimpleNamespace(source="b")]
    asked, swapped = fusing(monkeypatch, groups), []
    compiler = Compiler()
    program, _, _ = watched(compiler)
    monkeypatch.setattr(program, "swap", swapped.append)
    tier = tier_of(program)
    tier._shapes.update({-1: ((), ()), 0: (((1,),), (1,))})

    tier.fuse()

    assert asked == [(program.compiled, {0: (((1,),), (1,))}, compiler.cache, tier._resources)]
    assert compiler.elsewhere == [["a", "b"]]
    assert [fusion.groups for fusion in swapped] == [groups]
    compiler.stopping = True
    tier.fuse()
    assert len(swapped) == 1


def test_eager_compiles_in_its_own_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    fusing(monkeypatch, [SimpleNamespace(source="a")])
    compiler, swapped = Compiler("eager"), []
    compiler.stopping = True
    program, _, _ = watched(compiler)
    monkeypatch.setattr(program, "swap", swapped.append)

    tier_of(program).fuse()

    assert compiler.elsewhere == []
    assert len(swapped) == 1


def test_a_program_without_groups_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    fusing(monkeypatch, [])
    compiler = Compiler()
    program, _, _ = watched(compiler)
    before = program.compiled

    tier_of(program).fuse()

    assert program.compiled is before
    assert compiler.elsewhere == []


@pytest.mark.parametrize(("nodes", "is_held"), [(0, False), (2, True)])
def test_a_large_program_is_fused_with_the_collector_held_back(
    nodes: int, is_held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[bool] = []
    monkeypatch.setattr(program_loader, "SMALL_NODES", 2)
    monkeypatch.setattr(
        program_loader, "fused", lambda *_: (held.append(not gc.isenabled()), SimpleNamespace(groups=[]))[1]
    )
    program, _, _ = watched(Compiler())
    tier = tier_of(program)
    tier._nodes = tier._nodes[:nodes]

    tier.fuse()

    assert held == [is_held]


def test_a_program_that_is_gone_is_not_ticked_probed_or_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = fusing(monkeypatch, [])
    program, _, _ = watched(Compiler(hot_steps=0))
    tier = tier_of(program)
    tier._program = lambda: None  # type: ignore[assignment]

    tier.tick()
    tier.fuse()

    assert asked == []
    assert not tier._shapes
    del program


@pytest.mark.parametrize(
    ("inputs", "output", "found"),
    [
        ((np.zeros(2), np.zeros((3, 1))), np.zeros((3, 2)), (((2,), (3, 1)), (3, 2))),
        ((np.zeros(2), 5), np.zeros(2), None),
        ((np.zeros(2),), 5, None),
        ((), np.zeros(2), ((), (2,))),
    ],
)
def test_a_probe_notes_shapes_once_and_takes_itself_out(inputs: Any, output: Any, found: Any) -> None:
    calls: list[Any] = []

    def kernel(*values: Any) -> Any:
        calls.append(values)
        return output

    namespace: dict[str, Any] = {"k7": kernel}
    shapes: dict[int, Any] = {}
    probe = namespace["k7"] = _probe(7, namespace, shapes)

    assert probe(*inputs) is output
    assert namespace == {"k7": kernel}
    assert shapes == ({} if found is None else {7: found})
    assert len(calls) == 1


# -- loading -----------------------------------------------------------------------------------------------------------


def target(**fields: Any) -> Target:
    return replace(Target(TASK, ResourceManager(), 100), **fields)


@pytest.mark.parametrize(("fuses", "compiler"), [(False, Compiler()), (True, None)])
def test_a_program_that_is_not_to_be_fused_is_not_watched(fuses: bool, compiler: Any) -> None:
    part, _, _ = chain()
    program = ProgramLoader(target(fuses=fuses), DEFAULT_LIMITS, compiler).load(part.graph_def)
    assert program.compiled.generated is not None
    assert not hasattr(program.compiled.generated.namespace.get("tick"), "__self__")


def test_a_program_is_fused_with_its_resources(monkeypatch: pytest.MonkeyPatch) -> None:
    resources, part = ResourceManager(), chain()[0]
    made: list[Any] = []
    monkeypatch.setattr(
        program_loader, "Tier", lambda *each: (made.append(each), SimpleNamespace(tick=lambda: None))[1]
    )
    compiler = cast("Any", Compiler())
    program = ProgramLoader(target(resources=resources, fuses=True), DEFAULT_LIMITS, compiler).load(part.graph_def)
    assert made == [(program, compiler, resources)]


def test_a_graph_with_functions_has_a_runtime_for_them_and_one_without_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Target] = []
    build = program_loader.build
    monkeypatch.setattr(program_loader, "build", lambda graph, target: (seen.append(target), build(graph, target))[1])
    part, _, _ = chain()
    loader = ProgramLoader(target(most_turns=77), DEFAULT_LIMITS)
    loader.load(part.graph_def)
    with_functions = GraphDef()
    with_functions.CopyFrom(part.graph_def)
    with_functions.library.function.add().signature.name = "f"
    loader.load(with_functions)

    assert seen[0].functions is None
    functions: Any = seen[1].functions
    assert functions.most_turns == 77
    assert functions.library.find("f") is not None
    known = ProgramLoader(target(functions=functions), DEFAULT_LIMITS)
    known.load(with_functions)
    assert seen[2].functions is functions


def test_a_body_shares_its_callers_functions_and_keeps_its_own_state(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    body, runtime = compiled(chain()[0]).compiled, cast("Any", object())
    monkeypatch.setattr(program_loader, "build", lambda graph, target: (seen.append(target), body)[1])
    loader = ProgramLoader(target(stateful={}), DEFAULT_LIMITS, gradients=cast("Any", object()))

    program = loader._load_body(chain()[0].graph_def, runtime)

    (found,) = seen
    assert found.functions is runtime
    assert found.stateful is None
    assert program.policy._limit == DEFAULT_LIMITS.inline_nanoseconds
