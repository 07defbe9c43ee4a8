"""The devices of a task: CPU:0 always, further CPUs when asked for, a GPU for each one that CUDA finds.

numba is imported only where there is a CUDA driver library. Each device gets a random incarnation, which tells a task
that restarted from the one that was there before. In TensorFlow: device_factory.cc and device_attributes.proto.
"""

from __future__ import annotations

import ctypes
import importlib
import logging
import os
import secrets
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tenfold_protos.device_attributes_pb2 import DeviceAttributes

if TYPE_CHECKING:
    from tenfold_protos.config_pb2 import ConfigProto

_log = logging.getLogger(__name__)

#: CPU devices of one task, whatever a program asks for.
MOST_CPUS = 64

#: What TensorFlow reports for a CPU whose memory is not limited.
_CPU_MEMORY_LIMIT = 256 << 20


def cpu_count(config: ConfigProto | None) -> int:
    """How many CPU devices `config` asks for by `device_count`: 1 unless it says more, `MOST_CPUS` at most."""
    asked = config.device_count.get("CPU", 1) if config is not None else 1
    return min(max(asked, 1), MOST_CPUS)


def local_devices(task: str, cpus: int = 1) -> list[DeviceAttributes]:
    """Fresh devices for `task`, each with a new incarnation. May take a second where CUDA has to start.

    Several CPUs are names for one processor: a program for several devices can be tried out with them.
    """
    devices = [_device(f"{task}/device:CPU:{index}", "CPU", _CPU_MEMORY_LIMIT, "") for index in range(cpus)]
    for index, (memory, description) in enumerate(_gpus()):
        devices.append(_device(f"{task}/device:GPU:{index}", "GPU", memory, description))
    return devices


def _device(name: str, device_type: str, memory_limit: int, description: str) -> DeviceAttributes:
    attributes = DeviceAttributes(
        name=name,
        device_type=device_type,
        memory_limit=memory_limit,
        incarnation=secrets.randbits(64) or 1,
        physical_device_desc=description,
        xla_global_id=-1,
    )
    attributes.locality.SetInParent()
    return attributes


@lru_cache(maxsize=1)
def _gpus() -> tuple[tuple[int, str], ...]:
    """(memory in bytes, description) of each GPU; () where there is no driver, no device or no numba.cuda."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return ()
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:  # no driver: do not even import numba
        return ()
    try:
        cuda: Any = importlib.import_module("numba.cuda")

        if not cuda.is_available():
            return ()
        found = []
        for gpu in cuda.list_devices():
            with gpu:
                memory = cuda.current_context().get_memory_info().total
            found.append((int(memory), f"device: {gpu.id}, name: {gpu.name.decode()}"))
        return tuple(found)
    except Exception as error:  # a broken driver must not keep the CPU from serving
        _log.warning("There is a CUDA driver, but no GPU can be used: %s: %s", type(error).__name__, error)
        return ()
