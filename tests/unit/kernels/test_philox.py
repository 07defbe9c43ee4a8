"""The stream of Philox as positions: few blocks and many are the same, counters carry, words become numbers."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes
from tenfold_kernels import philox
from tenfold_kernels.philox import Generator, Philox

ONES = (1 << 64) - 1
U64 = np.uint64


def words(*values: int) -> Any:
    return np.array(values, np.uint32)


# ---- positions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("counter", [0, 3, ONES - 2, (ONES << 64) + ONES - 2, 1 << 127])
@pytest.mark.parametrize("key", [0, 0x123456789ABCDEF0, ONES])
def test_blocks_are_the_same_however_many_are_made(key: int, counter: int, monkeypatch: pytest.MonkeyPatch) -> None:
    position = Philox(key, counter)
    one_by_one = np.concatenate([position.blocks(np.array([i], U64)) for i in range(13)])
    assert (one_by_one.dtype, one_by_one.shape) == (np.uint32, (13, 4))
    for count in (0, 1, 3, 4, 5, 13):
        found = position.blocks(np.arange(count, dtype=U64))
        assert found.dtype == np.uint32
        assert found.tolist() == one_by_one[:count].tolist()
    backwards = np.arange(12, -1, -1).astype(U64)
    assert position.blocks(backwards).tolist() == one_by_one[::-1].tolist()
    for piece in (5, 6, 12, 13):
        monkeypatch.setattr(philox, "PIECE", piece)
        assert position.blocks(backwards).tolist() == one_by_one[::-1].tolist()


def test_a_position_further_on_and_one_that_wraps() -> None:
    assert Philox(3, 5).behind(7).counter == 12
    ahead = Philox(3, (1 << 128) - 2).behind(5)
    assert (ahead.key, ahead.counter) == (3, 3)


@pytest.mark.parametrize(
    ("key", "counter", "signed"),
    [
        (0, 0, (0, 0, 0)),
        (ONES, (1 << 128) - 1, (-1, -1, -1)),
        (1 << 63, (1 << 127) + 5, (-(1 << 63), 5, -(1 << 63))),
        ((1 << 63) - 1, ((1 << 63) - 1 << 64) + (1 << 63), ((1 << 63) - 1, -(1 << 63), (1 << 63) - 1)),
    ],
)
def test_positions_as_signed_words(key: int, counter: int, signed: tuple[int, int, int]) -> None:
    assert Philox(key, counter).as_signed() == signed
    again = Philox.of_signed(*signed)
    assert (again.key, again.counter) == (key, counter)


def test_single_words_read_ahead_and_leave_the_position() -> None:
    position = Philox(3, ONES - 60)
    found = list(itertools.islice(position.single(), 4 * 64 + 9))
    assert found == position.blocks(np.arange(67, dtype=U64)).reshape(-1).tolist()[: len(found)]
    assert position.counter == ONES - 60


# ---- generators ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seeds", "key", "counter"),
    [((5, 0), 5, 0), ((0, 5), 0, 5 << 64), ((-1, -2), ONES, ONES - 1 << 64), ((1 << 64, 1 << 64), 0, 0)],
)
def test_seeds_are_a_place_in_the_stream(seeds: tuple[int, int], key: int, counter: int) -> None:
    first = Generator(*seeds).reserve(1)
    assert (first.key, first.counter) == (key, counter)


def test_without_seeds_it_starts_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(philox.secrets, "randbits", lambda bits: asked.append(bits) or 6 + len(asked))
    place = Generator(0, 0).reserve(1)
    assert (place.key, place.counter, asked) == (7, 8 << 64, [64, 64])


def test_a_generator_hands_out_places_one_after_another() -> None:
    generator = Generator(1, 2)
    begin = 2 << 64
    assert generator.place == begin
    assert [generator.reserve(3).counter, generator.reserve_outputs(2).counter] == [begin, begin + 3]
    assert generator.place == begin + 3 + 2 * 256
    generator.place = (1 << 128) - 1
    assert [generator.reserve(3).counter, generator.reserve(1).counter] == [(1 << 128) - 1, 2]


# ---- numbers of words ------------------------------------------------------------------------------------------------


def test_words_become_floats_by_the_bits_of_a_mantissa() -> None:
    bfloat16 = dtypes.bfloat16.as_numpy_dtype
    for convert, kind, bits in (
        (philox.to_float, np.float32, 23),
        (philox.to_half, np.float16, 10),
        (philox.to_bfloat16, bfloat16, 7),
    ):
        found = convert(words(0, 1, (1 << bits) - 1, 1 << bits, (1 << bits) + 5, 0xFFFFFFFF, 1 << 31))
        assert found.dtype == kind
        top = 1 - 2.0**-bits
        assert found.astype(float).tolist() == [0, 2.0**-bits, top, 0, 5 * 2.0**-bits, top, 0]


def test_two_words_become_a_double() -> None:
    first, second = words(0, 1, 0, 0xFFFFF, 0x100000, 0xFFF00002), words(0, 0, 1, 0xFFFFFFFF, 0, 3)
    expected = [0, 2.0**-20, 2.0**-52, 1 - 2.0**-52, 0, 2 * 2.0**-20 + 3 * 2.0**-52]
    assert philox.to_double(first, second).tolist() == expected
    blocks = np.stack((first[:4], second[:4]), axis=-1).reshape(2, 4)
    assert philox.to_doubles(blocks).tolist() == [expected[:2], expected[2:4]]


def test_normal_numbers_by_box_and_muller() -> None:
    half, quarter, eighth = 1 << 22, 1 << 21, 1 << 20
    blocks = words(half, eighth, quarter, half + eighth, 0, eighth, half, 0).reshape(2, 4)
    found = philox.normal_float(blocks)
    assert (found.dtype, found.shape) == (np.float32, (2, 4))
    root, small = math.sqrt(0.5), math.sqrt(-2 * math.log(1e-7))
    at_half, at_quarter = math.sqrt(-2 * math.log(0.5)), math.sqrt(-2 * math.log(0.25))
    expected = [
        [at_half * root, at_half * root, -at_quarter * root, -at_quarter * root],
        [small * root, small * root, 0, at_half],
    ]
    np.testing.assert_allclose(found, expected, rtol=3e-7, atol=1e-7)

    half, eighth = 1 << 19, 1 << 17
    wide = philox.normal_double(words(half, 0, eighth, 0, 0, 0, half + eighth, 0).reshape(2, 4))
    assert (wide.dtype, wide.shape) == (np.float64, (2, 2))
    np.testing.assert_allclose(wide, [[at_half * root] * 2, [-small * root] * 2], rtol=1e-14)
