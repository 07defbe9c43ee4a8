"""The meeting place of a step's tensors, and the table that remembers and forgets steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_core.rendezvous_key import make_key, parse_key
from tenfold_core.tensor_shape import TensorShape
from tenfold_core.variable_memory import lend
from tenfold_kernels.resources.state import Variable
from tenfold_services.limits import DEFAULT_LIMITS
from tenfold_services.worker.rendezvous import Rendezvous, StepTable

PS = "/job:ps/replica:0/task:0/device:CPU:0"
WORKER = "/job:worker/replica:0/task:0/device:CPU:0"


class Receiver:
    """Notes what a rendezvous tells it."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, bool, errors.OpError | None]] = []

    def __call__(self, value: Any, is_dead: bool, error: errors.OpError | None) -> None:
        self.told.append((value, is_dead, error))


@pytest.fixture
def aborted() -> errors.OpError:
    return errors.AbortedError(None, None, "the first error")


def test_a_key_is_written_as_tensorflow_writes_it() -> None:
    key = make_key(PS, 0xACBD54E8680F1744, WORKER, "edge_4_w/read")
    assert key == f"{PS};acbd54e8680f1744;{WORKER};edge_4_w/read;0:0"
    parsed = parse_key(key)
    assert (parsed.send_device, parsed.recv_device, parsed.tensor_name) == (PS, WORKER, "edge_4_w/read")
    assert parsed.send_incarnation == 0xACBD54E8680F1744
    assert parsed.send_task == "/job:ps/replica:0/task:0"


def test_a_signed_incarnation_gives_the_same_key() -> None:
    assert make_key(PS, -1, WORKER, "e") == make_key(PS, 2**64 - 1, WORKER, "e")


@pytest.mark.parametrize(
    "key", ["", "a;b", f"{PS};xyz;{WORKER};e;0:0", f";0;{WORKER};e;0:0", f"{PS};0;{WORKER};e;0:0;x"]
)
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="Invalid rendezvous key"):
        parse_key(key)


def test_receive_after_send_and_send_after_receive() -> None:
    rendezvous, early, late = Rendezvous(1), Receiver(), Receiver()
    rendezvous.recv("a", early)
    assert early.told == []
    rendezvous.send("a", 1)
    rendezvous.send("b", 2, True)
    rendezvous.recv("b", late)
    assert (early.told, late.told) == ([(1, False, None)], [(2, True, None)])


@pytest.mark.parametrize("floats", [1, 1 << 16])
def test_a_reference_is_read_when_it_is_received(floats: int) -> None:
    variable = Variable("v", dtypes.float32, TensorShape([floats]))
    variable.assign(np.zeros(floats, np.float32))
    rendezvous, early, late = Rendezvous(1), Receiver(), Receiver()
    rendezvous.recv("a", early)
    rendezvous.send("a", variable)
    ((first, _, _),) = early.told
    # a reader that has the value for good: the variable gets other memory, and the reference goes with it
    lease = lend(first)
    rendezvous.send("b", variable)
    variable.assign(np.ones(floats, np.float32))
    rendezvous.recv("b", late)
    ((second, _, _),) = late.told
    assert second[-1] == 1
    assert (lease is not None) == (first[-1] == 0)


def test_each_tensor_is_received_once() -> None:
    rendezvous, first, second = Rendezvous(1), Receiver(), Receiver()
    rendezvous.send("a", 1)
    rendezvous.recv("a", first)
    rendezvous.recv("a", second)
    assert first.told == [(1, False, None)]
    assert second.told == []
    with pytest.raises(errors.InternalError, match="two receivers"):
        rendezvous.recv("a", Receiver())


def test_sending_twice_is_an_error() -> None:
    rendezvous = Rendezvous(7)
    rendezvous.send("a", 1)
    with pytest.raises(errors.InternalError, match="Step 7 sent the tensor 'a' twice"):
        rendezvous.send("a", 2)


def test_abort_wakes_everybody_and_stays(aborted: errors.OpError) -> None:
    rendezvous, waiting, late, listener = Rendezvous(1), Receiver(), Receiver(), []
    rendezvous.recv("a", waiting)
    rendezvous.listen(listener.append)
    rendezvous.abort(aborted)
    rendezvous.abort(errors.InternalError(None, None, "a later error"))
    rendezvous.recv("b", late)
    assert waiting.told == late.told == [(None, False, aborted)]
    assert listener == [aborted]
    with pytest.raises(errors.AbortedError, match="the first error"):
        rendezvous.send("c", 1)


def test_a_listener_of_an_aborted_step_hears_of_it_at_once(aborted: errors.OpError) -> None:
    rendezvous, heard = Rendezvous(1), []
    rendezvous.abort(aborted)
    rendezvous.listen(heard.append)
    assert heard == [aborted]


def test_a_cancelled_receiver_is_not_told() -> None:
    rendezvous, receiver = Rendezvous(1), Receiver()
    rendezvous.recv("a", receiver)
    assert not rendezvous.cancel_recv("a", Receiver())
    assert rendezvous.cancel_recv("a", receiver)
    rendezvous.send("a", 1)
    assert receiver.told == []


def test_edges_of_a_step_are_bounded() -> None:
    rendezvous = Rendezvous(1, limit=2)
    rendezvous.send("a", 1)
    rendezvous.recv("b", Receiver())
    with pytest.raises(errors.ResourceExhaustedError, match="2 tensors under way"):
        rendezvous.send("c", 1)


def test_a_cleaned_step_answers_late_comers_with_an_error() -> None:
    steps, receiver = StepTable(), Receiver()
    steps.get(5, 0.0).recv("a", receiver)
    steps.finish(5)
    [(_, _, error)] = receiver.told
    assert isinstance(error, errors.AbortedError)
    with pytest.raises(errors.AbortedError, match="Step 5 is over"):
        steps.get(5, 0.0)
    assert len(steps) == 0


def test_an_unknown_step_may_be_cleaned_up() -> None:
    steps = StepTable()
    steps.finish(9)
    steps.finish(9)
    assert steps.find(9) is None


def test_steps_that_nobody_cleans_up_are_forgotten_unless_somebody_waits() -> None:
    steps = StepTable(replace(DEFAULT_LIMITS, idle_step_seconds=10))
    steps.get(1, 0.0).send("a", 1)
    steps.get(2, 1.0).recv("a", Receiver())
    steps.get(3, 2.0).runs = 1
    steps.get(4, 50.0)
    assert steps.sweep(20.0) == 1
    assert [steps.find(step) is not None for step in (1, 2, 3, 4)] == [False, True, True, True]


def test_steps_are_bounded_and_idle_ones_make_room() -> None:
    steps = StepTable(replace(DEFAULT_LIMITS, steps=2, idle_step_seconds=10))
    steps.get(1, 0.0)
    steps.get(2, 0.0).runs = 1
    with pytest.raises(errors.ResourceExhaustedError, match="2 steps under way"):
        steps.get(3, 5.0)
    assert steps.get(3, 11.0).step_id == 3


def test_the_memory_of_finished_steps_is_bounded() -> None:
    steps = StepTable(replace(DEFAULT_LIMITS, finished_steps=2))
    for step in (1, 2, 3):
        steps.finish(step)
    assert steps.get(1, 0.0).step_id == 1


def test_a_cancelled_receiver_makes_room_and_an_aborted_step_takes_none() -> None:
    rendezvous = Rendezvous(1, limit=1)
    receiver = Receiver()
    rendezvous.recv("a", receiver)
    with pytest.raises(
        errors.ResourceExhaustedError, match="Step 1 has 1 tensors under way on this task; 1 is the limit"
    ):
        rendezvous.recv("b", Receiver())
    assert rendezvous.cancel_recv("a", receiver)
    assert not rendezvous.cancel_recv("a", receiver)
    rendezvous.send("b", 1)


def test_a_listener_that_left_is_not_told(aborted: errors.OpError) -> None:
    rendezvous, heard, other = Rendezvous(1), [], []
    rendezvous.listen(heard.append)
    rendezvous.listen(other.append)
    rendezvous.unlisten(heard.append)
    rendezvous.abort(aborted)
    assert (heard, other) == ([], [aborted])


def test_who_waits_for_what_a_key_begins_with() -> None:
    rendezvous = Rendezvous(1)
    rendezvous.send("a/1", 1)
    rendezvous.recv("b/1", Receiver())
    assert [rendezvous.waits_for(prefix) for prefix in ("a", "b", "b/1", "/1", "b/12")] == [
        False,
        True,
        True,
        False,
        False,
    ]


def test_a_step_is_idle_without_runs_and_receivers() -> None:
    rendezvous, receiver = Rendezvous(1), Receiver()
    assert rendezvous.idle
    rendezvous.send("a", 1)
    assert rendezvous.idle
    rendezvous.recv("b", receiver)
    assert not rendezvous.idle
    rendezvous.cancel_recv("b", receiver)
    rendezvous.runs = 1
    assert not rendezvous.idle


def test_an_abort_forgets_what_was_sent_and_asked_for(aborted: errors.OpError) -> None:
    rendezvous = Rendezvous(1)
    rendezvous.send("a", 1)
    rendezvous.recv("b", Receiver())
    rendezvous.abort(aborted)
    assert rendezvous._sent == rendezvous._waiting == {}
    assert rendezvous.error is aborted


class Partial:
    """A run that is called no more, or still is."""

    def __init__(self, is_idle: bool) -> None:
        self.is_idle, self.asked = is_idle, 0.0

    def ended_as_idle(self, now: float) -> bool:
        self.asked = now
        return self.is_idle


@pytest.mark.parametrize("is_idle", [True, False])
def test_a_partial_run_that_is_called_no_more_goes_with_its_step(is_idle: bool) -> None:
    steps = StepTable(replace(DEFAULT_LIMITS, idle_step_seconds=10))
    found, partial = steps.get(1, 0.0), Partial(is_idle)
    found.runs, found.partial = 1, partial  # type: ignore[assignment]

    assert steps.sweep(9.9) == 0
    assert partial.asked == 0.0
    assert steps.sweep(10.0) == int(is_idle)
    assert partial.asked == 10.0
    assert (steps.find(1) is None) == is_idle


def test_a_swept_step_is_over_and_its_late_receivers_hear_so() -> None:
    steps, late = StepTable(replace(DEFAULT_LIMITS, idle_step_seconds=10)), Receiver()
    found = steps.get(1, 0.0)
    steps.sweep(10.0)
    found.recv("a", late)
    assert [error.message for _, _, error in late.told if error] == ["Step 1 was cleaned up."]
    with pytest.raises(errors.AbortedError, match="Step 1 is over on this task"):
        steps.get(1, 11.0)


def test_the_step_that_was_cleaned_up_last_is_remembered_longest() -> None:
    steps = StepTable(replace(DEFAULT_LIMITS, finished_steps=2))
    for step in (1, 2, 1, 3):
        steps.finish(step)
    assert list(steps._finished) == [1, 3]


def test_a_forgotten_step_is_not_over() -> None:
    steps = StepTable()
    steps.get(1, 0.0)
    steps.forget(1)
    steps.forget(1)
    assert steps.get(1, 5.0).created == 5.0
    assert steps.get(1, 6.0).created == 5.0


def test_every_step_is_aborted_with_an_error_of_its_own() -> None:
    steps, error = StepTable(), errors.AbortedError("node", "op", "over")
    found = [steps.get(number, 0.0) for number in (1, 2)]
    steps.abort_all(error)
    told = [each.error for each in found]
    assert [(each.code, each.message, each.node_def, each.op) for each in told if each] == [
        (error.code, "over", "node", "op")
    ] * 2
    assert told[0] is not told[1]
    assert len(steps) == 2


def test_the_words_of_too_many_steps() -> None:
    steps = StepTable(replace(DEFAULT_LIMITS, steps=1, keys_per_step=1))
    first = steps.get(1, 0.0)
    first.runs = 1
    with pytest.raises(errors.ResourceExhaustedError, match="This task has 1 steps under way; 1 is the limit"):
        steps.get(2, 0.0)
    first.send("a", 1)
    with pytest.raises(errors.ResourceExhaustedError, match="TENFOLD_TASK_KEYS_PER_STEP"):
        first.send("b", 1)
