"""By which address another host reaches this machine, and whether a control service is another host at all."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from tenfold_core.own_address import beyond_loopback, local_address


@pytest.mark.parametrize(
    ("urls", "place"),
    [
        ("http://10.77.0.1:8080", ("10.77.0.1", 8080)),
        ("https://control.example.org/", ("control.example.org", 443)),
        ("http://control", ("control", 80)),
        (" http://a:8080 , http://b:8080", ("a", 8080)),
        ("http://[fd00::1]:8080", ("fd00::1", 8080)),
        ("http://127.0.0.1:8080", None),
        ("http://localhost:8080", None),
        ("http://[::1]:8080", None),
        ("", None),
    ],
)
def test_what_is_beyond_this_machine(urls: str, place: tuple[str, int] | None) -> None:
    assert beyond_loopback(urls) == place


class Datagrams:
    """A socket; the way to it leads nowhere, or from a certain address."""

    def __init__(self, family: int, kind: int, number: int) -> None:
        self.family = family

    def __enter__(self) -> Datagrams:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def connect(self, place: tuple[Any, ...]) -> None:
        if place[0] == "fd00::9":
            raise OSError("Network is unreachable")

    def getsockname(self) -> tuple[Any, ...]:
        return ("fe80::5%eth0", 1, 0, 2) if self.family == socket.AF_INET6 else ("10.0.0.5", 1)


@pytest.mark.parametrize(
    ("places", "mine"),
    [
        ([(socket.AF_INET, "10.0.0.9")], "10.0.0.5"),
        ([(socket.AF_INET6, "fd00::9"), (socket.AF_INET, "10.0.0.9")], "10.0.0.5"),
        ([(socket.AF_INET6, "fe80::9")], "[fe80::5]"),
    ],
)
def test_the_first_way_there_is(monkeypatch: pytest.MonkeyPatch, places: list[tuple[int, str]], mine: str) -> None:
    found = [(family, socket.SOCK_DGRAM, 17, "", (host, 80)) for family, host in places]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    monkeypatch.setattr(socket, "socket", Datagrams)
    assert local_address("h", 80) == mine


@pytest.mark.parametrize(
    ("places", "why"),
    [([(socket.AF_INET6, "fd00::9")], "Network is unreachable"), ([], "h has no address")],
)
def test_no_way_there(monkeypatch: pytest.MonkeyPatch, places: list[tuple[int, str]], why: str) -> None:
    found = [(family, socket.SOCK_DGRAM, 17, "", (host, 80)) for family, host in places]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    monkeypatch.setattr(socket, "socket", Datagrams)
    with pytest.raises(OSError, match=why):
        local_address("h", 80)


def test_the_address_towards_loopback_is_loopback() -> None:
    assert local_address("127.0.0.1", 9) == "127.0.0.1"
