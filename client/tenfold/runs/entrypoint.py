"""A command line that a run starts, taken apart: Python's own options, the program, or a command of another kind."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What the run's own interpreter is called.
_NAMES = ("python", "python3")
#: Options of Python that a task can have without a value, and those with one. With others (-c, -i, -S, -V, …) the
#: command is not the program of a task, or its interpreter could not find Tenfold; it is started as it stands then.
_FLAGS, _WITH_VALUE = "bBdEIOPqsuv", "WX"


@dataclass(frozen=True, slots=True)
class Entrypoint:
    """`command`: `program` is a command of its own. Else it is FILE or -m MODULE, and arguments, for the interpreter of
    the run itself, which gets `interpreter` before them."""

    program: tuple[str, ...]
    command: bool = False
    interpreter: tuple[str, ...] = ()

    @property
    def file(self) -> str | None:
        """The program's file; None for a module and for a command of another kind."""
        return None if self.command or self.program[0] == "-m" else self.program[0]

    @property
    def whole(self) -> list[str]:
        """As a user would type it."""
        return list(self.program) if self.command else ["python", *self.interpreter, *self.program]


def is_python(word: str) -> bool:
    """Whether that command is a Python, which is then the interpreter of the run itself."""
    return word == sys.executable or os.path.basename(word) in _NAMES


def read_entrypoint(entrypoint: Sequence[str]) -> Entrypoint:
    """Takes it apart. Raises ValueError for an empty one."""
    if not entrypoint or not entrypoint[0]:
        raise ValueError('the entrypoint is empty; give a command, as in ["python", "trainer.py"]')
    whole = Entrypoint(tuple(entrypoint), command=True)
    if not is_python(entrypoint[0]):
        return whole
    at = 1
    while at < len(entrypoint) and (taken := _option(entrypoint[at])):
        at += taken
    interpreter, program = tuple(entrypoint[1:at]), tuple(entrypoint[at:])
    if program and program[0].startswith("-m") and len(program[0]) > 2:
        program = ("-m", program[0][2:], *program[1:])
    if not program or (program[0].startswith("-") and (program[0] != "-m" or len(program) < 2)):
        return whole
    return Entrypoint(program, interpreter=interpreter)


def _option(word: str) -> int:
    """How many words that option of Python takes, itself included; 0 for any word that a task cannot have as one."""
    if len(word) < 2 or word[0] != "-":
        return 0
    for at, letter in enumerate(word[1:], 1):
        if letter in _WITH_VALUE:
            return 1 if word[at + 1 :] else 2
        if letter not in _FLAGS:
            return 0
    return 1
