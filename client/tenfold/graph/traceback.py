"""The stack trace of an operation's creation: all frames, or only those of the user's program.

Kept by Graph for each operation; shown in errors of steps (session/step_errors.py) and of shared variables
(ops/variable_store.py). The frames of this package are recognized by the folder that it was loaded from, not by a
name in the path: a program may be in a folder called tenfold.
"""

from __future__ import annotations

import os
import runpy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import CodeType

#: How frames of runpy are named: it is frozen into the interpreter.
RUNPY = ("<frozen runpy>", runpy.__file__)
#: The folder of the package `tenfold`, spelt as in the code objects of its modules.
_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


def user_frames(traceback: Iterable[tuple[str, int, str]] | None) -> list[tuple[str, int, str]]:
    """The (file, line, function) of a traceback that are not of this package, nor of what starts a program in a task
    (cli/child.py), outermost first."""
    return [frame for frame in traceback or () if not is_ours(frame[0]) and frame[0] not in RUNPY]


def is_ours(filename: str) -> bool:
    """Whether code of that file is this package's."""
    return filename.startswith(_PACKAGE)


class Traceback:
    """Where an operation was made. Keeps code objects and places in them; lines and text are made when they are read:
    to ask a frame for its line takes longer than all else here."""

    __slots__ = ("_frames",)

    def __init__(self, frame: Any) -> None:
        frames: list[Any] = []
        while frame is not None:
            frames += (frame.f_lasti, frame.f_code)
            frame = frame.f_back
        frames.reverse()
        #: Code, place, code, place, …, outermost first: one object for an operation.
        self._frames = tuple(frames)

    def __iter__(self) -> Iterator[tuple[str, int, str]]:
        places = zip(self._frames[::2], self._frames[1::2], strict=True)
        return ((code.co_filename, _line_of(code, place), code.co_name) for code, place in places)

    def __len__(self) -> int:
        return len(self._frames) // 2

    def __getitem__(self, index: Any) -> Any:
        return list(self)[index]


def _line_of(code: CodeType, place: int) -> int:
    """The line of the instruction at that offset; of a frame that has not begun, the first line."""
    lines = (line for start, end, line in code.co_lines() if start <= place < end)
    return next(lines, None) or code.co_firstlineno
