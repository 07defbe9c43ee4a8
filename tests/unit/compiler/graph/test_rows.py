"""Functions of many elements at once: what they give is what one call for each element gives, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.functions import DEVICE, const, function, graph, node
from support.graph_text import parse_text
from support.programs import compile_program
from tenfold_compiler.graph.rows import of_rows
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_core import dtypes
from tenfold_core.node_names import TensorName
from tenfold_core.tensor_util import proto_to_tensor
from tenfold_kernels.resources.state import ResourceManager
from tenfold_services.worker.functions import FunctionRuntime

F, INT, B = dtypes.float32, dtypes.int32, dtypes.uint8
RNG = np.random.default_rng(41)
FLOATS = RNG.standard_normal((7, 4, 5, 3)).astype(np.float32)
BYTES = RNG.integers(0, 256, (7, 4, 5, 3)).astype(np.uint8)

M, P = "m:output:0", "p:output:0"
SLICED = [
    const("b", [1, 0, 0]),
    const("n", [2, -1, 1]),
    node("y", "Slice", "x", "b:output:0", "n:output:0", T=F, Index=INT),
]

#: A last axis of one.
TO_ONES = [const("s", [4, 15, 1]), node("r", "Reshape", "x", "s:output:0", T=F, Tshape=INT)]
HOT = [const("depth", 3), const("on", 1.0), const("off", 0.0)]
HOT_INPUTS = ("depth:output:0", "on:output:0", "off:output:0")
NUMBERS = [const("two", 2), node("c", "Cast", "x", SrcT=F, DstT=INT)]
MIXED = node("y", "ConcatV2", "x", "c:output:0", "a:output:0", T=F, N=2, Tidx=INT)
#: Axes that are no constant; constants where an element is wanted.
NEGATIVE = node("y", "ReverseV2", "x", "m:y:0", T=F, Tidx=INT)
SCALED = node("y", "Tile", "c:output:0", "p:y:0", T=F, Tmultiples=INT)
REVERSED = node("y", "ReverseV2", "x", "i:output:0", T=F, Tidx=INT)


def runtime(*nodes: Any, dtype: Any = F, last: str = "y:y:0", more: tuple[str, ...] = ()) -> Any:
    """A function of x, and of what more is captured."""
    name = {F: "float", B: "uint8"}[dtype]
    body = function("f", [f"x: {name}", *more], ["out: float"], list(nodes), out=last)
    resources = ResourceManager()

    def compiled(graph_def: Any, functions: Any) -> Any:
        return compile_program(graph_def, DEVICE.partition("/device")[0], resources, functions=functions)

    return FunctionRuntime(graph([], body).library, compiled).instantiate("f", {}, DEVICE)


def program_of_rows(called: Any, *ranks: tuple[int, bool]) -> Any:
    """The function written anew; None where its kernels are called one after the other at most (row_plan.py)."""
    found = called.by_rows(ranks)
    return found if found is not None and found.is_sure else None


def cast(name: str, source: str, to: Any = F, of: Any = B) -> Any:
    return node(name, "Cast", source, SrcT=of, DstT=to)


@pytest.mark.parametrize(
    ("dtype", "nodes", "last"),
    [
        (F, [const("two", 2.0), node("y", "Mul", "x", "two:output:0", T=F)], "y:z:0"),
        (B, [cast("c", "x"), const("s", 1 / 255), node("y", "Mul", "c:y:0", "s:output:0", T=F)], "y:z:0"),
        (F, [const("row", FLOATS[0, 0, 0]), node("y", "Sub", "x", "row:output:0", T=F)], "y:z:0"),
        (F, [const("a", [1]), node("y", "ReverseV2", "x", "a:output:0", T=F, Tidx=INT)], "y:output:0"),
        (F, [const("a", [0, -1]), node("y", "Mean", "x", "a:output:0", T=F, Tidx=INT)], "y:output:0"),
        (F, [const("a", [0, 1, 2]), node("y", "Mean", "x", "a:output:0", T=F, Tidx=INT)], "y:output:0"),
        (F, [const("a", [0, 1, 2]), node("y", "Sum", "x", "a:output:0", T=F, Tidx=INT)], "y:output:0"),
        (F, [const("a", 0), node("y", "ExpandDims", "x", "a:output:0", T=F, Tdim=INT)], "y:output:0"),
        (F, [const("s", [60]), node("y", "Reshape", "x", "s:output:0", T=F, Tshape=INT)], "y:output:0"),
        (F, [const("p", [2, 0, 1]), node("y", "Transpose", "x", "p:output:0", T=F, Tperm=INT)], "y:y:0"),
        (F, SLICED, "y:output:0"),
        (F, [const("p", [[1, 0], [0, 0], [2, 1]]), node("y", "Pad", "x", P, T=F, Tpaddings=INT)], "y:output:0"),
        (F, [node("y", "Pack", "x", "x", T=F, N=2, axis=1)], "y:output:0"),
        (F, [const("a", -1), node("y", "ConcatV2", "x", "x", "a:output:0", T=F, N=2, Tidx=INT)], "y:output:0"),
        (F, [const("y", 3.0), node("z", "Identity", "x", T=F)], "y:output:0"),
        (F, [const("a", [0]), node("y", "Max", "x", "a:output:0", T=F, Tidx=INT, keep_dims=True)], "y:output:0"),
        (F, [const("a", [1, -1]), node("y", "Sum", "x", "a:output:0", T=F, Tidx=INT)], "y:output:0"),
        (F, [const("a", -1), node("y", "ExpandDims", "x", "a:output:0", T=F, Tdim=INT)], "y:output:0"),
        (F, [const("a", [3]), node("y", "ExpandDims", "x", "a:output:0", T=F, Tdim=INT)], "y:output:0"),
        (F, [*TO_ONES, node("y", "Squeeze", "r:output:0", T=F, squeeze_dims=[-1])], "y:output:0"),
        (B, [cast("c", "x", INT), *HOT, node("y", "OneHot", "c:y:0", *HOT_INPUTS, T=F, TI=INT)], "y:output:0"),
        (B, [cast("c", "x", INT), *HOT, node("y", "OneHot", "c:y:0", *HOT_INPUTS, T=F, TI=INT, axis=1)], "y:output:0"),
        (B, [cast("c", "x", INT), *HOT, node("y", "OneHot", "c:y:0", *HOT_INPUTS, T=F, TI=INT, axis=0)], "y:output:0"),
        (
            F,
            [
                const("p", [[1, 0], [0, 0], [2, 1]]),
                const("v", 7.0),
                node("y", "PadV2", "x", P, "v:output:0", T=F, Tpaddings=INT),
            ],
            "y:output:0",
        ),
        (F, [node("y", "Pack", "x", "x", T=F, N=2, axis=-1)], "y:output:0"),
        (F, [const("a", 0), node("y", "ConcatV2", "x", "x", "a:output:0", T=F, N=2, Tidx=INT)], "y:output:0"),
        (F, [const("two", 2.0), node("y", "Div", "x", "two:output:0", T=F)], "y:z:0"),
        (F, [node("y", "Pow", "x", "x", T=F)], "y:z:0"),
        (F, [const("a", [1]), node("i", "Identity", "a:output:0", T=INT), REVERSED], "y:output:0"),
    ],
)
def test_rows_are_what_elements_are(dtype: Any, nodes: Any, last: str) -> None:
    called = runtime(*nodes, dtype=dtype, last=last)
    elements = FLOATS if dtype is F else BYTES
    at_once = program_of_rows(called, (3, True))
    if len(nodes) == 2 and nodes[1].name == "z":
        assert at_once is None, "nothing depends on the element"
        return

    (rows,) = at_once([elements])

    for row, element in zip(rows, elements, strict=True):
        (single,) = called([element])
        assert (row.shape, row.dtype) == (single.shape, single.dtype)
        assert row.tobytes() == single.tobytes()


@pytest.mark.parametrize(
    ("nodes", "last"),
    [
        ([const("s", [3]), node("y", "RandomUniform", "s:output:0", T=INT, dtype=F)], "y:output:0"),
        ([node("y", "CheckNumerics", "x", T=F, message="bad")], "y:output:0"),
        ([const("m", FLOATS[0, 0]), node("y", "MatMul", M, M, T=F, transpose_b=True)], "y:product:0"),
        ([const("s", [-1, 3]), node("y", "Reshape", "x", "s:output:0", T=F, Tshape=INT)], "y:output:0"),
        ([const("big", FLOATS), node("y", "Add", "x", "big:output:0", T=F)], "y:z:0"),
        (
            [const("a", [0]), node("m", "Mean", "x", "a:output:0", T=F, Tidx=INT), node("y", "Sub", "x", M, T=F)],
            "y:z:0",
        ),
        ([cast("c", "x", dtypes.complex64, F), cast("y", "c:y:0", F, dtypes.complex64)], "y:y:0"),
        ([const("a", [3]), node("y", "ReverseV2", "x", "a:output:0", T=F, Tidx=INT)], "y:output:0"),
        ([const("a", [-4]), node("y", "ReverseV2", "x", "a:output:0", T=F, Tidx=INT)], "y:output:0"),
        ([const("a", -5), node("y", "ExpandDims", "x", "a:output:0", T=F, Tdim=INT)], "y:output:0"),
        ([*TO_ONES, node("y", "Squeeze", "r:output:0", T=F)], "y:output:0"),
        ([*NUMBERS, node("y", "Div", "c:y:0", "two:output:0", T=INT), cast("z", "y:z:0", F, INT)], "z:y:0"),
        ([*NUMBERS, node("y", "Pow", "c:y:0", "two:output:0", T=INT), cast("z", "y:z:0", F, INT)], "z:y:0"),
        ([const("a", 1.0, None, "^x"), node("y", "Mul", "x", "a:output:0", T=F)], "y:z:0"),
        ([node("t", "AsString", "x", T=F), node("y", "StringToNumber", "t:output:0", out_type=F)], "y:output:0"),
        ([const("n", 2), node("s", "Split", "n:output:0", "x", num_split=2, T=F)], "s:output:1"),
        ([const("c", FLOATS[0]), node("y", "Pack", "x", "c:output:0", T=F, N=2)], "y:output:0"),
        ([const("c", FLOATS[0]), const("a", 0), MIXED], "y:output:0"),
        ([const("a", [0]), node("m", "Neg", "a:output:0", T=INT), NEGATIVE], "y:output:0"),
        ([const("c", FLOATS[0, 0, 0]), cast("p", "x", INT, F), SCALED], "y:output:0"),
    ],
)
def test_what_does_not_work_row_by_row_is_left(nodes: Any, last: str) -> None:
    """A state, a check that fails, nothing of the element, an unknown size, axes that would be mixed up."""
    assert program_of_rows(runtime(*nodes, last=last), (3, True)) is None


def test_what_is_captured_has_no_rows() -> None:
    called = runtime(node("y", "Mul", "x", "by", T=F), last="y:z:0", more=("by: float",))
    by = np.float32(0.5) * FLOATS[0]

    (rows,) = called.by_rows([(3, True), (3, False)])([FLOATS, by])

    assert rows.tobytes() == (FLOATS * by).tobytes()
    assert program_of_rows(called, (3, True), (4, False)) is None, "it has more axes than an element"


A_SHAPE = "s = Const() dtype=int32 value="
OF_ONE = [
    ("m = Neg(x)", 3),
    ("s = Const() dtype=float value=[1.0,2.0]\nm = Mul(s, x)", 3),
    ("s = Const() dtype=float value=[1.0,2.0]\ni = Identity(s)\nm = Mul(x, i)", 3),
    ("m = Mul(x, plain)", 3),
    (f"{A_SHAPE}[0,-1]\nm = Sum(x, s)", 1),
    (f"{A_SHAPE}[-1,2]\nm = Sum(x, s)", 2),
    (f"{A_SHAPE}[0,-1]\nm = Sum(x, s) keep_dims=true", 3),
    (f"{A_SHAPE}[0,-1]\nm = ReverseV2(x, s)", 3),
    (f"{A_SHAPE}1\nm = ExpandDims(x, s)", 4),
    (f"{A_SHAPE}-4\nm = ExpandDims(x, s)", 4),
    ("m = Squeeze(x) squeeze_dims=[0,2]", 1),
    ("m = Squeeze(x) squeeze_dims=[-1,2]", 2),
    (f"{A_SHAPE}[5,4]\nm = Reshape(x, s)", 2),
    (f"{A_SHAPE}[0,3]\nm = Reshape(x, s)", 2),
    (f"{A_SHAPE}[2,0,1]\nm = Transpose(x, s)", 3),
    (f"{A_SHAPE}5\ni = Cast(x) DstT=int32\no = Const() dtype=float value=1.0\nm = OneHot(i, s, o, o) TI=int32", 4),
    (f"{A_SHAPE}[0,1,0]\nm = Slice(x, s, s)", 3),
    (f"{A_SHAPE}((0,1),(0,0),(1,0))\nm = Pad(x, s)", 3),
    ("m = Pack(x, x) N=2 axis=1", 4),
    (f"{A_SHAPE}1\nm = ConcatV2(x, x, s) N=2", 3),
]


def by_rows(text: str, *outputs: str) -> Any:
    """Of a graph whose x has rows, of rank 3 each, and in which `plain` is of rank 3 for all."""
    given = "x = Placeholder() dtype=float\nplain = Placeholder() dtype=float\n"
    built = RuntimeGraph.from_graph_def(parse_text(given + text))
    return of_rows(built, {"x": (3, True), "plain": (3, False)}, [TensorName(name, 0) for name in outputs])


@pytest.mark.parametrize(("text", "rank"), OF_ONE)
def test_each_operation_says_which_rank_it_gives(text: str, rank: int) -> None:
    """The last axis of what follows is one further on; one beyond is none."""
    last = "last = Const() dtype=int32 value=[{}]\ny = ReverseV2(m, last)"

    made, rows = by_rows(f"{text}\n{last.format(-1)}", "y")

    assert rows == [True]
    assert proto_to_tensor(made.nodes["y/rows_1"].attrs["value"]).tolist() == [rank]
    assert by_rows(f"{text}\n{last.format(-rank)}", "y") is not None
    assert by_rows(f"{text}\n{last.format(-rank - 1)}", "y") is None
    assert by_rows(f"{text}\n{last.format(rank - 1)}", "y") is not None
    assert by_rows(f"{text}\n{last.format(rank)}", "y") is None


def test_what_becomes_of_constants_and_attributes() -> None:
    def constants(text: str) -> dict[str, Any]:
        made, _ = by_rows(text, "m")
        found = {name: node for name, node in made.nodes.items() if "/rows_" in name}
        return {name: proto_to_tensor(node.attrs["value"]).tolist() for name, node in found.items()}

    assert constants(f"{A_SHAPE}[0,-1]\nm = Max(x, s)") == {"m/rows_1": [1, 3]}
    assert constants(f"{A_SHAPE}-1\nm = ExpandDims(x, s)") == {"m/rows_1": 4}
    assert constants(f"{A_SHAPE}[0]\nm = ExpandDims(x, s)") == {"m/rows_1": [1]}
    assert constants(f"{A_SHAPE}[5,0]\nm = Reshape(x, s)") == {"m/rows_1": [-1, 5, 0]}
    assert constants(f"{A_SHAPE}[2,0,1]\nm = Transpose(x, s)") == {"m/rows_1": [0, 3, 1, 2]}
    assert constants(f"{A_SHAPE}[0,1,0]\nz = Const() dtype=int32 value=[-1,2,0]\nm = Slice(x, s, z)") == {
        "m/rows_1": [0, 0, 1, 0], "m/rows_2": [-1, -1, 2, 0]
    }  # fmt: skip
    assert constants(f"{A_SHAPE}((0,1),(0,0),(1,0))\nm = Pad(x, s)") == {"m/rows_1": [[0, 0], [0, 1], [0, 0], [1, 0]]}
    assert constants(f"{A_SHAPE}-2\nm = ConcatV2(x, x, x, s) N=3") == {"m/rows_3": 2}
    made, _ = by_rows("m = Pack(x, x) N=2 axis=-1", "m")
    assert made.nodes["m"].attrs["axis"] == 4
    made, _ = by_rows("m = Squeeze(x) squeeze_dims=[0,-1]", "m")
    assert made.nodes["m"].attrs["squeeze_dims"] == [1, 3]


@pytest.mark.parametrize(
    "text",
    [
        "t = AsString(x)\nm = Identity(t)",
        "m = Cast(x) DstT=complex64",
        "m = MatMul(x, x)",
        "s = Const() dtype=float value=((((1.0,),),),)\nm = Mul(x, s)",
        "s = Const() dtype=float value=((((1.0,),),),)\nm = Mul(s, x)",
        "z = Placeholder() dtype=float\nm = Mul(z, x)",
        f"{A_SHAPE}[0]\nn = Neg(s)\nm = Sum(x, n)",
        f"{A_SHAPE}[0]\nk = Sum(x, s)\nm = Mul(k, x)",
        f"{A_SHAPE}[0]\nk = Sum(x, s)\nm = Pack(k, x) N=2",
        "m = Pack(plain, x) N=2",
        "m = Pack(x, plain) N=2",
        f"{A_SHAPE}0\nm = ConcatV2(plain, x, s) N=2",
        "k = NoOp()\nm = Neg(x, ^k)",
    ],
)
def test_what_is_not_by_rows(text: str) -> None:
    assert by_rows(text, "m") is None


def test_strings_have_no_rows_and_a_state_leaves_the_whole_graph() -> None:
    graph_def = parse_text("s = Placeholder() dtype=string\nm = Equal(s, s)")
    assert of_rows(RuntimeGraph.from_graph_def(graph_def), {"s": (0, True)}, [TensorName("m", 0)]) is None
    state = parse_text("x = Placeholder() dtype=float\nm = Neg(x)\nv = VariableV2() dtype=float shape=[]")
    assert of_rows(RuntimeGraph.from_graph_def(state), {"x": (0, True)}, [TensorName("m", 0)]) is None


def test_only_what_outputs_need_is_written_and_outputs_say_whether_they_have_rows() -> None:
    made, rows = by_rows("a = Neg(x)\nb = Neg(plain)\nc = Exp(x)\nd = Exp(a)", "d", "b", "x", "plain")

    assert rows == [True, False, True, False]
    assert list(made.nodes) == ["x", "a", "d", "plain", "b"]
