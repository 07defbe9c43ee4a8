"""The language of filters: what it means, and where it says what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenfold_control_api.runs.filter import Both, Comparison, Either, FilterError, Not, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

RUN: dict[str, list[Any]] = {
    **{"tag": ["a", "b"], "lr": [0.1], "layers": [3], "state": ["FAILED"], "on": [True], "loss": ["NaN"]},
    **{"created": ["2026-11-28T10:00:00Z"], "two words": ["x y"], "version": ["1.5"]},
}


def values(name: str) -> Sequence[Any]:
    return RUN.get(name, ())


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        *(("tag=a", True), ("tag=c", False), ("tag!=c", True), ("tag!=a", False), ("tag=a and tag=b", True)),
        *(
            ("lr>0.01", True),
            ("lr>0.1", False),
            ("lr>=0.1", True),
            ("lr<1e-1", False),
            ("lr<=.1", True),
            ("lr=1e-1", True),
        ),
        *(("layers=3", True), ("layers=3.0", True), ("layers!=3", False), ("layers<10", True)),
        *(("state=FAILED", True), ("state=failed", False), ("state~fail", True), ("not state=FAILED", False)),
        *(("on=true", True), ("on=false", False), ("on>0", False), ("on=True", True)),
        *(("loss<1", False), ("loss>1", False), ("loss=NaN", True), ("loss!=NaN", False)),
        *(("none=1", False), ("none!=1", True), ("none<1", False), ("none~''", False)),
        *(("created>2026-11-01", True), ("created<2026-11-01", False), ("lr>abc", False)),
        *(("'two words'=\"x y\"", True), ("version=1.5", True)),
        *(("tag=c and tag=a or lr=0.1", True), ("tag=c and (tag=a or lr=0.1)", False)),
        *(("NOT tag=c AND lr=0.1", True), ("not not tag=a", True), ("tag='and'", False)),
    ],
)
def test_what_a_filter_means(text: str, holds: bool) -> None:
    assert parse(text).holds(values) is holds


def test_and_binds_closer_than_or_and_not_closest() -> None:
    a, b, c = (Comparison(name, "=", "1") for name in "abc")

    assert parse("a=1 or b=1 and c=1") == Either((a, Both((b, c))))
    assert parse("not a=1 and b=1") == Both((Not(a), b))
    assert parse("not (a=1 or b=1)") == Not(Either((a, b)))


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        ("", 0, "expected a name"),
        ("lr", 2, "expected one of <= >= != = < > ~ after 'lr', and not the end"),
        ("lr>", 3, "expected a value after 'lr>', and not the end"),
        ("lr>0.1 tag=x", 7, "expected 'and', 'or' or the end, and not 'tag'"),
        ("lr>0.1 and", 10, "expected a name"),
        ("(lr>0.1", 7, "expected ')' for the '(' at character 1"),
        ("lr>0.1)", 6, "and not ')'"),
        ("tag='x", 4, "a quote that is not closed"),
        ("lr => 1", 4, "expected a value after 'lr='"),
        ("tag=and", 4, "stands in quotes"),
        ("and=1", 0, "expected a name"),
        ("lr ! 1", 3, "'!' has no meaning here"),
        ("not " * 60 + "a=1", 204, "more than 50"),
        ("a" * 2001, 2000, "may have 2000"),
    ],
)
def test_an_error_points_at_the_character(text: str, position: int, says: str) -> None:
    with pytest.raises(FilterError, match="at character") as raised:
        parse(text)

    assert raised.value.position == position
    assert says in raised.value.problem


@given(st.text(alphabet="ab=<>!~()'\" andornt01.\n", max_size=60))
def test_whatever_is_typed_is_a_filter_or_points_into_the_text(text: str) -> None:
    try:
        found = parse(text)
    except FilterError as refused:
        position = refused.position
    else:
        position = 0
        assert found.holds(values) in (True, False)

    assert 0 <= position <= len(text)
