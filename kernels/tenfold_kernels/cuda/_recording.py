"""What is recorded of a GPU's work: launches and copies in order, and the variables that they read and write.

Runtime.record makes one, by a CUDA graph or in the simulator; _replaying.py launches it again.
"""

from __future__ import annotations

import threading
import weakref
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tenfold_core.reference_counts import ALWAYS_HELD, reference_count, reference_counts_are_exact
from tenfold_kernels.cuda._arrays import DeviceArray

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_kernels.cuda._runtime import Buffer, Runtime
    from tenfold_kernels.cuda._variables import DeviceVariable


_NUMBER = np.dtype(np.uint64)


class NotReplayableError(Exception):
    """What was to be recorded waits for the GPU, or takes from the host's memory."""


class Keeper(Protocol):
    """Who keeps recordings."""

    @property
    def runtime(self) -> Runtime: ...

    def forget(self) -> bool:
        """Gives the recordings' memory back; False where there are none, or one is in use. Does not wait."""
        ...


_keepers: weakref.WeakSet[Any] = weakref.WeakSet()
_keepers_lock = threading.Lock()


def note_keeper(keeper: Keeper) -> None:
    """`give_back` asks it from now on, as long as it is there."""
    with _keepers_lock:
        _keepers.add(keeper)


def give_back(runtime: Runtime) -> bool:
    """Forgets the recordings of a GPU that has no more memory, but for those in use; whether there were some."""
    with _keepers_lock:
        found: list[Keeper] = list(_keepers)
    return any([keeper.forget() for keeper in found if keeper.runtime is runtime])


class Recording:
    """Launches and copies, in order, and the variables that they read and write."""

    def __init__(self, runtime: Runtime) -> None:
        self._of = runtime
        #: The variables that were looked at, with what they held then.
        self.variables: dict[DeviceVariable, DeviceArray | None] = {}
        #: Those whose memory is written though readers hold what they have read.
        self.written: set[DeviceVariable] = set()
        #: Arrays that are read in each launch and written in none.
        self.kept: list[DeviceArray] = []
        #: What says the numbers of a launch, and where its kernels read them.
        self._numbers: list[tuple[Callable[[], Sequence[int]], DeviceArray]] = []
        #: What readers of a variable hold, since it was written last: other names of its memory.
        self._lent: dict[DeviceVariable, Buffer] = {}

    def launch(self) -> None:
        """Puts all of it on the GPU's stream. Does not wait."""
        raise NotImplementedError

    def note(self, variable: DeviceVariable) -> None:
        """While it is made: a kernel looks at this variable."""
        self.variables.setdefault(variable, variable.held())

    def numbers(self, count: int, of_a_launch: Callable[[], Sequence[int]]) -> DeviceArray:
        """While it is made: where kernels find so many uint64 that are others in each launch; `of_a_launch` says which,
        before it.
        """
        place = self._of.empty((count,), _NUMBER)
        self._numbers.append((of_a_launch, place))
        return place

    def numbers_of_a_launch(self) -> list[tuple[DeviceArray, DeviceArray]]:
        """Before a launch: (the numbers, the place to copy them to) of all. Copies from the host."""
        if not self._numbers:
            return []
        given = self._of.to_device(np.array([n for each, _ in self._numbers for n in each()], _NUMBER))
        ends = list(accumulate(place.size for _, place in self._numbers))
        return [(given.rows(end - place.size, end), place) for end, (_, place) in zip(ends, self._numbers, strict=True)]

    def lend(self, variable: DeviceVariable, held: DeviceArray) -> DeviceArray:
        """While it is made: what holds the variable's value, for a reader."""
        buffer = self._lent.get(variable)
        if buffer is None:
            buffer = self._lent[variable] = held.buffer.alias()
        return DeviceArray(self._of, buffer, held.shape, held.dtype, held.offset)

    def take(self, variable: DeviceVariable, held: DeviceArray) -> None:
        """While it is made: the variable's memory is written next, and readers keep what they have read."""
        self.written.add(variable)
        if variable in self._lent and self._readers(variable) > _OWN_REFERENCES:
            kept = self._of.empty(held.shape, held.dtype)
            self._of.copy(held, kept)
            assert not held.offset, "the memory of a variable is its own"
            self._lent.pop(variable).become(kept.buffer)

    def is_lent(self, buffer: Buffer) -> bool:
        """Whether it is the memory of a variable, which may be written next."""
        return any(buffer is lent for lent in self._lent.values())

    def _readers(self, variable: Any) -> int:
        return reference_count(self._lent[variable])


class _Probe(Recording):
    """Lends a buffer that nobody reads."""

    def count(self) -> int:
        self._lent = {None: object()}  # type: ignore[dict-item] # nothing else is done with it
        return self._readers(None)


#: References that a recording holds of a buffer that it lends.
_OWN_REFERENCES = _Probe(None).count() if reference_counts_are_exact() else ALWAYS_HELD  # type: ignore[arg-type]


def undo(recording: Recording) -> None:
    """What was recorded is given up: variables that moved meanwhile are where they were."""
    for variable, held in recording.variables.items():
        if variable.held() is not held:
            variable.put_back(held)
