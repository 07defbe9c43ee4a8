"""The order in which files of tests begin: those that wait for processes run beside those that compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

#: Folders of tests that wait, mostly: for a process to start, a deadline, a disk.
WAITING = frozenset({"chaos", "control", "interop", "launchers", "process", "storage"})


def interleave(items: list[pytest.Item], tests: Path) -> None:
    """Order `items` in place: each of both kinds of files is spread evenly over the run, in its own order.

    The tests of a file stay together. The processes that run files beside each other take them in this order; without
    it all wait at first, and all compute in the end.
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    kinds: dict[bool, list[Path]] = {True: [], False: []}
    for path in files:
        kinds[path.relative_to(tests).parts[0] in WAITING].append(path)
    places = {path: (index + 0.5) / len(paths) for paths in kinds.values() for index, path in enumerate(paths)}
    items[:] = [item for path in sorted(files, key=places.__getitem__) for item in files[path]]
