"""Tokens and certificates are changed, and expire, while a cluster trains (P1, P8).

    a session that trains ──► worker:0 ──► ps:0, each a server of its own that trusts no user

A change in the right order is noticed by no step. What has expired is refused, with the reason, until it is renewed:
without a restart. The control service's certificates are changed in tests/control/test_https.py.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import threading
import time
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from support.certs import access
from tenfold.session.link_master import LinkMaster
from tenfold_core import errors
from tenfold_core.access.credentials import AccessSettings
from tenfold_core.access.gate import Gate
from tenfold_core.access.roles import Role
from tenfold_core.access.tokens import new_token
from tenfold_link.link_settings import LinkSettings
from tenfold_protos.config_pb2 import ConfigProto
from tenfold_services import server as server_module
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

#: Seconds for anything to happen that should.
PATIENCE = 60.0
#: Steps over links, and over gRPC, where each call shows what it has; the other one of the two takes long enough.
LONG = pytest.mark.long


class Clock:
    """The wall clock by which tokens expire."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Of servers to which every connection is another user's."""
    made = Clock()
    gate = partial(Gate, find_user=lambda *_: os.geteuid() + 1, wall_clock=made)
    monkeypatch.setattr(server_module, "Gate", gate)
    return made


@contextlib.contextmanager
def cluster(mode: Any, **settings: AccessSettings) -> Iterator[dict[str, BackgroundServer]]:
    """A ps and a worker with these settings."""
    jobs = {job: {0: ""} for job in settings}
    with contextlib.ExitStack() as stack:
        servers = {
            job: stack.enter_context(
                BackgroundServer(TaskServer(jobs, job, 0, access=mine, link=LinkSettings(mode=mode)))
            )
            for job, mine in settings.items()
        }
        for server in servers.values():
            server.update_cluster({job: {0: f"localhost:{each.port}"} for job, each in servers.items()})
        yield servers


class Training:
    """Steps of both tasks, one after the other, on a thread; the first error ends them."""

    def __init__(self, target: str) -> None:
        with tf.Graph().as_default() as graph:
            with tf.device("/job:ps/task:0"):
                count = tf.Variable(0.0, name="count")
            with tf.device("/job:worker/task:0"):
                one = tf.exp(tf.zeros([]))
            self._train = tf.assign_add(count, one)
            self._session = tf.Session(target, graph=graph)
            self._session.run(count.initializer)
        self._changed = threading.Condition()
        self.steps, self.error, self._ending = 0, "", False
        self._thread = threading.Thread(target=self._run, name="training", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._ending:
                self._session.run(self._train)
                with self._changed:
                    self.steps += 1
                    self._changed.notify_all()
        except errors.OpError as error:
            with self._changed:
                self.error = str(error)
                self._changed.notify_all()

    def go_on(self, steps: int = 50) -> None:
        """Waits for so many more steps."""
        with self._changed:
            wanted = self.steps + steps
            assert self._changed.wait_for(lambda: self.error or self.steps >= wanted, PATIENCE)
            assert not self.error, self.error

    def end(self) -> None:
        self._ending = True
        self._thread.join(PATIENCE)
        self._session.close()


@contextlib.contextmanager
def training(target: str) -> Iterator[Training]:
    made = Training(target)
    try:
        yield made
    finally:
        made.end()


def newcomer(target: str, shown: AccessSettings, patience: float = 20.0) -> str:
    """How somebody who comes now fares: "" for a session, else why not."""
    master = LinkMaster(target, LinkSettings(), shown)
    try:
        handle, _ = master.create_session(tf.Graph().as_graph_def(), ConfigProto(), patience)
        master.close_session(handle, 20.0)
    except errors.OpError as error:
        return f"{type(error).__name__}: {error.message}"
    finally:
        master.close()
    return ""


def until(found: Callable[[], bool]) -> None:
    """Asks until it is so."""
    deadline = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < deadline


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("mode", [pytest.param("auto", marks=LONG), "off"])
def test_a_token_is_changed(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, old, new = tmp_path / "tokens", new_token(), new_token()
    file.write_text(f"{old}\n")
    shared = AccessSettings(token_file=str(file))
    monkeypatch.setenv("TENFOLD_TOKEN_FILE", str(file))
    monkeypatch.setenv("TENFOLD_LINK", mode)
    with cluster(mode, worker=shared, ps=shared) as servers, training(servers["worker"].target) as steps:
        targets = [server.target for server in servers.values()]
        steps.go_on()
        assert [newcomer(target, AccessSettings(new)) != "" for target in targets] == [True, True]

        file.write_text(f"{new}\n{old}\n")  # as `tenfold token new --file` does it
        until(lambda: not any(newcomer(target, AccessSettings(new)) for target in targets))
        steps.go_on()
        assert [newcomer(target, AccessSettings(old)) for target in targets] == ["", ""]

        file.write_text(f"{new}\n")
        until(lambda: all(newcomer(target, AccessSettings(old)) for target in targets))
        steps.go_on()
        assert [newcomer(target, AccessSettings(new)) for target in targets] == ["", ""]
        refused = newcomer(targets[0], AccessSettings(old))

    assert refused.startswith("UnauthenticatedError")
    assert "does not know the token" in refused


def test_a_token_expires(clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, brief, lasting = tmp_path / "tokens", new_token(), new_token()
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    file.write_text(f"{lasting}\n{brief} role=run name=guest expires={date}\n")
    shared = AccessSettings(token_file=str(file))
    monkeypatch.setenv("TENFOLD_TOKEN_FILE", str(file))
    with cluster("auto", ps=shared, worker=shared) as servers, training(servers["worker"].target) as steps:
        target = servers["worker"].target
        before = newcomer(target, AccessSettings(brief))
        clock.ahead = 2 * 3600.0
        after = newcomer(target, AccessSettings(brief))
        steps.go_on()
        file.write_text(f"{lasting}\n{brief} role=run name=guest\n")
        until(lambda: not newcomer(target, AccessSettings(brief)))
        steps.go_on()

    assert before == ""
    assert after.startswith("UnauthenticatedError")
    assert "the token 'guest' that this call shows to" in after
    assert "has expired" in after


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("mode", ["auto", pytest.param("off", marks=LONG)])
def test_certificates_are_changed(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each anew, by another authority: first both are trusted everywhere, then each shows its new one, then the old
    authority goes."""
    folders = {name: tmp_path / name for name in ("used", "new")}
    names = {"ps": Role.REGISTER, "worker": Role.REGISTER, "client": Role.RUN}
    made = {kind: {name: access(place, name, role) for name, role in names.items()} for kind, place in folders.items()}
    used = made["used"]
    mine = used.pop("client")
    for name in ("cert", "key", "ca"):
        monkeypatch.setenv(f"TENFOLD_TLS_{name.upper()}", str(getattr(mine, f"tls_{name}")))
    monkeypatch.setenv("TENFOLD_TLS", "always")
    monkeypatch.setenv("TENFOLD_LINK", mode)
    authorities = {kind: (folder / "ca.pem").read_bytes() for kind, folder in folders.items()}
    with cluster(mode, **used) as servers, training(servers["worker"].target) as steps:
        target = servers["worker"].target
        theirs = made["new"]["client"]
        assert newcomer(target, mine) == ""
        strange = newcomer(target, theirs, 2.0)

        (folders["used"] / "ca.pem").write_bytes(authorities["used"] + authorities["new"])
        steps.go_on()
        for name in names:
            for file in (f"{name}.pem", f"{name}-key.pem"):
                shutil.copyfile(folders["new"] / file, folders["used"] / file)
            steps.go_on()
        (folders["used"] / "ca.pem").write_bytes(authorities["new"])
        assert newcomer(target, theirs) == ""
        with training(target) as more:
            more.go_on()
        steps.go_on()

    assert re.search(r"its certificate is not accepted here: self.signed certificate in certificate chain", strange)


@pytest.mark.usefixtures("clock")
@pytest.mark.thorough
def test_a_certificate_expires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task's: who comes is told so, until it is renewed; what runs goes on."""
    used = {name: access(tmp_path, name) for name in ("ps", "worker")}
    mine = access(tmp_path, "client", Role.RUN)
    for name in ("cert", "key", "ca"):
        monkeypatch.setenv(f"TENFOLD_TLS_{name.upper()}", str(getattr(mine, f"tls_{name}")))
    monkeypatch.setenv("TENFOLD_TLS", "always")
    with cluster("tcp", **used) as servers, training(servers["worker"].target) as steps:
        target = servers["worker"].target
        access(tmp_path, "worker", lasts=timedelta(minutes=-1))
        expired = newcomer(target, mine, 2.0)
        steps.go_on()
        access(tmp_path, "worker")
        renewed = newcomer(target, mine)
        access(tmp_path, "client", Role.RUN, lasts=timedelta(minutes=-1))
        late = newcomer(target, mine, 2.0)
        steps.go_on()

    assert "its certificate is not accepted here: certificate has expired" in expired
    assert renewed == ""
    assert re.search(r"it does not accept TLS from here: .*certificate expired", late), late
