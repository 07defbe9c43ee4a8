"""A simulated GPU: Numba's simulator runs the kernels thread by thread, on arrays of the host.

For machines without a GPU: every kernel can be tried, on small shapes. What libraries compute on a GPU, NumPy does
here. Memory is counted as on a GPU, so that running out of it can be tried too.
"""

from __future__ import annotations

import os
import sys
import threading
import types
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tenfold_kernels.cuda._arrays import DeviceArray
from tenfold_kernels.cuda._begun import RecordedCopy
from tenfold_kernels.cuda._holders import out_of_memory
from tenfold_kernels.cuda._recording import NotReplayableError, Recording, give_back, undo
from tenfold_kernels.cuda._simulated_libraries import SimulatedLibraries
from tenfold_kernels.cuda._simulated_memory import SimulatedBuffer, host_view

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_kernels.cuda._begun import BegunCopy
    from tenfold_kernels.cuda._launch import Kernel
    from tenfold_kernels.cuda._runtime import Libraries

T = TypeVar("T")

#: Bytes that a simulated GPU has, unless this variable says another number.
_MEMORY = 1 << 30
MEMORY_BYTES = "TENFOLD_SIMULATED_GPU_BYTES"
#: Seconds that a simulated thread runs before another one may.
_TURN = 2e-5
#: Numba's simulator runs one kernel at a time.
_one_kernel = threading.Lock()


class _Recording(Recording):
    """What is to be done, in order; nothing has been."""

    def __init__(self, runtime: SimulatedRuntime) -> None:
        super().__init__(runtime)
        self.work: list[Callable[[], None]] = []

    def launch(self) -> None:
        for work in self.work:
            work()


class _Done:
    """A copy to the host that was over when it began."""

    def __init__(self, array: np.ndarray[Any, np.dtype[Any]]) -> None:
        self._array = array

    def to_host(self) -> np.ndarray[Any, np.dtype[Any]]:
        return self._array


class SimulatedRuntime:
    """See _runtime.py."""

    block_threads, most_threads, reduce_threads = 2, 4, 4
    compute_capability = (9, 0)

    def __init__(self, index: int, share: float | None = None) -> None:
        """`share` is of the memory, for this process."""
        self.index, self.name = index, f"simulated GPU {index}"
        self.memory = int(int(os.environ.get(MEMORY_BYTES, _MEMORY)) * (share or 1.0))
        self.libraries: Libraries = _Recorded(self._do, SimulatedLibraries())
        #: Re-entrant: a buffer may be collected, and given back, while another one is being made.
        self._lock = threading.RLock()
        self._used = 0
        #: `.now` is what a thread records.
        self._recordings = threading.local()

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if not self._take(nbytes) and not (give_back(self) and self._take(nbytes)):
            raise out_of_memory(self, shape, dtype)
        return DeviceArray(self, SimulatedBuffer.of(self.give_back, nbytes), tuple(shape), dtype)

    def _take(self, nbytes: int) -> bool:
        with self._lock:
            there_is_room = self._used + nbytes <= self.memory
            if there_is_room:
                self._used += nbytes
        return there_is_room

    def give_back(self, nbytes: int) -> None:
        """A buffer is gone."""
        with self._lock:
            self._used -= nbytes

    def recording(self) -> _Recording | None:
        found: _Recording | None = getattr(self._recordings, "now", None)
        return found

    def record(self, work: Callable[[], T]) -> tuple[T, _Recording]:
        recording = self._recordings.now = _Recording(self)
        try:
            return work(), recording
        except BaseException:
            undo(recording)
            raise
        finally:
            self._recordings.now = None

    def _do(self, work: Callable[[], None]) -> None:
        """Now, or when the recording is launched."""
        recording = self.recording()
        if recording is None:
            work()
        else:
            recording.work.append(work)

    def _refuse_to_record(self, what: str) -> None:
        if self.recording() is not None:
            raise NotReplayableError(what)

    def to_device(self, array: np.ndarray[Any, np.dtype[Any]]) -> DeviceArray:
        self._refuse_to_record("a copy from the host")
        return self.keep(array)

    def keep(self, array: np.ndarray[Any, np.dtype[Any]]) -> DeviceArray:
        out = self.empty(array.shape, array.dtype)
        host_view(out)[...] = array
        return out

    def to_host(self, array: DeviceArray) -> np.ndarray[Any, np.dtype[Any]]:
        self._refuse_to_record("a copy to the host")
        return host_view(array).copy()

    def begin_to_host(self, array: DeviceArray) -> BegunCopy | RecordedCopy:
        recording = self.recording()
        if recording is None:
            return _Done(self.to_host(array))
        # a variable that is written later keeps what its readers have
        made, view = RecordedCopy(), host_view(array.frozen())

        def work() -> None:
            made.now = _Done(view.copy())

        recording.work.append(work)
        return made

    def copy(self, source: DeviceArray, target: DeviceArray) -> None:
        # views of the bytes as they are now: what is recorded keeps its memory, as a CUDA graph keeps its pool
        given, made = host_view(source).reshape(-1), host_view(target).reshape(-1)
        self._do(lambda: np.copyto(made, given))

    def zero(self, target: DeviceArray) -> None:
        view = host_view(target).reshape(-1).view(np.uint8)
        self._do(lambda: view.fill(0))

    def launch(
        self, kernel: Kernel, blocks: int, threads: int, arguments: Sequence[Any], shared_bytes: int = 0
    ) -> None:
        assert len(arguments) == len(kernel.types), (kernel.name, kernel.types)
        given = [_argument(each, kind) for each, kind in zip(arguments, kernel.types, strict=True)]
        self._do(lambda: self._run(kernel, blocks, threads, given, shared_bytes))

    def _run(self, kernel: Kernel, blocks: int, threads: int, given: Sequence[Any], shared_bytes: int) -> None:
        with _one_kernel:
            run = kernel.compiled.get("simulated")
            if run is None:
                from numba import cuda

                _one_array_for_a_block()
                run = kernel.compiled["simulated"] = cuda.jit(_quiet(kernel.function))
            # A thread that waits for the others of its block gets its turn soon: else each wait takes 5 ms.
            interval = sys.getswitchinterval()
            sys.setswitchinterval(_TURN)
            try:
                run[blocks, threads, 0, shared_bytes](*given)
            finally:
                sys.setswitchinterval(interval)

    def synchronize(self) -> None:
        self._refuse_to_record("a wait for the GPU")

    def memory_info(self) -> tuple[int, int]:
        return self._used, self._used


def _argument(value: Any, kind: str) -> Any:
    if kind.endswith("*"):
        assert type(value) is DeviceArray, f"{kind} is wanted, {type(value).__name__} given"
        dtype = np.dtype("bool" if kind == "boolean*" else kind[:-1])
        assert value.dtype == dtype, f"{kind} is wanted, {value.dtype} given"
        flat = host_view(value).reshape(-1)
        return flat.view(np.uint8) if kind == "boolean*" else flat
    assert not isinstance(value, DeviceArray), kind
    return bool(value) if kind == "boolean" else np.dtype(kind).type(value)


@cache
def _one_array_for_a_block() -> None:
    """Numba's simulator gives two threads of a block that ask at once for a shared array an array each: give them one.

    As there, an array is known by the line that asks for it.
    """
    from numba.cuda.simulator import kernelapi

    numbas = kernelapi.FakeCUDAShared

    class Shared(numbas):  # type: ignore[misc, valid-type]
        def __init__(self, dynamic_bytes: int) -> None:
            super().__init__(dynamic_bytes)
            self._arrays: dict[tuple[Any, int], Any] = {}

        def array(self, shape: Any, dtype: Any) -> Any:
            if shape == 0:
                return super().array(shape, dtype)
            caller = sys._getframe(1)
            place = caller.f_code, caller.f_lineno
            found = self._arrays.get(place)
            # setdefault() is one act: the first array is everybody's
            return self._arrays.setdefault(place, numbas(0).array(shape, dtype)) if found is None else found

    kernelapi.FakeCUDAShared = Shared


def _quiet(function: Callable[..., None]) -> Callable[..., None]:
    """The function without NumPy's warnings, which threads do not take over from who starts them. It has the globals of
    the function, where the simulator looks for the module `cuda`.
    """
    errstate = np.errstate  # the globals are those of the function

    def template(*arguments: Any) -> None:
        with errstate(all="ignore"):
            function(*arguments)

    return types.FunctionType(template.__code__, function.__globals__, function.__name__, None, template.__closure__)


class _Recorded:
    """Hands calls on, now or when the recording is launched."""

    def __init__(self, do: Callable[[Callable[[], None]], None], libraries: SimulatedLibraries) -> None:
        self._do, self._libraries = do, libraries

    def __getattr__(self, name: str) -> Callable[..., None]:
        function = getattr(self._libraries, name)

        def call(*arguments: Any, **named: Any) -> None:
            given = [each.frozen() if type(each) is DeviceArray else each for each in arguments]
            self._do(partial(function, *given, **named))

        return call
