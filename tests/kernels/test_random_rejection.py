"""Distributions by rejection: TensorFlow's numbers for the same seeds, the ends of every range, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels.cpu import random_rejection
from tenfold_kernels.philox import Philox

SEEDS = {"seed": 3, "seed2": 4}
#: Logarithms and roots are not rounded alike everywhere.
TOLERANCE = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-8}

# What TensorFlow 2.21 gives for SEEDS, as `summary` has it: of the first call and, behind it, of the second.
GAMMA = [
    ("float16", [0.004524230957, 22.5, 15462.39403, 0.1591796875, 19.703125, 15216.97838]),
    ("float32", [0.004520017188, 22.49637604, 15462.33776, 0.1590846181, 19.70328903, 15217.00454]),
    ("float64", [0.004520016264, 22.49637523, 15462.33772, 0.1590846033, 19.70328816, 15217.00455]),
]
GAMMA_OF_A_COLUMN = [0.03009897843, 1.438624859, 20.11307709, 1.59194541, 1.582871795, 17.88651601]
POISSON = [0, 991, 489406.859, 0, 965, 488653.8809]
POISSON_OF_LARGE_RATES = [65472, 65312, 29366616.29, 65344, 65280, 29366250.17]
#: Shape, means, deviations, limits → what comes, by type.
NORMALS: list[tuple[Any, Any, Any, Any, Any, dict[str, list[float]]]] = [
    ((3, 50), [0.0, 1.0, 2.0], [1.0, 2.0, 0.5], [-2.0, 0.9, 4.0], [2.0, 1.1, 9.0], {
        "float16": [0.2895507812, 4.265625, 451.134732, 0.91796875, 4.21875, 458.1955669],
        "float32": [0.2896220684, 4.069433212, 450.9394719, 0.9180470109, 4.01265192, 457.7103352],
        "float64": [-0.7030205924, 4.011922163, 443.1289088, 0.869488991, 4.204016238, 457.0250076],
    }),
    ((230,), 0.0, 1.0, -3.0, 3.0, {
        "float16": [0.2895507812, 1.750976562, 15.56485727, 0.3220214844, -1.120117188, 5.578644832],
        "float32": [0.2896220684, 1.751139998, 15.57179555, 0.3220593333, -1.53717041, -7.017244551],
        "float64": [-0.7030205924, -1.117275163, -26.88245812, -0.2322457027, -1.098589687, -0.590014048],
    }),
    ((200,), 0.0, 2.0, -1.0, 3.0, {
        "float16": [0.5791015625, 1.907226562, 220.6756393, 0.3176269531, 1.329101562, 194.5246409],
        "float32": [0.5792441368, 1.907593012, 220.6765337, 0.3175615966, 1.32866478, 194.5282011],
        "float64": [2.005318245, 0.7557295764, 242.3120225, 1.395375779, 0.4703362141, 199.2638439],
    }),
    ((2, 40), [0.0, 5.0], [1.0, 1.0], [3.0, -np.inf], [np.inf, 2.0], {
        "float16": [3.41796875, 1.8203125, 288.9569076, 3.02734375, 1.525390625, 282.232051],
        "float32": [3.024018764, 1.698901653, 287.3131262, 3.240415573, 1.978706837, 286.6321224],
        "float64": [3.285178384, 1.718571953, 284.448772, 3.146635646, 1.739444731, 281.2809035],
    }),
    ((4, 4), 0.0, 1.0, 0.1, 0.2, {
        "float16": [0.125, 0.1617431641, 3.537679036, 0.1846923828, 0.1589355469, 3.857637533],
        "float32": [0.1923736632, 0.1005690694, 3.611446817, 0.1696270406, 0.1898265481, 3.737213463],
        "float64": [0.138989406, 0.1672929171, 3.700118922, 0.1570163773, 0.1451106333, 3.677087858],
    }),
    ((60,), 0.0, 1.0, -1.0, 1.0, {
        "float16": [-0.498046875, 0.33203125, -2.491393008, 0.6953125, 0.48046875, 9.95103946],
        "float32": [0.8474733829, -0.8033399582, 3.551860817, 0.3925409317, 0.8014726639, 4.213811854],
        "float64": [-0.2202118808, -0.3287985347, -8.186883591, 0.1403275456, 0.5302583032, 8.460083603],
    }),
    ((60,), 1.0, 2.0, -np.inf, 0.5, {
        "float16": [-1.94140625, -0.25390625, -87.65898934, -3.75390625, -3.0390625, -71.0581965],
        "float32": [0.3599408865, -1.46914649, -77.48055762, -0.1391644478, -3.320469379, -81.23605685],
        "float64": [-1.162950218, 0.2253273153, -84.78452752, -0.4919499609, -0.199047243, -80.17322816],
    }),
    ((60,), 1.0, 2.0, 2.0, np.inf, {
        "float16": [4.15625, 2.66796875, 297.2910818, 5.76171875, 2.12109375, 278.3987023],
        "float32": [2.123875141, 2.589638948, 285.4027142, 2.565308809, 3.501060009, 283.6201701],
        "float64": [3.470795705, 2.242934154, 294.7878773, 2.877329776, 2.226558341, 285.4200002],
    }),
    ((60,), 1.0, 2.0, 2.0, 12.0, {
        "float16": [4.15625, 2.66796875, 297.2910818, 5.76171875, 2.12109375, 278.3987023],
        "float32": [2.123875141, 2.589638948, 285.4027142, 2.565308809, 3.501060009, 283.6201701],
        "float64": [3.470795705, 2.242934154, 294.7878773, 2.877329776, 2.226558341, 285.4200002],
    }),
    ((60,), 1.0, 1.0, -2.0, -1.0, {
        "float16": [-1.572265625, -1.330078125, -121.0208223, -1.08984375, -1.1484375, -117.5522047],
        "float32": [-1.032858849, -1.222776651, -118.4191541, -1.149952412, -1.043303013, -114.3647698],
        "float64": [-1.390139561, -1.037384646, -119.4439795, -1.232718285, -1.215755661, -117.0872115],
    }),
    ((60,), 1.0, 1.0, -9.0, -1.0, {
        "float16": [-1.572265625, -1.482421875, -127.71971, -1.08984375, -1.1484375, -117.5522047],
        "float32": [-1.032858849, -1.298819542, -120.3565186, -1.149952412, -1.413626194, -119.9439048],
        "float64": [-1.390139561, -1.337818623, -122.7110604, -1.232718285, -1.188142545, -121.6373681],
    }),
    ((100,), 0.0, 1.0, -1.3, 2.0, {
        "float32": [0.2896220684, 0.5495110154, 12.5669872, -0.8054556847, -1.102468729, 5.96781032],
        "float64": [-0.7030205924, 1.722483619, 12.87816907, -0.2310200946, 0.5736071277, 9.533207965],
    }),
    ((100,), 0.0, 1.0, -0.5, 1.3, {
        "float32": [0.1667748094, 0.5522255898, 41.74950321, 0.7532868385, 1.248218536, 57.12966046],
        "float64": [0.2018093073, -0.0989007908, 41.85498568, 0.5262947911, 1.053850809, 49.63144971],
    }),
    ((100,), 0.0, 1.0, -2.0, 0.0, {
        "float32": [-0.2734510601, -0.7629916668, -111.3759602, -0.8054556847, -0.3775899708, -101.2375462],
        "float64": [-0.7030205924, -1.150270613, -126.8679743, -0.2310200946, -0.1227900767, -109.612238],
    }),
    ((100,), 0.0, 1.0, 0.0, 2.0, {
        "float32": [0.2896220684, 0.4904877841, 111.2750834, 0.7230215073, 0.2585729361, 108.8908558],
        "float64": [1.002659122, 0.921016765, 106.4376042, 1.28953725, 1.178863501, 110.6222243],
    }),
    ((100,), 0.0, 1.0, 1.0, 1.73, {
        "float32": [1.692184925, 1.265911818, 194.7550074, 1.508277416, 1.706468821, 201.4024489],
        "float64": [1.284622664, 1.263006071, 192.9142768, 1.416219554, 1.271430662, 193.7684186],
    }),
    ((100,), 0.0, 1.0, 1.0, 1.77, {
        "float32": [1.049027562, 1.084854007, 195.7608035, 1.223738909, 1.026626348, 200.0277253],
        "float64": [1.582113989, 1.060391823, 196.6963552, 1.347231049, 1.687780852, 198.8995344],
    }),
    ((100,), 0.0, 1.0, -1.0, -0.2, {
        "float32": [-0.9389893413, -0.6224934459, -83.97540072, -0.7570163608, -0.3695811331, -89.335119],
        "float64": [-0.5119152477, -0.6173576893, -82.26100735, -0.6561310182, -0.2782490724, -89.07362519],
    }),
    ((100,), 0.0, 1.0, 3.0, 3.28, {
        "float32": [3.265495539, 3.099957466, 467.3155321, 3.194955826, 3.179884195, 469.5566601],
        "float64": [3.109170337, 3.009511418, 466.9786999, 3.159645856, 3.237925392, 467.3284823],
    }),
    ((100,), 0.0, 1.0, 3.0, 3.31, {
        "float32": [3.293941498, 3.126184702, 469.2957927, 3.216302156, 3.023844719, 471.4761555],
        "float64": [3.120867158, 3.011747901, 467.9754181, 3.17675077, 3.197142519, 469.390957],
    }),
]  # fmt: skip


def summary(numbers: Any) -> list[float]:
    """The first number, the last one, and a sum in which each has a weight of its own."""
    flat = numbers.astype(np.float64).reshape(-1)
    return [flat[0], flat[-1], np.dot(flat, np.linspace(1, 2, flat.size))]


def calls(ops: Any, op: str, *values: Any, **attrs: Any) -> list[Any]:
    """Two calls of one node, as two steps make them."""
    compute, _ = ops.build(op, list(values), {**SEEDS, **attrs})
    with np.errstate(all="ignore"):
        return [compute(*values) for _ in range(2)]


def summaries(found: list[Any]) -> list[float]:
    return [figure for numbers in found for figure in summary(numbers)]


def dims(*sizes: int) -> Any:
    return np.array(sizes, np.int32)


def normals(ops: Any, shape: Any, *parameters: Any, dtype: str = "float64") -> list[Any]:
    """Means, deviations, lower and upper limits."""
    values = [np.array(parameter, dtype) for parameter in parameters]
    return calls(ops, "ParameterizedTruncatedNormal", dims(*shape), *values, dtype=dtypes.as_dtype(dtype))


# ---- gamma -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "expected"), GAMMA)
def test_gamma_numbers(ops: Any, dtype: str, expected: list[float]) -> None:
    found = calls(ops, "RandomGamma", dims(400), np.array([0.3, 1.0, 4.5, 20.0], dtype))

    assert [(numbers.shape, numbers.dtype) for numbers in found] == [((400, 4), dtype)] * 2
    np.testing.assert_allclose(summaries(found), expected, rtol=TOLERANCE[dtype])


def test_gamma_numbers_of_a_column(ops: Any) -> None:
    found = calls(ops, "RandomGamma", dims(2, 3), np.array([[0.5], [2.0]], np.float32))

    assert [numbers.shape for numbers in found] == [(2, 3, 2, 1)] * 2
    np.testing.assert_allclose(summaries(found), GAMMA_OF_A_COLUMN, rtol=1e-6)


def test_a_gamma_distribution_that_there_is_not_has_no_numbers(ops: Any) -> None:
    alphas = np.array([np.nan, -2 / 3, -1.0, 0.0, 2.0])
    for numbers in calls(ops, "RandomGamma", dims(5), alphas):
        assert np.isnan(numbers[:, :3]).all()
        assert (numbers[:, 3] == 0).all()
        assert (numbers[:, 4] > 0).all()


# ---- Poisson ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64"])
def test_poisson_numbers(ops: Any, dtype: str) -> None:
    rates = np.array([0.0, 0.7, 5.0, 9.9, 10.0, 60.0, 1000.0])
    found = calls(ops, "RandomPoissonV2", dims(300), rates, dtype=dtypes.as_dtype(dtype))

    assert [(numbers.shape, numbers.dtype) for numbers in found] == [((300, 7), dtype)] * 2
    assert summaries(found) == pytest.approx(POISSON, rel=1e-9)


def test_numbers_that_the_type_does_not_hold_are_drawn_again(ops: Any) -> None:
    found = calls(ops, "RandomPoissonV2", dims(300), np.array([65400.0]), dtype=dtypes.float16)
    assert summaries(found) == pytest.approx(POISSON_OF_LARGE_RATES, rel=1e-9)
    for numbers in calls(ops, "RandomPoissonV2", dims(300), np.array([65504.0]), dtype=dtypes.float16):
        assert np.isfinite(numbers).all()


@pytest.mark.parametrize(
    ("dtype", "infinite", "no_rate"), [("float16", np.inf, np.nan), ("float64", np.inf, np.nan), ("int32", 0, 0)]
)
def test_rates_that_are_no_numbers(ops: Any, dtype: str, infinite: float, no_rate: float) -> None:
    rates = np.array([[np.inf, np.nan], [2.0, 20.0]])
    for numbers in calls(ops, "RandomPoissonV2", dims(40), rates, dtype=dtypes.as_dtype(dtype)):
        np.testing.assert_array_equal(numbers[:, 0], np.full((40, 2), [infinite, no_rate], dtype))
        assert 1 < numbers[:, 1, 0].mean() < 3
        assert 18 < numbers[:, 1, 1].mean() < 22


@pytest.mark.parametrize(
    ("dtype", "rate", "text"), [("float16", 65536.0, "65536"), ("int32", 2147483648.0, "2.14748e+09")]
)
def test_a_rate_beyond_the_type_is_refused(ops: Any, dtype: str, rate: float, text: str) -> None:
    rates = np.array([np.inf, 3.0, rate])
    with pytest.raises(errors.InvalidArgumentError) as refused:
        calls(ops, "RandomPoissonV2", dims(2), rates, dtype=dtypes.as_dtype(dtype))
    assert refused.value.message == f"a rate of {text} gives samples that {dtype} does not hold"


# ---- sizes of both ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["RandomGamma", "RandomPoissonV2"])
def test_nothing_is_drawn_where_nothing_is_asked_for(ops: Any, op: str) -> None:
    attrs = {} if op == "RandomGamma" else {"dtype": dtypes.float32}
    for shape, parameters in ((dims(0, 2), [1.0, 20.0]), (dims(3), [])):
        compute, _ = ops.build(op, [shape, np.array(parameters, np.float32)], {**SEEDS, **attrs})
        found = compute(shape, np.array(parameters, np.float32))
        assert (found.shape, found.dtype) == ((*shape, len(parameters)), np.float32)
        one, values = dims(1), np.array([5.0], np.float32)
        again, _ = ops.build(op, [one, values], {**SEEDS, **attrs})
        assert compute(one, values).tolist() == again(one, values).tolist(), "nor is the stream moved"


def test_a_shape_is_a_vector(ops: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"^shape must be a vector of .*, got shape: \[1,1\]"):
        calls(ops, "RandomGamma", np.ones((1, 1), np.int32), np.array([1.0]))
    values = [np.array(value) for value in (0.0, 1.0, 0.0, 1.0)]
    with pytest.raises(errors.InvalidArgumentError, match=r"^Input shape should be a vector, got shape: \[1,1\]"):
        calls(ops, "ParameterizedTruncatedNormal", np.ones((1, 1), np.int32), *values, dtype=dtypes.float64)


@pytest.mark.parametrize(
    ("op", "parameters"),
    [("RandomGamma", [[1.0]]), ("RandomPoissonV2", [[1.0]]), ("ParameterizedTruncatedNormal", [0.0, 1.0, 0.0, 1.0])],
)
def test_what_would_take_too_much_memory_is_refused(ops: Any, op: str, parameters: Any) -> None:
    attrs = {} if op == "RandomGamma" else {"dtype": dtypes.float64}
    with pytest.raises(errors.ResourceExhaustedError):
        calls(ops, op, np.array([1 << 40], np.int64), *(np.array(value) for value in parameters), **attrs)


# ---- normals between limits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "means", "deviations", "lows", "highs", "dtype", "expected"),
    [(*case, dtype, expected) for *case, by_type in NORMALS for dtype, expected in by_type.items()],
)
def test_normal_numbers_between_limits(
    ops: Any, shape: Any, means: Any, deviations: Any, lows: Any, highs: Any, dtype: str, expected: list[float]
) -> None:
    found = normals(ops, shape, means, deviations, lows, highs, dtype=dtype)

    assert [(numbers.shape, numbers.dtype) for numbers in found] == [(shape, dtype)] * 2
    np.testing.assert_allclose(summaries(found), expected, rtol=TOLERANCE[dtype])


def test_parameters_may_be_vectors_of_one(ops: Any) -> None:
    scalars = normals(ops, (5, 3), 0.0, 1.0, -1.0, 2.0)
    vectors = normals(ops, (5, 3), [0.0], 1.0, [-1.0], [2.0])
    many = normals(ops, (5, 3), [0.0] * 5, 1.0, [-1.0], [2.0])

    assert [numbers.tolist() for numbers in scalars] == [numbers.tolist() for numbers in vectors]
    assert many[0][0].tolist() == scalars[0][0].tolist()
    assert many[0][1].tolist() != scalars[0][1].tolist(), "each batch has a stretch of its own"


def test_limits_themselves_are_among_the_numbers(ops: Any) -> None:
    """Only a type with few numbers meets them."""
    numbers = normals(ops, (20000,), 0.0, 1.0, -2.0, 1.0, dtype="float16")[0]
    assert {-2.0, 1.0} <= set(numbers.tolist())
    assert (numbers.min(), numbers.max()) == (-2.0, 1.0)


def test_far_from_the_mean_what_is_proposed_is_taken() -> None:
    """Where the type cannot tell the rate of the proposals from the limit."""
    blocks = Philox(3, 4 << 64).blocks(np.arange(5000, dtype=np.uint64))
    limits = np.float16(64), np.float16(70)
    with np.errstate(divide="ignore"):
        proposed, taken = random_rejection._candidates("exponential", blocks, np.float16, *limits)
    assert (proposed >= 64).all()
    assert taken.tolist() == (proposed < 70).tolist()


@pytest.mark.parametrize(
    ("mean", "deviation", "low", "high"),
    [
        (0.0, 0.0, -1.0, 1.0),
        (0.0, -1.0, -1.0, 1.0),
        (0.0, np.nan, -1.0, 1.0),
        (0.0, 1.0, 1.0, 1.0),
        (0.0, 1.0, 2.0, 1.0),
        (0.0, 1.0, np.nan, 1.0),
        (0.0, 1.0, -np.inf, np.inf),
    ],
)
def test_parameters_without_a_distribution(ops: Any, mean: float, deviation: float, low: float, high: float) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"^Invalid parameters$"):
        normals(ops, (2,), mean, deviation, low, high)


@pytest.mark.parametrize(
    ("shape", "parameters", "text"),
    [
        ((), [0.0, 1.0, 0.0, 1.0], r"^Shape tensor must not be empty, got \[\]"),
        ((1,), [[[0.0]], 1.0, 0.0, 1.0], "^Input means, stddevs, minvals and maxvals should be scalars or vectors"),
        ((1,), [0.0, 1.0, 0.0, [[1.0]]], "^Input means, stddevs, minvals and maxvals should be scalars or vectors"),
        (
            (3, 2),
            [0.0, [1.0, 1.0], 0.0, 1.0],
            r"^Parameters must have length 1 or shape\[0\], got lengths 2; shape\[0\] is 3",
        ),
    ],
)
def test_parameters_that_do_not_fit(ops: Any, shape: Any, parameters: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        normals(ops, shape, *parameters)


def test_no_normals_need_no_distribution(ops: Any) -> None:
    for numbers in normals(ops, (3, 0), [0.0, 1.0, 2.0], -1.0, 5.0, 1.0, dtype="float32"):
        assert (numbers.shape, numbers.dtype) == ((3, 0), np.float32)


def test_a_search_without_an_end_is_given_up(ops: Any) -> None:
    with pytest.raises(
        errors.InvalidArgumentError, match=r"failed to accept a sample: of a mean of nan and a dev.* 2 "
    ):
        normals(ops, (2,), np.nan, 2.0, -1.0, 1.0)


@pytest.mark.parametrize("before", [0, 1, 37])
@pytest.mark.parametrize("refused", [999, 1000])
def test_how_many_proposals_in_a_row_may_be_refused(before: int, refused: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they come in several pieces."""
    answers = iter([True] * before + [False] * refused + [True] * 1000)
    monkeypatch.setattr(
        random_rejection,
        "_candidates",
        lambda kind, blocks, *rest: (
            np.zeros(4 * len(blocks)),
            np.array([next(answers) for _ in range(4 * len(blocks))]),
        ),
    )
    stream, limits = random_rejection._Stream(Philox(1, 2)), (0.0, 1.0, -2.0, 2.0)
    if refused < 1000:
        assert random_rejection._cut_normals(stream, before + 1, np.float64, *limits).size == before + 1
    else:
        with pytest.raises(errors.InvalidArgumentError, match="failed to accept a sample"):
            random_rejection._cut_normals(stream, before + 1, np.float64, *limits)


def test_blocks_that_were_not_needed_go_back() -> None:
    position = Philox(3, 4 << 64)
    stream = random_rejection._Stream(position)
    taken = [stream.take(3), stream.take(2)]
    stream.back(4)
    blocks = position.blocks(np.arange(5, dtype=np.uint64))
    np.testing.assert_array_equal(np.concatenate(taken), blocks)
    np.testing.assert_array_equal(stream.take(4), blocks[1:])
