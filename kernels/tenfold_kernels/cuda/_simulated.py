"""A GPU that is none: Numba's simulator runs the kernels thread by thread, on arrays of the host.

For machines without a GPU: every kernel can be tried, on small shapes. What libraries compute on a GPU, NumPy does
here. Memory is counted as on a GPU, so that running out of it can be tried too.
"""

from __future__ import annotations

import os
import threading
import types
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tenfold_core import errors
from tenfold_kernels.cuda._arrays import DeviceArray
from tenfold_kernels.cuda._recording import NotReplayableError, undo

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_kernels.cuda._launch import Kernel
    from tenfold_kernels.cuda._runtime import Libraries
    from tenfold_kernels.cuda._variables import DeviceVariable

T = TypeVar("T")

#: Bytes that a simulated GPU has, unless this variable says another number.
_MEMORY = 1 << 30
MEMORY_BYTES = "TENFOLD_SIMULATED_GPU_BYTES"
#: Numba's simulator runs one kernel at a time.
_one_kernel = threading.Lock()

Pads = tuple[tuple[int, int], tuple[int, int]]


class _Buffer:
    def __init__(self, runtime: SimulatedRuntime, nbytes: int) -> None:
        self.nbytes = nbytes
        self.data = np.empty(nbytes, np.uint8)
        # what nobody has written must not look like zeros
        self.data.fill(0xA5)
        self._runtime = runtime

    def __del__(self) -> None:
        self._runtime.give_back(self.nbytes)


class _Recording:
    """What is to be done, in order; nothing has been."""

    def __init__(self) -> None:
        self.work: list[Callable[[], None]] = []
        self.variables: dict[DeviceVariable, DeviceArray | None] = {}

    def note(self, variable: DeviceVariable) -> None:
        self.variables.setdefault(variable, variable.held())

    def launch(self) -> None:
        for work in self.work:
            work()


class SimulatedRuntime:
    """See _runtime.py."""

    block_threads, most_threads, reduce_threads = 2, 4, 4
    compute_capability = (9, 0)

    def __init__(self, index: int, share: float | None = None) -> None:
        """`share` is of the memory, for this process."""
        self.index, self.name = index, f"simulated GPU {index}"
        self.memory = int(int(os.environ.get(MEMORY_BYTES, _MEMORY)) * (share or 1.0))
        self.libraries: Libraries = _Recorded(self._do, _Libraries())
        self._lock = threading.Lock()
        self._used = 0
        #: `.now` is what a thread records.
        self._recordings = threading.local()

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        with self._lock:
            if self._used + nbytes > self.memory:
                raise errors.ResourceExhaustedError(
                    None,
                    None,
                    f"OOM when allocating tensor with shape[{','.join(map(str, shape))}] and type {dtype.name} on "
                    f"{self.name}: {nbytes} bytes are asked for, {self._used} of {self.memory} are in use.",
                )
            self._used += nbytes
        return DeviceArray(self, _Buffer(self, nbytes), tuple(shape), dtype)

    def give_back(self, nbytes: int) -> None:
        """A buffer is gone."""
        with self._lock:
            self._used -= nbytes

    def recording(self) -> _Recording | None:
        found: _Recording | None = getattr(self._recordings, "now", None)
        return found

    def record(self, work: Callable[[], T]) -> tuple[T, _Recording]:
        recording = self._recordings.now = _Recording()
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
        out = self.empty(array.shape, array.dtype)
        host_view(out)[...] = array
        return out

    def to_host(self, array: DeviceArray) -> np.ndarray[Any, np.dtype[Any]]:
        self._refuse_to_record("a copy to the host")
        return host_view(array).copy()

    def copy(self, source: DeviceArray, target: DeviceArray) -> None:
        self._do(lambda: np.copyto(host_view(target).reshape(-1), host_view(source).reshape(-1)))

    def zero(self, target: DeviceArray) -> None:
        self._do(lambda: host_view(target).reshape(-1).view(np.uint8).fill(0))

    def launch(
        self, kernel: Kernel, blocks: int, threads: int, arguments: Sequence[Any], shared_bytes: int = 0
    ) -> None:
        assert len(arguments) == len(kernel.types), (kernel.name, kernel.types)
        given = [_argument(each, kind) for each, kind in zip(arguments, kernel.types, strict=True)]
        # views of the buffers: what is recorded keeps its memory, as a CUDA graph keeps its pool
        self._do(lambda: self._run(kernel, blocks, threads, given, shared_bytes))

    def _run(self, kernel: Kernel, blocks: int, threads: int, given: Sequence[Any], shared_bytes: int) -> None:
        with _one_kernel:
            run = kernel.compiled.get("simulated")
            if run is None:
                from numba import cuda

                run = kernel.compiled["simulated"] = cuda.jit(_quiet(kernel.function))
            run[blocks, threads, 0, shared_bytes](*given)

    def synchronize(self) -> None:
        self._refuse_to_record("a wait for the GPU")

    def memory_info(self) -> tuple[int, int]:
        return self._used, self._used


def host_view(array: DeviceArray) -> np.ndarray[Any, np.dtype[Any]]:
    """The array's elements where they are: of a simulated GPU only."""
    buffer = array.buffer
    assert isinstance(buffer, _Buffer)
    data = buffer.data[array.offset : array.offset + array.nbytes]
    return data.view(array.dtype).reshape(array.shape)


def _argument(value: Any, kind: str) -> Any:
    if kind.endswith("*"):
        assert type(value) is DeviceArray, f"{kind} is wanted, {type(value).__name__} given"
        dtype = np.dtype("bool" if kind == "boolean*" else kind[:-1])
        assert value.dtype == dtype, f"{kind} is wanted, {value.dtype} given"
        return host_view(value).reshape(-1)
    assert not isinstance(value, DeviceArray), kind
    return bool(value) if kind == "boolean" else np.dtype(kind).type(value)


def _quiet(function: Callable[..., None]) -> Callable[..., None]:
    """The function without NumPy's warnings, which threads do not take over from who starts them. It has the globals of
    the function, where the simulator looks for the module `cuda`.
    """

    errstate = np.errstate  # the globals are those of the function

    def template(*arguments: Any) -> None:
        with errstate(all="ignore"):
            function(*arguments)

    return types.FunctionType(
        template.__code__, function.__globals__, function.__name__, None, template.__closure__
    )


class _Recorded:
    """Hands calls on, now or when the recording is launched."""

    def __init__(self, do: Callable[[Callable[[], None]], None], libraries: _Libraries) -> None:
        self._do, self._libraries = do, libraries

    def __getattr__(self, name: str) -> Callable[..., None]:
        function = getattr(self._libraries, name)
        return lambda *arguments, **named: self._do(partial(function, *arguments, **named))


class _Libraries:
    """NumPy in place of cuBLAS and cuDNN."""

    def matmul(
        self,
        a: DeviceArray,
        b: DeviceArray,
        out: DeviceArray,
        transpose_a: bool = False,
        transpose_b: bool = False,
        accumulate: bool = False,
    ) -> None:
        x, y, target = host_view(a), host_view(b), host_view(out)
        with np.errstate(all="ignore"):
            product = (x.swapaxes(-1, -2) if transpose_a else x) @ (y.swapaxes(-1, -2) if transpose_b else y)
            target[...] = target + product if accumulate else product

    def conv2d(
        self,
        x: DeviceArray,
        filters: DeviceArray,
        out: DeviceArray,
        strides: tuple[int, int],
        dilations: tuple[int, int],
        pads: Pads,
        groups: int = 1,
    ) -> None:
        total = host_view(out)
        total[...] = 0
        for tap, window, group, channels, kernels in _taps(x, filters, out, strides, dilations, pads, groups):
            total[..., kernels] += window[..., channels] @ host_view(filters)[tap][:, kernels]
            del group

    def conv2d_input_gradient(
        self,
        gradient: DeviceArray,
        filters: DeviceArray,
        out: DeviceArray,
        strides: tuple[int, int],
        dilations: tuple[int, int],
        pads: Pads,
        groups: int = 1,
    ) -> None:
        padded = np.zeros(_padded_shape(out.shape, pads), out.dtype)
        for tap, window, _, channels, kernels in _taps(padded, filters, gradient, strides, dilations, None, groups):
            window[..., channels] += host_view(gradient)[..., kernels] @ host_view(filters)[tap][:, kernels].T
        host_view(out)[...] = _inside(padded, out.shape, pads)

    def conv2d_filter_gradient(
        self,
        x: DeviceArray,
        gradient: DeviceArray,
        out: DeviceArray,
        strides: tuple[int, int],
        dilations: tuple[int, int],
        pads: Pads,
        groups: int = 1,
    ) -> None:
        total = host_view(out)
        for tap, window, _, channels, kernels in _taps(x, out, gradient, strides, dilations, pads, groups):
            rows = window[..., channels].reshape(-1, out.shape[2])
            total[tap][:, kernels] = rows.T @ host_view(gradient)[..., kernels].reshape(rows.shape[0], -1)


def _padded_shape(shape: tuple[int, ...], pads: Pads) -> tuple[int, ...]:
    return shape[0], shape[1] + sum(pads[0]), shape[2] + sum(pads[1]), shape[3]


def _inside(padded: Any, shape: tuple[int, ...], pads: Pads) -> Any:
    return padded[:, pads[0][0] : pads[0][0] + shape[1], pads[1][0] : pads[1][0] + shape[2]]


def _taps(
    x: Any,
    filters: DeviceArray,
    out: DeviceArray,
    strides: tuple[int, int],
    dilations: tuple[int, int],
    pads: Pads | None,
    groups: int,
) -> Any:
    """For each element of a filter and each group: its place, the elements of padded x that it meets, the group, the
    channels of x and the kernels of that group.
    """
    rows, columns, depth, count = filters.shape
    if pads is not None:
        padded = np.zeros(_padded_shape(x.shape, pads), x.dtype)
        _inside(padded, x.shape, pads)[...] = host_view(x)
        x = padded
    _, height, width, _ = out.shape
    for r in range(rows):
        for s in range(columns):
            top, left = r * dilations[0], s * dilations[1]
            bottom, right = top + (height - 1) * strides[0] + 1, left + (width - 1) * strides[1] + 1
            window = x[:, top : bottom : strides[0], left : right : strides[1]]
            for group in range(groups):
                channels = slice(group * depth, (group + 1) * depth)
                kernels = slice(group * (count // groups), (group + 1) * (count // groups))
                yield (r, s), window, group, channels, kernels
