"""When programs are fused: options of the environment, a bounded queue, one thread while there is work, an end."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tenfold_core import errors
from tenfold_kernels.fusion import compiler
from tenfold_kernels.fusion.compiler import NO_FUSION, FusionCompiler, FusionOptions, attempt

SECONDS = 30.0


def test_options_have_a_variable_each() -> None:
    read = FusionOptions.from_environment
    assert FusionOptions() == FusionOptions("auto", 64, 64, None)
    assert read({"TENFOLD_CACHE_DIR": ""}) == FusionOptions()
    assert read({"TENFOLD_CACHE_DIR": "/x", "TENFOLD_FUSION": "eager"}) == FusionOptions(
        "eager", cache_folder=Path("/x/fused")
    )
    numbers = {"TENFOLD_FUSION_HOT_STEPS": "7", "TENFOLD_FUSION_QUEUED_PROGRAMS": "3", "TENFOLD_CACHE_DIR": ""}
    assert read(numbers) == FusionOptions("auto", 7, 3, None)
    assert NO_FUSION.mode == "off"
    for mode in ("auto", "off", "eager", ""):
        assert read({"TENFOLD_FUSION": mode}).mode == (mode or "auto")
    with pytest.raises(errors.InvalidArgumentError, match="TENFOLD_FUSION is 'on'; it can be 'auto', 'off', 'eager'"):
        read({"TENFOLD_FUSION": "on"})
    with pytest.raises(errors.InvalidArgumentError, match="TENFOLD_FUSION_HOT_STEPS"):
        read({"TENFOLD_FUSION_HOT_STEPS": "many"})


class Started:
    """Stands for threading.Thread: the thread runs when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[dict[str, Any]] = []
        self.events: list[Any] = []
        monkeypatch.setattr(compiler.threading, "Thread", self._make)

    def _make(self, **given: Any) -> Any:
        self.made.append(given)
        return self

    def start(self) -> None:
        self.events.append("started")

    def join(self, timeout: float | None) -> None:
        self.events.append(("joined", timeout))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    return Started(monkeypatch)


def test_a_thread_works_while_there_are_jobs(started: Started) -> None:
    fusion, done = FusionCompiler(FusionOptions(queued_programs=2)), list[str]()
    fusion.join()
    assert started.events == []
    assert fusion.submit(lambda: done.append("a"))
    assert fusion.submit(lambda: done.append("b"))
    assert not fusion.submit(lambda: done.append("one too many"))
    assert [given["name"] for given in started.made] == ["tenfold-fusion"]
    assert not started.made[0].get("daemon"), "a process that ends inside LLVM crashes"
    fusion.join(0)
    fusion.join(3.0)
    fusion.join()
    assert started.events == ["started", ("joined", 3.0), ("joined", None)]
    started.made[0]["target"]()
    assert done == ["a", "b"]
    fusion.join()
    assert len(started.events) == 3, "there is none any more"
    assert fusion.submit(lambda: done.append("c"))
    assert len(started.made) == 2
    started.made[1]["target"]()
    assert done == ["a", "b", "c"]


def test_closing_drops_what_waits(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    fusion, done = FusionCompiler(FusionOptions()), list[str]()
    monkeypatch.setattr(fusion._process, "kill", lambda: started.events.append("killed"))
    assert not fusion.stopping
    fusion.submit(lambda: done.append("dropped"))
    fusion.close(2.0)
    assert started.events == ["started", "killed", ("joined", 2.0)]
    assert fusion.stopping
    started.made[0]["target"]()
    assert done == []
    assert not fusion.submit(lambda: done.append("too late"))
    assert len(started.made) == 1


def test_a_job_is_the_last_once_it_is_closed_or_the_interpreter_ends(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    fusion, done = FusionCompiler(FusionOptions()), list[str]()
    alive = [True]
    monkeypatch.setattr(
        compiler.threading, "main_thread", lambda: type("Main", (), {"is_alive": staticmethod(lambda: alive[0])})
    )

    def last() -> None:
        done.append("last")
        alive[0] = False

    fusion.submit(last)
    fusion.submit(lambda: done.append("never"))
    started.made[0]["target"]()
    assert (done, fusion.stopping) == (["last"], True)
    alive[0] = True
    assert not fusion.stopping
    fusion.submit(lambda: done.append("anew"))
    started.made[1]["target"]()
    assert done == ["last", "anew"]


def test_only_what_is_missing_is_compiled_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fusion = FusionCompiler(FusionOptions(cache_folder=tmp_path))
    asked: list[Any] = []

    def run(command: list[str], work: Any, stopping: Any) -> None:
        asked.append((command, list(work), stopping()))
        fusion.close()
        asked.append(stopping())

    monkeypatch.setattr(fusion._process, "run", run)
    monkeypatch.setattr(fusion.cache, "has", lambda source, signature: source == "there")
    fusion.compile_elsewhere([("there", "s"), ("a", "s"), ("b", "t")])
    command = ["tenfold_kernels.fusion.compile", str(tmp_path)]
    assert asked == [(command, [(False, ("a", "s")), (False, ("b", "t"))], False), True]
    nowhere = FusionCompiler(FusionOptions())
    monkeypatch.setattr(nowhere._process, "run", run)
    nowhere.compile_elsewhere([("a", "s")])
    assert len(asked) == 2


def test_a_program_that_cannot_be_fused_goes_on(failures_of_fusion: list[str]) -> None:
    done: list[str] = []
    attempt(lambda: done.append("done"))

    def fail() -> None:
        raise ValueError("no LLVM today")

    attempt(fail)
    assert done == ["done"]
    (said,) = failures_of_fusion
    assert "A program could not be fused; it goes on unfused." in said
    assert "no LLVM today" in said
    failures_of_fusion.clear()


def test_a_real_thread_ends_with_its_last_job() -> None:
    fusion, done = FusionCompiler(FusionOptions()), threading.Event()
    assert fusion.submit(done.set)
    assert done.wait(SECONDS)
    fusion.join(SECONDS)
    assert not [thread for thread in threading.enumerate() if thread.name == "tenfold-fusion"]
