"""Where threads are: the program's code by its frames, the runtime's by what it does there."""

from __future__ import annotations

import importlib
import inspect
import threading
from typing import TYPE_CHECKING

import pytest

from tenfold_core import thread_stacks as module
from tenfold_core.thread_stacks import thread_stacks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_protos.why_pb2 import ThreadStack

#: (module, function) of each mark; the file is that of the module.
FUNCTIONS = {
    "tenfold/train/session_manager.py": ("tenfold.train.session_manager", "SessionManager"),
    "tenfold/session/base_session.py": ("tenfold.session.base_session", "BaseSession"),
    "tenfold/session/direct_master.py": ("tenfold.session.direct_master", "DirectMaster"),
    "tenfold/session/grpc_master.py": ("tenfold.session.grpc_master", "GrpcMaster"),
    "tenfold_services/background.py": ("tenfold_services.background", "BackgroundServer"),
}


class Standing:
    """A thread that stands in a function of this file, and one that stands in Python's library alone."""

    def __init__(self) -> None:
        self.entered, self.end = threading.Event(), threading.Event()
        self.threads = [
            threading.Thread(target=self.stand, name="stands", daemon=True),
            threading.Thread(target=self.end.wait, name="idle", daemon=True),
        ]

    def stand(self) -> None:
        self.entered.set()
        self.end.wait()


@pytest.fixture
def standing() -> Iterator[Standing]:
    made = Standing()
    for thread in made.threads:
        thread.start()
    assert made.entered.wait(60)
    yield made
    made.end.set()
    for thread in made.threads:
        thread.join(60)


def found(name: str, stacks: list[ThreadStack]) -> ThreadStack:
    return next(each for each in stacks if each.name == name)


def test_a_thread_of_the_program_is_shown_with_its_frames(standing: Standing) -> None:
    stack = found("stands", thread_stacks(lambda frame, inner: None))

    assert (stack.doing, stack.main) == ("", False)
    functions = [each.function for each in stack.frame]
    assert functions.index("stand") < functions.index("wait")
    line = next(each for each in stack.frame if each.function == "stand")
    assert line.file.endswith("test_thread_stacks.py")
    assert line.line == inspect.getsourcelines(Standing.stand)[1] + 2


def test_a_thread_in_which_nothing_happens_has_no_frames(standing: Standing) -> None:
    stack = found("idle", thread_stacks(lambda frame, inner: None))
    assert (stack.doing, list(stack.frame)) == ("idle", [])


def test_the_caller_is_left_out(standing: Standing) -> None:
    assert threading.current_thread().name not in [each.name for each in thread_stacks(lambda frame, inner: None)]


def test_a_frame_that_computes_names_its_node(standing: Standing) -> None:
    def node_of(frame: object, inner: object) -> tuple[str, str] | None:
        return ("matmul", "MatMul") if frame.f_code is Standing.stand.__code__ else None  # type: ignore[attr-defined]

    stack = found("stands", thread_stacks(node_of))
    assert (stack.doing, stack.node, stack.op) == ("node", "matmul", "MatMul")


def test_an_answer_is_bounded(standing: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FRAMES", 2)
    monkeypatch.setattr(module, "_THREADS", 1)
    (stack,) = thread_stacks(lambda frame, inner: None)
    assert len(stack.frame) <= 2


@pytest.mark.parametrize("mark", module._MARKS)
def test_each_mark_is_a_function_of_that_file(mark: tuple[str, str]) -> None:
    file, function = mark
    name, kind = FUNCTIONS[file]
    source = inspect.getsource(importlib.import_module(name))
    assert f"def {function}(" in source
    assert inspect.getsourcefile(getattr(importlib.import_module(name), kind)).replace("\\", "/").endswith(file)  # type: ignore[union-attr]
