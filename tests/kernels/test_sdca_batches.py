"""What a step of dual coordinate ascent reads of its batch: labels, entries and features; who goes when."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels.cpu import sdca

LOSSES = (b"logistic_loss", b"squared_loss", b"hinge_loss", b"smooth_hinge_loss", b"poisson_loss")
LOGISTIC, SQUARED, HINGE, SMOOTH_HINGE, POISSON = range(5)
F = np.float32


def refused(text: str, function: Any, *inputs: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError) as error:
        function(*inputs)
    assert error.value.message == text


# -- labels


def test_labels_of_two_classes_become_signs() -> None:
    for loss in (LOGISTIC, HINGE, SMOOTH_HINGE):
        assert sdca._labels(loss, np.array([0.0, 1.0, 0.0])).tolist() == [-1, 1, -1]
        for wrong, named in (([0.0, 3.0, 2.0], "3"), ([1.0, -1.0], "-1"), ([0.5], "0.5")):
            text = f"Only labels of 0.0 or 1.0 are supported right now. Found example with label: {named}"
            refused(text, sdca._labels, loss, np.array(wrong))


def test_labels_that_are_numbers_stay() -> None:
    assert sdca._labels(SQUARED, np.array([0.0, -7.5, 1.0])).tolist() == [0, -7.5, 1]
    assert sdca._labels(POISSON, np.array([0.0, 0.5, 3.0])).tolist() == [0, 0.5, 3]
    text = "Only non-negative labels can be used with the Poisson log loss. Found example with label: -2"
    refused(text, sdca._labels, POISSON, np.array([0.0, -2.0, -1.0]))


# -- entries


def entries(count: int, *groups: tuple[list[int], list[int], list[float] | None, list[int]]) -> Any:
    """Of groups of (examples, features, values, ids)."""
    examples, features = ([np.array(group[i], np.int64) for group in groups] for i in (0, 1))
    values = [np.array(group[2], F) for group in groups if group[2] is not None]
    ids = [np.array(group[3], np.int64) for group in groups]
    weights = [np.zeros(len(each), F) for each in ids]
    return sdca._entries(count, examples, features, values, ids, weights)


def test_entries_are_sorted_by_example_and_weight() -> None:
    ends, slots, values = entries(
        4, ([2, 0, 2, 0], [30, 10, 20, 30], [1, 2, 3, 4], [30, 10, 20]), ([0, 3], [7, 8], None, [9, 8, 7])
    )

    assert ends.tolist() == [3, 3, 5, 6]
    assert slots.tolist() == [0, 1, 5, 0, 2, 4]
    assert values.tolist() == [4, 2, 1, 1, 3, 1]
    assert (ends.dtype, slots.dtype, values.dtype) == (np.int64, np.int64, np.float64)


def test_entries_of_nothing() -> None:
    for given in ((), (([], [], [], []),), (([], [], None, [4]),)):
        ends, slots, values = entries(2, *given)
        assert [ends.tolist(), slots.tolist(), values.tolist()] == [[0, 0], [], []]
    assert entries(0, ([], [], None, [4]))[0].tolist() == []


def test_of_two_weights_for_one_feature_the_last_is_taken() -> None:
    assert entries(1, ([0], [5], None, [5, 4, 5]))[1].tolist() == [2]


def test_the_same_place_in_two_groups_is_no_duplicate() -> None:
    assert entries(1, ([0], [5], None, [5]), ([0], [5], None, [5]))[1].tolist() == [0, 1]
    assert entries(2, ([0, 1], [5, 5], None, [5]))[1].tolist() == [0, 0]
    refused("Duplicate index in sparse vector.", entries, 2, ([1, 0, 1], [5, 5, 5], None, [5]))


@pytest.mark.parametrize(
    ("group", "text"),
    [
        (([0, 1], [5], None, [5]),
         "A sparse feature needs as many examples as features and values, got 2, 1 and 1"),
        (([0], [5], [1.0, 2.0], [5]),
         "A sparse feature needs as many examples as features and values, got 1, 1 and 2"),
        (([2], [5], None, [5]), "Found an example index out of range: there are 2 examples"),
        (([-1], [5], None, [5]), "Found an example index out of range: there are 2 examples"),
        (([0, 1], [5, 4], None, [5]), "Found sparse feature indices out of valid range: 4"),
        (([0, 1], [6, 9], None, [7, 5]), "Found sparse feature indices out of valid range: 6"),
        (([0, 1], [5, 9], None, [7, 5]), "Found sparse feature indices out of valid range: 9"),
        (([0], [5], None, []), "Found sparse feature indices out of valid range: 5"),
    ],
)  # fmt: skip
def test_entries_that_do_not_fit(group: Any, text: str) -> None:
    refused(text, entries, 2, group)


def test_each_index_has_a_weight() -> None:
    one = [np.zeros(1, np.int64)]
    text = "Expected a weight for each of 1 sparse indices, got 2"
    refused(text, sdca._entries, 1, one, one, [], one, [np.zeros((2, 1), F)])


# -- dense features


def test_dense_features_stand_side_by_side() -> None:
    features, weights = [F([[1], [2]]), F([[3, 4], [5, 6]])], [F([7, 8]), F([[9], [10]])]

    wide, row = sdca._side_by_side(2, features, weights)

    assert wide.tolist() == [[1, 0, 3, 4], [2, 0, 5, 6]]
    assert row.tolist() == [7, 8, 9, 10]
    assert (wide.dtype, row.dtype) == (np.float64, np.float64)
    assert sdca._side_by_side(3, [], [])[0].shape == (3, 0)
    assert sdca._side_by_side(3, [], [])[1].shape == (0,)
    apart = sdca._apart(np.arange(4.0), weights)
    assert [(each.tolist(), each.dtype) for each in apart] == [([0, 1], F), ([[2], [3]], F)]
    assert sdca._apart(np.zeros(0), []) == []


def test_dense_features_that_do_not_fit() -> None:
    weights = [np.zeros(2, F)]
    refused("Expected dense features of shape [2,?], got [2]", sdca._side_by_side, 2, [np.zeros(2, F)], weights)
    refused("Expected dense features of shape [2,?], got [3,1]", sdca._side_by_side, 2, [np.zeros((3, 1), F)], weights)
    text = "More dense features than we have parameters for: 3"
    refused(text, sdca._side_by_side, 2, [np.zeros((2, 3), F)], weights)


def test_weights_shrink() -> None:
    assert sdca._shrink(np.array([3.0, -3.0, 0.5, -0.5, 1.0, 0.0]), 1.0).tolist() == [2, -2, 0, 0, 0, 0]
    assert sdca._shrink(F([3, -1]), np.inf).tolist() == [0, 0]
    assert sdca._shrink(F([3, -1]), 0.0).tolist() == [3, -1]


# -- the order of examples


@pytest.mark.parametrize(
    ("loss", "labels", "predictions", "slopes"),
    [
        (LOGISTIC, [1, -1, 1], [0.5, 0.5, -2], [-1 / (1 + np.exp(0.5)), 1 / (1 + np.exp(-0.5)), -1 / (1 + np.exp(-2))]),
        (SQUARED, [1, -1, 7.5], [0.5, 0.5, 2], [-0.5, 1.5, -5.5]),
        (HINGE, [1, 1, 1, -1, -1], [0.5, 1, 2, 0.5, -1], [-1, 0, 0, 1, 0]),
        (SMOOTH_HINGE, [1, 1, 1, 1, -1, -1, -1], [0.25, 1.5, 0, -1, -0.25, -3, 2], [-0.75, 0, -1, -1, 0.75, 0, 1]),
        (POISSON, [1, 0, 3], [0, 1, -1], [0, np.e, np.exp(-1) - 3]),
    ],
)
def test_slopes_of_losses(loss: int, labels: Any, predictions: Any, slopes: Any) -> None:
    found = sdca._slopes(loss, np.array(labels, float), np.array(predictions, float))

    np.testing.assert_allclose(found, slopes, rtol=1e-12)


class Scripted:
    """A generator whose numbers are known."""

    def __init__(self, *numbers: float) -> None:
        self.numbers = list(numbers)

    def random(self) -> float:
        return self.numbers.pop(0)

    def permutation(self, count: int) -> Any:
        return np.arange(count)[::-1].copy()


@pytest.mark.parametrize(
    ("chances", "numbers", "order"),
    [
        # which one, and whether it stays in
        ([1, 2, 1], [0.0, 1.0, 0.5, 1.0, 0.99, 1.0], [0, 1, 2]),
        ([1, 2, 1], [0.25, 1.0, 0.75, 1.0, 0.0, 1.0], [1, 2, 0]),
        ([1, 2, 1], [0.0, 1.0, 0.1, 0.5, 0.2, 0.05, 0.99, 0.3], [0, 0, 2]),
        ([1, 2, 1], [0.0, 1.0, 0.0, 0.1, 0.0, 0.02, 0.0, 0.01], [0, 0, 0]),
        ([1, 1, 5], [0.0, 1.0, *[0.0, 0.9] * 3], [0, 2, 1]),
        ([1, 5, 1, 1], [0.99, 1.0, 0.99, 0.01, *[0.99, 0.9] * 4], [3, 3, 1, 0]),
        ([0.25, 0.25], [1.0, 1.0, 0.0, 0.5], [1, 0]),
        ([0, 0, 0], [], [2, 1, 0]),
        ([1, np.inf, 1], [], [2, 1, 0]),
        ([1, np.nan, 1], [], [2, 1, 0]),
        ([], [], []),
    ],
)
def test_examples_are_drawn_by_how_far_they_are(chances: Any, numbers: Any, order: Any) -> None:
    script: Any = Scripted(*numbers)

    found = sdca._drawn(script, np.array(chances, float))

    assert found.tolist() == order
    assert found.dtype == np.int64
    assert script.numbers == []


# -- a step

EXAMPLES, FEATURES = [[0, 2, 1], [0, 2]], [[7, 7, 4], [3, 9]]
IDS, SPARSE_WEIGHTS = [[4, 7], [9, 3]], [[[0.5], [-1.0]], [[0.25], [0.75]]]
VALUES = [2.0, -1.0, 3.0]
DENSE, DENSE_WEIGHTS = [[[1.0, 2.0], [0.5, -1.0], [3.0, 0.0]], [[1.0], [1.0], [-2.0]]], [[0.3, -0.6], [0.9]]
WEIGHTS, STATE = [1.0, 2.0, 0.5], [[0.2, 9, 9, 9], [-0.4, 9, 9, 9], [0.1, 9, 9, 9]]


def step(ops: Any, op: str, loss: int, labels: list[float], **attrs: Any) -> Any:
    inputs = [
        *(np.int64(each) for each in EXAMPLES), *(np.int64(each) for each in FEATURES), F(VALUES),
        *(F(each) for each in DENSE), F(WEIGHTS), F(labels), *(np.int64(each) for each in IDS),
        *(F(each) for each in SPARSE_WEIGHTS), *(F(each) for each in DENSE_WEIGHTS), F(STATE),
    ]  # fmt: skip
    given = {
        "loss_type": LOSSES[loss], "num_sparse_features": 2, "num_sparse_features_with_values": 1,
        "num_dense_features": 2, "l1": 0.5, "l2": 2.0, "num_loss_partitions": 3, "num_inner_iterations": 1, **attrs,
    }  # fmt: skip
    return ops.run(op, inputs, **given)


def matrix() -> Any:
    """All features: sparse ones by the place of their weight, dense ones."""
    wide = np.zeros((3, 7))
    wide[:, 4:6], wide[:, 6:] = DENSE[0], DENSE[1]
    wide[[0, 2, 1], [1, 1, 0]] = VALUES
    wide[[0, 2], [3, 2]] = 1
    return wide


MODEL = np.array([0.5, -1.0, 0.25, 0.75, 0.3, -0.6, 0.9])


def shrunk(weights: Any, by: float) -> Any:
    return np.sign(weights) * np.maximum(np.abs(weights) - by, 0)


@pytest.mark.parametrize("op", ["SdcaOptimizer", "SdcaOptimizerV2"])
def test_a_pass_takes_each_example_in_turn(ops: Any, op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the formula of the squared loss, whose best dual variable is known."""
    monkeypatch.setattr(np.random, "default_rng", Scripted)
    labels, partitions, l2 = np.array([1.5, -2.0, 0.5]), 3, 2.0
    deltas, state = np.zeros(7), np.array(STATE)
    for b in (2, 1, 0):
        x, dual = matrix()[b], STATE[b][0]
        best = dual + (labels[b] - dual - x @ shrunk(MODEL + partitions * deltas, 0.25)) / (
            1 + partitions * (x @ x) / l2 * WEIGHTS[b]
        )
        deltas += x * (best - dual) * WEIGHTS[b] / l2
        before = x @ shrunk(MODEL, 0.25) - labels[b]
        state[b] = best, before**2 / 2 * WEIGHTS[b], dual * (dual / 2 - labels[b]) * WEIGHTS[b], WEIGHTS[b]

    new, first, second, third, fourth = step(ops, op, SQUARED, labels.tolist())

    np.testing.assert_allclose(new, state, rtol=1e-5)
    assert [each.shape for each in (first, second, third, fourth)] == [(2, 1), (2, 1), (2,), (1,)]
    found = np.concatenate([each.reshape(-1) for each in (first, second, third, fourth)])
    np.testing.assert_allclose(found, deltas, rtol=1e-5)


@pytest.mark.parametrize(("op", "name"), [("SdcaOptimizer", "adaptative"), ("SdcaOptimizerV2", "adaptive")])
@pytest.mark.parametrize(("loss", "smooth"), [(LOGISTIC, 4), (SQUARED, 1), (HINGE, 0), (SMOOTH_HINGE, 1), (POISSON, 1)])
def test_an_adaptive_pass_prefers_what_is_far(
    ops: Any, op: str, name: str, loss: int, smooth: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(sdca, "_drawn", lambda random, chances: (seen.append(chances), np.arange(3))[1])
    signs = np.array([1, 0, 1.0]) if loss in (SQUARED, POISSON) else np.array([1, -1, 1.0])

    step(ops, op, loss, [1.0, 0.0, 1.0], **{name: True})

    predictions = matrix() @ shrunk(MODEL, 0.25)
    norms = (matrix() ** 2).sum(1)
    far = np.abs(np.array(STATE)[:, 0] + sdca._slopes(loss, signs, predictions))
    np.testing.assert_allclose(seen[0], np.array(WEIGHTS) * np.sqrt(norms + 2.0 * smooth) * far, rtol=1e-6)
    step(ops, op, loss, [1.0, 0.0, 1.0], **{name: False})
    assert len(seen) == 1


def test_without_l2_nothing_is_left_of_the_weights(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    monkeypatch.setattr(sdca, "ascend", lambda: lambda *given: seen.append(given[3]))
    step(ops, "SdcaOptimizer", SQUARED, [0.0] * 3, l2=0.0)
    step(ops, "SdcaOptimizer", SQUARED, [0.0] * 3)
    assert seen == [np.inf, 0.25]
    for l2, expected in ((0.0, [0, 0]), (2.0, [1, -0.5])):
        held = ops.variable(F([1.5, -1]))
        ops.run("SdcaShrinkL1", [held], num_features=1, l1=1.0, l2=l2)
        assert held.value.tolist() == expected


def test_fingerprints_are_no_keys_that_stand_for_something(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    words = {b"a": (0, 5), b"b": (1, 6), b"c": (2, 7), b"d": (1 << 63, 1 << 63)}
    monkeypatch.setattr(sdca, "fingerprint128", lambda text: words[text])

    found = ops.run("SdcaFprint", [[b"a", b"b", b"c", b"d"]])

    assert found.tolist() == [[-2, 5], [-1, 6], [2, 7], [-(1 << 63), -(1 << 63)]]
    refused("Input must be a vector, got shape [1,1]", ops.run, "SdcaFprint", [[[b"a"]]])
    refused("Input must be a vector, got shape []", ops.run, "SdcaFprint", [b"a"])
