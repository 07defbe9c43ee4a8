"""A step that is fed more than its fetches need: over every way into a task, from the first run to the third.

The answers of random graphs (support/superfluous_feeds.py) over two and three tasks are those of one local session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from support.background_cluster import background_cluster
from support.superfluous_feeds import Program, Step, expected
from tenfold.session import inprocess
from tenfold_protos import config_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

TASKS = ["/job:worker/task:0", "/job:ps/task:0", "/job:ps/task:1"]
#: What leads to a task: the process's own server, links of both kinds, gRPC.
ROADS = {
    "in process": {},
    "link": {},
    "tcp": {"TENFOLD_LINK": "tcp"},
    "grpc": {"TENFOLD_LINK": "off"},
}
SEEDS = [
    *range(2),
    *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(2, 8)),
    *(pytest.param(seed, marks=pytest.mark.long) for seed in range(8, 20)),
]


@pytest.fixture(params=["in process", "link", pytest.param("tcp", marks=pytest.mark.thorough), "grpc"])
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Of the worker, which has two parameter servers beside it."""
    for name in ("TENFOLD_LINK", "TENFOLD_SHARED_MEMORY", "TENFOLD_SHARED_MEMORY_THRESHOLD"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ROADS[request.param].items():
        monkeypatch.setenv(name, value)
    with background_cluster({"worker": 1, "ps": 2}) as servers:
        if request.param != "in process":
            monkeypatch.setattr(inprocess, "find", lambda target: None)
        yield f"grpc://localhost:{servers['worker', 0].port}"


def by_run(session: Any, step: Step) -> Callable[[Mapping[str, Any]], Any]:
    return lambda feeds: session.run([step.fetches, step.targets], feeds)[0]


def by_callable(session: Any, step: Step) -> Callable[[Mapping[str, Any]], Any]:
    graph = session.graph
    fetches = [graph.get_tensor_by_name(name) for name in step.fetches]
    targets = [graph.get_operation_by_name(name) for name in step.targets]
    call = session.make_callable([fetches, targets], [graph.get_tensor_by_name(name) for name in step.fed])
    return lambda feeds: call(*(feeds[name] for name in step.fed))[0]


def by_run_callable(session: Any, step: Step) -> Callable[[Mapping[str, Any]], Any]:
    options = config_pb2.CallableOptions(feed=step.fed, fetch=step.fetches, target=step.targets)
    call = session._make_callable_from_options(options)
    return lambda feeds: call(*(feeds[name] for name in step.fed))


def by_partial_run(session: Any, step: Step) -> Callable[[Mapping[str, Any]], Any]:
    def run(feeds: Mapping[str, Any]) -> Any:
        if not step.fetches:
            return []  # as in TensorFlow, no call of a partial run may be without them
        handle = session.partial_run_setup(step.fetches, list(step.fed))
        first = session.partial_run(handle, step.fetches[:1], feeds)
        return [*first, *(session.partial_run(handle, step.fetches[1:]) if step.fetches[1:] else [])]

    return run


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("way", [by_run, by_callable, by_run_callable, by_partial_run])
def test_the_answers_are_those_of_a_local_session(way: Any, seed: int, target: str) -> None:
    program = Program(tf, seed, TASKS[: 2 + seed % 2])
    with tf.Session(target, graph=program.graph) as session:
        session.run(program.init)
        calls: dict[int, Callable[[Mapping[str, Any]], Any]] = {}

        def run(step: Step, feeds: Mapping[str, Any]) -> Any:
            return calls.setdefault(id(step), way(session, step))(feeds)

        assert program.answers(run) == expected(tf, seed)


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_in_a_monitored_session(seed: int, target: str) -> None:
    program = Program(tf, seed, TASKS)
    with program.graph.as_default(), tf.train.MonitoredTrainingSession(target) as session:
        answers = program.answers(lambda step, feeds: session.run([step.fetches, step.targets], feeds)[0])
    assert answers == expected(tf, seed)


def test_a_feed_alone(target: str) -> None:
    """The smallest of them: the second step knew no place for a tensor that nothing on the master's task needs."""
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(1.0)
        p = tf.placeholder(tf.float32, [], name="unused")
        with tf.Session(target) as session:
            session.run(v.initializer)
            assert [session.run(v, {p: 0.0}) for _ in range(3)] == [1.0] * 3
