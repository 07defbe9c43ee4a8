"""An event loop that only the test turns: who waits for a socket, for a time, or for the next turn is written down.

For what asks asyncio.get_running_loop() for its loop; `FakeLoop.running_in(monkeypatch, module)` gives it this one.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


class FakeTimer:
    """A call at a time."""

    def __init__(self, when: float, callback: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.when, self.callback, self.args, self.is_cancelled = when, callback, args, False

    def cancel(self) -> None:
        self.is_cancelled = True


class FakeLoop:
    """`now` moves by `advance`, which makes the calls that are due; `readable` and `writable` call who waits."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.readers: dict[Any, Callable[[], Any]] = {}
        self.writers: dict[Any, Callable[[], Any]] = {}
        self._timers: list[FakeTimer] = []
        self.soon: list[Callable[[], Any]] = []

    def running_in(self, monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
        """Has `module` find this loop; the rest of asyncio stays as it is for it."""
        import asyncio

        names = {name: getattr(asyncio, name) for name in dir(asyncio) if not name.startswith("_")}
        monkeypatch.setattr(module, "asyncio", SimpleNamespace(**{**names, "get_running_loop": lambda: self}))

    def time(self) -> float:
        return self.now

    def add_reader(self, of: Any, callback: Callable[..., Any], *args: Any) -> None:
        self.readers[of] = lambda: callback(*args)

    def remove_reader(self, of: Any) -> bool:
        return self.readers.pop(of, None) is not None

    def add_writer(self, of: Any, callback: Callable[..., Any], *args: Any) -> None:
        self.writers[of] = lambda: callback(*args)

    def remove_writer(self, of: Any) -> bool:
        return self.writers.pop(of, None) is not None

    def call_soon(self, callback: Callable[..., Any], *args: Any) -> None:
        self.soon.append(lambda: callback(*args))

    def call_later(self, seconds: float, callback: Callable[..., Any], *args: Any) -> FakeTimer:
        return self.call_at(self.now + seconds, callback, *args)

    def call_at(self, when: float, callback: Callable[..., Any], *args: Any) -> FakeTimer:
        self._timers.append(FakeTimer(when, callback, args))
        return self._timers[-1]

    @property
    def timers(self) -> list[FakeTimer]:
        """Those that are still to come, the next one first."""
        return sorted((each for each in self._timers if not each.is_cancelled), key=lambda each: each.when)

    def advance(self, seconds: float) -> None:
        self.now += seconds
        while (due := self.timers) and due[0].when <= self.now:
            self._timers.remove(due[0])
            due[0].callback(*due[0].args)
