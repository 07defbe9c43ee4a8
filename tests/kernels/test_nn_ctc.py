"""CTC: the loss against a sum over every path, its gradient against differences, decoders against all paths."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tenfold_core import errors

RNG = np.random.default_rng(37)
STEPS, CLASSES = 4, 3
BLANK = CLASSES - 1


def collapsed(path: tuple[int, ...], merges: bool = True) -> tuple[int, ...]:
    kept = [c for at, c in enumerate(path) if not (merges and at and path[at - 1] == c)]
    return tuple(c for c in kept if c != BLANK)


def chances(logits: np.ndarray[Any, Any], merges: bool = True) -> dict[tuple[int, ...], float]:
    """What can be said → how likely it is, over all paths."""
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    found: dict[tuple[int, ...], float] = {}
    for path in itertools.product(range(CLASSES), repeat=len(logits)):
        said = collapsed(path, merges)
        found[said] = found.get(said, 0.0) + float(np.prod([p[t, c] for t, c in enumerate(path)]))
    return found


def sparse(labels: list[list[int]]) -> list[np.ndarray[Any, Any]]:
    indices = [(b, at) for b, row in enumerate(labels) for at in range(len(row))]
    return [np.array(indices, np.int64), np.array([v for row in labels for v in row], np.int32)]


def lengths(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int32)


@pytest.mark.parametrize("merges", [True, False])
def test_the_loss_is_that_of_all_paths(ops: Any, merges: bool) -> None:
    x = RNG.standard_normal((STEPS, 3, CLASSES))
    labels = [[0, 0], [1], [0, 1]]
    loss, _ = ops.run("CTCLoss", [x, *sparse(labels), lengths(4, 2, 3)], ctc_merge_repeated=merges)

    for b, (row, count) in enumerate(zip(labels, (4, 2, 3), strict=True)):
        assert loss[b] == pytest.approx(-np.log(chances(x[:count, b], merges)[tuple(row)]))


def test_the_gradient_is_that_of_the_loss(ops: Any) -> None:
    x, way = RNG.standard_normal((STEPS, 2, CLASSES)), RNG.standard_normal((STEPS, 2, CLASSES))
    rest = [*sparse([[0, 1], [1]]), lengths(4, 3)]
    _, gradient = ops.run("CTCLoss", [x, *rest])
    high, low = (ops.run("CTCLoss", [x + step * way, *rest])[0].sum() for step in (1e-5, -1e-5))

    assert (gradient * way).sum() == pytest.approx((high - low) / 2e-5, rel=1e-5)
    assert not gradient[3, 1].any(), "behind the end nothing counts"


def test_labels_that_cannot_be_said(ops: Any) -> None:
    x = RNG.standard_normal((2, 1, CLASSES))
    with pytest.raises(errors.InvalidArgumentError, match="Not enough time for target transition sequence"):
        ops.run("CTCLoss", [x, *sparse([[0, 1, 0]]), lengths(2)])
    with pytest.raises(errors.InvalidArgumentError, match="Labels length is zero in batch 0"):
        ops.run("CTCLoss", [x, np.zeros((0, 2), np.int64), np.zeros(0, np.int32), lengths(2)])
    with pytest.raises(errors.InvalidArgumentError, match="Saw a non-null label"):
        ops.run("CTCLoss", [x, *sparse([[2, 0]]), lengths(2)])
    loss, gradient = ops.run("CTCLoss", [x, *sparse([[0, 1, 0]]), lengths(2)], ignore_longer_outputs_than_inputs=True)
    assert (loss.tolist(), gradient.any()) == ([0.0], False)


def test_greedy_decoding(ops: Any) -> None:
    path = [0, 0, BLANK, 0, 1]
    x = np.full((5, 1, CLASSES), -1.0)
    x[np.arange(5), 0, path] = 2.0
    for merges, said in ((True, [0, 0, 1]), (False, [0, 0, 0, 1])):
        indices, values, shape, score = ops.run("CTCGreedyDecoder", [x, lengths(5)], merge_repeated=merges)
        assert (values.tolist(), shape.tolist(), score.tolist()) == (said, [1, len(said)], [[-10.0]])
        assert indices.tolist() == [[0, at] for at in range(len(said))]


def test_beams_that_hold_everything_find_the_likeliest(ops: Any) -> None:
    x = RNG.standard_normal((STEPS, 1, CLASSES))
    best = sorted(chances(x[:, 0]).items(), key=lambda item: -item[1])[:3]
    outs = ops.run("CTCBeamSearchDecoder", [x, lengths(STEPS)], beam_width=100, top_paths=3, merge_repeated=False)

    assert [tuple(values.tolist()) for values in outs[3:6]] == [said for said, _ in best]
    np.testing.assert_allclose(outs[9][0], np.log([chance for _, chance in best]))
    with pytest.raises(errors.InvalidArgumentError, match="requested more paths than the beam width"):
        ops.run("CTCBeamSearchDecoder", [x, lengths(STEPS)], beam_width=1, top_paths=2)
