"""Which files and which changes a seed draws.

Each place has a number that comes of the seed and its own name alone; the least ones are drawn. So an edit elsewhere
in a file, or a new file, leaves the draw as it was but for what it adds. The seven areas have the same number of files,
each file the same number of changes, each kind of change the same chance. Files that only the tests of others reach are
not drawn: `--file` tries them.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path

from mutants.changes import KINDS, Change, changes
from support.mirror import ROOT, family_tests, files_of_tests, mirrored, modules, topics_of

#: Area → the globs of its files. What needs a GPU, tables without code, and what only starts processes is left out.
AREAS: dict[str, tuple[str, ...]] = {
    "compiler": ("compiler/tenfold_compiler/**/*.py",),
    "services": ("services/tenfold_services/**/*.py",),
    "link": ("link/tenfold_link/**/*.py",),
    "core": (
        "core/tenfold_core/*.py",
        "core/tenfold_core/checkpoint/*.py",
        "core/tenfold_core/access/*.py",
        "core/tenfold_core/opdefs/shape_fns*.py",
    ),
    "control_api": ("control_api/tenfold_control_api/**/*.py",),
    "gradients": ("client/tenfold/gradients/*.py",),
    "kernels": (
        "kernels/tenfold_kernels/cpu/*.py",
        "kernels/tenfold_kernels/resources/**/*.py",
        "kernels/tenfold_kernels/*.py",
    ),
}
_LEFT_OUT = ("__init__.py", "__main__.py", "migrations", "dashboard", "cuda", "gpus.py", "captures.py")
#: A shorter file is a table or a list of names.
LEAST_LINES = 60


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    path: str
    change: Change

    @property
    def key(self) -> tuple[str, str, str]:
        """File, function, change: what a result and the table of equivalent changes are kept by."""
        return self.path, self.change.function, self.change.what


def _number(seed: int, *names: str) -> str:
    return hashlib.sha256("\0".join([str(seed), *names]).encode()).hexdigest()


def has_near_test(path: Path) -> bool:
    """Whether a test is about this file, its package or its family, and not only about what uses it."""
    own = {path, path.with_name("__init__.py")} & with_own_test()
    return bool(own or topics_of(path) or family_tests(path))


@functools.cache
def with_own_test() -> frozenset[Path]:
    return frozenset(found for test in files_of_tests() if (found := mirrored(test)) is not None)


def files_of(area: str) -> list[str]:
    """The files of an area that have enough to change, and a test of their own or of their family."""
    known = set(modules().values())
    found = set()
    for glob in AREAS[area]:
        for path in ROOT.glob(glob):
            below = path.relative_to(ROOT)
            long = path.read_bytes().count(b"\n") >= LEAST_LINES
            if below in known and long and not any(part in _LEFT_OUT for part in below.parts) and has_near_test(below):
                found.add(str(below))
    return sorted(found)


def draw_files(seed: int, count: int) -> list[str]:
    """`count` files, as many of each area as can be; an area that has too few leaves its share to the others."""
    waiting = {area: sorted(files_of(area), key=lambda path: _number(seed, path)) for area in AREAS}
    drawn: list[str] = []
    while len(drawn) < count and any(waiting.values()):
        for paths in waiting.values():
            if paths and len(drawn) < count:
                drawn.append(paths.pop(0))
    return drawn


def draw_changes(seed: int, path: str, count: int) -> list[Mutant]:
    """`count` changes of a file, kind after kind, none of which overlaps in name with another."""
    every = sorted(
        changes((ROOT / path).read_text(encoding="utf-8")),
        key=lambda change: _number(seed, path, change.function, change.what),
    )
    by_kind = {kind: [change for change in every if change.kind == kind] for kind in KINDS}
    drawn: list[Mutant] = []
    while len(drawn) < count and any(by_kind.values()):
        for kind in sorted(KINDS, key=lambda kind: _number(seed, path, kind)):
            if by_kind[kind] and len(drawn) < count:
                drawn.append(Mutant(path, by_kind[kind].pop(0)))
    return drawn


def path_of(text: str) -> str:
    """A file that the user names, by the end of its path. Raises SystemExit where none or several end so."""
    ending = Path(text).parts
    found = [str(path) for path in modules().values() if path.parts[-len(ending) :] == ending]
    if len(found) != 1:
        raise SystemExit(f"{text!r} is {'no module' if not found else 'one of ' + ', '.join(found)}")
    return found[0]
