"""What variables, queues, tables and their kin take of their task: charged before it is there, given back once."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.accumulators import DenseAccumulator, SparseAccumulator
from tenfold_kernels.resources.barriers import Barrier
from tenfold_kernels.resources.lookup_tables import Table
from tenfold_kernels.resources.quota import BYTES_PER_SESSION, StateQuota, size_of
from tenfold_kernels.resources.staging import StagingArea, StagingMap
from tenfold_kernels.resources.state import ResourceManager, Variable


def test_a_session_is_part_of_its_task() -> None:
    whole = StateQuota(100)
    one, other = (StateQuota(80, variable=BYTES_PER_SESSION, whole=whole) for _ in range(2))
    one.account("a").resize(70)
    with pytest.raises(errors.ResourceExhaustedError, match=r"with 'b' .* 140 bytes; 80 is .*BYTES_PER_SESSION"):
        one.account("b").resize(70)
    with pytest.raises(errors.ResourceExhaustedError, match=r"with 'c' .* 110 bytes; 100 is .*STATE_BYTES in"):
        other.account("c").resize(40)
    assert (one.bytes, other.bytes, whole.bytes) == (70, 0, 70)
    one.close()
    one.close()
    assert whole.bytes == 0
    other.account("c").resize(40)
    assert whole.bytes == 40


def test_an_account_that_is_closed_takes_and_gives_nothing() -> None:
    quota = StateQuota(100)
    account = quota.account("a")
    account.resize(60)
    account.resize(20)
    assert quota.bytes == 20
    account.close()
    account.close()
    account.resize(1000)
    account.add(1000)
    account.check(1000)
    assert quota.bytes == 0


def test_queues_are_counted_in_both() -> None:
    whole = StateQuota(most_queues=3)
    one = StateQuota(most_queues=2, whole=whole)
    accounts = [one.queue_account("q") for _ in range(2)]
    with pytest.raises(errors.ResourceExhaustedError, match="2 queues; 2 is the limit, and TENFOLD_TASK_QUEUES"):
        one.queue_account("q")
    whole.queue_account("q")
    accounts[0].close()
    whole.queue_account("q")
    with pytest.raises(errors.ResourceExhaustedError, match="There are 3 queues; 3 is the limit"):
        one.queue_account("q")


def test_a_variable_that_would_be_too_large_keeps_its_value() -> None:
    quota = StateQuota(1000)
    variable = Variable("v", dtypes.float32, TensorShape(None), quota.account("v"))
    variable.assign(np.ones(100, np.float32))
    for too_large in (np.ones(1000, np.float32), np.ones(100_000, np.float32)):
        with pytest.raises(errors.ResourceExhaustedError, match="with 'v'"):
            variable.assign(too_large, validate_shape=False)
        with pytest.raises(errors.ResourceExhaustedError, match="with 'v'"):
            variable.adopt(too_large)
    assert variable.value.sum() == 100
    assert quota.bytes == 400
    variable.assign(np.ones(10, np.float32), validate_shape=False)
    assert quota.bytes == 40


def test_what_is_forgotten_is_free() -> None:
    quota = StateQuota(1000)
    resources = ResourceManager(quota=quota)
    for container, name in (("", "a"), ("", "b"), ("other", "c")):
        found = resources.lookup_or_create(
            container,
            name,
            Variable,
            lambda: Variable("v", dtypes.float32, TensorShape(None), quota.account("v")),
        )
        found.assign(np.ones(10, np.float32))
    assert quota.bytes == 120
    resources.delete("", "a", Variable)
    assert quota.bytes == 80
    resources.clear()
    assert quota.bytes == 40
    resources.clear(["other"])
    assert quota.bytes == 0


def test_texts_count_with_what_they_hold() -> None:
    assert size_of((np.zeros(3, np.float32), np.array([b"ab", b""], object))) == 12 + 2 * 64 + 2


def _keys(*names: bytes) -> np.ndarray:
    return np.array(names, object)


def test_a_table_gives_back_what_is_removed_and_keeps_what_it_had() -> None:
    quota = StateQuota(2000)
    table = Table("MutableHashTable", "t", dtypes.string, dtypes.int64, account=quota.account("t"))
    table.insert(_keys(b"a", b"b"), np.array([1, 2]))
    two = quota.bytes
    table.insert(_keys(b"b", b"c" * 1000), np.array([3, 4]))
    assert quota.bytes == two * 3 // 2 + 999
    with pytest.raises(errors.ResourceExhaustedError, match="with 't' what is kept would take"):
        table.insert(_keys(b"d" * 1000), np.array([5]))
    with pytest.raises(errors.ResourceExhaustedError, match="with 't'"):
        table.replace(_keys(b"e" * 3000), np.array([5]))
    assert (table.size(), quota.bytes) == (3, two * 3 // 2 + 999)
    table.remove(_keys(b"c" * 1000, b"unknown"))
    assert quota.bytes == two
    table.replace(_keys(b"x"), np.array([1]))
    assert quota.bytes == two // 2


def test_tables_of_numbers_rows_and_one_filling() -> None:
    quota = StateQuota()
    scalars = Table("HashTable", "s", dtypes.int64, dtypes.int64, account=quota.account("s"))
    scalars.initialize(np.arange(3), np.arange(3))
    one = quota.bytes // 3
    rows = Table(
        "MutableHashTableOfTensors", "r", dtypes.int64, dtypes.float32, value_shape=(10,), account=quota.account("r")
    )
    rows.insert(np.arange(2), np.zeros((2, 10), np.float32))
    assert quota.bytes == 5 * one + 2 * 40
    empty = Table("HashTable", "e", dtypes.int64, dtypes.int64, account=StateQuota(100).account("e"))
    with pytest.raises(errors.ResourceExhaustedError, match="with 'e'"):
        empty.initialize(np.arange(3), np.arange(3))
    assert empty.size() == 0


def test_accumulators_are_free_once_their_sum_is_taken() -> None:
    quota = StateQuota(500)
    dense = DenseAccumulator("d", dtypes.float32, TensorShape(None), "SUM", quota.account("d"))
    dense.apply(0, np.ones(100, np.float32))
    dense.apply(0, np.ones(100, np.float32))
    assert quota.bytes == 400
    sparse = SparseAccumulator("s", dtypes.float32, TensorShape(None), "SUM", None, quota.account("s"))
    with pytest.raises(errors.ResourceExhaustedError, match="with 's'"):
        sparse.apply(0, np.arange(10), np.ones((10, 4), np.float32), None)
    assert (sparse.count, quota.bytes) == (0, 400)
    assert dense.take(2).sum() == 200
    assert quota.bytes == 0
    sparse.apply(0, np.arange(5), np.ones((5, 4), np.float32), None)
    assert quota.bytes == 5 * (8 + 8 + 16)


def test_staging_areas_and_maps() -> None:
    quota = StateQuota(1000)
    area = StagingArea("a", 0, 0, quota.account("a"))
    area.put([np.zeros(100, np.float32)])
    area.put([np.zeros(100, np.float32)])
    with pytest.raises(errors.ResourceExhaustedError, match="with 'a'"):
        area.put([np.zeros(100, np.float32)])
    assert (area.size(), quota.bytes) == (2, 800)
    area.get(1)
    assert quota.bytes == 400
    area.clear()
    held = StagingMap("m", 0, 0, 2, False, quota.account("m"))
    held.put(1, [0], [np.zeros(10, np.float32)])
    held.put(1, [1], [np.zeros(10, np.float32)])
    assert quota.bytes == 80
    held.get(1, [0, 1])
    assert quota.bytes == 0


def test_barriers_count_complete_keys_too() -> None:
    quota, size = StateQuota(10_000_000), 100_000
    shapes = [TensorShape([size])] * 2
    barrier = Barrier("b", [dtypes.float64] * 2, shapes, quota.account("b"))
    barrier.insert_many(0, _keys(b"k", b"l"), np.zeros((2, size)))
    assert quota.bytes == 16 * size
    barrier.insert_many(1, _keys(b"k"), np.zeros((1, size)))
    assert quota.bytes >= 24 * size
    with pytest.raises(errors.ResourceExhaustedError, match="with 'b'"):
        barrier.insert_many(0, _keys(*(b"%d" % i for i in range(10))), np.zeros((10, size)))
    barrier.take_many(1, allow_small_batch=False)
    barrier.close(cancel_pending_enqueues=True)
    assert quota.bytes < size


def test_a_limit_may_be_reached_but_not_passed() -> None:
    quota = StateQuota(100)
    account = quota.account("a")
    account.check(100)
    account.resize(100)
    account.check(0)
    account.check(-1)
    assert (quota.bytes, account.bytes) == (100, 100)
    text = r"^OOM: with 'a' what is kept would take 101 bytes; 100 is the limit, and TENFOLD_TASK_STATE_BYTES in"
    with pytest.raises(errors.ResourceExhaustedError, match=text):
        account.check(1)
    with pytest.raises(errors.ResourceExhaustedError, match=text):
        account.resize(101)
    account.resize(100)
    account.resize(0)
    assert (quota.bytes, account.bytes) == (0, 0)


def test_a_limit_may_be_one_byte() -> None:
    account = StateQuota(1).account("a")
    account.resize(1)
    with pytest.raises(errors.ResourceExhaustedError, match="2 bytes; 1 is the limit"):
        account.resize(2)


def test_without_a_limit_anything_goes() -> None:
    quota = StateQuota()
    accounts = [quota.queue_account("q") for _ in range(50)]
    accounts[0].resize(1 << 60)
    assert (quota.bytes, quota.queues) == (1 << 60, 50)
    accounts[0].close()
    assert (quota.bytes, quota.queues) == (0, 49)


def test_what_is_added_is_not_asked_for() -> None:
    whole = StateQuota(10)
    quota = StateQuota(10, whole=whole)
    account = quota.account("a")
    account.add(30)
    account.add(0)
    account.add(-10)
    assert (account.bytes, quota.bytes, whole.bytes) == (20, 20, 20)
    account.check(0)
    with pytest.raises(errors.ResourceExhaustedError, match="21 bytes"):
        account.check(1)


def test_a_session_that_ends_gives_back_what_it_has_left() -> None:
    whole = StateQuota(100, 3)
    session = StateQuota(whole=whole)
    account, queue = session.account("a"), session.queue_account("q")
    account.resize(30)
    queue.resize(20)
    assert (whole.bytes, whole.queues) == (50, 1)
    account.close()
    assert (whole.bytes, whole.queues) == (20, 1)
    session.close()
    assert (whole.bytes, whole.queues) == (0, 0)
    queue.resize(1000)
    queue.close()
    assert (session.bytes, session.queues, whole.bytes, whole.queues) == (0, 0, 0, 0)


def test_the_last_queue_is_allowed_and_one_more_is_not() -> None:
    quota = StateQuota(most_queues=1)
    held = quota.queue_account("q")
    with pytest.raises(
        errors.ResourceExhaustedError, match=r"^There are 1 queues; 1 is the limit, and TENFOLD_TASK_QUEUES in"
    ):
        quota.queue_account("q")
    quota.account("no queue")
    assert quota.queues == 1
    held.close()
    quota.queue_account("q")


def test_sizes_of_texts() -> None:
    """64 bytes for an object, whatever it is, and the bytes of a text."""
    texts = np.empty(3, object)
    texts[:] = [b"abc", "no bytes", None]
    assert size_of((texts,)) == 3 * 64 + 3
    assert size_of((texts.reshape(3, 1), np.zeros((2, 2), np.int16))) == 3 * 64 + 3 + 8
    assert size_of(()) == 0
