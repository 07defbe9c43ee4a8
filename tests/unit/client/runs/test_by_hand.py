"""What makes programs by hand one run: their identity; which server speaks for a process; where they report."""

from __future__ import annotations

import pytest

import tenfold as tf
from tenfold.control import used
from tenfold.control.addresses import Addresses
from tenfold.control.exchange import Peer
from tenfold.control.retry import NO_RETRY
from tenfold.control.spec import Spec
from tenfold.runs import by_hand
from tenfold.session import observing

ADDRESSES = {"ps": {0: "a:1"}, "worker": {0: "b:1", 2: "b:3"}}


def test_tasks_of_one_cluster_have_one_key() -> None:
    worker = by_hand.identity("default", "/a.py", ("worker", 2, ADDRESSES))
    server = by_hand.identity("default", "/b.py", ("ps", 0, dict(reversed(ADDRESSES.items()))))
    elsewhere = by_hand.identity("other", "/a.py", ("worker", 2, ADDRESSES))
    moved = by_hand.identity("default", "/a.py", ("worker", 2, {**ADDRESSES, "ps": {0: "c:1"}}))

    assert worker == {"key": server["key"], "job": "worker", "index": 2, "jobs": {"ps": 1, "worker": 3}}
    assert len({worker["key"], elsewhere["key"], moved["key"]}) == 3


def test_clients_of_one_program_have_one_key() -> None:
    keys = {by_hand.identity(cluster, program, None)["key"] for cluster in "ab" for program in ("/1.py", "/2.py")}
    client = by_hand.identity("a", "/1.py", None)

    assert len(keys) == 4
    assert (client["key"] in keys, client["job"], client["index"], client["jobs"]) == (True, "client", None, {})


@pytest.mark.parametrize(
    ("servers", "first"),
    [
        ([("ps", 0), ("worker", 1)], ("worker", 1)),
        ([("worker", 1), ("chief", 0), ("worker", 0)], ("chief", 0)),
        ([("ps", 1), ("evaluator", 0)], ("evaluator", 0)),
        ([("ps", 1), ("ps", 0)], ("ps", 0)),
    ],
)
def test_of_several_servers_the_leader_speaks(servers: list[tuple[str, int]], first: tuple[str, int]) -> None:
    ranked = sorted(((job, index, {}) for job, index in servers), key=by_hand._rank)

    assert ranked[0][:2] == first


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(used, "_used", {})


def spec(cluster: str, *addresses: str) -> Spec:
    tasks = dict(enumerate(addresses))
    return Spec(cluster, 1, True, {"worker": len(tasks)}, {"worker": tasks}, {}, ())


@pytest.mark.usefixtures("known")
def test_a_target_leads_to_the_service_that_told_of_it() -> None:
    one, two = (Peer(Addresses(f"http://{name}:8080"), 1.0, NO_RETRY, "secret") for name in ("one", "two"))
    used.note_spec(one, spec("a", "127.0.0.1:2222", "other:2222"))
    used.note_spec(two, spec("b", "localhost:3333"))

    found = used.service_of("grpc://localhost:2222")

    assert found is not None
    assert (found.url, found.cluster, found.token) == ("http://one:8080", "a", "secret")
    assert "secret" not in repr(found)
    assert used.service_of("grpc://127.0.0.1:3333/").cluster == "b"  # type: ignore[union-attr]
    assert used.service_of("grpc://127.0.0.1:4444") is None


@pytest.mark.usefixtures("known")
def test_what_is_remembered_of_services_is_bounded() -> None:
    for at in range(100):
        used.note_spec(Peer(Addresses(f"http://{at}:8080"), 1.0, NO_RETRY), spec("a", f"localhost:{at}"))

    assert len(used._used) == 16
    assert used.service_of("grpc://localhost:99") is not None


def test_a_session_of_a_process_that_tells_nobody_begins_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_hand, "_this", by_hand._Process())
    monkeypatch.setattr(by_hand._this, "wanted", True)
    monkeypatch.delenv("TENFOLD_CONTROL", raising=False)

    with tf.Graph().as_default(), tf.Session():
        pass

    assert by_hand._this.reporter is None


class Reporter:
    """Stands for ProgramReporter: notes what it is told, and how its program says that it ended."""

    def __init__(self, member: by_hand.ByHand, *_: object) -> None:
        self.member, self.begun, self.finished = member, False, 0
        self.ending: object = None

    def start(self) -> None:
        self.begun = True

    def finish(self) -> None:
        self.finished += 1
        self.ending = self.member.members(True)["ending"]


class Registration:
    def __init__(self, job: str, index: int) -> None:
        self.job, self.index, self.left = job, index, 0

    def stop(self) -> None:
        self.left += 1


def test_a_program_that_stops_its_servers_reports_once_more_and_begins_anew_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(by_hand, "_this", this := by_hand._Process())
    monkeypatch.setattr(observing, "observer", None)
    monkeypatch.setattr(by_hand, "ProgramReporter", Reporter)
    monkeypatch.setattr(by_hand.atexit, "register", lambda _: None)
    service = by_hand.Service("http://x", None, "c")
    servers = [Registration("ps", 0), Registration("worker", 0)]
    for server in servers:
        this.begin(service).add_server(server.job, server.index, ADDRESSES)
    first = this.reporter

    by_hand.leave(servers[1], finished=True)  # type: ignore[arg-type]
    one_left = (this.reporter, first.finished)  # type: ignore[union-attr]
    by_hand.leave(servers[0], finished=False)  # type: ignore[arg-type]
    at_exit = first.finished  # type: ignore[union-attr]
    watched = observing.observer
    by_hand.leave(servers[0], finished=True)  # type: ignore[arg-type]
    between = observing.observer
    later = this.begin(service)

    assert isinstance(first, Reporter)
    assert one_left == (first, 0)
    # a server that ends with its program leaves the last report to the program's end
    assert at_exit == 0
    assert (first.finished, first.ending) == (1, {"state": "succeeded"})
    assert [server.left for server in servers] == [2, 1]
    assert later is not first.member
    assert this.reporter is not first
    # what the later run did is counted from its beginning
    assert between is None
    assert observing.observer is not None
    assert observing.observer is not watched
