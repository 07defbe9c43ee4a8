"""Hosts of this machine: which need no protection, and which spellings lead to the same listener."""

from __future__ import annotations

import pytest

from tenfold_core.loopback import HOSTS, WILDCARDS, is_loopback, same_host


@pytest.mark.parametrize("host", ["localhost", "LocalHost", "localhost.localdomain", "127.0.0.1", "127.9.9.9", "[::1]"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "[::]", "10.0.0.1", "localhost.example", "a", "127.0.0.1.example"])
def test_others_can_reach_it(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize("host", [*HOSTS, *sorted(WILDCARDS)])
def test_spellings_of_one_listener(host: str) -> None:
    assert same_host(host.upper()) == "localhost"


def test_another_loopback_address_is_another_host() -> None:
    assert same_host("127.0.0.2") == "127.0.0.2"
    assert same_host("Worker0") == "worker0"
