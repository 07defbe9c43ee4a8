"""Variables, handles and containers: what a reader sees while others write."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.state import ResourceHandle, ResourceManager, Variable, locked


def made(value: object = (1.0, 2.0), shape: object = None) -> Variable:
    array = np.array(value, dtype=np.float32)
    variable = Variable("w", dtypes.float32, TensorShape(array.shape if shape is None else shape))
    variable.assign(array)
    return variable


def test_an_uninitialized_value_is_an_error_in_tensorflows_words() -> None:
    variable = Variable("w", dtypes.float32, TensorShape([2]))

    assert not variable.is_initialized
    for read in (lambda: variable.value, variable.snapshot, variable.buffer):
        with pytest.raises(errors.FailedPreconditionError, match=r"^Attempting to use uninitialized value w$"):
            read()


def test_values_are_read_only_and_alias_the_variable() -> None:
    variable = made()
    view = variable.value

    variable.assign(np.array([5, 6], dtype=np.float32))

    assert view.tolist() == [5, 6]
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1


def test_assign_copies_what_it_is_given() -> None:
    variable, source = made(), np.array([3, 4], dtype=np.float32)

    variable.assign(source)
    source[:] = 0

    assert variable.value.tolist() == [3, 4]


@pytest.mark.parametrize("view", [lambda v: v, lambda v: v[1:], lambda v: v.reshape(2, 1).T, np.ravel, memoryview])
def test_an_exclusive_buffer_leaves_living_snapshots_alone(view: object) -> None:
    variable = made()
    snapshot = view(variable.snapshot())  # type: ignore[operator]
    before = np.array(snapshot)

    with variable.lock:
        variable.buffer(exclusive=True)[...] += 10

    assert np.array_equal(np.array(snapshot), before)
    assert variable.value.tolist() == [11, 12]


def test_an_exclusive_buffer_is_not_copied_without_readers() -> None:
    variable = made()
    first = variable.buffer(exclusive=True).ctypes.data

    variable.snapshot()
    second = variable.buffer(exclusive=True).ctypes.data

    assert first == second


@pytest.mark.parametrize(
    ("declared", "held", "new", "validate", "fits"),
    [
        ([2], None, [2], True, True),
        ([2], None, [3], True, False),
        ([None], None, [3], True, True),
        ([None, 2], None, [3], True, False),
        (None, None, [3], True, True),
        ([2], [2], [3], True, False),
        ([2], [2], [3], False, True),
        (None, [2], [3], True, False),
    ],
)
def test_shapes_of_assignments(declared: object, held: object, new: list[int], validate: bool, fits: bool) -> None:
    variable = Variable("w", dtypes.float32, TensorShape(declared))
    if held is not None:
        variable.assign(np.zeros(held, np.float32))
    value = np.ones(new, np.float32)

    if fits:
        variable.assign(value, validate_shape=validate)
        assert variable.value.shape == tuple(new)
    else:
        with pytest.raises(errors.InvalidArgumentError, match=r"Assign requires shapes of both tensors to match\. lhs"):
            variable.assign(value, validate_shape=validate)


def test_locked_takes_several_and_the_same_one_twice() -> None:
    a, b = made(), made()

    with locked(a, b, a):
        assert not _another_thread_gets(a)
    assert _another_thread_gets(a)


def _another_thread_gets(variable: Variable) -> bool:
    got: list[bool] = []

    def attempt() -> None:
        got.append(variable.lock.acquire(blocking=False))
        if got[0]:
            variable.lock.release()

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join(10)
    return got[0]


def test_a_factory_runs_once_however_many_threads_ask() -> None:
    manager, gate, calls = ResourceManager(), threading.Barrier(8), []

    def factory() -> Variable:
        calls.append(1)
        return made()

    def ask(found: list[Variable]) -> None:
        gate.wait(10)
        found.append(manager.lookup_or_create("", "w", Variable, factory))

    found: list[Variable] = []
    threads = [threading.Thread(target=ask, args=(found,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert len(calls) == 1
    assert len({id(v) for v in found}) == 1


def test_containers_are_apart_and_cleared_by_name() -> None:
    manager = ResourceManager()
    default = manager.lookup_or_create("", "w", Variable, made)
    other = manager.lookup_or_create("c", "w", Variable, made)

    assert default is not other
    assert manager.lookup("localhost", "w", Variable) is default
    manager.clear(["c"])
    assert manager.lookup("", "w", Variable) is default
    with pytest.raises(errors.NotFoundError, match=r"Resource c/w/Variable does not exist\."):
        manager.lookup("c", "w", Variable)
    manager.clear()
    assert manager.names() == []


def test_delete_forgets_and_then_does_not_find() -> None:
    manager = ResourceManager()
    manager.lookup_or_create("", "w", Variable, made)

    manager.delete("", "w", Variable)

    with pytest.raises(errors.NotFoundError):
        manager.delete("", "w", Variable)


def test_a_handle_survives_the_wire() -> None:
    handle = ResourceHandle("/job:ps/replica:0/task:0/device:CPU:0", "c", "w", 7, "Variable")

    assert ResourceHandle.from_proto(handle.to_proto()) == handle
    assert handle.as_array()[()] is handle
