"""The devices of a task: CPU:0 always, further CPUs when asked for, a GPU for each one that CUDA finds and is wanted.

Each device gets a random incarnation, which tells a task that restarted from the one that was there before. In
TensorFlow: device_factory.cc and device_attributes.proto.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from tenfold_kernels.gpus import ALL_GPUS, GpuOptions, are_there, gpus, has_driver, has_extra, physical_gpus
from tenfold_protos.device_attributes_pb2 import DeviceAttributes

if TYPE_CHECKING:
    from tenfold_protos.config_pb2 import ConfigProto

#: CPU devices of one task, whatever a program asks for.
MOST_CPUS = 64

#: What TensorFlow reports for a CPU whose memory is not limited.
_CPU_MEMORY_LIMIT = 256 << 20

#: () → (memory in bytes, description) of each GPU that this process sees, whatever sessions are told of them.
found_gpus = physical_gpus


def cpu_count(config: ConfigProto | None) -> int:
    """How many CPU devices `config` asks for by `device_count`: 1 unless it says more, `MOST_CPUS` at most."""
    asked = config.device_count.get("CPU", 1) if config is not None else 1
    return min(max(asked, 1), MOST_CPUS)


def gpu_options(config: ConfigProto | None) -> GpuOptions:
    """What `config` says of GPUs; all of them where it says nothing, and where there are none anyway."""
    if config is None or not are_there():
        return ALL_GPUS
    count = max(config.device_count["GPU"], 0) if "GPU" in config.device_count else None
    options = config.gpu_options
    return GpuOptions(count, options.visible_device_list, options.per_process_gpu_memory_fraction)


def why_no_gpu() -> str:
    """Why a machine with a CUDA driver has no GPU for us; empty: there is none, or there is no driver."""
    if are_there() or not has_driver():
        return ""
    return "CUDA sees none" if has_extra() else "the extra cuda is not installed"


def local_devices(task: str, cpus: int = 1, options: GpuOptions = ALL_GPUS) -> list[DeviceAttributes]:
    """Fresh devices for `task`, each with a new incarnation. May take a second where CUDA has to start.

    Several CPUs are names for one processor: a program for several devices can be tried out with them. Raises what
    tenfold_kernels.gpus.gpus raises.
    """
    devices = []
    for kind, found in (("CPU", [(_CPU_MEMORY_LIMIT, "")] * cpus), ("GPU", gpus(options))):
        for index, (memory, description) in enumerate(found):
            device = DeviceAttributes(name=f"{task}/device:{kind}:{index}", device_type=kind, memory_limit=memory)
            device.incarnation, device.physical_device_desc = secrets.randbits(64) or 1, description
            device.xla_global_id = -1
            device.locality.SetInParent()
            devices.append(device)
    return devices
