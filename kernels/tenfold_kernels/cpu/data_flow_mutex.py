"""Ops of mutexes, which `tf.CriticalSection` is made of. The machine is resources/mutexes.py. Follows mutex_ops.cc."""

from __future__ import annotations

from typing import Any

from tenfold_kernels.arrays import Array, invalid
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.handles import resource_of, shared_resource
from tenfold_kernels.resources.mutexes import Mutex, MutexLock


@kernel("MutexV2")
def build_mutex(node: KernelNode) -> Compute:
    return shared_resource(node, Mutex, Mutex)


@kernel("MutexLock", blocking=True)
def build_lock(node: KernelNode) -> Compute:
    """Waits for the mutex. It is held until its value is consumed, or the step lets go of it."""
    return lambda handle: resource_of(node, handle, Mutex).ask()


@kernel("ConsumeMutexLock")
def build_consume(node: KernelNode) -> Compute:
    """Gives the mutex back. Raises InvalidArgumentError for another kind of variant."""

    def compute(value: Array) -> None:
        found: Any = value.item() if value.ndim == 0 else None
        if not isinstance(found, MutexLock):
            raise invalid("Expected input to be a mutex lock, what MutexLock has given.")
        found.release()

    return compute
