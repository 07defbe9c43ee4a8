"""Addresses of tasks: splitting them, and where a task listens."""

from __future__ import annotations

import pytest

from tenfold_core import errors
from tenfold_core.address import bind_address, join_address, split_address, split_named_address


@pytest.mark.parametrize("text", ["", "h", "h:", ":1", "h:x", "h:0", "h:65536", "grpc://h:1"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="is not HOST:PORT with a port from 1 to 65535"):
        split_address(text)


@pytest.mark.parametrize("text", ["::1:22", "fd00::1:2222", "fe80::1", "[::1:22", "::1]:22"])
def test_an_address_of_ipv6_needs_brackets(text: str) -> None:
    with pytest.raises(ValueError, match=r"stands in brackets, as \[::1\]:2222"):
        split_address(text)
    with pytest.raises(errors.InvalidArgumentError, match=r"of a task is not .*stands in brackets, as \[::1\]:2222"):
        split_named_address(text, "a task")


def test_of_others_no_brackets_are_wanted() -> None:
    with pytest.raises(
        errors.InvalidArgumentError, match=r'of a task is not "host:port" with a port from 0 to 65535\.$'
    ):
        split_named_address("h:x", "a task")


def test_joining_adds_them() -> None:
    assert [join_address(host, 5) for host in ("fd00::1", "[fd00::1]", "h", "10.0.0.1")] == [
        "[fd00::1]:5", "[fd00::1]:5", "h:5", "10.0.0.1:5",
    ]  # fmt: skip


def test_ports_and_brackets() -> None:
    assert split_address("[::1]:22") == ("[::1]", 22)
    assert split_address("h:0", least_port=0) == ("h", 0)


@pytest.mark.parametrize(
    ("host", "where"),
    [
        ("localhost", "127.0.0.1:5"),
        ("127.0.0.2", "127.0.0.2:5"),
        ("[::1]", "[::1]:5"),
        ("worker0", "[::]:5"),
        ("[fd00::1]", "[::]:5"),
        ("10.0.0.1", "0.0.0.0:5"),
    ],
)
def test_a_task_listens_where_others_need_it(host: str, where: str) -> None:
    assert bind_address(host, 5) == where
