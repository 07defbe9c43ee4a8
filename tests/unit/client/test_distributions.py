"""tf.distributions and tf.contrib.distributions: densities, statistics and samples that belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ds = tf.contrib.distributions
GRID = np.linspace(-30, 30, 60001)


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def ran(fetches: Any) -> Any:
    with tf.Session() as sess:
        return sess.run(fetches)


def integral(values: np.ndarray, x: np.ndarray) -> float:
    return float(((values[1:] + values[:-1]) / 2 * np.diff(x)).sum())


#: Of float64 on the line: the density, mean, variance, entropy and cumulative function are of each other.
CONTINUOUS: dict[str, Callable[[], Any]] = {
    "Normal": lambda: ds.Normal(np.float64(0.5), np.float64(1.5)),
    "Laplace": lambda: ds.Laplace(np.float64(-0.5), np.float64(0.8)),
    "Logistic": lambda: ds.Logistic(np.float64(0.5), np.float64(0.7)),
    "StudentT": lambda: ds.StudentT(np.float64(9.0), np.float64(0.5), np.float64(1.2)),
    "Uniform": lambda: ds.Uniform(np.float64(-1.0), np.float64(2.5)),
    "Gamma": lambda: ds.Gamma(np.float64(2.5), np.float64(1.5)),
    "Exponential": lambda: ds.Exponential(np.float64(1.5)),
    "MixtureSameFamily": lambda: ds.MixtureSameFamily(
        ds.Categorical(probs=np.array([0.3, 0.7])), ds.Normal(np.array([-1.0, 2.0]), np.array([0.5, 1.0]))
    ),
    "Mixture": lambda: ds.Mixture(
        ds.Categorical(probs=np.array([0.3, 0.7])),
        [ds.Normal(np.float64(-1.0), np.float64(0.5)), ds.Laplace(np.float64(1.0), np.float64(0.6))],
    ),
    "TransformedDistribution": lambda: ds.TransformedDistribution(
        ds.Normal(np.float64(0.0), np.float64(1.0)),
        ds.bijectors.Chain([ds.bijectors.AffineScalar(np.float64(1.0), np.float64(-2.0)), ds.bijectors.Softplus()]),
    ),
}


def some_now(names: Any, *now: str) -> list[Any]:
    """The named ones each time, the others with `make test-thorough`."""
    return [name if name in now else pytest.param(name, marks=pytest.mark.thorough) for name in names]


@pytest.mark.parametrize("name", some_now(CONTINUOUS, "Normal", "Gamma", "Mixture", "TransformedDistribution"))
def test_a_density_has_its_statistics(name: str) -> None:
    distribution = CONTINUOUS[name]()
    x = GRID[GRID > 1e-9] if name in ("Gamma", "Exponential") else GRID
    x = x[x < 0.999] if name == "TransformedDistribution" else x
    inside = [float(x[len(x) // 3]), 0.3, 0.9]
    statistics = {}
    for what in ("mean", "variance", "entropy"):
        try:
            statistics[what] = getattr(distribution, what)()
        except NotImplementedError:
            continue
    density, found, cumulative = ran([distribution.prob(x), statistics, distribution.cdf(np.array(inside))])

    density = np.nan_to_num(density)
    np.testing.assert_allclose(integral(density, x), 1, atol=2e-3)
    mean = integral(density * x, x)
    expected = {
        "mean": mean,
        "variance": integral(density * (x - mean) ** 2, x),
        "entropy": -integral(density * np.log(np.where(density > 0, density, 1)), x),
    }
    for what, value in found.items():
        np.testing.assert_allclose(value, expected[what], atol=5e-3, err_msg=what)
    for at, value in zip(inside, cumulative, strict=True):
        if name != "TransformedDistribution":  # it falls, so that its cumulative function is that of x turned round
            np.testing.assert_allclose(value, integral(density[x <= at], x[x <= at]), atol=5e-3)


#: Over 0, 1, 2, …
DISCRETE: dict[str, Callable[[], Any]] = {
    "Bernoulli": lambda: ds.Bernoulli(probs=np.float64(0.3)),
    "Categorical": lambda: ds.Categorical(probs=np.array([0.2, 0.5, 0.3])),
    "Poisson": lambda: ds.Poisson(np.float64(2.5)),
    "Geometric": lambda: ds.Geometric(probs=np.float64(0.4)),
    "Binomial": lambda: ds.Binomial(np.float64(4.0), probs=np.float64(0.3)),
}


@pytest.mark.parametrize("name", some_now(DISCRETE, "Categorical", "Poisson"))
def test_a_mass_has_its_statistics(name: str) -> None:
    distribution = DISCRETE[name]()
    count = {"Bernoulli": 2, "Categorical": 3, "Binomial": 5}.get(name, 60)
    values = np.arange(count)
    x = values.astype(np.float64 if distribution.dtype.is_floating else np.int32)
    wanted = {"mode": distribution.mode(), "mass": distribution.prob(x)}
    if name != "Categorical":
        wanted |= {"mean": distribution.mean(), "variance": distribution.variance()}
    found = ran(wanted)

    mass = found["mass"]
    np.testing.assert_allclose(mass.sum(), 1, rtol=1e-6)
    if name != "Categorical":
        mean = (mass * values).sum()
        np.testing.assert_allclose(found["mean"], mean, rtol=1e-6)
        np.testing.assert_allclose(found["variance"], (mass * (values - mean) ** 2).sum(), rtol=1e-6)
    assert found["mode"] == mass.argmax()


#: Samples have the mean and the spread that the distribution says; some are differentiable.
SAMPLED: dict[str, Callable[[], Any]] = {
    "Normal": lambda: ds.Normal([1.0, 2.0], 0.5),
    "Laplace": lambda: ds.Laplace([1.0, 2.0], 0.5),
    "Logistic": lambda: ds.Logistic(1.0, [0.5, 0.6]),
    "Uniform": lambda: ds.Uniform([0.0, 1.0], 3.0),
    "Exponential": lambda: ds.Exponential([1.0, 2.0]),
    "Gamma": lambda: ds.Gamma([2.0, 3.0], 1.5),
    "Beta": lambda: ds.Beta([2.0, 3.0], 1.5),
    "Bernoulli": lambda: ds.Bernoulli(probs=[0.2, 0.7], dtype=tf.float32),
    "OneHotCategorical": lambda: ds.OneHotCategorical(probs=[0.2, 0.3, 0.5], dtype=tf.float32),
    "Poisson": lambda: ds.Poisson([1.0, 4.0]),
    "Geometric": lambda: ds.Geometric(probs=[0.4, 0.6]),
    "Multinomial": lambda: ds.Multinomial(4.0, probs=[0.2, 0.3, 0.5]),
    "DirichletMultinomial": lambda: ds.DirichletMultinomial(4.0, [1.0, 2.0, 3.0]),
    "Dirichlet": lambda: ds.Dirichlet([1.0, 2.0, 3.0]),
    "MultivariateNormalDiag": lambda: ds.MultivariateNormalDiag([1.0, 2.0], [0.5, 2.0]),
    "MultivariateNormalTriL": lambda: ds.MultivariateNormalTriL([1.0, 2.0], [[1.0, 0.0], [0.5, 2.0]]),
    "MultivariateNormalFullCovariance": lambda: ds.MultivariateNormalFullCovariance(
        [1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]]
    ),
    "MultivariateNormalDiagPlusLowRank": lambda: ds.MultivariateNormalDiagPlusLowRank(
        [1.0, 2.0], [1.0, 0.5], scale_perturb_factor=[[0.5], [0.3]]
    ),
    "Independent": lambda: ds.Independent(ds.Normal([[1.0, 2.0]], 0.5)),
    "Mixture": lambda: ds.Mixture(ds.Categorical(probs=[[0.3, 0.7]]), [ds.Normal([0.0], 1.0), ds.Normal([3.0], 0.5)]),
    "MixtureSameFamily": lambda: ds.MixtureSameFamily(
        ds.Categorical(probs=[0.3, 0.7]), ds.MultivariateNormalDiag([[0.0, 1.0], [2.0, 2.0]], [0.5, 0.5])
    ),
}


@pytest.mark.parametrize(
    "name", some_now(SAMPLED, "Normal", "Gamma", "Dirichlet", "MultivariateNormalTriL", "MixtureSameFamily")
)
def test_samples_have_the_mean_and_the_spread(name: str) -> None:
    distribution = SAMPLED[name]()
    samples = distribution.sample([40, 50], seed=7)
    assert samples.shape.as_list() == [40, 50, *distribution.batch_shape.as_list(), *distribution.event_shape.as_list()]
    assert distribution.log_prob(samples[0]).shape.as_list() == [50, *distribution.batch_shape.as_list()]
    drawn, mean, spread = ran([samples, distribution.mean(), distribution.stddev()])

    drawn = drawn.reshape(2000, *drawn.shape[2:])
    np.testing.assert_allclose(drawn.mean(0), mean, atol=5 * np.max(spread) / np.sqrt(2000))
    np.testing.assert_allclose(drawn.std(0), spread, rtol=0.15)


def test_normals_of_vectors_by_hand() -> None:
    covariance = np.array([[2.0, 0.5], [0.5, 1.0]])
    x = np.array([[0.0, 1.0], [3.0, -1.0]])
    loc = np.array([1.0, 2.0])
    full = ds.MultivariateNormalFullCovariance(loc, covariance)
    low_rank = ds.MultivariateNormalDiagPlusLowRank(loc, np.ones(2), scale_perturb_factor=np.array([[0.5], [0.2]]))
    diagonal = ds.MultivariateNormalDiag(loc, np.array([0.5, 2.0]))

    def density(mean: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        away = x - mean
        quadratic = np.einsum("bi,ij,bj->b", away, np.linalg.inv(matrix), away)
        return np.asarray(-0.5 * (quadratic + np.log(np.linalg.det(matrix)) + 2 * np.log(2 * np.pi)))

    found = ran(
        [
            *(each.log_prob(x) for each in (full, low_rank, diagonal)),
            *(each.covariance() for each in (full, low_rank, diagonal)),
            ds.kl_divergence(full, diagonal),
            full.entropy(),
        ]
    )
    for log_prob, matrix in zip(found[:3], found[3:6], strict=True):
        np.testing.assert_allclose(log_prob, density(loc, matrix), rtol=1e-6)
    np.testing.assert_allclose(found[3], covariance, rtol=1e-6)
    other = np.diag([0.25, 4.0])
    expected = 0.5 * (np.trace(np.linalg.inv(other) @ covariance) - 2 + np.log(np.linalg.det(other) / 1.75))
    np.testing.assert_allclose(found[6], expected, rtol=1e-6)
    np.testing.assert_allclose(found[7], 0.5 * np.log((2 * np.pi * np.e) ** 2 * 1.75), rtol=1e-6)


@pytest.mark.parametrize(
    "name", some_now(["Normal", "Gamma", "Beta", "Bernoulli", "Categorical"], "Normal", "Categorical")
)
def test_divergences_are_expectations(name: str) -> None:
    pairs = {
        "Normal": ((0.5, 1.5), (0.0, 1.0)),
        "Gamma": ((2.5, 1.5), (3.0, 1.0)),
        "Beta": ((2.5, 1.5), (3.0, 2.0)),
    }
    kind = getattr(ds, name)
    if name in pairs:
        a, b = (kind(*map(np.float64, each)) for each in pairs[name])
        x = {"Normal": GRID, "Gamma": GRID[GRID > 1e-9], "Beta": np.linspace(1e-6, 1 - 1e-6, 60001)}[name]
        weights = np.gradient(x)
    else:
        values = (0.3, 0.6) if name == "Bernoulli" else ([0.2, 0.3, 0.5], [0.4, 0.4, 0.2])
        a, b = (kind(probs=np.array(each)) for each in values)
        x = np.arange(2 if name == "Bernoulli" else 3)
        weights = np.ones(len(x))
    divergence, of_a, of_b = ran([tf.distributions.kl_divergence(a, b), a.log_prob(x), b.log_prob(x)])

    np.testing.assert_allclose(divergence, (weights * np.exp(of_a) * (of_a - of_b)).sum(), rtol=1e-3)


def test_gradients_flow_through_samples_that_say_so() -> None:
    loc, temperature = tf.constant(1.0), tf.constant(0.5)
    normal = ds.Normal(loc, 2.0)
    relaxed = ds.RelaxedOneHotCategorical(temperature, logits=[1.0, 2.0, 3.0])
    relaxed_bit = ds.RelaxedBernoulli(temperature, probs=[0.3, 0.6])
    one = relaxed.sample(seed=1)
    slope, of_relaxed, none, total, score, bits = ran(
        [
            tf.gradients(normal.sample(seed=1), loc)[0],
            tf.gradients(one[0], temperature)[0],
            tf.constant(tf.gradients(ds.Bernoulli(probs=loc / 2, dtype=tf.float32).sample(), loc)[0] is None),
            tf.reduce_sum(one),
            relaxed.log_prob(one),
            relaxed_bit.sample(5, seed=2),
        ]
    )

    assert slope == 1.0
    assert none
    assert of_relaxed != 0
    assert np.isfinite(score)
    np.testing.assert_allclose(total, 1, rtol=1e-6)
    assert ((bits > 0) & (bits < 1)).all()


def test_bijectors_are_inverse_and_know_their_jacobians() -> None:
    b = ds.bijectors
    x = np.array([[0.3, -0.7], [1.5, 0.2]])
    tril = np.array([[1.0, 0.0], [0.5, 2.0]])
    bijectors = [
        b.Identity(),
        b.Exp(),
        b.Sigmoid(),
        b.Softplus(hinge_softness=np.float64(0.7)),
        b.AffineScalar(np.float64(1.0), np.float64(3.0)),
        b.Affine(np.array([1.0, 2.0]), scale_tril=tril, scale_identity_multiplier=np.float64(0.5)),
        b.Affine(np.array([1.0, 2.0]), scale_diag=np.array([2.0, 3.0])),
        b.Invert(b.Affine(scale_identity_multiplier=np.float64(2.0))),
        b.Chain([b.Exp(), b.Affine(scale_tril=tril)]),
        b.Inline(
            tf.sinh, tf.asinh, forward_log_det_jacobian_fn=lambda v: tf.log(tf.cosh(v)), forward_min_event_ndims=0
        ),
    ]
    for each in bijectors:
        step = 1e-6
        given = tf.constant(x)
        y = each.forward(given)
        slopes = [(each.forward(x + step * unit) - each.forward(x - step * unit)) / (2 * step) for unit in np.eye(2)]
        fetches = [each.inverse(tf.identity(y)), each.forward_log_det_jacobian(given, 1), y, slopes]
        back, jacobian, values, columns = ran([*fetches])
        backwards = ran(each.inverse_log_det_jacobian(tf.constant(values), 1))
        np.testing.assert_allclose(back, x, atol=1e-9)
        expected = np.log(np.abs(np.linalg.det(np.stack(columns, -1))))
        np.testing.assert_allclose(np.broadcast_to(jacobian, 2), expected, atol=1e-6, err_msg=each.name)
        np.testing.assert_allclose(np.broadcast_to(backwards, 2), -expected, atol=1e-6, err_msg=each.name)


def test_a_scalar_becomes_a_vector_by_a_bijector() -> None:
    distribution = ds.TransformedDistribution(
        ds.Normal(np.float64(0.0), np.float64(1.0)),
        ds.bijectors.Affine(np.array([1.0, 2.0]), scale_tril=np.array([[1.0, 0.0], [0.5, 2.0]])),
        event_shape=[2],
    )
    same = ds.MultivariateNormalTriL(np.array([1.0, 2.0]), np.array([[1.0, 0.0], [0.5, 2.0]]))
    x = np.array([[0.3, -0.7], [1.5, 0.2]])
    sample = distribution.sample(3, seed=1)

    found, expected, entropies, of_sample = ran(
        [distribution.log_prob(x), same.log_prob(x), [distribution.entropy(), same.entropy()], same.log_prob(sample)]
    )
    assert sample.shape.as_list() == [3, 2]
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(*entropies)
    assert np.isfinite(of_sample).all()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ds.Bernoulli(), ValueError, "Must pass probs or logits, but not both"),
        (lambda: ds.Normal(0.0, np.float64(1.0)), (TypeError, ValueError), "float64|float32"),
        (lambda: ds.Poisson(), ValueError, "exactly one of `rate` and `log_rate`"),
        (lambda: ds.Categorical(logits=[1.0], validate_args=True), ValueError, "at least 2 events"),
        (lambda: ds.MultivariateNormalDiag(), ValueError, "at least one of loc and scale_diag"),
        (lambda: ds.Mixture(None, []), TypeError, "cat must be a Categorical"),
        (lambda: ds.kl_divergence(ds.Normal(0.0, 1.0), ds.Beta(1.0, 1.0)), NotImplementedError, "No KL"),
        (lambda: ds.Poisson(1.0).entropy(), NotImplementedError, "entropy is not implemented: Poisson"),
        (lambda: ds.WishartFull, AttributeError, "no public program was found"),
        (lambda: ds.bijectors.Exp().forward_log_det_jacobian(1.0, event_ndims=-1), ValueError, "event_ndims"),
    ],
)
def test_what_is_refused(make: Callable[[], Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_a_value_out_of_range_fails_the_step() -> None:
    checked = ds.Normal(0.0, tf.placeholder_with_default(-1.0, []), validate_args=True)
    with pytest.raises(tf.errors.InvalidArgumentError):
        ran(checked.mean())
    copy = ds.Normal(1.0, 2.0).copy(scale=3.0)
    assert ran([copy.loc, copy.scale]) == [1.0, 3.0]
    assert str(copy).startswith('tfp.distributions.Normal("Normal_2/", batch_shape=(), event_shape=()')
