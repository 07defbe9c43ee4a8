"""Runs the two halves of a split part (compiler/part/split_part.py) side by side, as one execution.

A pure machine (execution.Execution). What one half sends over a cut edge arrives at the other at once; what comes from
elsewhere goes to the half that wants it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_compiler.write.region_schedule import Wanted

from .execution import StepIO

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from ..interfaces import Value
    from .execution import Execution


class SplitExecution:
    """One step of a program in halves."""

    def __init__(self, halves: Sequence[Callable[[StepIO], Execution]], keys: Collection[str], io: StepIO) -> None:
        """`halves` start a step of each half; `keys` are those of the cut edges."""
        self.io = io
        self._keys = keys
        #: Over a cut edge and not yet wanted: (value, is_dead) by key.
        self._sent: dict[str, tuple[Value, bool]] = {}
        #: Wanted over a cut edge and not yet sent: (half, its token) by key.
        self._tokens: dict[str, tuple[Execution, Any]] = {}
        self._wanted: list[Wanted] = []
        inner = StepIO(io.feeds, self._send, io.stop)
        self._halves = [start(inner) for start in halves]
        self._collect()

    @property
    def ready(self) -> bool:
        return any(half.ready for half in self._halves)

    @property
    def done(self) -> bool:
        return all(half.done for half in self._halves)

    @property
    def shapes(self) -> int:
        return sum(half.shapes for half in self._halves)

    def take_wanted(self) -> Sequence[Wanted]:
        wanted, self._wanted = self._wanted, []
        return wanted

    def arrived(self, token: Any, value: Value, is_dead: bool) -> None:
        """`token` is the half that wanted it, and its token."""
        half, its = token
        half.arrived(its, value, is_dead)
        self._collect()

    def advance(self, careful: bool = False) -> None:
        try:
            # twice: each goes on with what the other has given
            for half in self._halves * 2:
                if half.ready:
                    half.advance(careful)
                    self._collect()
        except BaseException:
            # a kernel may have begun to wait: it is for who ends the step
            self._collect()
            raise

    def fetched(self) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for half in self._halves:
            found.update(half.fetched())
        return found

    def _send(self, key: str, value: Any, is_dead: bool) -> None:
        if key not in self._keys:
            self.io.send(key, value, is_dead)
            return
        waiting = self._tokens.pop(key, None)
        if waiting is None:
            self._sent[key] = value, is_dead
        else:
            waiting[0].arrived(waiting[1], value, is_dead)

    def _collect(self) -> None:
        """Takes what the halves want: from each other now, from elsewhere for `take_wanted`."""
        for half in self._halves:
            for wanted in half.take_wanted():
                if wanted.waiting is not None or wanted.key not in self._keys:
                    token = half, wanted.token
                    self._wanted.append(Wanted(token, wanted.key, wanted.waiting, wanted.node))
                elif wanted.key in self._sent:
                    half.arrived(wanted.token, *self._sent.pop(wanted.key))
                else:
                    self._tokens[wanted.key] = half, wanted.token
        for ended in self._halves:
            if ended.done and self._tokens:
                # what it did not send is dead: a loop of which one input is dead gives no result at all
                for key, (half, token) in [item for item in self._tokens.items() if item[1][0] is not ended]:
                    del self._tokens[key]
                    half.arrived(token, None, True)
