"""Random numbers without a state: the same for a seed as for the key and counter made of it, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels.cpu import random, random_stateless
from tenfold_kernels.philox import Philox

KEY, COUNTER = 0x123456789ABCDEF0, 5 | 9 << 64
POSITION = Philox(KEY, COUNTER)
KEYED = [np.uint64([KEY]), np.uint64([5, 9]), np.int32(1)]
SEED = np.int64([7, -3])
FIRST = {"StatelessRandomUniform": random.uniform, "StatelessRandomNormal": random.normal,
         "StatelessTruncatedNormal": random.truncated_normal}  # fmt: skip


def place_of(seed: Any, ops: Any) -> Philox:
    """The position that the op says a seed has."""
    key, counter = ops.run("StatelessRandomGetKeyCounter", [seed])
    return Philox(int(key[0]), int(counter[0]) | int(counter[1]) << 64)


def dims(*sizes: int) -> Any:
    return np.array(sizes, np.int32)


def test_a_seed_is_scrambled_by_a_fixed_key(ops: Any) -> None:
    """Its two words are the counter; of the block the first half is the key, the second one the counter's upper."""
    for seed in (SEED, np.int64([0, 0]), np.int32([-1, 5])):
        first, second = (int(part) % (1 << 64) for part in seed)
        a, b, c, d = Philox(0x02461E293EC8F720, first | second << 64).blocks(np.zeros(1, np.uint64))[0].tolist()
        key, counter = ops.run("StatelessRandomGetKeyCounter", [seed])
        assert (key.tolist(), counter.tolist()) == ([a | b << 32], [0, c | d << 32])
        found = ops.run("StatelessRandomGetKeyCounterAlg", [seed])
        assert [each.tolist() for each in found] == [key.tolist(), counter.tolist(), 1]
    assert ops.run("StatelessRandomGetAlg", []).tolist() == 1


@pytest.mark.parametrize("op", FIRST)
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.float32, dtypes.float64, dtypes.bfloat16])
def test_numbers_are_those_of_the_position(ops: Any, op: str, dtype: dtypes.DType) -> None:
    kind = dtype.as_numpy_dtype
    for shape in ((2, 3), (), (0, 4), (70,)):
        size = int(np.prod(shape))
        by_seed = ops.run(op, [dims(*shape), SEED], dtype=dtype)
        expected = FIRST[op](place_of(SEED, ops), size, kind)
        assert (by_seed.shape, by_seed.ravel().tolist()) == (shape, expected.tolist())
        by_key = ops.run(f"{op}V2", [dims(*shape), *KEYED], dtype=dtype)
        assert (by_key.shape, by_key.ravel().tolist()) == (shape, FIRST[op](POSITION, size, kind).tolist())


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64])
def test_whole_numbers(ops: Any, dtype: dtypes.DType) -> None:
    kind = dtype.as_numpy_dtype
    words = POSITION.blocks(np.arange(4, dtype=np.uint64)).reshape(-1)
    full = words.view(kind)[:6]
    found = ops.run("StatelessRandomUniformFullIntV2", [dims(2, 3), *KEYED], dtype=dtype)
    assert found.tolist() == full.reshape(2, 3).tolist()
    found = ops.run("StatelessRandomUniformFullInt", [dims(2, 3), SEED], dtype=dtype)
    assert found.tolist() == random.full_ints(place_of(SEED, ops), 6, kind).reshape(2, 3).tolist()
    if dtype not in (dtypes.int32, dtypes.int64):
        return
    unsigned = words.view(np.uint32 if kind is np.int32 else np.uint64)[:6].tolist()
    limits = [np.array(-5, kind), np.array(7, kind)]
    found = ops.run("StatelessRandomUniformIntV2", [dims(2, 3), *KEYED, *limits], dtype=dtype)
    assert found.ravel().tolist() == [word % 12 - 5 for word in unsigned]
    found = ops.run("StatelessRandomUniformInt", [dims(2, 3), SEED, *limits], dtype=dtype)
    assert found.tolist() == random.ints(place_of(SEED, ops), 6, kind, -5, 7).reshape(2, 3).tolist()


@pytest.mark.parametrize("op", ["StatelessRandomUniformInt", "StatelessRandomUniformIntV2"])
def test_limits_count_only_where_numbers_are_asked_for(ops: Any, op: str) -> None:
    begin = KEYED if op.endswith("V2") else [SEED]
    assert ops.run(op, [dims(0, 2), *begin, np.int32(5), np.int32(5)], dtype=dtypes.int32).shape == (0, 2)
    with pytest.raises(errors.InvalidArgumentError, match=r"^Need minval < maxval, got 5 >= 5$"):
        ops.run(op, [dims(1), *begin, np.int32(5), np.int32(5)], dtype=dtypes.int32)
    assert ops.run(op, [dims(3), *begin, np.int32(5), np.int32(6)], dtype=dtypes.int32).tolist() == [5, 5, 5]
    for limits, name in (([np.int32([5]), np.int32(6)], "minval"), ([np.int32(5), np.int32([6])], "maxval")):
        with pytest.raises(errors.InvalidArgumentError, match=rf"^{name} must be 0-D, got shape \[1\]$"):
            ops.run(op, [dims(1), *begin, *limits], dtype=dtypes.int32)


def test_classes_and_rows_in_another_order(ops: Any) -> None:
    logits = np.float32([[0.1, 2, -1], [3, 0, 0]])
    found = ops.run("StatelessMultinomial", [logits, np.int32(6), SEED], output_dtype=dtypes.int32)
    expected = random.multinomial(logits, np.array(6), np.int32, lambda outputs: place_of(SEED, ops))
    assert (found.dtype, found.tolist()) == (np.int32, expected.tolist())
    rows = np.arange(20).reshape(10, 2)
    assert ops.run("StatelessShuffle", [rows, *KEYED]).tolist() == random.shuffled(rows, lambda n: POSITION).tolist()


@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 4, 3)])
def test_samples_of_each_parameter(ops: Any, shape: tuple[int, ...]) -> None:
    """Of the last dimensions; each parameter's samples are a run of the stream."""
    values = np.array([0.5, 2.0, 9.0])
    count = int(np.prod(shape)) // 3
    for dtype in (np.float32, np.float64):
        alpha = values.astype(dtype)
        by_seed = ops.run("StatelessRandomGammaV2", [dims(*shape), SEED, alpha])
        expected = random_stateless.gamma(place_of(SEED, ops), count, alpha).reshape(shape)
        assert (by_seed.dtype, by_seed.tolist()) == (dtype, expected.tolist())
        by_key = ops.run("StatelessRandomGammaV3", [dims(*shape), *KEYED, alpha])
        assert by_key.tolist() == random_stateless.gamma(POSITION, count, alpha).reshape(shape).tolist()
    for kind in (dtypes.int64, dtypes.float32):
        found = ops.run("StatelessRandomPoisson", [dims(*shape), SEED, values], dtype=kind)
        expected = random_stateless.poisson(place_of(SEED, ops), count, values, kind.as_numpy_dtype).reshape(shape)
        assert (found.dtype, found.tolist()) == (kind.as_numpy_dtype, expected.tolist())


@pytest.mark.parametrize(
    ("op", "begin", "attrs"),
    [
        ("StatelessRandomGammaV2", [SEED], {}),
        ("StatelessRandomGammaV3", KEYED, {}),
        ("StatelessRandomPoisson", [SEED], {"dtype": dtypes.float32}),
    ],
)
def test_a_shape_ends_with_that_of_the_parameters(ops: Any, op: str, begin: list[Any], attrs: Any) -> None:
    for shape, parameters in (((2,), (3,)), ((3, 2), (3,)), ((3,), (2, 3)), ((), (1,)), ((3,), (1,)), ((2,), (2, 2))):
        with pytest.raises(errors.InvalidArgumentError, match=r"^Shape passed in must end with broadcasted shape\.$"):
            ops.run(op, [dims(*shape), *begin, np.ones(parameters, np.float32)], **attrs)
    for shape, parameters in (((0,), (0,)), ((2, 0), (0,)), ((0, 2), (2,)), ((5,), ()), ((), ())):
        found = ops.run(op, [dims(*shape), *begin, np.ones(parameters, np.float32)], **attrs)
        assert found.shape == shape


@pytest.mark.parametrize("seed", [np.int64(5), np.int64([1]), np.int64([1, 2, 3]), np.int64([[1, 2]])])
def test_a_seed_is_two_numbers(ops: Any, seed: Any) -> None:
    text = rf"^seed must have shape \[2\], not \[{','.join(map(str, seed.shape))}\]$"
    for op, inputs in (("StatelessRandomUniform", [dims(2), seed]), ("StatelessRandomGetKeyCounter", [seed])):
        with pytest.raises(errors.InvalidArgumentError, match=text):
            ops.run(op, inputs)


@pytest.mark.parametrize(
    ("place", "value", "text"),
    [
        (0, np.uint64(1), r"^key must have shape \[1\], not \[\]$"),
        (0, np.uint64([1, 2]), r"^key must have shape \[1\], not \[2\]$"),
        (1, np.uint64([1]), r"^counter must be a vector with length at least 2; got shape: \[1\]$"),
        (1, np.uint64([[1, 2]]), r"^counter must be a vector with length at least 2; got shape: \[1,2\]$"),
        (2, np.int32([1]), r"^input 3 \(0-based\) must have shape \[\], not \[1\]$"),
        (2, np.int32(0), "^Unsupported algorithm id: 0$"),
        (2, np.int32(2), "^Unsupported algorithm id: 2$"),
        (2, np.int32(4), "^Unsupported algorithm id: 4$"),
    ],
)
def test_what_is_no_position(ops: Any, place: int, value: Any, text: str) -> None:
    keyed = [value if number == place else each for number, each in enumerate(KEYED)]
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run("StatelessRandomUniformV2", [dims(2), *keyed])


def test_any_generator_and_longer_counters_are_the_same(ops: Any) -> None:
    expected = ops.run("StatelessRandomUniformV2", [dims(9), *KEYED]).tolist()
    for keyed in ([*KEYED[:2], np.int32(3)], [KEYED[0], np.uint64([5, 9, 77]), KEYED[2]]):
        assert ops.run("StatelessRandomUniformV2", [dims(9), *keyed]).tolist() == expected
    for keyed in ([KEYED[0], np.uint64([6, 9]), KEYED[2]], [KEYED[0], np.uint64([5, 8]), KEYED[2]],
                  [np.uint64([KEY + 1]), *KEYED[1:]]):  # fmt: skip
        assert ops.run("StatelessRandomUniformV2", [dims(9), *keyed]).tolist() != expected


@pytest.mark.parametrize(
    ("op", "rest"),
    [
        ("StatelessRandomUniform", [SEED]),
        ("StatelessRandomUniformV2", KEYED),
        ("StatelessRandomUniformFullInt", [SEED]),
        ("StatelessRandomUniformFullIntV2", KEYED),
        ("StatelessRandomUniformInt", [SEED, np.int32(0), np.int32(1)]),
        ("StatelessRandomGammaV2", [SEED, np.float32(1)]),
        ("StatelessRandomGammaV3", [*KEYED, np.float32(1)]),
        ("StatelessRandomPoisson", [SEED, np.float32(1)]),
    ],
)
def test_what_would_take_too_much_memory_is_refused(ops: Any, op: str, rest: list[Any]) -> None:
    attrs = {"dtype": dtypes.float32} if op.endswith("Poisson") else {}
    attrs |= {"dtype": dtypes.int32} if op.endswith("Int") and "Full" not in op else {}
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run(op, [np.int64([1 << 40]), *rest], **attrs)


def test_what_there_is_not_says_why(ops: Any) -> None:
    limits = [np.float32(value) for value in (0, 1, -1, 1)]
    with pytest.raises(errors.NotFoundError, match="no program of the op census uses it"):
        ops.build("StatelessParameterizedTruncatedNormal", [dims(2), SEED, *limits], {})


def test_a_shuffle_is_compiled_before_the_first_step(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tenfold_kernels.cpu._compiled import rows

    made: list[bool] = []
    real = rows.shuffle
    monkeypatch.setattr(rows, "shuffle", lambda: made.append(True) or real())
    for op, inputs in (("StatelessShuffle", [np.arange(4), *KEYED]), ("RandomShuffle", [np.arange(4)])):
        made.clear()
        ops.build(op, inputs, {})
        assert made == [True]
