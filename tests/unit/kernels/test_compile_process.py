"""A process that compiles: one piece after another, until there is no more, it ends, or nobody wants it any longer."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tenfold_kernels import compile_process
from tenfold_kernels.compile_process import CompileProcess, do_given_work

if TYPE_CHECKING:
    from collections.abc import Iterator


class FakeProcess:
    """Stands for subprocess.Popen: answers each of the first `answers` pieces with a line, and then ends."""

    def __init__(self, answers: int, silent: bool = False) -> None:
        self.answers, self.silent = answers, silent
        self.command: list[str] = []
        self.given: list[Any] = []
        self.events: list[str] = []

    def __call__(self, command: list[str], **pipes: Any) -> FakeProcess:
        self.command = command
        self.pipes = pipes
        reader, self._writer = os.pipe()
        self.stdout = os.fdopen(reader, "rb", buffering=0)
        self.stdin = self
        return self

    def write(self, line: bytes) -> None:
        self._line = line

    def flush(self) -> None:
        assert self._line.endswith(b"\n")
        self.given.append(json.loads(self._line))
        if len(self.given) <= self.answers:
            os.write(self._writer, b"\n")
        elif not self.silent:
            self._end()

    def _end(self) -> None:
        if self._writer >= 0:
            os.close(self._writer)
            self._writer = -1

    def kill(self) -> None:
        self.events.append("killed")
        self._end()

    def __enter__(self) -> FakeProcess:
        return self

    def __exit__(self, *raised: object) -> None:
        self.events.append("waited for")
        self.stdout.close()


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> FakeProcess:
    fake = FakeProcess(answers=100)
    monkeypatch.setattr(compile_process.subprocess, "Popen", fake)
    return fake


def pieces(asked: list[int], count: int = 3) -> Iterator[tuple[bool, Any]]:
    for number in range(count):
        asked.append(number)
        yield number == 1, ["piece", number]


def test_each_piece_is_given_once_the_one_before_is_on_disk(process: FakeProcess) -> None:
    asked: list[int] = []
    CompileProcess().run(["some.module", "folder"], pieces(asked))
    assert process.command == [sys.executable, "-m", "some.module", "folder"]
    assert process.pipes == {"stdin": -1, "stdout": -1, "stderr": -3}
    assert process.given == [[False, ["piece", 0]], [True, ["piece", 1]], [False, ["piece", 2]]]
    assert asked == [0, 1, 2]
    assert process.events == ["killed", "waited for"], "nothing waits for LLVM"


def test_a_process_that_ends_gets_no_more(process: FakeProcess) -> None:
    process.answers = 1
    asked: list[int] = []
    CompileProcess().run(["some.module"], pieces(asked))
    assert asked == [0, 1]
    assert process.events == ["killed", "waited for"]


def test_a_piece_that_takes_too_long_is_given_up(process: FakeProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_process, "PROCESS_SECONDS", 0.0)
    asked: list[int] = []
    CompileProcess().run(["some.module"], pieces(asked))
    assert asked == [0]
    assert process.events == ["killed", "waited for"]


def test_a_piece_may_take_several_looks(process: FakeProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    process.answers, process.silent = 0, True
    monkeypatch.setattr(compile_process, "_LOOK_SECONDS", 0.0)
    looks: list[bool] = []

    def stopping() -> bool:
        looks.append(True)
        if len(looks) == 3:
            os.write(process._writer, b"\n")
        return len(looks) > 4

    asked: list[int] = []
    CompileProcess().run(["some.module"], pieces(asked), stopping)
    assert asked == [0, 1], "the first came at the third look; the second never"
    assert len(looks) == 5
    assert (compile_process.PROCESS_SECONDS, process.events) == (300.0, ["killed", "waited for"])


def test_no_process_where_there_is_nothing_to_do_or_no_python(
    process: FakeProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    CompileProcess().run(["some.module"], pieces(asked, 0))
    monkeypatch.setattr(compile_process.sys, "executable", "")
    CompileProcess().run(["some.module"], pieces(asked))
    assert process.command == []


def test_who_is_killed_starts_no_process_and_ends_the_one_under_way(process: FakeProcess) -> None:
    compiles = CompileProcess()

    def work() -> Iterator[tuple[bool, Any]]:
        yield False, 1
        compiles.kill()
        process.events.append("asked for the next")
        yield False, 2

    process.answers = 1
    compiles.run(["some.module"], work(), lambda: "asked for the next" in process.events)
    assert process.events == ["killed", "asked for the next", "killed", "waited for"]
    compiles.kill()
    assert process.events[-1] == "waited for", "there is none any more"
    process.command = []
    compiles.run(["some.module"], work())
    assert process.command == []


def test_a_system_without_processes_compiles_nothing_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any, **__: Any) -> Any:
        raise OSError("no more processes")

    monkeypatch.setattr(compile_process.subprocess, "Popen", none)
    asked: list[int] = []
    CompileProcess().run(["some.module"], pieces(asked))
    assert asked == [0]


def test_the_process_does_what_is_urgent_at_once_and_the_rest_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, priorities, done = io.StringIO(), list[int](), list[Any]()
    lines = [[True, ["a", 1]], [False, ["b", 2]], [True, ["c", 3]]]
    monkeypatch.setattr(compile_process.sys, "stdin", io.StringIO("".join(f"{json.dumps(line)}\n" for line in lines)))
    monkeypatch.setattr(compile_process.sys, "stdout", answers)
    errors = io.StringIO()
    monkeypatch.setattr(compile_process.sys, "stderr", errors)
    monkeypatch.setattr(compile_process.os, "nice", priorities.append, raising=False)

    def do(name: str, number: int) -> None:
        print(name)
        done.append((name, number, threading.current_thread().name, answers.getvalue()))

    do_given_work(do)
    here = threading.current_thread().name
    assert done == [("a", 1, here, ""), ("b", 2, "tenfold-compile_0", "\n"), ("c", 3, here, "\n\n")]
    assert answers.getvalue() == "\n\n\n"
    assert errors.getvalue() == "a\nb\nc\n", "what is printed is no answer"
    assert priorities == [5]


def test_a_system_that_gives_no_other_priority_compiles_anyway(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> int:
        raise PermissionError("not here")

    monkeypatch.setattr(compile_process.os, "nice", refuse, raising=False)
    compile_process._step_back()
