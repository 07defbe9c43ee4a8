"""Copies between the host and a GPU give what was there when they were called, by streams that run late and anyhow."""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.fake_cupy import FakeGPU
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.cuda import copies, joined_copies
from tenfold_kernels.cuda._launch import Kernel
from tenfold_kernels.cuda._replaying import Replayed
from tenfold_kernels.cuda._variables import DeviceVariable
from tenfold_kernels.resources.state import ResourceManager

if TYPE_CHECKING:
    from tenfold_kernels.cuda._arrays import DeviceArray

#: Elements: none, taken along with the command, pinned, beside the kernels, in several pieces.
SIZES = (0, 3, 50, 200, 1000)


def gpu_of(patch: pytest.MonkeyPatch, seed: int, **limits: int) -> FakeGPU:
    gpu = FakeGPU(patch, seed, **limits)
    for name, value in (("_DIRECT", 64), ("_PINNED_FROM", 64), ("_BESIDE", 512), ("_STAGED_PIECE", 1024)):
        patch.setattr(gpu.module, name, value)
    return gpu


def doubled(gpu: FakeGPU, x: DeviceArray) -> DeviceArray:
    """A kernel."""
    out: Any = gpu.empty(x.shape, x.dtype)
    given, made = (each.buffer.memory and each.buffer.memory.data.view(x.dtype) for each in (x, out))
    if given is not None:
        gpu.lane.stream.put(lambda: np.multiply(given, 2, out=made))
    return out  # type: ignore[no-any-return]


@pytest.mark.parametrize("pinned_bytes", [1 << 40, 4000, 0])
def test_what_is_copied_is_what_was_there(monkeypatch: pytest.MonkeyPatch, pinned_bytes: int) -> None:
    for seed in range(5):
        gpu = gpu_of(monkeypatch, seed, pinned_bytes=pinned_bytes)
        for step in range(3):
            for size in SIZES:
                source = np.arange(size) + step
                x = gpu.copies.to_device(source)
                source[...] = -1
                y = doubled(gpu, x)
                del x
                assert gpu.copies.to_host(y).tolist() == [2 * (number + step) for number in range(size)]


def test_feeds_that_nobody_waits_for_do_not_overwrite_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(10):
        gpu = gpu_of(monkeypatch, seed)
        made = []
        for step in range(6):
            made.append(doubled(gpu, gpu.copies.to_device(np.full(100, step))))

        assert [gpu.copies.to_host(each)[0] for each in made] == [2 * step for step in range(6)]


def test_pinned_memory_is_of_a_few_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = gpu_of(monkeypatch, 0)

    made = {size: gpu.module._pinned(size).size for size in range(8000, 16000, 50)}

    assert all(size <= kept <= size * 5 // 4 + 512 for size, kept in made.items())
    assert len(set(made.values())) <= 8


def test_a_scalar_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = gpu_of(monkeypatch, 0)

    assert gpu.copies.to_host(gpu.copies.to_device(np.array(7.0))).shape == ()


def test_what_is_kept_for_copies_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = gpu_of(monkeypatch, 0)
    gpu.copies.to_device(np.zeros(100))

    assert gpu.copies.give_back()
    assert not gpu.copies.give_back()


def test_a_copy_that_has_begun_waits_for_its_kernel_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = gpu_of(monkeypatch, 0)
    ran: list[str] = []
    x = gpu.copies.to_device(np.arange(200))
    y = doubled(gpu, x)
    begun = gpu.copies.begin_to_host(y)
    gpu.lane.stream.put(lambda: ran.append("the next kernel"))
    del x, y

    kernels = gpu.lane.stream
    others = [stream for stream in gpu.streams if stream is not kernels]
    while not begun.event.done:
        if not any(stream.run_one() for stream in others):
            assert len(kernels.work) > 1, "it waits for the next kernel"
            kernels.run_one()

    assert begun.to_host().tolist() == [2 * number for number in range(200)]
    assert not ran


def test_copies_that_have_begun_and_that_nobody_reads_are_kept_until_they_are_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu = gpu_of(monkeypatch, 0)
    gpu.copies.begin_to_host(gpu.copies.to_device(np.arange(200)))
    assert len(gpu.copies._begun) == 1

    assert gpu.copies.to_host(gpu.copies.to_device(np.arange(3))).tolist() == [0, 1, 2]
    while any(stream.run_one() for stream in gpu.streams):
        pass
    gpu.copies.to_host(gpu.copies.to_device(np.arange(3)))

    assert not gpu.copies._begun


def test_copies_for_other_tasks_begin_between_the_graphs_of_a_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = gpu_of(monkeypatch, 0)
    runtime = driver_of(gpu, monkeypatch, between=2)
    ran: list[str] = []
    x = runtime.to_device(np.zeros(200))
    (first, last), recording = runtime.record(lambda: backward(runtime, x, ran))
    assert not ran

    recording.launch()
    early, late = first.now, last.now
    kernels = runtime.stream
    while not early.event.done:
        if not any(stream.run_one() for stream in gpu.streams if stream is not kernels):
            kernels.run_one()

    assert ran[:2] == ["0", "1"]
    assert "3" not in ran, "it has waited for what comes after its kernel"
    assert early.to_host().tolist() == [1.0] * 200
    assert late.to_host().tolist() == [3.0] * 200


def test_a_launch_does_not_overwrite_what_the_one_before_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(10):
        gpu = gpu_of(monkeypatch, seed)
        runtime = driver_of(gpu, monkeypatch, between=2)
        x = runtime.to_device(np.zeros(200))
        given, recording = runtime.record(lambda: backward(runtime, x, []))  # noqa: B023 # called before the next turn
        begun = []
        for step in range(4):
            runtime.copy(runtime.to_device(np.full(200, float(step))), x)
            recording.launch()
            begun.append([each.now for each in given])

        for step, both in enumerate(begun):
            assert [each.to_host()[0] for each in both] == [step + 1.0, step + 3.0]


def test_a_variable_that_is_sent_is_sent_as_it_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(5):
        gpu = gpu_of(monkeypatch, seed)
        runtime = driver_of(gpu, monkeypatch, between=1)
        variable = DeviceVariable(runtime, "v", dtypes.float64, TensorShape([200]), by_value=True)
        variable.assign(runtime.to_device(np.zeros(200)))
        x = runtime.to_device(np.zeros(200))

        def nodes() -> Any:
            kernel(runtime, x, x, "")  # noqa: B023 # called before the next turn
            read = variable.snapshot()  # noqa: B023
            begun = copies.begin(read)
            held = variable.buffer(exclusive=True)  # noqa: B023
            kernel(runtime, held, held, "")  # noqa: B023
            return begun

        begun, recording = runtime.record(nodes)
        sent = []
        for _ in range(3):
            recording.launch()
            sent.append(begun.now)

        assert [each.to_host()[0] for each in sent] == [0.0, 1.0, 2.0]
        assert runtime.to_host(variable.value)[0] == 3.0


def test_what_a_recording_has_freed_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = gpu_of(monkeypatch, 0)
    runtime = driver_of(gpu, monkeypatch, between=100)
    x = runtime.to_device(np.zeros(200))
    (_, last), recording = runtime.record(lambda: backward(runtime, x, []))

    # what a pool does that has no more room
    recording.pool.free_all_blocks()
    # of the pool, where the recording's own memory came from
    others = [runtime.to_device(np.full(200, 7.0)) for _ in range(8)]
    recording.launch()

    assert last.now.to_host()[0] == 3.0
    assert [runtime.to_host(each)[0] for each in others] == [7.0] * 8


def test_steps_that_nobody_waits_for_give_what_they_give_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    # no kernels are compiled here
    monkeypatch.setattr(joined_copies, "_LEAST", 1 << 30)
    for seed in range(5):
        gpu = gpu_of(monkeypatch, seed)
        runtime = driver_of(gpu, monkeypatch, between=2)
        variable = DeviceVariable(runtime, "v", dtypes.float64, TensorShape([200]), by_value=True)
        variable.assign(runtime.to_device(np.zeros(200)))

        def nodes(x: Any) -> Any:
            before = variable.snapshot()  # noqa: B023 # called before the next turn
            held = variable.buffer(exclusive=True)  # noqa: B023
            kernel(runtime, held, held, "")  # noqa: B023
            out, other = (runtime.empty(x.shape, x.dtype) for _ in range(2))  # noqa: B023
            kernel(runtime, x, out, "")  # noqa: B023
            kernel(runtime, before, other, "")  # noqa: B023
            return copies.begin(out), other, before

        replayed = Replayed(nodes, 3, runtime, ResourceManager())
        given, kept = [], []
        for step in range(12):
            given.append(replayed(runtime.to_device(np.full(200, float(step)))))
            if step % 3 == 2:
                kept.append(variable.snapshot())

        for step, (sent, other, before) in enumerate(given):
            found = [sent.to_host()[0], *(runtime.to_host(each)[0] for each in (other, before))]
            assert found == [step + 1.0, step + 1.0, step]
        assert [runtime.to_host(each)[0] for each in kept] == [3.0, 6.0, 9.0, 12.0]


def test_a_recording_keeps_the_kernels_that_it_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    class Function:
        """A module's function: the module is unloaded with it."""

        def __call__(self, *arguments: Any, **named: Any) -> None:
            pass

    runtime = driver_of(gpu_of(monkeypatch, 0), monkeypatch, between=100)
    function = Function()
    loaded = weakref.ref(function)
    cache = [Kernel(lambda: None, (), {0: function})]
    del function

    _, recording = runtime.record(lambda: runtime.launch(cache[0], 1, 1, ()))
    # forgotten by who has made it, as a cache does that has no room
    cache.clear()

    assert loaded() is not None
    del recording
    assert loaded() is None


def driver_of(gpu: FakeGPU, patch: pytest.MonkeyPatch, between: int) -> Any:
    """A runtime, whose recordings are cut after so many launches."""
    runtime = gpu.driver(patch)
    patch.setattr(sys.modules[type(runtime).__module__], "_LAUNCHES_BETWEEN_COPIES", between)
    return runtime


def backward(runtime: Any, x: Any, ran: list[str]) -> Any:
    """Four kernels in a row, each x + 1, of which the first and the third go to another task."""
    made = []
    for number in range(4):
        out = runtime.empty(x.shape, x.dtype)
        kernel(runtime, x, out, str(number), ran)
        if number in (0, 2):
            made.append(copies.begin(out))
        # a kernel more than needed, into memory that is free again
        kernel(runtime, x, runtime.empty(x.shape, x.dtype), str(number), [])
        x = out
    return made


def kernel(runtime: Any, x: Any, out: Any, name: str, ran: list[str] | None = None) -> None:
    """x + 1"""
    given, made = (each.buffer.memory.data.view(x.dtype) for each in (x, out))

    def work() -> None:
        np.add(given, 1, out=made)
        if ran is not None:
            ran.append(name)

    with runtime.current():
        runtime.current_stream().put(work)
