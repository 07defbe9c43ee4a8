"""Large arrays that are handed out: their own while they are held, the next one's memory afterwards."""

from __future__ import annotations

import numpy as np

from tenfold_core.buffer_pool import SMALLEST, BufferPool


def where(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def test_a_copy_is_the_callers_own() -> None:
    pool = BufferPool(128 << 20)
    source = np.arange(SMALLEST, dtype=np.float32).reshape(-1, 2)
    source.flags.writeable = False
    copies = [pool.copy(source) for _ in range(3)]

    copies[0][:] = 1

    assert len({where(copy) for copy in copies}) == 3
    np.testing.assert_array_equal(copies[1], source)
    assert copies[0].flags.writeable
    assert pool.free_bytes == 0


def test_memory_is_used_again_once_the_last_view_is_gone() -> None:
    pool = BufferPool(128 << 20)
    source = np.zeros(SMALLEST, np.uint8)
    first = pool.copy(source)
    address, view = where(first), first[10:20]
    del first
    assert pool.free_bytes == 0
    del view

    assert pool.free_bytes == SMALLEST
    assert where(pool.copy(source)) == address


def test_what_is_kept_is_bounded() -> None:
    pool = BufferPool(keep=2 * SMALLEST)
    held = [pool.copy(np.zeros(SMALLEST + number, np.uint8)) for number in range(8)]
    del held

    pool.copy(np.zeros(5 * SMALLEST, np.uint8))

    assert pool.free_bytes <= 7 * SMALLEST
    pool.copy(np.zeros(SMALLEST, np.uint8))
    assert pool.free_bytes <= 3 * SMALLEST


def test_a_pool_that_is_closed_keeps_nothing_not_even_what_comes_back_later() -> None:
    pool = BufferPool(128 << 20)
    unused, held = pool.copy(np.zeros(SMALLEST, np.uint8)), pool.copy(np.zeros(SMALLEST, np.uint8))
    del unused
    assert pool.free_bytes == SMALLEST

    pool.close()
    del held

    assert pool.free_bytes == 0


def test_small_and_odd_arrays() -> None:
    pool = BufferPool(128 << 20)
    odd = np.asfortranarray(np.random.default_rng(0).normal(size=(400, 500)))

    assert pool.copy(np.float32(3)[...]) == 3
    np.testing.assert_array_equal(pool.copy(odd), odd)
