"""Loops that are loaded beside the steps: their stand-ins run at once, nothing waits for Numba, and the end waits."""

from __future__ import annotations

import dataclasses
import os
import queue
import re
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels.compile_process import CompileProcess
from tenfold_kernels.cpu._compiled import compiling, objects, shells
from tenfold_kernels.cpu._compiled.compiling import Loops
from tenfold_kernels.cpu._compiled.loading import LoopLoader
from tenfold_kernels.cpu._compiled.loop_spec import LoopSpec
from tenfold_kernels.cpu._compiled.shells import Heavy, StandIn, switch

SECONDS = 60.0


def double(x: np.ndarray, out: np.ndarray) -> None:
    for i in range(x.shape[0]):
        out[i] = x[i] + x[i]


def other_double(x: np.ndarray, out: np.ndarray) -> None:
    np.add(x, x, out=out)


#: Loops whose stand-ins take many times as long: a call waits for machine code that is on disk.
HEAVY = {
    "convolve": ["_products"],
    "depthwise": ["_sums", "_of_filter"],
    "drawing": ["_exchange"],
    "dual_ascent": ["_ascend"],
    "examples": ["_scan", "_fill"],
    "normalize": ["_moments", "_sums", "_scale", "_back"],
    "pooling": ["_max", "_max_gradient", "_max_gradient_wide"],
    "response": ["_forward", "_backward"],
    "sparse_products": ["_multiply", "_multiply_vector"],
    "sparse_windows": ["_of_filter", "_of_input"],
    "windows": ["_gather", "_scatter"],
    "winograd": ["_forward", "_filter"],
    "word_vectors": ["_negative_sampling"],
}
SPEC = LoopSpec(double, "r1 w1", np.dtype(np.float64), np.dtype(np.int64))


def test_a_shell_can_be_given_another_function_in_use() -> None:
    shell = partial(max)
    assert shell(1, 2) == 2

    switch(shell, min)

    assert shell(1, 2) == 1


def test_the_stand_in_runs_first_and_the_loop_later(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()
    go = threading.Event()

    def compile_spec(spec: LoopSpec) -> Any:
        asked.set()
        assert go.wait(SECONDS)
        return double

    monkeypatch.setattr(objects, "is_on_disk", lambda spec: True)
    monkeypatch.setattr(objects, "compile_spec", compile_spec)
    loops = Loops("background")
    loops.loader = LoopLoader(calm_seconds=0.0)

    loop: Any = loops.get(SPEC, other_double)

    assert asked.wait(SECONDS)
    assert loop.func.stand_in is other_double
    again: Any = loops.get(SPEC, other_double)
    assert again is loop
    go.set()
    assert loops.loader.join(SECONDS)
    assert loop.func is double


def test_a_loop_that_cannot_be_compiled_leaves_its_stand_in(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def compile_spec(spec: LoopSpec) -> Any:
        raise RuntimeError("no LLVM today")

    monkeypatch.setattr(objects, "is_on_disk", lambda spec: True)
    monkeypatch.setattr(objects, "compile_spec", compile_spec)
    loader = LoopLoader(calm_seconds=0.0)
    shell: partial[Any] = partial(StandIn(other_double))

    loader.add(SPEC, shell)

    assert loader.join(SECONDS)
    assert shell.func is other_double
    assert "no LLVM today" in caplog.text


def test_a_call_under_way_is_among_what_a_stand_in_has_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, seen = [1.0], []

    def work() -> None:
        clock[0] += 2.0
        seen.append(stand_in.seconds)

    monkeypatch.setattr(shells, "perf_counter", lambda: clock[0])
    stand_in = StandIn(work)
    stand_in()
    stand_in()
    assert [*seen, stand_in.seconds] == [2.0, 4.0, 4.0]


def test_which_loops_are_heavy() -> None:
    heavy = re.compile(r"compile_loop\(\s*(\w+),(?:(?!compile_loop\().)*?heavy=True", re.DOTALL)
    texts = {path.stem: path.read_text("utf-8") for path in sorted(Path(compiling.__file__).parent.glob("*.py"))}
    assert {stem: found for stem, text in texts.items() if (found := heavy.findall(text))} == HEAVY


@pytest.mark.parametrize("on_disk", [True, False])
def test_a_call_of_a_heavy_loop_waits_only_for_what_is_on_disk(monkeypatch: pytest.MonkeyPatch, on_disk: bool) -> None:
    looked = threading.Event()
    go = threading.Event()

    def compile_elsewhere(process: object, command: object, work: Any, stopping: object) -> None:
        if next(work, None) is not None:
            assert go.wait(SECONDS)

    def is_on_disk(spec: LoopSpec) -> bool:
        assert looked.wait(SECONDS)
        return on_disk

    ran: list[str] = []
    monkeypatch.setattr(objects, "is_on_disk", is_on_disk)
    monkeypatch.setattr(objects, "compile_spec", lambda spec: lambda: ran.append("loop"))
    monkeypatch.setattr(CompileProcess, "run", compile_elsewhere)
    loops = Loops("background")
    loops.loader = LoopLoader(calm_seconds=SECONDS)
    loop: Any = loops.get(SPEC, lambda: ran.append("stand-in"), heavy=True)
    caller = threading.Thread(target=loop)
    caller.start()

    assert not ran
    looked.set()
    caller.join(SECONDS)

    assert ran == ["loop" if on_disk else "stand-in"]
    go.set()
    assert loops.loader.join(SECONDS)
    loop()
    assert ran[1:] == ["loop"]
    assert not isinstance(loop.func, Heavy)


def triple(x: np.ndarray, out: np.ndarray) -> None:
    for i in range(x.shape[0]):
        out[i] = x[i] + x[i] + x[i]


def negate(x: np.ndarray, out: np.ndarray) -> None:
    for i in range(x.shape[0]):
        out[i] = -x[i]


class CompilesByHand:
    """Stands for the process that compiles: `pieces` has what it is given; it goes on with each at a word of `go`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pieces: queue.SimpleQueue[tuple[bool, str]] = queue.SimpleQueue()
        self.go: queue.SimpleQueue[None] = queue.SimpleQueue()
        monkeypatch.setattr(objects, "is_on_disk", lambda spec: False)
        monkeypatch.setattr(objects, "compile_spec", lambda spec: spec.function)
        monkeypatch.setattr(CompileProcess, "run", self.run)

    def run(self, command: object, work: Any, stopping: Any) -> None:
        for is_urgent, (_, name, *_) in work:
            self.pieces.put((is_urgent, name))
            self.go.get(timeout=SECONDS)
            assert not stopping()


def test_what_has_cost_the_most_is_compiled_first_and_used_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    process = CompilesByHand(monkeypatch)
    loops = Loops("background")
    loops.loader = LoopLoader(calm_seconds=0.0)
    clock = iter([0.0, 9.0, 10.0, 12.0])
    monkeypatch.setattr(shells, "perf_counter", lambda: next(clock))
    x, out = np.ones(1), np.ones(1)
    made: dict[str, Any] = {}
    made["double"] = loops.get(SPEC, other_double)
    assert process.pieces.get(timeout=SECONDS) == (False, "double")

    for function in (negate, triple):
        made[function.__name__] = loops.get(dataclasses.replace(SPEC, function=function), other_double)
    made["triple"](x, out)
    made["negate"](x, out)
    process.go.put(None)

    assert process.pieces.get(timeout=SECONDS) == (True, "triple")
    assert made["double"].func is double
    process.go.put(None)
    assert process.pieces.get(timeout=SECONDS) == (True, "negate")
    assert made["triple"].func is triple
    assert made["negate"].func.seconds == 2.0
    process.go.put(None)
    assert loops.loader.join(SECONDS)
    assert made["negate"].func is negate


def test_what_a_process_did_not_compile_is_compiled_here(monkeypatch: pytest.MonkeyPatch) -> None:
    process = CompilesByHand(monkeypatch)
    monkeypatch.setattr(CompileProcess, "run", lambda self, command, work, stopping: next(work))
    loops = Loops("background")
    loops.loader = LoopLoader(calm_seconds=0.0)

    made = [loops.get(dataclasses.replace(SPEC, function=f), other_double) for f in (double, triple)]

    assert loops.loader.join(SECONDS)
    assert [shell.func for shell in made] == [double, triple]  # type: ignore[attr-defined]
    assert process.pieces.empty()


def test_a_loop_that_is_on_disk_does_not_wait_for_those_that_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    process = CompilesByHand(monkeypatch)
    monkeypatch.setattr(objects, "is_on_disk", lambda spec: spec.function is triple)
    looked: list[bool] = []

    def run(command: object, work: Any, stopping: Any) -> None:
        next(work)
        made.append(loops.get(dataclasses.replace(SPEC, function=triple), other_double, heavy=True))
        looked.append(stopping())
        settled.append(made[-1].func)

    monkeypatch.setattr(CompileProcess, "run", staticmethod(run))
    made: list[Any] = []
    settled: list[Any] = []
    loops = Loops("background")
    loops.loader = LoopLoader(calm_seconds=0.0)

    loops.get(SPEC, other_double)

    assert loops.loader.join(SECONDS)
    assert looked == [False]
    assert settled == [triple]
    assert process.pieces.empty()


def test_a_heavy_loop_that_is_not_loaded_runs_as_its_stand_in() -> None:
    loader = LoopLoader(calm_seconds=SECONDS)
    shell: partial[Any] = partial(Heavy(other_double))

    loader.close()
    loader.add(SPEC, shell)

    assert shell.func is other_double


def test_a_closed_loader_loads_nothing() -> None:
    loader = LoopLoader(calm_seconds=SECONDS)
    shell: partial[Any] = partial(StandIn(other_double))
    loader.add(SPEC, shell)

    loader.close()
    loader.add(SPEC, shell)

    assert loader.join(0.0)
    assert shell.func is other_double


def test_a_loop_without_a_stand_in_is_compiled_at_once() -> None:
    x, out = np.arange(3.0), np.zeros(3)

    Loops("background").get(SPEC, None)(x, out)

    assert out.tolist() == [0.0, 2.0, 4.0]


def test_a_mode_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compiling.MODE_NAME, "never")
    with pytest.raises(errors.InvalidArgumentError, match="TENFOLD_COMPILE is 'never'; it can be 'background', 'bloc"):
        Loops().get(SPEC, other_double)


@pytest.mark.parametrize("text", [None, "", "background", "blocking"])
def test_loops_are_compiled_beside_the_steps_unless_told_otherwise(
    text: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(compiling.MODE_NAME, raising=False)
    if text is not None:
        monkeypatch.setenv(compiling.MODE_NAME, text)
    made = object()
    monkeypatch.setattr(objects, "compile_spec", lambda spec: made)
    loops = Loops()
    loops.loader.close()  # so that the stand-in stays
    loop = loops.get(SPEC, other_double)
    assert loops.get(dataclasses.replace(SPEC), other_double) is loop, "there is one of each"
    assert loop is made if text == "blocking" else loop.func is other_double


def test_a_stand_in_reads_indices_of_its_own() -> None:
    given: list[Any] = []
    loops = Loops("background")
    loops.loader.close()
    shell = loops.get(dataclasses.replace(SPEC, codes="r1 i1 x1 w1"), lambda *arguments: given.extend(arguments))
    arguments = [np.arange(3), np.arange(4), np.arange(5), np.arange(6)]
    shell(*arguments)
    assert [one is other for one, other in zip(given, arguments, strict=True)] == [True, False, True, True]
    assert given[1].tolist() == [0, 1, 2, 3]


PROGRAM = """
import sys
import numpy as np
from tenfold_kernels.cpu._compiled import activations, compiling

relu = activations.relu(np.float32)
relu_grad = activations.relu_grad(np.float32)
x, out = np.array([-1.0, 2.0], np.float32), np.zeros(2, np.float32)
relu(x, out, np.float32(0))
print(out.tolist(), "numba" in sys.modules)
if len(sys.argv) > 1:
    sys.exit()
assert compiling.loops.loader.join(120)
for loop in (relu, relu_grad):
    print(type(loop.func).__name__)
relu(x, out, np.float32(0))
print(out.tolist(), "numba" in sys.modules)
"""


def run(folder: Path, *arguments: str) -> list[str]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "TENFOLD_COMPILE": "background"}
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout.splitlines()


def test_a_new_machine_compiles_in_a_process_of_its_own_and_loads_from_its_disk(tmp_path: Path) -> None:
    """And Numba is imported in neither this process nor the next."""
    loaded = ["[0.0, 2.0] False", *["builtin_function_or_method"] * 2, "[0.0, 2.0] False"]
    assert run(tmp_path) == loaded
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.object")}
    assert len(written) == 2
    assert run(tmp_path) == loaded
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.object")} == written


def test_a_process_that_ends_before_numba_is_there_ends_at_once(tmp_path: Path) -> None:
    assert run(tmp_path, "at once") == ["[0.0, 2.0] False"]
    assert not list(tmp_path.rglob("*.object"))
