"""Functions of many elements at once: what they give is what one call for each element gives, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.functions import DEVICE, const, function, graph, node
from support.programs import compile_program
from tenfold_core import dtypes
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
