"""Which settings a sweep tries: spellings, grids, draws, and what cannot be tried."""

from __future__ import annotations

from typing import Any

import pytest

from tenfold.sweeps.space import Choice, Interval, SpaceError, draw, grid, parse


@pytest.mark.parametrize(
    ("text", "dimension"),
    [
        ("lr=0.1,0.01", Choice("lr", (0.1, 0.01))),
        ("lr=0.1", Choice("lr", (0.1,))),
        ("opt=adam,sgd,adam", Choice("opt", ("adam", "sgd"))),
        ("on=true,false", Choice("on", (True, False))),
        ("layers=2..4", Choice("layers", (2, 3, 4))),
        ("layers=-2..4..3", Choice("layers", (-2, 1, 4))),
        ("rate=0.1..0.5..0.2", Choice("rate", (0.1, 0.3, 0.5))),
        ("rate=0.1..0.3..0.1", Choice("rate", (0.1, 0.2, 0.3))),
        ("rate=0.1..0.5", Interval("rate", 0.1, 0.5)),
        ("rate=log:1e-4..0.1", Interval("rate", 1e-4, 0.1, log=True)),
        ("rate=log:1..8", Interval("rate", 1.0, 8.0, log=True)),
    ],
)
def test_a_spelling(text: str, dimension: Any) -> None:
    assert parse(text) == dimension


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lr", "write lr=0.1,0.01 or layers=2..4"),
        ("lr=", "write lr=0.1,0.01"),
        ("=1", "no parameter to try"),
        ("lr=0.1,,2", "an empty value between its commas"),
        ("lr=4..2", "ends before it begins"),
        ("lr=2..2", "ends before it begins"),
        ("lr=a..b", "is not a range"),
        ("lr=1..2..3..4", "is not a range"),
        ("lr=log:1..2..3", "is not a range"),
        ("lr=log:0..2", "has no logarithm"),
        ("lr=1..4..0", "has no step"),
        ("lr=1..100000", "10000 is the limit"),
    ],
)
def test_what_is_no_spelling_says_what_would_be(text: str, says: str) -> None:
    with pytest.raises(SpaceError, match=r"lr|parameter") as raised:
        parse(text)

    assert says in str(raised.value)


def test_a_grid_has_every_combination_the_last_parameter_changing_fastest() -> None:
    assert grid([parse("lr=0.1,0.01"), parse("layers=2..3")]) == [
        {"lr": 0.1, "layers": 2},
        {"lr": 0.1, "layers": 3},
        {"lr": 0.01, "layers": 2},
        {"lr": 0.01, "layers": 3},
    ]


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ([], "no parameter to try"),
        (["lr=1,2", "lr=3"], "lr is given twice"),
        (["lr=0.1..0.5"], "endlessly many values: write lr=0.1..0.5..STEP, or --random N"),
        (["a=1..200", "b=1..200"], "40000 settings, and 10000 is the limit"),
    ],
)
def test_what_is_no_grid(texts: list[str], says: str) -> None:
    with pytest.raises(SpaceError, match=r"\w") as raised:
        grid([parse(text) for text in texts])

    assert says in str(raised.value)


def test_draws_are_the_same_for_the_same_seed_and_within_their_ranges() -> None:
    space = [parse("lr=log:1e-4..0.1"), parse("drop=0.1..0.5"), parse("opt=adam,sgd")]

    first, again, other = draw(space, 200, 1), draw(space, 200, 1), draw(space, 200, 2)

    assert first == again != other
    assert all(1e-4 <= point["lr"] <= 0.1 and 0.1 <= point["drop"] <= 0.5 for point in first)  # type: ignore[operator]
    # half of a logarithmic interval lies below its geometric mean
    assert 60 < sum(point["lr"] < 10**-2.5 for point in first) < 140  # type: ignore[operator]


def test_draws_of_choices_do_not_repeat() -> None:
    space = [parse("a=1..3"), parse("b=1,2")]

    some, all_of_them = draw(space, 4, 0), draw(space, 100, 0)

    assert len({tuple(point.items()) for point in some}) == 4
    assert sorted(map(str, all_of_them)) == sorted(map(str, grid(space)))


@pytest.mark.parametrize("count", [0, 10_001])
def test_there_is_a_bound_on_draws(count: int) -> None:
    with pytest.raises(SpaceError, match="1 to 10000"):
        draw([parse("a=1,2")], count, 0)
