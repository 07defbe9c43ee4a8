"""Which hosts only this machine reaches."""

from __future__ import annotations

import pytest

from tenfold_core.loopback import is_loopback


@pytest.mark.parametrize("host", ["localhost", "LocalHost", "localhost.localdomain", "127.0.0.1", "127.9.9.9", "[::1]"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "[::]", "10.0.0.1", "localhost.example", "a", "127.0.0.1.example"])
def test_others_can_reach_it(host: str) -> None:
    assert not is_loopback(host)
