"""Who lets in whoever comes, tasks and the service itself, is told over REST."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from tenfold.control import TaskRegistration
from tenfold_control_api.app import create_app
from tenfold_control_api.service_settings import Settings
from tenfold_core.access.credentials import AccessSettings
from tenfold_services.server import TaskServer

from .conftest import Masters, declare, running_app

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from tenfold.control import ControlClient

    from .conftest import Service

TASK = "/v1/clusters/default/tasks/ps/0"


def told(incarnation: str, **more: Any) -> dict[str, Any]:
    return {"address": "127.0.0.1:2222", "incarnation": incarnation, **more}


async def test_a_task_says_it_of_itself(api: httpx.AsyncClient) -> None:
    await declare(api, ps=1)

    before = (await api.put(TASK, json=told("a"))).json()
    open_now = (await api.put(TASK, json=told("a", insecure=True))).json()
    listed = (await api.get("/v1/clusters/default/jobs/ps")).json()["tasks"]
    closed = (await api.put(TASK, json=told("a", insecure=False))).json()

    assert [each["task"]["insecure"] for each in (before, open_now, closed)] == [False, True, False]
    assert [task["insecure"] for task in listed] == [True]
    assert open_now["spec_version"] > before["spec_version"]


async def test_it_is_kept_and_its_successor_says_it_anew(database: str) -> None:
    async with running_app(create_app(Settings(database=database), Masters())) as api:
        await declare(api, ps=1)
        lease = (await api.post("/v1/clusters/default/tasks/ps:claim", json=told("a", insecure=True))).json()["lease"]
    async with running_app(create_app(Settings(database=database), Masters())) as api:
        kept = (await api.get(TASK)).json()
        await api.post(f"/v1/leases/{lease['id']}:release", json={"state": "stopped"})
        successor = (await api.put(TASK, json=told("b"))).json()["task"]

    assert (kept["insecure"], successor["insecure"]) == (True, False)


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({}, {"insecure": False, "tokens": False, "tls": False}),
        ({"insecure": True}, {"insecure": True, "tokens": False, "tls": False}),
        ({"insecure": True, "token": "a token of ours"}, {"insecure": False, "tokens": True, "tls": False}),
    ],
)
async def test_the_service_says_it_of_itself(sqlite: str, settings: dict[str, Any], shown: dict[str, Any]) -> None:
    async with running_app(create_app(Settings(database=sqlite, **settings), Masters())) as api:
        headers = {"Authorization": "Bearer a token of ours"} if "token" in settings else {}
        answer = (await api.get("/v1/service", headers=headers)).json()

    assert {**answer, **shown} == answer
    assert answer["version"]
    assert answer["services"] == []


def test_by_the_sdk(start_service: Callable[..., Service], connect: Callable[..., ControlClient]) -> None:
    with connect(start_service(insecure=True).url) as client:
        client.declare_cluster("default", {"ps": 1})
        registration = TaskRegistration(client, "default", "ps", None, "h:1", insecure=True)
        with registration:
            assert client.task_status("default", "ps", 0).insecure
            assert client.service().insecure


def test_a_service_of_before_does_not_know_the_word(
    start_service: Callable[..., Service], connect: Callable[..., ControlClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tenfold_core import errors

    with connect(start_service().url) as client:
        client.declare_cluster("default", {"ps": 1})
        real = client.register_task

        def of_before(*arguments: Any, insecure: bool, **more: Any) -> Any:
            if insecure:
                raise errors.InvalidArgumentError(None, None, "insecure is not known")
            return real(*arguments, **more)

        monkeypatch.setattr(client, "register_task", of_before)
        with TaskRegistration(client, "default", "ps", 0, "h:1", insecure=True) as registration:
            assert registration.lease.id
            assert not client.task_status("default", "ps", 0).insecure


async def test_a_task_logs_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with TaskServer({"ps": [""]}, "ps", 0, access=AccessSettings()):
        assert "insecure" not in caplog.text
    async with TaskServer({"ps": [""]}, "ps", 0, insecure=True, access=AccessSettings()) as server:
        assert f"insecure: anyone who reaches 127.0.0.1:{server.port} may run code" in caplog.text
