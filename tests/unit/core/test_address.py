"""Addresses of tasks: splitting them, and where a task listens."""

from __future__ import annotations

import pytest

from tenfold_core.address import bind_address, split_address


@pytest.mark.parametrize("text", ["", "h", "h:", ":1", "h:x", "h:0", "h:65536", "grpc://h:1"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="is not HOST:PORT with a port from 1 to 65535"):
        split_address(text)


def test_ports_and_brackets() -> None:
    assert split_address("[::1]:22") == ("[::1]", 22)
    assert split_address("h:0", least_port=0) == ("h", 0)


@pytest.mark.parametrize(
    ("host", "where"),
    [
        ("localhost", "127.0.0.1:5"),
        ("127.0.0.2", "127.0.0.2:5"),
        ("[::1]", "[::1]:5"),
        ("worker0", "0.0.0.0:5"),
        ("10.0.0.1", "0.0.0.0:5"),
    ],
)
def test_a_task_listens_where_others_need_it(host: str, where: str) -> None:
    assert bind_address(host, 5) == where
