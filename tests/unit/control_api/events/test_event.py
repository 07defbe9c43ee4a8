"""Which events somebody wants."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tenfold_control_api.events.event import Event, Filter

TASK = Event("task", "lost", "worker/0", "silent", 1.0, cluster="c", run="r")
SESSION = Event("session", "opened", "s", "opened", 1.0, cluster="c", owner="ann")


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        (Filter(), True),
        (Filter(kinds=frozenset({"task", "run"})), True),
        (Filter(kinds=frozenset({"run"})), False),
        (Filter(cluster="c"), True),
        (Filter(cluster="d"), False),
        (Filter(run="r"), True),
        (Filter(run="s"), False),
        (Filter(frozenset({"task"}), "c", "r"), True),
        (Filter(frozenset({"task"}), "c", "s"), False),
        (Filter(frozenset({"task"}), "d", "r"), False),
        (Filter(frozenset({"run"}), "c", "r"), False),
        (Filter(reader="bob"), True),
    ],
)
def test_every_part_that_is_set_must_fit(wanted: Filter, fits: bool) -> None:
    assert wanted.fits(TASK) is fits


def test_a_session_is_seen_by_its_owner_and_by_who_may_see_all() -> None:
    assert [Filter(reader=reader).fits(SESSION) for reader in ("ann", None, "bob")] == [True, True, False]
    nobodys = replace(SESSION, owner=None)
    assert [Filter(reader=reader).fits(nobodys) for reader in ("ann", None)] == [False, True]
