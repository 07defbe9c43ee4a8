"""`tf.config`: devices and threads of this process, as TensorFlow 2 asks for them: one CPU, and the GPUs that it sees.

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
#: What was set of GPUs, by their names.
_growth: dict[str, bool] = {}
_visible: list[PhysicalDevice] | None = None


def get_soft_device_placement() -> bool:
    """What was set; sessions take `allow_soft_placement` of their ConfigProto."""
    return bool(_values["soft_device_placement"])


def set_soft_device_placement(enabled: bool) -> None:
    """Kept; sessions take `allow_soft_placement` of their ConfigProto."""
    _values["soft_device_placement"] = enabled


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The CPU and the GPUs that this process sees, or those of one type."""
    found = [_CPU] if device_type in (None, "CPU") else []
    if device_type in (None, "GPU"):
        from tenfold.session.inprocess import physical_gpus

        found += [PhysicalDevice(f"/physical_device:GPU:{number}", "GPU") for number in range(len(physical_gpus()))]
    return found


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The same as a session without a ConfigProto has them."""
    return [LogicalDevice(f"/device:{each.name.partition('device:')[2]}", each.device_type)
            for each in list_physical_devices(device_type)]  # fmt: skip


def experimental_list_devices() -> list[str]:
    """The names of the devices of a session in this process. Blocks while it opens."""
    from tenfold.compat.python.device_lib import list_local_devices

    return [f"/job:localhost/replica:0/task:0{each.name}" for each in list_local_devices()]


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Kept; sessions take `gpu_options.visible_device_list`. Raises ValueError for a device that is not there."""
    global _visible
    is_list = isinstance(devices, list | tuple) and not isinstance(devices, PhysicalDevice)
    chosen = list(devices) if is_list else [devices]
    for each in chosen:
        _check(each)
    if device_type is None:
        _visible = chosen
    else:
        others = [each for each in get_visible_devices() if each.device_type != device_type]
        _visible = others + chosen


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """What was set, else all."""
    found = list_physical_devices() if _visible is None else _visible
    return [each for each in found if device_type in (None, each.device_type)]


def _check(device: Any) -> None:
    there = list_physical_devices()
    if device not in there:
        raise ValueError(f"there is no device {device!r}: this process has {', '.join(map(str, there))}")


def _check_gpu(device: Any, verb: str) -> None:
    _check(device)
    if device.device_type != "GPU":
        raise ValueError(f"Cannot {verb} memory growth on non-GPU devices")


def set_memory_growth(device: Any, enable: bool) -> None:
    """Kept: memory of a GPU is always taken as it is needed. Raises ValueError for what is no GPU."""
    _check_gpu(device, "set")
    _growth[device.name] = bool(enable)


def get_memory_growth(device: Any) -> bool:
    """What was set, else True. Raises ValueError for what is no GPU."""
    _check_gpu(device, "get")
    return _growth.get(device.name, True)


def set_virtual_device_configuration(device: Any, logical_devices: Any) -> None:
    """Does nothing for one part. Raises ValueError for several: a device is one here."""
    _check(device)
    if len(logical_devices or ()) > 1:
        raise ValueError("a device is one device here; start several tasks for several devices")


def get_virtual_device_configuration(device: Any) -> None:
    """Always None: no device is divided."""
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


def enable_distributed_strategy(strategy: str = "localized", num_gpus: int | None = None) -> None:
    """DeepRec's choice of where grouped lookups run: "localized", each in its task, is the one there is.

    Raises NotImplementedError for another.
    """
    if strategy != "localized":
        raise NotImplementedError(
            f'enable_distributed_strategy(strategy="{strategy}"): grouped lookups are "localized" here; tables over '
            "several tasks are partitioned embedding variables, see docs/embeddings.md"
        )


threading = _pairs("intra_op_parallelism_threads", "inter_op_parallelism_threads")
optimizer = _pairs("jit", "experimental_options")
experimental = SimpleNamespace(
    VirtualDeviceConfiguration=VirtualDeviceConfiguration,
    enable_distributed_strategy=enable_distributed_strategy,
    list_physical_devices=list_physical_devices,
    list_logical_devices=list_logical_devices,
    get_visible_devices=get_visible_devices,
    set_visible_devices=set_visible_devices,
    set_memory_growth=set_memory_growth,
    get_memory_growth=get_memory_growth,
    set_virtual_device_configuration=set_virtual_device_configuration,
    get_virtual_device_configuration=get_virtual_device_configuration,
    **vars(_pairs("synchronous_execution")),
)
