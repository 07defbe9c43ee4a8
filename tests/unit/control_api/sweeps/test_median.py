"""The median rule: who is stopped, and who may go on."""

from __future__ import annotations

import math

import pytest

from tenfold_control_api.sweeps.median import MedianRule

RULE = MedianRule(grace=2, others=2)
#: Means up to step 2 are 1.5 and 2.5.
OTHERS = [[(1, 2.0), (2, 1.0), (3, 0.0)], [(1, 3.0), (2, 2.0)]]


@pytest.mark.parametrize(
    ("mine", "stopped"),
    [
        ([(1, 9.0), (2, 2.1)], True),
        ([(1, 9.0), (2, 2.0)], False),  # as good as the median, 2.0
        ([(1, 1.9), (2, 9.0)], False),  # its best counts
        ([(1, 9.0)], False),  # within its grace
        ([], False),
        ([(1, 9.0), (3, 9.0)], False),  # only one of the others has come so far
    ],
)
def test_a_trial_whose_best_is_worse_than_the_median_is_stopped(mine: list[tuple[int, float]], stopped: bool) -> None:
    assert (RULE.verdict(mine, OTHERS) is not None) is stopped


def test_the_reason_says_what_was_compared() -> None:
    assert RULE.verdict([(2, 5.0)], OTHERS) == "by step 2 its best is 5, and the median of 2 others is 2"


def test_the_largest_may_be_the_best() -> None:
    rule = MedianRule("max", others=2)

    assert rule.verdict([(2, 1.0)], OTHERS) is not None
    assert rule.verdict([(2, 2.5)], OTHERS) is None
    assert rule.best([(1, 1.0), (2, 3.0), (3, math.nan)]) == 3.0


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_trial_that_has_diverged_needs_no_others(value: float) -> None:
    assert RULE.verdict([(1, 0.0), (2, value)], []) == f"its value at step 2 is {value}"
    assert RULE.verdict([(1, value)], []) is None


def test_nobody_is_stopped_for_lack_of_others() -> None:
    assert MedianRule(others=3).verdict([(2, 99.0)], OTHERS) is None
    assert MedianRule(others=2).verdict([(2, 99.0)], [*OTHERS[:1], [(3, math.nan)]]) is None


def test_places_sort_the_best_first_and_those_without_a_value_last() -> None:
    curves = [[], [(1, 3.0)], [(1, 1.0)]]

    assert sorted(curves, key=MedianRule("min").place) == [[(1, 1.0)], [(1, 3.0)], []]
    assert sorted(curves, key=MedianRule("max").place) == [[(1, 3.0)], [(1, 1.0)], []]
