"""The passes on a part: what each takes out, what it must leave alone. `verify` runs after every pass of every test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.parts import PartBuilder
from support.programs import compile_program
from support.verify_part import verify
from tenfold_compiler.node_kernels import Target
from tenfold_compiler.optimize import Optimizations, optimize
from tenfold_compiler.optimize.constant_folding import MAX_BYTES
from tenfold_compiler.part.read_part import read_part
from tenfold_core import dtypes, errors
from tenfold_kernels.resources.state import ResourceManager, Variable
from tenfold_services.worker.execution import StepIO

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold_compiler.part.part_graph import PartGraph
    from tenfold_services.worker.loaded_program import LoadedProgram

TASK = "/job:localhost/replica:0/task:0"
F32, I32 = dtypes.float32, dtypes.int32


class Optimized:
    """A part after all passes, verified after each."""

    def __init__(self, builder: PartBuilder) -> None:
        self.part: PartGraph = read_part(builder.graph_def, TASK, 10_000)
        target = Target(TASK, ResourceManager(), 10_000)
        self.constants = target.constants(self.part)
        self.counts: Optimizations = optimize(self.part, self.constants, target.kernel, check=verify)

    def op(self, name: str) -> str:
        """What became of a node: its op, "constant", or "NoOp" for one that is gone."""
        node = next(n for n in self.part.nodes if n.name == name)
        return "constant" if node.index in self.constants else node.op

    def sources(self, name: str) -> list[str]:
        node = next(n for n in self.part.nodes if n.name == name)
        return [self.part.nodes[source].name for source, _ in node.inputs]


def run(program: LoadedProgram, feeds: Mapping[str, Any] | None = None) -> dict[str, Any]:
    execution = program.start(StepIO(feeds or {}, lambda key, value, is_dead: None))
    execution.advance()
    return execution.fetched()


# -- constant folding ------------------------------------------------------------------------------------------------


def test_what_depends_on_constants_only_is_computed_once() -> None:
    part = PartBuilder()
    part.const("a", [1.0, 2.0])
    part.const("b", 3.0)
    part.node("Mul", "ab", ["a", "b"], T=F32)
    part.node("Neg", "neg", ["ab"], T=F32)
    fetch = part.fetch("neg")

    optimized = Optimized(part)

    assert optimized.counts.folded == 2
    assert optimized.op("neg") == "constant"
    assert run(compile_program(part.graph_def, TASK, ResourceManager()))[fetch].tolist() == [-3.0, -6.0]


def test_every_output_of_a_folded_node_can_be_read() -> None:
    part = PartBuilder()
    part.const("axis", 0)
    part.const("x", [1.0, 2.0, 3.0])
    part.node("Split", "split", ["axis", "x"], num_split=3, T=F32)
    fetch = part.fetch("split:2")
    assert Optimized(part).op("split") == "constant"
    assert run(compile_program(part.graph_def, TASK, ResourceManager()))[fetch].tolist() == [3.0]


def test_a_large_result_is_not_kept() -> None:
    part = PartBuilder()
    part.const("dims", [1000, 1000])
    part.const("zero", 0.0)
    part.node("Fill", "fill", ["dims", "zero"], T=F32, index_type=I32)
    part.fetch("fill")
    assert Optimized(part).op("fill") == "Fill"


@pytest.mark.parametrize(("floats", "op"), [(MAX_BYTES // 4, "constant"), (MAX_BYTES // 4 + 1, "Fill")])
def test_what_a_folded_node_may_keep(floats: int, op: str) -> None:
    part = PartBuilder()
    part.const("dims", [floats])
    part.const("zero", 0.0)
    part.node("Fill", "fill", ["dims", "zero"], T=F32, index_type=I32)
    part.fetch("fill")
    assert Optimized(part).op("fill") == op


@pytest.mark.parametrize(("floats", "op"), [(4 * MAX_BYTES - 1, "constant"), (4 * MAX_BYTES, "Sum")])
def test_what_a_folded_node_may_read(floats: int, op: str) -> None:
    """All inputs together: the axis is one number more."""
    part = PartBuilder()
    part.const("x", np.ones(floats, np.float32))
    part.const("axis", 0)
    part.node("Sum", "sum", ["x", "axis"], T=F32, Tidx=I32)
    part.fetch("sum")
    assert Optimized(part).op("sum") == op


def test_random_numbers_are_not_folded() -> None:
    part = PartBuilder()
    part.const("shape", [2])
    part.node("RandomUniform", "random", ["shape"], dtype=F32, T=I32)
    part.fetch("random")
    assert Optimized(part).op("random") == "RandomUniform"


def test_an_error_stays_in_the_step_that_asks_for_it() -> None:
    part = PartBuilder()
    part.const("one", 1)
    part.const("zero", 0)
    part.node("FloorDiv", "ratio", ["one", "zero"], T=I32)
    part.fetch("ratio", I32)
    assert Optimized(part).op("ratio") == "FloorDiv"
    program = compile_program(part.graph_def, TASK, ResourceManager())
    with pytest.raises(errors.InvalidArgumentError, match=r"division by zero\n\t \[\[{{node ratio}}\]\]"):
        run(program)


# -- identities ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "inputs", "constant", "gone"),
    [
        ("Mul", ["x", "c"], 1.0, True),
        ("Mul", ["c", "x"], 1.0, True),
        ("Mul", ["x", "c"], [1.0], False),  # it may broadcast x
        ("RealDiv", ["x", "c"], 1.0, True),
        ("RealDiv", ["c", "x"], 1.0, False),
        ("Sub", ["x", "c"], 0.0, True),
        ("Pow", ["x", "c"], 1.0, True),
        ("Pow", ["c", "x"], 1.0, False),
        ("Pow", ["x", "c"], 2.0, False),
        ("Add", ["x", "c"], 0.0, False),  # −0 + 0 is 0
    ],
)
def test_neutral_scalars(op: str, inputs: list[str], constant: Any, gone: bool) -> None:
    part = PartBuilder()
    part.feed("x")
    part.const("c", constant)
    part.node(op, "y", inputs, T=F32)
    part.node("Neg", "z", ["y"], T=F32)
    part.fetch("z")
    optimized = Optimized(part)
    assert optimized.op("y") == ("NoOp" if gone else op)
    assert optimized.sources("z") == (["x"] if gone else ["y"])


def test_a_product_with_one_stays_the_copy_that_an_assignment_does_not_change() -> None:
    part = PartBuilder()
    part.node("VariableV2", "v", dtype=F32, shape=[])
    part.node("Identity", "read", ["v"], T=F32)
    part.const("one", 1.0)
    part.node("Mul", "copy", ["read", "one"], T=F32)
    part.const("seven", 7.0)
    part.node("Assign", "assign", ["v", "seven", "^copy"], T=F32)
    fetch = part.fetch("copy", inputs=["^assign"])
    resources = ResourceManager()
    variable = resources.lookup_or_create("", "v", Variable, lambda: Variable("v", F32, _scalar_shape()))
    variable.assign(np.float32(5).reshape(()))
    assert run(compile_program(part.graph_def, TASK, resources))[fetch] == 5
    assert variable.value == 7


def test_whoever_read_past_an_identity_still_waits_for_its_controls() -> None:
    part = PartBuilder()
    part.node("VariableV2", "v", dtype=F32, shape=[])
    part.const("seven", 7.0)
    part.feed("x")
    part.node("Assign", "assign", ["v", "seven"], T=F32)
    part.node("Identity", "after", ["x", "^assign"], T=F32)
    part.node("Assign", "last", ["v", "after"], T=F32)
    part.fetch("last")
    optimized = Optimized(part)
    last = next(n for n in optimized.part.nodes if n.name == "last")
    assert "after" in [optimized.part.nodes[c].name for c in last.controls]


# -- common subexpressions -------------------------------------------------------------------------------------------


def test_the_same_op_of_the_same_inputs_runs_once() -> None:
    part = PartBuilder()
    part.feed("x")
    for name in ("a", "b"):
        part.node("Square", f"square_{name}", ["x"], T=F32)
        part.node("Neg", f"neg_{name}", [f"square_{name}"], T=F32)
    part.node("Add", "sum", ["neg_a", "neg_b"], T=F32)
    part.fetch("sum")
    optimized = Optimized(part)
    assert optimized.counts.merged == 2
    assert len(set(optimized.sources("sum"))) == 1


def test_other_attributes_are_another_expression() -> None:
    part = PartBuilder()
    part.feed("a")
    part.node("MatMul", "ab", ["a", "a"], T=F32)
    part.node("MatMul", "abt", ["a", "a"], T=F32, transpose_b=True)
    part.fetch("ab")
    part.fetch("abt")
    assert Optimized(part).counts.merged == 0


def test_equal_constants_are_one() -> None:
    part = PartBuilder()
    part.feed("x")
    for name in ("a", "b"):
        part.const(name, 2.0)
        part.node("Mul", f"x{name}", ["x", name], T=F32)
        part.fetch(f"x{name}")
    assert Optimized(part).counts.merged == 2


def test_reads_of_a_variable_before_and_after_an_assignment_are_not_the_same() -> None:
    part = PartBuilder()
    part.node("VariableV2", "v", dtype=F32, shape=[])
    part.node("Identity", "read", ["v"], T=F32)
    part.node("Neg", "before", ["read"], T=F32)
    part.const("one", 1.0)
    part.node("AssignAdd", "add", ["v", "one", "^before"], T=F32)
    part.node("Neg", "after", ["read", "^add"], T=F32)
    before, after = part.fetch("before"), part.fetch("after")
    resources = ResourceManager()
    variable = resources.lookup_or_create("", "v", Variable, lambda: Variable("v", F32, _scalar_shape()))
    variable.assign(np.float32(5).reshape(()))
    assert Optimized(part).counts.merged == 0
    values = run(compile_program(part.graph_def, TASK, resources))
    assert (values[before], values[after]) == (-5, -6)


def test_an_expression_that_waits_for_another_task_does_not_stand_in_for_one_that_does_not() -> None:
    part = PartBuilder()
    part.feed("x")
    part.recv("late", F32, "/job:worker/replica:0/task:0/device:CPU:0", 7)
    part.node("Neg", "waiting", ["x", "^late"], T=F32)
    part.node("Neg", "free", ["x"], T=F32)
    part.node("Square", "use", ["free"], T=F32)
    part.fetch("waiting")
    part.fetch("use")
    optimized = Optimized(part)
    assert optimized.sources("use") == ["free"]


# -- dead code -------------------------------------------------------------------------------------------------------


def test_a_gradient_that_only_a_group_waits_for_is_not_computed() -> None:
    part = PartBuilder()
    part.feed("x")
    part.feed("g")
    part.node("MatMul", "unused", ["g", "x"], T=F32, transpose_b=True)
    part.node("MatMul", "used", ["x", "g"], T=F32, transpose_a=True)
    part.node("NoOp", "group", ["^unused", "^used"])
    part.node("Identity", "gradient", ["used", "^group"], T=F32)
    part.fetch("gradient")
    optimized = Optimized(part)
    assert optimized.op("unused") == "NoOp"
    assert optimized.op("used") == "MatMul"


def test_what_the_client_asked_for_runs_though_nobody_reads_it() -> None:
    part = PartBuilder()
    part.feed("x")
    part.node("Neg", "target", ["x"], T=F32)
    assert Optimized(part).op("target") == "Neg"


@pytest.mark.parametrize("op", ["CheckNumerics", "EnsureShape"])
def test_guards_stay(op: str) -> None:
    part = PartBuilder()
    part.feed("x")
    attrs: dict[str, Any] = {"message": b"bad"} if op == "CheckNumerics" else {"shape": [1]}
    part.node(op, "guard", ["x"], T=F32, **attrs)
    part.node("Neg", "y", ["x", "^guard"], T=F32)
    part.fetch("y")
    assert Optimized(part).op("guard") == op


# -- all of it -------------------------------------------------------------------------------------------------------


def test_a_part_with_branches_is_left_alone() -> None:
    part = PartBuilder()
    part.const("x", 1.0)
    part.const("p", True)
    part.node("Switch", "switch", ["x", "p"], T=F32)
    part.node("Neg", "neg", ["switch:1"], T=F32)
    part.fetch("neg")
    assert Optimized(part).counts == Optimizations()


# -- sums of products ------------------------------------------------------------------------------------------------


def products(part: PartBuilder, count: int, **attrs: Any) -> list[str]:
    """Nodes Aᵀ·B of fed operands a0, b0, …: what adds them up is `total`. The keys of the feeds."""
    keys = []
    for i in range(count):
        keys += [part.feed(f"a{i}"), part.feed(f"b{i}")]
        given = {"transpose_a": True, "transpose_b": False, **attrs}
        part.node("MatMul", f"product{i}", [f"a{i}", f"b{i}"], T=F32, **given)
    part.node("AddN", "total", [f"product{i}" for i in range(count)], N=count, T=F32)
    return keys


def operands(inner: int, columns: int) -> tuple[Any, Any]:
    choose = np.random.default_rng(inner)
    return [choose.standard_normal((inner, width)).astype(np.float32) for width in (5, columns)]  # type: ignore[return-value]


@pytest.mark.parametrize("sizes", [[(2, 7), (3, 7), (1, 7)], [(40, 3), (20, 3), (0, 3)]], ids=["stacked", "in turn"])
def test_a_sum_of_products_is_one_product(sizes: list[tuple[int, int]]) -> None:
    part = PartBuilder()
    keys = products(part, 3)
    fetch = part.fetch("total")

    optimized = Optimized(part)

    assert optimized.counts.joined == 3
    assert [optimized.op(name) for name in ("total", "product0", "product2")] == ["MatMul", "NoOp", "NoOp"]
    pairs = [operands(*size) for size in sizes]
    feeds = dict(zip(keys, [value for pair in pairs for value in pair], strict=True))
    found = run(compile_program(part.graph_def, TASK, ResourceManager()), feeds)[fetch]
    wanted = sum(a.T.astype(np.float64) @ b for a, b in pairs)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_products_that_cannot_be_added_say_so() -> None:
    part = PartBuilder()
    keys = products(part, 2)
    part.fetch("total")
    program = compile_program(part.graph_def, TASK, ResourceManager())
    feeds = dict(zip(keys, [*operands(2, 7), *operands(2, 6)], strict=True))
    with pytest.raises(errors.InvalidArgumentError, match=r"same size and shape.*\[5,7\] != input 1: \[5,6\]"):
        run(program, feeds)
    feeds = dict(zip(keys, [*operands(2, 7), operands(2, 7)[0], operands(3, 7)[1]], strict=True))
    with pytest.raises(errors.InvalidArgumentError, match=r"In\[0\]: \[2,5\], In\[1\]: \[3,7\]"):
        run(program, feeds)


def test_products_that_others_read_or_that_copy_weights_stay() -> None:
    part = PartBuilder()
    products(part, 2)
    part.fetch("total")
    part.fetch("product1")
    assert Optimized(part).op("total") == "AddN"

    part = PartBuilder()
    products(part, 2, transpose_a=False, transpose_b=True)
    part.fetch("total")
    assert Optimized(part).op("total") == "AddN"


# -- sums of slices --------------------------------------------------------------------------------------------------


def slices(part: PartBuilder, others: int = 0, **attrs: Any) -> list[str]:
    """Gradients of x[i : i + 2] of six numbers, fed as dy0, …, and other terms that are fed; `total` adds them all up.
    The keys of the feeds.
    """
    keys = [part.feed(f"other{i}") for i in range(others)]
    for i in range(3):
        keys.append(part.feed(f"dy{i}"))
        for name, value in (("shape", 6), ("begin", i), ("end", i + 2), ("strides", 1)):
            part.const(f"{name}{i}", [value], I32)
        inputs = [f"{name}{i}" for name in ("shape", "begin", "end", "strides", "dy")]
        given = {"begin_mask": 0, **(attrs if i == 1 else {})}
        part.node("StridedSliceGrad", f"slice{i}", inputs, T=F32, Index=I32, **given)
    terms = [f"other{i}" for i in range(others)] + [f"slice{i}" for i in range(3)]
    part.node("AddN", "total", terms, N=len(terms), T=F32)
    return keys


@pytest.mark.parametrize("others", [0, 1, 2])
def test_a_sum_of_slices_gradients_is_one_array(others: int) -> None:
    part = PartBuilder()
    keys = slices(part, others)
    fetch = part.fetch("total")

    optimized = Optimized(part)

    assert optimized.counts.slices == 3
    ops = [optimized.op(name) for name in ("total", "slice0", "slice1", "slice2")]
    assert ops == (["AddN", "NoOp", "NoOp", "StridedSliceGrad"] if others else ["StridedSliceGrad", *["NoOp"] * 3])
    given = [np.full(6, 10, np.float32)] * others + [np.array([i, 1], np.float32) for i in range(3)]
    found = run(compile_program(part.graph_def, TASK, ResourceManager()), dict(zip(keys, given, strict=True)))[fetch]
    assert found.tolist() == (np.array([0, 2, 3, 1, 0, 0]) + 10 * others).tolist()
    wrong = dict(zip(keys, [*given[:-1], np.ones(3, np.float32)], strict=True))
    with pytest.raises(errors.InvalidArgumentError, match=r"shape of dy was \[3\] instead of \[2\]"):
        run(compile_program(part.graph_def, TASK, ResourceManager()), wrong)


def test_a_sum_of_pads_is_one_array() -> None:
    part = PartBuilder()
    keys = [part.feed(f"x{i}") for i in range(3)]
    for i in range(3):
        part.const(f"paddings{i}", [[i, 2 - i]], I32)
        part.node("Pad", f"pad{i}", [f"x{i}", f"paddings{i}"], T=F32, Tpaddings=I32)
    part.node("AddN", "total", [f"pad{i}" for i in range(3)], N=3, T=F32)
    fetch = part.fetch("total")

    optimized = Optimized(part)

    assert optimized.counts.slices == 3
    assert [optimized.op(name) for name in ("total", "pad0", "pad2")] == ["Pad", "NoOp", "NoOp"]
    program = compile_program(part.graph_def, TASK, ResourceManager())
    given = [np.array([1, 10 * i], np.float32) for i in range(3)]
    for _ in range(2):
        found = run(program, dict(zip(keys, given, strict=True)))[fetch]
        assert found.tolist() == [1, 1, 11, 20]
    given[1] = np.ones(3, np.float32)
    with pytest.raises(errors.InvalidArgumentError, match=r"same size and shape.*\[4\] != input 1: \[5\]"):
        run(program, dict(zip(keys, given, strict=True)))


def test_slices_that_others_read_or_of_other_masks_stay() -> None:
    part = PartBuilder()
    slices(part)
    part.fetch("total")
    part.fetch("slice1")
    optimized = Optimized(part)
    assert optimized.counts.slices == 2
    assert [optimized.op(name) for name in ("total", "slice1")] == ["AddN", "StridedSliceGrad"]

    part = PartBuilder()
    slices(part, begin_mask=1)
    part.fetch("total")
    assert Optimized(part).op("slice1") == "StridedSliceGrad"


# -- gradients of broadcasts -----------------------------------------------------------------------------------------


def broadcast_gradient(part: PartBuilder, **sum_attrs: Any) -> list[str]:
    """The gradient of x + y for x, as a client writes it that does not know the shapes. The keys of x, y and g."""
    keys = [part.feed(name) for name in "xyg"]
    for name in "xy":
        part.node("Shape", f"shape_{name}", [name], T=F32, out_type=I32)
    part.node("BroadcastGradientArgs", "axes", ["shape_x", "shape_y"], T=I32)
    part.node("Sum", "sum", ["g", "axes:0"], T=F32, Tidx=I32, **{"keep_dims": False, **sum_attrs})
    part.node("Reshape", "of_x", ["sum", "shape_x"], T=F32, Tshape=I32)
    return keys


@pytest.mark.parametrize("x_shape", [(2, 3), (3,), (2, 1), (), (1, 1, 3)])
def test_the_gradient_of_a_broadcast_is_one_node(x_shape: tuple[int, ...]) -> None:
    part = PartBuilder()
    keys = broadcast_gradient(part)
    fetch = part.fetch("of_x")

    optimized = Optimized(part)

    assert optimized.counts.broadcasts == 1
    assert [optimized.op(name) for name in ("of_x", "sum", "axes")] == ["Reshape", "NoOp", "NoOp"]
    x, y = np.zeros(x_shape, np.float32), np.zeros((2, 3), np.float32)
    g = np.arange(6, dtype=np.float32).reshape((x + y).shape)
    feeds = dict(zip(keys, (x, y, g), strict=True))
    found = run(compile_program(part.graph_def, TASK, ResourceManager()), feeds)[fetch]
    axes = tuple(at for at, size in enumerate((1,) * (g.ndim - x.ndim) + x_shape) if size == 1)
    assert found.tolist() == g.sum(axes).reshape(x_shape).tolist()


def test_sums_that_others_read_or_that_keep_their_axes_stay() -> None:
    part = PartBuilder()
    broadcast_gradient(part)
    part.fetch("sum")
    part.fetch("of_x")
    assert Optimized(part).counts.broadcasts == 0

    part = PartBuilder()
    broadcast_gradient(part, keep_dims=True)
    part.fetch("of_x")
    assert Optimized(part).counts.broadcasts == 0


def test_a_gradient_of_another_size_says_so() -> None:
    part = PartBuilder()
    keys = broadcast_gradient(part)
    part.fetch("of_x")
    feeds = dict(zip(keys, (np.zeros(3, np.float32), np.zeros(3, np.float32), np.zeros(4, np.float32)), strict=True))
    with pytest.raises(errors.InvalidArgumentError, match=r"a tensor with 4 values(.|\n)*{{node of_x}}"):
        run(compile_program(part.graph_def, TASK, ResourceManager()), feeds)


def test_verify_names_the_pass_and_the_node() -> None:
    part = PartBuilder()
    part.feed("x")
    part.node("Neg", "y", ["x"], T=F32)
    part.fetch("y")
    broken = Optimized(part)
    y = next(n for n in broken.part.nodes if n.name == "y")
    y.inputs = [(y.index + 1, 0)]
    with pytest.raises(errors.InternalError, match=r"After breaking, node 'y' \(Neg\) stands before"):
        verify(broken.part, broken.constants, after="breaking")


def _scalar_shape() -> Any:
    from tenfold_core.tensor_shape import TensorShape

    return TensorShape([])


def running_total(part: PartBuilder, total: str = "total") -> list[str]:
    """`total` = -start + Aᵀ·B of fed operands. The keys of the feeds."""
    keys = [part.feed(name) for name in ("start", "a", "b")]
    part.node("Neg", "before", ["start"], T=F32)
    part.node("MatMul", "product", ["a", "b"], T=F32, transpose_a=True, transpose_b=False)
    part.node("AddV2", total, ["before", "product"], T=F32)
    return keys


@pytest.mark.parametrize("size", [(2, 3), (40, 300)], ids=["small", "large"])
def test_a_product_is_added_to_a_total_that_nobody_else_reads(size: tuple[int, int]) -> None:
    part = PartBuilder()
    keys = running_total(part)
    fetch = part.fetch("total")

    optimized = Optimized(part)

    assert optimized.counts.joined == 1
    assert [optimized.op(name) for name in ("total", "product")] == ["MatMul", "NoOp"]
    assert optimized.sources("total") == ["before", "a", "b"]
    a, b = operands(*size)
    start = np.ones((5, size[1]), np.float32)
    program = compile_program(part.graph_def, TASK, ResourceManager())
    for _ in range(2):
        found = run(program, dict(zip(keys, [start, a, b], strict=True)))[fetch]
        np.testing.assert_allclose(found, a.T.astype(np.float64) @ b - 1, rtol=1e-5, atol=1e-4)
    # what is broadcast is as it was
    found = run(program, dict(zip(keys, [start[0], a, b], strict=True)))[fetch]
    np.testing.assert_allclose(found, a.T.astype(np.float64) @ b - 1, rtol=1e-5, atol=1e-4)
    with pytest.raises(errors.InvalidArgumentError, match=r"Incompatible shapes: \[2,2\] vs. \[5,"):
        run(program, dict(zip(keys, [np.ones((2, 2), np.float32), a, b], strict=True)))


def test_a_total_that_others_read_or_that_comes_from_outside_is_not_written() -> None:
    part = PartBuilder()
    keys = running_total(part)
    fetches = [part.fetch("before"), part.fetch("total")]
    assert Optimized(part).op("total") == "AddV2"
    a, b = operands(40, 300)
    start = np.ones((5, 300), np.float32)
    found = run(compile_program(part.graph_def, TASK, ResourceManager()), dict(zip(keys, [start, a, b], strict=True)))
    assert (found[fetches[0]] == -1).all()

    part = PartBuilder()
    part.feed("fed")
    running_total(part, "sum")
    part.node("MatMul", "other", ["a", "b"], T=F32, transpose_a=True, transpose_b=False)
    part.node("AddV2", "total", ["fed", "other"], T=F32)
    part.fetch("total")
    assert Optimized(part).op("total") == "AddV2", "a fed array is the caller's"


@pytest.mark.parametrize("turns", [1, 5])
def test_a_loop_adds_products_to_its_total(turns: int) -> None:
    """The gradient of a loop's weights: total = total + Aᵀ·B, turn by turn; what it began with stays as it was."""
    part = PartBuilder()
    keys = [part.feed(name) for name in ("start", "a", "b")]
    part.const("zero", 0, I32)
    part.const("one", 1, I32)
    part.const("limit", turns, I32)
    frame: dict[str, Any] = {"frame_name": "f", "parallel_iterations": 1, "is_constant": False}
    part.node("Enter", "i_enter", ["zero"], T=I32, **frame)
    part.node("Enter", "t_enter", ["start"], T=F32, **frame)
    for name, dtype in (("one", I32), ("limit", I32), ("a", F32), ("b", F32)):
        part.node("Enter", f"{name}_enter", [name], T=dtype, **{**frame, "is_constant": True})
    part.node("Merge", "i", ["i_enter", "i_next"], N=2, T=I32)
    part.node("Merge", "t", ["t_enter", "t_next"], N=2, T=F32)
    part.node("Less", "less", ["i", "limit_enter"], T=I32)
    part.node("LoopCond", "goes_on", ["less"])
    part.node("Switch", "i_switch", ["i", "goes_on"], T=I32)
    part.node("Switch", "t_switch", ["t", "goes_on"], T=F32)
    part.node("AddV2", "i_more", ["i_switch:1", "one_enter"], T=I32)
    part.node("Neg", "minus", ["a_enter"], T=F32)
    part.node("Square", "squares", ["b_enter"], T=F32)
    part.node("MatMul", "product", ["minus", "squares"], T=F32, transpose_a=True, transpose_b=False)
    part.node("Add", "total", ["t_switch:1", "product"], T=F32)
    part.node("NextIteration", "i_next", ["i_more"], T=I32)
    part.node("NextIteration", "t_next", ["total"], T=F32)
    part.node("Exit", "found", ["t_switch"], T=F32)
    fetch = part.fetch("found")

    assert Optimized(part).op("total") == "MatMul"
    a, b = operands(40, 300)
    start = np.ones((5, 300), np.float32)
    program = compile_program(part.graph_def, TASK, ResourceManager())
    for _ in range(2):
        found = run(program, dict(zip(keys, [start, a, b], strict=True)))[fetch]
        np.testing.assert_allclose(found, 1 - turns * (a.T.astype(np.float64) @ b**2), rtol=1e-5, atol=1e-3)
        assert (start == 1).all()


# -- products of rows ------------------------------------------------------------------------------------------------


def rows_multiplied(axes: Any = 1, axis: int = 0, read_twice: bool = False) -> tuple[PartBuilder, str, list[str]]:
    part = PartBuilder()
    keys = [part.feed(name) for name in "ab"] + [part.feed(name, I32) for name in "ik"]
    part.const("axis", axis, I32)
    part.const("axes", axes, I32)
    for rows, places, name in (("a", "i", "left"), ("b", "k", "right")):
        part.node("GatherV2", name, [rows, places, "axis"], Tparams=F32, Tindices=I32, Taxis=I32)
    part.node("Mul", "products", ["left", "right"], T=F32)
    part.node("Sum", "sums", ["products", "axes"], T=F32, Tidx=I32)
    if read_twice:
        part.fetch("products")
    return part, part.fetch("sums"), keys


@pytest.mark.parametrize("width", [1, 5, 40])
@pytest.mark.parametrize("axes", [1, [-1], 0, [0, 1]])
def test_a_sum_of_products_of_rows_reads_them_where_they_lie(axes: Any, width: int) -> None:
    part, fetch, keys = rows_multiplied(axes)
    draw = np.random.default_rng(1)
    a, b = (draw.standard_normal((rows, width)).astype(np.float32) for rows in (7, 4))
    i, k = (draw.integers(0, rows, 30).astype(np.int32) for rows in (7, 4))

    optimized = Optimized(part)
    found = run(compile_program(part.graph_def, TASK, ResourceManager()), dict(zip(keys, (a, b, i, k), strict=True)))

    assert optimized.counts.rows == 1
    assert optimized.op("left") == optimized.op("right") == optimized.op("products") == "NoOp"
    expected = (a[i].astype(np.float64) * b[k]).sum(tuple(np.atleast_1d(axes).tolist()))
    np.testing.assert_allclose(found[fetch], expected, rtol=1e-5, atol=1e-4)


def test_products_of_rows_fail_as_the_gathers_would() -> None:
    part, _, keys = rows_multiplied()
    program = compile_program(part.graph_def, TASK, ResourceManager())
    a, b = np.ones((7, 3), np.float32), np.ones((4, 3), np.float32)

    with pytest.raises(errors.InvalidArgumentError, match=r"indices\[1\] = 4 is not in \[0, 4\)"):
        run(program, dict(zip(keys, (a, b, np.int32([0, 6]), np.int32([3, 4])), strict=True)))


def test_products_with_rows_that_were_folded_stay() -> None:
    """A gather of constants is a constant itself by then, and reads nothing."""
    part = PartBuilder()
    key = part.feed("a")
    for name in ("i", "k"):
        part.const(name, np.array([0, 2], np.int32), I32)
    part.const("axis", 0, I32)
    part.const("axes", 1, I32)
    part.const("b", np.arange(6, dtype=np.float32).reshape(3, 2), F32)
    for rows, places, name in (("a", "i", "left"), ("b", "k", "right")):
        part.node("GatherV2", name, [rows, places, "axis"], Tparams=F32, Tindices=I32, Taxis=I32)
    part.node("Mul", "products", ["left", "right"], T=F32)
    part.node("Sum", "sums", ["products", "axes"], T=F32, Tidx=I32)
    fetch = part.fetch("sums")

    found = run(compile_program(part.graph_def, TASK, ResourceManager()), {key: np.ones((3, 2), np.float32)})

    assert found[fetch].tolist() == [1, 9]


@pytest.mark.parametrize(("axis", "read_twice"), [(1, False), (0, True)])
def test_other_products_stay(axis: int, read_twice: bool) -> None:
    part, _, _ = rows_multiplied(axis=axis, read_twice=read_twice)
    assert Optimized(part).op("sums") == "Sum"
    assert Optimized(part).counts.rows == 0


def gathers_multiplied(left: str, right: str, *, params: str = "", **attrs: Any) -> PartBuilder:
    """A sum of products of two gathers: "Gather" has no axis, "GatherV2" the axis 0, "axis" one that a step gives; the
    rows of the left one are of a reference variable where `params` says so."""
    part = PartBuilder()
    for name in "ab":
        part.feed(name)
    part.feed("i", I32)
    part.const("first", 0, I32)
    part.feed("axis", I32)
    part.const("axes", 1, I32)
    if params:
        part.node("VariableV2", params, shape=(7, 3), dtype=F32)
    for op, rows, name in ((left, params or "a", "left"), (right, "b", "right")):
        if op == "Gather":
            part.node("Gather", name, [rows, "i"], Tparams=F32, Tindices=I32)
        else:
            axis = {"GatherV2": "first"}.get(op, op)
            types = {"Tparams": F32, "Tindices": I32, "Taxis": I32}
            part.node("GatherV2", name, [rows, "i", axis], **types, **(attrs if name == "left" else {}))
    part.node("Mul", "products", ["left", "right"], T=F32)
    part.node("Sum", "sums", ["products", "axes"], T=F32, Tidx=I32)
    part.fetch("sums")
    return part


@pytest.mark.parametrize(("left", "right"), [("Gather", "GatherV2"), ("GatherV2", "Gather"), ("Gather", "Gather")])
def test_a_gather_without_an_axis_picks_rows_as_well(left: str, right: str) -> None:
    part = gathers_multiplied(left, right)
    optimized = Optimized(part)
    assert optimized.counts.rows == 1
    assert optimized.op("left") == optimized.op("right") == optimized.op("products") == "NoOp"
    assert optimized.sources("sums") == ["a", "i", "b", "i", "axes"]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(gathers_multiplied("GatherV2", "GatherV2", batch_dims=1), id="by batch"),
        pytest.param(gathers_multiplied("axis", "GatherV2"), id="an axis of the step's"),
        pytest.param(gathers_multiplied("Gather", "GatherV2", params="v"), id="rows of a reference"),
        pytest.param(gathers_multiplied("GatherV2", "Gather", params="v"), id="rows of a reference, with an axis"),
    ],
)
def test_other_gathers_stay(other: PartBuilder) -> None:
    optimized = Optimized(other)
    assert optimized.counts.rows == 0
    assert [optimized.op(name) for name in ("left", "right", "products", "sums")].count("NoOp") == 0
