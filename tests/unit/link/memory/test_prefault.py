"""The thread of arenas: it takes page faults when asked, gives memory back when nobody asks, and holds no arena."""

from __future__ import annotations

import queue
import threading
import weakref
from typing import TYPE_CHECKING, Any

import pytest

from tenfold_link.memory import prefault
from tenfold_link.memory.extents import PAGE

if TYPE_CHECKING:
    from collections.abc import Callable


class Arena:
    """Notes who calls it; `trim` says in turn what it was made with, and then that there is no more."""

    def __init__(self, *more: bool) -> None:
        self.faulted, self.trimmed = threading.Event(), threading.Event()
        self.threads: list[threading.Thread] = []
        self.times: list[float] = []
        self._more = list(more)

    def prefault(self) -> None:
        self.threads.append(threading.current_thread())
        self.faulted.set()

    def trim(self, now: float) -> bool:
        self.times.append(now)
        more = self._more.pop(0) if self._more else False
        if not more:
            self.trimmed.set()
        return more


def asked(*more: bool) -> Arena:
    arena = Arena(*more)
    prefault.request(arena)
    assert arena.faulted.wait(20)
    return arena


@pytest.fixture
def swept(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often what is left of peers was looked through; the thread finds itself idle at once."""
    found: list[int] = []
    monkeypatch.setattr(prefault, "IDLE_SECONDS", 0.01)
    monkeypatch.setattr(prefault.REMAINS, "sweep", lambda: found.append(1), raising=False)
    return found


def test_what_is_written_at_a_time_is_whole_pages() -> None:
    assert prefault.PIECE % PAGE == 0 < prefault.PIECE


def test_one_thread_serves_all_arenas() -> None:
    first, second = asked(), asked()

    assert first.threads == second.threads
    (thread,) = first.threads
    assert (thread.name, thread.daemon) == ("tenfold-arena", True)
    assert prefault._thread is thread


def test_an_arena_dies_though_its_thread_knows_it() -> None:
    arena = asked()
    seen = weakref.ref(arena)
    del arena
    asked()

    assert seen() is None


def test_a_request_for_an_arena_that_is_gone_is_dropped() -> None:
    prefault._requests.put(weakref.ref(Arena()))

    assert len(asked().threads) == 1


def test_a_thread_that_died_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Thread(target=lambda: None)
    over.start()
    over.join()
    begun: list[Callable[[], Any]] = []

    class Noted(threading.Thread):
        def start(self) -> None:
            begun.append(self.name)  # type: ignore[arg-type]

    monkeypatch.setattr(prefault, "_thread", over)
    monkeypatch.setattr(prefault.threading, "Thread", Noted)
    prefault.request(Arena())
    assert begun == ["tenfold-arena"]


def test_an_idle_arena_gives_back_until_it_has_no_more(swept: list[int]) -> None:
    arena = asked(True, True)
    assert arena.trimmed.wait(20)
    other = asked(True)
    assert other.trimmed.wait(20)

    assert len(arena.times) == 3
    assert len(other.times) == 2
    assert arena.times == sorted(arena.times)
    assert len(swept) >= 3


@pytest.mark.parametrize(("left", "waits"), [(0, [None, 15.0, 15.0, None]), (1, [15.0, 15.0, 15.0, 15.0])])
def test_whoever_may_be_idle_is_looked_at_twice_as_often_as_idleness_takes(
    left: int, waits: list[float | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    arena, asked = Arena(True), []
    answers: list[Any] = [weakref.ref(arena), queue.Empty(), queue.Empty()]

    class Requests:
        def get(self, timeout: float | None) -> Any:
            asked.append(timeout)
            if not answers:
                raise KeyboardInterrupt
            found = answers.pop(0)
            if isinstance(found, queue.Empty):
                raise found
            return found

    class Left:
        def __len__(self) -> int:
            return left

        def sweep(self) -> None:
            pass

    monkeypatch.setattr(prefault, "_requests", Requests())
    monkeypatch.setattr(prefault, "REMAINS", Left())
    with pytest.raises(KeyboardInterrupt):
        prefault._work()
    assert asked == waits
    assert len(arena.times) == 2
