"""`SessionDevice`: what `session.list_devices()` returns for a device. Follows TF 1.15's `_DeviceAttributes`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenfold_core import device

if TYPE_CHECKING:
    from tenfold_protos.device_attributes_pb2 import DeviceAttributes


@dataclass(frozen=True, slots=True)
class SessionDevice:
    """One device of the cluster."""

    #: Full name, `/job:worker/replica:0/task:3/device:CPU:0`.
    name: str
    device_type: str
    memory_limit_bytes: int
    #: Changes when the device's task restarts.
    incarnation: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", device.canonical_name(self.name))

    @staticmethod
    def from_proto(attributes: DeviceAttributes) -> SessionDevice:
        """From the master's answer."""
        return SessionDevice(
            attributes.name,
            attributes.device_type,
            attributes.memory_limit,
            attributes.incarnation,
        )

    def __repr__(self) -> str:
        return f"_DeviceAttributes({self.name}, {self.device_type}, {self.memory_limit_bytes}, {self.incarnation})"
