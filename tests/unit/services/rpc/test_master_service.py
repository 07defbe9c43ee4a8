"""A master over gRPC: what each method hands on and answers, at once or later, and who may ask it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from support.fake_calls import CALLER, FakeCall, ask
from tenfold_core import errors, graph_wire
from tenfold_core.access.roles import Role
from tenfold_kernels.resources.messages import decode, encode_into
from tenfold_protos import master_pb2
from tenfold_protos.config_pb2 import CallableOptions, ConfigProto, RunMetadata, RunOptions
from tenfold_protos.device_attributes_pb2 import DeviceAttributes
from tenfold_protos.graph_pb2 import GraphDef
from tenfold_protos.node_def_pb2 import NodeDef
from tenfold_services.http2.handler import Failure
from tenfold_services.rpc import master_service as module
from tenfold_services.rpc.large import LARGE
from tenfold_services.rpc.master_service import master_service

if TYPE_CHECKING:
    from tenfold_core.access.gate import Caller

TASK = "/job:ps/replica:0/task:0"
GRAPH = GraphDef(node=[NodeDef(name="n")])
X, Y = np.float32([1, 2]), np.int32([3])


class FakeMaster:
    """Writes down what it is asked, and answers as it is told."""

    most_nodes = 1000

    def __init__(self) -> None:
        self.asked: list[Any] = []
        #: Of a step: its values, None where it cannot run at once, or an error.
        self.at_once: Any = None
        self.values: Any = [Y]
        self.metadata: RunMetadata | None = None
        self.answers: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        async def call(*given: Any) -> Any:
            self.asked.append((name, *given))
            return self.answers.get(name)

        return call

    def check_caller(self, handle: str, caller: Caller) -> None:
        self.asked.append(("check", handle, caller))
        if handle == "another's":
            raise errors.permission_denied("not yours")

    def run_at_once(self, *given: Any) -> Any:
        self.asked.append(("run_at_once", *given))
        return self._values(self.at_once)

    async def run_step(self, *given: Any) -> Any:
        self.asked.append(("run_step", *given))
        return self._values(self.values), self.metadata

    async def run_callable(self, *given: Any) -> Any:
        self.asked.append(("run_callable", *given))
        return self._values(self.values), self.metadata

    def _values(self, values: Any) -> Any:
        if isinstance(values, Exception):
            raise values
        return values


@pytest.fixture
def master() -> FakeMaster:
    return FakeMaster()


async def call(master: FakeMaster, method: str, request: Any = None, context: Any = None) -> Any:
    request = request or getattr(master_pb2, f"{method}Request")()
    response = getattr(master_pb2, f"{method}Response")
    service = master_service(cast("Any", master), TASK, lambda: "here")
    return await ask(service, f"/tensorflow.MasterService/{method}", request, response, context)


OPTIONS = CallableOptions(feed=["x:0"])


@pytest.mark.parametrize(
    ("method", "fields", "asked", "answers", "answer"),
    [
        (
            "ExtendSession",
            {"session_handle": "s", "graph_def": GRAPH, "current_graph_version": 4},
            ("extend_session", "s", GRAPH, 4),
            5,
            {"new_graph_version": 5},
        ),
        (
            "PartialRunSetup",
            {"session_handle": "s", "feed": ["f"], "fetch": ["g"], "target": ["t"], "request_id": 6},
            ("partial_run_setup", "s", ["f"], ["g"], ["t"], 6),
            "p",
            {"partial_run_handle": "p"},
        ),
        ("CloseSession", {"session_handle": "s"}, ("close_session", "s"), None, {}),
        ("Reset", {"container": ["a", "b"]}, ("reset", ["a", "b"]), None, {}),
        (
            "MakeCallable",
            {"session_handle": "s", "options": OPTIONS, "request_id": 7},
            ("make_callable", "s", OPTIONS, 7),
            8,
            {"handle": 8},
        ),
        ("ReleaseCallable", {"session_handle": "s", "handle": 8}, ("release_callable", "s", 8), None, {}),
    ],
)
async def test_a_call_hands_on_each_field(
    master: FakeMaster, method: str, fields: Any, asked: Any, answers: Any, answer: Any
) -> None:
    master.answers[asked[0]] = answers
    given = await call(master, method, getattr(master_pb2, f"{method}Request")(**fields))
    assert given == getattr(master_pb2, f"{method}Response")(**answer)
    assert [each for each in master.asked if each[0] != "check"] == [asked]


async def test_a_session_is_made_for_its_caller(master: FakeMaster) -> None:
    master.answers["create_session"] = ("s", 3)
    context = FakeCall(remaining=2.5)
    config = ConfigProto(isolate_session_state=True)
    request = master_pb2.CreateSessionRequest(graph_def=GRAPH, config=config, target="t")

    answer = await call(master, "CreateSession", request, context)

    assert answer == master_pb2.CreateSessionResponse(session_handle="s", graph_version=3)
    assert master.asked == [
        ("create_session", GRAPH, request.config, "t", 2.5, "ipv4:127.0.0.1:1234", CALLER),
    ]
    assert context.initial == (("tenfold-task", TASK), ("tenfold-role", "run"))


async def test_devices_are_this_tasks_or_others(master: FakeMaster) -> None:
    names = [f"{TASK}/device:CPU:0", f"{TASK}0/device:CPU:0", "/job:ps/replica:0/task:1/device:CPU:0"]
    master.answers["list_devices"] = [DeviceAttributes(name=name) for name in names]
    answer = await call(master, "ListDevices", master_pb2.ListDevicesRequest(session_handle="s"))
    assert [device.name for device in answer.local_device] == names[:1]
    assert [device.name for device in answer.remote_device] == names[1:]
    assert master.asked == [("list_devices", "s")]


# -- steps -------------------------------------------------------------------------------------------------------------


def step(**more: Any) -> master_pb2.RunStepRequest:
    request = master_pb2.RunStepRequest(
        session_handle="s", fetch=["y:0"], target=["t"], request_id=6, store_errors_in_response_body=True, **more
    )
    encode_into(request.feed.add(name="x:0").tensor, X)
    return request


async def test_a_short_step_is_run_at_once(master: FakeMaster) -> None:
    master.at_once = [Y]
    answer = await call(master, "RunStep", step(options=RunOptions(timeout_in_ms=9)))
    check, (name, handle, feeds, fetches, targets, number, timeout) = master.asked
    assert check == ("check", "s", CALLER)
    assert (name, handle, number, timeout) == ("run_at_once", "s", 6, 9)
    assert (list(fetches), list(targets), feeds["x:0"].tolist()) == (["y:0"], ["t"], [1, 2])
    assert [(each.name, decode(each.tensor, "y").tolist()) for each in answer.tensor] == [("y:0", [3])]
    assert not answer.HasField("metadata")


async def test_without_options_a_step_has_no_deadline(master: FakeMaster) -> None:
    master.at_once = [Y]
    await call(master, "RunStep", step())
    assert master.asked[-1][-1] == 0


@pytest.mark.parametrize(
    "more",
    [
        {"partial_run_handle": "p"},
        {"options": RunOptions(trace_level=RunOptions.FULL_TRACE)},
        {"options": RunOptions(trace_level=RunOptions.FULL_TRACE, timeout_in_ms=3)},
        {"partial_run_handle": "p", "options": RunOptions(timeout_in_ms=3)},
    ],
)
async def test_a_step_that_says_more_takes_the_scheduled_path(master: FakeMaster, more: Any) -> None:
    master.at_once = errors.internal("must not be asked")
    request = step(**more)
    await call(master, "RunStep", request)
    [(name, handle, feeds, fetches, targets, options, number, partial)] = master.asked[1:]
    assert (name, handle, fetches, targets, number) == ("run_step", "s", ["y:0"], ["t"], 6)
    assert (options, partial, feeds["x:0"].tolist()) == (request.options, more.get("partial_run_handle", ""), [1, 2])


async def test_a_step_that_cannot_run_at_once_is_scheduled_with_its_metadata(master: FakeMaster) -> None:
    master.metadata = RunMetadata(partition_graphs=[GRAPH])
    answer = await call(master, "RunStep", step())
    assert [each[0] for each in master.asked] == ["check", "run_at_once", "run_step"]
    assert answer.metadata == master.metadata
    assert [each.name for each in answer.tensor] == ["y:0"]


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("in_body", [True, False])
async def test_an_error_goes_where_the_client_looks_for_it(
    master: FakeMaster, at_once: bool, in_body: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgotten: list[Any] = []
    monkeypatch.setattr(errors, "forget_frames", forgotten.append)
    error = errors.invalid_argument("bad\n\t [[{{node a/b}}]] and [[{{node c}}]]")
    if at_once:
        master.at_once = error
    else:
        master.values = error
    request = step()
    request.store_errors_in_response_body = in_body

    answer = await call(master, "RunStep", request)

    if in_body:
        assert (answer.status_code, answer.status_error_message) == (3, error.message)
        assert forgotten == [error]
    else:
        assert isinstance(answer, Failure)
        assert (answer.code, answer.text) == (3, "bad\n\t [[Node: a/b = ]] and [[Node: c = ]]")


async def test_a_feed_that_cannot_be_decoded_fails_the_step(master: FakeMaster) -> None:
    request = step()
    request.feed[0].tensor.tensor_content = b"abc"
    answer = await call(master, "RunStep", request)
    assert answer.status_code == 3
    assert "The value fed for 'x:0'" in answer.status_error_message


async def test_feeds_that_were_decoded_already_are_taken_as_they_are(master: FakeMaster) -> None:
    master.at_once = [Y]
    request = step()
    encode_into(request.feed.add(name="large:0").tensor, np.zeros(LARGE, np.uint8))
    request.session_handle = "s" * (1 << 20)  # with so much beside its feeds it is read in a thread
    await call(master, "RunStep", request)
    assert master.asked[-1][2]["large:0"].size == LARGE
    assert master.asked[-1][2]["x:0"].tolist() == [1, 2]


async def test_large_values_go_as_pieces_behind_the_others(master: FakeMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    real = module.kept
    monkeypatch.setattr(module, "kept", lambda value: (kept.append(value.nbytes), real(value))[1])
    large = np.arange(LARGE, dtype=np.uint8)
    master.at_once = [large, Y]
    request = step()
    request.fetch.append("z:0")
    answer = await call(master, "RunStep", request)
    values = {each.name: decode(each.tensor, "y") for each in answer.tensor}
    np.testing.assert_array_equal(values["y:0"], large)
    assert values["z:0"].tolist() == [3]
    assert kept == [LARGE]


async def test_a_step_gives_as_many_values_as_it_fetches(master: FakeMaster) -> None:
    master.at_once = [Y, Y]
    failure = await call(master, "RunStep", step())
    assert failure.code == 13


# -- callables ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [-1, 0])
async def test_a_callable_is_run(master: FakeMaster, more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    apart: list[Any] = []
    real = graph_wire.apart
    monkeypatch.setattr(graph_wire, "apart", lambda work, *given: (apart.append(given), real(work, *given))[1])
    master.values, master.metadata = [Y, X], RunMetadata(partition_graphs=[GRAPH])
    size = graph_wire.LARGE // 2
    request = master_pb2.RunCallableRequest(session_handle="s" * (size - 1000), handle=8, request_id=9)
    encode_into(request.feed.add(), np.zeros(size, np.uint8))
    request.session_handle += "s" * (graph_wire.LARGE + more - request.ByteSize())
    assert request.ByteSize() == graph_wire.LARGE + more

    answer = await call(master, "RunCallable", request)

    check, (name, handle, number, feeds, request_id) = master.asked
    assert check == ("check", request.session_handle, CALLER)
    assert (name, handle, number, request_id) == ("run_callable", request.session_handle, 8, 9)
    assert [feed.size for feed in feeds] == [size]
    assert [decode(each, "y").tolist() for each in answer.fetch] == [[3], [1, 2]]
    assert answer.metadata == master.metadata
    assert (() in apart) == (more == 0)


async def test_a_feed_of_a_callable_that_cannot_be_decoded_is_numbered(master: FakeMaster) -> None:
    request = master_pb2.RunCallableRequest(session_handle="s")
    encode_into(request.feed.add(), X)
    request.feed.add(dtype=1, tensor_content=b"abc")
    failure = await call(master, "RunCallable", request)
    assert failure.code == 3
    assert "Feed 1 of the callable" in failure.text


async def test_a_callable_has_so_many_feeds_at_most(master: FakeMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(module, "check_counts", lambda *counts: asked.append(counts))
    request = master_pb2.RunCallableRequest(session_handle="s")
    for _ in range(3):
        encode_into(request.feed.add(), X)
    await call(master, "RunCallable", request)
    assert asked == [(3, 0, 0)]


# -- who may ask -------------------------------------------------------------------------------------------------------

OWN = {"ExtendSession", "PartialRunSetup", "RunStep", "CloseSession", "MakeCallable", "RunCallable", "ReleaseCallable"}


def test_each_method_has_its_role_and_its_name_in_the_audit_log(master: FakeMaster) -> None:
    handlers = master_service(cast("Any", master), TASK, lambda: "here").handlers
    named = {path.rpartition("/")[2]: handler for path, handler in handlers.items()}
    assert {name: handler.needs for name, handler in named.items()} == {
        **dict.fromkeys(OWN | {"CreateSession"}, Role.RUN_UNTRUSTED),
        "ListDevices": Role.READ,
        "Reset": Role.RUN,
    }
    actions = {name: handler.action for name, handler in named.items() if handler.action != name}
    assert actions == {
        "CreateSession": "create session",
        "CloseSession": "close session",
        "Reset": "reset containers",
    }


@pytest.mark.parametrize("method", sorted(OWN))
async def test_a_session_of_another_caller_is_refused(master: FakeMaster, method: str) -> None:
    request = getattr(master_pb2, f"{method}Request")(session_handle="another's")
    failure = await call(master, method, request)
    assert (failure.code, failure.text) == (7, "not yours")
    assert master.asked == [("check", "another's", CALLER)]


async def test_a_graph_that_is_too_large_names_the_switch(master: FakeMaster) -> None:
    graph = GraphDef(node=[NodeDef(name=f"n{index}") for index in range(master.most_nodes + 1)])
    graph.node[0].op = "x" * graph_wire.LARGE
    failure = await call(master, "CreateSession", master_pb2.CreateSessionRequest(graph_def=graph))
    assert failure.code == 8
    assert failure.text.endswith("TENFOLD_MASTER_NODES sets another limit.")


async def test_a_reset_says_which_containers_it_clears(master: FakeMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[Any] = []
    monkeypatch.setattr("tenfold_core.access.audit.done", lambda *line, **more: lines.append((*line, more)))
    await call(master, "Reset", master_pb2.ResetRequest(container=["a", "b"]))
    [(caller, action, outcome, more)] = lines
    assert (caller, action, outcome, more["containers"]) == (CALLER, "reset containers", "done", "a,b")


def test_the_fake_is_asked_for_what_a_master_has() -> None:
    from tenfold_services.master.master import Master

    methods = ("extend_session", "partial_run_setup", "close_session", "reset", "make_callable", "release_callable")
    assert all(hasattr(Master, name) for name in (*methods, "create_session", "list_devices"))
