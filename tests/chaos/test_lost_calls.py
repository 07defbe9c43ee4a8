"""Each method of a task × each fate of a call on its way: no call hangs, nothing is done twice, nothing is left.

A proxy (support/faults/call_proxy.py) stands before each of two tasks and loses, resets, holds back or repeats one
call. What is to come of it stands in one table, support/faults/call_stories.py.
"""

from __future__ import annotations

import random
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from support.faults.call_stories import LATE, STORIES, TWICE, Scene, done_at_most, methods, outcome_of
from support.faults.fates import NEVER_ARRIVES, Fate
from support.faults.proxied_cluster import HURRIED, proxied_cluster
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.faults.proxied_cluster import ProxiedCluster

#: A call that takes longer hangs. Its caller has given up after a second, or hears of it at once.
BOUND = 15.0
#: What `make test` tries of each method.
SHORT = (Fate.REPLY_LOST, Fate.REPEATED)
GRPC = {"TENFOLD_LINK": "off"}

CELLS = [
    pytest.param(name, fate, id=f"{name}-{fate.name}", marks=() if fate in SHORT else pytest.mark.long)
    for fate in Fate
    for name in STORIES
]


@pytest.fixture(scope="module")
def patient() -> Iterator[ProxiedCluster]:
    with proxied_cluster(GRPC) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def hurried() -> Iterator[ProxiedCluster]:
    """Its tasks give up what takes a second."""
    with proxied_cluster(GRPC | HURRIED) as cluster:
        yield cluster


def test_every_method_has_a_story() -> None:
    found = [method.name for method in methods().values()]

    assert set(found) == {story.method or name for name, story in STORIES.items()}
    assert len(found) >= 32
    assert all(story.why for story in STORIES.values() if story.twice > 1 or story.left or story.orphans)


@pytest.mark.parametrize(("name", "fate"), CELLS)
def test_a_call_that_meets_its_fate(name: str, fate: Fate, request: pytest.FixtureRequest) -> None:
    cluster: ProxiedCluster = request.getfixturevalue("hurried" if fate in LATE else "patient")
    cluster.clear()
    story = STORIES[name]
    with closing(Scene(cluster, story, fate)) as scene:
        play(scene, name, fate)
    # nothing is left, but what the table says; and the tasks go on
    orphans = scene.sessions()
    assert len(orphans) <= (fate in story.orphans)
    cluster.settle()
    assert cluster.left_over().keys() <= story.left.get(fate, set())
    run_a_step(cluster)
    cluster.sweep()
    assert cluster.left_over() == {}


def play(scene: Scene, name: str, fate: Fate) -> None:
    cluster, story = scene.cluster, STORIES[name]
    story.prepare(scene)
    before = story.applied(scene) if story.applied is not None else 0
    if not (story.waits and fate in TWICE):
        scene.let_in()

    method, script = story.method or name, cluster.calls[story.job].script
    script.set(method, fate)
    late = scene.let_in if story.waits and fate in TWICE else None
    value, error, took = script.meet(lambda: story.act(scene), BOUND, late)

    # it ends, as the table says, and an error says where, but for what a master says of a session of its own
    assert took < BOUND
    expected = outcome_of(story, fate)
    if expected:
        assert isinstance(error, expected)
        places = ("/job:ps/", "/job:worker/", "localhost:", method)
        assert fate in TWICE or any(place in error.message for place in places), error.message
    else:
        assert error is None
    if isinstance(value, int):
        assert value == scene.count()
    # nothing is done twice, and nothing that never arrived
    if story.applied is not None:
        done = story.applied(scene) - before
        assert done <= done_at_most(story, fate)
        assert done or error is not None or fate in NEVER_ARRIVES


def run_a_step(cluster: ProxiedCluster) -> None:
    """A client comes after all that. Where calls have a second, a machine that is busy may need another try."""
    for _ in range(10):
        try:
            run_one_step(cluster)
            return
        except errors.UnavailableError as error:
            if "within 1 s" not in error.message:
                raise
    run_one_step(cluster)


def run_one_step(cluster: ProxiedCluster) -> None:
    with closing(Scene(cluster, STORIES["RunStep"], Fate.REPEATED)) as scene:
        scene.create()
        scene.let_in()
        assert (scene.run(), scene.count()) == (1, 1)
    cluster.settle()


@pytest.mark.parametrize("steps", [pytest.param(15, id="short"), pytest.param(300, id="long", marks=pytest.mark.long)])
def test_steps_through_a_storm(patient: ProxiedCluster, steps: int) -> None:
    """Of all calls one in twenty is lost, reset or repeated, those of a step and its session together."""
    patient.clear()
    fates = [fate for fate in Fate if fate not in LATE]
    asked, answers = 0, []
    with closing(Scene(patient, STORIES["RunStep"], Fate.REPEATED)) as scene:
        for seed, proxy in enumerate(patient.calls.values()):
            proxy.script.storm(random.Random(seed), 0.05, fates)
        while len(answers) < steps:
            asked += 1
            assert asked < 10 * steps
            try:
                if not scene.handle:
                    scene.create()
                answers.append(scene.run(scene.plain))
            except (errors.UnavailableError, errors.AbortedError, errors.AlreadyExistsError):
                scene.begin_anew()
        for proxy in patient.calls.values():
            proxy.script.clear()

        assert answers == sorted(set(answers))
        assert len(answers) <= scene.count() <= asked
    patient.settle()
    run_a_step(patient)
    patient.sweep()
    assert patient.left_over() == {}
