"""What is ahead of a state that a training has saved: increments, also over a chain's beginning, and what is broken."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

import tenfold as tf
from tenfold.train.checkpoint_follower import Ahead, Point, ahead, newest_whole, signature
from tenfold.train.incremental_saver import SUB_INCR_CKPT_DIR, _get_incremental_saver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Training:
    """A table that gets one more id in each step."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        with tf.Graph().as_default() as graph:
            table = tf.get_embedding_variable("v", 2, initializer=tf.ones_initializer())
            self._step = tf.train.get_or_create_global_step()
            rows = tf.nn.embedding_lookup(table, self._step[None])
            self._train = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(rows), global_step=self._step)
            self._saver = tf.train.Saver(incremental_save_restore=True)
            made = _get_incremental_saver(True, self._saver)
            assert made is not None
            self._increments = made
            self._init = tf.global_variables_initializer()
        self.session = tf.Session(graph=graph)
        self.session.run(self._init)

    def train(self) -> None:
        self.session.run(self._train)

    def whole(self) -> str:
        saved = self._saver.save(self.session, os.path.join(self.folder, "model.ckpt"), global_step=self._step)
        assert saved is not None
        return saved

    def increment(self) -> str:
        self.train()
        path = os.path.join(self.folder, SUB_INCR_CKPT_DIR, "incremental_model.ckpt")
        saved = self._increments.incremental_save(self.session, path, global_step=self._step)
        assert saved is not None
        return saved


@pytest.fixture
def training(tmp_path: Path) -> Iterator[Training]:
    made = Training(tmp_path)
    with made.session:
        yield made


def files(found: Ahead) -> list[str]:
    return [point.last for point in found.points]


def last(found: Ahead) -> Point:
    return found.points[-1]


def test_it_begins_at_the_newest_whole_checkpoint(training: Training) -> None:
    with pytest.raises(tf.errors.NotFoundError, match=r"There is no checkpoint in .* yet"):
        newest_whole(training.folder)
    before = signature(training.folder)
    training.train()
    whole = training.whole()
    assert signature(training.folder) != before
    start = newest_whole(training.folder)
    assert (start.whole, start.last, start.global_step) == (whole, whole, 1)
    assert start.saved_at == os.stat(f"{whole}.index").st_mtime_ns / 1e9
    assert ahead(training.folder, start) == Ahead()


def test_increments_lead_on_one_by_one(training: Training) -> None:
    training.whole()
    start = newest_whole(training.folder)
    made = [training.increment(), training.increment()]
    found = ahead(training.folder, start)
    assert files(found) == made
    assert [(point.whole, point.global_step) for point in found.points] == [(start.whole, 1), (start.whole, 2)]
    assert (found.trouble, found.newer) == ("", None)
    made.append(training.increment())
    assert files(ahead(training.folder, found.points[0])) == made[1:]
    assert ahead(training.folder, last(ahead(training.folder, start))) == Ahead()


def test_a_new_chain_is_gone_over_to(training: Training) -> None:
    """Its first increment follows the end of the one before; until it is there the whole checkpoint is newer."""
    training.whole()
    training.increment()
    at = last(ahead(training.folder, newest_whole(training.folder)))
    training.train()
    second = training.whole()
    waits = ahead(training.folder, at)
    assert (files(waits), waits.trouble, waits.only_newer) == ([], "", False)
    assert waits.newer == newest_whole(training.folder)
    made = training.increment()
    found = ahead(training.folder, at)
    assert (files(found), found.newer, last(found).whole) == ([made], None, second)
    assert files(ahead(training.folder, newest_whole(training.folder))) == [made], "and from the whole one"
    at = last(found)
    # a whole one right after another
    training.train()
    training.whole()
    training.train()
    third = training.whole()
    found = ahead(training.folder, at)
    assert found.newer is not None
    assert (found.newer.whole, found.only_newer) == (third, False)
    made = training.increment()
    assert files(ahead(training.folder, at)) == [made]


def test_who_is_too_far_behind_reads_the_whole_one(training: Training) -> None:
    training.whole()
    start = newest_whole(training.folder)
    training.increment()
    training.increment()
    training.whole()
    training.increment()
    found = ahead(training.folder, start)
    assert found.newer == newest_whole(training.folder)
    assert (found.points, found.only_newer) == ((), True)
    assert "follows" in found.trouble


@pytest.mark.parametrize("damage", ["index", "data", "again"])
def test_a_broken_link_is_told_and_a_whole_checkpoint_leads_past_it(
    training: Training, tmp_path: Path, damage: str
) -> None:
    training.whole()
    start = newest_whole(training.folder)
    made = [training.increment() for _ in range(3)]
    if damage == "again":
        # the second one is not what the third one follows
        for name in os.listdir(tmp_path / SUB_INCR_CKPT_DIR):
            if name.startswith(os.path.basename(made[0]) + "."):
                here = tmp_path / SUB_INCR_CKPT_DIR / name
                shutil.copy(here, str(here).replace("ckpt-1.", "ckpt-2."))
    else:
        os.unlink(f"{made[1]}.index" if damage == "index" else f"{made[1]}.data-00000-of-00001")

    found = ahead(training.folder, start)

    assert files(found) == made[:1], "those before it are good"
    assert made[1] in found.trouble
    assert (found.newer, found.only_newer) == (None, False)
    at = last(found)
    assert ahead(training.folder, at).trouble
    training.train()
    second = training.whole()
    past = ahead(training.folder, at)
    assert past.newer is not None
    assert past.newer.whole == second
    assert past.only_newer
    assert past.trouble


def test_a_training_that_began_anew_is_read_anew(training: Training, tmp_path: Path) -> None:
    training.whole()
    training.increment()
    at = last(ahead(training.folder, newest_whole(training.folder)))
    shutil.rmtree(tmp_path / SUB_INCR_CKPT_DIR)
    gone = ahead(training.folder, at)
    assert "are gone" in gone.trouble
    assert gone.newer is None
    with Training(tmp_path).session:
        pass
    other = Training(tmp_path)
    with other.session:
        other.train()
        other.train()
        other.train()
        whole = other.whole()
        other.increment()
        found = ahead(training.folder, at)
        assert found.newer is not None
        assert found.newer.whole == whole
        assert found.only_newer


def test_what_is_no_list_is_told(training: Training, tmp_path: Path) -> None:
    training.whole()
    at = newest_whole(training.folder)
    os.unlink(tmp_path / "checkpoint")
    assert "checkpoint, the list of checkpoints, cannot be read" in ahead(training.folder, at).trouble
