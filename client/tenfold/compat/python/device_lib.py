"""`tensorflow.python.client.device_lib`: the devices of this process, as messages."""

from __future__ import annotations

from typing import Any

from tenfold.session.session import Session
from tenfold_protos.device_attributes_pb2 import DeviceAttributes

__all__ = ["list_local_devices"]


def list_local_devices(session_config: Any = None) -> list[DeviceAttributes]:
    """A DeviceAttributes for each device of a session in this process. Blocks while the session opens."""
    with Session(config=session_config) as session:
        found = session.device_attributes()
    # a device is named in its task alone, as TensorFlow's function does
    return [
        DeviceAttributes(
            name=f"/device:{each.name.rpartition('device:')[2]}",
            device_type=each.device_type,
            memory_limit=each.memory_limit,
            locality=each.locality,
            incarnation=each.incarnation,
            physical_device_desc=each.physical_device_desc,
        )
        for each in found
    ]
