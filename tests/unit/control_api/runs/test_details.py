"""What a run is called: edits, and what programs record, of which the leading task's counts."""

from __future__ import annotations

from typing import Any

import pytest

from tenfold_control_api.runs import details

SOURCE = {"commit": "abcd", "branch": None, "dirty": True, "diff": "é", "diff_truncated": False}


def test_details_are_taken_out_of_a_request_without_the_text_of_the_diff() -> None:
    members: dict[str, Any] = {
        "entrypoint": ["x"],
        "tags": ["a"],
        "notes": "",
        "parameters": {},
        "source": dict(SOURCE),
    }

    found, diff = details.taken_out(members)

    assert members == {"entrypoint": ["x"]}
    assert diff == "é"
    assert found["tags"] == ["a"]
    assert found["source"] == {
        "commit": "abcd",
        "branch": None,
        "dirty": True,
        "diff_truncated": False,
        "diff_bytes": 2,
    }
    assert details.taken_out({"tags": []}) == ({}, None)


@pytest.mark.parametrize(
    ("edit", "after"),
    [
        ({}, {"tags": ["a", "b"], "parameters": {"lr": 1}}),
        ({"add_tags": ["c", "a"]}, {"tags": ["a", "b", "c"], "parameters": {"lr": 1}}),
        ({"remove_tags": ["a", "z"]}, {"tags": ["b"], "parameters": {"lr": 1}}),
        ({"tags": []}, {"parameters": {"lr": 1}}),
        ({"parameters": {"lr": None, "x": False}}, {"tags": ["a", "b"], "parameters": {"x": False}}),
        (
            {"display_name": "n", "notes": "t"},
            {"tags": ["a", "b"], "parameters": {"lr": 1}, "display_name": "n", "notes": "t"},
        ),
    ],
)
def test_an_edit(edit: dict[str, Any], after: dict[str, Any]) -> None:
    assert details.edited({"tags": ["a", "b"], "parameters": {"lr": 1}}, edit) == after


def test_an_edit_that_changes_nothing_gives_the_same_object() -> None:
    before = {"tags": ["a"]}

    assert details.edited(before, {"add_tags": ["a"], "notes": None}) is before


def test_what_the_leading_task_recorded_is_not_replaced_by_another_ones() -> None:
    by_worker, diff = details.recorded({}, "worker", 0, {"parameters": {"lr": 1}, "source": SOURCE})
    by_chief, _ = details.recorded(by_worker, "chief", 0, {"parameters": {"lr": 2}, "source": None})

    assert diff == "é"
    assert details.parameters_of(by_chief) == {"lr": 2}
    assert details.source_of(by_worker) is not None
    assert details.recorded(by_chief, "worker", 0, {"parameters": {"lr": 3}}) == (by_chief, None)
    again, _ = details.recorded(by_chief, "chief", 0, {"parameters": {"lr": 2}})
    assert again is by_chief


def test_what_people_gave_counts_before_what_was_recorded() -> None:
    found, _ = details.recorded(
        {"parameters": {"lr": 1}, "source": {"commit": "0000"}},
        "worker",
        0,
        {"parameters": {"lr": 2, "b": 3}, "source": SOURCE},
    )

    assert details.parameters_of(found) == {"lr": 1, "b": 3}
    assert details.source_of(found) == {"commit": "0000"}
