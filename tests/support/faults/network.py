"""A network of hosts on one machine whose packets the test may lose, delay, reorder, throttle or stop, each way by
itself.

Each host is a network namespace with one TUN device; `switch.py` reads the packets of one and writes them to another,
as a `Path` of the two says. So the TCP of both ends is the kernel's, and only the wire is ours: no kernel needs netem,
and the same seed gives the same losses. Namespace, device and address exist through descriptors of this process alone,
so a test that is killed leaves nothing behind. Needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN) and /dev/net/tun: see
`why_not`.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import threading
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from support.faults.switch import FREE, STOPPED, Path, Switch

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

T = TypeVar("T")

_CLONE_NEWNET = 0x40000000
#: linux/if_tun.h and linux/sockios.h.
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_SIOCSIFADDR, _SIOCSIFNETMASK, _SIOCSIFFLAGS = 0x8916, 0x891C, 0x8914
_IFF_UP_RUNNING = 0x1 | 0x40
_DEVICE = "host0"
#: Seconds for what a test does within a host.
PATIENCE = 120.0


@dataclass(frozen=True)
class Host:
    """One host. The descriptors belong to the Network."""

    name: str
    address: str
    #: Keeps the namespace alive.
    namespace: int
    #: Its packets.
    tun: int


class Network:
    """`with Network("ps", "worker") as network:` two hosts that reach each other. Blocking; any thread."""

    def __init__(self, *names: str, seed: int = 0) -> None:
        self._names, self._seed = names, seed
        self.hosts: dict[str, Host] = {}

    def __enter__(self) -> Network:
        try:
            for number, name in enumerate(self._names, start=1):
                self.hosts[name] = in_thread(partial(_make_host, name, f"10.77.0.{number}"))
            self._switch = Switch({host.address: host.tun for host in self.hosts.values()}, self._seed)
            self._switch.start()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._switch.stop()
        self._close()

    def _close(self) -> None:
        for host in self.hosts.values():
            os.close(host.tun)
            os.close(host.namespace)
        self.hosts.clear()

    def address(self, name: str, port: int) -> str:
        return f"{self.hosts[name].address}:{port}"

    def inside(self, name: str, work: Callable[[], T]) -> T:
        """`work()` on a thread of that host: its sockets, and processes that it starts, are there. What it raises."""
        namespace = self.hosts[name].namespace

        def enter() -> T:
            _checked(_LIBC.setns(namespace, _CLONE_NEWNET), "setns")
            return work()

        return in_thread(enter)

    def set(self, path: Path, source: str, *destinations: str) -> None:
        """What happens to packets from `source` to each destination, from now on."""
        for destination in destinations:
            self._switch.set(self.hosts[source].address, self.hosts[destination].address, path)

    def set_all(self, path: Path) -> None:
        """The same for all packets."""
        for source in self.hosts:
            self.set(path, source, *(name for name in self.hosts if name != source))

    def cut(self, one: str, other: str) -> None:
        """A partition: no packet of either reaches the other."""
        self.set(STOPPED, one, other)
        self.set(STOPPED, other, one)

    def cut_one_way(self, source: str, destination: str) -> None:
        """No packet from `source` reaches `destination`; those of the other direction do."""
        self.set(STOPPED, source, destination)

    def isolate(self, name: str) -> None:
        """Cuts the host off from all others."""
        for other in self.hosts:
            if other != name:
                self.cut(name, other)

    def heal(self) -> None:
        """All packets arrive again."""
        self.set_all(FREE)

    def lost(self, *directions: tuple[str, str]) -> int:
        """Packets from one to the other, of all these pairs, that did not arrive."""
        return self._switch.lost(*map(self._addresses, directions))

    def wait_for_lost(self, count: int, *directions: tuple[str, str], seconds: float = PATIENCE) -> None:
        """Waits until that many more of them were lost: how long a cut lasts, told by what it did."""
        pairs = [self._addresses(pair) for pair in directions]
        wanted = self._switch.lost(*pairs) + count
        if not self._switch.wait_for_lost(wanted, seconds, *pairs):
            raise AssertionError(f"fewer than {count} packets of {directions} were lost within {seconds:g} s")

    def _addresses(self, pair: tuple[str, str]) -> tuple[str, str]:
        return self.hosts[pair[0]].address, self.hosts[pair[1]].address


def why_not() -> str:
    """Why no such network can be made here; "" where it can."""
    try:
        with Network("one", "two"):
            return ""
    except OSError as error:
        return f"network namespaces with TUN devices need root, CAP_SYS_ADMIN and CAP_NET_ADMIN: {error}"


def _make_host(name: str, address: str) -> Host:
    """Moves the calling thread into a namespace of its own, which has the device then."""
    _checked(_LIBC.unshare(_CLONE_NEWNET), "unshare(CLONE_NEWNET)")
    namespace = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.ioctl(tun, _TUNSETIFF, struct.pack("16sH22x", _DEVICE.encode(), _IFF_TUN | _IFF_NO_PI))
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
                _set_flags(control, "lo")
                _set_address(control, _SIOCSIFADDR, address)
                _set_address(control, _SIOCSIFNETMASK, "255.255.255.0")
                _set_flags(control, _DEVICE)
        except BaseException:
            os.close(tun)
            raise
    except BaseException:
        os.close(namespace)
        raise
    return Host(name, address, namespace, tun)


def _set_flags(control: socket.socket, device: str) -> None:
    fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH22x", device.encode(), _IFF_UP_RUNNING))


def _set_address(control: socket.socket, request: int, address: str) -> None:
    family = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(address))
    fcntl.ioctl(control, request, struct.pack("16s16s8x", _DEVICE.encode(), family))


_LIBC = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def in_thread(work: Callable[[], T], seconds: float = PATIENCE) -> T:
    """`work()` on a thread of its own, which is what a namespace can be changed of. Raises what it raises, and
    AssertionError after so many seconds."""
    result: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="in a host", daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    assert result, f"not done within {seconds:g} s"
    return result[0]
