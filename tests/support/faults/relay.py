"""The wire of a Lan with a delay: reads what TCP sends on each host, and writes it to another host after a while.

    python relay.py PARENT DELAY TUN,IPV4,IPV6 …        TUN is a descriptor that this process has inherited

A packet may be 64 KB, with the ten bytes in front that say how it is to be cut: as virtual machines pass them on, and
so it costs some microseconds. The order is kept. What is under way is bounded; what comes beyond that is lost. It ends
with its parent.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import time
from collections import deque

#: Bytes in front of a packet (struct virtio_net_hdr), and bytes of both at most.
_HEADER, _PACKET = 10, (1 << 16) + 10
#: Packets of one host that are read before what is due leaves.
_TURN = 16
#: Bytes that are under way at most.
_MOST = 256 << 20


def relay(parent: int, delay: float, places: dict[bytes, int]) -> None:
    """`places`: packed address → descriptor of its host."""
    under_way: deque[tuple[float, int, bytes]] = deque()
    size = 0
    devices = sorted(set(places.values()))
    while os.getppid() == parent:
        wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else 1.0
        ready, _, _ = select.select(devices, [], [], wait)
        for device in ready:
            for _ in range(_TURN):
                try:
                    packet = os.read(device, _PACKET)
                except BlockingIOError:
                    break
                version = packet[_HEADER] >> 4
                at = _HEADER + (16 if version == 4 else 24)
                to = places.get(packet[at : at + (4 if version == 4 else 16)])
                # neighbours are not asked for, groups not joined
                if to is not None and size < _MOST:
                    under_way.append((time.monotonic() + delay, to, packet))
                    size += len(packet)
        now = time.monotonic()
        while under_way and under_way[0][0] <= now:
            _, to, packet = under_way.popleft()
            size -= len(packet)
            os.write(to, packet)


def main() -> None:
    places: dict[bytes, int] = {}
    for place in sys.argv[3:]:
        device, four, six = place.split(",")
        places[socket.inet_pton(socket.AF_INET, four)] = int(device)
        places[socket.inet_pton(socket.AF_INET6, six)] = int(device)
    relay(int(sys.argv[1]), float(sys.argv[2]), places)


if __name__ == "__main__":
    main()
