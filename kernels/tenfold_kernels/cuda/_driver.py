"""A GPU by the CUDA driver: CuPy has memory, streams and cuBLAS, Numba compiles kernels, cuDNN's front end convolves.

Decision 0120 says why these. A kernel's function is compiled to PTX once for its types and the GPU's capability, and
kept on disk (_ptx.py); a launch passes pointers and numbers, which costs a third of a launch with Numba's arrays.
Imported where there is a CUDA driver; needs the extra `cuda`.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, TypeVar

import cupy  # type: ignore[import-not-found, unused-ignore]
import numpy as np
from cupy.cuda import runtime as cuda  # type: ignore[import-not-found, unused-ignore]

from tenfold_core import errors
from tenfold_kernels.cuda import _convolutions, _ptx
from tenfold_kernels.cuda._arrays import DeviceArray
from tenfold_kernels.cuda._recording import NotReplayableError, undo

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_kernels.cuda._launch import Kernel
    from tenfold_kernels.cuda._runtime import Libraries
    from tenfold_kernels.cuda._variables import DeviceVariable

T = TypeVar("T")

#: Copies to the host of at least so many bytes go into pinned memory, which the GPU writes itself, at twice the speed.
_PINNED_FROM = 64 << 10
#: Share of the memory that a process may take: the rest is the driver's, the display's, the libraries'.
_MOST_OF_MEMORY = 0.95
#: The same for a fraction of one's own.
MEMORY_FRACTION = "TENFOLD_GPU_MEMORY_FRACTION"
#: Blocks of a grid-stride loop for each multiprocessor: enough to hide the memory's latency.
_BLOCKS_A_MULTIPROCESSOR = 16


def device_count() -> int:
    """The GPUs that this process sees."""
    return int(cuda.getDeviceCount())


class _Buffer:
    __slots__ = ("memory", "nbytes", "pointer")

    def __init__(self, memory: Any, nbytes: int) -> None:
        self.memory, self.nbytes = memory, nbytes
        self.pointer = int(memory.ptr) if nbytes else 0


class _Recording:
    """A CUDA graph, with a stream on which it was captured and a pool for its memory."""

    def __init__(self, runtime: DriverRuntime) -> None:
        self._runtime = runtime
        self.stream = cupy.cuda.Stream(non_blocking=True)
        # what it frees and takes again is in its own order: nothing else may have it
        self.pool = cupy.cuda.MemoryPool()
        self.variables: dict[DeviceVariable, DeviceArray | None] = {}
        self.graph: Any = None

    def note(self, variable: DeviceVariable) -> None:
        self.variables.setdefault(variable, variable.held())

    def launch(self) -> None:
        self.graph.launch(stream=self._runtime.stream)


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
        self._lock = threading.RLock()
        with self._device:
            self.stream = cupy.cuda.Stream(non_blocking=True)
            self._pool = cupy.cuda.MemoryPool()
            self._pool.set_limit(size=self.memory)
        #: `.now` is what a thread records.
        self._recordings = threading.local()
        self.libraries: Libraries = _Libraries(self)

    # -- recording -----------------------------------------------------------------------------------------------------

    def recording(self) -> _Recording | None:
        found: _Recording | None = getattr(self._recordings, "now", None)
        return found

    def record(self, work: Callable[[], T]) -> tuple[T, _Recording]:
        with self._device:
            recording = self._recordings.now = _Recording(self)
            # others allocate and launch meanwhile
            recording.stream.begin_capture(mode=cuda.streamCaptureModeRelaxed)
            try:
                result = work()
            except BaseException:
                recording.stream.end_capture()
                undo(recording)
                raise
            finally:
                self._recordings.now = None
            recording.graph = recording.stream.end_capture()
        return result, recording

    def current_stream(self) -> Any:
        """Where this thread's launches go."""
        recording = self.recording()
        return self.stream if recording is None else recording.stream

    def _refuse_to_record(self, what: str) -> None:
        if self.recording() is not None:
            raise NotReplayableError(what)

    # -- memory --------------------------------------------------------------------------------------------------------

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if not nbytes:
            return DeviceArray(self, _Buffer(None, 0), tuple(shape), dtype)
        recording = self.recording()
        with self._device, self.current_stream():
            try:
                memory = (self._pool if recording is None else recording.pool).malloc(nbytes)
            except cupy.cuda.memory.OutOfMemoryError as error:
                raise self._exhausted(shape, dtype, nbytes) from error
        return DeviceArray(self, _Buffer(memory, nbytes), tuple(shape), dtype)

    def _exhausted(self, shape: Sequence[int], dtype: np.dtype[Any], nbytes: int) -> errors.OpError:
        used, kept = self.memory_info()
        return errors.ResourceExhaustedError(
            None,
            None,
            f"OOM when allocating tensor with shape[{','.join(map(str, shape))}] and type {dtype.name} on {self.name}: "
            f"{nbytes} bytes are asked for, {used} of {self.memory} are in use, {kept} are kept by this process.",
        )

    def memory_info(self) -> tuple[int, int]:
        return int(self._pool.used_bytes()), int(self._pool.total_bytes())

    # -- copies --------------------------------------------------------------------------------------------------------

    def to_device(self, array: np.ndarray[Any, np.dtype[Any]]) -> DeviceArray:
        self._refuse_to_record("a copy from the host")
        source = np.ascontiguousarray(array)
        out = self.empty(array.shape, array.dtype)
        if source.nbytes:
            with self._device:
                cuda.memcpyAsync(
                    pointer_of(out), source.ctypes.data, source.nbytes, cuda.memcpyHostToDevice, self.stream.ptr
                )
                # pageable memory has been read when the call returns; the caller may change it
        return out

    def to_host(self, array: DeviceArray) -> np.ndarray[Any, np.dtype[Any]]:
        self._refuse_to_record("a copy to the host")
        if array.nbytes >= _PINNED_FROM:
            pinned = cupy.cuda.alloc_pinned_memory(array.nbytes)
            out = np.frombuffer(pinned, array.dtype, array.size).reshape(array.shape)
        else:
            out = np.empty(array.shape, array.dtype)
        with self._device:
            if array.nbytes:
                cuda.memcpyAsync(
                    out.ctypes.data, pointer_of(array), array.nbytes, cuda.memcpyDeviceToHost, self.stream.ptr
                )
            self.synchronize()
        return out

    def copy(self, source: DeviceArray, target: DeviceArray) -> None:
        if not source.nbytes:
            return
        other = source.runtime
        assert isinstance(other, DriverRuntime)
        with self._device:
            if other is not self:
                self._refuse_to_record("a copy from another GPU")
                event = cupy.cuda.Event(disable_timing=True)
                event.record(other.stream)
                self.stream.wait_event(event)
                stream = self.current_stream().ptr
                cuda.memcpyPeerAsync(
                    pointer_of(target), self.index, pointer_of(source), other.index, source.nbytes, stream
                )
                # the source's memory must not be used again before it has been read
                done = cupy.cuda.Event(disable_timing=True)
                done.record(self.stream)
                other.stream.wait_event(done)
                return
            stream = self.current_stream().ptr
            cuda.memcpyAsync(
                pointer_of(target), pointer_of(source), source.nbytes, cuda.memcpyDeviceToDevice, stream
            )

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
            with self._lock, self._device:
                module = cupy.cuda.function.Module()
                text, name = _ptx.of(kernel, self.compute_capability)
                module.load(text)
                function = kernel.compiled[self.index] = module.get_function(name)
        given = tuple(
            [
                np.uintp(pointer_of(each)) if type(each) is DeviceArray else _number(each, kind)
                for each, kind in zip(arguments, kernel.types, strict=True)
            ]
        )
        with self._device:
            function((blocks,), (threads,), given, shared_mem=shared_bytes, stream=self.current_stream())

    def synchronize(self) -> None:
        self._refuse_to_record("a wait for the GPU")
        try:
            self.stream.synchronize()
        except cuda.CUDARuntimeError as error:
            raise errors.InternalError(None, None, f"{self.name} failed: {error}") from error


def pointer_of(array: DeviceArray) -> int:
    """Where the elements begin, as a number."""
    buffer = array.buffer
    assert isinstance(buffer, _Buffer)
    return buffer.pointer + array.offset


def _number(value: Any, kind: str) -> Any:
    return np.dtype("bool" if kind == "boolean" else kind).type(value)


def as_cupy(array: DeviceArray) -> Any:
    """The array as CuPy's, over the same memory."""
    buffer = array.buffer
    assert isinstance(buffer, _Buffer)
    if not buffer.nbytes:
        return cupy.empty(array.shape, array.dtype)
    pointer = cupy.cuda.MemoryPointer(buffer.memory.mem, buffer.pointer - buffer.memory.mem.ptr + array.offset)
    return cupy.ndarray(array.shape, array.dtype, memptr=pointer)


class _Libraries(_convolutions.Convolutions):
    """cuBLAS, and cuDNN by its front end."""

    def __init__(self, runtime: DriverRuntime) -> None:
        super().__init__(runtime)
        self._runtime = runtime

    def matmul(
        self,
        a: DeviceArray,
        b: DeviceArray,
        out: DeviceArray,
        transpose_a: bool = False,
        transpose_b: bool = False,
        accumulate: bool = False,
    ) -> None:
        x, y, target = as_cupy(a), as_cupy(b), as_cupy(out)
        with self._runtime._device, self._runtime.current_stream():
            if target.size and not x.shape[-1 if not transpose_a else -2]:
                self._runtime.zero(out)
            elif target.ndim == 2:
                one_way = {False: "N", True: "T"}
                beta = 1.0 if accumulate else 0.0
                cupy.cublas.gemm(one_way[transpose_a], one_way[transpose_b], x, y, out=target, beta=beta)
            else:
                x = x.swapaxes(-1, -2) if transpose_a else x
                y = y.swapaxes(-1, -2) if transpose_b else y
                cupy.matmul(x, y, out=target)
