"""The devices of a server of this process in the form that the control service takes, for who registers it."""

from __future__ import annotations

from typing import Any

#: Seconds for a server to list its devices.
_LIST_S = 5.0


def devices_of(server: Any) -> list[dict[str, Any]]:
    """Of a tenfold_services BackgroundServer. Blocks for a turn of the server's event loop."""

    async def get_status() -> Any:
        return await server.server.worker.get_status()

    return [
        {
            "name": device.name,
            "device_type": device.device_type,
            "memory_limit": device.memory_limit,
            "incarnation": f"{device.incarnation:016x}",
            "physical_device_desc": device.physical_device_desc,
        }
        for device in server.call(get_status, _LIST_S)
    ]
