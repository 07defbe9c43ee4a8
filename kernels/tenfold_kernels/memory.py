"""What this process does with memory that was freed: keeps some, where kernels make megabytes anew in each step.

glibc gives large blocks back to the system at once, so that the next step's arrays are zeroed again page by page: a
third of the time of a small convolutional network. Called by kernels with large outputs when they are built. Other
C libraries have no such setting and are left alone, and so is a process whose user has set one.
"""

from __future__ import annotations

import ctypes
import functools
import os

#: Freed bytes at the end of the heap that are kept; TensorFlow's allocators keep all they ever had.
_KEPT = 512 << 20
#: The largest block that comes from the heap at all: glibc takes no higher number.
_LARGEST = 32 << 20
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h
_VARIABLES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES")


@functools.cache
def keep_freed() -> bool:
    """Sets it, once in a process; whether it did. Never fails."""
    if any(os.environ.get(name) for name in _VARIABLES):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return False
    # One without the other would be worse than none: a number that is set is no longer adapted.
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST)) and bool(mallopt(_TRIM_THRESHOLD, _KEPT))
