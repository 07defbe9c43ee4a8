"""What cuda/_host_copies.py and _driver.py use of CuPy, on the host: streams whose work runs late, in any order that
events allow; graphs of what is captured; pools that give memory again at once, as CuPy's do.
"""

from __future__ import annotations

import bisect
import contextlib
import ctypes
import importlib.util
import random
import sys
from collections import deque
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cuda import _feeds
from tenfold_kernels.cuda._arrays import DeviceArray
from tenfold_kernels.cuda._pointers import PoolBuffer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest


class CUDARuntimeError(RuntimeError):
    """What CuPy raises where the driver has an error."""


class FakeGPU:
    """A GPU whose memory is NumPy's, with the runtime that copies want. `pinned_bytes` is how much may be pinned."""

    def __init__(self, patch: pytest.MonkeyPatch, seed: int, pinned_bytes: int = 1 << 40) -> None:
        self._random, self._left = random.Random(seed), pinned_bytes
        self.streams: list[Stream] = []
        self._pinned: list[np.ndarray[Any, np.dtype[np.uint8]]] = []
        #: Where each begins and ends, in order.
        self._pinned_places: list[tuple[int, int]] = []
        self.module = self._imported(patch)
        self.memory = 1 << 20
        self.device = contextlib.nullcontext()
        self.lane = self.module.Lane(self.device, Stream(self))
        self.copies = self.module.HostCopies(self, self.device)

    def _imported(self, patch: pytest.MonkeyPatch) -> Any:
        """_host_copies.py with this for its CuPy."""
        runtime = SimpleNamespace(
            CUDARuntimeError=CUDARuntimeError,
            memcpyAsync=self._memcpy,
            memcpyHostToDevice=1,
            memcpyDeviceToHost=2,
            memcpyDeviceToDevice=3,
            streamCaptureModeRelaxed=2,
            getDeviceProperties=lambda index: _PROPERTIES,
            runtimeGetVersion=lambda: 13000,
        )
        cupy, cuda = ModuleType("cupy"), ModuleType("cupy.cuda")
        cuda.__dict__.update(
            runtime=runtime,
            Device=lambda index: self.device,
            Stream=lambda non_blocking: Stream(self),
            Event=lambda disable_timing: Event(self),
            MemoryPool=Pool,
            memory=SimpleNamespace(OutOfMemoryError=MemoryError),
            alloc_pinned_memory=self._pin,
        )
        cupy.__dict__["cuda"] = cuda
        patch.setitem(sys.modules, "cupy", cupy)
        patch.setitem(sys.modules, "cupy.cuda", cuda)
        return _loaded(patch, "_host_copies")

    def driver(self, patch: pytest.MonkeyPatch) -> Any:
        """A DriverRuntime of this, whose kernels are what tests put on its streams."""
        return _loaded(patch, "_driver").DriverRuntime(0)

    # -- what a DriverRuntime has --------------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> Any:
        data = np.full(nbytes, 0xA5, np.uint8)
        return SimpleNamespace(ptr=data.ctypes.data, data=data)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        buffer = PoolBuffer(self.allocate(nbytes) if nbytes else None, nbytes)
        return DeviceArray(self, buffer, shape, dtype)  # type: ignore[arg-type] # the part of it that copies want

    @contextlib.contextmanager
    def exhausted_by(self, shape: Any, dtype: Any) -> Iterator[None]:
        yield

    def wait(self, event: Event) -> None:
        while not event.done:
            self.run_some()

    # -- what runs -----------------------------------------------------------------------------------------------------

    def run_some(self) -> None:
        """One thing of some stream that may run."""
        order = list(self.streams)
        self._random.shuffle(order)
        assert any(stream.run_one() for stream in order), "the streams wait for each other"

    def _pin(self, nbytes: int) -> Any:
        if nbytes > self._left:
            raise CUDARuntimeError("out of pinned memory")
        self._left -= nbytes
        self._pinned.append(np.full(nbytes, 0x5A, np.uint8))
        begin = self._pinned[-1].ctypes.data
        bisect.insort(self._pinned_places, (begin, begin + nbytes))
        return self._pinned[-1]

    def _memcpy(self, target: int, source: int, nbytes: int, kind: int, stream: int) -> None:
        if kind == 1 and not self._is_pinned(source):
            # a driver has read such memory when it returns
            kept = ctypes.string_at(source, nbytes)
            self.streams[stream].put(lambda: ctypes.memmove(target, kept, nbytes))
        else:
            self.streams[stream].put(lambda: ctypes.memmove(target, source, nbytes))

    def _is_pinned(self, place: int) -> bool:
        found = bisect.bisect_right(self._pinned_places, (place, 1 << 63)) - 1
        return found >= 0 and place < self._pinned_places[found][1]


def _loaded(patch: pytest.MonkeyPatch, name: str) -> Any:
    """That file of the package, for as long as the test runs."""
    whole = f"tenfold_kernels.cuda.{name}"
    spec = importlib.util.spec_from_file_location(whole, Path(_feeds.__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    patch.setitem(sys.modules, whole, module)
    spec.loader.exec_module(module)
    return module


_PROPERTIES = {"name": b"none", "major": 9, "minor": 0, "totalGlobalMem": 1 << 30, "multiProcessorCount": 1}


class Memory:
    """Bytes of a pool, which has them again when nobody else does."""

    def __init__(self, data: Any, free: list[Any], owner: Any) -> None:
        self.data, self._free, self._owner = data, free, owner
        self.ptr = data.ctypes.data

    def __del__(self) -> None:
        self._free.append((self.data, self._owner))


class Pool:
    def __init__(self, allocator: Callable[[int], Any] | None = None) -> None:
        self._allocate = allocator
        self._free: dict[int, list[Any]] = {}

    def set_limit(self, size: int) -> None:
        pass

    def free_all_blocks(self) -> None:
        for blocks in self._free.values():
            blocks.clear()

    def malloc(self, nbytes: int) -> Memory:
        free = self._free.setdefault(nbytes, [])
        if free:
            data, owner = free.pop()
        else:
            owner = self._allocate(nbytes) if self._allocate is not None else None
            data = np.full(nbytes, 0xA5, np.uint8) if owner is None else owner.data
        return Memory(data, free, owner)


class Event:
    def __init__(self, gpu: FakeGPU) -> None:
        self.done, self._gpu = False, gpu

    def record(self, stream: Stream) -> None:
        stream.work.append(self)

    def synchronize(self) -> None:
        self._gpu.wait(self)


class Graph:
    """What a stream has captured."""

    def __init__(self, work: list[Any]) -> None:
        self._work = work

    def launch(self, stream: Stream) -> None:
        for act in self._work:
            stream.put(act)


class Stream:
    """Work that waits until somebody runs it."""

    def __init__(self, gpu: FakeGPU) -> None:
        self.work: deque[Any] = deque()
        self._captured: list[Any] | None = None
        #: Its number.
        self.ptr = len(gpu.streams)
        gpu.streams.append(self)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass

    def begin_capture(self, mode: int) -> None:
        assert self._captured is None
        self._captured = []

    def end_capture(self) -> Graph:
        if self._captured is None:
            raise CUDARuntimeError("nothing is captured")
        captured, self._captured = self._captured, None
        return Graph(captured)

    def wait_event(self, event: Event) -> None:
        assert self._captured is None
        self.work.append(("wait", event))

    def put(self, act: Callable[[], Any]) -> None:
        (self.work if self._captured is None else self._captured).append(act)

    def run_one(self) -> bool:
        """Whether something could run."""
        if not self.work or (isinstance(self.work[0], tuple) and not self.work[0][1].done):
            return False
        first = self.work.popleft()
        if isinstance(first, Event):
            first.done = True
        elif not isinstance(first, tuple):
            first()
        return True
