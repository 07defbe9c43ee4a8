"""The control service is killed at each of its writes, and started again (P2, P6).

For each story of support/faults/control_stories.py: it is killed at its first write, at its second one and so on, until
one survives the request. Whatever the point: what was answered is there, what was not is there whole or not at all, and
the same request again gets one answer. `make test` takes a few points of some stories, `make chaos` all of all.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from support.faults.control_forks import ControlForks
from support.faults.control_stories import STORIES, Service, Story
from support.faults.control_tables import breaches
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.postgres import PostgresServer

#: Writes that no story has.
_TOO_MANY = 60
#: Seconds for anything to happen that should.
PATIENCE = 60.0
#: Tables of older versions, which the first start of a newer one brings up to date.
OLD = Path(__file__).resolve().parents[1] / "control" / "databases"
KEY = {"Idempotency-Key": "the-one"}
#: Leases that none of these tests loses, and that PostgreSQL's replicas wait for after a kill.
SQLITE = {"heartbeat": 1.0, "lease_ttl": 60.0}
POSTGRES = {"heartbeat": 0.3, "lease_ttl": 2.0}


@pytest.fixture(scope="module")
def forks() -> Iterator[ControlForks]:
    with ControlForks() as made:
        yield made
        made.kill()


@pytest.fixture(scope="module")
def task() -> Iterator[BackgroundServer]:
    """What sessions are opened on: it is never killed, so it knows what was really done."""
    with BackgroundServer(TaskServer({"worker": [""]}, "worker", 0)) as server:
        yield server


@pytest.fixture(scope="module")
def empty(forks: ControlForks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with its tables, to copy."""
    path = tmp_path_factory.mktemp("empty") / "control.db"
    forks.start(str(path), **SQLITE)
    forks.end()
    return path


class Attempt:
    """One service that is killed at its `point`-th write of a story, and what comes of it."""

    def __init__(self, forks: ControlForks, task: BackgroundServer, story: Story, database: str, settings: Any) -> None:
        self._forks, self._story, self._database, self._settings = forks, story, database, settings
        self._server, self._task = task, task.target.removeprefix("grpc://")
        self._names: dict[str, str] = {}

    def run(self, point: int) -> bool:
        """Tells whether the service was killed before it answered. Raises AssertionError for a promise broken."""
        others = {each.handle for each in self._server.master.open_sessions}
        self._start()
        with self._service() as service:
            self._story.before(service)
            before = self._story.seen(service)
            keyed = self._story.ask(service)[0] == "POST"
            self._forks.arm(point)
            answered = self._asked(service)
        self._forks.kill()
        self._start()
        with self._service() as service:
            found = self._story.seen(service)
            again = [self._asked(service), self._asked(service)]
            after = self._story.seen(service)
        self._forks.kill()

        told = f"{self._story.name}, killed at write {point}, answered {answered and answered.text}"
        assert None not in again, told
        if answered is not None:
            assert answered.is_success, told
            assert found == after, f"{told}: what was answered is forgotten"
        assert found in (before, after), f"{told}: {before} became {found}, and then {after}"
        for each in again:
            assert each is not None
            self._judge(each, told)
        first, second = again
        assert first is not None
        assert second is not None
        if keyed and answered is not None:
            assert first.content == answered.content, f"{told}, and then {first.text}"
        if keyed and first.is_success:
            assert second.content == first.content, f"{told}, then {first.text}, then {second.text}"
        assert breaches(self._database) == [], told
        if self._story.closes:
            found = {each.handle for each in self._server.master.open_sessions}
            assert found <= others, f"{told}: a session is open that nobody knows of"
        return answered is None

    def _judge(self, answer: httpx.Response, told: str) -> None:
        """An answer to the request once more: success, or a problem that says what it is."""
        if answer.is_success:
            return
        kind = kind_of(answer)
        unknown = self._story.once and kind == "outcome-unknown" and answer.json()["outcome"] == "unknown"
        assert unknown or kind in self._story.again, f"{told}, and then {answer.text}"

    def _start(self) -> None:
        self._forks.kill()  # what a failed attempt has left
        self._forks.start(self._database, **self._settings)

    @contextlib.contextmanager
    def _service(self) -> Iterator[Service]:
        with self._forks.client() as api:
            yield Service(api, self._task, self._names)

    def _asked(self, service: Service) -> httpx.Response | None:
        """The answer; None where the service was killed over it."""
        method, path, body = self._story.ask(service)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                answer = service.api.request(method, path, json=body, headers=KEY if method == "POST" else {})
            except httpx.TransportError:
                return None
            if answer.is_success or kind_of(answer) != "in-progress" or time.monotonic() > deadline:
                return answer
            # with a shared database the killed one may still live, for all that others know
            if "lease" in self._names:
                service.api.post(f"/v1/leases/{self._names['lease']}:renew", json={})
            service.api.get("/v1/events", params={"wait": "200ms"})


def kind_of(answer: httpx.Response) -> str:
    """Of a problem."""
    found: str = answer.json()["type"].rpartition(":")[2]
    return found


def killed_at(points: range, attempt: Callable[[], Attempt]) -> int:
    """Kills at these points, until one is beyond the story's last write; how many killed it."""
    for count, point in enumerate(points):
        if not attempt().run(point):
            return count
    raise AssertionError(f"a request has more than {_TOO_MANY} writes")


@pytest.fixture
def attempts(
    forks: ControlForks, task: BackgroundServer, empty: Path, tmp_path: Path
) -> Callable[[Story], Callable[[], Attempt]]:
    """Makes attempts at a story, each on a database of its own."""

    def of(story: Story) -> Callable[[], Attempt]:
        def make() -> Attempt:
            database = tmp_path / "control.db"
            for each in tmp_path.glob("control.db*"):
                shutil.rmtree(each) if each.is_dir() else each.unlink()
            shutil.copyfile(empty, database)
            return Attempt(forks, task, story, str(database), SQLITE)

        return make

    return of


#: Those that `make test` tries: of each kind of object, and of each way to do a thing once.
SOME = ("resize", "claim", "release", "step", "close-session", "submit")


@pytest.mark.parametrize("story", [story for story in STORIES if story.name in SOME], ids=lambda story: story.name)
def test_some_writes(story: Story, attempts: Callable[[Story], Callable[[], Attempt]]) -> None:
    killed_at(range(1 + SOME.index(story.name) % 5, _TOO_MANY, 5), attempts(story))


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_every_write(story: Story, attempts: Callable[[Story], Callable[[], Attempt]]) -> None:
    killed = killed_at(range(1, _TOO_MANY), attempts(story))

    # each but a heartbeat, which is kept in memory, has a statement and its commit at least
    assert killed >= 2


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["release", "open-session", "step", "close-session", "submit"])
def test_writes_to_postgres(
    name: str, forks: ControlForks, task: BackgroundServer, postgres_server: PostgresServer
) -> None:
    (story,) = [story for story in STORIES if story.name == name]
    for point in range(1, _TOO_MANY, 2):
        with postgres_server.database() as database:
            try:
                if not Attempt(forks, task, story, database, POSTGRES).run(point):
                    break
            finally:
                forks.kill()


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("version", [None, "v1", "v5"])
def test_every_write_of_a_start(version: str | None, forks: ControlForks, tmp_path: Path) -> None:
    """Tables are made, or brought up to date, whole or not at all."""
    for point in range(1, 200):
        database = tmp_path / f"{point}.db"
        if version is not None:
            with contextlib.closing(sqlite3.connect(database)) as old:
                old.executescript((OLD / f"{version}.sqlite.sql").read_text())
        served = forks.start(str(database), writes=point, **SQLITE) is not None
        forks.kill()
        forks.start(str(database), **SQLITE)
        with forks.client() as api:
            assert api.put("/v1/clusters/one-more", json={"jobs": {"worker": 2}}).status_code == 201
        forks.kill()
        assert breaches(str(database)) == [], f"killed at write {point} of a start"
        if served:
            break

    assert point > 3
