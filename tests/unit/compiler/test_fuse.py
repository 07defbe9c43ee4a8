"""Which nodes become one function, in which order the rest runs, and how a program gets there. No event loop."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.parts import PartBuilder
from support.programs import compile_program
from tenfold_compiler.fuse.groups import find_groups
from tenfold_compiler.fuse.nodes import fusible_nodes, is_alias
from tenfold_compiler.optimize.constant_folding import fold_constants
from tenfold_compiler.part.read_part import read_part
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels import object_code
from tenfold_kernels.fusion.compiler import FusionCompiler, FusionOptions
from tenfold_kernels.fusion.remembered import KEPT_BYTES, Remembered
from tenfold_kernels.resources.state import ResourceManager, Variable
from tenfold_services.limits import DEFAULT_LIMITS
from tenfold_services.worker import program_loader
from tenfold_services.worker.execution import StepIO
from tenfold_services.worker.loaded_program import LoadedProgram

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tenfold_compiler.fuse.fusion import Group

TASK = "/job:localhost/replica:0/task:0"
F32, I32 = dtypes.float32, dtypes.int32


@pytest.fixture(scope="module")
def eager() -> Iterator[FusionCompiler]:
    """Fuses in the third step, in its thread; keeps nothing on disk."""
    compiler = FusionCompiler(FusionOptions("eager"))
    yield compiler
    compiler.close()


def compiled(part: PartBuilder, resources: ResourceManager | None = None, compiler: Any = None) -> LoadedProgram:
    return compile_program(part.graph_def, TASK, resources or ResourceManager(), DEFAULT_LIMITS, compiler=compiler)


def run(program: LoadedProgram, feeds: Mapping[str, Any] | None = None) -> dict[str, Any]:
    execution = program.start(StepIO(feeds or {}, lambda key, value, is_dead: None))
    execution.advance()
    return execution.fetched()


def groups(program: LoadedProgram) -> list[set[str]]:
    """The names in each group of a fused program."""
    generated = program.compiled.generated
    assert generated is not None
    return [{part.name for part in group.members} for group in _groups(program)]


def _groups(program: LoadedProgram) -> list[Group]:
    assert program.compiled.fusion is not None, "the program was not fused"
    return program.compiled.fusion.groups


def chain(part: PartBuilder, source: str, names: str, op: str = "Neg") -> str:
    for name in names.split():
        part.node(op, name, [source], T=F32)
        source = name
    return source


def fuse_by_running(part: PartBuilder, feeds: Mapping[str, Any], eager: FusionCompiler) -> LoadedProgram:
    """The program after the step in which it was fused."""
    program = compiled(part, compiler=eager)
    for _ in range(3):
        run(program, feeds)
    return program


# -- groups ----------------------------------------------------------------------------------------------------------


def test_a_chain_is_one_group(eager: FusionCompiler) -> None:
    part = PartBuilder()
    x = part.feed("x")
    part.fetch(chain(part, "x", "a b c"))
    program = fuse_by_running(part, {x: np.float32([1, 2])}, eager)
    assert groups(program) == [{"a", "b", "c"}]


def test_a_gradient_that_has_the_operands_shape_goes_on_in_its_loop(eager: FusionCompiler) -> None:
    """
    g ─► lost ─► found ─► cumsum ─► product ─► total ─► reshape ─► out        of x · y, whose shapes are known in a step
    """
    part = PartBuilder()
    fed = {name: part.feed(name) for name in ("x", "y", "g")}
    part.node("Shape", "of_x", ["x"], T=F32, out_type=I32)
    part.node("Shape", "of_y", ["y"], T=F32, out_type=I32)
    part.node("BroadcastGradientArgs", "axes", ["of_x", "of_y"], T=I32)
    part.const("axis", 0)
    part.node("Cumsum", "cumsum", [chain(part, "g", "lost found"), "axis"], T=F32, Tidx=I32)
    part.node("Mul", "product", ["cumsum", "y"], T=F32)
    part.node("Sum", "total", ["product", "axes:0"], T=F32, Tidx=I32)
    part.node("Reshape", "reshape", ["total", "of_x"], T=F32, Tshape=I32)
    key = part.fetch(chain(part, "reshape", "out"))

    def check(x: Any, y: Any, g: Any) -> None:
        product = np.cumsum(g, 0, dtype=np.float32) * y
        summed = product.sum(tuple(i for i in range(2) if x.shape[i] == 1), keepdims=True)
        found = run(program, dict(zip(fed.values(), (x, y, g), strict=True)))[key]
        np.testing.assert_allclose(found, -summed.reshape(x.shape), rtol=1e-6)

    x, y, g = np.random.default_rng(0).standard_normal((3, 4, 3)).astype(np.float32)
    program = fuse_by_running(part, dict(zip(fed.values(), (x, y, g), strict=True)), eager)
    assert {"product", "reshape", "out"} in groups(program)
    check(x, y, g)
    check(x[:2], y[:2], g[:2])
    # an operand that was broadcast: the sum is one
    check(x[:, :1], y, g)
    check(x[:1], y, g)
    check(x[:1, :1], y, g)


def test_a_path_through_something_else_is_not_closed_into_a_cycle(eager: FusionCompiler) -> None:
    """
    x ─► a ─► b ─► sum ─► d        a and sum are not one group with cumsum between them
              └─► cumsum ─┘
    """
    part = PartBuilder()
    x = part.feed("x")
    chain(part, "x", "a b")
    part.const("axis", 0)
    part.node("Cumsum", "cumsum", ["b", "axis"], T=F32, Tidx=I32)
    part.node("Add", "sum", ["b", "cumsum"], T=F32)
    y = part.fetch(chain(part, "sum", "d"))
    given = {x: np.float32([1, 2, 3])}
    program = fuse_by_running(part, given, eager)
    assert sorted(map(sorted, groups(program))) == [["a", "b"], ["d", "sum"]]
    assert run(program, given)[y].tolist() == [-2, -5, -9]


def test_what_depends_on_shapes_alone_is_one_group(eager: FusionCompiler) -> None:
    """
    x ─► shape ─► count ─► size        one group; a new shape runs it again
    """
    part = PartBuilder()
    x = part.feed("x")
    part.node("Shape", "shape", ["x"], T=F32, out_type=I32)
    part.const("all", [0])
    part.node("Prod", "count", ["shape", "all"], T=I32, Tidx=I32)
    part.node("Cast", "size", ["count"], SrcT=I32, DstT=F32)
    part.node("RealDiv", "share", ["x", "size"], T=F32)
    fetched = part.fetch("share"), part.fetch("size")
    program = fuse_by_running(part, {x: np.float32([1, 3])}, eager)
    assert {"shape", "count", "size"} in groups(program)
    for given in ([1, 3], [2, 4], [3, 6, 9], [4, 8]):
        values = run(program, {x: np.float32(given)})
        assert values[fetched[0]].tolist() == (np.float32(given) / np.float32(len(given))).tolist()
        # a fetch is its receiver's own, and writing to it changes no other value
        values[fetched[1]][...] = -1


def test_a_shape_of_what_depends_on_a_shape_is_no_cycle(eager: FusionCompiler) -> None:
    """
    x ─► shape ─► fill ─► sum with x ─► shape of the sum: two groups, because x lies between them
    """
    part = PartBuilder()
    x = part.feed("x")
    part.node("Shape", "shape", ["x"], T=F32, out_type=I32)
    part.const("one", np.float32(1))
    part.node("Fill", "ones", ["shape", "one"], T=F32)
    part.node("Cumsum", "sums", ["x", part.const("axis", 0)], T=F32, Tidx=I32)
    part.node("Add", "sum", ["sums", "ones"], T=F32)
    part.node("Shape", "again", ["sum"], T=F32, out_type=I32)
    fetched = part.fetch("sum"), part.fetch("again", I32)
    program = fuse_by_running(part, {x: np.float32([1, 2])}, eager)
    values = run(program, {x: np.float32([1, 2, 3])})
    assert values[fetched[0]].tolist() == [2, 4, 7]
    assert values[fetched[1]].tolist() == [3]


def test_large_values_of_shapes_are_not_kept() -> None:
    made = []

    def fallback(x: Any) -> Any:
        made.append(x.shape)
        return np.zeros(x.shape, np.float32)

    call = Remembered(inputs=1, outputs=1).build(fallback)
    for size in (4, 4, KEPT_BYTES, KEPT_BYTES):
        assert call(np.zeros(size, np.float32)).size == size
    assert made == [(4,), (KEPT_BYTES,), (KEPT_BYTES,)]


def test_shapes_decide(eager: FusionCompiler) -> None:
    """Two shapes are two groups, though they meet in a scalar."""
    part = PartBuilder()
    x, y = part.feed("x"), part.feed("y")
    part.const("all", [0])
    for name in ("x", "y"):
        chain(part, name, f"{name}1 {name}2")
        part.node("Sum", f"{name}_sum", [f"{name}2", "all"], T=F32, Tidx=I32)
    part.node("Add", "total", ["x_sum", "y_sum"], T=F32)
    part.fetch("total")
    program = fuse_by_running(part, {x: np.ones(3, np.float32), y: np.ones(4, np.float32)}, eager)
    assert sorted(map(sorted, groups(program))) == [["x1", "x2", "x_sum"], ["y1", "y2", "y_sum"]]


def test_a_square_and_a_cube_join_a_loop_of_any_size(eager: FusionCompiler) -> None:
    """Other powers call the C library, one by one: those stay outside."""
    part = PartBuilder()
    x = part.feed("x")
    for exponent in (1.5, 2.0, 3.0):
        part.const(f"e{exponent}", exponent)
    part.node("Abs", "a", ["x"], T=F32)
    for name, source, exponent in (("square", "a", 2.0), ("cube", "square", 3.0), ("other", "cube", 1.5)):
        part.node("Pow", name, [source, f"e{exponent}"], T=F32)
    fetched = [part.fetch(name) for name in ("square", "cube", "other")]
    given = {x: np.linspace(-2, 3, 999, dtype=np.float32)}
    program = compiled(part, compiler=eager)
    plain = run(program, given)
    for _ in range(2):
        run(program, given)
    assert groups(program) == [{"a", "square", "cube"}]
    fused = run(program, given)
    for name in fetched:
        np.testing.assert_array_equal(fused[name], plain[name])


def test_scalars_of_one_level_are_one_group(eager: FusionCompiler) -> None:
    part = PartBuilder()
    feeds = {part.feed(name): np.float32(i).reshape(()) for i, name in enumerate("xyz")}
    for name in "xyz":
        part.fetch(chain(part, name, f"{name}1"))
    program = fuse_by_running(part, feeds, eager)
    assert groups(program) == [{"x1", "y1", "z1"}]


def test_integer_division_keeps_its_error_and_its_name(eager: FusionCompiler) -> None:
    part = PartBuilder()
    x = part.feed("x", I32)
    for op, name, source in (("Add", "a", "x"), ("Add", "b", "a"), ("FloorDiv", "ratio", "b"), ("Add", "c", "ratio")):
        part.node(op, name, [source, "x"], T=I32)
    part.fetch("c", I32)
    program = fuse_by_running(part, {x: np.int32([1])}, eager)
    assert groups(program) == [{"a", "b"}]
    with pytest.raises(errors.InvalidArgumentError, match=r"node ratio"):
        run(program, {x: np.int32([0])})


def test_other_shapes_run_node_by_node_and_errors_name_the_node(eager: FusionCompiler) -> None:
    part = PartBuilder()
    x, y = part.feed("x"), part.feed("y")
    part.node("Neg", "minus", ["x"], T=F32)
    part.node("Add", "sum", ["minus", "y"], T=F32)
    z = part.fetch(chain(part, "sum", "out"))
    program = fuse_by_running(part, {x: np.ones(3, np.float32), y: np.ones(3, np.float32)}, eager)
    assert groups(program) == [{"minus", "sum", "out"}]
    broadcast = run(program, {x: np.ones((2, 1), np.float32), y: np.ones(3, np.float32)})[z]
    assert broadcast.tolist() == [[0, 0, 0], [0, 0, 0]]
    with pytest.raises(errors.InvalidArgumentError, match=r"Incompatible shapes: \[2\] vs. \[3\]\n.*{{node sum}}"):
        run(program, {x: np.ones(2, np.float32), y: np.ones(3, np.float32)})


def test_a_read_stays_between_the_assignments_that_it_was_between(eager: FusionCompiler) -> None:
    part = PartBuilder()
    part.node("VariableV2", "v", dtype=F32, shape=[2])
    part.node("Identity", "read", ["v"], T=F32)
    part.const("ones", [1.0, 1.0])
    chain(part, "read", "a")
    part.node("AssignAdd", "add", ["v", "ones", "^a"], T=F32)
    part.node("Neg", "b", ["read", "^add"], T=F32)
    part.node("Sub", "difference", ["a", "b"], T=F32)
    fetch = part.fetch(chain(part, "difference", "out"))
    resources = ResourceManager()
    variable = resources.lookup_or_create("", "v", Variable, lambda: Variable("v", F32, TensorShape([2])))
    variable.assign(np.zeros(2, np.float32))
    program = compiled(part, resources, eager)
    for _ in range(5):
        # v before minus v after the addition, with the sign turned twice
        assert run(program)[fetch].tolist() == [-1, -1]
    assert len(groups(program)) == 1
    assert "a" not in groups(program)[0]


@pytest.mark.parametrize("seed", [0, *(pytest.param(each, marks=pytest.mark.thorough) for each in range(1, 6))])
def test_random_parts_give_the_same_results_fused_and_not(seed: int, eager: FusionCompiler) -> None:
    part, feeds = _random_part(np.random.default_rng(seed))
    results = []
    for compiler in (None, eager):
        resources = ResourceManager()
        variable = resources.lookup_or_create("", "v", Variable, lambda: Variable("v", F32, TensorShape([4, 3])))
        variable.assign(np.ones((4, 3), np.float32))
        program = compiled(part, resources, compiler)
        results.append([run(program, feeds) for _ in range(5)])
    assert _groups(program)
    for plain, fused in zip(*results, strict=True):
        for key, value in plain.items():
            np.testing.assert_array_equal(fused[key], value, err_msg=key)


def _random_part(rng: np.random.Generator) -> tuple[PartBuilder, dict[str, Any]]:
    """60 nodes over a matrix, a row and a scalar, a variable that changes in between, control edges here and there.

    Nothing in it is a race: a reader of the variable waits for the last change, and a change for all readers.
    """
    part = PartBuilder()
    shapes = {"m": (4, 3), "r": (3,), "s": ()}
    feeds = {part.feed(name): rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    part.node("VariableV2", "v", dtype=F32, shape=[4, 3])
    part.node("Identity", "read", ["v"], T=F32)
    part.const("axis", 0)
    part.const("half", 0.5)
    by_rank: dict[int, list[str]] = {2: ["m", "read"], 1: ["r"], 0: ["s", "half"]}
    last_change: list[str] = []
    readers: list[str] = []
    for i in range(60):
        name, kind = f"n{i}", int(rng.integers(12))
        rank = int(rng.integers(3))
        a = by_rank[rank][int(rng.integers(len(by_rank[rank])))]
        other = int(rng.integers(rank + 1))
        b = by_rank[other][int(rng.integers(len(by_rank[other])))]
        controls = last_change if "read" in (a, b) or rng.random() < 0.2 else []
        if kind == 0 and rank == 2 and a != "read":
            part.node("AssignSub", name, ["v", a, *last_change, *readers], T=F32)
            last_change, readers = [f"^{name}"], []
            continue
        if "read" in (a, b):
            readers.append(f"^{name}")
        match kind:
            case 1 if rank:
                part.node("Cumsum", name, [a, "axis", *controls], T=F32, Tidx=I32)
            case 2 if rank == 2:
                part.node("BiasAddGrad", name, [a, *controls], T=F32)
                rank = 1
            case 3 | 4:
                part.node(str(rng.choice(["Neg", "Relu", "Softsign"])), name, [a, *controls], T=F32)
            case 5:
                part.node("AddN", name, [a] * 3 + controls, T=F32, N=3)
            case 6 if rank == 2:
                part.node("MatMul", name, [a, a, *controls], T=F32, transpose_b=True)
                part.node("Slice", f"{name}s", [name, "begin", "size"], T=F32, Index=I32)
                name = f"{name}s"
            case _:
                op = str(rng.choice(["Add", "Sub", "Maximum", "Minimum", "SquaredDifference"]))
                part.node(op, name, [a, b, *controls], T=F32)
        # keeps numbers small
        part.node("Softsign", f"{name}_", [name], T=F32)
        by_rank[rank].append(f"{name}_")
    part.const("begin", [0, 0])
    part.const("size", [4, 3])
    for names in by_rank.values():
        for name in names[-4:]:
            if name.endswith("_"):
                part.fetch(name)
    return part, feeds


def test_find_groups_leaves_out_what_was_never_seen(eager: FusionCompiler) -> None:
    part = PartBuilder()
    part.feed("x")
    part.fetch(chain(part, "x", "a b c"))
    program = compiled(part)
    nodes = fusible_nodes(program.compiled.part, program.compiled.constants)
    fusion = find_groups(program.compiled, nodes, {}, eager.cache)
    assert [node.name for node in nodes] == ["a", "b", "c"]
    assert fusion.groups == []


# -- tiers -----------------------------------------------------------------------------------------------------------


def hot_part() -> tuple[PartBuilder, str, str]:
    part = PartBuilder()
    x = part.feed("x")
    return part, x, part.fetch(chain(part, "x", "a b c"))


def test_a_hot_program_is_swapped_while_steps_go_on() -> None:
    part, x, y = hot_part()
    compiler = FusionCompiler(FusionOptions(hot_steps=3))
    program = compiled(part, compiler=compiler)
    first = program.compiled.generated
    under_way = program.start(StepIO({x: np.float32([1])}, lambda key, value, is_dead: None))

    for _ in range(8):
        assert run(program, {x: np.float32([1])})[y] == -1
    compiler.join(60)

    assert program.compiled.generated is not first
    assert groups(program) == [{"a", "b", "c"}]
    assert run(program, {x: np.float32([1])})[y] == -1
    under_way.advance()
    assert under_way.fetched()[y] == -1
    compiler.close()


def test_the_compilation_happens_in_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What this process loads afterwards is there already."""
    part, x, y = hot_part()
    folder = tmp_path / "cache"
    compiler = FusionCompiler(FusionOptions(hot_steps=1, cache_folder=folder))
    there: list[list[Path]] = []
    swap = LoadedProgram.swap

    def looked_at(program: LoadedProgram, fusion: Any) -> None:
        there.append(list(folder.rglob("run_*.object" if object_code.is_supported() else "run_*.nbc")))
        swap(program, fusion)

    monkeypatch.setattr(LoadedProgram, "swap", looked_at)
    program = compiled(part, compiler=compiler)
    for _ in range(6):
        run(program, {x: np.float32([1])})
    compiler.join(100)
    compiler.close()
    assert [len(files) for files in there] == [1]
    assert groups(program) == [{"a", "b", "c"}]
    assert run(program, {x: np.float32([1])})[y] == -1


def test_closing_ends_a_compilation_under_way(tmp_path: Path) -> None:
    part, x, _ = hot_part()
    compiler = FusionCompiler(FusionOptions(hot_steps=0, cache_folder=tmp_path / "cache"))
    program = compiled(part, compiler=compiler)
    for _ in range(5):
        run(program, {x: np.float32([1])})
    compiler.close(30)
    assert not [thread for thread in threading.enumerate() if thread.name == "tenfold-fusion"]


def test_a_large_program_is_hot_after_few_steps_and_its_equal_pieces_are_one_function() -> None:
    """64 steps of thousands of nodes would cost more than compiling them."""
    part = PartBuilder()
    x = part.feed("x")
    y = part.fetch(chain(part, "x", " ".join(f"n{i}" for i in range(4096))))
    compiler = FusionCompiler(FusionOptions())
    program = compiled(part, compiler=compiler)
    first = program.compiled.generated
    for _ in range(8):
        assert run(program, {x: np.float32([1])})[y] == 1
    compiler.join(100)
    compiler.close()

    assert program.compiled.generated is not first
    assert len({group.source for group in _groups(program)}) < len(_groups(program))
    assert run(program, {x: np.float32([1])})[y] == 1


def test_a_program_without_fusible_nodes_does_not_count() -> None:
    part = PartBuilder()
    part.feed("x")
    part.fetch("x")
    program = compiled(part, compiler=FusionCompiler(FusionOptions(hot_steps=1)))
    assert program.compiled.generated is not None
    assert "tick" not in program.compiled.generated.namespace


def test_an_identity_that_was_folded_is_a_constant_and_no_alias() -> None:
    part = PartBuilder()
    part.const("three", np.float32(3.0))
    part.node("Identity", "same", ["three"], T=F32)
    graph, constants = read_part(part.graph_def, TASK, 100), {0: (np.float32(3.0),)}
    same = graph.nodes[1]
    assert is_alias(same, constants)

    assert fold_constants(graph, constants, lambda node: lambda value: value) == 1

    assert not is_alias(same, constants)


def test_off_is_off() -> None:
    part, x, _ = hot_part()
    program = compiled(part, compiler=FusionCompiler(FusionOptions("off", hot_steps=0)))
    for _ in range(5):
        run(program, {x: np.float32([1])})
    assert program.compiled.fusion is None


def test_a_failure_of_the_compiler_is_logged_and_steps_go_on(
    monkeypatch: pytest.MonkeyPatch, failures_of_fusion: list[str], eager: FusionCompiler
) -> None:
    def broken(*arguments: Any) -> Any:
        raise RuntimeError("LLVM is on holiday")

    monkeypatch.setattr(program_loader, "fused", broken)
    part, x, y = hot_part()
    program = fuse_by_running(part, {x: np.float32([1])}, eager)
    assert "could not be fused" in failures_of_fusion.pop()
    assert run(program, {x: np.float32([1])})[y] == -1


def test_the_queue_has_a_bound_and_an_end() -> None:
    compiler = FusionCompiler(FusionOptions(queued_programs=1))
    entered, release, ran = threading.Event(), threading.Event(), []

    def blocked() -> None:
        entered.set()
        release.wait(30)

    assert compiler.submit(blocked)
    assert entered.wait(30)
    assert compiler.submit(lambda: ran.append("queued"))
    assert not compiler.submit(lambda: ran.append("too many"))
    compiler.close(timeout=0)
    release.set()
    compiler.join(30)
    assert ran == []
    assert not compiler.submit(lambda: ran.append("after close"))
