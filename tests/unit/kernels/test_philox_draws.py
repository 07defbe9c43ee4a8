"""Random numbers by machine code are those of NumPy, wherever the counter stands and however many there are."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tenfold_kernels import chunks, philox, philox_code, philox_draws
from tenfold_kernels.cpu import random
from tenfold_kernels.philox import Philox, normal_float, to_float

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array

#: The carry from the lower half into the upper one; the end of both.
COUNTERS = [0, 5, (1 << 64) - 50, (3 << 64) + 77, (1 << 128) - 20]
KEYS = [0, 0x123456789ABCDEF0, (1 << 64) - 1]
BLOCKS = 1003
MANY = dict(philox_draws._MANY)


@pytest.fixture(autouse=True)
def draws(monkeypatch: pytest.MonkeyPatch) -> philox_draws.Draws:
    """Code from the first number on."""
    draws = philox_draws.Draws()
    monkeypatch.setattr(philox_draws, "draws", draws)
    monkeypatch.setattr(philox_draws, "_MANY", dict.fromkeys(philox_draws._MANY, 0))
    return draws


@pytest.mark.parametrize("counter", COUNTERS)
@pytest.mark.parametrize("key", KEYS)
def test_they_are_those_of_numpy(key: int, counter: int) -> None:
    position = Philox(key, counter)
    words = position.blocks(np.arange(BLOCKS, dtype=np.uint64))
    expected = {philox.WORDS: words, philox.UNIFORM: to_float(words)}
    for kind, numbers in expected.items():
        drawn = philox_draws.draw(kind, position, BLOCKS)
        assert drawn is not None
        assert drawn.dtype == numbers.dtype
        np.testing.assert_array_equal(drawn, numbers)
    drawn = philox_draws.draw(philox.NORMAL, position, BLOCKS)
    assert drawn is not None
    # the last bit of NumPy's own logarithm depends on the processor
    np.testing.assert_array_max_ulp(drawn, normal_float(words), 1)
    assert np.mean(drawn != normal_float(words)) < 1e-3


@pytest.mark.parametrize("size", [1, 4, 31, 32, 33, 40_001])
@pytest.mark.parametrize("counter", COUNTERS)
def test_truncated_ones_are_those_of_numpy(size: int, counter: int, monkeypatch: pytest.MonkeyPatch) -> None:
    by_code = philox_draws.draw_truncated(Philox(7, counter), -(-size // 4), 256)
    drawn = random.truncated_normal(Philox(7, counter), size, np.float32)
    assert by_code is not None
    assert (by_code.shape, by_code.reshape(-1)[:size].tolist()) == ((-(-size // 4), 4), drawn.tolist())
    monkeypatch.setattr(philox_draws, "draw_truncated", lambda *_: None)
    expected = random.truncated_normal(Philox(7, counter), size, np.float32)

    assert drawn.shape == (size,)
    assert np.abs(drawn).max() < 2
    np.testing.assert_array_max_ulp(drawn, expected, 1)


def test_what_lies_at_the_ends_of_the_interval() -> None:
    """The least uniform number, whose logarithm is large, and angles beside multiples of a right one."""
    ends = np.array([0, 1, 2, 0x3FFFFF, 0x400000, 0x400001, 0x7FFFFE, 0x7FFFFF, 0x200000, 0x600000], np.uint32)
    found: list[tuple[Array, Array]] = []
    position = Philox(1, 0)
    # among so many words, those at an end turn up as well
    drawn = philox_draws.draw(philox.NORMAL, position, 1 << 20)
    words = position.blocks(np.arange(1 << 20, dtype=np.uint64))
    assert drawn is not None
    for column in (1, 3):
        rows = np.isin(words[:, column] & np.uint32(0x7FFFFF), ends)
        found.append((drawn[rows], normal_float(words[rows])))
    assert sum(len(mine) for mine, _ in found) > 1
    for mine, numpys in found:
        np.testing.assert_array_max_ulp(mine, numpys, 1)
    assert np.isfinite(drawn).all()


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = []
    for width in (1, 4):
        monkeypatch.setattr(chunks, "width", lambda width=width: width)
        numbers.append(philox_draws.draw(philox.NORMAL, Philox(3, 9), 1 << 17))
    np.testing.assert_array_equal(*numbers)


def test_few_numbers_are_drawn_with_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MANY == {philox.WORDS: 524_288, philox.UNIFORM: 524_288, philox.NORMAL: 262_144}
    monkeypatch.setattr(philox_draws, "_MANY", dict.fromkeys(philox_draws._MANY, 1000))
    position = Philox(1, 2)
    assert philox_draws.draw(philox.UNIFORM, position, 125) is None
    assert philox_draws.draw(philox.UNIFORM, position, 125) is not None, "1,000 by now"
    assert philox_draws.draw(philox.WORDS, position, 125) is None, "of another kind"


def test_where_no_code_can_run_numpy_draws(draws: philox_draws.Draws, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def refuse(kind: str) -> tuple[dict[str, int], object]:
        asked.append(kind)
        raise OSError("no executable memory")

    monkeypatch.setattr(philox_code, "compile_draw", refuse)
    expected = to_float(Philox(1, 2).blocks(np.arange(250, dtype=np.uint64))).reshape(-1)
    for _ in range(3):
        np.testing.assert_array_equal(random.uniform(Philox(1, 2), 1000, np.float32), expected)
    assert asked == [philox.UNIFORM]
    assert draws.functions(philox.NORMAL, 1 << 30) is None


def test_what_another_thread_made_or_found_impossible_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    for there in (True, False):
        draws = philox_draws.Draws()
        monkeypatch.setattr(draws, "_make", made.append)

        class Meanwhile(contextlib.nullcontext[None]):
            def __enter__(self, draws: philox_draws.Draws = draws, there: bool = there) -> None:
                if there:
                    draws._made[philox.WORDS] = {"f": lambda: None}
                else:
                    draws._drawn = {}

        monkeypatch.setattr(draws, "_lock", Meanwhile())
        assert (draws.functions(philox.WORDS, 1) is not None) is there
    assert made == []
