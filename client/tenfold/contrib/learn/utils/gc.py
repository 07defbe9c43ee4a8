"""Which of several exports to keep: filters of paths by their version.

Follows TensorFlow 1.15's `contrib/learn/python/learn/utils/gc.py`.
"""

from __future__ import annotations

import heapq
import math
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold import gfile

if TYPE_CHECKING:
    from collections.abc import Callable


class Path(NamedTuple):
    """A folder, and its version."""

    path: str
    export_version: int | None


def largest_export_versions(n: int) -> Callable[[list[Path]], list[Path]]:
    """Keeps the `n` newest."""

    def keep(paths: list[Path]) -> list[Path]:
        return sorted(heapq.nlargest(n, paths, key=lambda path: path.export_version or 0))

    return keep


def one_of_every_n_export_versions(n: int) -> Callable[[list[Path]], list[Path]]:
    """Keeps one in each interval of `n` versions, the newest one."""

    def keep(paths: list[Path]) -> list[Path]:
        newest: dict[int, Path] = {}
        for path in sorted(paths):
            newest[math.floor(((path.export_version or 0) - 1) / n) if path.export_version else 0] = path
        return sorted(newest.values())

    return keep


def mod_export_version(n: int) -> Callable[[list[Path]], list[Path]]:
    """Keeps those whose version `n` divides."""
    return lambda paths: sorted(path for path in paths if (path.export_version or 0) % n == 0)


def union(lf: Any, rf: Any) -> Callable[[list[Path]], list[Path]]:
    """Keeps what one of two filters keeps."""
    return lambda paths: sorted({*lf(paths), *rf(paths)})


def negation(f: Any) -> Callable[[list[Path]], list[Path]]:
    """Keeps what a filter does not."""
    return lambda paths: sorted(set(paths) - set(f(paths)))


def get_paths(base_dir: Any, parser: Callable[[Path], Path | None]) -> list[Path]:
    """The folders in `base_dir` to which the parser gives a version."""
    base = os.fsdecode(base_dir)
    found = []
    for name in gfile.ListDirectory(base):
        path = parser(Path(os.path.join(base, os.path.normpath(name)), None))
        if path:
            found.append(path)
    return sorted(found)
