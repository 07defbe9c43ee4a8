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

from tenfold_kernels import contexts
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
