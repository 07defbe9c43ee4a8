"""Copies between the host's memory and a GPU's, large ones on streams of their own. Of _driver.py only.

From the host: by pinned memory, in pieces, so that the caller's memory has been read when the call returns; of large
arrays beside the kernels, _feeds.py says how. To the host: large arrays straight into pinned memory, on another stream,
which waits for what was launched before, while what other threads launch meanwhile does not wait for the copy.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

import cupy  # type: ignore[import-not-found, unused-ignore]
import numpy as np
from cupy.cuda import runtime as cuda  # type: ignore[import-not-found, unused-ignore]

from tenfold_kernels.cuda._arrays import DeviceArray
from tenfold_kernels.cuda._feeds import FeedBlocks
from tenfold_kernels.cuda._pointers import FedBuffer, pointer_of

if TYPE_CHECKING:
    from tenfold_kernels.cuda._driver import DriverRuntime

#: Copies to the host of at least so many bytes go into pinned memory, which the GPU writes itself, at twice the speed.
_PINNED_FROM = 64 << 10
#: Copies to a GPU go by pinned memory: in pieces of so many bytes, at most so many of which wait for the GPU.
_STAGED_PIECE, _STAGED_PIECES = 16 << 20, 8
#: Copies of at least so many bytes run beside the kernels, see _feeds.py; below, events cost more. Not measured.
_BESIDE = 256 << 10
#: The part of the memory that free blocks for copies may keep.
_KEPT_FOR_COPIES = 1 / 16
#: Bytes that the driver takes along with the command, where they are not in pinned memory.
_DIRECT = 64 << 10


class Lane:
    """A stream as _feeds.py wants it."""

    def __init__(self, device: Any, stream: Any) -> None:
        self._device, self.stream = device, stream

    def record(self) -> Any:
        # an event is recorded on the device that it was made on
        with self._device:
            event = cupy.cuda.Event(disable_timing=True)
            event.record(self.stream)
        return event

    def wait_event(self, event: Any) -> None:
        with self._device:
            self.stream.wait_event(event)


class HostCopies:
    """Those of one GPU. Any thread."""

    def __init__(self, runtime: DriverRuntime, device: Any) -> None:
        self._runtime, self._device = runtime, device
        with device:
            self._in, self._out = (Lane(device, cupy.cuda.Stream(non_blocking=True)) for _ in range(2))
        self._kernels = runtime.lane
        self._feeds = FeedBlocks(self._kernels, self._in, runtime.allocate, int(runtime.memory * _KEPT_FOR_COPIES))
        self._lock = threading.Lock()
        #: What the GPU has yet to read of the host's memory: (event after the copy, pinned memory), oldest first.
        self._staged: deque[tuple[Any, Any]] = deque()
        #: What the GPU has yet to read of its own, and to write of the host's memory: the copies, and what they read.
        self._begun: dict[Begun, DeviceArray] = {}

    def give_back(self) -> bool:
        """Gives free blocks that are kept for copies to the pool; whether there were some."""
        return self._feeds.clear()

    def to_device(self, array: np.ndarray[Any, np.dtype[Any]]) -> DeviceArray:
        source = np.ascontiguousarray(array)
        if source.nbytes >= _BESIDE:
            return self._feed(source, array.shape)
        out = self._runtime.empty(array.shape, array.dtype)
        if 0 < source.nbytes <= _DIRECT and _is_numpys(source):
            # such memory has been read when the call returns
            with self._device:
                place, stream = source.ctypes.data, self._kernels.stream.ptr
                cuda.memcpyAsync(pointer_of(out), place, source.nbytes, cuda.memcpyHostToDevice, stream)
        elif source.nbytes:
            self._stage(source.reshape(-1).view(np.uint8), pointer_of(out), self._kernels)
        return out

    def _feed(self, source: np.ndarray[Any, np.dtype[Any]], shape: tuple[int, ...]) -> DeviceArray:
        """As to_device, beside the kernels that were launched before."""
        with self._runtime.exhausted_by(shape, source.dtype):
            memory = self._feeds.take(source.nbytes)
        out = DeviceArray(self._runtime, FedBuffer(memory, source.nbytes, self._take_back), shape, source.dtype)
        try:
            self._stage(source.reshape(-1).view(np.uint8), pointer_of(out), self._in)
        finally:
            # of what was copied before an error, too: the block may be the pool's next
            self._feeds.copied()
        return out

    def _take_back(self, nbytes: int, memory: Any) -> None:
        # of a device that failed, and when the process ends, there is nothing to keep
        with contextlib.suppress(cuda.CUDARuntimeError):
            self._feeds.give_back(nbytes, memory)

    def _stage(self, source: np.ndarray[Any, np.dtype[np.uint8]], target: int, lane: Lane) -> None:
        """Copies bytes. They have been read when this returns, though the GPU may not have them yet: a copy straight
        from the caller's memory would not say so, which may be pinned (to_host gives such).
        """
        with self._device, self._lock:
            for begin in range(0, source.size, _STAGED_PIECE):
                while self._staged and (len(self._staged) >= _STAGED_PIECES or self._staged[0][0].done):
                    event, _ = self._staged.popleft()
                    self._runtime.wait(event)
                piece = source[begin : begin + _STAGED_PIECE]
                pinned = _pinned(piece.size)
                staged = piece if pinned is None else np.frombuffer(pinned, np.uint8, piece.size)
                if pinned is not None:
                    staged[...] = piece
                place, stream = staged.ctypes.data, lane.stream.ptr
                cuda.memcpyAsync(target + begin, place, piece.size, cuda.memcpyHostToDevice, stream)
                if pinned is None:
                    self._runtime.wait(lane.record())
                else:
                    self._staged.append((lane.record(), pinned))

    def to_host(self, array: DeviceArray) -> np.ndarray[Any, np.dtype[Any]]:
        return self._begin(array, _PINNED_FROM).to_host()

    def begin_to_host(self, array: DeviceArray) -> Begun:
        """Begins the copy. Does not block while there is pinned memory."""
        return self._begin(array, 1)

    def _begin(self, array: DeviceArray, pinned_from: int) -> Begun:
        """`pinned_from`: the driver waits for a copy to memory that is not pinned itself."""
        pinned = _pinned(array.nbytes) if array.nbytes >= pinned_from else None
        if pinned is not None:
            out = np.frombuffer(pinned, array.dtype, array.size).reshape(array.shape)
        else:
            out = np.empty(array.shape, array.dtype)
        lane, computed = self._kernels, self._kernels.record()
        if array.nbytes >= _BESIDE:
            # what is launched meanwhile does not wait for the copy
            lane = self._out
            lane.wait_event(computed)
        if array.nbytes:
            with self._device:
                source, target = pointer_of(array), out.ctypes.data
                cuda.memcpyAsync(target, source, array.nbytes, cuda.memcpyDeviceToHost, lane.stream.ptr)
        begun = Begun(self, lane.record(), out)
        with self._lock:
            for other in [each for each in self._begun if each.event.done]:
                del self._begun[other]
            self._begun[begun] = array
        return begun

    def over(self, begun: Begun) -> None:
        """Waits for the copy."""
        self._runtime.wait(begun.event)
        with self._lock:
            self._begun.pop(begun, None)


class Begun:
    """See BegunCopy in _begun.py."""

    __slots__ = ("_copies", "_out", "event")

    def __init__(self, copies: HostCopies, event: Any, out: np.ndarray[Any, np.dtype[Any]]) -> None:
        #: After the copy.
        self.event = event
        self._copies, self._out = copies, out

    def to_host(self) -> np.ndarray[Any, np.dtype[Any]]:
        self._copies.over(self)
        return self._out


def _pinned(nbytes: int) -> Any:
    """Pinned memory of the host; None where there is no more, and copies go without.

    CuPy keeps what is free by its size for good: of a few sizes, so that what is kept is bounded by what was in use.
    """
    step = max(1 << max(nbytes.bit_length() - 3, 0), 512)
    try:
        return cupy.cuda.alloc_pinned_memory(-(-nbytes // step) * step)
    except cuda.CUDARuntimeError:
        return None


def _is_numpys(array: np.ndarray[Any, np.dtype[Any]]) -> bool:
    """Whether the elements are in memory of NumPy's own, which is not pinned."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return owner is None
