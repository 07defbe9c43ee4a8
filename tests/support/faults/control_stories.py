"""Every change that can be asked of a control service, as stories: what is there before, what is asked, what is seen.

tests/chaos/test_control_killed_at_each_write.py kills the service in the middle of each. `seen` is the state that a
story is about; it is one of two values, before and after, and never anything else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from google.protobuf import json_format

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

Json = dict[str, Any]
#: A run that its caller has started; nothing but its row is made of it.
_EXTERNAL = {"launcher": "external", "submission_id": "s-1", "entrypoint": ["true"], "jobs": {"worker": 1}}
_PROCESS = {"host": "h", "pid": 1}


@dataclass
class Service:
    """A control service as a story sees it: its REST interface, and the address of a task for its sessions."""

    api: httpx.Client
    task: str
    #: What the preparation of the story found: names of leases, sessions, runs.
    names: dict[str, str] = field(default_factory=dict)

    def done(self, method: str, path: str, body: Json | None = None, **more: Any) -> Json:
        """What is asked before the story begins, and must succeed."""
        answer = self.api.request(method, path, json=body, **more)
        assert answer.is_success, answer.text
        found: Json = answer.json()
        return found

    def got(self, path: str) -> Json | None:
        """None for what is not there."""
        answer = self.api.get(path)
        assert answer.is_success or answer.status_code == 404, answer.text
        return answer.json() if answer.is_success else None


@dataclass(frozen=True)
class Story:
    """One change. `again` names the problems with which it may be answered once it is done."""

    name: str
    before: Callable[[Service], None]
    ask: Callable[[Service], tuple[str, str, Json | None]]
    seen: Callable[[Service], Any]
    again: tuple[str, ...] = ()
    #: Never run a second time: after a crash its outcome may be unknown.
    once: bool = False
    #: Ends the session that was there before, at its master, too.
    closes: bool = False


def _nothing(_: Service) -> None:
    pass


def _cluster(service: Service) -> None:
    service.done("PUT", "/v1/clusters/c", {"jobs": {"worker": 2}})


def _ready(service: Service) -> None:
    _cluster(service)
    body = {"address": service.task, "incarnation": "a"}
    service.names["lease"] = service.done("PUT", "/v1/clusters/c/tasks/worker/0", body)["lease"]["id"]


def _session(service: Service) -> None:
    _ready(service)
    body = {"cluster": "c", "job": "worker", "index": 0, "graph_def": counting()}
    service.names["session"] = service.done("POST", "/v1/sessions", body)["name"]
    service.done("POST", f"/v1/sessions/{service.names['session']}/steps", {"targets": ["init"]})


def _run(service: Service) -> None:
    service.names["run"] = service.done("POST", "/v1/runs", _EXTERNAL)["name"]


def _ended_run(service: Service) -> None:
    _run(service)
    service.done("POST", f"/v1/runs/{service.names['run']}:report", _report("SUCCEEDED"))


def _report(state: str) -> Json:
    return {"state": state, "reason": "so it goes", "supervisor": _PROCESS}


def counting() -> Json:
    """A graph with a counter: `counted` adds one to it, `count` reads it, `init` makes it 0."""
    with tf.Graph().as_default() as graph:
        count = tf.Variable(0.0, name="counter")
        tf.group(count.initializer, name="init")
        tf.assign_add(count, 1.0, name="counted")
        tf.identity(count.read_value(), name="count")
    found: Json = json_format.MessageToDict(graph.as_graph_def(), preserving_proto_field_name=True)
    return found


def _more() -> Json:
    with tf.Graph().as_default() as graph:
        tf.constant(1.0, name="more")
    found: Json = json_format.MessageToDict(graph.as_graph_def(), preserving_proto_field_name=True)
    return found


def _count(service: Service) -> float:
    """The counter of the session, by a step of its own."""
    steps = f"/v1/sessions/{service.names['session']}/steps"
    value: float = service.done("POST", steps, {"outputs": ["count:0"]})["outputs"][0]["data"][0]
    return value


def _jobs(service: Service) -> Any:
    found = service.got("/v1/clusters/c")
    return found and found["jobs"]


def _task(service: Service) -> Any:
    found = service.got("/v1/clusters/c/tasks/worker/0")
    assert found is not None
    return found["state"], found["drain"] is not None


def _holders(service: Service) -> int:
    found = service.got("/v1/clusters/c")
    assert found is not None
    count: int = found["counts"]["ready"]
    return count


def _sessions(service: Service) -> int:
    return len(service.done("GET", "/v1/sessions")["sessions"])


def _graph_version(service: Service) -> Any:
    found = service.got(f"/v1/sessions/{service.names['session']}")
    return found and found["graph_version"]


def _runs(service: Service) -> list[tuple[str, bool]]:
    return [(run["state"], run["stop"] is not None) for run in service.done("GET", "/v1/runs")["runs"]]


STORIES = (
    Story("declare", _nothing, lambda s: ("PUT", "/v1/clusters/c", {"jobs": {"worker": 2}}), _jobs),
    Story("resize", _cluster, lambda s: ("PUT", "/v1/clusters/c", {"jobs": {"worker": 3, "ps": 1}}), _jobs),
    Story("delete", _cluster, lambda s: ("DELETE", "/v1/clusters/c", None), _jobs, again=("no-such-cluster",)),
    Story(
        "delete-forced",
        _session,
        lambda s: ("DELETE", "/v1/clusters/c?force=true", None),
        _jobs,
        again=("no-such-cluster",),
        closes=True,
    ),
    Story(
        "register",
        _cluster,
        lambda s: ("PUT", "/v1/clusters/c/tasks/worker/0", {"address": s.task, "incarnation": "a"}),
        _task,
    ),
    Story(
        "claim",
        _cluster,
        lambda s: ("POST", "/v1/clusters/c/tasks/worker:claim", {"address": s.task, "incarnation": "a"}),
        _holders,
    ),
    Story("renew", _ready, lambda s: ("POST", f"/v1/leases/{s.names['lease']}:renew", {}), _task),
    Story("release", _ready, lambda s: ("POST", f"/v1/leases/{s.names['lease']}:release", {"state": "lost"}), _task),
    Story("deregister", _ready, lambda s: ("DELETE", "/v1/clusters/c/tasks/worker/0", None), _task),
    Story("end", _ready, lambda s: ("POST", "/v1/clusters/c/tasks/worker/0:end", {"state": "lost"}), _task),
    Story("drain", _ready, lambda s: ("POST", "/v1/clusters/c/tasks/worker/0:drain", {"reason": "repair"}), _task),
    Story(
        "open-session",
        _ready,
        lambda s: ("POST", "/v1/sessions", {"cluster": "c", "graph_def": counting()}),
        _sessions,
        once=True,
    ),
    Story(
        "extend",
        _session,
        lambda s: ("POST", f"/v1/sessions/{s.names['session']}/graph:extend", {"graph_def": _more()}),
        _graph_version,
        once=True,
    ),
    Story(
        "step",
        _session,
        lambda s: ("POST", f"/v1/sessions/{s.names['session']}/steps", {"targets": ["counted"]}),
        _count,
        once=True,
    ),
    Story(
        "close-session",
        _session,
        lambda s: ("DELETE", f"/v1/sessions/{s.names['session']}", None),
        _sessions,
        again=("no-such-session",),
        closes=True,
    ),
    Story("submit", _nothing, lambda s: ("POST", "/v1/runs", _EXTERNAL), _runs),
    Story("report", _run, lambda s: ("POST", f"/v1/runs/{s.names['run']}:report", _report("RUNNING")), _runs),
    Story("report-end", _run, lambda s: ("POST", f"/v1/runs/{s.names['run']}:report", _report("SUCCEEDED")), _runs),
    Story("stop", _run, lambda s: ("POST", f"/v1/runs/{s.names['run']}:stop", {}), _runs),
    Story(
        "forget-run",
        _ended_run,
        lambda s: ("DELETE", f"/v1/runs/{s.names['run']}", None),
        _runs,
        again=("no-such-run",),
    ),
    Story(
        "join",
        _nothing,
        lambda s: (
            "POST",
            "/v1/runs:join",
            {"key": "0123456789abcdef", "job": "worker", "entrypoint": ["true"], "process": _PROCESS},
        ),
        _runs,
    ),
)
