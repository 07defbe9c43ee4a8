"""Denormals are zero where kernels compute, on every thread that does; the caller's own arithmetic keeps them."""

from __future__ import annotations

import ctypes
import platform
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold_kernels import chunks, contexts, denormal_code, denormals, parallel
from tenfold_kernels.denormals import flush_on_this_thread
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Callable

HAS_MODE = denormals.mode[0] is not denormals._nothing
pytestmark = pytest.mark.skipif(not HAS_MODE, reason="this system's C library has no mode of denormals")


def keeps_denormals() -> bool:
    return bool(np.full(4, 1e-38, np.float32)[0] * np.float32(0.1) > 0)


def on_a_thread(work: Callable[[], Any]) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join(30)
    return found[0]


def machine_code() -> denormals.Mode:
    if platform.machine() != "x86_64":
        pytest.skip("machine code for x86-64")
    return denormal_code.flush_and_restore()


def c_library() -> denormals.Mode:
    library = denormals._CLibrary()
    return library.flush, library.restore


@pytest.mark.parametrize("kind", [c_library, machine_code])
def test_a_mode_is_restored(kind: Callable[[], denormals.Mode]) -> None:
    flush, restore = kind()
    for _ in range(3):
        assert keeps_denormals()
        before = flush()
        assert before
        try:
            assert not keeps_denormals()
            assert not flush(), "it is so already"
            assert not keeps_denormals()
        finally:
            restore(before)
        assert keeps_denormals()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="machine code for x86-64")
def test_after_many_calls_there_is_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(denormals, "_MANY", 3)
    monkeypatch.setattr(denormals, "mode", first := c_library())
    joins: list[Callable[[float], None]] = []
    monkeypatch.setattr(denormals.atexit, "register", lambda join, _: joins.append(join))
    flush, restore = first
    for _ in range(3):
        restore(flush())
    (join,) = joins
    join(30.0)
    assert denormals.mode is not first
    flush, restore = denormals.mode
    before = flush()
    assert isinstance(before, int)
    restore(before)
    assert keeps_denormals()


def test_a_thread_s_mode_is_its_own() -> None:
    def work() -> bool:
        flush_on_this_thread()
        return keeps_denormals()

    assert not on_a_thread(work)
    assert not on_a_thread(lambda: work() or on_a_thread(keeps_denormals)), "helpers rely on it"
    assert keeps_denormals()
    assert on_a_thread(keeps_denormals)


def test_a_step_on_the_caller_s_thread_gives_its_mode_back() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])
        small, checked = x * 0.1, tf.check_numerics(x * 0.1, "wrong")
        for _ in range(5):
            assert session.run(small, {x: [1e-38]}).tolist() == [0.0]
            assert keeps_denormals()
            with pytest.raises(tf.errors.InvalidArgumentError, match="wrong"):
                session.run(checked, {x: [np.nan]})
            assert keeps_denormals()


def test_what_is_only_moved_keeps_its_bits() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])
        given = np.array([1e-39, -1e-40], np.float32)
        assert session.run(tf.concat([tf.identity(x), x], 0), {x: given}).tobytes() == given.tobytes() * 2


def test_the_threads_of_another_task_flush() -> None:
    spec = {"ps": {0: ""}, "worker": {0: ""}}
    with (
        BackgroundServer(TaskServer(spec, "ps", 0)) as ps,
        BackgroundServer(TaskServer(spec, "worker", 0)) as worker,
        tf.Graph().as_default(),
    ):
        for server in (ps, worker):
            server.update_cluster({"ps": [f"localhost:{ps.port}"], "worker": [f"localhost:{worker.port}"]})
        x = tf.placeholder(tf.float32, [None])
        with tf.device("/job:ps/task:0"):
            small = x * 0.1
        with tf.Session(worker.target) as session:
            for _ in range(5):
                assert session.run(small, {x: [1e-38]}).tolist() == [0.0]


def test_parts_of_a_kernel_flush_on_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "width", lambda: 2)
    monkeypatch.setattr(chunks, "is_crowded", lambda: False)
    met, kept = threading.Barrier(2), {}

    def work(first: int, last: int) -> None:
        if first < 2:  # the first two parts are on two threads
            met.wait(30)
        kept[threading.get_ident()] = keeps_denormals()

    contexts.run(parallel.in_parts, work, 6, 1)
    assert list(kept.values()) == [False] * len(kept)
    assert len(kept) == 2


def test_a_library_that_does_not_do_as_it_is_told_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    library = denormals._CLibrary()
    assert library.works
    assert keeps_denormals(), "trying it changed nothing"
    before = library.flush()
    try:
        assert library.works, "flushed already"
        assert not keeps_denormals()
    finally:
        library.restore(before)

    none = (denormals._nothing, denormals._no_need)
    assert denormals._first_mode() != none
    monkeypatch.setattr(denormals._CLibrary, "works", False)
    assert denormals._first_mode() == none
    library._set = lambda mode: None
    monkeypatch.undo()
    assert not library.works


@pytest.mark.parametrize("error", [AttributeError, OSError])
def test_where_there_is_no_mode_nothing_is_done(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    none = (denormals._nothing, denormals._no_need)
    with monkeypatch.context() as patched:
        patched.setattr(denormals.platform, "machine", lambda: "riscv64")
        assert denormals._first_mode() == none
    with monkeypatch.context() as patched:
        patched.setattr(denormals.sys, "platform", "darwin")
        assert denormals._first_mode() == none

    def refuse(*_: object) -> None:
        raise error("no such function")

    monkeypatch.setattr(denormals.ctypes, "PyDLL", refuse)
    assert denormals._first_mode() == none
    flush, restore = none
    assert flush() is None
    with pytest.raises(AssertionError):
        restore(None)


def test_the_bits_of_each_processor() -> None:
    assert denormals._MODES == {"x86_64": (7, 0x8040), "aarch64": (0, 1 << 24)}


def test_machine_code_is_loaded_once_and_an_error_leaves_the_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[None] = []
    first = denormals.mode
    library = denormals._CLibrary()
    with monkeypatch.context() as patched:
        patched.setattr(denormals, "_MANY", 2)
        patched.setattr(denormals, "_load_beside", lambda: loads.append(None))
        counts = []
        for _ in range(4):
            library.restore(library.flush())
            counts.append(len(loads))
    assert counts == [0, 1, 1, 1]

    def refuse() -> denormals.Mode:
        raise RuntimeError("no code here")

    monkeypatch.setattr(denormal_code, "flush_and_restore", refuse)
    denormals._load()
    assert denormals.mode is first
    monkeypatch.setattr(denormals.platform, "machine", lambda: "aarch64")
    began: list[object] = []
    monkeypatch.setattr(denormals.threading, "Thread", lambda **given: began.append(given))
    denormals._load_beside()
    assert began == [], "there is machine code for x86-64 only"


def test_numbers_are_rounded_to_the_nearest_where_kernels_compute() -> None:
    """Whatever the caller's mode says; afterwards it says so again."""
    flush, restore = machine_code()
    library = ctypes.PyDLL(None)
    one, little = np.ones(1), np.full(1, 1e-30)

    def rounds_up() -> bool:
        return bool((one + little > one)[0])

    assert library.fesetround(0x800) == 0
    try:
        found = [rounds_up()]
        before = flush()
        try:
            found.append(rounds_up())
        finally:
            restore(before)
        found.append(rounds_up())
    finally:
        library.fesetround(0)
    assert found == [True, False, True]
