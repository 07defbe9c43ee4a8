"""Lives of masters: a former one is refused, whatever comes in between, and no peer fills the memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tenfold_core import errors
from tenfold_kernels.resources.state import ResourceManager
from tenfold_services.limits import Limits
from tenfold_services.worker import sessions
from tenfold_services.worker.sessions import MasterLives, SessionTable

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:1"


def test_a_former_life_is_refused_by_name_and_the_newest_is_not() -> None:
    lives = MasterLives(PS)
    for incarnation in (1, 2, -3):
        lives.check(WORKER, incarnation)
        lives.met(WORKER, incarnation)

    for former in (1, 2):
        with pytest.raises(errors.FailedPreconditionError, match=f"{WORKER} was replaced: {PS} .* fffffffffffffffd"):
            lives.check(WORKER, former)
    lives.check(WORKER, -3)
    lives.check("/job:worker/replica:0/task:2", 1)


def test_a_life_that_opens_several_sessions_stays_the_newest() -> None:
    lives = MasterLives(PS)
    lives.met(WORKER, 1)
    lives.met(WORKER, 1)

    lives.check(WORKER, 1)


def test_masters_without_a_name_are_not_told_apart() -> None:
    lives = MasterLives(PS)
    lives.met("", 1)
    lives.met("", 2)

    lives.check("", 1)


def test_what_is_remembered_is_bounded_and_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST", 3)
    lives = MasterLives(PS)
    for incarnation in range(6):
        lives.met(WORKER, incarnation)
    for index in range(6):
        lives.met(f"/job:guest/task:{index}", 1)

    assert len(lives._newest) == len(lives._former) == 3
    lives.check(WORKER, 1)
    with pytest.raises(errors.FailedPreconditionError):
        lives.check(WORKER, 2)


def test_a_life_that_is_met_again_becomes_the_newest_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST", 2)
    lives = MasterLives(PS)
    for master in ("a", "b", "a", "c"):
        lives.met(master, 1)

    assert list(lives._newest) == ["a", "c"]


def test_the_refusal_of_a_former_life_names_both_as_unsigned_numbers() -> None:
    lives = MasterLives(PS)
    lives.met(WORKER, -1)
    lives.met(WORKER, 255)

    with pytest.raises(errors.FailedPreconditionError) as raised:
        lives.check(WORKER, -1)
    assert raised.value.message == (
        f"{WORKER} was replaced: {PS} has heard of a newer process in its place (incarnation 00000000000000ff) and "
        "takes nothing from the former one (incarnation ffffffffffffffff). End this process."
    )


def table(**limits: int) -> SessionTable:
    return SessionTable(PS, ResourceManager(), Limits(**limits))


def test_the_words_of_what_is_refused() -> None:
    found = table(sessions=2)
    with pytest.raises(errors.InvalidArgumentError, match="Session handle must be non-empty"):
        found.create("", False, WORKER, 1)
    found.create("s", False, WORKER, 1)
    with pytest.raises(errors.AlreadyExistsError, match=f"Session s exists already on {PS}"):
        found.create("s", False, WORKER, 1)
    with pytest.raises(errors.ResourceExhaustedError, match=f"{PS} has 2 sessions open; 2 is the limit"):
        found.create("t", False, WORKER, 1)
    with pytest.raises(errors.AbortedError) as raised:
        found.get("t")
    assert raised.value.message == (f'Session handle is not found: t. Possibly this worker ("{PS}") just restarted.')
    with pytest.raises(errors.AbortedError) as raised:
        found.get("s").graph("g")
    assert raised.value.message == "Graph handle is not found: g. Possibly, this worker just restarted."


def test_a_refused_session_is_not_heard_of_as_a_life() -> None:
    found = table()
    found.create("s", False, WORKER, 1)
    with pytest.raises(errors.AlreadyExistsError):
        found.create("s", False, WORKER, 2)
    found.lives.check(WORKER, 1)


def test_sessions_of_a_restarted_master_make_room_for_its_new_one() -> None:
    found = table(sessions=2)
    found.create("s", False, WORKER, 1)

    stale = found.create("t", False, WORKER, 2)

    assert [(session.handle, session.master_task, session.master_incarnation) for session in stale] == [
        ("s", WORKER, 1)
    ]
    assert [session.handle for session in found] == ["", "t"]


def test_stale_sessions_are_those_of_other_lives_of_a_master_with_a_name() -> None:
    found = table()
    for handle, master, life in (("a", WORKER, 1), ("b", WORKER, 1), ("c", "", 1), ("d", PS, 1)):
        found.create(handle, False, master, life)

    assert [session.handle for session in found.stale(WORKER, 2)] == ["a", "b"]
    assert found.stale(WORKER, 1) == []
    assert found.stale("", 2) == []


def test_an_isolated_session_has_its_own_state_within_the_tasks_bounds() -> None:
    found = table(queues=1)
    limits = Limits(queues=1)
    found.create("own", True, WORKER, 1)
    found.create("shared", False, WORKER, 1)
    own, shared = found.get("own"), found.get("shared")

    assert shared.resources is found.get("").resources
    assert own.resources is not shared.resources
    quota = own.resources.quota
    with pytest.raises(errors.ResourceExhaustedError, match="TENFOLD_TASK_STATE_BYTES_PER_SESSION"):
        quota.check(limits.most_state_bytes_per_session + 1, "v")
    account = quota.queue_account("q")
    with pytest.raises(errors.ResourceExhaustedError, match="There are 1 queues"):
        quota.queue_account("q")
    assert shared.resources.quota.queues == 1
    del account


def test_what_an_isolated_session_kept_goes_with_it() -> None:
    found = table()
    found.create("own", True, WORKER, 1)
    found.create("shared", False, WORKER, 1)
    whole = found.get("").resources.quota
    found.get("own").resources.quota.add(10)
    whole.add(5)
    assert whole.bytes == 15

    assert found.remove("own") is not None
    assert found.remove("shared") is not None
    assert whole.bytes == 5
    assert found.remove("own") is None
    assert found.remove("") is None
    assert found.get("").handle == ""


def a_program(size: int) -> Any:
    return SimpleNamespace(compiled=SimpleNamespace(size=size))


def test_handles_are_sixteen_digits_and_never_the_same() -> None:
    session = table().get("")
    handles = {session.add_graph(a_program(1), Limits()) for _ in range(20)}
    assert len(handles) == 20
    assert all(len(handle) == 16 and int(handle, 16) >= 0 for handle in handles)


@pytest.mark.parametrize(
    ("sizes", "kept"), [([5, 5], 2), ([5, 6], 1), ([11], 1), ([1, 11], 1), ([2, 3, 6], 2), ([1] * 4, 3)]
)
def test_graphs_of_nobodys_session_fit_in_so_many_and_so_many_bytes(sizes: list[int], kept: int) -> None:
    session, limits = table().get(""), Limits(graph_bytes_without_session=10, graphs_without_session=3)
    handles = [session.add_graph(a_program(size), limits) for size in sizes]
    assert list(session.graphs) == handles[-kept:]


@pytest.mark.parametrize("handle", ["", "s"])
def test_a_used_graph_of_nobodys_session_is_the_last_to_go(handle: str) -> None:
    found = table()
    if handle:
        found.create(handle, False, WORKER, 1)
    session = found.get(handle)
    first, second = (session.add_graph(a_program(1), Limits()) for _ in range(2))
    program = session.graphs[first]

    assert session.graph(first) is program
    assert list(session.graphs) == ([second, first] if not handle else [first, second])
