"""Iterators by their ops: shared and anonymous ones, what steps get, handles as texts, what is saved."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from support.dataset_machines import ANY, INT, SCALAR, SOON_S, Called, ints, mapped, numbers, one, result
from support.dataset_ops import DatasetSteps, refused
from support.kernel_runs import DEVICE
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.arrays import scalar_object
from tenfold_kernels.resources.datasets.functional import Map
from tenfold_kernels.resources.datasets.iterators import DatasetIterator
from tenfold_kernels.resources.datasets.states import IteratorState
from tenfold_kernels.resources.datasets.transforms import Zip
from tenfold_kernels.resources.handles import LocalHandle
from tenfold_kernels.resources.optionals import optional_of
from tenfold_kernels.resources.state import ResourceHandle
from tenfold_kernels.resources.waiting import Waiting

NAMED: dict[str, Any] = {"shared_name": b"it", "container": b""}
PAIRS: dict[str, Any] = {"output_types": list(INT * 2), "output_shapes": list(SCALAR * 2)}
STRING: dict[str, Any] = {"output_types": [dtypes.string]}


@pytest.fixture
def steps() -> DatasetSteps:
    return DatasetSteps()


def started(steps: DatasetSteps, count: int = 3, **attrs: Any) -> Any:
    """The handle of an iterator over so many numbers."""
    handle = steps("IteratorV2", **{**NAMED, **attrs})
    steps("MakeIterator", numbers(count), handle)
    return handle


# ---- which iterator --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["Iterator", "IteratorV2"])
def test_an_iterator_is_shared_by_its_name(steps: DatasetSteps, op: str) -> None:
    first, second = steps(op, name="a", **NAMED), steps(op, name="b", **NAMED)
    assert first.item().resource is second.item().resource
    assert first.item().resource.types == INT
    assert first.item().resource.shapes == SCALAR
    other = steps(op, shared_name=b"other", container=b"")
    assert other.item().resource is not first.item().resource
    with refused("Data type mismatch at component 0: expected int64 but got string"):
        steps(op, **NAMED, **STRING)
    with refused("Incompatible shapes at component 0"):
        steps(op, **NAMED, output_shapes=[TensorShape([2])])


@pytest.mark.parametrize("op", ["AnonymousIterator", "AnonymousIteratorV2", "AnonymousIteratorV3"])
def test_an_anonymous_iterator_is_known_to_its_handle_alone(steps: DatasetSteps, op: str) -> None:
    compute, _ = steps.build(op, name="mine")
    made = [compute(), compute()]
    if op == "AnonymousIteratorV2":
        assert all((deleter.shape, deleter.dtype) == ((), object) for _, deleter in made)
        assert steps("DeleteIterator", *made[0]) is None
        made = [handle for handle, _ in made]
    first, second = (handle.item() for handle in made)
    assert (first.device, first.container, first.name, first.hash_code) == (DEVICE, "", "mine", 0)
    assert first.type_name == "DatasetIterator"
    assert first.resource is not second.resource
    steps("MakeIterator", numbers(2), made[0])
    assert int(steps("IteratorGetNext", made[0])) == 0


def test_a_dataset_must_be_of_the_iterator_s_types(steps: DatasetSteps) -> None:
    handle = steps("IteratorV2", **NAMED, **STRING)
    with refused("expected string but got int64"):
        steps("MakeIterator", numbers(3), handle)
    assert steps("MakeIterator", numbers(3), steps("IteratorV2", shared_name=b"x", container=b"")) is None


# ---- elements --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["IteratorGetNext", "IteratorGetNextSync"])
def test_components_of_elements(steps: DatasetSteps, op: str) -> None:
    single = started(steps)
    assert [steps(op, single).tolist() for _ in range(3)] == [0, 1, 2]
    for _ in range(2):
        with pytest.raises(errors.OutOfRangeError, match=r"^End of sequence$"):
            steps(op, single)
    double = steps("IteratorV2", shared_name=b"two", container=b"", **PAIRS)
    steps("MakeIterator", Zip(INT * 2, SCALAR * 2, numbers(2), numbers(2)), double)
    assert [part.tolist() for part in steps(op, double, **PAIRS)] == [0, 0]


def test_what_is_asked_for_must_be_what_the_iterator_has(steps: DatasetSteps) -> None:
    handle = started(steps)
    for op in ("IteratorGetNext", "IteratorGetNextAsOptional"):
        with refused("Data type mismatch at component 0"):
            steps(op, handle, **STRING)
        with refused("expected 2 types but got 1"):
            steps(op, handle, **PAIRS)


def test_an_element_of_another_number_of_components(steps: DatasetSteps) -> None:
    handle = steps("IteratorV2", **NAMED)
    two = Map(INT, SCALAR, numbers(2), Called(lambda n: (n, n)), ())
    steps("MakeIterator", two, handle)
    with refused("^The dataset gave 2 components, and 1 were expected"):
        steps("IteratorGetNext", handle)


def test_elements_as_optionals(steps: DatasetSteps) -> None:
    handle = started(steps, 1)
    found, end = (optional_of(steps("IteratorGetNextAsOptional", handle)) for _ in range(2))
    assert found.components is not None
    assert [part.tolist() for part in found.components] == [0]
    assert end.components is None


# ---- one-shot iterators ----------------------------------------------------------------------------------------------


def test_a_one_shot_iterator_makes_its_dataset_once(steps: DatasetSteps) -> None:
    calls: list[int] = []

    def factory() -> Any:
        calls.append(1)
        return numbers(3).as_array()

    compute, _ = steps.build("OneShotIterator", dataset_factory=factory, shared_name=b"once")
    handles = [result(compute()) for _ in range(2)]
    assert calls == [1]
    assert [int(steps("IteratorGetNext", handle)) for handle in handles] == [0, 1], "the second goes on"
    assert handles[0].item().resource.types == INT


def test_a_one_shot_iterator_s_function_may_wait_and_may_fail(steps: DatasetSteps) -> None:
    waits: list[Waiting] = []

    def factory() -> Any:
        waits.append(Waiting())
        return waits[-1]

    compute, _ = steps.build("OneShotIterator", dataset_factory=factory, shared_name=b"once")
    first, second, third = (compute() for _ in range(3))
    waits[0].fail(errors.DataLossError(None, None, "torn"))
    with pytest.raises(errors.DataLossError, match="torn"):
        result(first)
    waits[1].complete([ints(1)])
    with refused("not a dataset"):
        result(second)
    waits[2].complete([numbers(3).as_array()])
    handle = result(third)
    assert isinstance(handle.item(), LocalHandle)
    assert int(steps("IteratorGetNext", handle)) == 0
    assert result(compute()) is handle
    assert len(waits) == 3


def test_a_one_shot_iterator_is_given_up_with_its_step(steps: DatasetSteps) -> None:
    left = threading.Event()
    compute, _ = steps.build("OneShotIterator", dataset_factory=lambda: Waiting(left.set), shared_name=b"once")
    step = compute()
    step.cancel()
    assert left.is_set()
    compute, _ = steps.build("OneShotIterator", dataset_factory=lambda: ints(1), shared_name=b"wrong")
    with refused("not a dataset"):
        compute()


# ---- states ----------------------------------------------------------------------------------------------------------


def test_a_saved_iterator_goes_on_elsewhere(steps: DatasetSteps) -> None:
    handle = started(steps, 4)
    for _ in range(2):
        steps("IteratorGetNext", handle)
    saved = steps("SerializeIterator", handle)
    assert isinstance(saved.item(), IteratorState)
    other = started(steps, 4, shared_name=b"other")
    assert steps("DeserializeIterator", other, saved) is None
    for each in (other, handle):
        assert int(steps("IteratorGetNext", each)) == 2


def test_what_is_no_state_is_not_restored(steps: DatasetSteps) -> None:
    handle = started(steps)
    saved = steps("SerializeIterator", handle)
    for value in (scalar_object(None), numbers(1).as_array(), saved.reshape(1)):
        with refused("DeserializeIterator needs one variant that SerializeIterator has given"):
            steps("DeserializeIterator", handle, value)


@pytest.mark.parametrize(("policy", "is_refused"), [(None, False), (0, False), (1, False), (2, True)])
def test_state_that_is_not_the_iterator_s(steps: DatasetSteps, policy: int | None, is_refused: bool) -> None:
    handle = steps("IteratorV2", **NAMED, output_shapes=list(ANY))
    steps("MakeIterator", Map(INT, ANY, numbers(3), Called(lambda n: n, "RandomUniform"), ()), handle)
    attrs = {} if policy is None else {"external_state_policy": policy}
    if is_refused:
        with pytest.raises(errors.FailedPreconditionError, match="RandomUniform is stateful"):
            steps("SerializeIterator", handle, **attrs)
    else:
        steps("SerializeIterator", handle, **attrs)


# ---- handles ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["IteratorGetDevice", "ExperimentalIteratorGetDevice"])
def test_where_an_iterator_is(steps: DatasetSteps, op: str) -> None:
    found = steps(op, started(steps))
    assert (found.shape, found.item()) == ((), DEVICE.encode())
    with refused("needs a resource handle"):
        steps(op, scalar_object(3))


@pytest.mark.parametrize("op", ["IteratorFromStringHandle", "IteratorFromStringHandleV2"])
def test_a_handle_travels_as_text(steps: DatasetSteps, op: str) -> None:
    handle = started(steps)
    text = steps("IteratorToStringHandle", handle)
    assert (text.shape, type(text.item())) == ((), bytes)
    found = steps(op, text)
    assert found.item() == handle.item()
    assert found.item().resource is handle.item().resource
    assert int(steps("IteratorGetNext", found)) == 0
    for undeclared in ({"output_types": [], "output_shapes": []},):
        assert steps(op, text, **undeclared).item() == handle.item()
    with refused("expected string but got int64"):
        steps(op, text, **STRING)
    with refused("Incompatible shapes at component 0"):
        steps(op, text, output_shapes=[TensorShape([2])])


@pytest.mark.parametrize("op", ["IteratorFromStringHandle", "IteratorFromStringHandleV2"])
def test_texts_that_are_no_handle(steps: DatasetSteps, op: str) -> None:
    with refused("^string_handle must be a scalar$"):
        steps(op, np.array([b""], object))
    with refused("^Could not parse string_handle as a valid ResourceHandle$"):
        steps(op, b"\xff\xff")
    elsewhere = ResourceHandle("/device:CPU:7", "", "it").to_proto().SerializeToString()
    with refused(f'^Attempted create an iterator on device "{DEVICE}" from handle defined on device "/device:CPU:7"$'):
        steps(op, elsewhere)
    gone = ResourceHandle(DEVICE, "", "gone").to_proto().SerializeToString()
    with pytest.raises(errors.NotFoundError):
        steps(op, gone)


@pytest.mark.parametrize("op", ["IteratorToStringHandle", "IteratorGetDevice", "IteratorGetNext", "SerializeIterator"])
def test_a_handle_of_something_else(steps: DatasetSteps, op: str) -> None:
    handle, _ = steps("AnonymousMemoryCache")
    with refused("using the wrong type"):
        steps(op, handle)


def test_steps_that_wait_are_served_in_order(steps: DatasetSteps) -> None:
    gate, entered = threading.Event(), threading.Event()

    def body(n: Any) -> Any:
        entered.set()
        assert gate.wait(SOON_S)
        return n

    handle = steps("IteratorV2", **NAMED, output_shapes=list(ANY))
    steps("MakeIterator", mapped(numbers(3), body), handle)
    compute, _ = steps.build("IteratorGetNext", handle)
    waiting = [compute(handle) for _ in range(2)]
    assert entered.wait(SOON_S)
    gate.set()
    assert [int(result(step)) for step in waiting] == [0, 1]
    assert isinstance(handle.item().resource, DatasetIterator)
    assert one(2) == result(compute(handle))
