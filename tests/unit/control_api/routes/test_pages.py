"""Pages of a list: places as text, and what comes after them."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from support.mirror import ROOT
from tenfold_control_api.problems import ApiError
from tenfold_control_api.routes.pages import LIMIT, After, Limit, following, page_of, place


def test_the_pages_together_are_the_list_whatever_comes_or_goes() -> None:
    there = [(float(i // 2), f"s{i}") for i in range(7)]
    seen: list[tuple[float, str]] = []
    after: str | None = None
    for _ in range(10):
        page, after = page_of(there, lambda each: each, place(after, float, str), 3, newest_first=True)
        seen += page
        if after is None:
            break
        there = [each for each in there if each not in seen[-1:]] + [(9.0, f"new{len(seen)}")]

    assert seen == sorted([(float(i // 2), f"s{i}") for i in range(7)], reverse=True)


def test_a_list_that_fills_its_page_exactly_has_no_other_page() -> None:
    assert following(["a", "b"], 2, lambda each: (each,)) == (["a", "b"], None)
    assert following([], 2, lambda each: (each,)) == ([], None)


def written(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "after",
    ["", "x", "é", "====", written("[1"), written('{"a": 1}'), written('["a"]'), written('["1.0", "a"]'),
     written("[true, 1]"), written('[1, "a"]'), written("[" * 3000), written('[1.0, "\\u0000"]'),
     written('[1.0, "\\ud800"]')],
)  # fmt: skip
def test_what_no_page_ended_with_is_refused(after: str) -> None:
    with pytest.raises(ApiError, match="is not the `next` of a page of this list") as refused:
        place(after, float, str)

    assert refused.value.kind == "invalid-cursor"


def test_a_page_goes_on_after_its_last_object() -> None:
    page, after = following(["a", "b", "c", "d"], 3, lambda each: (each,))

    assert page == ["a", "b", "c"]
    assert place(after, str) == ("c",)


@pytest.mark.parametrize("newest_first", [False, True])
def test_what_a_page_ended_with_is_not_on_the_next_one(newest_first: bool) -> None:
    there = ["b", "d", "a", "c"]
    ordered = sorted(there, reverse=newest_first)

    first, after = page_of(there, lambda each: (each,), None, 2, newest_first=newest_first)
    second, end = page_of(there, lambda each: (each,), place(after, str), 2, newest_first=newest_first)

    assert (first, second, end) == (ordered[:2], ordered[2:], None)


def test_the_oldest_comes_first_unless_asked_otherwise() -> None:
    assert page_of([2.0, 1.0], lambda each: (each,), None, 9) == ([1.0, 2.0], None)


def test_no_place_is_the_beginning() -> None:
    assert place(None, float, str) is None


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [(Limit, ["1", "1000"], ["0", "-1", "1001", "x"]), (After, ["x" * 500, None], ["x" * 501])],
)
def test_what_a_page_may_be_asked_for_is_bounded(kind: Any, good: list[Any], bad: list[Any]) -> None:
    adapter = TypeAdapter(kind)

    for value in good:
        adapter.validate_python(value)
    for value in bad:
        with pytest.raises(ValidationError):
            adapter.validate_python(value)


def test_without_a_limit_the_documented_one_holds() -> None:
    told = re.search(r"`limit` \((\d+) to (\d+), by default (\d+)\)", (ROOT / "docs/rest.md").read_text("utf-8"))

    assert told is not None
    assert [int(each) for each in told.groups()] == [1, 1000, LIMIT]
