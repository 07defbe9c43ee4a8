"""What a walk meets, once each."""

from __future__ import annotations

from tenfold_core.reached import reached

EDGES = {"a": "bc", "b": "d", "c": "da", "d": "d", "e": "a"}


def test_all_that_edges_lead_to_is_met_once_circles_too() -> None:
    asked: list[str] = []
    assert list(reached("a", lambda each: (asked.append(each), EDGES[each])[1])) == ["a", "b", "c", "d"]
    assert sorted(asked) == ["a", "b", "c", "d"]
    assert reached((), EDGES.__getitem__) == {}


def test_a_long_chain_is_followed_to_its_end() -> None:
    assert len(reached([0], lambda each: [each + 1] if each < 100_000 else [])) == 100_001
