"""Hosts on one machine that look like hosts: interfaces, addresses of both families, a name and an /etc/hosts of their
own, joined by Ethernet of the kernel's or by a wire with a delay.

Each host is a network namespace, a UTS namespace and a mount namespace. On a `Lan` a veth pair joins it to a bridge,
which lies in a namespace of its own; nothing here is fast or slow but the kernel. With a delay it is `tc netem`, where
the kernel has it, else each host has a TUN device and relay.py carries what TCP hands over, up to 64 KB at a time.

As in network.py, which is for what packets suffer, everything exists through descriptors of this process alone: nothing
has a name outside, and a test that is killed leaves nothing. Needs root (CAP_SYS_ADMIN, CAP_NET_ADMIN) and iproute2:
`why_not`.

    with Lan("h1", "h2") as lan:
        lan.inside("h1", lambda: subprocess.Popen(...))     # a process on h1, which reaches h2 by that name
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from support.faults.network import PATIENCE, in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

T = TypeVar("T")

_CLONE_FS, _CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWNET = 0x200, 0x20000, 0x4000000, 0x40000000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
#: linux/if_tun.h.
_TUNSETIFF, _TUNSETOFFLOAD = 0x400454CA, 0x400454D0
_IFF_TUN, _IFF_NO_PI, _IFF_VNET_HDR = 0x0001, 0x1000, 0x4000
_TUN_F_CSUM, _TUN_F_TSO4, _TUN_F_TSO6 = 0x01, 0x02, 0x04
_KINDS = {"net": _CLONE_NEWNET, "uts": _CLONE_NEWUTS, "mnt": _CLONE_NEWNS}
#: Seconds for a command, and for the relay to end.
_COMMAND_S = 30.0
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class LanHost:
    """One host. The descriptors belong to the Lan."""

    name: str
    #: Of the interface that reaches the others, as clients write them: the second one in brackets.
    address: str
    address6: str
    #: Of an interface that reaches nobody.
    stray: str
    #: "net", "uts", "mnt" → what keeps that namespace alive.
    namespaces: dict[str, int]
    #: Its packets, where a relay carries them; else -1.
    tun: int = -1


class Lan:
    """`with Lan("h1", "h2", delay=0.005) as lan:`, where `delay` is what each packet takes, in seconds. Blocking; any
    thread."""

    def __init__(self, *names: str, delay: float = 0.0) -> None:
        self._names, self._delay = names, delay
        self.hosts: dict[str, LanHost] = {}
        #: Who delays packets: "netem", "relay", or "" where nobody does.
        self.delayed_by = "" if not delay else "netem" if _has_netem() else "relay"
        self._hub = -1
        self._relay: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="lan-")

    def __enter__(self) -> Lan:
        try:
            if self.delayed_by != "relay":
                self._hub = in_thread(_make_hub)
            for number, name in enumerate(self._names, start=1):
                self.hosts[name] = self._make_host(number, name)
            if self.delayed_by == "relay":
                self._relay = _start_relay(list(self.hosts.values()), self._delay)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def address(self, name: str, port: int, family: int = 4) -> str:
        """The host's, by IPv4 or IPv6, with that port."""
        host = self.hosts[name]
        return f"{host.address if family == 4 else host.address6}:{port}"

    def inside(self, name: str, work: Callable[[], T], seconds: float = PATIENCE) -> T:
        """`work()` on a thread of that host: its sockets, and processes that it starts, are there. What it raises."""
        namespaces = self.hosts[name].namespaces

        def enter() -> T:
            # a mount namespace can only be entered by who shares its root and working directory with nobody
            _checked(_LIBC.unshare(_CLONE_FS), "unshare(CLONE_FS)")
            for kind, descriptor in namespaces.items():
                _checked(_LIBC.setns(descriptor, _KINDS[kind]), f"setns({kind})")
            return work()

        return in_thread(enter, seconds)

    def run(self, name: str, *command: str, seconds: float = _COMMAND_S) -> str:
        """What the command writes on that host. Raises AssertionError with its errors, TimeoutExpired."""
        done = self.inside(
            name,
            lambda: subprocess.run(command, check=False, capture_output=True, text=True, timeout=seconds),
            seconds + _COMMAND_S,
        )
        assert not done.returncode, f"{command[:3]} on {name}: {done.returncode}\n{done.stderr}"
        return done.stdout

    def _make_host(self, number: int, name: str) -> LanHost:
        # what Debian's installer writes: the name of a host is one of its loopback
        lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost", f"127.0.1.1 {name}"]
        for other_number, other in enumerate(self._names, start=1):
            if other != name:
                lines += [f"10.78.0.{other_number} {other}", f"fd78::{other_number:x} {other}"]
        file = Path(self._folder.name, name)
        file.write_text("\n".join(lines) + "\n", encoding="ascii")
        nothing = Path(self._folder.name, "resolv.conf")
        nothing.touch()
        files = {str(file): "/etc/hosts", str(nothing): "/etc/resolv.conf"}
        tun, stray = self.delayed_by == "relay", f"192.0.2.{number}"
        namespaces, device = in_thread(partial(_make_namespaces, name, files, tun))
        host = LanHost(name, f"10.78.0.{number}", f"[fd78::{number:x}]", stray, namespaces, device)
        self.hosts[name] = host  # from now on it is closed with the others
        if not tun:
            net = f"/proc/{os.getpid()}/fd/{namespaces['net']}"
            self._in_hub(
                f"link add v{number} type veth peer name eth0 netns {net}",
                f"link set v{number} master bridge0 up",
            )
        self.inside(
            name,
            partial(
                _ip,
                "link set lo up",
                # a way to nowhere, which a task must not take
                "link add stray0 type veth peer name stray1",
                f"addr add {stray}/24 dev stray0",
                "link set stray1 up",
                "link set stray0 up",
                f"addr add {host.address}/24 dev eth0",
                f"addr add {host.address6.strip('[]')}/64 dev eth0 nodad",
                "link set eth0 txqueuelen 10000 up",
            ),
        )
        if self.delayed_by == "netem":
            self.run(name, *_netem(self._delay))
        return host

    def _in_hub(self, *commands: str) -> None:
        def enter() -> None:
            _checked(_LIBC.setns(self._hub, _CLONE_NEWNET), "setns(net)")
            _ip(*commands)

        in_thread(enter)

    def _close(self) -> None:
        if self._relay is not None:
            self._relay.kill()
            self._relay.wait(_COMMAND_S)
        for host in self.hosts.values():
            for descriptor in (*host.namespaces.values(), host.tun):
                if descriptor >= 0:
                    os.close(descriptor)
        self.hosts.clear()
        if self._hub >= 0:
            os.close(self._hub)
        self._folder.cleanup()


def why_not(delay: float = 0.0) -> str:
    """Why no such hosts can be made here; "" where they can."""
    for program in ("ip", "tc"):
        if shutil.which(program) is None:
            return f"hosts of a test's own need `{program}`: install iproute2"
    try:
        with Lan("one", "two", delay=delay):
            return ""
    except (OSError, subprocess.CalledProcessError) as error:
        return f"hosts of a test's own need root, CAP_SYS_ADMIN and CAP_NET_ADMIN: {error}"


def _make_hub() -> int:
    """Moves the calling thread into a namespace with a bridge; what keeps that alive."""
    _checked(_LIBC.unshare(_CLONE_NEWNET), "unshare(CLONE_NEWNET)")
    _ip("link add bridge0 type bridge", "link set bridge0 up")
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _make_namespaces(name: str, files: dict[str, str], with_tun: bool) -> tuple[dict[str, int], int]:
    """Moves the calling thread into namespaces of its own, in which these files stand for others: `{file: place}`."""
    _checked(_LIBC.unshare(_CLONE_NEWNET | _CLONE_NEWUTS | _CLONE_NEWNS), "unshare")
    _checked(_LIBC.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None), "mount /")
    for file, place in files.items():
        if os.path.exists(place):
            _checked(_LIBC.mount(file.encode(), place.encode(), None, _MS_BIND, None), f"mount {place}")
    _checked(_LIBC.sethostname(name.encode(), len(name)), "sethostname")
    tun = _make_tun() if with_tun else -1
    return {kind: os.open(f"/proc/thread-self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in _KINDS}, tun


def _make_tun() -> int:
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.ioctl(tun, _TUNSETIFF, struct.pack("16sH22x", b"eth0", _IFF_TUN | _IFF_NO_PI | _IFF_VNET_HDR))
        # TCP hands over segments of up to 64 KB, which nobody cuts: only their headers are looked at
        fcntl.ioctl(tun, _TUNSETOFFLOAD, _TUN_F_CSUM | _TUN_F_TSO4 | _TUN_F_TSO6)
    except BaseException:
        os.close(tun)
        raise
    return tun


def _start_relay(hosts: Sequence[LanHost], delay: float) -> subprocess.Popen[bytes]:
    """The wire of these hosts. It holds their devices, and ends with them."""
    program = Path(__file__).with_name("relay.py")
    places = [f"{host.tun},{host.address},{host.address6.strip('[]')}" for host in hosts]
    return subprocess.Popen(
        [sys.executable, str(program), str(os.getpid()), str(delay), *places],
        pass_fds=[host.tun for host in hosts],
        stdin=subprocess.DEVNULL,
    )


def _ip(*commands: str) -> None:
    """Raises CalledProcessError."""
    text = "\n".join(commands) + "\n"
    done = subprocess.run(["ip", "-batch", "-"], input=text, capture_output=True, text=True, timeout=_COMMAND_S)
    if done.returncode:
        raise OSError(f"ip: {done.stderr.strip()}")


def _netem(delay: float) -> list[str]:
    return ["tc", "qdisc", "add", "dev", "eth0", "root", "netem", "delay", f"{delay * 1e6:.0f}us", "limit", "1000000"]


def _has_netem() -> bool:
    """Whether this kernel has it."""

    def tried() -> bool:
        _checked(_LIBC.unshare(_CLONE_NEWNET), "unshare(CLONE_NEWNET)")
        _ip("link add eth0 type veth peer name eth1", "link set eth0 up")
        return not subprocess.run(_netem(0.001), capture_output=True, timeout=_COMMAND_S).returncode

    return in_thread(tried)


def _checked(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
