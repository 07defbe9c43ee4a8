"""NoOp, Print and Assert: the texts are TensorFlow's."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels.cpu.control_flow import summarize


def test_no_op(ops: Any) -> None:
    assert ops.run("NoOp") is None


def test_print_passes_its_input_on_and_writes_to_stderr(ops: Any, capsys: Any) -> None:
    compute, _ = ops.build("Print", [1.0, [1, 2, 3, 4]], {"message": b"portion is ", "first_n": 1})
    x, data = ops.value(1.0), ops.value([1, 2, 3, 4])

    assert compute(x, data) is x
    compute(x, data)

    assert capsys.readouterr().err == "portion is [1 2 3...]\n"


def test_print_v2_writes_its_text(ops: Any, capsys: Any) -> None:
    for stream, end in ((b"stdout", b"\n"), (b"log(info)", b"!")):
        ops.run("PrintV2", [b"x is [1 2]"], output_stream=stream, end=end)

    written = capsys.readouterr()
    assert (written.out, written.err) == ("x is [1 2]\n", "x is [1 2]!")


def test_print_v2_writes_to_no_file(ops: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="Unknown output stream: file:///x, Valid streams are"):
        ops.run("PrintV2", [b"x"], output_stream=b"file:///x")


def test_assert(ops: Any) -> None:
    data = [[1, 2, 3, 4], b"x", np.zeros((2, 2), np.float32)]

    assert ops.run("Assert", [np.array(True), *data]) is None
    with pytest.raises(
        errors.InvalidArgumentError, match=r"^assertion failed: \[1 2 3\.\.\.\] \[x\] \[\[0 0\]\[0\.\.\.\]\.\.\.\]$"
    ):
        ops.run("Assert", [np.array(False), *data])


def test_strings_are_written_with_escapes() -> None:
    value = np.array(['it\'s "é"\n\\'.encode()], object)

    assert summarize(value, 3) == r"it\'s \"\303\251\"\n\\"


@pytest.mark.parametrize(
    ("value", "limit", "text"),
    [
        ([1.5, -2.0], 3, "1.5 -2"),
        ([[1, 2], [3, 4]], -1, "[1 2][3 4]"),
        ([[1, 2], [3, 4]], 2, "[1 2]..."),
        ([True, False], 3, "1 0"),
        (7, 3, "7"),
        ([], 3, ""),
    ],
)
def test_summarize(value: Any, limit: int, text: str) -> None:
    assert summarize(np.array(value), limit) == text


def test_a_timestamp_is_the_clock_when_it_runs(ops: Any) -> None:
    before = time.time()
    stamps = [float(ops.run("Timestamp", [])) for _ in range(2)]

    assert before <= stamps[0] <= stamps[1] <= time.time()
