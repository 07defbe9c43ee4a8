"""The wire between the hosts of network.py: packets of one TUN device go to another as the `Path` between them says.

`Wire` decides, without I/O: which packets are lost, and when the others arrive. `Switch` is its thread: it reads, waits
and writes. Losses and delays come of a seed, in the order in which packets come.
"""

from __future__ import annotations

import heapq
import itertools
import os
import random
import select
import socket
import threading
import time
from collections import defaultdict
from dataclasses import dataclass

#: Bytes of a packet that the kernel hands over at once, at most.
_PACKET = 1 << 16
#: Packets of one host that are read before the next host has its turn.
_TURN = 64
#: Seconds for the thread to end.
_END_S = 30.0


@dataclass(frozen=True)
class Path:
    """What happens to packets of one direction. Probabilities are from 0 to 1, times seconds."""

    #: No packet arrives.
    stopped: bool = False
    loss: float = 0.0
    #: Each packet takes `delay`, more or less by up to `jitter`: they overtake each other then, as on real networks.
    delay: float = 0.0
    jitter: float = 0.0
    #: How many take no time at all, and so overtake all that are under way.
    reorder: float = 0.0
    #: How many arrive twice.
    repeat: float = 0.0
    #: Bits a second, 0: no bound. What waits for its turn is bounded by `queue` bytes; the rest is lost.
    rate: float = 0.0
    queue: int = 256 << 10


#: Every packet arrives at once; none does.
FREE, STOPPED = Path(), Path(stopped=True)

#: (source, destination), packed addresses.
Direction = tuple[bytes, bytes]


class Wire:
    """Which packets arrive, and when. One thread at a time, but for `paths`."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        #: Those not named are FREE.
        self.paths: dict[Direction, Path] = {}
        #: Packets that did not arrive.
        self.lost: dict[Direction, int] = defaultdict(int)
        #: When the last packet that was admitted to a throttled direction will have left.
        self._left_at: dict[Direction, float] = defaultdict(float)

    def arrivals(self, direction: Direction, size: int, now: float) -> list[float]:
        """When a packet that is sent now arrives: never, once or twice."""
        path = self.paths.get(direction, FREE)
        if path is FREE:
            return [now]
        chance = self._chance.random
        if path.stopped or (path.loss and chance() < path.loss):
            self.lost[direction] += 1
            return []
        leaves = now
        if path.rate:
            free = max(now, self._left_at[direction])
            if (free - now) * path.rate / 8 > path.queue:
                self.lost[direction] += 1
                return []
            leaves = self._left_at[direction] = free + size * 8 / path.rate
        arrives = leaves + max(0.0, path.delay + path.jitter * (2 * chance() - 1))
        if path.reorder and chance() < path.reorder:
            arrives = leaves
        return [arrives, arrives] if path.repeat and chance() < path.repeat else [arrives]


class Switch:
    """Carries packets between TUN devices: `{address: descriptor}`, which stay the caller's."""

    def __init__(self, devices: dict[str, int], seed: int) -> None:
        self._devices = {socket.inet_aton(address): tun for address, tun in devices.items()}
        self._wire = Wire(seed)
        self._lost_more = threading.Condition()
        self._ended, self._end = os.pipe()
        self._thread = threading.Thread(target=self._run, name="switch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns once no packet moves any more."""
        os.close(self._end)
        self._thread.join(_END_S)
        assert not self._thread.is_alive()
        os.close(self._ended)

    def set(self, source: str, destination: str, path: Path) -> None:
        """From any thread."""
        self._wire.paths[socket.inet_aton(source), socket.inet_aton(destination)] = path

    def lost(self, *directions: tuple[str, str]) -> int:
        """Packets of these directions that did not arrive."""
        return sum(self._wire.lost[socket.inet_aton(one), socket.inet_aton(other)] for one, other in directions)

    def wait_for_lost(self, count: int, seconds: float, *directions: tuple[str, str]) -> bool:
        """Waits until so many packets of these directions were lost, in all. False: not within so many seconds."""
        with self._lost_more:
            return self._lost_more.wait_for(lambda: self.lost(*directions) >= count, seconds)

    def _run(self) -> None:
        #: (when, number, device, packet), the next first. The number keeps the order of equals.
        under_way: list[tuple[float, int, int, bytes]] = []
        numbers = itertools.count()
        poll = select.poll()
        for descriptor in (*self._devices.values(), self._ended):
            poll.register(descriptor, select.POLLIN)
        while True:
            wait = None if not under_way else max(0.0, (under_way[0][0] - time.monotonic()) * 1000)
            for descriptor, _ in poll.poll(wait):
                if descriptor == self._ended:
                    return
                for packet in _read(descriptor):
                    direction = packet[12:16], packet[16:20]
                    device = self._devices.get(direction[1])
                    # only IPv4 between two hosts: neighbours are not asked for, groups not joined
                    if packet[0] >> 4 != 4 or device is None:
                        continue
                    now = time.monotonic()
                    arrivals = self._wire.arrivals(direction, len(packet), now)
                    if not arrivals:
                        with self._lost_more:
                            self._lost_more.notify_all()
                    for arrives in arrivals:
                        if arrives <= now:
                            os.write(device, packet)
                        else:
                            heapq.heappush(under_way, (arrives, next(numbers), device, packet))
            now = time.monotonic()
            while under_way and under_way[0][0] <= now:
                _, _, device, packet = heapq.heappop(under_way)
                os.write(device, packet)


def _read(descriptor: int) -> list[bytes]:
    """The packets that are there, within a turn."""
    packets: list[bytes] = []
    while len(packets) < _TURN:
        try:
            packets.append(os.read(descriptor, _PACKET))
        except BlockingIOError:
            break
    return packets
