"""GatherTree against following each beam on its own, and what it refuses."""

from __future__ import annotations

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
