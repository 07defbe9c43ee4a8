"""Dual coordinate ascent: the best model there is, steps as TensorFlow takes them, fingerprints, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf

RNG = np.random.default_rng(7)
LOSSES = ("logistic_loss", "squared_loss", "hinge_loss", "smooth_hinge_loss", "poisson_loss")

#: B examples with three dense features, the third with a part that is sparse.
COUNT = 12
DENSE = RNG.normal(size=(COUNT, 3)).astype(np.float32)
SPARSE = (np.array([0, 0, 3, 7]), np.array([40, 10, 40, 30]), np.array([1.0, 2.0, -1.0, 0.5], np.float32))
IDS = np.array([40, 30, 10])


def matrix() -> np.ndarray:
    """All features side by side: dense ones, then those of IDS."""
    wide = np.zeros((COUNT, len(IDS)))
    wide[SPARSE[0], [IDS.tolist().index(each) for each in SPARSE[1]]] = SPARSE[2]
    return np.concatenate([DENSE, wide], axis=1)


def labels_for(loss: str) -> np.ndarray:
    return RNG.integers(0, 5 if loss == "poisson_loss" else 2, COUNT).astype(np.float32)


def primal(loss: str, labels: np.ndarray, wx: np.ndarray) -> np.ndarray:
    margin = (2 * labels - 1) * wx
    return {
        "logistic_loss": np.logaddexp(0, -margin),
        "squared_loss": (wx - labels) ** 2 / 2,
        "hinge_loss": np.maximum(0, 1 - margin),
        "smooth_hinge_loss": np.where(margin > 0, np.maximum(0, 1 - margin) ** 2 / 2, 0.5 - margin),
        "poisson_loss": np.exp(wx) - wx * labels,
    }[loss]


def solve(loss: str, labels: np.ndarray, weights: np.ndarray, passes: int, **options: Any) -> tuple[Any, Any, Any]:
    """State, sparse weights and dense weights after so many passes from 0, before they are shrunk."""
    given = {"l1": 0.0, "l2": 1.0, "num_loss_partitions": 1, "num_inner_iterations": 1, "adaptive": False, **options}
    with tf.Graph().as_default(), tf.Session() as session:
        state, sparse, dense = (tf.placeholder(tf.float32, shape) for shape in ([COUNT, 4], [3, 1], [3]))
        step = tf.raw_ops.SdcaOptimizerV2(
            sparse_example_indices=[SPARSE[0]], sparse_feature_indices=[SPARSE[1]], sparse_feature_values=[SPARSE[2]],
            dense_features=[DENSE], example_weights=weights, example_labels=labels, sparse_indices=[IDS],
            sparse_weights=[sparse], dense_weights=[dense], example_state_data=state, loss_type=loss, **given,
        )  # fmt: skip
        assert [each.shape.as_list() for each in (step[0], *step[1], *step[2])] == [[None, 4], [3, 1], [3]]
        values = [np.zeros((COUNT, 4)), np.zeros((3, 1)), np.zeros(3)]
        for _ in range(passes):
            new, (more_sparse,), (more_dense,) = session.run(
                list(step), dict(zip((state, sparse, dense), values, strict=True))
            )
            values = [new, values[1] + more_sparse, values[2] + more_dense]
        return tuple(values)  # type: ignore[return-value]


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_weights_become_the_best_ones(loss: str, adaptive: bool) -> None:
    labels, weights = labels_for(loss), RNG.uniform(0.5, 2, COUNT).astype(np.float32)

    state, sparse, dense = solve(loss, labels, weights, 60, adaptive=adaptive)

    def objective(model: np.ndarray) -> float:
        return float(weights @ primal(loss, labels, matrix() @ model) + model @ model / 2)

    model = np.concatenate([dense, sparse[:, 0]])
    # nothing nearby is better, and the dual says how much better the best can be at most
    assert objective(model) <= min(objective(model + step) for step in RNG.normal(scale=0.05, size=(50, 6))) + 1e-4
    gap = state[:, 1].sum() + state[:, 2].sum() + model @ model
    assert -1e-3 < gap / weights.sum() < 2e-3
    np.testing.assert_array_equal(state[:, 3], weights)


def test_l1_leaves_weights_out() -> None:
    labels, weights = labels_for("squared_loss"), np.ones(COUNT, np.float32)

    _, sparse, dense = solve("squared_loss", labels, weights, 80, l1=2.0, adaptive=False)

    model = np.concatenate([dense, sparse[:, 0]])
    shrunk = np.sign(model) * np.maximum(np.abs(model) - 2.0, 0)
    slopes = matrix().T @ (matrix() @ shrunk - labels) + shrunk
    np.testing.assert_allclose(slopes[shrunk != 0], -2.0 * np.sign(shrunk[shrunk != 0]), atol=2e-2)
    assert (np.abs(slopes[shrunk == 0]) <= 2.0 + 2e-2).all()


def test_a_step_is_tensorflows() -> None:
    """One example at a time: what TensorFlow 1.15 gives for these."""
    found = {}
    for loss in LOSSES:
        with tf.Graph().as_default(), tf.Session() as session:
            step = tf.raw_ops.SdcaOptimizer(
                sparse_example_indices=[[0]], sparse_feature_indices=[[5]], sparse_feature_values=[], dense_features=[
                    [[2.0, -1.0]]], example_weights=[1.5], example_labels=[1.0], sparse_indices=[[5]],
                sparse_weights=[[0.25]], dense_weights=[[0.5, -0.125]], example_state_data=[[0.25, 0.0, 0.0, 0.0]],
                loss_type=loss, l1=0.25, l2=2.0, num_loss_partitions=2, num_inner_iterations=1,
            )  # fmt: skip
            state, (sparse,), (dense,) = session.run(list(step))
        found[loss] = [*state[0], *sparse, *dense]
    for loss, values in STEPS.items():
        np.testing.assert_allclose(found[loss], values, rtol=2e-6, err_msg=loss)


#: Loss → state of the example, change of the sparse weight, changes of the dense weights.
STEPS = {
    "logistic_loss": [0.26571769, 0.52266687, -0.8435027, 1.5, 0.011788264, 0.023576528, -0.011788264],
    "squared_loss": [0.2375, 0.01171875, -0.328125, 1.5, -0.0093750004, -0.018750001, 0.0093750004],
    "hinge_loss": [0.2638889, 0.1875, -0.375, 1.5, 0.010416667, 0.020833334, -0.010416667],
    "smooth_hinge_loss": [0.2375, 0.01171875, -0.328125, 1.5, -0.0093750004, -0.018750001, 0.0093750004],
    "poisson_loss": [0.13647427, 2.2858129, -1.4486424, 1.5, -0.085144296, -0.17028859, 0.085144296],
}


def test_fingerprints_are_tensorflows() -> None:
    texts = [b"", b"abc", b"a text of more than sixteen bytes", b"z" * 127, bytes(range(256)) * 2]
    with tf.Graph().as_default(), tf.Session() as session:
        found = tf.train.sdca_fprint(texts)
        assert found.shape.as_list() == [5, 2]
        assert session.run(found).tolist() == PRINTS


#: Of the texts above, as TensorFlow 1.15 gives them.
PRINTS = [
    [4463240938071824939, 4374473821787594281],
    [4143508125394299908, -6879828354153669051],
    [-4072637605239434539, 4650481473802341718],
    [-5796602132818348091, 9018391249309121099],
    [-7591871876111916782, 8522793670436570599],
]


def test_weights_are_shrunk_where_they_are() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        weights = [tf.Variable([1.0, -0.125, -2.0]), tf.Variable([[0.25]])]
        shrink = tf.train.sdca_shrink_l1(weights, l1=0.5, l2=2.0)
        session.run(tf.global_variables_initializer())
        session.run(shrink)
        assert session.run(weights[0]).tolist() == [0.75, 0.0, -1.75]
        assert session.run(weights[1]).tolist() == [[0.0]]


GOOD: dict[str, Any] = {
    "sparse_example_indices": [[0, 1]], "sparse_feature_indices": [[5, 5]], "sparse_feature_values": [[1.0, 1.0]],
    "dense_features": [[[1.0], [2.0]]], "example_weights": [1.0, 1.0], "example_labels": [0.0, 1.0],
    "sparse_indices": [[5]], "sparse_weights": [[0.0]], "dense_weights": [[0.0]],
    "example_state_data": [[0.0] * 4] * 2, "loss_type": "hinge_loss", "l1": 0.0, "l2": 1.0, "num_loss_partitions": 1,
    "num_inner_iterations": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"example_labels": [0.0, 2.0]}, "Only labels of 0.0 or 1.0 are supported right now.*label: 2"),
        ({"example_labels": [0.0, -1.0], "loss_type": "poisson_loss"}, "Only non-negative labels.*label: -1"),
        ({"sparse_feature_indices": [[5, 6]]}, "Found sparse feature indices out of valid range: 6"),
        ({"sparse_example_indices": [[1, 1]]}, "Duplicate index in sparse vector."),
        ({"sparse_example_indices": [[0, 2]]}, "example index out of range"),
        ({"sparse_feature_values": [[1.0]]}, "as many examples as features and values, got 2, 2 and 1"),
        ({"sparse_weights": [[0.0, 1.0]]}, "a weight for each of 1 sparse indices, got 2"),
        ({"dense_features": [[[1.0, 1.0], [2.0, 1.0]]]}, "More dense features than we have parameters for: 2"),
        ({"dense_features": [[[1.0]]]}, r"dense features of shape \[2,\?\], got \[1,1\]"),
        ({"example_state_data": [[0.0] * 4]}, r"Expected shape \[2,4\] for example_state_data, got \[1,4\]"),
        ({"example_labels": [1.0]}, r"Expected shape \[2\] for example_labels, got \[1\]"),
    ],
)
def test_what_does_not_fit_is_refused(wrong: dict[str, Any], message: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.raw_ops.SdcaOptimizerV2(**{**GOOD, **wrong})
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            session.run(list(step[2]))


def test_nothing_to_train_is_refused() -> None:
    empty = {key: [] for key, value in GOOD.items() if key.startswith(("sparse", "dense"))}
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.raw_ops.SdcaOptimizerV2(**{**GOOD, **empty})
        with pytest.raises(tf.errors.InvalidArgumentError, match="Requires at least one feature to train"):
            session.run(step[0])
