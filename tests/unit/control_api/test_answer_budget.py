"""What stored answers may take: a further key is refused, an older answer is given up."""

from __future__ import annotations

from typing import Any

import pytest

from tenfold_control_api.answer_budget import AnswerBudget
from tenfold_control_api.problems import ApiError
from tenfold_control_api.service_settings import Settings


def budget(**settings: int) -> AnswerBudget:
    return AnswerBudget(Settings(**settings, idempotency_memory=90.0))


def refusal(kept: AnswerBudget, caller: str | None) -> ApiError:
    with pytest.raises(ApiError) as refused:
        kept.require_key(caller)
    return refused.value


def test_a_caller_may_have_as_many_keys_as_its_limit_says() -> None:
    kept = budget(max_keys_per_caller=2, max_keys=5)
    kept.add("ann", keys=1)
    kept.require_key("ann")
    kept.add("ann", keys=1)

    error = refusal(kept, "ann")

    assert error.kind == "too-many-keys"
    assert error.detail == (
        "2 Idempotency-Keys of this caller are remembered: the limit is 2. Each is for 90 s. "
        "The request was not worked on."
    )
    assert error.extra == {"outcome": "not-run"}
    assert error.headers == {"Retry-After": "60"}
    kept.require_key("bob")
    kept.add("ann", keys=-1)
    kept.require_key("ann")


def test_all_callers_together_have_a_limit_too() -> None:
    kept = budget(max_keys_per_caller=2, max_keys=3)
    kept.add("ann", keys=1)
    kept.add("bob", keys=1)
    kept.require_key("cid")
    kept.add(None, keys=1)

    assert refusal(kept, "cid").detail.startswith("3 Idempotency-Keys are remembered: the limit is 3. ")
    assert refusal(kept, "ann").detail.startswith("3 Idempotency-Keys are remembered: the limit is 3. ")


def test_what_the_database_holds_replaces_what_was_counted() -> None:
    kept = budget(max_keys_per_caller=5, max_keys=4, max_stored_answers=100, max_stored_answers_per_caller=100)
    kept.add("ann", keys=9, size=900)
    kept.recount([("bob", 3, 60), (None, 0, 40)])
    kept.require_key("ann")
    assert kept.excess("bob") is None

    kept.recount([("bob", 3, 61), (None, 1, 40)])

    assert refusal(kept, "ann").detail.startswith("4 Idempotency-Keys are remembered")
    assert kept.excess("ann") == ("bob", 61 - 48)


@pytest.mark.parametrize(
    ("sizes", "caller", "found"),
    [
        ({"ann": 80}, "ann", None),
        ({"ann": 81}, "ann", ("ann", 1 + 10)),
        ({"ann": 80, "bob": 80}, "bob", None),
        ({"ann": 95, "bob": 65}, "bob", None),
        ({"ann": 96, "bob": 65}, "bob", ("ann", 1 + 20)),
        ({"bob": 65, "ann": 96}, "cid", ("ann", 1 + 20)),
        ({"bob": 70, "ann": 96}, "ann", ("ann", 16 + 10)),
        ({None: 79, "bob": 42, "cid": 40}, "bob", (None, 1 + 20)),
    ],
)
def test_the_oldest_answers_go_of_the_caller_above_its_share_or_of_who_has_most(
    sizes: dict[Any, int], caller: str, found: tuple[Any, int] | None
) -> None:
    kept = budget(max_stored_answers=160, max_stored_answers_per_caller=80)
    for each, size in sizes.items():
        kept.add(each, size=size)

    assert kept.excess(caller) == found


def test_no_more_is_given_up_than_the_caller_has() -> None:
    kept = budget(max_stored_answers=100, max_stored_answers_per_caller=80)
    for number in range(11):
        kept.add(str(number), size=10)

    assert kept.excess("5") == ("0", 10)


def test_a_key_takes_no_bytes_and_bytes_take_no_key() -> None:
    kept = budget(max_keys_per_caller=2, max_stored_answers_per_caller=80, max_stored_answers=80)
    kept.add("ann", size=80)
    kept.add("ann", keys=1)
    assert kept.excess("ann") is None
    assert kept.excess("bob") is None
    kept.require_key("ann")
