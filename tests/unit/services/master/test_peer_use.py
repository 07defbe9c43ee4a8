"""Who counts as one peer, and how its sessions are counted."""

from __future__ import annotations

import pytest

from tenfold_services.master.peer_use import PeerTable, peer_name


@pytest.mark.parametrize(
    ("who", "address", "name"),
    [
        ("token ci", "ipv4:10.0.0.7:4711", "token ci at 10.0.0.7"),
        ("user 1000", "ipv6:[::1]:4711", "user 1000 at [::1]"),
        ("", "ipv4:10.0.0.7:1", "somebody at 10.0.0.7"),
        ("everybody", "unix:", "everybody at unix:"),
        ("", "", ""),
    ],
)
def test_a_peer_is_what_it_was_let_in_as_and_where_it_is(who: str, address: str, name: str) -> None:
    assert peer_name(who, address) == name


def test_a_peer_is_known_as_long_as_it_has_sessions() -> None:
    table = PeerTable()
    assert table.find("") is None, "this process is not counted"
    first = table.find("a")
    assert first is not None
    assert table.find("a") is not first, "it has none yet"
    table.enter(first)
    assert table.find("a") is first
    assert first.sessions == 1
    table.enter(first)
    assert first.sessions == 2
    assert table.find("b") is not first
    table.leave(first)
    assert table.find("a") is first
    table.leave(first)
    assert first.sessions == 0
    assert table.find("a") is not first
