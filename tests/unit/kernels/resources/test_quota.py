"""What variables and queues take of their task: charged before it is there, given back once, also by finalizers."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.quota import BYTES_PER_SESSION, StateQuota, size_of
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
