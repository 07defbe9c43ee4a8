"""Freed blocks are taken again, bounded, given back when they are not needed, and owned by the arrays over them."""

from __future__ import annotations

import contextvars
import ctypes
import importlib.util
import subprocess
import sys
import threading
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_kernels import memory
from tenfold_kernels import memory_code as code
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


class System:
    """Stands for the C library's memory: a piece of it, handed out where and as often as a test says."""

    def __init__(self, memory: KeptMemory) -> None:
        self.calls: list[tuple[Any, ...]] = []
        #: Where the next blocks are, in turn; 0 for none.
        self.next: list[int] = []
        self._room = ctypes.create_string_buffer(1 << 18)
        start = ctypes.addressof(self._room)
        self.page = (start + 4095) & ~4095
        word = ctypes.c_int64
        functions = {
            code.MALLOC: (self._malloc, (word, word, word)),
            code.CALLOC: (self._calloc, (word, word, word, word)),
            code.REALLOC: (self._realloc, (word, word, word, word)),
            code.FREE: (self._free, (None, word, word, word)),
        }
        self._callbacks = []
        for place, (function, types) in functions.items():
            callback = ctypes.PYFUNCTYPE(*types)(function)
            self._callbacks.append(callback)
            memory._table[place] = ctypes.cast(callback, ctypes.c_void_p).value
        memory._table[code.CONTEXT] = 4711
        memory._table[code.KEEP] = KEEP
        memory._free = lambda *given: self._free(*given)
        table = ctypes.addressof(memory._table)
        allocator = memory._handler.allocator
        self.malloc = partial(ctypes.PYFUNCTYPE(word, word, word)(allocator.malloc), table)
        self.calloc = partial(ctypes.PYFUNCTYPE(word, word, word, word)(allocator.calloc), table)
        self.realloc = partial(ctypes.PYFUNCTYPE(word, word, word, word)(allocator.realloc), table)
        self.free = partial(ctypes.PYFUNCTYPE(None, word, word, word)(allocator.free), table)

    def _malloc(self, context: int, size: int) -> int:
        self.calls.append(("malloc", context, size))
        return self.next.pop(0)

    def _calloc(self, context: int, count: int, each: int) -> int:
        self.calls.append(("calloc", context, count, each))
        return 77

    def _realloc(self, context: int, block: int, size: int) -> int:
        self.calls.append(("realloc", context, block, size))
        return 78

    def _free(self, context: int, base: int, size: int) -> None:
        self.calls.append(("free", context, base, size))

    def seen(self) -> list[tuple[Any, ...]]:
        """The calls since the last look, without their context, which is always the same."""
        assert all(call[1] == 4711 for call in self.calls)
        found = [(call[0], *call[2:]) for call in self.calls]
        self.calls.clear()
        return found


@pytest.fixture(scope="module")
def kept() -> KeptMemory:
    return KeptMemory(KEEP)


@pytest.fixture
def system(kept: KeptMemory) -> System:
    """The memory of one test, which has no block yet."""
    for place in range(code.KEPT, code.TABLE_WORDS):
        kept._table[place] = 0
    return System(kept)


def test_sizes_that_are_kept_and_those_that_are_the_systems(system: System) -> None:
    for size in (0, 1, SMALLEST - 1, LARGEST + 1, 1 << 40):
        system.next = [5]
        assert system.malloc(size) == 5
        assert system.seen() == [("malloc", size)]
    for size in (SMALLEST, SMALLEST + 1, LARGEST - 1, LARGEST):
        system.next = [0, 0]
        assert system.malloc(size) == 0
        assert system.seen() == [("malloc", class_of(size)[1] + 192)] * 2, "its class's, and room for a header"
    system.next = [system.page]
    for count, each in ((SMALLEST - 1, 1), (LARGEST_CLEARED + 1, 1), (0, 8)):
        assert system.calloc(count, each) == 77
        assert system.seen() == [("calloc", count, each)]


@pytest.mark.parametrize(
    ("base", "block"),
    [(0, 64), (1, 128), (48, 128), (64, 128), (65, 192), (4096 - 64, 4096 + 64), (4096 - 65, 4096 + 64)],
)
def test_a_block_is_aligned_behind_its_header_and_begins_no_page(base: int, block: int, system: System) -> None:
    page = system.page
    ctypes.memset(page, 0x55, 8192)
    system.next = [page + base]
    assert system.malloc(SMALLEST) == page + block
    untouched = ctypes.string_at(page, base)
    assert untouched == b"\x55" * base
    assert ctypes.string_at(page + block, 64) == b"\x55" * 64
    system.free(page + block, SMALLEST)
    assert system.seen() == [("malloc", SMALLEST + 192)], "it is kept"
    assert system.malloc(SMALLEST) == page + block
    assert system.seen() == []


def test_what_is_not_ours_is_freed_and_resized_by_the_system(system: System) -> None:
    for block in (system.page, system.page + 8, system.page + 64):
        ctypes.memset(system.page, 0, 4096)
        system.free(block, 9)
        assert system.realloc(block, 20_000) == 78
        assert system.seen() == [("free", block, 9), ("realloc", block, 20_000)]


def test_with_what_is_kept_there_may_be_some(system: System, kept: KeptMemory) -> None:
    first, second = system.page, system.page + (1 << 16)
    system.next = [first, second]
    blocks = [system.malloc(SMALLEST), system.malloc(2 * SMALLEST)]
    for block, size in zip(blocks, (SMALLEST, 2 * SMALLEST), strict=True):
        system.free(block, size)
    assert (kept.kept, kept.in_use) == (3 * SMALLEST, 0)
    system.seen()
    system.next = [0, second]
    found = system.malloc(3 * SMALLEST)
    wanted = ("malloc", 3 * SMALLEST + 192)
    assert system.seen() == [wanted, ("free", first, SMALLEST), ("free", second, 2 * SMALLEST), wanted]
    assert (found, kept.kept, kept.in_use) == (second + 64, 0, 3 * SMALLEST)
    assert kept.taken == (0, 3)


def test_no_more_than_the_most_is_kept(system: System, kept: KeptMemory) -> None:
    first, second = system.page, system.page + (1 << 16)
    for most, frees in ((2 * SMALLEST, []), (2 * SMALLEST - 1, [("free", second, SMALLEST)])):
        kept.release()
        kept._table[code.KEEP] = most
        system.next = [first, second]
        blocks = [system.malloc(SMALLEST), system.malloc(SMALLEST)]
        system.seen()
        for block in blocks:
            system.free(block, SMALLEST)
        assert system.seen() == frees
        assert kept.kept == 2 * SMALLEST - len(frees) * SMALLEST


def test_blocks_are_cleared_and_moved_with_what_is_in_them(system: System, kept: KeptMemory) -> None:
    first, second = system.page, system.page + (1 << 17)
    ctypes.memset(first, 0x55, 1 << 17)
    system.next = [first]
    block = system.calloc(SMALLEST // 8, 8)
    assert ctypes.string_at(block, SMALLEST + 1) == b"\0" * SMALLEST + b"\x55"
    ctypes.memset(block, 7, SMALLEST)
    ctypes.memset(second, 0x55, 1 << 16)
    system.next = [second]
    moved = system.realloc(block, 2 * SMALLEST)
    assert ctypes.string_at(moved, SMALLEST + 1) == b"\x07" * SMALLEST + b"\x55"
    assert (kept.kept, kept.in_use) == (SMALLEST, 2 * SMALLEST)
    ctypes.memset(moved, 8, 2 * SMALLEST)
    back = system.realloc(moved, SMALLEST)
    assert back == block
    assert ctypes.string_at(back, SMALLEST + 1) == b"\x08" * SMALLEST + b"\x55"
    assert (kept.kept, kept.in_use, kept.taken) == (2 * SMALLEST, SMALLEST, (1, 2))
    system.next = [0, 0]
    assert system.realloc(back, 4 * SMALLEST) == 0
    assert kept.in_use == SMALLEST, "the old block is as it was"


def test_a_sweep_frees_the_fewest_that_were_free(system: System, kept: KeptMemory) -> None:
    bases = [system.page + (i << 15) for i in range(3)]
    system.next = list(bases)
    blocks = [system.malloc(SMALLEST) for _ in bases]
    for block in blocks:
        system.free(block, SMALLEST)
    kept.sweep()
    system.seen()
    one = system.malloc(SMALLEST)
    system.free(one, SMALLEST)
    kept.sweep()
    assert system.seen() == [("free", bases[2], SMALLEST), ("free", bases[1], SMALLEST)]
    kept.sweep()
    assert system.seen() == [("free", bases[0], SMALLEST)]
    assert kept.kept == 0


def test_classes_are_eighths_of_a_doubling() -> None:
    assert class_of(SMALLEST) == (0, SMALLEST)
    assert [class_of(SMALLEST + 1)[1], class_of(2 * SMALLEST)] == [SMALLEST * 9 // 8, (8, 2 * SMALLEST)]
    assert class_of(LARGEST)[0] == code.CLASS_COUNT - 1 == 160
    assert (SMALLEST, LARGEST, LARGEST_CLEARED) == (1 << 14, 1 << 34, 1 << 20)


# ---- loaded beside the steps -----------------------------------------------------------------------------------------


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The threads that would have been started, in a process that has no memory yet."""
    found: list[dict[str, Any]] = []

    class NoThread:
        def __init__(self, **given: Any) -> None:
            self.given = given

        def start(self) -> None:
            found.append(self.given)

    monkeypatch.setattr(memory.threading, "Thread", NoThread)
    monkeypatch.setattr(memory, "_started", False)
    monkeypatch.setattr(memory, "_kept_memory", None)
    return found


def test_it_is_loaded_once(begun: list[dict[str, Any]]) -> None:
    for _ in range(3):
        memory.load_beside(begun.clear)
    expected = {"target": memory._load_and_sweep, "args": (begun.clear,), "name": "tenfold-memory", "daemon": True}
    assert begun == [expected]


def test_a_process_begins_without_it(begun: list[dict[str, Any]]) -> None:
    assert memory.__spec__ is not None
    anew = importlib.util.module_from_spec(memory.__spec__)
    assert memory.__spec__.loader is not None
    memory.__spec__.loader.exec_module(anew)
    assert anew.kept_memory() is None
    anew.load_beside(begun.clear)
    assert len(begun) == 1


def test_once_loaded_it_is_swept_for_good(begun: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Any] = []

    class Kept:
        def __init__(self, keep: int) -> None:
            events.append(keep)

        def sweep(self) -> None:
            events.append("swept")

    class EnoughError(Exception):
        pass

    def sleep(seconds: float) -> None:
        if len(events) > 5:
            raise EnoughError
        events.append(seconds)

    in_child: list[Callable[[], None]] = []
    monkeypatch.setattr(memory, "KeptMemory", Kept)
    monkeypatch.setattr(memory.memory_limits, "memory", lambda: 4000)
    monkeypatch.setattr(memory.time, "sleep", sleep)
    monkeypatch.setattr(memory.os, "register_at_fork", lambda **given: in_child.append(given["after_in_child"]))
    with pytest.raises(EnoughError):
        memory._load_and_sweep(lambda: events.append(memory.kept_memory()))
    kept = memory.kept_memory()
    assert events == [1000, kept, 2.0, "swept", 2.0, "swept"]
    in_child[0]()
    assert begun == [{"target": memory._sweep, "args": (kept,), "name": "tenfold-memory", "daemon": True}]


def test_a_machine_that_runs_no_code_of_ours_keeps_nothing(
    begun: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(keep: int) -> None:
        raise OSError("no executable memory")

    monkeypatch.setattr(memory, "KeptMemory", refuse)
    memory._load_and_sweep(lambda: begun.append({}))
    assert (memory.kept_memory(), begun) == (None, [])


def test_numpys_table_is_where_this_release_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def find(name: str) -> Any:
        asked.append(name)
        return importlib.import_module("numpy._core._multiarray_umath" if hasattr(np, "_core") else name)

    monkeypatch.setattr(memory, "importlib", SimpleNamespace(import_module=find))
    for version in ("1.26.4", "2.0.0", "2.3.1"):
        monkeypatch.setattr(memory.np, "__version__", version)
        assert len(memory._numpy_functions()) == 306
    assert asked == [f"numpy.{core}._multiarray_umath" for core in ("core", "_core", "_core")]


def test_arrays_outlive_everything() -> None:
    script = """
import contextvars, gc, sys
import numpy as np
from tenfold_kernels import memory
from tenfold_kernels import memory_code as code
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
