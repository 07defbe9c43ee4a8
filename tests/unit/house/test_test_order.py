"""interleaved.py spreads the files that wait over the run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from support.interleaved import interleave

TESTS = Path("/tests")


def test_files_that_wait_are_spread_over_those_that_compute() -> None:
    paths = ["chaos/a", "process/b", "cuda/c", "cuda/d", "kernels/e", "kernels/f", "unit/g/h", "unit/i"]
    items: list[Any] = [SimpleNamespace(path=TESTS / path, name=name) for path in paths for name in "12"]

    interleave(items, TESTS)

    order = [str(each.path.relative_to(TESTS)) for each in items[::2]]
    assert order == ["cuda/c", "chaos/a", "cuda/d", "kernels/e", "kernels/f", "process/b", "unit/g/h", "unit/i"]
    assert [each.name for each in items] == ["1", "2"] * 8, "the tests of a file stay together, in their order"
