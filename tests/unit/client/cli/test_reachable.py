"""Where a task listens when nobody said so: on loopback beside its control service, else where others can dial it."""

from __future__ import annotations

import socket
from typing import Any

import click
import pytest

from tenfold.cli import reachable as reachable_module
from tenfold.cli.reachable import reachable
from tenfold.cli.task_settings import TaskSettings, advertised_address, resolve_task


def settings(control: str = "http://10.77.0.1:8080", **given: Any) -> TaskSettings:
    nothing: dict[str, Any] = dict.fromkeys(("index", "cluster", "address", "bind", "tf_config"))
    return resolve_task(**{**nothing, "job": "ps", "control": control, "cluster_name": "c", "insecure": False, **given})


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The hosts towards which this machine's address was asked for; it is 10.77.0.2."""
    asked: list[tuple[str, int]] = []

    def answer(host: str, port: int) -> str:
        asked.append((host, port))
        if host == "nowhere.invalid":
            raise socket.gaierror(-2, "Name or service not known")
        return "127.0.0.1" if host == "this-machine" else "10.77.0.2"

    monkeypatch.setattr(reachable_module, "local_address", answer)
    return asked


@pytest.mark.parametrize(
    ("control", "towards"),
    [
        ("http://10.77.0.1:8080", ("10.77.0.1", 8080)),
        ("https://control.example.org/", ("control.example.org", 443)),
        ("http://a:8080, http://b:8080", ("a", 8080)),
        ("http://[fd00::1]:8080", ("fd00::1", 8080)),
    ],
)
def test_it_listens_where_its_control_service_reaches_it(
    control: str, towards: tuple[str, int], asked: list[tuple[str, int]]
) -> None:
    assert reachable(settings(control)).bind == "10.77.0.2:0"
    assert asked == [towards]


@pytest.mark.parametrize("control", ["http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080"])
def test_beside_its_control_service_it_stays_on_loopback(control: str, asked: list[tuple[str, int]]) -> None:
    assert reachable(settings(control)).bind == "127.0.0.1:0"
    assert asked == []


def test_a_name_of_this_machine_that_is_loopback() -> None:
    assert reachable(settings("http://this-machine:8080")).bind == "127.0.0.1:0"


def test_what_was_given_counts(asked: list[tuple[str, int]]) -> None:
    bound = settings(bind="127.0.0.1:0")
    dialled = settings(address="far.example.org:2222")

    assert reachable(bound) is bound
    assert reachable(dialled) is dialled
    assert asked == []


@pytest.mark.parametrize("bind", ["0.0.0.0:2222", "[::]:2222"])
def test_a_task_on_every_interface_registers_that_address(bind: str) -> None:
    found = reachable(settings(bind=bind))

    assert found.bind == bind
    assert advertised_address(found, 4711, "here") == "10.77.0.2:4711"
    beside = reachable(settings("http://127.0.0.1:8080", bind=bind))
    assert advertised_address(beside, 4711, "here") == "here:4711"


def test_no_way_to_the_control_service_says_what_to_give() -> None:
    with pytest.raises(click.ClickException, match=r"no way to .* at http://nowhere.invalid:1 .*--address"):
        reachable(settings("http://nowhere.invalid:1"), patience=0.0)
