"""A program as a plain call: fed arrays in, fetched arrays out, on the thread that calls.

A program of one region that receives nothing and sends to its client only needs neither an executor nor a driver: its
generated function is called once. Used by master/caller_steps.py and functions.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_compiler.values import read_only
from tenfold_core import opdefs

from .execution import cancelled, extent, feed_value, kept, no_send

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_compiler.part.part_graph import PartNode
    from tenfold_compiler.program import Feed

    from ..interfaces import Value
    from .loaded_program import LoadedProgram


class DirectCall:
    """A program bound to an order of feeds and of fetches. Immutable: any number of threads may call it at once."""

    __slots__ = ("_feeds", "_fetch_count", "_fetches", "_program", "_slot_count", "_writes")

    def __init__(self, program: LoadedProgram, feed_keys: Sequence[str | None], fetch_keys: Sequence[str]) -> None:
        """The keys are rendezvous keys, all of the program's feeds among them; None for a feed that nothing needs.

        Raises ValueError for a program that `is_callable` refuses, and for keys that are not its own.
        """
        compiled = program.compiled
        generated, transfers = compiled.generated, compiled.transfers
        if generated is None or {feed.key for feed in transfers.feeds} != set(feed_keys) - {None}:
            raise ValueError(f"The program is not straight, or takes other feeds than {list(feed_keys)}")
        position_of = {key: position for position, key in enumerate(feed_keys)}
        self._program = program
        self._slot_count, self._fetch_count = generated.slot_count, len(transfers.fetch_keys)
        #: Where each feed comes from and goes to, its type, and the feed, for what an error says.
        self._feeds: list[tuple[int, int, np.dtype[Any], Feed]] = [
            (position_of[feed.key], slot, feed.numpy_dtype, feed) for slot, feed in compiled.feed_slots
        ]
        numbers = [transfers.fetch_keys.index(key) for key in fetch_keys]
        #: Position in the result → number of the fetch; None when they are the same.
        self._fetches = None if numbers == list(range(len(transfers.fetch_keys))) else numbers
        #: Whether some node may change what another one has handed over. Then a fetch is copied at its place in the
        #: schedule; else the receiver of the values may do it, if ever.
        self._writes = any(_may_write(compiled.part.nodes[index]) for index in compiled.kernels)

    def shapes(self, feeds: Sequence[Value]) -> int:
        """Execution.shapes of a step with these feeds."""
        found = 0
        for position, slot, _, _ in self._feeds:
            found ^= hash((slot, extent(feeds[position])))
        return found

    def __call__(self, feeds: Sequence[Value], stop: list[Any]) -> list[Value]:
        """Runs the program; the fetched values in the caller's order. A read-only one is not the caller's own.

        Blocks while kernels compute. `stop` is looked at now and then: once it is not empty, CancelledError. Raises the
        OpError of the node that failed, InvalidArgumentError for a feed of the wrong type.
        """
        slots: list[Any] = [None] * self._slot_count
        for position, slot, dtype, feed in self._feeds:
            value = feeds[position]
            if type(value) is np.ndarray and value.dtype == dtype:
                slots[slot] = read_only(value)
            else:
                slots[slot] = feed_value(feed, {feed.key: value})
        values: list[Any] = [None] * self._fetch_count
        fetch: Callable[[int, Value], None]
        if self._writes:
            # a function, because one is called faster than an object
            def fetch(number: int, value: Value) -> None:
                values[number] = kept(value)
        else:
            fetch = values.__setitem__
        generated = self._program.compiled.generated
        assert generated is not None
        function, unfinished = generated.functions[0], self._program.unfinished
        if function is not None:
            step = None if unfinished is None else unfinished.begin()
            try:
                generated.call(function, slots, no_send, fetch, stop)
            finally:
                if step is not None:
                    step.end()
        if stop:
            raise cancelled()
        return values if self._fetches is None else [values[number] for number in self._fetches]


#: Stateful ops that only give state out.
_READERS = frozenset(("Variable", "VariableV2", "VarHandleOp", "ReadVariableOp", "IsVariableInitialized"))


def _may_write(node: PartNode) -> bool:
    """Whether the node may write to what others hold: an update takes a reference, or is a stateful op."""
    if node.op in _READERS:
        return False
    if any(dtype.is_ref_dtype for dtype in node.input_types):
        return True
    return not opdefs.has(node.op) or opdefs.get(node.op).is_stateful
