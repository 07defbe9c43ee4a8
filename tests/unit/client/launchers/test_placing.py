from __future__ import annotations

import pytest

from tenfold.launchers.hosts import Host
from tenfold.launchers.placing import Place, own_agents, place

_JOBS = {"ps": 2, "worker": 3}
_TASKS = ["ps/0", "ps/1", "worker/0", "worker/1", "worker/2"]


@pytest.mark.parametrize(
    ("how", "slots", "names"),
    [
        ("spread", (None, None), "ababa"),
        ("spread", (1, None), "abbbb"),
        ("spread", (3, 2), "ababa"),
        ("spread", (1, 1, 3), "abccc"),
        ("spread", (4, 1, 1), "abcaa"),
        ("pack", (None, None), "aaaaa"),
        ("pack", (2, 3), "aabbb"),
        ("pack", (2, None, 4), "aabbb"),
        ("pack", (1, 1, 3), "abccc"),
    ],
)
def test_tasks_go_on_hosts_in_order(how: Place, slots: tuple[int | None, ...], names: str) -> None:
    hosts = [Host(name, count) for name, count in zip("abc", slots, strict=False)]
    assert place(_JOBS, hosts, how) == dict(zip(_TASKS, names, strict=True))


@pytest.mark.parametrize("how", ["spread", "pack"])
def test_slots_that_do_not_do_are_an_error(how: Place) -> None:
    with pytest.raises(ValueError, match=r"^5 tasks do not fit on 2 hosts with 4 slots in all$"):
        place(_JOBS, [Host("a", 1), Host("b", 3)], how)


def test_an_agent_of_its_own_is_each_tasks() -> None:
    assert own_agents(_JOBS, [*reversed(_TASKS), "more"]) == {task: task for task in _TASKS}
    with pytest.raises(ValueError, match=r"^there is no agent for ps/1, worker/2$"):
        own_agents(_JOBS, ["ps/0", "worker/0", "worker/1"])
