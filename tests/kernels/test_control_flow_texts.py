"""Print, PrintV2 and Assert at their edges, RefSelect, and texts of values for other shapes and limits."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from support.kernel_runs import make_node, variable
from tenfold_core import errors
from tenfold_core.opdefs.runtime_ops import FLOW_OPS
from tenfold_kernels import registry
from tenfold_kernels.cpu import control_flow
from tenfold_kernels.resources.state import ResourceManager

F = np.float32


def refused(ops: Any, op: str, inputs: list[Any], text: str, **attrs: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=f"^{re.escape(text)}$"):
        ops.run(op, inputs, **attrs)


X = np.arange(8).reshape(2, 2, 2)


@pytest.mark.parametrize(
    ("value", "limit", "text"),
    [
        (X, -1, "[[0 1][2 3]][[4 5][6 7]]"),
        (X, 8, "[[0 1][2 3]][[4 5][6 7]]"),
        (X, 9, "[[0 1][2 3]][[4 5][6 7]]"),
        (X, 7, "[[0 1][2 3]][[4 5][6...]]..."),
        (X, 5, "[[0 1][2 3]][[4...]]..."),
        (X, 4, "[[0 1][2 3]]..."),
        (X, 3, "[[0 1][2...]]..."),
        (X, 1, "[[0...]]..."),
        (X, 0, "..."),
        (X[0, 0], 0, "..."),
        (X[0, 0], 1, "0..."),
        (X[0, 0], 2, "0 1"),
        (np.array(5), 0, "..."),
        (np.array(5), 1, "5"),
        (np.array(5), -1, "5"),
        (np.zeros((2, 0)), 3, "[][]"),
        (np.zeros((0, 2)), 3, ""),
        (np.array([True]), 1, "1"),
        (np.array([0.1, 1e10, 123456789.0, np.nan, -np.inf]), -1, "0.1 1e+10 1.23457e+08 nan -inf"),
        (np.array([b"\x00\x1f ~\x7f\xff\n\r\t\"'\\"], object), 1, r"\000\037 ~\177\377\n\r\t\"\'\\"),
        (np.array([1 + 2j]), 1, "(1+2j)"),
    ],
)
def test_values_are_summarized(value: np.ndarray, limit: int, text: str) -> None:
    assert control_flow.summarize(value, limit) == text
    assert control_flow.bracketed(value, limit) == f"[{text}]"


@pytest.mark.parametrize(("first_n", "times"), [(-1, 4), (0, 0), (1, 1), (3, 3)])
def test_a_print_is_made_the_first_times_only(ops: Any, capsys: Any, first_n: int, times: int) -> None:
    x, data = F([1]), np.arange(5)
    show, _ = ops.build("Print", [x, data, data[:1]], {"first_n": first_n, "message": b"m: ", "summarize": 2})
    for _ in range(4):
        assert show(x, data, data[:1]) is x
    assert capsys.readouterr().err == "m: [0 1...][0]\n" * times


def test_a_print_shows_three_elements_and_always(ops: Any, capsys: Any) -> None:
    x, data = F([1]), np.arange(5)
    node = make_node("Print", [x, data], {}, ResourceManager(), "n")
    for attrs in (node.attrs, {name: value for name, value in node.attrs.items() if name in ("T", "U")}):
        show = control_flow.build_print(_with(node, attrs))
        show(x, data)
        show(x, data)
        assert capsys.readouterr().err == "[0 1 2...]\n" * 2


def _with(node: Any, attrs: Any) -> Any:
    import dataclasses

    return dataclasses.replace(node, attrs=attrs)


@pytest.mark.parametrize("stream", ["stdout", "stderr", "log(info)", "log(warning)", "log(error)"])
def test_each_stream_is_written_to_and_flushed(ops: Any, capsys: Any, stream: str) -> None:
    assert ops.run("PrintV2", ["é\udcff".encode("utf-8", "surrogateescape")], output_stream=stream.encode()) is None
    written = capsys.readouterr()
    other, mine = (written.err, written.out) if stream == "stdout" else (written.out, written.err)
    assert (mine, other) == ("é\\xff\n", "")


def test_a_print_does_not_wait_in_a_buffer(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Stream:
        def write(self, text: str) -> None:
            seen.append(text)

        def flush(self) -> None:
            seen.append("flushed")

    for name, stream in (("stdout", b"stdout"), ("stderr", b"stderr")):
        seen.clear()
        with monkeypatch.context() as patch:
            patch.setattr(control_flow.sys, name, Stream())
            ops.run("PrintV2", [b"x"], output_stream=stream, end=b"")
        assert seen == ["x", "flushed"]


def test_a_print_takes_one_text(ops: Any) -> None:
    refused(ops, "PrintV2", [np.array([[b"a", b"b"]], object)], "Input is expected to be scalar, but got [1,2]")
    text = "Unknown output stream: , Valid streams are: stdout stderr log(info) log(warning) log(error)"
    refused(ops, "PrintV2", [b"a"], text, output_stream=b"")


def test_an_assertion_is_one_truth(ops: Any) -> None:
    refused(ops, "Assert", [np.array([True]), 1], "In[0] should be a scalar: [1]")
    assert ops.run("Assert", [np.array(True), 1]) is None
    five = np.arange(5)
    refused(ops, "Assert", [np.array(False), five, five[:1]], "assertion failed: [0 1 2...] [0]")
    refused(ops, "Assert", [np.array(False), five], "assertion failed: [0...]", summarize=1)
    node = make_node("Assert", [np.array(False), five], {}, ResourceManager(), "n")
    check = control_flow.build_assert(_with(node, {}))
    with pytest.raises(errors.InvalidArgumentError, match=r"^assertion failed: \[0 1 2\.\.\.\]$"):
        check(np.array(False), five)


@pytest.mark.parametrize("index", [0, 1, 2])
def test_one_of_several_references(ops: Any, index: int) -> None:
    references = [variable([float(i)], f"v{i}") for i in range(3)]
    assert ops.run("RefSelect", [index, *references]) is references[index]


@pytest.mark.parametrize("index", [-1, 2, 3])
def test_a_reference_that_is_not_there(ops: Any, index: int) -> None:
    references = [variable([float(i)], f"v{i}") for i in range(2)]
    refused(ops, "RefSelect", [index, *references], f"index is {index} but should be between 0 and 1")
    refused(ops, "RefSelect", [np.zeros(1, np.int32), *references], "index must be scalar, but got shape: [1]")


@pytest.mark.parametrize(
    ("op", "why", "by_executor"),
    [
        ("Abort", "a client must not be able to end a server's process", False),
        ("SymbolicGradient", "it is replaced by the nodes of the gradient when the graph comes", False),
        *((op, "dead tensors and frames belong to the executor", True) for op in sorted(FLOW_OPS)),
    ],
)
def test_ops_without_a_kernel_say_why(op: str, why: str, by_executor: bool) -> None:
    absence = registry.absence(op, "CPU")
    assert absence is not None
    assert absence.why.startswith(why)
    assert absence.executor == by_executor


def test_ops_without_data(ops: Any) -> None:
    assert ops.run("NoOp") is None
    assert ops.run("ControlTrigger") is None
    stamp = ops.run("Timestamp")
    assert (stamp.dtype, stamp.shape) == (np.float64, ())
