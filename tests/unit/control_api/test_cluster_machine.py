"""The registry of a cluster against a model: who has which place, by which lease, and what was counted."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from support.machines import short_and_long
from tenfold_control_api.cluster import Cluster, Drain, Newcomer, TaskState
from tenfold_control_api.problems import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable

jobs = st.sampled_from(("ps", "worker"))
indices = st.integers(0, 2)
lives = st.sampled_from("abc")
addresses = st.sampled_from(("h:1", "h:2"))
sizes = st.fixed_dictionaries({"ps": st.integers(1, 2), "worker": st.integers(1, 3)})

Place = tuple[str, int]


class ClusterMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster.new("default", "uid", {"ps": 1, "worker": 2}, now=1.0)
        self.sizes = {"ps": 1, "worker": 2}
        #: Place → (state, incarnation, address, lease).
        self.model: dict[Place, tuple[TaskState, str | None, str | None, str | None]] = {}
        self._declare()
        self.drained: set[Place] = set()

    def _declare(self) -> None:
        empty = (TaskState.MISSING, None, None, None)
        self.model = {
            (job, index): self.model.get((job, index), empty)
            for job, size in self.sizes.items()
            for index in range(size)
        }

    def _change(self, make: Callable[[], Cluster], *, refused: bool) -> None:
        """Takes over what `make` gives, a newer version, or sees it refused; what was before is as it was."""
        old, shown = self.cluster, dict(self.cluster.tasks)
        if refused:
            with pytest.raises(ApiError):
                make()
        else:
            self.cluster = make()
            assert self.cluster.version >= old.version
            assert (self.cluster.version > old.version) is (self.cluster is not old)
            assert set(self.cluster.differing(old)) == {
                place for place, task in self.cluster.tasks.items() if old.tasks.get(place) is not task
            }
            assert set(self.cluster.dropped(old)) == old.tasks.keys() - self.cluster.tasks.keys()
        assert dict(old.tasks) == shown

    @rule(sizes=sizes)
    def declare(self, sizes: dict[str, int]) -> None:
        alive = any(
            state is TaskState.READY and index >= sizes[job] for (job, index), (state, *_) in self.model.items()
        )
        self._change(lambda: self.cluster.declare(sizes, 2.0), refused=alive)
        if not alive:
            self.sizes = sizes
            self._declare()
            self.drained &= self.model.keys()

    def _next_run(self) -> None:
        if all(state is TaskState.FINISHED for state, *_ in self.model.values()):
            self.model = dict.fromkeys(self.model, (TaskState.MISSING, None, None, None))

    @rule(job=jobs, index=indices, life=lives, address=addresses, shows=st.booleans())
    def register(self, job: str, index: int, life: str, address: str, shows: bool) -> None:
        """A process that `shows` the lease of the place; without it the same one only repeats what it said."""
        place, lease = (job, index), uuid.uuid4().hex
        held = self.model.get(place)
        alive = held is not None and held[0] is TaskState.READY
        taken = alive and not (held is not None and held[1] == life and (shows or held[2] == address))
        newcomer = Newcomer(address, life, lease, lease=held[3] if held is not None and alive and shows else None)
        self._change(
            lambda: self.cluster.register(job, index, newcomer, 3.0).cluster,
            refused=held is None or taken,
        )
        if held is None or taken:
            return
        again = held[0] is TaskState.READY
        self._next_run()
        self.model[place] = (TaskState.READY, life, address, held[3] if again else lease)
        if not again:
            self.drained.discard(place)

    @rule(job=jobs, life=lives, address=addresses)
    def claim(self, job: str, life: str, address: str) -> None:
        self_over = all(state is TaskState.FINISHED for state, *_ in self.model.values())
        mine = {place: held for place, held in self.model.items() if place[0] == job}
        own = [place for place, held in mine.items() if (held[0], held[1], held[2]) == (TaskState.READY, life, address)]
        free = [place for place, held in mine.items() if held[0] not in (TaskState.READY, TaskState.FINISHED)]
        newcomer = Newcomer(address, life, uuid.uuid4().hex)
        if not own and not free and not self_over:
            self._change(lambda: self.cluster.claim(job, newcomer, 3.0).cluster, refused=True)
            return
        made = self.cluster.claim(job, newcomer, 3.0)
        self._change(lambda: self.cluster.claim(job, newcomer, 3.0).cluster, refused=False)
        place = (made.task.job, made.task.index)
        self._next_run()
        if own:
            assert place == own[0]
            assert not made.fresh
        else:
            before = [each for each in free if mine[each][2] == address]
            assert made.fresh
            assert place in (before or free or self.model)
            self.drained.discard(place)
        self.model[place] = (TaskState.READY, life, address, self.model[place][3] if own else newcomer.lease_id)

    @rule(
        job=jobs,
        index=indices,
        state=st.sampled_from((TaskState.FINISHED, TaskState.LOST, TaskState.STOPPED)),
        code=st.sampled_from((None, 0, 1)),
    )
    def end(self, job: str, index: int, state: TaskState, code: int | None) -> None:
        place = (job, index)
        refused = place not in self.model or (state is TaskState.FINISHED and code == 1)
        self._change(lambda: self.cluster.end(job, index, state, "over", 4.0, code), refused=refused)
        if not refused:
            _, life, address, _ = self.model[place]
            self.model[place] = (state, life, address, None)
            self.drained.discard(place)

    @rule(job=jobs, index=indices)
    def drain(self, job: str, index: int) -> None:
        place = (job, index)
        ready = place in self.model and self.model[place][0] is TaskState.READY
        self._change(lambda: self.cluster.drain(job, index, Drain(5.0, "a reason")), refused=not ready)
        if ready:
            self.drained.add(place)

    @rule(job=jobs, index=indices)
    def deregister(self, job: str, index: int) -> None:
        place = (job, index)
        self._change(lambda: self.cluster.deregister(job, index, "emptied", 5.0), refused=place not in self.model)
        if place in self.model:
            self.model[place] = (TaskState.MISSING, None, None, None)
            self.drained.discard(place)

    @rule()
    def settle(self) -> None:
        self.cluster.settle()

    @invariant()
    def same_as_the_model(self) -> None:
        tasks = self.cluster.tasks
        assert {
            place: (task.state, task.incarnation, task.address, task.lease_id) for place, task in tasks.items()
        } == self.model
        assert {place for place, task in tasks.items() if task.drain is not None} == self.drained

    @invariant()
    def what_is_counted_is_there(self) -> None:
        here = (TaskState.READY, TaskState.FINISHED)
        absent = [place for place, (state, *_) in self.model.items() if state not in here]
        assert self.cluster.absent == len(self.cluster.missing) == len(absent)
        assert self.cluster.complete is (not absent)
        ready = [place for place, (state, *_) in self.model.items() if state is TaskState.READY]
        assert len({self.model[place][3] for place in ready}) == len(ready)
        open_to_sessions = set(ready) - self.drained
        if open_to_sessions:
            master = self.cluster.pick_master(None, None)
            assert (master.job, master.index) in open_to_sessions
        else:
            with pytest.raises(ApiError):
                self.cluster.pick_master(None, None)


TestCluster, TestClusterLong = short_and_long(ClusterMachine)
