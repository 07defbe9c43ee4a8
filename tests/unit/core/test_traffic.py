"""Bytes by peer task, and all others in one sum."""

from __future__ import annotations

import pytest

from tenfold_core import traffic


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counters of this test alone."""
    monkeypatch.setattr(traffic, "_by_task", {})
    monkeypatch.setattr(traffic, "OTHERS", traffic.Traffic())


def test_tasks_are_counted_by_name_and_all_others_together() -> None:
    traffic.traffic_with("/job:ps/replica:0/task:0").sent += 5
    traffic.traffic_with("/job:ps/replica:0/task:0").sent += 2
    traffic.traffic_with("/job:a/replica:0/task:1").received += 3
    traffic.traffic_with("the client with pid 17").received += 100

    assert traffic.traffic_by_task() == [("/job:a/replica:0/task:1", 0, 3), ("/job:ps/replica:0/task:0", 7, 0)]
    assert traffic.total_traffic() == (7, 103)
    assert traffic.traffic_with("the client with pid 17") is traffic.OTHERS


def test_names_that_peers_make_up_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic, "MOST_PEERS", 2)
    first, second = (traffic.traffic_with(f"/job:ps/replica:0/task:{index}") for index in range(2))

    assert traffic.traffic_with("/job:ps/replica:0/task:2") is traffic.OTHERS
    assert traffic.traffic_with("/job:ps/replica:0/task:0") is first
    assert second is not first
