"""GatherTree against following each beam on its own, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf

RNG = np.random.default_rng(2)


def followed(steps: np.ndarray, parents: np.ndarray, lengths: np.ndarray, end: int) -> np.ndarray:
    out = np.full_like(steps, end)
    for row in range(steps.shape[1]):
        for beam in range(steps.shape[2]):
            at = beam
            for time in reversed(range(min(lengths[row], steps.shape[0]))):
                out[time, row, beam], at = steps[time, row, at], parents[time, row, at]
            ends = np.flatnonzero(out[:, row, beam] == end)
            out[ends[0] if ends.size else len(out) :, row, beam] = end
    return out


@pytest.mark.parametrize(("steps", "rows", "beams"), [(1, 1, 1), (6, 3, 4), (9, 2, 1), (0, 2, 3)])
def test_beams_are_followed_to_their_starts(steps: int, rows: int, beams: int) -> None:
    ids = RNG.integers(0, 8, (steps, rows, beams), dtype=np.int32)
    parents = RNG.integers(0, beams, (steps, rows, beams), dtype=np.int32)
    lengths = RNG.integers(0, steps + 2, rows, dtype=np.int32)
    with tf.Graph().as_default(), tf.Session() as sess:
        found = tf.raw_ops.GatherTree(step_ids=ids, parent_ids=parents, max_sequence_lengths=lengths, end_token=3)
        assert found.shape.as_list() == [steps, rows, beams]
        np.testing.assert_array_equal(sess.run(found), followed(ids, parents, lengths, 3))


def test_a_parent_that_is_no_beam_is_refused() -> None:
    parents = np.zeros((3, 1, 2), np.int32)
    parents[1, 0, 0] = 2
    with tf.Graph().as_default(), tf.Session() as sess:
        bad = tf.raw_ops.GatherTree(
            step_ids=np.zeros((3, 1, 2), np.int32), parent_ids=parents, max_sequence_lengths=[3], end_token=9
        )
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"invalid parent id 2 .*parents are 0 to 1"):
            sess.run(bad)
        with pytest.raises(ValueError, match="rank 3"):
            tf.raw_ops.GatherTree(step_ids=[[1]], parent_ids=[[1]], max_sequence_lengths=[1], end_token=0)


def tree(ops: Any, steps: Any, parents: Any, lengths: Any, end: Any = 9) -> Any:
    return ops.run("GatherTree", [np.array(each, np.int32) for each in (steps, parents, lengths, end)])


def test_lengths_beyond_both_ends(ops: Any) -> None:
    steps = np.arange(8).reshape(4, 2, 1)
    for first, second in ((-1, 5), (0, 4), (1, 3)):
        found = tree(ops, steps, np.zeros_like(steps), [first, second])
        assert found[:, 0, 0].tolist() == [0, 2, 4, 6][: max(first, 0)] + [9] * (4 - max(first, 0))
        assert found[:, 1, 0].tolist() == [1, 3, 5, 7][:second] + [9] * (4 - second)


def test_parents_that_are_no_beams(ops: Any) -> None:
    """… count only where somebody asks for them: not of the first step, nor behind the end of a row."""
    steps = np.zeros((3, 2, 2), np.int32)
    for time, parent in ((1, -1), (1, 2), (2, -1), (2, 2)):
        parents = np.zeros_like(steps)
        parents[time, 1, 1] = parent
        if time == 1:
            parents[2, 1] = [0, 1]
        at = rf"invalid parent id {parent} at \(batch, time, beam\) == \(1, {time - 1}, 1\); parents are 0 to 1"
        with pytest.raises(tf.errors.InvalidArgumentError, match=at):
            tree(ops, steps, parents, [3, 3])
        assert tree(ops, steps, parents, [3, time])[:time].any() == 0
    parents = np.full_like(steps, 7)
    parents[1:] = 0
    assert not tree(ops, steps, parents, [3, 3]).any()


def test_what_does_not_fit_a_tree(ops: Any) -> None:
    steps, parents, lengths = np.zeros((3, 2, 1), np.int32), np.zeros((3, 2, 1), np.int32), [3, 3]
    for given, text in (
        ((steps[0], parents[0], lengths), r"^step_ids must be a 3-tensor, saw shape: \[2,1\]$"),
        ((steps, parents[:2], lengths), r"^step_ids.shape must match parent_ids.*: \[3,2,1\] and \[2,2,1\]$"),
        ((steps, parents, 3), r"^max_sequence_lengths must be a vector, saw shape: \[\]$"),
        ((steps, parents, [3]), r"^batch size dimensions .* must match.  but shapes are: \[3,2,1\] and \[1\]$"),
        ((steps, parents, [3] * 3), r"^batch size dimensions .* must match.  but shapes are: \[3,2,1\] and \[3\]$"),
        ((steps, parents, lengths, [9]), r"^end_token must be a scalar, saw shape: \[1\]$"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            tree(ops, *given)
