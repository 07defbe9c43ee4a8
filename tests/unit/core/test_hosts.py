"""What addresses say about hosts: where a task may listen, what others dial, who shares the machine. No socket."""

from __future__ import annotations

import socket

import pytest

from tenfold_core import errors
from tenfold_core.hosts import address_to_dial, tasks_on_host, where_to_listen

TASK = "/job:ps/replica:0/task:0"


@pytest.mark.parametrize(
    ("bind", "mine", "protected", "where"),
    [
        (None, "a:1", False, (None, 0)),
        ("127.0.0.1:2222", "a:1", False, ("127.0.0.1", 2222)),
        ("localhost:0", "a:1", False, ("localhost", 1)),
        ("[::1]:0", "", False, ("[::1]", 0)),
        ("0.0.0.0:2222", "a:1", True, ("0.0.0.0", 2222)),
    ],
)
def test_where_a_task_listens(bind: str | None, mine: str, protected: bool, where: tuple[str | None, int]) -> None:
    assert where_to_listen(TASK, bind, mine, protected) == where


@pytest.mark.parametrize("bind", ["0.0.0.0:2222", "[::]:2222", "worker.example:2222", "10.0.0.1:0"])
def test_a_port_that_others_reach_needs_consent(bind: str) -> None:
    with pytest.raises(errors.PermissionDeniedError, match=f"{TASK} refuses to listen .*TENFOLD_INSECURE=1"):
        where_to_listen(TASK, bind, "a:1", protected=False)


def test_a_malformed_listener_is_refused() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="the listener"):
        where_to_listen(TASK, "2222", "", protected=True)


@pytest.mark.parametrize(
    ("mine", "host", "address"),
    [
        ("a:1", "0.0.0.0", "a:1"),
        ("a:0", "0.0.0.0", "a:77"),
        ("", "127.0.0.1", "localhost:77"),
        ("", "0.0.0.0", f"{socket.gethostname()}:77"),
        ("", "[::]", f"{socket.gethostname()}:77"),
        ("", "10.0.0.5", "10.0.0.5:77"),
        ("", "fd00::5", "[fd00::5]:77"),
        ("[fd00::5]:0", "[::]", "[fd00::5]:77"),
    ],
)
def test_what_others_dial(mine: str, host: str, address: str) -> None:
    assert address_to_dial(mine, host, 77) == address


@pytest.mark.parametrize(
    ("job", "index", "count"),
    [("ps", 0, 3), ("worker", 0, 3), ("worker", 1, 1), ("worker", 2, 1), ("chief", 0, 1)],
)
def test_tasks_of_one_host_are_counted_by_name(job: str, index: int, count: int) -> None:
    addresses = {"ps": {0: "127.0.0.1:1"}, "worker": {0: "localhost:2", 1: "a:1", 2: "", 3: "LOCALHOST:3", 4: "b:1"}}

    assert tasks_on_host(addresses, job, index) == count
