"""Programs that run kernel after kernel for many elements: what calls one after the other give, drawn numbers too."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.functions import DEVICE, const, function, graph, node
from support.parts import PartBuilder
from support.programs import compile_program, compiled
from tenfold_compiler.part.guards import ANY, Literal
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.state import ResourceManager
from tenfold_services.worker import row_plan
from tenfold_services.worker.dynamic_executor import outputs_of
from tenfold_services.worker.execution import StepIO
from tenfold_services.worker.functions import FunctionRuntime
from tenfold_services.worker.row_plan import RowPlan
from tenfold_services.worker.row_values import Each, NotOneShape, Stack

F, INT, BOOL = dtypes.float32, dtypes.int32, dtypes.bool_
#: Of 7 elements.
ROWS = np.random.default_rng(3).standard_normal((7, 4, 5)).astype(np.float32)
LARGE = np.random.default_rng(4).standard_normal((5, 130, 130)).astype(np.float32)


def made(nodes: list[Any], last: str, more: tuple[str, ...] = ()) -> Any:
    """A function of x, and of what more there is."""
    body = function("f", ["x: float", *more], ["out: float"], nodes, out=last, stateful=True)
    resources = ResourceManager()

    def compiled(graph_def: Any, functions: Any) -> Any:
        return compile_program(graph_def, DEVICE.partition("/device")[0], resources, functions=functions)

    return FunctionRuntime(graph([], body).library, compiled).instantiate("f", {}, DEVICE)


def drawn(name: str, op: str, shape: list[int], seed: int, *more: str, **attrs: Any) -> list[Any]:
    kinds = {"dtype": F, **attrs} if op != "RandomUniformInt" else attrs
    shape_of = const(f"{name}_shape", shape, INT)
    return [shape_of, node(name, op, f"{name}_shape:output:0", *more, T=INT, seed=seed, seed2=5, **kinds)]


NOISE = [*drawn("r", "RandomStandardNormal", [4, 5], 1), node("y", "Mul", "x", "r:output:0", T=F)]
CUT = [*drawn("r", "TruncatedNormal", [5], 1), node("y", "Add", "x", "r:output:0", T=F)]
CROP = [
    const("low", 0), const("high", 1 << 30), const("limit", [3, 2]), const("size", [2, 4]),
    *drawn("i", "RandomUniformInt", [2], 3, "low:output:0", "high:output:0", Tout=INT),
    node("at", "FloorMod", "i:output:0", "limit:output:0", T=INT),
    node("y", "Slice", "x", "at:z:0", "size:output:0", T=F, Index=INT),
]  # fmt: skip
COIN = [
    *drawn("u", "RandomUniform", [], 2), const("half", 0.5), const("axis", [1]),
    node("p", "Less", "u:output:0", "half:output:0", T=F),
    node("s", "Switch", "x", "p:z:0", T=F), node("pp", "Switch", "p:z:0", "p:z:0", T=BOOL),
    node("alive", "Identity", "pp:output_true:0", T=BOOL),
]  # fmt: skip
FLIP = [
    *COIN, node("turned", "ReverseV2", "s:output_true:0", "axis:output:0", T=F, Tidx=INT),
    node("y", "Merge", "s:output_false:0", "turned:output:0", T=F, N=2),
]  # fmt: skip
#: One branch draws numbers, and there is another condition within it.
NESTED = [
    *COIN, const("shape", [], INT, "^alive"), const("q", 0.3, None, "^alive"), const("one", 1.0, None, "^alive"),
    node("v", "RandomUniform", "shape:output:0", T=INT, dtype=F, seed=8, seed2=5),
    node("less", "Less", "v:output:0", "q:output:0", T=F),
    node("t", "Switch", "s:output_true:0", "less:z:0", T=F), node("w", "Switch", "v:output:0", "less:z:0", T=F),
    node("plus", "Add", "t:output_true:0", "w:output_true:0", T=F), node("minus", "Neg", "t:output_false:0", T=F),
    node("m", "Merge", "minus:y:0", "plus:z:0", T=F, N=2),
    node("twice", "Mul", "m:output:0", "one:output:0", T=F),
    node("y", "Merge", "s:output_false:0", "twice:z:0", T=F, N=2),
]  # fmt: skip
WHOLE = [
    const("all", [0, 1]), const("to", [5, 4]), const("turn", [1, 0]), const("front", -1),
    *drawn("u", "RandomUniform", [], 2), node("m", "Mean", "x", "all:output:0", T=F, Tidx=INT),
    node("z", "Sub", "x", "m:output:0", T=F), node("t", "Transpose", "z:z:0", "turn:output:0", T=F, Tperm=INT),
    node("n", "Reshape", "t:y:0", "to:output:0", T=F, Tshape=INT), node("v", "Mul", "n:output:0", "u:output:0", T=F),
    node("y", "ExpandDims", "v:z:0", "front:output:0", T=F, Tdim=INT),
]  # fmt: skip


@pytest.mark.parametrize(
    ("nodes", "last"),
    [
        (NOISE, "y:z:0"), (CUT, "y:z:0"), (CROP, "y:output:0"), (FLIP, "y:output:0"), (NESTED, "y:output:0"),
        (WHOLE, "y:output:0"),
    ],
    ids=["noise", "cut off", "crop", "flip", "nested", "axes"],
)  # fmt: skip
@pytest.mark.parametrize("elements", [ROWS, ROWS[:1]], ids=["many", "one"])
def test_numbers_and_branches_are_those_of_calls(nodes: Any, last: str, elements: Any) -> None:
    one_by_one, together = made(nodes, last), made(nodes, last)
    at_once = together.by_rows([(2, True)])
    assert not at_once.is_sure

    found = [at_once([elements])[0], [together([element])[0] for element in elements], at_once([elements])[0]]

    expected = [one_by_one([element])[0] for element in [*elements] * 3]
    for mine, other in zip([row for block in found for row in block], expected, strict=True):
        assert (mine.shape, mine.dtype) == (other.shape, other.dtype)
        assert mine.tobytes() == other.tobytes()


def test_large_elements_go_through_the_ops_alone() -> None:
    one_by_one, together = made(FLIP, "y:output:0"), made(FLIP, "y:output:0")

    (found,) = together.by_rows([(2, True)])([LARGE])

    assert np.array_equal(found, [one_by_one([element])[0] for element in LARGE])


def test_what_fails_has_drawn_nothing() -> None:
    checked = [
        *drawn("r", "RandomUniform", [], 4),
        node("c", "CheckNumerics", "x", T=F, message="bad"),
        node("y", "Add", "c:output:0", "r:output:0", T=F),
    ]
    called, other = made(checked, "y:z:0"), made(checked, "y:z:0")
    at_once, bad = called.by_rows([(2, True)]), ROWS.copy()
    bad[4, 0, 0] = np.nan

    with pytest.raises(errors.InvalidArgumentError, match="bad"):
        at_once([bad])

    assert np.array_equal(at_once([ROWS])[0], [other([element])[0] for element in ROWS])


def test_a_captured_condition_takes_one_branch_for_all() -> None:
    nodes = [
        *drawn("u", "RandomUniform", [], 2), node("s", "Switch", "x", "p", T=F),
        node("minus", "Neg", "s:output_true:0", T=F), node("m", "Merge", "s:output_false:0", "minus:y:0", T=F, N=2),
        node("y", "Mul", "m:output:0", "u:output:0", T=F),
    ]  # fmt: skip
    for truth in (False, True):
        p = np.array(truth)
        one_by_one, together = made(nodes, "y:z:0", ("p: bool",)), made(nodes, "y:z:0", ("p: bool",))
        (found,) = together.by_rows([(2, True), (0, False)])([ROWS, p])
        assert np.array_equal(found, [one_by_one([element, p])[0] for element in ROWS])


def test_a_state_is_left_to_calls() -> None:
    nodes = [const("n", [4, 5]), node("y", "RandomShuffle", "x", T=F, seed=3)]
    assert made(nodes[1:], "y:output:0").by_rows([(2, True)]) is None


def test_records_are_read_together() -> None:
    """A block of them by one call; a wrong one is found when they are read one by one."""
    nodes = [
        const("zero", [0]), const("none", [""]), const("yes", ">50K"),
        node("csv", "DecodeCSV", "x", "zero:output:0", "none:output:0", OUT_TYPE=[INT, dtypes.string]),
        node("equal", "Equal", "csv:output:1", "yes:output:0", T=dtypes.string),
        node("hash", "StringToHashBucketFast", "csv:output:1", num_buckets=50),
    ]  # fmt: skip
    outputs = {"a": "csv:output:0", "b": "csv:output:1", "c": "equal:z:0", "d": "hash:output:0"}
    body = function(
        "f", ["x: string"], ["a: int32", "b: string", "c: bool", "d: int64"], nodes, stateful=True, **outputs
    )
    resources = ResourceManager()

    def compiled(graph_def: Any, functions: Any) -> Any:
        return compile_program(graph_def, DEVICE.partition("/device")[0], resources, functions=functions)

    called = FunctionRuntime(graph([], body).library, compiled).instantiate("f", {}, DEVICE)
    lines = np.array([b"4,>50K", b",<=50K", b'-7,"a, b"', b"8,", b"9,x"], object)
    at_once = called.by_rows([(0, True)])
    assert at_once is called.by_rows([(0, True)])

    found = at_once([lines])

    each = [called([np.array(line, object)]) for line in lines]
    for port, column in enumerate(found):
        assert column.tolist() == [outputs[port].tolist() for outputs in each]
        assert column.dtype == each[0][port].dtype
    with pytest.raises(errors.InvalidArgumentError, match="Expect 2 fields but have 3 in record 1"):
        at_once([np.array([b"4,a", b"1,2,3"], object)])


# -- which programs ----------------------------------------------------------------------------------------------------


def plan_of(part: PartBuilder, feeds: list[str | None], fetches: list[str], has_rows: list[bool]) -> RowPlan:
    return RowPlan(compiled(part).compiled, feeds, fetches, has_rows)


def variable(part: PartBuilder) -> str:
    part.node("VariableV2", "v", dtype=F, shape=TensorShape([]))
    return part.node("Assign", "a", ["v", "x"], T=F)


def state(part: PartBuilder) -> str:
    return part.node("RandomShuffle", "y", ["x"], T=F)


def handle(part: PartBuilder) -> str:
    part.node("VarHandleOp", "h", dtype=F, shape=TensorShape([]))
    return part.node("ReadVariableOp", "y", ["h"], dtype=F)


def dead(part: PartBuilder) -> str:
    part.node("Cast", "p", ["x"], SrcT=F, DstT=BOOL)
    part.node("Switch", "s", ["x", "p"], T=F)
    return part.node("Neg", "y", ["s:1"], T=F)


def case(part: PartBuilder) -> str:
    part.node("Cast", "i", ["x"], SrcT=F, DstT=INT)
    part.node("_SwitchN", "s", ["x", "i"], T=F, num_outs=2)
    part.node("Merge", "m", ["s:0", "s:1"], T=F, N=2)
    return "m"


def in_a_list(part: PartBuilder) -> str:
    part.const("none", [], INT)
    part.node("TensorListReserve", "list", ["none", "none"], element_dtype=F, shape_type=INT)
    return part.node("Neg", "y", ["x", "^list"], T=F)


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (case, "^_SwitchN is the executor's own$"), (in_a_list, "^TensorListReserve works on what is no array$"),
        (variable, "^v writes through an edge$"), (state, "^RandomShuffle has a state$"),
        (handle, "^ReadVariableOp has a state$"), (dead, "^send_fetch_y may be dead$"),
    ],
)  # fmt: skip
def test_what_writes_has_a_state_or_may_be_dead_is_refused_by_name(build: Any, text: str) -> None:
    part = PartBuilder()
    x = part.feed("x")
    key = part.fetch(build(part))
    with pytest.raises(ValueError, match=text):
        plan_of(part, [x], [key], [True])


@pytest.mark.parametrize(
    ("fields", "text"),
    [({"memory": "GPU:0"}, "^n is a GPU's$"), ({"copy_of": (1, 0)}, "^n is a GPU's$"), ({}, None)],
)
def test_what_a_gpu_computes_is_left_to_calls(fields: Any, text: str | None) -> None:
    node: Any = SimpleNamespace(
        **{"name": "n", "op": "Neg", "memory": None, "copy_of": None, "input_types": [], "output_types": [], **fields}
    )
    check = RowPlan._check
    if text is None:
        check(SimpleNamespace(_guards=None), node)  # type: ignore[arg-type]
    else:
        with pytest.raises(ValueError, match=text):
            check(SimpleNamespace(_guards=None), node)  # type: ignore[arg-type]


@pytest.mark.parametrize(("port", "refused"), [(-2, False), (ANY, True)])
def test_what_runs_on_any_of_several_conditions_is_left_to_calls(port: int, refused: bool) -> None:
    node: Any = SimpleNamespace(index=1, name="n", op="Neg", memory=None, copy_of=None, input_types=[], output_types=[])
    guards = SimpleNamespace(of=[frozenset(), frozenset([Literal((0, port), 1, 2)])])
    if refused:
        with pytest.raises(ValueError, match=r"^it is not one condition on which n runs$"):
            RowPlan._check(SimpleNamespace(_guards=guards), node)  # type: ignore[arg-type]
    else:
        RowPlan._check(SimpleNamespace(_guards=guards), node)  # type: ignore[arg-type]


def test_a_plan_has_the_outputs_in_the_callers_order_and_repeats_what_has_no_rows() -> None:
    part = PartBuilder()
    x, y = part.feed("x"), part.feed("y")
    part.node("Add", "sum", ["x", "y"], T=F)
    part.node("Neg", "minus", ["y"], T=F)
    total, minus = part.fetch("sum"), part.fetch("minus")
    plan = plan_of(part, [x, None, y], [minus, total], [True, False, False])
    assert not plan.is_sure

    found = plan([np.float32([[1], [2], [3]]), np.float32(0), np.float32([10])])

    assert [each.tolist() for each in found] == [[[-10.0]] * 3, [[11.0], [12.0], [13.0]]]


@pytest.mark.parametrize("count", [1, 2])
def test_the_outputs_of_a_kernel(count: int) -> None:
    of: list[Any] = [SimpleNamespace(output_types=range(outputs)) for outputs in range(3)]
    assert outputs_of(of[0], "result") == ()
    assert outputs_of(of[1], "result") == ("result",)
    assert outputs_of(of[2], ("a", "b")) == ("a", "b")
    stacked, each, same = Stack(np.array([1, 2])), Each([np.array(3), np.array(4)]), np.array(10)
    kernel = (lambda *v: sum(v)) if count == 1 else (lambda *v: (sum(v), v[0]))
    found = row_plan._one_by_one(kernel, [stacked, each, same], 2, count)
    assert [[int(value) for value in column.each()] for column in found] == [[14, 16], [1, 2]][:count]  # type: ignore[union-attr]
    drawn = iter(range(9))
    (column,) = row_plan._one_by_one(lambda: next(drawn), [], 3, 1)
    assert [int(value) for value in column.each()] == [0, 1, 2]  # type: ignore[union-attr]


def test_an_element_of_more_axes_is_not_stacked_with_the_others() -> None:
    part = PartBuilder()
    x, y = part.feed("x"), part.feed("y")
    part.node("Add", "sum", ["x", "y"], T=F)
    plan = plan_of(part, [x, y], [part.fetch("sum")], [True, False])

    (found,) = plan([np.float32([1, 2]), np.float32([[1, 2, 3]])])

    assert found.tolist() == [[[2, 3, 4]], [[3, 4, 5]]]


def test_elements_of_fewer_axes_get_them() -> None:
    part = PartBuilder()
    x, y = part.feed("x"), part.feed("y")
    part.node("Mul", "y2", ["x", "y"], T=F)
    plan = plan_of(part, [x, y], [part.fetch("y2")], [True, True])

    (found,) = plan([np.float32([2, 3]), np.float32([[1, 2, 3], [4, 5, 6]])])

    assert found.tolist() == [[2, 4, 6], [12, 15, 18]]


# -- a body's rows are what calls give ---------------------------------------------------------------------------------


class _Counted:
    """A kernel, with what row_plan.py asks it for."""

    def __init__(self, calls: dict[str, int], op: str, kernel: Any) -> None:
        self._calls, self._op, self._kernel = calls, op, kernel

    def __call__(self, *values: Any) -> Any:
        self._calls[self._op] += 1
        return self._kernel(*values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)


class Body:
    """A body of parameters `x`, `y`, …: by rows, and by a call for each element. `calls` counts those of kernels."""

    def __init__(self, kinds: list[Any], *ops: tuple[str, list[str], dict[str, Any]]) -> None:
        self.part, self.calls = PartBuilder(), dict.fromkeys((op for op, _, _ in ops), 0)
        self.feeds = [self.part.feed(name, kind) for name, kind in zip("xyz", kinds, strict=False)]
        for number, (op, inputs, attrs) in enumerate(ops):
            self.part.node(op, f"n{number}", inputs, **attrs)

    def outputs(self, *of: tuple[str, Any]) -> Body:
        fetches = [self.part.fetch(source, dtype) for source, dtype in of]
        self.program = compiled(self.part)
        kernels: Any = self.program.compiled.kernels
        for each in self.program.compiled.part.nodes:
            if each.op in self.calls and each.index in kernels:
                kernels[each.index] = _Counted(self.calls, each.op, kernels[each.index])
        self.fetches = fetches
        return self

    def rows(self, values: list[Any], has_rows: list[bool]) -> list[Any]:
        return RowPlan(self.program.compiled, list(self.feeds), self.fetches, has_rows)(values)

    def one_by_one(self, values: list[Any], has_rows: list[bool]) -> list[Any]:
        count = next(len(value) for value, rows in zip(values, has_rows, strict=True) if rows)
        found = []
        for number in range(count):
            row = [
                np.asarray(value[number], value.dtype) if rows else value
                for value, rows in zip(values, has_rows, strict=True)
            ]
            execution = self.program.start(StepIO(dict(zip(self.feeds, row, strict=True)), lambda *_: None))
            execution.advance()
            found.append([execution.fetched()[key] for key in self.fetches])
        return [list(column) for column in zip(*found, strict=True)]


STRING = dtypes.string
SMALL_ROWS = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
LARGE_ROWS = np.random.default_rng(5).standard_normal((2, 128, 128)).astype(np.float32)
ONE_LESS = np.random.default_rng(6).standard_normal((2, 127, 129)).astype(np.float32)
TEXTS = np.array([b"1", b"2.5", b"-3"], object)


@pytest.mark.parametrize(
    ("kinds", "op", "inputs", "attrs", "out", "values", "has_rows", "calls"),
    [
        # what has no rows is computed once, for all
        ([F, F], "Neg", ["y"], {"T": F}, F, [SMALL_ROWS, np.float32([1, 2])], [True, False], 1),
        ([F], "IdentityN", ["x"], {"T": [F]}, F, [SMALL_ROWS], [True], 0),
        ([F], "Shape", ["x"], {"T": F, "out_type": INT}, INT, [SMALL_ROWS], [True], 0),
        ([F], "Shape", ["x"], {"T": F, "out_type": dtypes.int64}, dtypes.int64, [SMALL_ROWS], [True], 0),
        ([F], "Shape", ["x"], {"T": F}, INT, [np.float32([1, 2])], [True], 0),
        ([STRING], "StringToNumber", ["x"], {"out_type": F}, F, [TEXTS], [True], 1),
        ([STRING], "StringToHashBucket", ["x"], {"num_buckets": 7}, dtypes.int64, [TEXTS], [True], 1),
        ([STRING], "StringToHashBucketFast", ["x"], {"num_buckets": 7}, dtypes.int64, [TEXTS], [True], 1),
        ([STRING, INT], "DecodeCSV", ["x", "y"], {"OUT_TYPE": [INT]}, INT,
         [np.array([b"1", b'""'], object), np.int32([7])], [True, False], 1),
        ([STRING, INT], "DecodeCSV", ["x", "y"], {"OUT_TYPE": [INT]}, INT,
         [np.array([b"1", b'""'], object), np.int32([[7], [8]])], [True, True], 2),
        ([STRING, INT], "DecodeCSV", ["x", "y"], {"OUT_TYPE": [INT]}, INT,
         [np.array(b'""', object), np.int32([[7], [8]])], [False, True], 2),
        ([F, INT], "Sum", ["x", "y"], {"T": F, "Tidx": INT}, F, [SMALL_ROWS, np.int32([-1])], [True, False], 1),
        ([F, INT], "Sum", ["x", "y"], {"T": F, "Tidx": INT}, F, [SMALL_ROWS, np.int32([0, -2, 0, 0])], [True, True], 4),
        ([F, INT], "Sum", ["x", "y"], {"T": F, "Tidx": INT}, F, [SMALL_ROWS[0], np.int32([0, -2])], [False, True], 2),
        ([F, INT], "Sum", ["x", "y"], {"T": F, "Tidx": INT}, F, [LARGE_ROWS, np.int32([0])], [True, False], 2),
        ([F, INT], "Sum", ["x", "y"], {"T": F, "Tidx": INT}, F, [ONE_LESS, np.int32([0])], [True, False], 1),
        ([F], "Abs", ["x"], {"T": F}, F, [LARGE_ROWS], [True], 2),
        ([F], "Abs", ["x"], {"T": F}, F, [ONE_LESS], [True], 1),
        ([F, F], "Maximum", ["x", "y"], {"T": F}, F, [SMALL_ROWS, SMALL_ROWS[:, 1] + 1], [True, True], 1),
        ([F, F], "Maximum", ["y", "x"], {"T": F}, F, [SMALL_ROWS, np.float32([[[9]]])], [True, False], 4),
        ([F, F], "Maximum", ["y", "x"], {"T": F}, F, [SMALL_ROWS, np.float32([[9]])], [True, False], 1),
        ([F, F], "Maximum", ["y", "x"], {"T": F}, F, [np.float32([1, 2]), LARGE_ROWS], [True, True], 2),
        ([F], "Cast", ["x"], {"SrcT": F, "DstT": INT}, INT, [SMALL_ROWS], [True], 1),
        ([INT, INT], "FloorDiv", ["x", "y"], {"T": INT}, INT, [np.int32([7, -7]), np.int32(2)], [True, False], 1),
        ([INT, INT], "FloorMod", ["x", "y"], {"T": INT}, INT, [np.int32([7, -7]), np.int32(2)], [True, False], 1),
        ([INT, INT], "Mod", ["x", "y"], {"T": INT}, INT, [np.int32([7, -7]), np.int32(4)], [True, False], 1),
        ([INT, INT], "Div", ["x", "y"], {"T": INT}, INT, [np.int32([7, -7]), np.int32(2)], [True, False], 1),
        ([INT, INT], "TruncateDiv", ["x", "y"], {"T": INT}, INT, [np.int32([7, -7]), np.int32(2)], [True, False], 1),
        ([INT, INT], "TruncateMod", ["x", "y"], {"T": INT}, INT, [np.int32([7, -7]), np.int32(4)], [True, False], 1),
        ([INT, INT], "Pow", ["x", "y"], {"T": INT}, INT, [np.int32([7, -7]), np.int32(3)], [True, False], 1),
        ([F], "L2Loss", ["x"], {"T": F}, F, [SMALL_ROWS], [True], 4),
    ],
)  # fmt: skip
def test_rows_are_those_of_calls_and_kernels_are_called_as_seldom_as_can_be(
    kinds: Any, op: str, inputs: Any, attrs: Any, out: Any, values: Any, has_rows: Any, calls: int
) -> None:
    body = Body(kinds, (op, inputs, attrs)).outputs(("n0", out))

    (found,) = body.rows(values, has_rows)

    assert body.calls[op] == calls
    (expected,) = body.one_by_one(values, has_rows)
    assert found.dtype == expected[0].dtype
    assert [each.tolist() for each in found] == [each.tolist() for each in expected]


@pytest.mark.parametrize(("sizes", "is_one_shape"), [([[1], [1], [1], [1]], True), ([[1], [2], [1], [1]], False)])
def test_elements_of_two_shapes_are_no_stack(sizes: list[Any], is_one_shape: bool) -> None:
    """A shape is then each one's own; what would stand on top of each other is left to calls."""
    cut = ("Slice", ["x", "z", "y"], {"T": F, "Index": INT})
    shape = ("Shape", ["n0"], {"T": F})
    values, has_rows = (
        [np.float32([[1, 2], [3, 4], [5, 6], [7, 8]]), np.int32(sizes), np.int32([0])],
        [True, True, False],
    )
    body = Body([F, INT, INT], cut, shape).outputs(("n1", INT))
    assert body.rows(values, has_rows)[0].tolist() == sizes
    assert (body.calls["Slice"], body.calls["Shape"]) == (4, 4)

    for more in ((), (("Neg", ["n0"], {"T": F}),)):
        body = Body([F, INT, INT], cut, *more).outputs((f"n{len(more)}", F))
        if is_one_shape:
            sign = -1.0 if more else 1.0
            assert body.rows(values, has_rows)[0].tolist() == [[sign], [sign * 3], [sign * 5], [sign * 7]]
        else:
            with pytest.raises(NotOneShape):
                body.rows(values, has_rows)


def test_a_draw_of_a_shape_for_each_element_is_a_call_each() -> None:
    def drawing() -> Body:
        draw = ("RandomUniform", ["y"], {"T": INT, "dtype": F, "seed": 7, "seed2": 3})
        return Body([F, INT], draw, ("Add", ["x", "n0"], {"T": F})).outputs(("n1", F))

    values, has_rows = [np.float32([1, 2, 3]), np.int32([[2], [2], [2]])], [True, True]
    rows, calls = drawing(), drawing()
    (expected,) = calls.one_by_one(values, has_rows)
    assert [each.tolist() for each in rows.rows(values, has_rows)[0]] == [each.tolist() for each in expected]
