"""Push without a network: the outbox of a run, tensors that come early, late or never, and the records on the wire."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.parts import PartBuilder
from support.programs import compiled, sums
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_core.tensor_util import proto_to_tensor, tensor_to_proto
from tenfold_kernels.resources.state import Variable
from tenfold_link.wire import short_ids
from tenfold_link.wire import values as link_values
from tenfold_link.wire.calls import KEY_NUMBER, PUSH
from tenfold_protos.config_pb2 import ConfigProto
from tenfold_protos.tensor_pb2 import TensorProto
from tenfold_services.exchange.plan import ExchangePlan
from tenfold_services.interfaces import RunGraphResult, RunRequest
from tenfold_services.limits import DEFAULT_LIMITS
from tenfold_services.rpc.link_worker_service import read_push
from tenfold_services.worker import outbox as outbox_module
from tenfold_services.worker.outbox import Outbox, run_at_once
from tenfold_services.worker.rendezvous import Rendezvous
from tenfold_services.worker.run_policy import RunPolicy
from tenfold_services.worker.worker import Worker

F32 = dtypes.float32
PS = "/job:ps/replica:0/task:0"


class Pushed:
    """What went where, in order. `enough` is set once that was `expected` times."""

    def __init__(self, expected: int = 1) -> None:
        self.sent: list[tuple[str, int, list[Any]]] = []
        self.enough = asyncio.Event()
        self._expected = expected

    def __call__(self, task: str, step_id: int, tensors: list[Any]) -> None:
        self.sent.append((task, step_id, tensors))
        if len(self.sent) == self._expected:
            self.enough.set()


# -- the outbox --------------------------------------------------------------------------------------------------------

PLAN = ExchangePlan("", "", answered=("a0", "a1"), pushed=((PS, ("p",)),))


async def test_a_reference_is_read_when_it_is_pushed_and_stays_one_when_it_is_kept() -> None:
    variable = Variable("v", F32, TensorShape([]))
    variable.assign(np.float32(1))
    pushed, rendezvous, received = Pushed(), Rendezvous(7), []
    outbox = Outbox(PLAN, rendezvous, pushed)
    outbox.send("p", variable)
    outbox.send("kept", variable)
    outbox.flush()
    ((_, _, ((_, value, _),)),) = pushed.sent
    assert value == 1
    variable.assign(np.float32(2))
    rendezvous.recv("kept", lambda value, is_dead, error: received.append(value))
    assert received == [2]


async def test_what_the_caller_consumes_goes_with_the_answer() -> None:
    pushed, rendezvous = Pushed(), Rendezvous(7)
    outbox = Outbox(PLAN, rendezvous, pushed)
    for key in ("a1", "p", "a0"):
        outbox.send(key, key.upper())

    assert outbox.finish() == [(1, "A1", False), (0, "A0", False)]
    assert pushed.sent == [(PS, 7, [("p", "P", False)])]
    assert not outbox.kept


async def test_what_is_ready_before_the_end_goes_at_once() -> None:
    pushed = Pushed()
    outbox = Outbox(PLAN, Rendezvous(7), pushed)
    outbox.send("a0", "early")
    outbox.send("p", None, True)
    outbox.flush()
    outbox.send("a1", "late")

    assert pushed.sent == [("", 7, [("a0", "early", False)]), (PS, 7, [("p", None, True)])]
    assert outbox.finish() == [(1, "late", False)]


async def test_large_tensors_take_a_turn_of_the_loop_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Links may copy them: meanwhile the loop has others to answer."""
    monkeypatch.setattr(outbox_module, "TURN", 100)
    keys = [f"p{number}" for number in range(4)]
    plan = ExchangePlan("", "", answered=("a",), pushed=tuple((f"{PS}{key}", (key,)) for key in keys))
    pushed = Pushed(5)
    outbox = Outbox(plan, Rendezvous(7), pushed)
    for key, nbytes in zip(keys, (60, 60, 100, 1), strict=True):
        outbox.send(key, np.zeros(nbytes, np.uint8))
    outbox.send("a", "answer")

    assert outbox.finish() == [(0, "answer", False)]
    assert [task for task, _, _ in pushed.sent] == [f"{PS}p0", f"{PS}p1"]
    asyncio.get_running_loop().call_soon(pushed, "something else", 0, [])
    async with asyncio.timeout(20):
        await pushed.enough.wait()
    assert [task for task, _, _ in pushed.sent[2:]] == [f"{PS}p2", "something else", f"{PS}p3"]


async def test_what_is_in_no_plan_waits_to_be_asked_for() -> None:
    rendezvous = Rendezvous(7)
    outbox = Outbox(PLAN, rendezvous, Pushed())
    outbox.send("other", 5)
    got: list[Any] = []
    rendezvous.recv("other", lambda *arguments: got.append(arguments))

    assert got == [(5, False, None)]
    assert outbox.kept == 1


async def test_an_aborted_step_sends_nothing_more() -> None:
    rendezvous = Rendezvous(7)
    outbox = Outbox(PLAN, rendezvous, Pushed())
    rendezvous.abort(errors.AbortedError(None, None, "over"))

    with pytest.raises(errors.AbortedError, match="over"):
        outbox.send("p", 1)


async def test_a_program_in_the_pool_sends_through_the_loop() -> None:
    pushed = Pushed(2)
    outbox = Outbox(PLAN, Rendezvous(7), pushed)
    thread = threading.Thread(target=lambda: [outbox.send("p", 1), outbox.send("a0", 2)])
    thread.start()
    thread.join()
    assert not pushed.sent
    await pushed.enough.wait()

    assert [task for task, _, _ in pushed.sent] == [PS, ""]


async def test_a_consumer_that_cannot_be_reached_ends_the_step() -> None:
    def unreachable(*_: Any) -> None:
        raise errors.UnavailableError(None, None, f"{PS} is gone")

    rendezvous, ended = Rendezvous(7), asyncio.Event()
    rendezvous.recv("other", lambda *_: ended.set())
    outbox = Outbox(PLAN, rendezvous, unreachable)
    thread = threading.Thread(target=lambda: outbox.send("p", 1))
    thread.start()
    thread.join()
    await ended.wait()

    assert isinstance(rendezvous.error, errors.UnavailableError)


# -- a worker that is pushed to ----------------------------------------------------------------------------------------


class Run:
    """A part with one expected tensor, y = recv + 1, on a worker of its own."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        device = worker.devices[0]
        part = PartBuilder(device.name, device.incarnation)
        self.key = part.recv("r", F32, f"{PS}/device:CPU:0", 5)
        part.const("one", 1.0)
        part.node("Add", "y", ["r", "one"], T=F32)
        self.fetch = part.fetch("y")
        self.graph_def = part.graph_def
        self.handle = ""
        self.ended: asyncio.Future[RunGraphResult] = asyncio.get_running_loop().create_future()

    async def register(self) -> None:
        self.handle = await self.worker.register_graph("", self.graph_def, ConfigProto())
        self.plan = ExchangePlan("", self.handle, expected=(self.key,))

    def start(self, step_id: int) -> Any:
        def done(result: RunGraphResult | None, error: errors.OpError | None) -> None:
            if error is not None:
                self.ended.set_exception(error)
            else:
                assert result is not None
                self.ended.set_result(result)

        return self.worker.start_run(RunRequest("", self.handle, step_id, {}, [self.fetch]), done, self.plan, Pushed())


@pytest.fixture
async def run() -> Any:
    # a busy machine must not make a short program a long one
    worker = Worker("/job:worker/replica:0/task:0", limits=replace(DEFAULT_LIMITS, inline_nanoseconds=10**12))
    run = Run(worker)
    await run.register()
    yield run
    worker.close()


@pytest.mark.parametrize("early", [True, False])
async def test_a_pushed_tensor_may_come_before_its_run(run: Run, early: bool) -> None:
    if early:
        run.worker.pushed(3, run.key, np.float32(4), False)
    run.start(3)
    if not early:
        run.worker.pushed(3, run.key, np.float32(4), False)

    assert (await run.ended).values[run.fetch] == 5
    assert len(run.worker.steps) == 0


async def test_a_tensor_for_a_step_that_is_over_is_dropped(run: Run) -> None:
    run.worker.steps.finish(3)
    run.worker.pushed(3, run.key, np.float32(4), False)

    assert len(run.worker.steps) == 0


async def test_a_tensor_for_a_step_that_failed_is_dropped(run: Run) -> None:
    running = run.start(3)
    running.cancel(errors.CancelledError(None, None, "enough"))
    run.worker.pushed(3, run.key, np.float32(4), False)

    with pytest.raises(errors.CancelledError, match="enough"):
        await run.ended


async def test_a_tensor_that_is_pushed_twice_ends_the_step(run: Run) -> None:
    run.worker.pushed(3, run.key, np.float32(4), False)
    run.worker.pushed(3, run.key, np.float32(4), False)
    run.start(3)

    with pytest.raises(errors.InternalError, match="twice"):
        await run.ended


async def test_who_waits_for_a_lost_producer_hears_of_it(run: Run) -> None:
    run.start(3)
    run.worker.producer_lost("/job:ps/replica:0/task:1", errors.UnavailableError(None, None, "another one"))
    assert not run.ended.done()
    run.worker.producer_lost(PS, errors.UnavailableError(None, None, f"{PS} is gone"))

    with pytest.raises(errors.UnavailableError, match="is gone"):
        await run.ended


async def test_a_run_that_has_all_it_needs_is_one_call(run: Run) -> None:
    for step in range(1, 4):  # once it is known to be short
        run.worker.pushed(step, run.key, np.float32(step), False)
        run.start(step)
        await run.ended
        run.ended = asyncio.get_running_loop().create_future()
    brought = {run.key: (np.float32(8), False)}

    result = run.worker.run_at_once(9, {}, brought, run.plan, Pushed())
    without = run.worker.run_at_once(10, {}, {}, run.plan, Pushed())

    assert result is not None
    assert result.values[run.fetch] == 9
    assert without is None
    assert len(run.worker.steps) == 0


# -- records -----------------------------------------------------------------------------------------------------------


def from_proto(content: bytes) -> Any:
    return proto_to_tensor(TensorProto.FromString(content))


def packed(*values: Any) -> tuple[bytes, list[Any]]:
    parts: list[bytes] = []
    buffers: list[Any] = []
    for value in values:
        if value is None:
            link_values.pack_dead(parts)
        else:
            link_values.pack_value(value, parts, buffers, tensor_to_proto)
    return b"".join(parts), buffers


VALUES = [
    np.float32(3),
    np.zeros((0, 4)),
    np.arange(6, dtype=np.int64).reshape(2, 3).T,
    np.zeros((1,) * 20, np.int8),
    np.arange(5000, dtype=np.float64).reshape(50, 100)[:, ::2],
    np.array([b"a", b"", b"\xff" * 9000], object),
    np.array(3, ">f4"),
    np.array([True, False]),
]


def test_values_come_out_as_they_went_in() -> None:
    header, buffers = packed(*VALUES, None)
    reader = link_values.ValueReader(header, 0, buffers, from_proto)

    for value in VALUES:
        got, is_dead = reader.read()
        assert not is_dead
        assert got.dtype == value.dtype.newbyteorder("=")
        np.testing.assert_array_equal(got, value)
    assert reader.read() == (None, True)
    assert reader.offset == len(header)


@given(st.binary(max_size=60), st.integers(0, 3))
def test_rubbish_is_an_invalid_argument(content: bytes, count: int) -> None:
    reader = link_values.ValueReader(content, 0, [np.zeros(8, np.uint8)] * count, bytes)
    with contextlib.suppress(errors.InvalidArgumentError):
        reader.read()


@given(st.integers(0, 200))
def test_a_frame_that_is_cut_off_is_an_invalid_argument(length: int) -> None:
    header, _ = packed(np.arange(20, dtype=np.float32), np.array([b"abc"], object))
    reader = link_values.ValueReader(header[: min(length, len(header) - 1)], 0, [], from_proto)

    def read_all() -> None:
        for _ in range(2):
            reader.read()

    with pytest.raises(errors.InvalidArgumentError):
        read_all()


@pytest.mark.parametrize("nbytes", [0, 40_000, 39_992, 40_008])
def test_a_buffer_of_another_size_is_an_invalid_argument(nbytes: int) -> None:
    header, _ = packed(np.zeros(5000, np.float64)) if nbytes != 40_000 else packed(np.zeros(4999, np.float64))
    reader = link_values.ValueReader(header, 0, [np.zeros(nbytes, np.uint8)], from_proto)

    with pytest.raises(errors.InvalidArgumentError):
        reader.read()


def test_a_push_that_is_cut_off_is_an_invalid_argument() -> None:
    value, buffers = packed(np.float32(1))
    name = b"key"
    frame = PUSH.pack(4, 1) + KEY_NUMBER.pack(len(name)) + name + value
    got: list[Any] = []
    read_push(frame, buffers, lambda *tensor: got.append(tensor))
    assert got == [(4, "key", np.float32(1), False)]

    for length in range(len(frame)):
        with pytest.raises(errors.InvalidArgumentError):
            read_push(frame[:length], buffers, lambda *_: None)


# -- numbers -----------------------------------------------------------------------------------------------------------


def test_a_number_is_never_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_ids, "CALLER_KEEPS", 3)
    given_numbers = short_ids.AssignedIds()
    numbers = [given_numbers.give(what) for what in "abcdefgab"]

    assert len(set(numbers)) == len(numbers)
    assert given_numbers.find("b") == numbers[-1]
    assert given_numbers.find("d") is None


def test_the_oldest_meaning_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_ids, "OTHER_KEEPS", 2)
    known: short_ids.KnownIds[str] = short_ids.KnownIds()
    for number, meaning in enumerate("abc"):
        known.learn(number, meaning)
    known.learn(2, "C")

    assert [known.find(number) for number in range(3)] == [None, "b", "C"]


# -- a run at once -----------------------------------------------------------------------------------------------------

OTHER = "/job:other/replica:0/task:0"


class Short(RunPolicy):
    """Lets everything compute at once, or nothing."""

    answer = True

    def is_short(self, *_: Any) -> bool:
        return self.answer


class AtOnce:
    """x + r goes to the caller, to the ps and to another task; r comes from the ps, x is fed."""

    def __init__(self) -> None:
        part = PartBuilder()
        self.x = part.feed("x")
        self.key = part.recv("r", F32, f"{PS}/device:CPU:0", 5)
        part.node("Add", "y", ["x", "r"], T=F32)
        self.fetch = part.fetch("y")
        tasks = ("/job:localhost/replica:0/task:1", PS, OTHER)
        self.answer, *self.pushed = (part.send("y", F32, f"{task}/device:CPU:0", f"to {task}") for task in tasks)
        self.program = compiled(part)
        pushed = tuple((task, (key,)) for task, key in zip(tasks[1:], self.pushed, strict=True))
        self.plan = ExchangePlan("", "", answered=(self.answer,), pushed=pushed, expected=(self.key,))
        self.program.policy = Short(10**15, sized_by_values=False, loops=False)

    def run(self, pushed: Any, brought: bool = True, plan: ExchangePlan | None = None) -> Any:
        tensors = {self.key: (np.float32([4]), False)} if brought else {}
        return run_at_once(self.program, plan or self.plan, 9, {self.x: np.float32([2])}, tensors, pushed)


def test_a_run_at_once_answers_and_pushes_by_task() -> None:
    each = AtOnce()
    sent: list[Any] = []

    found = each.run(lambda *push: sent.append(push))

    assert found.values[each.fetch].tolist() == [6.0]
    assert [(number, value.tolist(), is_dead) for number, value, is_dead in found.answered] == [(0, [6.0], False)]
    assert [(task, step) for task, step, _ in sent] == [(PS, 9), (OTHER, 9)]
    tensors = [(key, value.tolist(), is_dead) for _, _, pushed in sent for key, value, is_dead in pushed]
    assert tensors == [(key, [6.0], False) for key in each.pushed]


def test_what_is_not_short_or_lacks_something_does_not_run_at_once() -> None:
    def never(*_: Any) -> None:
        raise AssertionError("nothing has run")

    each = AtOnce()
    assert each.run(never, brought=False) is None
    without = ExchangePlan("", "", answered=(each.answer,), expected=(each.key,))
    assert each.run(never, plan=without) is None
    each.program.policy.answer = False  # type: ignore[attr-defined]
    assert each.run(never) is None


def test_a_program_that_may_wait_or_has_no_code_does_not_run_at_once() -> None:
    blocks = PartBuilder()
    blocks.node("FIFOQueueV2", "queue", component_types=[F32], shapes=[TensorShape([])])
    blocks.node("QueueDequeueV2", "element", ["queue"], component_types=[F32])
    blocks.fetch("element")
    plan = ExchangePlan("", "")

    assert run_at_once(compiled(blocks), plan, 9, {}, {}, Pushed.__call__) is None  # type: ignore[arg-type]
    program = sums().program
    program.compiled = replace(program.compiled, generated=None)
    assert run_at_once(program, plan, 9, {}, {}, Pushed.__call__) is None  # type: ignore[arg-type]


def test_what_fails_at_once_is_raised_and_nothing_is_pushed() -> None:
    each = AtOnce()
    sent: list[Any] = []
    brought = {each.key: (np.ones((2, 3), np.float32), False)}

    feeds = {each.x: np.ones((4, 5), np.float32)}
    with pytest.raises(errors.InvalidArgumentError, match="Incompatible shapes"):
        run_at_once(each.program, each.plan, 9, feeds, brought, lambda *push: sent.append(push))

    assert sent == []


async def test_only_the_first_of_several_sends_of_a_thread_asks_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    pushed, loop = Pushed(), asyncio.get_running_loop()
    outbox, calls = Outbox(PLAN, Rendezvous(7), pushed), []
    asked = loop.call_soon_threadsafe
    monkeypatch.setattr(loop, "call_soon_threadsafe", lambda call, *more: (calls.append(call), asked(call, *more))[1])

    def work() -> None:
        for number in range(3):
            outbox.send("p", number)

    for _ in range(2):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        pushed.enough.clear()
        await asyncio.sleep(0)

    assert calls == [outbox._flush_scheduled] * 2
    assert [[value for _, value, _ in tensors] for _, _, tensors in pushed.sent] == [[0, 1, 2]] * 2
    assert outbox.finish() == []
    assert len(pushed.sent) == 2


async def test_a_step_that_was_aborted_meanwhile_sends_nothing_on() -> None:
    pushed, rendezvous = Pushed(), Rendezvous(7)
    outbox = Outbox(PLAN, rendezvous, pushed)
    thread = threading.Thread(target=outbox.send, args=("p", 1))
    thread.start()
    thread.join()
    rendezvous.abort(errors.aborted("over"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert pushed.sent == []


async def test_a_bug_of_a_link_ends_the_step_as_internal() -> None:
    def breaks(*_: Any) -> None:
        raise KeyError("a bug")

    rendezvous, ended = Rendezvous(7), asyncio.Event()
    rendezvous.listen(lambda error: ended.set())
    outbox = Outbox(PLAN, rendezvous, breaks)
    thread = threading.Thread(target=outbox.send, args=("p", 1))
    thread.start()
    thread.join()
    async with asyncio.timeout(30):
        await ended.wait()

    assert isinstance(rendezvous.error, errors.InternalError)
    assert rendezvous.error.message == "'a bug'"


async def test_what_is_kept_is_counted_and_flushing_nothing_pushes_nothing() -> None:
    pushed, rendezvous = Pushed(), Rendezvous(7)
    outbox = Outbox(PLAN, rendezvous, pushed)
    outbox.send("k1", 1, True)
    outbox.send("k2", 2)
    outbox.flush()
    assert outbox.kept == 2
    assert pushed.sent == []
    assert outbox.finish() == []
    got: list[Any] = []
    rendezvous.recv("k1", lambda *told: got.append(told))
    assert got == [(1, True, None)]


def test_two_receivers_of_one_tensor_are_a_bug_of_the_cut() -> None:
    part = PartBuilder()
    key = part.recv("a", F32, f"{PS}/device:CPU:0", 5, edge="edge")
    part.recv("b", F32, f"{PS}/device:CPU:0", 5, edge="edge")
    part.node("Add", "y", ["a", "b"], T=F32)
    part.fetch("y")
    program = compiled(part)
    program.policy = Short(10**15, sized_by_values=False, loops=False)
    plan, brought = ExchangePlan("", "", expected=(key,)), {key: (np.float32([4]), False)}

    with pytest.raises(errors.InternalError, match="Step 9: two receivers wait for the same tensor"):
        run_at_once(program, plan, 9, {}, brought, lambda *_: None)
