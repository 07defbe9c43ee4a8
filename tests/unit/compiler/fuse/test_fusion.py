"""A group as data: its name among nodes, what is compiled of it, and what makes it one call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_compiler.fuse import fusion
from tenfold_compiler.fuse.fusion import Fusion, Group
from tenfold_kernels.fusion.loops import ScalarLoop
from tenfold_kernels.fusion.remembered import Remembered
from tenfold_kernels.fusion.runs import FusedInput, FusedOp, FusedRun

SINGLE = np.dtype(np.float32)
RUN = FusedRun(1, (FusedInput(SINGLE, "full"),), (FusedOp("Neg", (), (("input", 0),), SINGLE, ""),), (), (0,))
LOOP = ScalarLoop((("v1", SINGLE),), (), (("v2", SINGLE),), (("v2", SINGLE),), (" v2 = v1",), (" while 1:", "  break"))
CACHE: Any = object()


def group(run: Any, number: int = 0) -> Group:
    return Group(number, [], run, [], [], CACHE)


@pytest.mark.parametrize(("number", "key"), [(0, -1), (1, -2), (7, -8)])
def test_the_key_of_a_group_is_no_index_of_a_node(number: int, key: int) -> None:
    assert group(RUN, number).key == key


def test_what_is_compiled_of_a_run_of_a_loop_and_of_what_is_remembered() -> None:
    source, signature = group(RUN).source or ("", "")
    assert "def run(" in source
    assert signature.count("types.Array(types.float32") == 2
    assert group(LOOP).source == LOOP.source
    assert group(Remembered(1, 1)).source is None


def test_each_kind_of_run_is_built_by_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of ops by runs.py, a loop with the turns that it may take, others by themselves."""
    monkeypatch.setattr(fusion, "fused", lambda *given: ("ops", *given))
    monkeypatch.setattr(ScalarLoop, "build", lambda _, *given: ("loop", *given))
    monkeypatch.setattr(Remembered, "build", lambda _, *given: ("remembered", *given))
    remembered = Remembered(1, 1)

    def fallback() -> None: ...

    assert group(RUN).build(fallback, 9) == ("ops", RUN, fallback, CACHE)  # type: ignore[comparison-overlap]
    assert group(LOOP).build(fallback, 9) == ("loop", fallback, CACHE, 9)  # type: ignore[comparison-overlap]
    assert group(remembered).build(fallback, 9) == ("remembered", fallback, CACHE)  # type: ignore[comparison-overlap]


def test_what_is_decided_of_nothing_is_nothing() -> None:
    nothing = Fusion()
    assert (nothing.groups, nothing.schedule, nothing.before) == ([], [], [])
