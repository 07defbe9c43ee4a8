"""Kernels compute as IEEE says and warn of nothing, and take the memory of the step before where it is large."""

from __future__ import annotations

import contextvars
import mmap
import os
import platform
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_kernels import contexts, denormals
from tenfold_kernels.contexts import new_context

if TYPE_CHECKING:
    from collections.abc import Callable


def wrong(_: object = None) -> list[bool]:
    zero, large = np.zeros(1, np.float32), np.full(1, 3e38, np.float32)
    return [bool(np.isinf(1 / zero)[0]), bool(np.isnan(zero / zero)[0]), bool(np.isinf(large * large)[0])]


def test_no_warning_and_no_error_inside() -> None:
    context = new_context()
    with np.errstate(all="raise"):
        for _ in range(3):
            assert context.run(wrong) == [True, True, True]
        with pytest.raises(FloatingPointError):
            wrong()


def test_a_context_serves_any_thread() -> None:
    context, found = new_context(), []
    for _ in range(2):
        thread = threading.Thread(target=lambda: found.append(context.run(wrong, None)))
        thread.start()
        thread.join(30)
    assert found == [[True, True, True]] * 2


def test_before_numpy_2_the_state_is_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contexts.np, "__version__", "1.26.4")
    context = new_context()
    with np.errstate(all="raise"):
        assert context.run(wrong) == [True, True, True]
        assert np.geterr()["divide"] == "raise", "it was left again"


class Loads:
    """Stands for tenfold_kernels.memory, not loaded yet; remembers what was asked for."""

    def __init__(self) -> None:
        self.asked: list[Callable[[], None]] = []
        self.handler: Any = None

    def kept_memory(self) -> Any:
        return self.handler

    def load_beside(self, loaded: Callable[[], None]) -> None:
        self.asked.append(loaded)


def fault() -> None:
    with mmap.mmap(-1, 300 * mmap.PAGESIZE) as memory:
        for at in range(0, len(memory), mmap.PAGESIZE):
            memory[at] = 1


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Loads:
    loads = Loads()
    monkeypatch.setattr(contexts, "memory", loads)
    monkeypatch.setattr(contexts, "watch", None)
    monkeypatch.setattr(contexts, "free_contexts", [])
    return loads


@pytest.mark.skipif(sys.platform != "linux", reason="page faults of a thread are counted on Linux")
def test_page_faults_after_a_program_was_compiled_load_the_memory(loads: Loads) -> None:
    contexts.watch_next_calls()
    for _ in range(3):
        contexts.run(fault)
    assert not loads.asked, "the first calls find fresh memory, whatever they do"
    for _ in range(3):
        contexts.run(fault)
    assert len(loads.asked) == 1

    entered: list[None] = []
    loads.handler = type("Handler", (), {"enter": lambda self: entered.append(None)})()
    loads.asked[0]()
    for _ in range(3):
        contexts.run(wrong)
    assert len(entered) == 1
    assert all(type(context) is contextvars.Context for context in contexts.free_contexts)


def test_without_page_faults_the_watch_ends(loads: Loads) -> None:
    contexts.watch_next_calls()
    for _ in range(50):
        contexts.run(wrong)

    assert not loads.asked
    assert contexts.watch is None
    assert [type(context) for context in contexts.free_contexts] == [contextvars.Context]


@pytest.mark.skipif(sys.platform != "linux", reason="page faults of a thread are counted on Linux")
def test_calls_that_take_long_are_watched_for_good(loads: Loads, monkeypatch: pytest.MonkeyPatch) -> None:
    """The C library kept their memory for many steps, and then did not."""
    clock = iter(range(10_000))
    monkeypatch.setattr(contexts.time, "perf_counter", lambda: next(clock) * 2e-3)
    contexts.watch_next_calls()
    for _ in range(100):
        contexts.run(wrong)
    assert contexts.watch is not None
    assert not loads.asked
    for _ in range(3):
        contexts.run(fault)
    assert len(loads.asked) == 1


def test_this_system_can_flush_denormals() -> None:
    if sys.platform != "linux" or platform.machine() not in denormals._MODES or platform.libc_ver()[0] != "glibc":
        pytest.skip("others need not be able to")
    flush, restore = denormals.mode
    assert flush is not denormals._nothing
    assert restore is not denormals._no_need


def noted(*calls: tuple[int, float]) -> contexts._Watch:
    """A watch that is on, after these calls: page faults and seconds."""
    watch = contexts.watch = contexts._Watch()
    for faults, seconds in calls:
        watch.note(faults, seconds)
    return watch


def test_faults_beyond_a_bound_load_the_memory_and_end_the_watch(loads: Loads) -> None:
    watch = noted(*[(100_000, 0.0)] * 3, (512, 0.0))
    assert (loads.asked, contexts.watch) == ([], watch), "the first calls do not count, and so many are not many"
    free = contexts.free_contexts
    watch.note(1, 0.0)
    assert loads.asked == [contexts._renew]
    assert contexts.watch is None
    assert contexts.free_contexts is not free
    watch.note(100_000, 0.0)
    assert len(loads.asked) == 1, "it is over"


@pytest.mark.parametrize(("seconds", "goes_on"), [(0.9e-3, False), (1.1e-3, True)])
def test_calls_that_are_short_are_watched_no_longer_than_a_program_is_new(
    seconds: float, goes_on: bool, loads: Loads
) -> None:
    first = [(0, 5.0)] * 3
    watch = noted(*first, *[(17, seconds)] * 28)
    assert contexts.watch is watch
    watch.note(17, seconds)  # the 32nd
    assert (contexts.watch is watch) is goes_on
    if goes_on:
        # counted anew, and no first calls any more
        for faults in (0, *[17] * 28):
            watch.note(faults, seconds)
        assert loads.asked == []
        for _ in range(29):
            watch.note(18, seconds)
        assert len(loads.asked) == 1


def test_another_programs_watch_takes_the_place_of_the_first(loads: Loads) -> None:
    watch = noted()
    other = contexts.watch = contexts._Watch()
    for _ in range(9):
        watch.note(1000, 0.0)
    assert (loads.asked, contexts.watch) == ([], other)


def test_a_watched_call_counts_its_own_page_faults(loads: Loads, monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    if not hasattr(resource, "RUSAGE_THREAD"):
        pytest.skip("page faults of a thread are counted on Linux")
    noted()
    faults, clock = iter((10, 17, 20, 25)), iter((1.0, 1.5, 2.0, 2.25))
    monkeypatch.setattr(resource, "getrusage", lambda who: type("Usage", (), {"ru_minflt": next(faults)}))
    monkeypatch.setattr(contexts.time, "perf_counter", lambda: next(clock))
    found: list[tuple[int, float]] = []
    monkeypatch.setattr(contexts._Watch, "note", lambda self, *given: found.append(given))
    assert contexts.run(lambda x, y: (x, y), 3, 4) == (3, 4)
    with pytest.raises(ZeroDivisionError):
        contexts.run(lambda: 1 // 0)
    assert found == [(7, 0.5), (5, 0.25)]


def test_a_context_goes_back_to_where_it_was_taken_from(loads: Loads, monkeypatch: pytest.MonkeyPatch) -> None:
    first = contexts.free_contexts
    contexts.run(contexts._renew)
    assert (len(first), contexts.free_contexts) == (1, [])
    with pytest.raises(ZeroDivisionError):
        contexts.run(lambda: 1 // 0)
    (used,) = contexts.free_contexts
    contexts.run(wrong)
    assert contexts.free_contexts == [used]

    restored: list[Any] = []
    for before in ("mode", None):
        monkeypatch.setattr(contexts.denormals, "mode", (lambda before=before: before, restored.append))
        contexts.run(wrong)
    assert restored == ["mode"], "who flushed before goes on"


def test_nothing_is_watched_where_memory_is_kept_or_nobody_counts(
    loads: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = contexts.free_contexts
    monkeypatch.setattr(contexts.sys, "platform", "darwin")
    contexts.watch_next_calls()
    assert contexts.watch is None
    monkeypatch.setattr(contexts.sys, "platform", "linux")
    loads.handler = object()
    contexts.watch_next_calls()
    assert (contexts.watch, contexts.free_contexts is free) == (None, True)
    loads.handler = None
    contexts.watch_next_calls()
    assert contexts.watch is not None
    assert contexts.free_contexts is not free


STEPS = """
import resource, time
import numpy as np
import tenfold as tf
from tenfold_kernels import memory

x = tf.placeholder(tf.float32, [None, 256])
y = x
for _ in range(2):
    y = tf.tanh(tf.matmul(y, tf.Variable(tf.random_normal([256, 256], 0.0, 0.05))))
loss = tf.reduce_mean(tf.square(y - 0.5))
train = tf.train.AdamOptimizer(0.01).minimize(loss)
large = np.ones([300, 256], np.float32)
count = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    deadline = time.monotonic() + 60
    faults = np.inf
    # The first time on a machine, loops are compiled in the background for some seconds, which has faults of its own.
    while (memory.kept_memory() is None or faults > 20) and time.monotonic() < deadline:
        counts = [count()]
        for _ in range(21):
            session.run(train, {x: large})
            counts.append(count())
        faults = np.median(np.diff(counts))
    print(float(faults), memory.kept_memory().kept)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries may keep what was freed")
def test_a_program_in_steady_state_has_no_page_faults() -> None:
    # fusing would have faults of its own, in another thread
    environment = os.environ | {"TENFOLD_FUSION": "off", "MALLOC_MMAP_THRESHOLD_": "131072"}
    done = subprocess.run(
        [sys.executable, "-c", STEPS], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    faults, kept = done.stdout.split()

    assert float(faults) <= 20  # thousands, where each step has fresh memory
    assert int(kept) > 1 << 20
