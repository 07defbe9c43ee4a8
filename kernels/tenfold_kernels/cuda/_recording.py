"""A stretch of a step recorded once and launched again: its Python is not run any more.

    call(inputs)   the first times: the nodes, one by one
                   then: recorded on inputs of its own (Runtime.record: a CUDA graph), and launched
                   from then on: inputs are copied to where the recording has them, one launch, outputs are copied

A recording is for the shapes that it was made with. It reads and writes variables where they were; once one has moved,
or is another one, it is void and made anew. Kernels that may not be recorded say so in their row (registry: `replays`);
what turns out not to be recordable runs node by node for good. services/tenfold_services/worker/fuse/captures.py
chooses the stretches.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from tenfold_core import errors
from tenfold_kernels.cuda._arrays import DeviceArray
from tenfold_kernels.resources.state import Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from tenfold_kernels.cuda._runtime import Runtime
    from tenfold_kernels.cuda._variables import DeviceVariable
    from tenfold_kernels.resources.state import ResourceManager

#: Calls with the same shapes before they are recorded: the first compile kernels and make variables.
_CALLS_BEFORE = 3
#: Recordings of one stretch that are kept, each with memory of its own; recordings that it may lose before it gives up,
#: or make room for others before it keeps those that it has.
_KEPT, _MOST_LOST = 4, 8
#: Shapes whose calls are counted.
_COUNTED = 256


class NotReplayableError(Exception):
    """What was to be recorded waits for the GPU, or takes from the host's memory."""


class Recording(Protocol):
    """Launches and copies, in order."""

    def launch(self) -> None:
        """Puts all of it on the GPU's stream. Does not wait."""
        ...

    def note(self, variable: DeviceVariable) -> None:
        """While it is made: a kernel looks at this variable."""
        ...

    #: The variables that were looked at, with what they held then.
    variables: dict[DeviceVariable, DeviceArray | None]


def undo(recording: Recording) -> None:
    """What was recorded is given up: variables that moved meanwhile are where they were."""
    for variable, held in recording.variables.items():
        if variable.held() is not held:
            variable.put_back(held)


@dataclass(slots=True)
class _Recorded:
    recording: Recording
    #: Where the recording reads its inputs; None for one that is a variable.
    inputs: list[DeviceArray | None]
    #: What the nodes gave.
    outputs: tuple[Any, ...]
    generation: int
    locks: list[Any] = field(default_factory=list)

    def still_holds(self, resources: ResourceManager) -> bool:
        """Whether all variables are where they were. Their locks are held."""
        if resources.generation != self.generation:
            return False
        held = self.recording.variables
        return all(variable.held() is array for variable, array in held.items())


class Replayed:
    """A stretch of nodes of one GPU as a call of its inputs. Thread-safe: of two calls at once one runs its nodes."""

    def __init__(self, nodes: Callable[..., Any], outputs: int, runtime: Runtime, resources: ResourceManager) -> None:
        """`nodes` runs them one by one, and gives so many `outputs`."""
        self._nodes, self._count, self._runtime, self._resources = nodes, outputs, runtime, resources
        self._calls: dict[Hashable, int] = {}
        self._recorded: dict[Hashable, _Recorded] = {}
        self._lost = self._made_room = 0
        self._lock = threading.Lock()

    def __call__(self, *inputs: Any) -> Any:
        if self._lost > _MOST_LOST or not self._lock.acquire(blocking=False):
            return self._nodes(*inputs)
        try:
            key = tuple([(x.shape, x.dtype) if type(x) is DeviceArray else id(x) for x in inputs])
            found = self._recorded.get(key)
            if found is None:
                found = self._record(key, inputs)
            elif not self._replay(found, inputs):
                del self._recorded[key]
                self._lost += 1
                found = None
            if found is not None:
                # before the next call launches it again
                return self._given(found)
        finally:
            self._lock.release()
        return self._nodes(*inputs)

    def _record(self, key: Hashable, inputs: Sequence[Any]) -> _Recorded | None:
        """Records and launches once the time has come; None before, and where that cannot be."""
        if self._made_room > _MOST_LOST:
            return None
        if len(self._calls) >= _COUNTED:
            self._calls.clear()
        calls = self._calls[key] = self._calls.get(key, 0) + 1
        if calls <= _CALLS_BEFORE or not all(isinstance(x, (DeviceArray, Variable)) for x in inputs):
            return None
        self._calls.clear()
        generation = self._resources.generation
        try:
            own = [self._runtime.empty(x.shape, x.dtype) if type(x) is DeviceArray else None for x in inputs]
            given = [x if mine is None else mine for x, mine in zip(inputs, own, strict=True)]
            result, recording = self._runtime.record(lambda: self._nodes(*given))
        except (NotReplayableError, errors.ResourceExhaustedError):
            # nothing has run: where there is no room for a recording beside the pool, there may be for the nodes
            self._lost = _MOST_LOST + 1
            return None
        outputs = result if self._count > 1 else (result,) * self._count
        found = _Recorded(recording, own, outputs, generation)
        found.locks = [each.lock for each in sorted(recording.variables, key=id)]
        if not self._replay(found, inputs):
            # a kernel gives a variable other memory in each step
            undo(recording)
            self._lost = _MOST_LOST + 1
            return None
        if len(self._recorded) >= _KEPT:
            del self._recorded[next(iter(self._recorded))]
            self._made_room += 1
        self._recorded[key] = found
        return found

    def _replay(self, found: _Recorded, inputs: Sequence[Any]) -> bool:
        """Launches; False, with nothing done, where a variable has moved."""
        with contextlib.ExitStack() as held:
            for lock in found.locks:
                held.enter_context(lock)
            if not found.still_holds(self._resources):
                return False
            for given, own in zip(inputs, found.inputs, strict=True):
                if own is not None:
                    self._runtime.copy(given, own)
            found.recording.launch()
        return True

    def _given(self, found: _Recorded) -> Any:
        """The outputs as the caller's own: the next launch writes where the recording has them."""
        outputs = []
        for value in found.outputs:
            if type(value) is DeviceArray:
                own = self._runtime.empty(value.shape, value.dtype)
                self._runtime.copy(value, own)
                outputs.append(own)
            else:
                outputs.append(value)
        return outputs[0] if self._count == 1 else tuple(outputs) if outputs else None
