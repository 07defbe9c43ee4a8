"""Variables, handles and containers: what a reader sees while others write."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_core.variable_memory import LENDABLE, lend
from tenfold_kernels.resources import state
from tenfold_kernels.resources.quota import StateQuota
from tenfold_kernels.resources.state import ResourceHandle, ResourceManager, Variable, locked, reshapes


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


# -- what a manager keeps of its resources -----------------------------------------------------------------------------


def test_a_manager_has_a_quota() -> None:
    quota = StateQuota(5)
    assert ResourceManager(quota=quota).quota is quota
    assert isinstance(ResourceManager().quota, StateQuota)


@pytest.mark.parametrize("lendable", [True, False])
def test_where_references_are_not_counted_each_value_looks_read(
    lendable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "reference_counts_are_exact", lambda: False)
    assert state._own_references(lendable=lendable) == (-1, -1, -1)


class Worker:
    """A resource with work under way."""

    def __init__(self) -> None:
        self.ended = 0
        self.account = StateQuota().account("w")
        self.account.resize(10)

    def end_work(self) -> None:
        self.ended += 1


def test_a_generation_ends_when_a_resource_is_forgotten() -> None:
    manager = ResourceManager("own")
    manager.lookup_or_create("", "w", Variable, made)
    manager.lookup_or_create("c", "w", Variable, made)
    before = manager.generation
    with pytest.raises(errors.NotFoundError, match=r"Resource own/x/Variable does not exist\."):
        manager.delete("", "x", Variable)
    with pytest.raises(errors.NotFoundError, match=r"Resource nowhere/w/Variable does not exist\."):
        manager.delete("nowhere", "w", Variable)
    assert manager.generation == before
    manager.delete("c", "w", Variable)
    assert manager.generation == before + 1
    manager.clear(["c", ""])
    assert manager.generation == before + 2
    assert manager.names() == manager.names("c") == []


def test_resources_of_one_name_and_other_types_are_apart() -> None:
    manager = ResourceManager("own")
    variable = manager.lookup_or_create("", "w", Variable, made)
    worker = manager.lookup_or_create("own", "w", Worker, Worker)
    other = manager.lookup_or_create("c", "a", Worker, Worker)
    assert manager.lookup("own", "w", Variable) is variable
    assert manager.lookup("", "w", Worker) is worker
    assert manager.names() == manager.names("own") == ["w", "w"]
    assert manager.every(Worker) == [worker, other]
    assert manager.every(Variable) == [variable]
    assert manager.every(object) == []


def test_names_are_sorted() -> None:
    manager = ResourceManager()
    for name in ("b", "a", "c"):
        manager.lookup_or_create("", name, Variable, made)
    assert manager.names() == ["a", "b", "c"]


def test_work_is_ended_by_who_asks_for_it() -> None:
    manager = ResourceManager()
    workers = [manager.lookup_or_create(container, "w", Worker, Worker) for container in ("", "c")]
    manager.lookup_or_create("", "v", Variable, made)
    ends = manager.work()
    assert [worker.ended for worker in workers] == [0, 0]
    for end in ends:
        end()
    assert [worker.ended for worker in workers] == [1, 1]


@pytest.mark.parametrize("way", ["delete", "clear"])
def test_what_is_forgotten_gives_back_what_it_takes(way: str) -> None:
    manager = ResourceManager()
    worker = manager.lookup_or_create("", "w", Worker, Worker)
    manager.lookup_or_create("", "no account", ResourceManager, ResourceManager)
    manager.lookup_or_create("c", "w", Worker, Worker)
    if way == "delete":
        manager.delete("", "w", Worker)
    else:
        manager.clear()
    assert worker.account._quota is None
    assert manager.lookup("c", "w", Worker).account._quota is not None


def test_every_field_of_a_handle_travels() -> None:
    proto = ResourceHandle("d", "c", "n", 7, "T").to_proto()
    assert (proto.device, proto.container, proto.name) == ("d", "c", "n")
    assert (proto.hash_code, proto.maybe_type_name) == (7, "T")
    assert ResourceHandle("d", "c", "n") == ResourceHandle("d", "c", "n", 0, "")
    assert not ResourceHandle("d", "c", "n").as_array().flags.writeable


# -- sizes and shapes of variables -------------------------------------------------------------------------------------


def test_what_a_variable_takes() -> None:
    variable = Variable("w", dtypes.float32.as_ref, TensorShape([2]))
    assert (variable.nbytes, variable.dtype) == (0, dtypes.float32)
    with pytest.raises(errors.FailedPreconditionError, match=r"^Attempting to use uninitialized value w$"):
        variable.check_initialized()
    variable.assign(np.ones(2, np.float32))
    variable.check_initialized()
    assert variable.nbytes == 8


def test_another_shape_is_noticed() -> None:
    variable = Variable("w", dtypes.float32, TensorShape(None))
    before = reshapes()
    variable.assign(np.ones(2, np.float32))
    variable.assign(np.ones(2, np.float32))
    variable.assign(np.zeros(2, np.float32), in_place=False)
    variable.adopt(np.ones(2, np.float32))
    assert reshapes() == before
    variable.assign(np.ones(3, np.float32), validate_shape=False)
    assert reshapes() == before + 1
    variable.adopt(np.ones((1, 3), np.float32))
    assert reshapes() == before + 2


def test_an_assignment_says_both_shapes() -> None:
    variable = Variable("w", dtypes.float32, TensorShape([None, 2]))
    with pytest.raises(errors.InvalidArgumentError, match=r"lhs shape= \(\?, 2\) rhs shape= \[3\]$"):
        variable.assign(np.ones(3, np.float32))
    variable.assign(np.ones((1, 2), np.float32))
    with pytest.raises(errors.InvalidArgumentError, match=r"lhs shape= \[1,2\] rhs shape= \[2,2\]$"):
        variable.assign(np.ones((2, 2), np.float32))


def test_an_assignment_may_leave_readers_what_they_have() -> None:
    variable = made()
    view = variable.value
    variable.assign(np.array([5, 6], np.float32), in_place=False)
    assert view.tolist() == [1, 2]
    assert variable.value.tolist() == [5, 6]


def test_what_is_adopted_is_the_value_itself() -> None:
    variable, value = made(), np.array([7, 8], np.float32)
    variable.adopt(value)
    assert np.shares_memory(variable.value, value)
    assert not variable.value.flags.writeable
    assert variable.buffer().flags.writeable


def test_texts_of_a_variable_are_counted_anew() -> None:
    quota = StateQuota()
    variable = Variable("w", dtypes.string, TensorShape([1]), quota.account("w"))
    for text, size in ((b"abc", 67), (b"a", 65), (b"", 64)):
        variable.assign(np.array([text], object))
        assert quota.bytes == size
    variable.adopt(np.array([b"abcd"], object))
    assert quota.bytes == 68
    buffer = variable.buffer()
    assert buffer.tolist() == [b"abcd"]


def test_locks_are_given_back_after_an_error() -> None:
    a, b = made(), made()

    def fail() -> None:
        with locked(a, b):
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert _another_thread_gets(a)
    assert _another_thread_gets(b)


def test_locks_are_taken_in_one_order() -> None:
    a, b = made(), made()
    assert locked(a, b)._variables == locked(b, a)._variables == sorted((a, b), key=id)


def test_one_lock_is_held_while_it_is_asked_for() -> None:
    a, b = made(), made()
    with locked(b):
        assert not _another_thread_gets(b)
        assert _another_thread_gets(a)
    assert _another_thread_gets(b)


# -- large values, which peers may read where they are -----------------------------------------------------------------

LARGE = LENDABLE // 4


def large(value: float, size: int = LARGE) -> np.ndarray:
    return np.full(size, value, np.float32)


@pytest.fixture
def big() -> Variable:
    variable = Variable("w", dtypes.float32, TensorShape(None))
    variable.assign(large(1))
    return variable


def where(variable: Variable) -> int:
    return int(variable.value.__array_interface__["data"][0])


@pytest.mark.skipif(LENDABLE > 1 << 30, reason="nothing is lent where references are not counted")
class TestLarge:
    """Values of `LENDABLE` bytes and more."""

    @pytest.mark.parametrize(("size", "is_lent"), [(LARGE - 1, False), (LARGE, True)])
    @pytest.mark.parametrize("way", ["assign", "adopt"])
    def test_only_a_large_one_is_lent(self, size: int, is_lent: bool, way: str) -> None:
        variable = Variable("w", dtypes.float32, TensorShape(None))
        getattr(variable, way)(large(1, size))
        assert (lend(variable.value) is not None) is is_lent
        assert variable.nbytes == size * 4

    def test_a_reader_writes_nothing(self, big: Variable) -> None:
        assert not big.value.flags.writeable
        assert big.buffer().flags.writeable

    def test_a_lent_value_is_never_written_to(self, big: Variable) -> None:
        before, lease = where(big), lend(big.value)
        assert lease is not None
        big.assign(large(2))
        assert where(big) != before
        assert lease.array().view(np.float32)[0] == 1
        assert not lease.memory.current
        for exclusive in (False, True):
            lease = lend(big.value)
            before = where(big)
            with big.lock:
                buffer = big.buffer(exclusive=exclusive)
                buffer += 1
                del buffer
            assert where(big) != before
            assert lease is not None
            assert lease.array().view(np.float32)[0] == 2 + exclusive
        assert big.value[0] == 4

    def test_a_reader_s_view_stops_only_an_exclusive_writer(self, big: Variable) -> None:
        view, before = big.value, where(big)
        with big.lock:
            big.buffer()[0] = 5
        assert (where(big), view[0]) == (before, 5)
        with big.lock:
            big.buffer(exclusive=True)[0] = 6
        assert view[0] == 5
        assert big.value[0] == 6
        assert big.value[1] == 1, "the rest was copied"

    def test_an_assignment_stays_where_it_is(self, big: Variable) -> None:
        before = where(big)
        big.assign(large(2))
        assert where(big) == before
        view = big.value
        big.assign(large(3), in_place=False)
        assert where(big) != before
        assert (view[0], big.value[0]) == (2, 3)

    def test_a_large_value_is_counted(self) -> None:
        quota = StateQuota(LENDABLE + 8)
        variable = Variable("w", dtypes.float32, TensorShape(None), quota.account("w"))
        variable.assign(large(1))
        assert quota.bytes == LENDABLE
        with pytest.raises(errors.ResourceExhaustedError, match="with 'w'"):
            variable.adopt(large(1, LARGE + 3))
        assert variable.value.size == LARGE
        before = reshapes()
        variable.assign(large(1, LARGE + 2), validate_shape=False)
        assert (quota.bytes, reshapes()) == (LENDABLE + 8, before + 1)
        variable.assign(large(1, 1), validate_shape=False)
        assert (quota.bytes, reshapes()) == (4, before + 2)

    def test_small_again_it_leaves_its_memory(self, big: Variable) -> None:
        lease = lend(big.value)
        assert lease is not None
        big.assign(large(2, 1), validate_shape=False)
        assert not lease.memory.current
        assert lend(big.value) is None


class SharedBlock:
    """Memory that peers map."""

    offset = 0

    def __init__(self, nbytes: int) -> None:
        self.array = np.empty(nbytes, np.uint8)


class Shared:
    """Shared memory, or none of it."""

    def __init__(self, there: bool = True) -> None:
        self.there = there
        self.asked: list[int] = []

    def __call__(self, nbytes: int) -> SharedBlock | None:
        self.asked.append(nbytes)
        return SharedBlock(nbytes) if self.there else None


def ask_for_sharing(variable: Variable, shared: Shared) -> None:
    """As a link that had to copy the value twice."""
    memory = variable._memory
    assert memory is not None
    memory.request_shared(shared)
    assert not memory.to_be_shared, "once may be chance"
    memory.request_shared(shared)
    assert memory.to_be_shared


@pytest.mark.skipif(LENDABLE > 1 << 30, reason="nothing is lent where references are not counted")
class TestShared:
    """Values that a link asks for in shared memory."""

    def test_a_value_moves_with_its_next_reader(self, big: Variable) -> None:
        shared = Shared()
        ask_for_sharing(big, shared)
        assert big.value[0] == 1
        assert shared.asked == [LENDABLE]
        memory = big._memory
        assert memory is not None
        assert memory.block is not None
        assert not memory.to_be_shared
        with big.lock:
            big.buffer()[0] = 3
        assert big.value[:2].tolist() == [3, 1]

    def test_a_value_that_is_read_does_not_move(self, big: Variable) -> None:
        shared = Shared()
        view = big.value
        ask_for_sharing(big, shared)
        assert np.shares_memory(big.value, view)
        assert shared.asked == []
        del view
        assert big.value[0] == 1
        assert shared.asked == [LENDABLE]

    def test_a_value_that_is_written_does_not_move(self, big: Variable) -> None:
        shared, found = Shared(), []
        ask_for_sharing(big, shared)
        with big.lock:
            thread = threading.Thread(target=lambda: found.append(float(big.value[0])))
            thread.start()
            thread.join(10)
        assert (found, shared.asked) == ([1.0], [])
        assert _another_thread_gets(big)

    def test_a_writer_moves_it_too(self, big: Variable) -> None:
        shared = Shared()
        ask_for_sharing(big, shared)
        with big.lock:
            big.buffer()[0] = 3
        assert shared.asked == [LENDABLE]
        assert big.value[:2].tolist() == [3, 1]
        assert big._memory is not None
        assert big._memory.block is not None

    def test_where_there_is_no_shared_memory_it_stays(self, big: Variable) -> None:
        shared, before = Shared(there=False), where(big)
        ask_for_sharing(big, shared)
        assert where(big) == before
        assert big._memory is not None
        assert not big._memory.to_be_shared, "it is not asked for again with each reader"
        assert shared.asked == [LENDABLE]
        assert _another_thread_gets(big)

    def test_the_next_value_is_shared_as_well(self, big: Variable) -> None:
        shared = Shared()
        ask_for_sharing(big, shared)
        assert big.value[0] == 1
        lease = lend(big.value)
        big.assign(large(2))
        assert lease is not None
        assert shared.asked == [LENDABLE] * 2
        assert big.value[0] == 2
        shared.there = False
        lease = lend(big.value)
        big.assign(large(3))
        assert shared.asked == [LENDABLE] * 3
        assert big._memory is not None
        assert big._memory.block is None, "there was none: memory of this process"
        assert big.value[0] == 3
