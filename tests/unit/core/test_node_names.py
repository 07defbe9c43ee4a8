"""Suggestions for names that are wrong: the nearest ones, and never a long search for them."""

from __future__ import annotations

import time

from tenfold_core.node_names import suggestion


def test_the_nearest_names_are_suggested() -> None:
    assert suggestion("weigths", ["weights", "bias"]) == "; did you mean 'weights'?"
    assert suggestion("x", ["weights", "bias"]) == ""


def test_among_many_names_the_nearest_is_found_too() -> None:
    names = [f"layer_{number}/kernel" for number in range(15_000)]

    assert "'layer_1234/kernel'" in suggestion("layer_1234/kernl", names)


def test_names_that_are_all_alike_are_not_searched_for_long() -> None:
    """Compared each with each, these would take minutes."""
    names = ["a" * 180 + str(number) for number in range(20_000)]
    begin = time.process_time()

    assert suggestion("a" * 190, names)
    assert time.process_time() - begin < 5
