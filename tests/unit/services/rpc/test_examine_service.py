"""What a task says of itself and of the tasks that it dials; neither sockets nor names are looked up."""

from __future__ import annotations

import asyncio
import socket
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from support.fake_calls import ask as ask_service
from tenfold_core import errors
from tenfold_core.access.credentials import NO_CREDENTIALS
from tenfold_core.access.roles import Role
from tenfold_core.running_versions import running_versions
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS, LinkSettings
from tenfold_protos import examine_pb2
from tenfold_protos.device_attributes_pb2 import DeviceAttributes
from tenfold_protos.link_pb2 import OpenLinkResponse
from tenfold_protos.why_pb2 import TaskAnswer
from tenfold_protos.worker_pb2 import GetStatusRequest, GetStatusResponse
from tenfold_services.rpc import examine_service as module
from tenfold_services.rpc.examine_service import TENSOR, examine_service, waits_everywhere

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"
SHOWN = cast("Any", SimpleNamespace(of=lambda address: None, name="ours"))


class Network:
    """Stands in for names, channels, calls and links."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        #: Address → the task that answers there, an error, or a future that keeps the call waiting.
        self.tasks: dict[str, Any] = {}
        self.names: dict[str, Any] = {}
        self.waits: dict[str, Any] = {}
        self.opened: list[Any] = []
        self.asked: list[Any] = []
        self.links: dict[str, Any] = {}
        self.ways: list[Any] = []
        self.resolved: list[Any] = []
        self.at_once = self.most_at_once = 0
        #: While set, calls wait for it.
        self.gate: asyncio.Event | None = None
        monkeypatch.setattr(module, "open_channel", self.open)
        monkeypatch.setattr(module, "ask", self.ask)
        monkeypatch.setattr(module, "asker", self.asker)
        monkeypatch.setattr(module, "way", self.way)
        monkeypatch.setattr(module, "credentials_for", lambda credentials, task: (credentials, task))
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", self.getaddrinfo)

    async def getaddrinfo(self, host: str, port: int, **more: Any) -> Any:
        self.resolved.append((host, port, more))
        found = self.names.get(host)
        if isinstance(found, asyncio.Event):
            await found.wait()
        if isinstance(found, Exception):
            raise found

    def open(self, address: str, credentials: Any) -> Any:
        self.opened.append((address, credentials))
        network = self

        class Channel:
            async def __aenter__(self) -> Any:
                network.at_once += 1
                network.most_at_once = max(network.most_at_once, network.at_once)
                return address

            async def __aexit__(self, *_: object) -> None:
                network.at_once -= 1

        return Channel()

    async def ask(self, *given: Any) -> Any:
        channel, path, request, response, task, address, seconds = given
        self.asked.append((path, request, response, task, address, seconds))
        assert channel == address
        if self.gate is not None:
            await self.gate.wait()
        answer = (self.waits if path.endswith("Examine") else self.tasks).get(address)
        if isinstance(answer, Exception):
            raise answer
        if path.endswith("Examine"):
            return examine_pb2.ExamineResponse(wait=answer)
        return GetStatusResponse(device_attributes=[DeviceAttributes(name=name) for name in answer or ()])

    def asker(self, channel: Any, task: str, address: str, seconds: float) -> Any:
        async def ask_link(request: Any) -> Any:
            self.links["request"] = (request, task, address, seconds)
            answer = self.links[address]
            if isinstance(answer, Exception):
                raise answer
            return answer

        return ask_link

    async def way(self, *given: Any) -> str:
        self.ways.append(given)
        found = self.links.get("way", "tcp:9")
        if isinstance(found, Exception):
            raise found
        return str(found)


@pytest.fixture
async def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    return Network(monkeypatch)


async def examine(
    tasks: Any = None, settings: LinkSettings = DEFAULT_LINK_SETTINGS, waits: Any = lambda handle: [], **fields: Any
) -> Any:
    service = examine_service(SHOWN, lambda: tasks or {}, lambda: "here", settings, waits, TaskAnswer)
    request = examine_pb2.ExamineRequest(**{"seconds": 2.5, **fields})
    return await ask_service(service, "/tenfold.ExamineService/Examine", request, examine_pb2.ExamineResponse)


def peer(task: str = PS, address: str = "host:1") -> examine_pb2.TaskAddress:
    return examine_pb2.TaskAddress(task=task, address=address)


def cpu(task: str = PS) -> list[str]:
    return [f"{task}/device:CPU:0"]


async def test_a_task_says_what_and_where_it_is(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: 7.5))
    answer = await examine()
    assert (answer.now, dict(answer.version), answer.host) == (7.5, running_versions(), socket.gethostname())
    assert list(answer.peer) == []


def test_who_may_run_graphs_may_ask() -> None:
    service = examine_service(SHOWN, dict, lambda: "here", DEFAULT_LINK_SETTINGS, lambda handle: [], TaskAnswer)
    assert {path: handler.needs for path, handler in service.handlers.items()} == {
        "/tenfold.ExamineService/Examine": Role.RUN
    }


@pytest.mark.parametrize(
    ("seconds", "refused"), [(0.0, True), (-1.0, True), (0.5, False), (30.0, False), (30.5, True), (float("nan"), True)]
)
async def test_each_may_take_so_long(network: Network, seconds: float, refused: bool) -> None:
    answer = await examine(seconds=seconds)
    if refused:
        assert (answer.code, answer.text) == (3, f"Examine allows {seconds} s; it may be up to 30 s.")
    else:
        assert isinstance(answer, examine_pb2.ExamineResponse)


@pytest.mark.parametrize("more", [0, 1])
async def test_a_request_names_so_many_tasks(network: Network, more: int) -> None:
    answer = await examine(peer=[peer(address="")] * (1000 + more))
    if more:
        assert (answer.code, answer.text) == (3, "Examine names 1001 tasks; 1000 is the limit.")
    else:
        assert len(answer.peer) == 1000


# -- dialling ----------------------------------------------------------------------------------------------------------


async def test_a_task_that_answers_is_timed(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter((1.0, 1.25))
    monkeypatch.setattr(module, "time", SimpleNamespace(time=time.time, monotonic=lambda: next(times)))
    network.tasks["host:1"] = cpu()

    [found] = (await examine(peer=[peer()])).peer

    assert found == examine_pb2.PeerFinding(task=PS, address="host:1", seconds=0.25)
    assert network.asked == [
        ("/tensorflow.WorkerService/GetStatus", GetStatusRequest(), GetStatusResponse, PS, "host:1", 2.5)
    ]
    assert network.resolved == [("host", 1, {"type": socket.SOCK_STREAM})]


@pytest.mark.parametrize("known", ["host:1", "host:2", None])
async def test_credentials_are_shown_to_the_clusters_own_tasks_alone(network: Network, known: str | None) -> None:
    network.tasks["host:1"] = cpu()
    cluster = {} if known is None else {PS: known}
    await examine(cluster, peer=[peer()])
    assert network.opened == [("host:1", (SHOWN, PS) if known == "host:1" else NO_CREDENTIALS)]


async def test_the_cluster_is_dialled_behind_those_that_are_named(network: Network) -> None:
    network.tasks = {"host:1": cpu(), "host:2": cpu(WORKER)}
    found = (await examine({WORKER: "host:2", "/job:a/replica:0/task:0": ""}, peer=[peer()], cluster=True)).peer
    assert [(each.task, each.address, each.error) for each in found] == [
        (PS, "host:1", ""),
        (WORKER, "host:2", ""),
        ("/job:a/replica:0/task:0", "", "it has not registered: no address is known"),
    ]


async def test_of_a_large_cluster_so_many_are_dialled(network: Network) -> None:
    cluster = {f"/job:a/replica:0/task:{index}": "" for index in range(1001)}
    assert len((await examine(cluster, cluster=True)).peer) == 1000


async def test_so_many_are_dialled_at_once(network: Network) -> None:
    network.gate = asyncio.Event()
    network.tasks["host:1"] = cpu()
    asked = asyncio.ensure_future(examine(peer=[peer()] * 40))
    for _ in range(20):
        await asyncio.sleep(0)
    assert network.at_once == 32
    network.gate.set()
    assert len((await asked).peer) == 40
    assert network.most_at_once == 32


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        (["/job:ps/replica:0/task:01/device:CPU:0"], "/job:ps/replica:0/task:01 answers there"),
        ([], "something without a device answers there"),
        (cpu(WORKER), f"{WORKER} answers there"),
        (errors.unavailable("refused"), "UNAVAILABLE: refused"),
    ],
)
async def test_what_answers_may_be_another(network: Network, answers: Any, error: str) -> None:
    network.tasks["host:1"] = answers
    [found] = (await examine(peer=[peer()], links=True)).peer
    assert found.error == error
    assert network.ways == []


@pytest.mark.parametrize(
    ("address", "name", "error"),
    [
        ("nonsense", None, "nonsense"),
        ("host:1", OSError(5, "No such name"), "the name host does not resolve: No such name"),
        ("host:1", OSError("odd"), "the name host does not resolve: odd"),
        ("host:1", TimeoutError(), "the name host was not resolved within 2.5 s"),
    ],
)
async def test_a_name_may_not_resolve(network: Network, address: str, name: Any, error: str) -> None:
    network.names["host"] = name
    [found] = (await examine(peer=[peer(address=address)])).peer
    assert error in found.error
    assert network.opened == []


async def test_the_brackets_of_an_address_are_no_part_of_its_name(network: Network) -> None:
    network.tasks["[::1]:1"] = cpu()
    await examine(peer=[peer(address="[::1]:1")])
    assert network.resolved[0][:2] == ("::1", 1)


# -- links -------------------------------------------------------------------------------------------------------------


async def test_a_link_is_tried_and_its_way_told(network: Network) -> None:
    network.tasks["host:1"] = cpu()
    network.links["host:1"] = OpenLinkResponse(version=1, release="1.2.3")

    [found] = (await examine(peer=[peer()], links=True)).peer

    assert (found.link, found.link_version, found.release, found.link_error) == ("tcp:9", 1, "1.2.3", "")
    _, task, address, seconds = network.links["request"]
    assert (task, address, seconds) == (PS, "host:1", 2.5)
    [(answer, way_address, settings)] = network.ways
    assert (answer.release, way_address, settings.hello_seconds) == ("1.2.3", "host:1", 2.5)


async def test_one_that_does_not_say_its_version_speaks_the_first(network: Network) -> None:
    network.tasks["host:1"] = cpu()
    network.links["host:1"] = OpenLinkResponse()
    [found] = (await examine(peer=[peer()], links=True)).peer
    assert found.link_version == 1


@pytest.mark.parametrize(("links", "mode"), [(False, "auto"), (True, "off")])
async def test_links_are_tried_where_they_are_wanted(network: Network, links: bool, mode: Any) -> None:
    network.tasks["host:1"] = cpu()
    settings = LinkSettings(mode=mode)
    [found] = (await examine(settings=settings, peer=[peer()], links=links)).peer
    assert (found.link, found.link_version) == ("", 0)
    assert "request" not in network.links


@pytest.mark.parametrize(
    ("answer", "way", "told"),
    [
        (errors.unimplemented("none"), "unix", ("", "", 0)),
        (errors.unavailable("refused"), "unix", ("", "refused", 0)),
        (OpenLinkResponse(version=1), errors.unavailable("no way"), ("", "no way", 1)),
    ],
)
async def test_why_there_is_no_link(network: Network, answer: Any, way: Any, told: Any) -> None:
    network.tasks["host:1"] = cpu()
    network.links.update({"host:1": answer, "way": way})
    [found] = (await examine(peer=[peer()], links=True)).peer
    assert (found.link, found.link_error, found.link_version) == told


async def test_a_version_that_is_not_ours_makes_no_link(network: Network) -> None:
    network.tasks["host:1"] = cpu()
    network.links["host:1"] = OpenLinkResponse(version=9)
    [found] = (await examine(peer=[peer()], links=True)).peer
    assert (found.link_version, network.ways) == (9, [])
    assert PS in found.link_error


@pytest.mark.parametrize("tls", [False, True])
async def test_a_link_is_asked_for_as_the_address_needs_it(
    network: Network, tls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(module.handshake, "ask", lambda settings, tls: asked.append(tls))
    monkeypatch.setattr(
        module, "credentials_for", lambda *_: SimpleNamespace(of=lambda address: "certificates" if tls else None)
    )
    network.tasks["host:1"] = cpu()
    network.links["host:1"] = OpenLinkResponse()
    await examine({PS: "host:1"}, peer=[peer()], links=True)
    assert asked == [tls]


# -- what steps wait for -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cluster", [False, True])
async def test_waits_of_a_session_are_told(network: Network, cluster: bool) -> None:
    network.waits["host:2"] = ["there"]
    fields = {"waits_of_session": "s", "cluster": cluster, "peer": [peer()]}
    answer = await examine({WORKER: "host:2"}, waits=lambda handle: [f"{handle} here"], **fields)
    assert list(answer.wait) == (["s here", "there"] if cluster else ["s here"])
    assert (list(answer.peer), answer.host) == ([], "")
    if cluster:
        request = examine_pb2.ExamineRequest(waits_of_session="s", seconds=2.0)
        path = "/tenfold.ExamineService/Examine"
        assert network.asked == [(path, request, examine_pb2.ExamineResponse, WORKER, "host:2", 2.0)]
        assert network.opened == [("host:2", SHOWN)]


async def test_tasks_that_do_not_say_are_left_out(network: Network) -> None:
    network.waits = {"a:1": ["x"], "b:1": errors.unimplemented("not here"), "c:1": TimeoutError(), "d:1": ["y", "x"]}
    others = {"a": "a:1", "b": "b:1", "c": "c:1", "e": "", "d": "d:1"}
    assert await waits_everywhere("s", ["y"], others, SHOWN) == ["y", "x"]
    assert [address for address, _ in network.opened] == ["a:1", "b:1", "c:1", "d:1"]


async def test_a_task_that_hangs_is_left_out_after_a_while(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WAITS_S", 0.01)
    network.gate = asyncio.Event()
    assert await waits_everywhere("s", ["y"], {"a": "a:1"}, SHOWN) == ["y"]
    assert network.at_once == 0


async def test_who_waits_for_a_tensor_waits_for_its_maker(network: Network) -> None:
    tensor = f"{TENSOR} x"
    network.waits["a:1"] = ["a queue"]
    assert await waits_everywhere("s", [tensor], {"a": "a:1"}, SHOWN) == ["a queue"]
    assert await waits_everywhere("s", [tensor], {}, SHOWN) == [tensor]


async def test_so_many_are_asked_what_they_wait_for_at_once(network: Network) -> None:
    network.gate = asyncio.Event()
    network.waits = {f"a{index}:1": [str(index)] for index in range(1001)}
    asked = asyncio.ensure_future(waits_everywhere("s", [], {each: each for each in network.waits}, SHOWN))
    for _ in range(20):
        await asyncio.sleep(0)
    assert network.at_once == 32
    network.gate.set()
    assert len(await asked) == 1000
