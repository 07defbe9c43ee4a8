"""Which exports are kept: filters of paths with versions. As TensorFlow 1.15's contrib/session_bundle/gc.py.

A filter takes paths and gives those that it chooses, sorted. Used by exporter.py (`exports_to_keep`).
"""

from __future__ import annotations

import heapq
import os
from typing import TYPE_CHECKING, NamedTuple

from tenfold import gfile
from tenfold.contrib.framework.deprecation import deprecated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "Path",
    "get_paths",
    "largest_export_versions",
    "mod_export_version",
    "negation",
    "one_of_every_n_export_versions",
    "union",
]


class Path(NamedTuple):
    """A folder or a file, and its version if it has one."""

    path: str
    export_version: int | None


if TYPE_CHECKING:
    Filter = Callable[[Sequence[Path]], list[Path]]

_deprecated = deprecated("2017-06-30", "No longer supported. Switch to SavedModel immediately.")


@_deprecated
def largest_export_versions(n: int) -> Filter:
    """Keeps those of the `n` largest versions."""

    def keep(paths: Sequence[Path]) -> list[Path]:
        versions = [(p.export_version, place) for place, p in enumerate(paths) if p.export_version is not None]
        return sorted(paths[place] for _, place in heapq.nlargest(n, versions))

    return keep


@_deprecated
def one_of_every_n_export_versions(n: int) -> Filter:
    """Keeps the largest version of each interval [0, n], (n, 2n], (2n, 3n] …"""

    def keep(paths: Sequence[Path]) -> list[Path]:
        largest: dict[int, Path] = {}
        for each in paths:
            version = each.export_version
            if version is not None:
                interval = (version - 1) // n if version else 0
                known = largest.get(interval)
                if known is None or (known.export_version or 0) < version:
                    largest[interval] = each
        return sorted(largest.values())

    return keep


@_deprecated
def mod_export_version(n: int) -> Filter:
    """Keeps versions that `n` divides."""
    return lambda paths: sorted(p for p in paths if p.export_version is not None and p.export_version % n == 0)


@_deprecated
def union(lf: Filter, rf: Filter) -> Filter:
    """Keeps what either filter keeps."""
    return lambda paths: sorted({*lf(paths), *rf(paths)})


@_deprecated
def negation(f: Filter) -> Filter:
    """Keeps what the filter does not."""
    return lambda paths: sorted(set(paths) - set(f(paths)))


@_deprecated
def get_paths(base_dir: str, parser: Callable[[Path], Path | None]) -> list[Path]:
    """What lies in a folder, each with what `parser` makes of it; what that gives None for is left out. Blocks."""
    found = (parser(Path(os.path.join(base_dir, name), None)) for name in gfile.ListDirectory(base_dir))
    return sorted(each for each in found if each)
