"""A stretch of a step recorded once and launched again: its Python is not run any more.

    call(inputs)   the first times: the nodes, one by one
                   then: recorded on inputs of its own (Runtime.record: a CUDA graph), and launched
                   from then on: inputs are copied to where the recording has them, one launch, outputs are copied

A recording is for the shapes that it was made with, and for the values of the host: few, and small, shapes and axes. It
reads and writes variables where they were. A resource variable that has moved is brought back there; once a variable
has another shape, or is another one, or a reference variable has moved, the recording is void and made anew. What is
read of a resource variable in a recording and still read when it is written there, is copied for its readers, so that
the variable stays where it is; a launch that would write what somebody else still reads does not happen, and the nodes
run. Kernels that may not be recorded say so in their row (registry: `replays`); what turns out not to be recordable
runs node by node for good.
compiler/tenfold_compiler/fuse/captures.py chooses the stretches; what is recorded is _recording.py's.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import errors
from tenfold_kernels.cuda._arrays import DeviceArray
from tenfold_kernels.cuda._begun import RecordedCopy
from tenfold_kernels.cuda._recording import NotReplayableError, note_keeper, undo
from tenfold_kernels.cuda.joined_copies import copy_all
from tenfold_kernels.resources.state import Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from tenfold_kernels.cuda._recording import Recording
    from tenfold_kernels.cuda._runtime import Runtime
    from tenfold_kernels.resources.state import ResourceManager

#: Calls with the same shapes before they are recorded: the first compile kernels and make variables.
_CALLS_BEFORE = 3
#: Recordings of one stretch that are kept, each with memory of its own; recordings that it may lose before it gives up,
#: or make room for others before it keeps those that it has.
_KEPT, _MOST_LOST = 4, 8
#: Of a value of the host, such as a shape, that recordings are made for: each call looks at them all.
_MOST_BYTES = 64 << 10
#: Shapes whose calls are counted.
_COUNTED = 256


@dataclass(slots=True)
class _Recorded:
    recording: Recording
    #: Where the recording reads its inputs; None for one that is a variable, or the host's.
    inputs: list[DeviceArray | None]
    #: What the nodes gave.
    outputs: tuple[Any, ...]
    generation: int
    locks: list[Any] = field(default_factory=list)
    #: Whether a launch has found that it holds no more.
    void: bool = False

    def is_void(self, resources: ResourceManager) -> bool:
        """Whether a variable is another one, or cannot be brought back to where it was. Their locks are held."""
        if resources.generation != self.generation:
            return True
        recording = self.recording
        return any(
            now is not then and (now is None or then is None or now.shape != then.shape or not variable.by_value)
            for variable, then in recording.variables.items()
            for now in (variable.held(),)
        )

    def bring_back(self, runtime: Runtime) -> bool:
        """Variables that have moved come back to where they were. False, with nothing done, where somebody still reads
        what would be written. Their locks are held.
        """
        recording = self.recording
        moved = [(variable, then) for variable, then in recording.variables.items() if variable.held() is not then]
        written = [(variable, recording.variables[variable]) for variable in recording.written]
        if any(variable.is_read(then) for variable, then in (*moved, *written)):
            return False
        for variable, then in moved:
            now = variable.held()
            assert now is not None
            assert then is not None
            runtime.copy(now, then)
            variable.put_back(then)
        return True


def _key(x: Any) -> Hashable:
    """What an input must have in common with that of a recording."""
    if type(x) is DeviceArray:
        return x.shape, x.dtype
    return (x.shape, x.dtype, x.tobytes()) if _is_small(x) else id(x)


def _is_small(x: Any) -> bool:
    return isinstance(x, (np.ndarray, np.generic)) and not x.dtype.hasobject and x.nbytes <= _MOST_BYTES


def _can_be_read(x: Any) -> bool:
    """Whether a recording may have it for an input."""
    return isinstance(x, (DeviceArray, Variable)) or _is_small(x)


class Replayed:
    """A stretch of nodes of one GPU as a call of its inputs. Thread-safe: of two calls at once one runs its nodes."""

    def __init__(self, nodes: Callable[..., Any], outputs: int, runtime: Runtime, resources: ResourceManager) -> None:
        """`nodes` runs them one by one, and gives so many `outputs`."""
        self._nodes, self._count, self.runtime, self._resources = nodes, outputs, runtime, resources
        self._calls: dict[Hashable, int] = {}
        self._recorded: dict[Hashable, _Recorded] = {}
        self._lost = self._made_room = 0
        self._lock = threading.Lock()
        note_keeper(self)

    def forget(self) -> bool:
        """Gives its recordings' memory back; False where it has none, or is called at present. Does not wait."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            found = len(self._recorded)
            self._recorded.clear()
            self._lost += found
        finally:
            self._lock.release()
        return found > 0

    def __call__(self, *inputs: Any) -> Any:
        if self._lost > _MOST_LOST or not self._lock.acquire(blocking=False):
            return self._nodes(*inputs)
        try:
            key = tuple(map(_key, inputs))
            found = self._recorded.get(key)
            given = self._record(key, inputs) if found is None else self._replay(found, inputs)
            if found is not None and found.void:
                del self._recorded[key]
                self._lost += 1
        finally:
            self._lock.release()
        return self._nodes(*inputs) if given is None else self._results(given)

    def _record(self, key: Hashable, inputs: Sequence[Any]) -> list[Any] | None:
        """Records, launches, and gives the outputs, once the time has come; None before, and where that cannot be."""
        if self._made_room > _MOST_LOST:
            return None
        if len(self._calls) >= _COUNTED:
            self._calls.clear()
        calls = self._calls[key] = self._calls.get(key, 0) + 1
        if calls <= _CALLS_BEFORE or not all(map(_can_be_read, inputs)):
            return None
        self._calls.clear()
        generation = self._resources.generation
        try:
            own = [self.runtime.empty(x.shape, x.dtype) if type(x) is DeviceArray else None for x in inputs]
            given = [x if mine is None else mine for x, mine in zip(inputs, own, strict=True)]
            result, recording = self.runtime.record(lambda: self._nodes(*given))
        except (NotReplayableError, errors.ResourceExhaustedError):
            # nothing has run: where there is no room for a recording beside the pool, there may be for the nodes
            self._lost = _MOST_LOST + 1
            return None
        outputs = result if self._count > 1 else (result,) * self._count
        found = _Recorded(recording, own, outputs, generation)
        found.locks = [each.lock for each in sorted(recording.variables, key=id)]
        launched = self._replay(found, inputs)
        if found.void:
            # a kernel gives a variable other memory in each step
            undo(recording)
            self._lost = _MOST_LOST + 1
            return None
        if len(self._recorded) >= _KEPT:
            del self._recorded[next(iter(self._recorded))]
            self._made_room += 1
        self._recorded[key] = found
        return launched

    def _replay(self, found: _Recorded, inputs: Sequence[Any]) -> list[Any] | None:
        """Launches, and gives the outputs; None, with nothing done, where it is void, or a variable is still read."""
        with contextlib.ExitStack() as held:
            for lock in found.locks:
                held.enter_context(lock)
            found.void = found.is_void(self._resources)
            if found.void or not found.bring_back(self.runtime):
                return None
            # an error before the launch, which changes variables, leaves them as they were
            own = [
                self.runtime.empty(each.shape, each.dtype) if type(each) is DeviceArray else each
                for each in found.outputs
            ]
            fed = zip(inputs, found.inputs, strict=True)
            copies = [(given, place) for given, place in fed if place is not None]
            copy_all(self.runtime, copies + found.recording.numbers_of_a_launch())
            found.recording.launch()
            # before the next call launches it again, and before anybody writes a variable that is read here
            made = zip(found.outputs, own, strict=True)
            copy_all(self.runtime, [(each, place) for each, place in made if type(each) is DeviceArray])
        return [each.now if type(each) is RecordedCopy else each for each in own]

    def _results(self, outputs: list[Any]) -> Any:
        return outputs[0] if self._count == 1 else tuple(outputs) if outputs else None
