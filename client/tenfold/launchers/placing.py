"""Which task of a run goes to which host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold.launchers.hosts import Host

#: One host after the other, round robin; or a host's slots filled before the next one gets any.
Place = Literal["spread", "pack"]


def place(jobs: Mapping[str, int], hosts: Sequence[Host], how: Place) -> dict[str, str]:
    """Name of each task → name of its host. Parameter servers come first in `jobs`, and so each on a host of its own
    where there are enough. To pack, a host without `slots` takes all. Raises ValueError where the slots do not do."""
    tasks = [f"{job}/{index}" for job, size in jobs.items() for index in range(size)]
    free = {host.name: len(tasks) if host.slots is None else host.slots for host in hosts}
    if sum(free.values()) < len(tasks):
        raise ValueError(f"{len(tasks)} tasks do not fit on {len(hosts)} hosts with {sum(free.values())} slots in all")
    found: dict[str, str] = {}
    turn = 0
    names = [host.name for host in hosts]
    for task in tasks:
        if how == "pack":
            name = next(each for each in names if free[each])
        else:
            while not free[names[turn % len(names)]]:
                turn += 1
            name = names[turn % len(names)]
            turn += 1
        free[name] -= 1
        found[task] = name
    return found


def own_agents(jobs: Mapping[str, int], there: Sequence[str]) -> dict[str, str]:
    """For engines that start an agent for each task, of the task's name. Raises ValueError for those that are not
    there."""
    tasks = [f"{job}/{index}" for job, size in jobs.items() for index in range(size)]
    if absent := sorted(set(tasks) - set(there)):
        raise ValueError(f"there is no agent for {', '.join(absent)}")
    return {task: task for task in tasks}
