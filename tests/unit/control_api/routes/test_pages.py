"""Pages of a list: places as text, and what comes after them."""

from __future__ import annotations

import base64

import pytest

from tenfold_control_api.problems import ApiError
from tenfold_control_api.routes.pages import following, page_of, place


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
