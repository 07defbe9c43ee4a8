"""A stretch of a step is recorded once its shapes stand still, and launched again with other values; what cannot be
recorded, or has moved since, runs node by node.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.gpu_programs import with_gpus
from support.kernel_runs import DEVICE
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.cuda import _loops, _replaying
from tenfold_kernels.cuda._replaying import Replayed
from tenfold_kernels.cuda._runtime import runtime
from tenfold_kernels.cuda._variables import DeviceVariable
from tenfold_kernels.cuda.loop_text import Loop
from tenfold_kernels.fusion.runs import FusedOp
from tenfold_kernels.resources.state import ResourceManager

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.cuda._arrays import DeviceArray

_ADD = partial(Loop, steps=(FusedOp("Add", (), (("input", 0), ("input", 1)), np.dtype(np.float32)),), outputs=(0,))
GPU = DEVICE.replace("CPU", "GPU")
#: Calls after which a stretch is launched as a whole.
SOME = _replaying._CALLS_BEFORE + 3


def on_gpu(*values: float) -> DeviceArray:
    return runtime(0).to_device(np.array(values, np.float32))


def variable_of(*values: float, by_value: bool = False) -> DeviceVariable:
    """A reference variable; a resource variable to `by_value`."""
    made = DeviceVariable(runtime(0), "v", dtypes.float32, TensorShape(None), by_value=by_value)
    made.assign(on_gpu(*values))
    return made


def launches_of(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each call whose shapes are recorded, whether it was launched as a whole."""
    found: list[bool] = []
    replay = Replayed._replay

    def noted(self: Replayed, recorded: Any, inputs: Any) -> Any:
        given = replay(self, recorded, inputs)
        if self is replayed:
            found.append(given is not None)
        return given

    monkeypatch.setattr(Replayed, "_replay", noted)
    return found


def added(variable: DeviceVariable) -> Callable[[DeviceArray], DeviceArray]:
    """Nodes that read a resource variable, add x to it in place, and give what was read."""

    def nodes(x: DeviceArray) -> DeviceArray:
        before = variable.snapshot()
        update(variable, x)
        return doubled(before)

    return nodes


def update(variable: DeviceVariable, x: DeviceArray) -> None:
    with variable.lock:
        _loops.run_loop(_ADD, [variable.buffer(exclusive=True), x], into=[variable.buffer()])


def doubled(x: DeviceArray) -> DeviceArray:
    """Copies x twice over, which is something to record."""
    out = runtime(0).empty((2, *x.shape), x.dtype)
    runtime(0).copy(x, out.rows(0, 1))
    runtime(0).copy(x, out.rows(1, 2))
    return out


def test_other_values_of_the_same_shape_are_computed_with() -> None:
    calls: list[int] = []

    def nodes(x: DeviceArray) -> DeviceArray:
        calls.append(1)
        return doubled(x)

    replayed = Replayed(nodes, 1, runtime(0), ResourceManager())
    kept = [replayed(on_gpu(float(number), 1.0)) for number in range(10)]

    assert [each.to_host()[1, 0] for each in kept] == list(range(10))
    assert len(calls) == SOME - 2


def test_each_shape_has_its_recording() -> None:
    replayed = Replayed(doubled, 1, runtime(0), ResourceManager())

    for number in range(3 * SOME):
        values = [float(number)] * (1 + number % 2)
        assert replayed(on_gpu(*values)).to_host().tolist() == [values, values]


def test_a_recording_is_for_the_values_of_the_host_that_it_was_made_with(monkeypatch: pytest.MonkeyPatch) -> None:
    def nodes(x: DeviceArray, row: Any) -> DeviceArray:
        return doubled(x.rows(int(row), int(row) + 1))

    replayed = Replayed(nodes, 1, runtime(0), ResourceManager())
    launched = launches_of(replayed, monkeypatch)
    for number in range(3 * SOME):
        # another array each time
        found = replayed(on_gpu(1.0 + number, -1.0), np.array(number % 2, np.int32))
        assert found.to_host()[1].tolist() == [-1.0 if number % 2 else 1.0 + number]

    assert len(launched) > SOME
    assert all(launched)


def test_what_the_host_has_for_all_launches_is_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[DeviceArray] = []

    def nodes(x: DeviceArray) -> DeviceArray:
        made.append(runtime(0).keep(np.float32([10.0])))
        out = runtime(0).empty((1,), x.dtype)
        _loops.run_loop(_ADD, [x, made[-1]], into=[out])
        return out

    replayed = Replayed(nodes, 1, runtime(0), ResourceManager())
    launched = launches_of(replayed, monkeypatch)
    found = [replayed(on_gpu(float(number))).to_host()[0] for number in range(2 * SOME)]

    assert found == [10.0 + number for number in range(2 * SOME)]
    assert all(launched)
    assert len(made) == SOME - 2


def test_a_variable_is_read_and_written_where_it_is() -> None:
    variable = variable_of(1.0)

    def nodes(x: DeviceArray) -> DeviceArray:
        old = doubled(variable.value)
        runtime(0).copy(x, variable.buffer())
        return old

    replayed = Replayed(nodes, 1, runtime(0), ResourceManager())
    found = [replayed(on_gpu(float(number))).to_host()[0, 0] for number in range(2, 12)]

    assert found == [1.0, *range(2, 11)]
    assert variable.value.to_host().tolist() == [11.0]


def test_a_variable_that_has_moved_is_found_where_it_is_now() -> None:
    variable = variable_of(1.0)
    replayed = Replayed(lambda: doubled(variable.value), 1, runtime(0), ResourceManager())
    for _ in range(SOME):
        replayed()

    variable.adopt(on_gpu(5.0))
    moved = [replayed().to_host()[0, 0] for _ in range(2 * SOME)]

    assert set(moved) == {5.0}


def test_nodes_that_move_their_variable_are_not_recorded() -> None:
    variable = variable_of(1.0)

    def nodes(x: DeviceArray) -> DeviceArray:
        variable.adopt(doubled(x).rows(0, 1).reshape(x.shape))
        return doubled(variable.value)

    replayed = Replayed(nodes, 1, runtime(0), ResourceManager())
    found = [replayed(on_gpu(float(number))).to_host()[0, 0] for number in range(10)]

    assert found == list(range(10))
    assert variable.value.to_host().tolist() == [9.0]


def test_a_value_that_is_read_before_an_update_stays_what_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    variable = variable_of(0.0, by_value=True)
    replayed = Replayed(added(variable), 1, runtime(0), ResourceManager())
    launched = launches_of(replayed, monkeypatch)
    found = [replayed(on_gpu(1.0)) for _ in range(SOME)]
    where = variable.held()
    found += [replayed(on_gpu(1.0)) for _ in range(SOME)]

    assert [each.to_host()[0, 0] for each in found] == list(range(2 * SOME))
    assert launched
    assert all(launched)
    assert variable.held() is where


def test_what_somebody_holds_of_a_variable_is_not_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    variable = variable_of(0.0, by_value=True)
    replayed = Replayed(added(variable), 1, runtime(0), ResourceManager())
    launched = launches_of(replayed, monkeypatch)
    for _ in range(SOME):
        replayed(on_gpu(1.0))
    launched.clear()

    held = variable.snapshot()
    found = [replayed(on_gpu(1.0)) for _ in range(2)]

    assert held.to_host().tolist() == [SOME]
    # the nodes have moved the variable, which is still held where the recording wants it
    assert launched == [False, False]
    del held
    found += [replayed(on_gpu(1.0)) for _ in range(2)]
    assert launched[2:] == [True, True]
    assert [each.to_host()[0, 0] for each in found] == [SOME, SOME + 1, SOME + 2, SOME + 3]
    assert variable.value.to_host().tolist() == [SOME + 4]


def test_a_resource_variable_that_has_moved_is_brought_back(monkeypatch: pytest.MonkeyPatch) -> None:
    variable = variable_of(0.0, by_value=True)
    replayed = Replayed(added(variable), 1, runtime(0), ResourceManager())
    launched = launches_of(replayed, monkeypatch)
    for _ in range(SOME):
        replayed(on_gpu(1.0))

    for number in range(3 * _replaying._MOST_LOST):
        held = variable.snapshot()
        variable.assign(on_gpu(float(number)), in_place=False)
        assert held.to_host().tolist() == [number if number else SOME]
        del held
        assert replayed(on_gpu(1.0)).to_host()[0, 0] == number
    assert all(launched)


def test_a_resource_variable_of_another_shape_is_recorded_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    variable = variable_of(0.0, by_value=True)
    replayed = Replayed(added(variable), 1, runtime(0), ResourceManager())
    launched = launches_of(replayed, monkeypatch)
    for _ in range(SOME):
        replayed(on_gpu(1.0))

    variable.assign(on_gpu(5.0, 6.0), validate_shape=False, in_place=False)
    found = [replayed(on_gpu(1.0, 1.0)).to_host()[0].tolist() for _ in range(SOME)]

    assert found == [[5.0 + number, 6.0 + number] for number in range(SOME)]
    assert launched[-1]


def test_an_assignment_leaves_a_resource_variable_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    variable = variable_of(0.0, by_value=True)

    def nodes(x: DeviceArray) -> DeviceArray:
        before = variable.snapshot()
        variable.assign(x, validate_shape=False, in_place=False)
        return doubled(before)

    replayed = Replayed(nodes, 1, runtime(0), ResourceManager())
    launched = launches_of(replayed, monkeypatch)
    found = [replayed(on_gpu(float(number))) for number in range(1, 2 * SOME)]

    assert [each.to_host()[0, 0] for each in found] == list(range(2 * SOME - 1))
    assert launched
    assert all(launched)


def test_nodes_that_wait_for_the_gpu_are_not_recorded() -> None:
    def nodes(x: DeviceArray) -> Any:
        return doubled(on_gpu(*x.to_host().tolist()))

    replayed = Replayed(nodes, 1, runtime(0), ResourceManager())

    for number in range(10):
        assert replayed(on_gpu(float(number))).to_host()[0, 0] == number


def test_an_error_while_it_is_recorded_is_the_steps() -> None:
    count = 0

    def nodes(x: DeviceArray) -> DeviceArray:
        nonlocal count
        count += 1
        if count == SOME - 2:
            raise ValueError("this once")
        return doubled(x)

    replayed = Replayed(nodes, 1, runtime(0), ResourceManager())
    for number in range(SOME - 3):
        replayed(on_gpu(float(number)))

    with pytest.raises(ValueError, match="this once"):
        replayed(on_gpu(1.0))
    assert replayed(on_gpu(7.0)).to_host()[0, 0] == 7.0


def test_a_reset_of_the_resources_voids_a_recording() -> None:
    resources, calls = ResourceManager(), []

    def nodes(x: DeviceArray) -> DeviceArray:
        calls.append(1)
        return doubled(x)

    replayed = Replayed(nodes, 1, runtime(0), resources)
    for _ in range(SOME):
        replayed(on_gpu(1.0))
    before = len(calls)

    resources.clear()
    replayed(on_gpu(2.0))

    assert len(calls) == before + 1


def test_where_there_is_no_room_for_a_recording_the_nodes_run(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu: Any = runtime(0)

    def nodes(x: DeviceArray) -> DeviceArray:
        if gpu.recording() is not None:
            raise errors.ResourceExhaustedError(None, None, "no room beside the pool")
        return doubled(x)

    replayed = Replayed(nodes, 1, gpu, ResourceManager())

    for number in range(2 * SOME):
        assert replayed(on_gpu(float(number))).to_host()[1, 0] == number


def test_a_launch_that_has_no_room_for_what_it_gives_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu: Any = runtime(0)
    variable = variable_of(0.0, by_value=True)
    replayed = Replayed(added(variable), 1, gpu, ResourceManager())
    for _ in range(SOME):
        replayed(on_gpu(1.0))
    x = on_gpu(1.0)

    def full(shape: Any, dtype: Any) -> Any:
        raise errors.ResourceExhaustedError(None, None, "no room")

    with monkeypatch.context() as patch:
        patch.setattr(gpu, "empty", full)
        with pytest.raises(errors.ResourceExhaustedError):
            replayed(x)

    assert variable.value.to_host().tolist() == [SOME]
    assert replayed(x).to_host()[0, 0] == SOME


def test_more_shapes_than_are_kept_are_not_recorded_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_replaying, "_KEPT", 1)
    monkeypatch.setattr(_replaying, "_COUNTED", 4)
    made: list[int] = []

    def nodes(x: DeviceArray) -> DeviceArray:
        if runtime(0).recording() is not None:
            made.append(x.size)
        return doubled(x)

    replayed = Replayed(nodes, 1, runtime(0), ResourceManager())
    for number in range(40 * SOME):
        values = [float(number)] * (1 + number // SOME % 3)
        assert replayed(on_gpu(*values)).to_host().tolist() == [values, values]

    assert len(made) == 2 + _replaying._MOST_LOST
    for size in range(1, 10):
        replayed(on_gpu(*[1.0] * size))
    assert len(replayed._calls) <= 4


def test_recordings_are_forgotten_where_there_is_no_more_memory(simulated: bool) -> None:
    if not simulated:
        pytest.skip("counts the memory of a simulated GPU")
    with with_gpus(1, memory=1 << 16):
        gpu: Any = runtime(0)
        replayed = Replayed(doubled, 1, gpu, ResourceManager())
        for number in range(SOME):
            assert replayed(on_gpu(*[float(number)] * 1024)).to_host()[1, 0] == number
        kept = gpu.memory_info()[0]

        large = gpu.empty((gpu.memory // 4 - 1024,), np.dtype(np.float32))

        assert kept == 3 * 4096
        assert gpu.memory_info()[0] == large.nbytes
        del large
        # recorded again
        calls = [replayed(on_gpu(*[float(number)] * 1024)).to_host()[1, 0] for number in range(SOME)]
        assert calls == list(range(SOME))
        assert gpu.memory_info()[0] == kept
