"""A GPU by the CUDA driver: CuPy has memory, streams and launches, Numba compiles the kernels, cuBLAS multiplies,
cuDNN's front end convolves.

Decision 0120 says why these. A kernel's function is compiled once for its types and the GPU's capability, and kept on
disk (_ptx.py); a launch passes pointers and numbers.
Imported where there is a CUDA driver; needs the extra `cuda`.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING, Any, TypeVar

import cupy  # type: ignore[import-not-found, unused-ignore]
import numpy as np
from cupy.cuda import runtime as cuda  # type: ignore[import-not-found, unused-ignore]

from tenfold_core import errors
from tenfold_kernels.cuda import _convolutions, _products, _ptx
from tenfold_kernels.cuda._arrays import DeviceArray
from tenfold_kernels.cuda._begun import RecordedCopy
from tenfold_kernels.cuda._holders import out_of_memory
from tenfold_kernels.cuda._host_copies import HostCopies, Lane
from tenfold_kernels.cuda._peers import Peers
from tenfold_kernels.cuda._pointers import PoolBuffer, pointer_of
from tenfold_kernels.cuda._recording import NotReplayableError, Recording, give_back, undo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tenfold_kernels.cuda._begun import BegunCopy
    from tenfold_kernels.cuda._launch import Kernel
    from tenfold_kernels.cuda._runtime import Libraries

T = TypeVar("T")

#: Share of the memory that a process may take: the rest is the driver's, the display's, the libraries'.
_MOST_OF_MEMORY = 0.95
#: The same for a fraction of one's own.
MEMORY_FRACTION = "TENFOLD_GPU_MEMORY_FRACTION"
#: Blocks of a grid-stride loop for each multiprocessor: enough to hide the memory's latency.
_BLOCKS_A_MULTIPROCESSOR = 16

#: A recording is no more than one graph for so many launches: a graph's launch costs as much as some of them.
_LAUNCHES_BETWEEN_COPIES = 16


def device_count() -> int:
    """The GPUs that this process sees."""
    return int(cuda.getDeviceCount())


class _Recording(Recording):
    """A CUDA graph, with a stream on which it was captured and a pool for its memory."""

    def __init__(self, runtime: DriverRuntime, allocate: Callable[[int], Any]) -> None:
        """`allocate` gives memory of the GPU's pool, in the order of its stream."""
        super().__init__(runtime)
        self._runtime = runtime
        self.stream = cupy.cuda.Stream(non_blocking=True)
        #: What the pool has got, until the recording is gone: kernels write there though nobody holds it, and a pool
        #: that has no more room gives what is free to the driver.
        blocks: list[Any] = []

        def take(nbytes: int) -> Any:
            # knows no recording: one that is forgotten gives its memory back at once
            blocks.append(allocate(nbytes))
            return blocks[-1]

        # what it frees and takes again is in its own order: nothing else may have it
        self.pool = cupy.cuda.MemoryPool(take)
        #: In order: graphs, and copies to the host (array, what the recording gives for it).
        self._steps: list[Any] = []
        self._to_copy: list[tuple[DeviceArray, RecordedCopy]] = []
        #: Events after the copies of the last launch.
        self._copied: list[Any] = []
        #: Launches since the capture began.
        self._launched = 0
        #: What graphs refer to and others may forget: compiled kernels, cuDNN's plans.
        self._used: list[Any] = []

    def __del__(self) -> None:
        # what its copies still read is anybody's next
        with contextlib.suppress(cuda.CUDARuntimeError):
            for event in self._copied:
                self._runtime.lane.wait_event(event)

    def begin(self) -> None:
        # others allocate and launch meanwhile
        self.stream.begin_capture(mode=cuda.streamCaptureModeRelaxed)
        self._launched = 0

    def end(self) -> None:
        """Ends the capture. Raises NotReplayableError where something could not be captured."""
        try:
            self._steps.append(self.stream.end_capture())
        except cuda.CUDARuntimeError as error:
            raise NotReplayableError(f"a capture that failed: {error}") from error
        self._steps.append(self._to_copy)
        self._to_copy = []

    def note_launch(self, what: Any) -> None:
        """Something is launched: it, a compiled kernel or a plan, must stay as long as the graph."""
        self._launched += 1
        if what is not None:
            self._used.append(what)

    def begin_to_host(self, array: DeviceArray) -> RecordedCopy:
        """A copy that each launch begins, no earlier than what has been recorded, and not much later: between two
        graphs, of which there are few.
        """
        if self.is_lent(array.buffer):
            kept = self._runtime.empty(array.shape, array.dtype)
            self._runtime.copy(array, kept)
            array = kept
        made = RecordedCopy()
        # what holds memory here, nobody else gets in the recording
        self._to_copy.append((array, made))
        if self._launched >= _LAUNCHES_BETWEEN_COPIES:
            self.end()
            self.begin()
        return made

    def launch(self) -> None:
        runtime, kernels = self._runtime, self._runtime.lane
        for event in self._copied:
            # the arrays are written again
            kernels.wait_event(event)
        self._copied.clear()
        for step in self._steps:
            if not isinstance(step, list):
                step.launch(stream=runtime.stream)
                continue
            for array, made in step:
                made.now = begun = runtime.copies.begin_to_host(array)
                self._copied.append(begun.event)


class DriverRuntime:
    """See _runtime.py."""

    block_threads, reduce_threads = 256, 256

    def __init__(self, index: int, share: float | None = None) -> None:
        """`share` is of the memory, for this process."""
        self.index = index
        properties = cuda.getDeviceProperties(index)
        self.name = properties["name"].decode()
        self.compute_capability = int(properties["major"]), int(properties["minor"])
        fraction = share or float(os.environ.get(MEMORY_FRACTION, _MOST_OF_MEMORY))
        self.memory = int(properties["totalGlobalMem"] * min(fraction, _MOST_OF_MEMORY))
        self.most_threads = int(properties["multiProcessorCount"]) * _BLOCKS_A_MULTIPROCESSOR * self.block_threads
        self._device = cupy.cuda.Device(index)
        self._peers = Peers(cuda, index)
        self._lock = threading.RLock()
        with self._device:
            self.stream = cupy.cuda.Stream(non_blocking=True)
            self._pool = cupy.cuda.MemoryPool()
            self._pool.set_limit(size=self.memory)
        self.lane = Lane(self._device, self.stream)
        self.copies = HostCopies(self, self._device)
        #: `.now` is what a thread records.
        self._recordings = threading.local()
        self.libraries: Libraries = _Libraries(self)

    # -- recording -----------------------------------------------------------------------------------------------------

    def recording(self) -> _Recording | None:
        found: _Recording | None = getattr(self._recordings, "now", None)
        return found

    def record(self, work: Callable[[], T]) -> tuple[T, _Recording]:
        with self._device:
            recording = _Recording(self, self._lasting)
            recording.begin()
            self._recordings.now = recording
            try:
                result = work()
                recording.end()
            except BaseException:
                # a capture that the error has broken cannot be ended either
                with contextlib.suppress(cuda.CUDARuntimeError):
                    recording.stream.end_capture()
                undo(recording)
                raise
            finally:
                self._recordings.now = None
        return result, recording

    def current_stream(self) -> Any:
        """Where this thread's launches go."""
        recording = self.recording()
        return self.stream if recording is None else recording.stream

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Libraries that are called inside use this GPU and the stream of this thread."""
        self.note_launch()
        with self._device, self.current_stream():
            yield

    def note_launch(self, what: Any = None) -> None:
        """Something is launched, by what is given, which a recording keeps."""
        recording = self.recording()
        if recording is not None:
            recording.note_launch(what)

    def _refuse_to_record(self, what: str) -> None:
        if self.recording() is not None:
            raise NotReplayableError(what)

    # -- memory --------------------------------------------------------------------------------------------------------

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if not nbytes:
            return DeviceArray(self, PoolBuffer(None, 0), tuple(shape), dtype)
        with self.exhausted_by(shape, dtype):
            return DeviceArray(self, PoolBuffer(self.allocate(nbytes), nbytes), tuple(shape), dtype)

    def allocate(self, nbytes: int) -> Any:
        """Memory of the pool, or of what this thread records. Raises CuPy's OutOfMemoryError."""
        recording = self.recording()
        pool = self._pool if recording is None else recording.pool
        with self._device, self.current_stream():
            try:
                return pool.malloc(nbytes)
            except cupy.cuda.memory.OutOfMemoryError:
                # both, and no more than once
                if not any([self.copies.give_back(), give_back(self)]):
                    raise
                return pool.malloc(nbytes)

    @contextlib.contextmanager
    def exhausted_by(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Iterator[None]:
        """What is asked for inside is for that tensor, says the error where there is no room."""
        try:
            yield
        except cupy.cuda.memory.OutOfMemoryError as error:
            raise out_of_memory(self, shape, dtype) from error

    def memory_info(self) -> tuple[int, int]:
        with self._device:
            return int(self._pool.used_bytes()), int(self._pool.total_bytes())

    def lasting(self, nbytes: int) -> DeviceArray:
        """Memory that is not given back, and belongs to no recording."""
        dtype = np.dtype(np.uint8)
        with self.exhausted_by((nbytes,), dtype):
            return DeviceArray(self, PoolBuffer(self._lasting(nbytes), nbytes), (nbytes,), dtype)

    def _lasting(self, nbytes: int) -> Any:
        with self._device, self.stream:
            return self._pool.malloc(nbytes)

    # -- copies --------------------------------------------------------------------------------------------------------

    def to_device(self, array: np.ndarray[Any, np.dtype[Any]]) -> DeviceArray:
        self._refuse_to_record("a copy from the host")
        return self.copies.to_device(array)

    def keep(self, array: np.ndarray[Any, np.dtype[Any]]) -> DeviceArray:
        recording, self._recordings.now = self.recording(), None
        try:
            # on the stream of all, in memory of all
            made = self.copies.to_device(array)
        finally:
            self._recordings.now = recording
        if recording is not None:
            recording.kept.append(made)
        return made

    def to_host(self, array: DeviceArray) -> np.ndarray[Any, np.dtype[Any]]:
        self._refuse_to_record("a copy to the host")
        return self.copies.to_host(array)

    def begin_to_host(self, array: DeviceArray) -> BegunCopy | RecordedCopy:
        recording = self.recording()
        return self.copies.begin_to_host(array) if recording is None else recording.begin_to_host(array)

    def copy(self, source: DeviceArray, target: DeviceArray) -> None:
        if not source.nbytes:
            return
        other = source.runtime
        assert isinstance(other, DriverRuntime)
        if other is not self:
            self._refuse_to_record("a copy from another GPU")
            ready = other.lane.record()
        with self._device:
            if other is not self:
                self._peers.reach(other.index)
                self.lane.wait_event(ready)
                cuda.memcpyPeerAsync(
                    pointer_of(target), self.index, pointer_of(source), other.index, source.nbytes, self.stream.ptr
                )
                # the source's memory must not be used again before it has been read
                other.lane.wait_event(self.lane.record())
                return
            self.note_launch()
            stream = self.current_stream().ptr
            cuda.memcpyAsync(pointer_of(target), pointer_of(source), source.nbytes, cuda.memcpyDeviceToDevice, stream)

    def zero(self, target: DeviceArray) -> None:
        if target.nbytes:
            with self._device:
                cuda.memsetAsync(pointer_of(target), 0, target.nbytes, self.current_stream().ptr)

    # -- launches ------------------------------------------------------------------------------------------------------

    def launch(
        self, kernel: Kernel, blocks: int, threads: int, arguments: Sequence[Any], shared_bytes: int = 0
    ) -> None:
        function = kernel.compiled.get(self.index)
        if function is None:
            function = self._load(kernel)
        given = tuple(
            [
                np.uintp(pointer_of(each)) if type(each) is DeviceArray else _number(each, kind)
                for each, kind in zip(arguments, kernel.types, strict=True)
            ]
        )
        self.note_launch(function)
        with self._device:
            function((blocks,), (threads,), given, shared_mem=shared_bytes, stream=self.current_stream())

    def _load(self, kernel: Kernel) -> Any:
        """What a launch calls. Blocks while it is compiled, by whichever thread is the first."""
        with self._lock, self._device:
            function = kernel.compiled.get(self.index)
            if function is None:
                code, name = _ptx.of(kernel, self.compute_capability)
                module = cupy.cuda.function.Module()
                module.load(code)
                function = kernel.compiled[self.index] = module.get_function(name)
            return function

    def synchronize(self) -> None:
        self._refuse_to_record("a wait for the GPU")
        self.wait(self.stream)

    def wait(self, what: Any) -> None:
        """For an event, or for all that is on a stream."""
        try:
            what.synchronize()
        except cuda.CUDARuntimeError as error:
            raise errors.internal(f"{self.name} failed: {error}") from error


def _number(value: Any, kind: str) -> Any:
    return np.dtype("bool" if kind == "boolean" else kind).type(value)


class _Libraries(_convolutions.Convolutions):
    """cuBLAS, and cuDNN by its front end."""

    def __init__(self, runtime: DriverRuntime) -> None:
        super().__init__(runtime)
        self.matmul = _products.Products(runtime, int(cuda.runtimeGetVersion()) // 1000).matmul
