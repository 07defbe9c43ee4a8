"""Reports of a program that ends: the last one has the last global step, whenever it falls."""

from __future__ import annotations

import gc
import random
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
import tenfold.control
from tenfold.runs import program_report
from tenfold.session import observing
from tenfold.summary.distributions import Distribution

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class FakeClient:
    """Takes reports, as a control service's client does."""

    def __init__(self, reports: list[dict[str, Any]]) -> None:
        self.reports = reports

    def __enter__(self) -> FakeClient:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def report_task(self, run: str, job: str, index: int, report: dict[str, Any], *, timeout: float) -> Any:
        self.reports.append(report)
        return SimpleNamespace(services=(), trace=None, why=None, stop=None, heartbeat=0.002)

    def learn(self, services: Any) -> None:
        pass


def monitored(train: Any, loss: Any, step: Any, last: int) -> None:
    with tf.train.MonitoredTrainingSession(hooks=[tf.train.StopAtStepHook(last_step=last)]) as session:
        while not session.should_stop():
            session.run(train)


def fetching(train: Any, loss: Any, step: Any, last: int) -> None:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(last):
            session.run([train, loss, step])


def never_closed(train: Any, loss: Any, step: Any, last: int) -> None:
    """Nothing has the session any more when the program has ended."""
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    for _ in range(last):
        session.run([train, step])


def blind(train: Any, loss: Any, step: Any, last: int) -> None:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(last):
            session.run(train)


#: Trainings of each kind.
ROUNDS = 3
PROGRAMS = [monitored, fetching, never_closed, blind]


def reported(
    program: Callable[..., None],
    last: int,
    use_resource: bool,
    monkeypatch: pytest.MonkeyPatch,
    client: type[FakeClient] = FakeClient,
) -> Any:
    """The reports of a program that makes so many steps."""
    reports: list[dict[str, Any]] = []
    monkeypatch.setattr(observing, "observer", observing.StepObserver())
    monkeypatch.setattr(tenfold.control, "ControlClient", lambda *_, **__: client(reports))
    place = program_report.Place("run", "worker", 0)
    reporter = program_report.ProgramReporter(program_report.OfRun(place), "http://127.0.0.1:1", None)
    reporter.start()
    with tf.Graph().as_default(), tf.variable_scope("", use_resource=use_resource):
        step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", initializer=1.0)
        loss = tf.square(w, name="loss")
        train = tf.train.GradientDescentOptimizer(1e-6).minimize(loss, global_step=step)
        program(train, loss, step, last)
    reporter.finish()
    return reports


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("looks", ["seldom", "always"])
def test_the_last_report_has_the_last_step(
    program: Callable[..., None], use_resource: bool, looks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if looks == "always":
        monkeypatch.setattr(program_report, "_FIRST_S", 0.001)
    draw = random.Random(f"{program.__name__} {use_resource} {looks}")

    for _ in range(ROUNDS):
        last = draw.choice([1, 2, 7, 40])
        reports = reported(program, last, use_resource, monkeypatch)

        assert reports[-1]["global_step"] == last
        assert reports[-1]["last_step"] == (last if program is monitored else None)
        assert [point["step"] for report in reports for point in report["points"] if point["step"]][-1] == last


@pytest.mark.parametrize(
    ("error", "left"),
    [(tf.errors.DeadlineExceededError, "_LAST_S"), (tf.errors.UnavailableError, "_LAST_AWAY_S")],
    ids=["slow", "away"],
)
def test_the_last_report_waits_longer_for_a_service_that_is_there(
    error: type[tf.errors.OpError], left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service fails to take the first report; the last one has all that the first had."""
    failed, timeouts = threading.Event(), list[float]()

    class Failing(FakeClient):
        def report_task(self, run: str, job: str, index: int, report: dict[str, Any], *, timeout: float) -> Any:
            timeouts.append(timeout)
            if not failed.is_set():
                failed.set()
                raise error(None, None, "it has not answered")
            return super().report_task(run, job, index, report, timeout=timeout)

    def waiting(train: Any, loss: Any, step: Any, last: int) -> None:
        fetching(train, loss, step, last)
        assert failed.wait(30.0)

    reports = reported(waiting, 7, False, monkeypatch, Failing)

    assert reports[-1]["global_step"] == 7
    assert timeouts[-1] == getattr(program_report, left)


def test_histograms_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def writing(train: Any, loss: Any, step: Any, last: int) -> None:
        summary = tf.summary.histogram("weights", [1.0, 3.0])
        with tf.Session() as session, tf.summary.FileWriter(str(tmp_path)) as writer:
            session.run(tf.global_variables_initializer())
            writer.add_summary(session.run(summary), 5)

    reports = reported(writing, 1, False, monkeypatch)

    (found,) = (point for report in reports for point in report["points"] if "distributions" in point)
    assert (found["step"], found["values"]) == (5, {})
    assert found["distributions"]["weights"]["highest"] == 3.0


def test_variables_and_tables_are_those_of_the_servers_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()  # what other tests have left
    before, tables = program_report._held()
    with tf.train.Server.create_local_server() as server, tf.Graph().as_default():
        tf.get_variable("w", initializer=tf.zeros([1000]))
        found = [tf.nn.embedding_lookup(tf.get_embedding_variable(f"told_{at}", 2), [1, 2, 3 + at]) for at in range(2)]
        with tf.Session(server.target) as session:
            session.run(tf.global_variables_initializer())
            session.run(found)
        held, told = program_report._held()
        monkeypatch.setattr(program_report, "_TABLES", 1)
        bounded, one = program_report._held()

    assert held["variable_bytes"] == before.get("variable_bytes", 0) + 4000
    assert held["table_rows"] == before.get("table_rows", 0) + 6
    assert held["table_bytes"] > before.get("table_bytes", 0)
    mine = [table for table in told if table["name"].startswith("told_")]
    assert [(table["rows"], table["lookups"], table["found"]) for table in mine] == [(3, 3, 0)] * 2
    assert len(told) == len(tables) + 2
    assert "tables_left_out" not in held
    assert (len(one), bounded["tables_left_out"]) == (1, len(told) - 1)


def test_a_program_with_tables_tells_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def looking_up(train: Any, loss: Any, step: Any, last: int) -> None:
        rows = tf.nn.embedding_lookup(tf.get_embedding_variable("reported", 2), [1, 2])
        with tf.Session(server.target) as session:
            session.run(tf.global_variables_initializer())
            session.run(rows)

    with tf.train.Server.create_local_server() as server:
        reports = reported(looking_up, 1, False, monkeypatch)

    names = [table["name"] for table in reports[-1]["tables"]]
    assert "reported" in names
    assert reports[-1]["figures"]["table_rows"] >= 2


def test_of_many_histograms_the_newest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_report, "_KEPT_DISTRIBUTIONS", 2)
    plain = observing.Point(1.0, 1, {"loss": 0.5})
    large = [observing.Point(float(at), at, {}, {"w": Distribution(*[0.0] * 6)}) for at in range(2, 6)]

    assert program_report._bounded([*large, plain]) == [*large[2:], plain]
