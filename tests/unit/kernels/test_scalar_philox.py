"""A block of Philox 4x32-10 against the published answers, and the carry between the halves of the counter."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold_kernels.scalar_philox import block

ONES = (1 << 64) - 1
#: Random123's known answers: key, the counter's lower and upper half, the two halves of the block.
VECTORS = [
    (0, 0, 0, 0xE169C58D6627E8D5, 0x9B00DBD8BC57AC4C),
    (ONES, ONES, ONES, 0x41C83B0E408F276D, 0x6D5451FDA20BC7C6),
    (0x299F31D0A4093822, 0x85A308D3243F6A88, 0x0370734413198A2E, 0x94FDCCEBD16CFE09, 0x24126EA15001E420),
]


def made(key: int, low: int, high: int, index: int = 0) -> tuple[int, int]:
    with np.errstate(over="ignore"):  # numbers wrap, as in compiled code
        first, second = block(key, low, high, index)
    return int(first), int(second)


@pytest.mark.parametrize(("key", "low", "high", "first", "second"), VECTORS)
def test_known_answers(key: int, low: int, high: int, first: int, second: int) -> None:
    assert made(key, low, high) == (first, second)
    assert made(key, low - low % 7, high, low % 7) == (first, second)


def test_the_index_carries_into_the_upper_half() -> None:
    assert made(5, ONES, 7, 3) == made(5, 2, 8)
    assert made(5, ONES - 3, 7, 3) == made(5, ONES, 7)
    assert made(5, ONES, ONES, 1) == made(5, 0, 0)
