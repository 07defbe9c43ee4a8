"""`tf.config`: devices and threads of this process, as TensorFlow 2 asks for them. There is one CPU; no GPU to set up.

As in TensorFlow 1.15, what is set here concerns eager execution: sessions take a ConfigProto. It can be read back.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

__all__ = [
    "experimental",
    "experimental_list_devices",
    "get_soft_device_placement",
    "optimizer",
    "set_soft_device_placement",
    "threading",
]


class PhysicalDevice(NamedTuple):
    """A device of this machine."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device of this process."""

    name: str
    device_type: str


class VirtualDeviceConfiguration(NamedTuple):
    """A part of a device."""

    memory_limit: int | None = None


_values: dict[str, Any] = {
    "soft_device_placement": True,
    "intra_op_parallelism_threads": 0,
    "inter_op_parallelism_threads": 0,
    "jit": False,
    "experimental_options": {},
    "synchronous_execution": True,
}
_CPU = PhysicalDevice("/physical_device:CPU:0", "CPU")


def get_soft_device_placement() -> bool:
    """What was set; sessions take `allow_soft_placement` of their ConfigProto."""
    return bool(_values["soft_device_placement"])


def set_soft_device_placement(enabled: bool) -> None:
    """Kept; sessions take `allow_soft_placement` of their ConfigProto."""
    _values["soft_device_placement"] = enabled


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The CPU, unless another type is asked for."""
    return [_CPU] if device_type in (None, "CPU") else []


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The CPU, unless another type is asked for."""
    return [LogicalDevice("/device:CPU:0", "CPU")] if device_type in (None, "CPU") else []


def experimental_list_devices() -> list[str]:
    """The names of the devices of a session in this process. Blocks while it opens."""
    from tenfold.compat.python.device_lib import list_local_devices

    return [f"/job:localhost/replica:0/task:0{each.name}" for each in list_local_devices()]


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Does nothing for the CPU. Raises ValueError for a device that is not there."""
    for each in devices or ():
        _check(each)


def _check(device: Any) -> None:
    if device != _CPU:
        raise ValueError(f"there is no device {device!r}: this process has {_CPU}")


def set_memory_growth(device: Any, enable: bool) -> None:
    """Raises ValueError: only GPUs can be set to this."""
    _check(device)
    raise ValueError("Cannot set memory growth on non-GPU devices")


def get_memory_growth(device: Any) -> bool:
    """Raises ValueError: only GPUs have it."""
    _check(device)
    raise ValueError("Cannot get memory growth on non-GPU devices")


def set_virtual_device_configuration(device: Any, logical_devices: Any) -> None:
    """Does nothing for one part. Raises ValueError for several: the CPU is one device."""
    _check(device)
    if len(logical_devices or ()) > 1:
        raise ValueError("the CPU is one device here; start several tasks for several devices")


def get_virtual_device_configuration(device: Any) -> None:
    """Always None: the CPU is not divided."""
    _check(device)


def _getter(name: str) -> Any:
    def get() -> Any:
        return _values[name]

    get.__name__ = f"get_{name}"
    get.__doc__ = "What was set here."
    return get


def _setter(name: str) -> Any:
    def set_(value: Any) -> None:
        _values[name] = value

    set_.__name__ = f"set_{name}"
    set_.__doc__ = "Kept to be read back; sessions take a ConfigProto."
    return set_


def _pairs(*names: str) -> SimpleNamespace:
    found = {f"get_{name}": _getter(name) for name in names} | {f"set_{name}": _setter(name) for name in names}
    return SimpleNamespace(**found)


threading = _pairs("intra_op_parallelism_threads", "inter_op_parallelism_threads")
optimizer = _pairs("jit", "experimental_options")
experimental = SimpleNamespace(
    VirtualDeviceConfiguration=VirtualDeviceConfiguration,
    list_physical_devices=list_physical_devices,
    list_logical_devices=list_logical_devices,
    get_visible_devices=list_physical_devices,
    set_visible_devices=set_visible_devices,
    set_memory_growth=set_memory_growth,
    get_memory_growth=get_memory_growth,
    set_virtual_device_configuration=set_virtual_device_configuration,
    get_virtual_device_configuration=get_virtual_device_configuration,
    **vars(_pairs("synchronous_execution")),
)
