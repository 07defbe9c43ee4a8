"""`tenfold.control` against a real uvicorn: clusters, registration with heartbeats, remote sessions, errors."""

from __future__ import annotations

import queue
import socket
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.swallowing import SwallowingRelay
from tenfold.control import ControlClient, RetryPolicy, Spec, TaskRegistration, problem_of
from tenfold_core import errors
from tenfold_protos import graph_pb2

from .conftest import PATIENCE, Gate, Masters, Service

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

TARGET = "grpc://127.0.0.1:2222"


@pytest.fixture
def registered(control: ControlClient) -> Iterator[TaskRegistration]:
    """Worker 0 of a cluster of one worker, kept registered."""
    control.declare_cluster("default", {"worker": 1})
    with TaskRegistration(control, "default", "worker", 0, "127.0.0.1:2222") as registration:
        yield registration


class Inbox:
    """Collects what a callback is called with."""

    def __init__(self) -> None:
        self._items: queue.Queue[Any] = queue.Queue()

    def __call__(self, item: Any) -> None:
        self._items.put(item)

    def get(self) -> Any:
        return self._items.get(timeout=PATIENCE)


def test_tasks_are_listed_over_all_pages(control: ControlClient) -> None:
    control.declare_cluster("default", {"ps": 1, "worker": 3})
    control.register_task("default", "worker", 1, "h:1")

    assert [task.name for task in control.tasks("default", job="worker", limit=2)] == [
        "/job:worker/replica:0/task:0",
        "/job:worker/replica:0/task:1",
    ]
    assert [(task.job, task.index) for task in control.tasks("default", states=["ready"])] == [("worker", 1)]
    assert len(control.tasks("default")) == 4


def test_clusters(client: ControlClient) -> None:
    client.declare_cluster("default", {"ps": 1, "worker": 2})
    lease = client.register_task("default", "ps", 0, "h:1", incarnation=7)
    claimed = client.claim_task("default", "worker", "h:2")

    spec = client.spec("default")

    assert (lease.task, lease.incarnation, lease.fresh) == ("/job:ps/replica:0/task:0", "7", True)
    assert (claimed.job, claimed.index) == ("worker", 0)
    assert (spec.version, spec.complete) == (3, False)
    assert spec.missing_tasks == ("/job:worker/replica:0/task:1",)
    assert spec.cluster_spec().as_dict() == {"ps": ["h:1"], "worker": ["h:2"]}
    assert [cluster.name for cluster in client.clusters()] == ["default"]
    assert (client.cluster("default").version, client.cluster("default")["version"]) == (3, 3)
    assert client.job("default", "worker").counts["ready"] == 1
    assert [job.name for job in client.jobs("default").jobs] == ["ps", "worker"]
    assert client.task_status("default", "ps", 0).state == "ready"
    assert client.renew(lease.id).spec_version == 3
    assert client.release(lease.id, state="lost", exit_code=1).task.exit_code == 1
    assert client.end_task("default", "worker", 0, state="stopped", reason="told").reason == "told"
    assert client.remove_task("default", "worker", 0).state == "missing"


def test_waiting_for_a_spec(client: ControlClient) -> None:
    client.declare_cluster("default", {"ps": 1})
    with pytest.raises(errors.DeadlineExceededError, match="missing tasks: /job:ps/replica:0/task:0"):
        client.wait_for_spec("default", until_complete=True, timeout=0.05)
    found: queue.Queue[Spec] = queue.Queue()
    waiter = threading.Thread(
        target=lambda: found.put(client.wait_for_spec("default", until_complete=True, timeout=PATIENCE))
    )
    waiter.start()

    lease = client.register_task("default", "ps", 0, "h:1")
    client.release(lease.id)

    assert found.get(timeout=PATIENCE).complete
    waiter.join()
    assert client.tf_config("default", "ps", 0) == {"cluster": {"ps": ["h:1"]}, "task": {"type": "ps", "index": 0}}


def test_errors_are_those_of_tf_errors(client: ControlClient) -> None:
    with pytest.raises(errors.NotFoundError, match="is not declared") as caught:
        client.spec("nowhere")

    problem = problem_of(caught.value)
    assert problem is not None
    assert (problem.status, problem.kind, problem.retryable) == (404, "no-such-cluster", False)


def test_a_service_that_is_away(connect: Callable[..., ControlClient]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, never listening: connections are refused
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with (
            connect(url, retry=RetryPolicy(attempts=2, first_pause=0.01)) as away,
            pytest.raises(errors.UnavailableError, match=f"{url} cannot be reached"),
        ):
            away.clusters()


def test_proxies_of_the_environment_are_ignored(
    service: Service, connect: Callable[..., ControlClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with connect(service.url) as control:
        assert control.clusters() == []


def test_a_token(start_service: Callable[..., Service], connect: Callable[..., ControlClient]) -> None:
    service = start_service(token="a secret")
    with connect(service.url) as nobody, pytest.raises(errors.UnauthenticatedError, match="asks for a token"):
        nobody.clusters()
    with connect(service.url, "a secret") as somebody:
        assert somebody.clusters() == []


# -- registration


@pytest.fixture
def brief(start_service: Callable[..., Service]) -> Iterator[ControlClient]:
    """A client of a service whose leases last one second."""
    with ControlClient(start_service(heartbeat=0.1, lease_ttl=1.0).url) as client:
        yield client


def test_a_registration_outlives_its_lease_time(brief: ControlClient) -> None:
    brief.declare_cluster("default", {"worker": 1})
    with TaskRegistration(brief, "default", "worker", 0, "h:1") as registration:
        version = registration.lease.spec_version

        # A watcher that sees no change for longer than a lease lasts has seen the task stay.
        spec = brief.poll_spec("default", after=version, wait=1.5)

    assert spec.version == version
    assert spec.states == {"/job:worker/replica:0/task:0": "ready"}


def test_a_registration_tells_of_new_specs_at_once(control: ControlClient) -> None:
    control.declare_cluster("default", {"worker": 2})
    inbox = Inbox()
    with TaskRegistration(control, "default", "worker", None, "h:1", on_spec=inbox) as first:
        assert (first.index, inbox.get().missing_tasks) == (0, ("/job:worker/replica:0/task:1",))
        with TaskRegistration(control, "default", "worker", None, "h:2") as second:
            assert second.task == "/job:worker/replica:0/task:1"
            assert inbox.get().complete
        assert inbox.get().states["/job:worker/replica:0/task:1"] == "finished"


def test_leaving_says_how(control: ControlClient) -> None:
    control.declare_cluster("default", {"worker": 2})
    with TaskRegistration(control, "default", "worker", 0, "h:1"):
        pass
    with pytest.raises(ZeroDivisionError), TaskRegistration(control, "default", "worker", 1, "h:1"):
        raise ZeroDivisionError

    tasks = control.job_status("default", "worker")["tasks"]

    assert [(task["state"], task["reason"]) for task in tasks] == [
        ("finished", "finished with exit code 0"),
        ("lost", "failed with ZeroDivisionError"),
    ]
    assert "control-heartbeat" not in {thread.name for thread in threading.enumerate()}


def test_a_removed_task_is_told_so(control: ControlClient) -> None:
    control.declare_cluster("default", {"worker": 1})
    lost = Inbox()
    with TaskRegistration(control, "default", "worker", 0, "h:1", on_lost=lost):
        control.remove_task("default", "worker", 0, reason="replaced by hand")

        assert "replaced by hand" in lost.get()
    assert control.task_status("default", "worker", 0)["state"] == "missing"


def test_a_task_that_is_said_to_have_finished_is_told_so(control: ControlClient) -> None:
    control.declare_cluster("default", {"worker": 1})
    told = Inbox()
    with TaskRegistration(control, "default", "worker", 0, "h:1", on_told=lambda state, reason: told((state, reason))):
        control.end_task("default", "worker", 0, state="finished", reason="the client is done")

        assert told.get() == ("finished", "the client is done")
    assert control.task_status("default", "worker", 0)["state"] == "finished"


def test_a_task_that_slept_through_its_lease_registers_again(control: ControlClient) -> None:
    control.declare_cluster("default", {"worker": 1})
    inbox = Inbox()
    registration = TaskRegistration(control, "default", "worker", 0, "h:1", on_spec=inbox)
    with registration:
        inbox.get()
        control.release(registration.lease.id, state="lost", reason="slept")

        states = [inbox.get().states["/job:worker/replica:0/task:0"] for _ in range(2)]

    assert states == ["lost", "ready"]


def test_a_task_whose_place_was_taken_is_told_so(brief: ControlClient) -> None:
    control = brief
    control.declare_cluster("default", {"worker": 1})
    inbox, lost = Inbox(), Inbox()
    gate = threading.Event()

    with TaskRegistration(
        control, "default", "worker", 0, "h:1", on_spec=inbox, on_lost=lost, alive=lambda seconds: gate.is_set()
    ) as registration:
        # no heartbeat meanwhile: the lease runs out
        while inbox.get().states["/job:worker/replica:0/task:0"] != "lost":
            pass
        control.register_task("default", "worker", 0, "h:2")
        gate.set()

        assert "is taken by h:2" in lost.get()
        assert registration.task == "/job:worker/replica:0/task:0"


@pytest.mark.thorough
def test_a_long_poll_that_is_half_open_does_not_cost_the_lease(start_service: Callable[..., Service]) -> None:
    service = start_service(heartbeat=0.1, lease_ttl=1.0)
    with (
        SwallowingRelay(int(service.url.rpartition(":")[2]), b"/spec?") as relay,
        ControlClient(service.url) as control,
        ControlClient(f"http://127.0.0.1:{relay.port}") as client,
    ):
        control.declare_cluster("default", {"worker": 1})
        registration = TaskRegistration(client, "default", "worker", 0, "h:1")
        with registration:
            relay.swallows.set()
            assert relay.swallowed.wait(PATIENCE)
            version = control.spec("default").version
            # who sees no change for longer than a lease lasts has seen the task stay
            assert control.poll_spec("default", after=version, wait=3.0).version == version
            registration.stop(timeout=0.1)


def test_a_renewal_that_is_swallowed_is_made_again_in_time(start_service: Callable[..., Service]) -> None:
    service = start_service(heartbeat=0.1, lease_ttl=2.0)
    with (
        SwallowingRelay(int(service.url.rpartition(":")[2]), b":renew") as relay,
        ControlClient(service.url) as control,
        ControlClient(f"http://127.0.0.1:{relay.port}") as client,
    ):
        control.declare_cluster("default", {"worker": 1})
        with TaskRegistration(client, "default", "worker", 0, "h:1"):
            relay.swallows.set()
            assert relay.swallowed.wait(PATIENCE)
            relay.swallows.clear()
            version = control.spec("default").version
            assert control.poll_spec("default", after=version, wait=4.0).version == version


def test_a_task_that_does_not_answer_loses_its_lease_and_has_it_again_once_it_does(brief: ControlClient) -> None:
    brief.declare_cluster("default", {"worker": 1})
    works = threading.Event()
    works.set()
    inbox = Inbox()
    with TaskRegistration(
        brief, "default", "worker", 0, "h:1", on_spec=inbox, alive=lambda seconds: works.wait(seconds)
    ):
        works.clear()
        while inbox.get().states["/job:worker/replica:0/task:0"] != "lost":
            pass
        works.set()
        while inbox.get().states["/job:worker/replica:0/task:0"] != "ready":
            pass


def test_a_registration_waits_for_the_declaration(control: ControlClient) -> None:
    with pytest.raises(errors.NotFoundError, match="not declared"):
        TaskRegistration(control, "default", "worker", 0, "h:1").start(timeout=0.01)
    control.declare_cluster("default", {"worker": 1})
    with pytest.raises(errors.NotFoundError, match="index 3 is not one of"):
        TaskRegistration(control, "default", "worker", 3, "h:1").start(timeout=PATIENCE)


# -- sessions


def test_a_remote_session(client: ControlClient, registered: TaskRegistration, masters: Masters) -> None:
    graph = graph_pb2.GraphDef(node=[{"name": "x", "op": "Placeholder"}])
    with client.create_session("default", graph) as session:
        single = session.run("y:0", {"x:0": np.array([1, 2], np.int16)})
        nested = session.run({"a": ["y:0", "train"], "b": ("z:0",)}, {"x:0": 2.5}, timeout=5)
        texts = session.run("s:0", {"x:0": np.array([b"a\xff"], object)})
        version = session.extend(graph)
        status = session.status()

    master = masters(TARGET)
    assert (single.dtype, single.tolist()) == (np.int16, [2, 4])
    assert single.flags.writeable
    assert nested == {"a": [5.0, None], "b": (5.0,)}
    assert texts.tolist() == [b"a\xffa\xff"]
    assert (version, status["graph_version"], status["target"]) == (2, 2, TARGET)
    assert master.steps[1] == (("x:0",), ("y:0", "z:0"), ("train",))
    assert master.closed
    with pytest.raises(errors.NotFoundError, match="no session"):
        session.run("y:0")
    session.close()


def test_a_step_with_a_key_runs_once(client: ControlClient, registered: TaskRegistration, masters: Masters) -> None:
    session = client.create_session("default")

    answers = [session.run("y:0", idempotency_key="k") for _ in range(3)]

    assert [int(answer) for answer in answers] == [42, 42, 42]
    assert len(masters(TARGET).steps) == 1


def test_the_error_of_a_step(client: ControlClient, registered: TaskRegistration, masters: Masters) -> None:
    def step(feeds: Mapping[str, np.ndarray], fetches: Sequence[str], targets: Sequence[str]) -> list[np.ndarray]:
        raise errors.FailedPreconditionError(None, None, "uninitialized value w [[{{node w/read}}]]")

    session = client.create_session("default")
    masters(TARGET).step = step

    with pytest.raises(errors.FailedPreconditionError, match="uninitialized value w") as caught:
        session.run("y:0")

    problem = problem_of(caught.value)
    assert problem is not None
    assert problem.members["node"] == "w/read"
    assert caught.value.node_name == "w/read"


def test_stopping_ends_waits_and_steps(start_service: Callable[..., Service], masters: Masters) -> None:
    service = start_service(grace=0.2)
    ended: queue.Queue[errors.OpError] = queue.Queue()
    gate = Gate()
    with ControlClient(service.url, retry=RetryPolicy(attempts=1)) as control:
        control.declare_cluster("default", {"worker": 1})
        control.register_task("default", "worker", 0, "127.0.0.1:2222")
        session = control.create_session("default")
        masters(TARGET).step = gate

        def call(work: Callable[[], object]) -> None:
            try:
                work()
            except errors.OpError as error:
                ended.put(error)

        waits = [
            threading.Thread(target=call, args=(lambda: control.poll_spec("default", after=2, wait=30),)),
            threading.Thread(target=call, args=(lambda: session.run("y:0"),)),
        ]
        for wait in waits:
            wait.start()
        assert gate.entered.wait(PATIENCE)

        stopper = threading.Thread(target=service.stop)
        stopper.start()
        first = ended.get(timeout=PATIENCE)
        gate.leave.set()
        stopper.join(PATIENCE)
        for wait in waits:
            wait.join(PATIENCE)

    assert isinstance(first, errors.UnavailableError)
    assert not stopper.is_alive()
