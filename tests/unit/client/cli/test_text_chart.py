"""Curves as text: golden charts, and bounds on whatever is drawn."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenfold.cli.text_chart import chart


def test_two_curves_that_cross() -> None:
    falling = [(0.0, 4.0), (10.0, 0.0)]
    flat = [(0.0, 2.0), (5.0, 2.0)]

    assert chart([("A", falling), ("B", flat)], 14, 5) == [
        "4 │AA",
        "  │  AA",
        "  │BBBB**A",
        "  │       AA",
        "0 │         AA",
        "  └0        10",
    ]


@pytest.mark.parametrize("points", [[], [(0.0, math.nan)], [(math.inf, 1.0)]])
def test_nothing_to_draw(points: list[tuple[float, float]]) -> None:
    assert chart([("A", points)], 20, 5) == []


def test_one_point_is_drawn() -> None:
    assert chart([("A", [(3.0, 0.5)])], 10, 3)[-2:] == ["0.5 │AAAAA", "    └3   3"]


@given(
    st.lists(
        st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6) | st.just(math.nan)), max_size=8), max_size=4
    ),
    st.integers(40, 90),
    st.integers(2, 12),
)
def test_a_chart_keeps_to_its_size(curves: list[list[tuple[float, float]]], width: int, height: int) -> None:
    lines = chart([("ABCD"[at], points) for at, points in enumerate(curves)], width, height)

    assert len(lines) in (0, height + 1)
    assert all(len(line) <= width for line in lines)
