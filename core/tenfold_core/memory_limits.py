"""How much memory one tensor may take: what a program asks for by value is checked here before it is allocated.

A fed number can say "a tensor of 2^40 elements"; TensorFlow's allocator answers OOM, and so does `allow`, before the
system's OOM killer ends the process. Asked by kernels whose output's size comes from values, and by tensor_util.py for
a TensorProto that promises more elements than it holds. The limit belongs to the process, like the memory: a server
sets it (tenfold_services/limits.py), else it is half of what the machine, or the process's cgroup, has.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes, errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

#: Tensors of so many elements are never refused, and asking for one costs next to nothing.
_SMALL = 1 << 16
#: Bytes of an element that is an object, its place in the array included: a string of some ten characters.
_OBJECT_BYTES = 64
#: No shape has more elements, no array more bytes …
_MAX_COUNT = (1 << 63) - 1
#: … and no more dimensions.
_MAX_RANK = 64 if int(np.__version__.partition(".")[0]) > 1 else 32
#: From this size on the memory that is free now counts, too.
_LARGE = 64 << 20
#: Left free, so that a large tensor does not take what small things need to go on.
_RESERVE = 256 << 20
#: Seconds that a thread takes at most to touch the memory it was allowed, for each GiB and besides.
_SECONDS_PER_GIB, _SECONDS = 1.0, 0.2

_lock = threading.Lock()
#: Bytes that one tensor may take; 0 until it is first asked for or set.
_limit = 0
#: Thread → (until when, bytes): large tensors that were allowed, and whose memory may not show as taken yet.
_granted: dict[int, tuple[float, int]] = {}


def limit_tensor(size: int) -> None:
    """One tensor takes `size` bytes at most from now on, in the whole process; 0 means half of the memory."""
    global _limit
    with _lock:
        _limit = size if size > 0 else _default()


def tensor_bytes_from_environment(environment: Mapping[str, str] = os.environ) -> int:
    """TENFOLD_TENSOR_BYTES; 0 where it is not set. Raises InvalidArgumentError for what is no such number."""
    text = environment.get("TENFOLD_TENSOR_BYTES", "") or "0"
    if not text.isascii() or not text.isdecimal():
        raise errors.InvalidArgumentError(None, None, f"TENFOLD_TENSOR_BYTES is {text!r}; it is a number of bytes.")
    return int(text)


def bound_process() -> None:
    """Lets this process have as much memory as there is and no more.

    An allocation beyond that fails, as a MemoryError of the step that wanted it, where otherwise the system would end
    the process, or another one. For processes that serve and do nothing else. Does nothing where the system cannot.
    """
    whole = memory()
    if not whole or sys.platform != "linux":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = whole - whole // 16
    if (soft == resource.RLIM_INFINITY or soft > wanted) and (hard == resource.RLIM_INFINITY or hard >= wanted):
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))


def check_room(what: str) -> None:
    """Raises ResourceExhaustedError, naming `what` was wanted, when next to no memory is left for keeping more."""
    free = available()
    if free < _RESERVE:
        raise errors.ResourceExhaustedError(None, None, f"OOM: {what} is refused, only {max(free, 0)} bytes are free.")


def tensor_limit() -> int:
    """How many bytes one tensor may take."""
    if not _limit:
        limit_tensor(0)
    return _limit


def allow(shape: Sequence[int], dtype: Any, times: int = 1) -> None:
    """Raises ResourceExhaustedError when a tensor of this shape (sizes ≥ 0) and NumPy type is too large for here.

    InvalidArgumentError when its elements cannot even be counted.
    `times`: the work takes so many times the tensor's memory.
    """
    count = math.prod(shape)
    if count * times > _SMALL or not count or len(shape) > _MAX_RANK:
        _check(shape, np.dtype(dtype), times)


def has_arrays(shape: Sequence[int], itemsize: int) -> bool:
    """Whether there can be an array of this shape (sizes ≥ 0): one of no elements may have sizes that NumPy refuses."""
    return len(shape) <= _MAX_RANK and math.prod(size or 1 for size in shape) * itemsize <= _MAX_COUNT


def _check(shape: Sequence[int], dtype: np.dtype[Any], times: int) -> None:
    count = math.prod(shape)
    if (not count or len(shape) > _MAX_RANK) and not has_arrays(shape, dtype.itemsize):
        text = ",".join(map(str, shape))
        raise errors.InvalidArgumentError(
            None,
            None,
            f"There is no array of shape [{text}]: arrays have {_MAX_RANK} dimensions at most, and sizes that come to "
            "less than 2**63 bytes, 0 counted as 1",
        )
    if count > _MAX_COUNT:
        text = ",".join(map(str, shape))
        raise errors.InvalidArgumentError(
            None,
            None,
            f"Encountered overflow when multiplying the sizes of shape [{text}]: more than 2**63 - 1 elements",
        )
    size = count * (_OBJECT_BYTES if dtype.hasobject else dtype.itemsize)
    need = size * times
    if size > tensor_limit():
        raise exhausted(shape, dtype, f"it would take {size} bytes, and {_limit} is the limit for one tensor here")
    if need < _LARGE:
        return
    now, me = time.monotonic(), threading.get_ident()
    free = available()
    with _lock:
        for thread, (until, _) in list(_granted.items()):
            if until < now or thread == me:  # its memory shows in what is free, or is free again
                del _granted[thread]
        free -= sum(taken for _, taken in _granted.values())
        if need > free - _RESERVE:
            raise exhausted(shape, dtype, f"it would take {need} bytes, and {max(free, 0)} are free")
        _granted[me] = now + _SECONDS + _SECONDS_PER_GIB * need / (1 << 30), need


def exhausted(shape: Iterable[int], dtype: Any, why: str) -> errors.ResourceExhaustedError:
    """The error for a tensor that cannot be had, in TensorFlow's words and `why`."""
    text = ",".join(map(str, shape))
    try:
        name = dtypes.as_dtype(dtype).op_name
    except TypeError:
        name = str(dtype)
    return errors.ResourceExhaustedError(
        None, None, f"OOM when allocating tensor with shape[{text}] and type {name}: {why}."
    )


def available() -> int:
    """Bytes that this process may still take, as the system and its cgroup say; a huge number where neither tells."""
    free = _field("/proc/meminfo", "MemAvailable:", 1024)
    whole, used = _group_memory()
    if whole:
        free = min(free, whole - used)
    return free


def memory() -> int:
    """Bytes of the machine, or of the process's cgroup if that is less. 0 where neither tells."""
    try:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        machine = 0
    whole, _ = _group_memory()
    return min(machine, whole) if machine and whole else machine or whole


def _default() -> int:
    return memory() // 2 or 1 << 40


#: Files of a cgroup, v2 and v1, as a container sees its own: limit, use, and the name of the page cache in memory.stat.
_GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat", "inactive_file"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        "/sys/fs/cgroup/memory/memory.stat",
        "total_inactive_file",
    ),
)


def _group_memory() -> tuple[int, int]:
    """(limit, use without what can be dropped) of the cgroup; (0, 0) without a limit."""
    for limit, use, stat, cache in _GROUPS:
        try:
            whole = int(Path(limit).read_text())
            used = int(Path(use).read_text())
        except (OSError, ValueError):  # "max" is not a number
            continue
        if whole < 1 << 60:
            return whole, max(0, used - _field(stat, cache, 1, default=0))
    return 0, 0


def _field(path: str, name: str, unit: int, default: int = 1 << 62) -> int:
    """The number after a name in one of the system's files."""
    try:
        with open(path) as file:
            for line in file:
                if line.startswith(name):
                    return int(line.split()[1]) * unit
    except (OSError, ValueError, IndexError):
        pass
    return default
