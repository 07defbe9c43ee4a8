"""A GPU that is none: Numba's simulator runs the kernels thread by thread, on arrays of the host.

For machines without a GPU: every kernel can be tried, on small shapes. What libraries compute on a GPU, NumPy does
here. Memory is counted as on a GPU, so that running out of it can be tried too.
"""

from __future__ import annotations

import os
import sys
import threading
import types
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tenfold_core import errors
from tenfold_kernels.cuda._arrays import DeviceArray
from tenfold_kernels.cuda._recording import NotReplayableError, undo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tenfold_kernels.cuda._launch import Kernel
    from tenfold_kernels.cuda._runtime import Convolution, Libraries
    from tenfold_kernels.cuda._variables import DeviceVariable

T = TypeVar("T")

#: Bytes that a simulated GPU has, unless this variable says another number.
_MEMORY = 1 << 30
MEMORY_BYTES = "TENFOLD_SIMULATED_GPU_BYTES"
#: Seconds that a simulated thread runs before another one may.
_TURN = 2e-5
#: Numba's simulator runs one kernel at a time.
_one_kernel = threading.Lock()


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
        #: Re-entrant: a buffer may be collected, and given back, while another one is being made.
        self._lock = threading.RLock()
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
        flat = host_view(value).reshape(-1)
        return flat.view(np.uint8) if kind == "boolean*" else flat
    assert not isinstance(value, DeviceArray), kind
    return bool(value) if kind == "boolean" else np.dtype(kind).type(value)


def _quiet(function: Callable[..., None]) -> Callable[..., None]:
    """The function without NumPy's warnings, which threads do not take over from who starts them. It has the globals of
    the function, where the simulator looks for the module `cuda`.
    """
    errstate = np.errstate

    errstate = np.errstate  # the globals are those of the function

    def template(*arguments: Any) -> None:
        with errstate(all="ignore"):
            function(*arguments)

    return types.FunctionType(template.__code__, function.__globals__, function.__name__, None, template.__closure__)


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
        conjugate: bool = False,
    ) -> None:
        x, y = (
            _turned(_wide(each), conjugate) if transpose else _wide(each)
            for each, transpose in ((a, transpose_a), (b, transpose_b))
        )
        target = host_view(out)
        with np.errstate(all="ignore"):
            product = x @ y
            target[...] = _wide(out) + product if accumulate else product

    def conv2d(self, x: DeviceArray, filters: DeviceArray, out: DeviceArray, how: Convolution) -> None:
        image, weights, total = _padded(_image(x, how), how), _filters(filters, how), _image(out, how)
        total[...] = 0
        for tap, window, channels, kernels in _taps(image, weights, total, how):
            total[..., kernels] += window[..., channels] @ weights[tap][:, kernels]
        _image_view(out, how)[...] = total

    def conv2d_input_gradient(
        self, gradient: DeviceArray, filters: DeviceArray, out: DeviceArray, how: Convolution
    ) -> None:
        padded = _padded(_image(out, how), how)
        padded[...] = 0
        given, weights = _image(gradient, how), _filters(filters, how)
        for tap, window, channels, kernels in _taps(padded, weights, given, how):
            window[..., channels] += given[..., kernels] @ weights[tap][:, kernels].T
        down, across = how.pads
        target = _image_view(out, how)
        target[...] = padded[:, down : down + target.shape[1], across : across + target.shape[2]]

    def conv2d_filter_gradient(self, x: DeviceArray, gradient: DeviceArray, out: DeviceArray, how: Convolution) -> None:
        image, given, total = _padded(_image(x, how), how), _image(gradient, how), _filters(out, how)
        for tap, window, channels, kernels in _taps(image, total, given, how):
            rows = window[..., channels].reshape(-1, total.shape[2])
            total[tap][:, kernels] = rows.T @ given[..., kernels].reshape(rows.shape[0], -1)
        _filters_view(out, how)[...] = total


def _wide(array: DeviceArray) -> Any:
    """Its elements, of what sums are computed in."""
    view = host_view(array)
    return view.astype(np.float32) if array.dtype.itemsize == 2 else view


def _turned(x: Any, conjugate: bool) -> Any:
    turned = x.swapaxes(-1, -2)
    return turned.conj() if conjugate else turned


def _image_view(array: DeviceArray, how: Convolution) -> Any:
    """An image, channels last whatever the layout."""
    view = host_view(array)
    return view if how.channels_last else view.transpose(0, 2, 3, 1)


def _image(array: DeviceArray, how: Convolution) -> Any:
    """The same as a copy, of what sums are computed in."""
    return _image_view(array, how).astype(np.float32 if array.dtype.itemsize == 2 else array.dtype)


def _filters_view(array: DeviceArray, how: Convolution) -> Any:
    """Filters as [R, S, C / groups, O]."""
    return host_view(array).transpose((1, 2, 3, 0) if how.channels_last else (2, 3, 1, 0))


def _filters(array: DeviceArray, how: Convolution) -> Any:
    return _filters_view(array, how).astype(np.float32 if array.dtype.itemsize == 2 else array.dtype)


def _padded(image: Any, how: Convolution) -> Any:
    down, across = how.pads
    return np.pad(image, ((0, 0), (down, down), (across, across), (0, 0)))


def _taps(image: Any, filters: Any, out: Any, how: Convolution) -> Iterator[tuple[Any, Any, slice, slice]]:
    """For each element of a filter and each group: its place, the elements of the image that it meets, the channels of
    the image and the kernels of that group.
    """
    rows, columns, depth, count = filters.shape
    _, height, width, _ = out.shape
    for r in range(rows):
        for s in range(columns):
            top, left = r * how.dilations[0], s * how.dilations[1]
            bottom, right = top + (height - 1) * how.strides[0] + 1, left + (width - 1) * how.strides[1] + 1
            window = image[:, top : bottom : how.strides[0], left : right : how.strides[1]]
            for group in range(how.groups):
                channels = slice(group * depth, (group + 1) * depth)
                kernels = slice(group * (count // how.groups), (group + 1) * (count // how.groups))
                yield (r, s), window, channels, kernels
