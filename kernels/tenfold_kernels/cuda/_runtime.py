"""What a GPU does for kernels: memory, copies, launches, and what libraries compute. One Runtime a GPU and process.

`runtime_of(device)` gives it by the name of a device. There are two: by the CUDA driver (_driver.py), and by Numba's
simulator where NUMBA_ENABLE_CUDASIM is 1 (_simulated.py), which this machine need not have a GPU for.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from tenfold_kernels.cuda._arrays import DeviceArray
    from tenfold_kernels.cuda._begun import BegunCopy, RecordedCopy
    from tenfold_kernels.cuda._launch import Kernel
    from tenfold_kernels.cuda._recording import Recording

T = TypeVar("T")

#: Numba's own variable.
SIMULATOR = "NUMBA_ENABLE_CUDASIM"
#: How many GPUs the simulator stands for.
SIMULATED_GPUS = "TENFOLD_SIMULATED_GPUS"


class Buffer(Protocol):
    """Some bytes of a GPU's memory. Given back when the last reference is gone."""

    #: What has the bytes; other buffers may have it too.
    memory: Any

    @property
    def nbytes(self) -> int: ...

    def alias(self) -> Buffer:
        """Another object for the same bytes."""
        ...

    def become(self, other: Buffer) -> None:
        """It has the bytes of another buffer from now on: what is launched with it next reads those."""
        ...


@dataclass(frozen=True, slots=True)
class Convolution:
    """How filters slide over images, along the height and the width."""

    strides: tuple[int, int]
    dilations: tuple[int, int]
    #: Zeros around the image, as many after it as before.
    pads: tuple[int, int]
    #: The channels, and the outputs, fall into so many.
    groups: int = 1
    #: Images are [N, H, W, C] and filters [O, R, S, C / groups]; else [N, C, H, W] and [O, C / groups, R, S].
    channels_last: bool = False


class Libraries(Protocol):
    """What is computed by libraries: products by cuBLAS, convolutions by cuDNN. All arrays are on one GPU."""

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
        """out[…, M, N] = a·b, or + a·b to `accumulate`. Leading dimensions are batches: a and b have those of out, or
        none, to serve all of them.

        Floating and complex types; what is transposed is conjugated too to `conjugate`. Sums of half and bfloat16 are
        float32's; float32 and complex64 are rounded to TF32 where _precision.py says so.
        """
        ...

    def conv2d(self, x: DeviceArray, filters: DeviceArray, out: DeviceArray, how: Convolution) -> None:
        """out = x by filters, cross-correlated. Nothing is empty. Floating types; TF32 as in `matmul`."""
        ...

    def conv2d_input_gradient(
        self, gradient: DeviceArray, filters: DeviceArray, out: DeviceArray, how: Convolution
    ) -> None:
        """out has the shape of conv2d's x, `gradient` that of its out."""
        ...

    def conv2d_filter_gradient(self, x: DeviceArray, gradient: DeviceArray, out: DeviceArray, how: Convolution) -> None:
        """out has the shape of conv2d's filters, `gradient` that of its out."""
        ...


class Runtime(Protocol):
    """One GPU. Any thread; calls of several threads are put on the stream one after another."""

    index: int
    #: What an operator would call it, such as "NVIDIA H200".
    name: str
    #: In bytes.
    memory: int
    compute_capability: tuple[int, int]
    #: Threads that a kernel without shared memory is launched with: in a block, and at most in all blocks.
    block_threads: int
    most_threads: int
    #: Threads of a block that reduces; a power of two.
    reduce_threads: int
    libraries: Libraries

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
        """Memory whose contents are anything. Raises ResourceExhaustedError saying what there is and who has it."""
        ...

    def to_device(self, array: np.ndarray[Any, np.dtype[Any]]) -> DeviceArray:
        """A copy of the host's elements. The caller may change `array` once this returns."""
        ...

    def keep(self, array: np.ndarray[Any, np.dtype[Any]]) -> DeviceArray:
        """`to_device`, which while this thread records is made now and the same in all launches."""
        ...

    def to_host(self, array: DeviceArray) -> np.ndarray[Any, np.dtype[Any]]:
        """A copy in the host's memory, writable and the caller's own. Blocks until it is there."""
        ...

    def begin_to_host(self, array: DeviceArray) -> BegunCopy | RecordedCopy:
        """Begins what `to_host` does, beside what is launched next. Does not wait; a RecordedCopy while it records."""
        ...

    def copy(self, source: DeviceArray, target: DeviceArray) -> None:
        """Copies all elements into `target`, of the same size; `source` may be another GPU's. Does not wait."""
        ...

    def zero(self, target: DeviceArray) -> None:
        """Sets all bytes to 0. Does not wait."""
        ...

    def launch(
        self, kernel: Kernel, blocks: int, threads: int, arguments: Sequence[Any], shared_bytes: int = 0
    ) -> None:
        """Puts a kernel on the stream. DeviceArrays are passed as pointers, others as numbers of the kernel's types."""
        ...

    def recording(self) -> Recording | None:
        """What this thread records at present, or None. While it records, nothing runs."""
        ...

    def record(self, work: Callable[[], T]) -> tuple[T, Recording]:
        """Calls `work`, whose launches and copies on the GPU are recorded instead of made; what it gives, and the
        recording. Memory that it asks for is the recording's own. Raises NotReplayableError where something waits for
        the GPU or takes from the host's memory.
        """
        ...

    def synchronize(self) -> None:
        """Blocks until all that was launched has run. Raises InternalError with what the device failed with."""
        ...

    def memory_info(self) -> tuple[int, int]:
        """(bytes in use by arrays, bytes that the pool keeps in all)."""
        ...


_lock = threading.Lock()
#: By CUDA's numbers, as is the next one.
_runtimes: dict[int, Runtime] = {}
#: The share of the memory that this process may take, where a program said one.
_shares: dict[int, float] = {}
#: The number in a device's name → CUDA's, where a program has said which GPUs are meant.
_meant: dict[int, int] = {}


def is_simulated() -> bool:
    """Whether this process has simulated GPUs in place of real ones."""
    return os.environ.get(SIMULATOR) == "1"


def simulated_gpus() -> int:
    """How many GPUs the simulator stands for."""
    return max(0, int(os.environ.get(SIMULATED_GPUS, "1")))


def name_gpus(meant: Sequence[int], share: float = 0.0) -> None:
    """GPU:0 is from now on that one of CUDA's, and so on; each may take `share` of its memory, all of it for 0.

    For the whole process: who comes first decides. Raises AlreadyExistsError for a number that means another GPU.
    """
    with _lock:
        for number, gpu in enumerate(meant):
            before = _meant.get(number, gpu)
            if before != gpu:
                raise errors.already_exists(
                    f"TensorFlow device (GPU:{number}) is being mapped to multiple CUDA devices ({gpu} now, and "
                    f"{before} previously), which is not supported: all sessions and servers of a process must have "
                    "the same visible_device_list."
                )
        for number, gpu in enumerate(meant):
            _meant[number] = gpu
            if share > 0:
                _shares.setdefault(gpu, share)


def runtime(index: int) -> Runtime:
    """The GPU that devices' names call so."""
    return runtime_of_gpu(_meant.get(index, index))


def runtime_of_gpu(gpu: int) -> Runtime:
    """The GPU that CUDA calls so, of those that this process sees. Takes up to a second the first time."""
    found = _runtimes.get(gpu)
    if found is None:
        with _lock:
            found = _runtimes.get(gpu)
            if found is None:
                found = _runtimes[gpu] = _make(gpu)
    return found


def runtime_of(device: str) -> Runtime:
    """Of a device's full name, such as /job:worker/replica:0/task:0/device:GPU:1."""
    return runtime(int(device.rpartition(":")[2]))


def _make(index: int) -> Runtime:
    if is_simulated():
        from tenfold_kernels.cuda._simulated import SimulatedRuntime

        return SimulatedRuntime(index, _shares.get(index))
    from tenfold_kernels.cuda._driver import DriverRuntime

    return DriverRuntime(index, _shares.get(index))
