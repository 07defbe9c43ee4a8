"""Program: what a row of table.py or table_models.py says of some files. Read by run.py."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_IMPORTS = re.compile(r"^\s*(?:import|from)\s+tensorflow", re.M)
#: A program does something when it is run; a module of functions does not.
_DOES = re.compile(r"^if __name__ ==|^(?:with |sess|for |while )|\.run\(|tf\.app\.run|^\w+\(\)$|^\w+\.train\(", re.M)
_TENSORFLOW_2 = re.compile(
    r"tf\.(function|GradientTape|keras\.optimizers)|enable_eager_execution|tf\.contrib\.eager|tfe\."
)


@dataclass(frozen=True)
class Program:
    files: str
    args: tuple[str, ...] = ()
    variant: str = ""
    """Another way to run the same files: each has rows of its own, and its name in the outcome."""
    cwd: str = ""
    """Where it is run, below its repository; else beside the file."""
    module: str = ""
    """Run by `-m`, because it imports its own package."""
    as_module: bool = False
    """Run by `-m` under its path below `cwd`, because it imports its neighbours relatively."""
    path: tuple[str, ...] = ()
    """Folders below the repository that are importable."""
    cluster: tuple[tuple[str, int], ...] = ()
    """Jobs and their tasks, for a program that is started once for each."""
    run_options: tuple[str, ...] = ("--guide-flags",)
    by_hand: bool = False
    """The tasks are started one by one with --job_name and --task_index: the program itself says where they listen."""
    data: tuple[tuple[Callable[[Path], None], str], ...] = field(default=())
    but: tuple[str, ...] = ()
    """Paths with one of these are not meant."""
    shows: tuple[str, ...] = ()
    """What its tasks say once they train; a program that has not said each of these has not run."""
    in_1_15: str = ""
    """What TensorFlow 1.15 itself says of the program where it does not run it either; it then counts for nothing."""

    def is_program(self, path: Path) -> bool:
        """Whether the file does something with TensorFlow 1 when it is run."""
        if self.module or self.variant or not re.search(r"[*?]", self.files):
            return True  # a row of one file says so itself: its imports may be its neighbours'
        text = path.read_text(encoding="utf-8", errors="replace")
        return bool(_IMPORTS.search(text) and _DOES.search(text)) and not _TENSORFLOW_2.search(text)
