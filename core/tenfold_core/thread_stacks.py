"""Where the threads of this process are, as `tenfold why` shows them. Nothing is stopped and nothing is kept.

Read with the interpreter's lock held, a frame at a time, so a thread that runs may be a line further on. What a thread
does for the runtime is told by the functions that it is in: `_MARKS` names them, and tests/unit/core holds the table to
the code. Called by services/tenfold_services/why.py and client/tenfold/runs/program_why.py.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from typing import TYPE_CHECKING, NamedTuple

from tenfold_protos.why_pb2 import StackFrame, ThreadStack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

#: Threads, frames of each (the innermost ones) and characters of a name that are told.
_THREADS, _FRAMES, _LENGTH = 60, 40, 200

#: What a thread does that is in one of these functions: (end of the file's name, function) → a word of why.proto.
_MARKS = {
    ("tenfold/train/session_manager.py", "wait_for_session"): "chief",
    ("tenfold/session/base_session.py", "run"): "run",
    ("tenfold/session/base_session.py", "run_step"): "run",
    ("tenfold/session/base_session.py", "partial_run"): "run",
    ("tenfold/session/direct_master.py", "create_session"): "create",
    ("tenfold/session/grpc_master.py", "create_session"): "create",
    ("tenfold_services/background.py", "join"): "join",
}
_FUNCTIONS = frozenset(function for _, function in _MARKS)
#: It counts before what a thread does further in: that is a step by which it looks whether the wait is over.
_FIRST = "chief"
_INSTALLED = f"{os.sep}site-packages{os.sep}"
_OURS = ("tenfold", "tenfold_core", "tenfold_link", "tenfold_kernels", "tenfold_compiler", "tenfold_services")


def thread_stacks(node_of: Callable[[FrameType, FrameType | None], tuple[str, str] | None]) -> list[ThreadStack]:
    """One for each thread but the caller's, the main thread first. `node_of(frame, inner)` gives the name and the op of
    the node that a frame of the runtime computes in the frame `inner`, if it is such. Takes some 10 µs a thread."""
    mine, main = threading.get_ident(), threading.main_thread().ident
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sys._current_frames()
    order = sorted((each for each in frames if each != mine), key=lambda each: (each != main, each))
    roots = _roots()
    return [_stack(names.get(ident, "?"), ident == main, frames[ident], node_of, roots) for ident in order[:_THREADS]]


def _stack(
    name: str,
    is_main: bool,
    frame: FrameType,
    node_of: Callable[[FrameType, FrameType | None], tuple[str, str] | None],
    roots: _Roots,
) -> ThreadStack:
    found = ThreadStack(name=name[:_LENGTH], main=is_main)
    doing, own = "", False
    inner: FrameType | None = None
    shown: list[StackFrame] = []
    for each in _outwards(frame):
        code = each.f_code
        file = code.co_filename
        library = roots.have(file)
        if len(shown) < _FRAMES:
            name, line = code.co_name[:_LENGTH], each.f_lineno or 0
            shown.append(StackFrame(file=file[-_LENGTH:], line=line, function=name, library=library))
        mark = _mark(file, code.co_name)
        if mark == _FIRST or (mark and not doing):
            doing = mark
        if not doing and (node := node_of(each, inner)) is not None:
            doing, found.node, found.op = "node", *node
        own = own or not library
        inner = each
    found.doing = doing or ("" if own else "idle")
    if found.doing != "idle":
        found.frame.extend(reversed(shown))
    return found


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _mark(file: str, function: str) -> str:
    if function not in _FUNCTIONS:
        return ""
    path = file.replace(os.sep, "/")
    return next((word for (end, name), word in _MARKS.items() if name == function and path.endswith(end)), "")


def _roots() -> _Roots:
    ours = []
    for name in _OURS:
        module = sys.modules.get(name)
        if module is not None and module.__file__ is not None:
            ours.append(f"{os.path.dirname(module.__file__)}{os.sep}")
    python = (f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib"))
    return _Roots((*ours, "<frozen ", "<tenfold"), tuple(python))


class _Roots(NamedTuple):
    """Folders of Tenfold's packages with what is not a file, and of Python's library; other files are the program's."""

    ours: tuple[str, ...]
    python: tuple[str, ...]

    def have(self, file: str) -> bool:
        """Packages that others have installed are the program's, wherever they lie."""
        return file.startswith(self.ours) or (file.startswith(self.python) and _INSTALLED not in file)
