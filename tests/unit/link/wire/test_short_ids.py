"""Numbers for something longer: each is given once, the newest are known, and the caller forgets sooner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_link.wire import short_ids
from tenfold_link.wire.short_ids import AssignedIds, KnownIds

if TYPE_CHECKING:
    import pytest


def test_a_number_is_given_once_and_found_again() -> None:
    ids = AssignedIds()
    assert ids.find("a") is None
    assert [ids.give("a"), ids.give("b")] == [1, 2]
    assert (ids.find("a"), ids.find("b")) == (1, 2)
    assert ids.give("a") == 3
    assert ids.find("a") == 3


def test_the_caller_forgets_all_where_it_has_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_ids, "CALLER_KEEPS", 2)
    ids = AssignedIds()
    ids.give("a")
    ids.give("b")
    assert ids.find("a") == 1
    assert ids.give("c") == 3
    assert (ids.find("a"), ids.find("b"), ids.find("c")) == (None, None, 3)


def test_the_other_end_forgets_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_ids, "OTHER_KEEPS", 2)
    known: KnownIds[str] = KnownIds()
    known.learn(1, "a")
    known.learn(2, "b")
    known.learn(1, "A")
    assert (known.find(1), known.find(2)) == ("A", "b")
    known.learn(3, "c")
    assert (known.find(1), known.find(2), known.find(3)) == (None, "b", "c")


def test_the_caller_forgets_sooner_than_the_other_end() -> None:
    assert 2 * short_ids.CALLER_KEEPS <= short_ids.OTHER_KEEPS
