"""Each frame of a link × each fate: no call hangs, nothing is done twice, nothing is left.

A proxy (support/faults/frame_proxy.py) stands before the links of three tasks and loses, repeats or cuts off one frame.
What is to come of it stands in one table, support/faults/frame_stories.py.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from support.faults.frame_proxy import FrameFate
from support.faults.frame_stories import LATE, ON_CALLERS_THREAD, STORIES, FrameScene
from support.faults.proxied_cluster import HURRIED, THREE_TASKS, proxied_cluster
from tenfold_core import errors
from tenfold_link.wire.calls import LinkCall
from tenfold_link.wire.frames import FrameKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.faults.proxied_cluster import ProxiedCluster

#: A call that takes longer hangs.
BOUND = 15.0
#: Of a step whose frame is swallowed: a peer that is at fault says nothing, and only the step's own time ends it.
STEP_SECONDS = 1.0
#: What `make test` tries: of each call the request that comes twice, and the answer that is lost.
SHORT = (("REQUEST", FrameFate.REPEATED), ("NOTIFY", FrameFate.REPEATED), ("REPLY", FrameFate.CUT_BEFORE))
LINKS = {
    "TENFOLD_LINK": "auto",
    "TENFOLD_SHARED_MEMORY": "auto",
    "TENFOLD_SHARED_MEMORY_THRESHOLD": "1",
    "TENFOLD_LINK_RETRY_SECONDS": "0.05",
    "TENFOLD_LINK_HELLO_SECONDS": "1",
    "TENFOLD_LINK_PING_EVERY_SECONDS": "0.2",
    "TENFOLD_LINK_PING_ANSWER_SECONDS": "3",
    "TENFOLD_TASK_PROBE_ANSWER_SECONDS": "3",
}

CELLS = [
    pytest.param(
        name, fate, id=f"{name}-{fate.name}", marks=() if (name.split()[0], fate) in SHORT else pytest.mark.long
    )
    for fate in FrameFate
    for name in STORIES
]
HERE = [
    pytest.param(name, fate, id=f"{name}-{fate.name}", marks=() if fate is FrameFate.CUT_BEFORE else pytest.mark.long)
    for fate in (FrameFate.REPEATED, FrameFate.CUT_BEFORE, FrameFate.CUT_AFTER)
    for name in ON_CALLERS_THREAD
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[ProxiedCluster]:
    with proxied_cluster(HURRIED | LINKS, THREE_TASKS) as found:
        yield found


def test_every_frame_has_a_story() -> None:
    said = {part for name in STORIES for part in name.split()}
    told = {LinkCall.CLEANUP_GRAPH, LinkCall.PUSH}
    #: Between peers that are far apart only; tests/cluster/test_link_streams.py breaks its connections.
    far = {FrameKind.STREAMS}

    assert said == {kind.name for kind in set(FrameKind) - far} | {call.name for call in LinkCall}
    for call in set(LinkCall) - told:
        assert {f"REQUEST {call.name}", f"REPLY {call.name}"} <= STORIES.keys()


@pytest.mark.parametrize(("name", "fate"), CELLS)
def test_a_frame_that_meets_its_fate(name: str, fate: FrameFate, cluster: ProxiedCluster) -> None:
    cluster.clear()
    try_scene(FrameScene(cluster), name, fate)


@pytest.mark.parametrize(("name", "fate"), HERE)
def test_a_frame_of_a_step_on_its_callers_thread(name: str, fate: FrameFate, cluster: ProxiedCluster) -> None:
    cluster.clear()
    scene = FrameScene(cluster, here=True)
    try_scene(scene, name, fate)
    assert scene.was_here


def try_scene(scene: FrameScene, name: str, fate: FrameFate) -> None:
    cluster, story = scene.cluster, STORIES[name]
    with closing(scene):
        play(scene, name, fate)
    # nothing is left, but what the table says; and the tasks go on
    cluster.settle()
    assert cluster.left_over().keys() <= story.left
    run_steps(cluster)
    cluster.sweep()
    assert cluster.left_over() == {}
    assert cluster.lent() <= 8


def play(scene: FrameScene, name: str, fate: FrameFate) -> None:
    cluster, story = scene.cluster, STORIES[name]
    script = cluster.frames[story.at].script
    late = story.ends(fate) == LATE and name != "CANCEL RUN_STEP"
    if story.opens:
        script.set(name, fate)
    if not story.before:
        cluster.cut_links()
    scene.create(STEP_SECONDS if late else None)
    for step in story.before * 2:
        scene.run(step)
    if story.anew:
        scene.master.close_session(scene.handle, BOUND)
        scene.create(STEP_SECONDS if late else None)
    before = scene.count()

    if not story.opens:
        script.set(name, fate)
    after = scene.let_in if story.waits and fate is not FrameFate.SWALLOWED else None
    value, error, took = script.meet(lambda: story.act(scene), BOUND, after)

    # it ends, as the table says, and an error says where
    assert took < BOUND
    assert (None if error is None else type(error)) in story.ends(fate)
    if error is not None:
        assert any(said in error.message for said in ("/job:ps/", "/job:worker/", "localhost:")), error.message
    # nothing is done twice
    done = scene.count() - before
    if error is None and isinstance(value, int):
        assert value == before + done
        assert done == (3 if name == "RELEASE" else 1)
    assert done <= (3 if name == "RELEASE" else 1)


def run_steps(cluster: ProxiedCluster) -> None:
    """A client comes after all that, maybe before all have noticed that a link is gone."""
    with closing(FrameScene(cluster)) as scene:
        scene.create()
        for step in ("short", "ring", "loop"):
            before = scene.count()
            try:
                value = scene.run(step)
            except errors.UnavailableError:
                value = scene.run(step)
            assert before < value == scene.count() <= before + 2
    cluster.settle()
