"""Freed blocks are taken again, bounded, given back when they are not needed, and owned by the arrays over them."""

from __future__ import annotations

import contextvars
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_kernels.memory import KeptMemory
from tenfold_kernels.memory_code import LARGEST, LARGEST_CLEARED, SMALLEST, class_of

if TYPE_CHECKING:
    from collections.abc import Callable

resource = pytest.importorskip("resource", reason="page faults are counted where the system tells them")

#: Bytes; the memory of one test.
KEEP = 8 << 20


class Made:
    """A handler, and a context in which arrays have their memory from it."""

    def __init__(self) -> None:
        self.memory = KeptMemory(KEEP)
        self._context = contextvars.Context()
        self._context.run(self.memory.enter)

    def __call__(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._context.run(function, *arguments)


@pytest.fixture
def made() -> Made:
    return Made()


def faults() -> int:
    return int(resource.getrusage(resource.RUSAGE_THREAD).ru_minflt)


def address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


@pytest.mark.parametrize("nbytes", [SMALLEST, SMALLEST + 1, 100_000, 1 << 20, (1 << 20) + 1, LARGEST - 1, LARGEST])
def test_a_class_holds_its_sizes_and_little_more(nbytes: int) -> None:
    number, room = class_of(nbytes)

    assert nbytes <= room <= nbytes * 9 // 8 + 1
    assert class_of(room) == (number, room)
    assert class_of(room + 1)[0] == number + 1


def test_what_was_freed_is_taken_again(made: Made) -> None:
    first = address(made(np.empty, 300_000))
    second = address(made(np.empty, 300_001))  # of the same class

    assert first == second
    assert made.memory.taken == (1, 1)


def test_arrays_of_later_turns_cause_no_page_faults(made: Made) -> None:
    def turn() -> None:
        x = np.ones(1 << 19, np.float32)
        np.sqrt(x) + x

    made(turn)
    before = faults()
    for _ in range(10):
        made(turn)

    assert faults() - before <= 20  # 1,500 pages each, were they made anew


def test_only_in_its_context(made: Made) -> None:
    outside = np.empty(300_000)

    assert made.memory.taken == (0, 0)
    del outside
    assert made.memory.kept == 0


def test_blocks_are_aligned_and_apart(made: Made) -> None:
    arrays = [made(np.full, size, number, np.uint8) for number, size in enumerate((20_000, 65_536, 65_537, 1 << 20))]

    assert all(address(array) % 64 == 0 for array in arrays)
    assert all((array == number).all() for number, array in enumerate(arrays))


@pytest.mark.parametrize("nbytes", [SMALLEST, LARGEST_CLEARED, LARGEST_CLEARED + 1])
def test_zeros_are_zeros_in_used_memory(made: Made, nbytes: int) -> None:
    made(np.full, nbytes, 7, np.uint8)

    assert not made(np.zeros, nbytes, np.uint8).any()


def test_an_array_keeps_its_values_when_it_is_resized(made: Made) -> None:
    x = made(np.arange, 5_000.0)
    for size in (50_000, 4_000, 10):
        x.resize(size, refcheck=False)
        assert (x[:10] == range(10)).all()
    assert made.memory.in_use == 0


def test_no_more_is_kept_than_allowed(made: Made) -> None:
    arrays = [made(np.empty, 1 << 20, np.uint8) for _ in range(20)]
    assert made.memory.in_use == 20 << 20
    del arrays

    assert made.memory.kept == KEEP
    assert made.memory.in_use == 0


def test_what_a_period_did_not_need_is_given_back(made: Made) -> None:
    arrays = [made(np.empty, 1 << 20, np.uint8) for _ in range(4)]
    del arrays
    made.memory.sweep()
    used = [made(np.empty, 1 << 20, np.uint8) for _ in range(3)]
    del used
    made.memory.sweep()
    assert made.memory.kept == 3 << 20

    made.memory.sweep()

    assert made.memory.kept == 0


def test_other_sizes_take_over(made: Made) -> None:
    for size in (1 << 20, 3 << 19):
        for _ in range(3):
            made(np.empty, size, np.uint8)
            made.memory.sweep()
    assert made.memory.kept == 3 << 19


def test_all_of_it_can_be_given_back(made: Made) -> None:
    arrays = [made(np.empty, size, np.uint8) for size in (20_000, 1 << 20, 1 << 20, 3 << 20)]
    last = arrays.pop()
    del arrays
    made.memory.release()

    assert made.memory.kept == 0
    assert made.memory.in_use == last.nbytes


def test_any_thread_may_free_and_take(made: Made) -> None:
    given: list[np.ndarray[Any, Any]] = []
    wrong: list[int] = []

    def work(number: int) -> None:
        context = contextvars.Context()
        context.run(made.memory.enter)
        for turn in range(300):
            mine = context.run(np.full, 20_000 + 1_000 * (turn % 7), number, np.uint8)
            given.append(mine)
            if len(given) > 8:
                given.pop(0)  # another thread's, mostly
            if not (mine == number).all():
                wrong.append(turn)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    given.clear()

    assert not wrong
    assert made.memory.in_use == 0


def test_arrays_outlive_everything() -> None:
    script = """
import contextvars, gc, sys
import numpy as np
from tenfold_kernels.memory import KeptMemory
context = contextvars.Context()
def make():
    memory = KeptMemory(1 << 24)
    context.run(memory.enter)
make()
kept = context.run(np.ones, 100_000)
del context, make, KeptMemory, sys.modules["tenfold_kernels.memory"], sys.modules["tenfold_kernels.memory_code"]
gc.collect()
assert kept.sum() == 100_000
sys.keep_until_the_end = kept  # freed when the interpreter goes
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stderr) == (0, "")
