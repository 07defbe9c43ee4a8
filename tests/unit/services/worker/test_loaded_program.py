"""A partition compiled: what is checked, what is fixed beforehand, what a step of it does. No event loop."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.parts import PartBuilder
from support.programs import compile_program
from tenfold_compiler.build import structured, written
from tenfold_compiler.write.region_schedule import Wanted
from tenfold_core import dtypes, errors
from tenfold_core.checkpoint import BundleReader
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.cpu import _cuts
from tenfold_kernels.loop_turns import MOST_TURNS
from tenfold_kernels.resources.state import ResourceManager, Variable
from tenfold_kernels.resources.waiting import Waiting
from tenfold_services.limits import DEFAULT_LIMITS, Limits
from tenfold_services.worker.execution import StepIO
from tenfold_services.worker.loaded_program import LoadedProgram, SplitExecution

if TYPE_CHECKING:
    from pathlib import Path

TASK = "/job:localhost/replica:0/task:0"
F32 = dtypes.float32


def compile_part(part: PartBuilder, resources: ResourceManager | None = None, **limits: Any) -> LoadedProgram:
    return compile_program(part.graph_def, TASK, resources or ResourceManager(), Limits(**limits))


def run(program: LoadedProgram, feeds: dict[str, Any] | None = None) -> dict[str, Any]:
    execution = program.start(StepIO(feeds or {}, _no_send))
    execution.advance()
    assert execution.done
    return execution.fetched()


def _no_send(key: str, value: Any, is_dead: bool) -> None:
    raise AssertionError(f"{key} was sent")


def with_kernel(program: LoadedProgram, name: str, kernel: Any) -> LoadedProgram:
    """The same program with another kernel for one node."""
    index = next(node.index for node in program.compiled.part.nodes if node.name == name)
    kernels = {**program.compiled.kernels, index: kernel}
    changed = written(structured(program.compiled.part, kernels, program.compiled.constants, MOST_TURNS), fuses=False)
    return LoadedProgram(changed, DEFAULT_LIMITS.inline_nanoseconds)


def sum_part() -> tuple[PartBuilder, str, str]:
    part = PartBuilder()
    x = part.feed("x")
    part.const("one", 1.0)
    part.node("Add", "sum", ["x", "one"], T=F32)
    return part, x, part.fetch("sum")


def test_feed_add_fetch() -> None:
    part, x, y = sum_part()
    program = compile_part(part)
    assert program.compiled.is_straight
    assert run(program, {x: np.float32([1, 2])})[y].tolist() == [2, 3]


def test_a_chain_runs_in_order_whatever_the_order_of_the_nodes() -> None:
    part = PartBuilder()
    x = part.feed("x")
    for i in reversed(range(200)):
        part.node("Add", f"a{i}", [f"a{i - 1}" if i else "x", "one"], T=F32)
    part.const("one", 1.0)
    y = part.fetch("a199")
    assert run(compile_part(part), {x: np.float32(0).reshape(())})[y] == 200


def test_several_outputs_some_of_them_unused() -> None:
    part = PartBuilder()
    x = part.feed("x")
    part.const("axis", 0)
    part.node("Split", "split", ["axis", "x"], num_split=3, T=F32)
    part.node("Neg", "neg", ["split:1"], T=F32)
    y = part.fetch("neg")
    assert run(compile_part(part), {x: np.float32([1, 2, 3])})[y].tolist() == [-2]


def test_a_fetched_constant_is_a_copy() -> None:
    part = PartBuilder()
    part.const("c", [1.0, 2.0])
    key = part.fetch("c")
    program = compile_part(part)
    first = run(program)[key]
    first[:] = 7
    assert run(program)[key].tolist() == [1, 2]


def test_a_feed_is_not_written_to_and_a_fetched_feed_is_a_copy() -> None:
    part = PartBuilder()
    x = part.feed("x")
    part.node("Identity", "same", ["x"], T=F32)
    y = part.fetch("same")
    fed = np.float32([1, 2])
    result = run(compile_part(part), {x: fed})[y]
    result[:] = 9
    assert fed.tolist() == [1, 2]
    assert fed.flags.writeable


def test_a_missing_feed_names_the_placeholder() -> None:
    part, _, _ = sum_part()
    with pytest.raises(errors.InvalidArgumentError, match=r"'x'.*\n\t \[\[\{\{node x\}\}\]\]"):
        run(compile_part(part))


def test_a_feed_of_the_wrong_type_names_both_types() -> None:
    part, x, _ = sum_part()
    with pytest.raises(errors.InvalidArgumentError, match="has dtype int64; float is expected"):
        run(compile_part(part), {x: np.int64([1])})


def test_a_kernel_error_carries_its_node_once() -> None:
    part, x, _ = sum_part()
    program = compile_part(part)

    def fails(*_: Any) -> Any:
        raise errors.OutOfRangeError(None, None, "past the end")

    with pytest.raises(errors.OutOfRangeError) as caught:
        run(with_kernel(program, "sum", fails), {x: np.float32([1])})
    assert caught.value.message == "past the end\n\t [[{{node sum}}]]"
    assert caught.value.node_def.name == "sum"
    assert caught.value.node_def.device == f"{TASK}/device:CPU:0"


def test_a_kernel_that_breaks_is_an_internal_error_of_its_node() -> None:
    part, x, _ = sum_part()

    def breaks(*_: Any) -> Any:
        raise ZeroDivisionError("oops")

    with pytest.raises(errors.InternalError, match=r"(?s)Add failed with ZeroDivisionError: oops.*node sum"):
        run(with_kernel(compile_part(part), "sum", breaks), {x: np.float32([1])})


def test_values_are_freed_at_their_last_use() -> None:
    part = PartBuilder()
    x = part.feed("x")
    part.const("one", 1.0)
    for i in range(4):
        part.node("Add", f"a{i}", [f"a{i - 1}" if i else "x", "one"], T=F32)
    part.fetch("a3")
    alive: list[weakref.ref[Any]] = []
    counts: list[int] = []

    def kernel(a: Any, b: Any) -> Any:
        result = np.add(a, b)
        alive.append(weakref.ref(result))
        counts.append(sum(ref() is not None for ref in alive))
        return result

    program = compile_part(part)
    for i in range(4):
        program = with_kernel(program, f"a{i}", kernel)
    gc.disable()
    try:
        run(program, {x: np.ones(8, np.float32)})
    finally:
        gc.enable()
    assert max(counts) == 2  # a kernel's input and its output


def test_a_reference_edge_is_read_by_a_consumer_of_values() -> None:
    part = PartBuilder()
    part.node("VariableV2", "w", shape=[2], dtype=F32)
    part.const("init", [1.0, 2.0])
    part.node("Assign", "assign", ["w", "init"], T=F32)
    part.node("Add", "twice", ["assign", "assign"], T=F32)
    part.node("Identity", "read", ["w", "^twice"], T=F32)
    twice, read = part.fetch("twice"), part.fetch("read")
    resources = ResourceManager()
    values = run(compile_part(part, resources))
    assert values[twice].tolist() == [2, 4]
    assert values[read].tolist() == [1, 2]
    values[read][:] = 0
    assert resources.lookup("", "w", Variable).value.tolist() == [1, 2]


PS = "/job:ps/replica:0/task:0/device:CPU:0"


def two_updates() -> PartBuilder:
    """Two variables, each with an addition that waits for a tensor of its own."""
    part = PartBuilder()
    for name in ("a", "b"):
        part.node("VariableV2", name, shape=[], dtype=F32)
        part.recv(f"grad_{name}", F32, PS, 1)
        part.node("AssignAdd", f"add_{name}", [name, f"grad_{name}"], T=F32)
    return part


def initialized() -> ResourceManager:
    resources = ResourceManager()
    for name in ("a", "b"):
        variable = resources.lookup_or_create(
            "", name, Variable, lambda name=name: Variable(name, F32, TensorShape([]))
        )
        variable.assign(np.float32(0).reshape(()))
    return resources


def between_updates(resources: ResourceManager) -> bool:
    with resources.unfinished.none(0, 0) as none:
        return not none


def test_a_step_is_unfinished_from_its_first_update_to_its_last() -> None:
    resources = initialized()
    program = compile_part(two_updates(), resources)
    seen = []
    for _ in range(2):
        execution = program.start(StepIO({}, _no_send))
        for wanted in execution.take_wanted():
            seen.append(between_updates(resources))
            execution.arrived(wanted.token, np.float32(1).reshape(()), False)
            execution.advance()
        seen.append(between_updates(resources))
        assert execution.done

    assert seen == [False, True, False] * 2
    assert resources.lookup("", "a", Variable).value == resources.lookup("", "b", Variable).value == 2


def test_a_step_that_ends_between_its_updates_leaves_none_unfinished() -> None:
    resources = initialized()
    program = compile_part(two_updates(), resources)
    execution = program.start(StepIO({}, _no_send))
    first, second = execution.take_wanted()
    execution.arrived(first.token, np.float32(1).reshape(()), False)
    execution.advance()
    assert between_updates(resources)
    execution.arrived(second.token, np.zeros(3, np.float32), False)
    with pytest.raises(errors.InvalidArgumentError):
        execution.advance()
    assert not between_updates(resources)

    execution = program.start(StepIO({}, _no_send))
    execution.arrived(execution.take_wanted()[0].token, np.float32(1).reshape(()), False)
    execution.advance()
    assert between_updates(resources)
    del execution  # a run that is aborted
    assert not between_updates(resources)


def test_updates_that_come_at_once_and_single_ones(tmp_path: Path) -> None:
    resources, noted = initialized(), []
    begin = resources.unfinished.begin

    def noting() -> Any:
        noted.append(True)
        return begin()

    resources.unfinished.begin = noting  # type: ignore[method-assign]
    program = compile_part(two_updates(), resources)
    execution = program.start(StepIO({}, _no_send))
    for wanted in execution.take_wanted():
        execution.arrived(wanted.token, np.float32(1).reshape(()), False)
    execution.advance()
    assert execution.done
    assert not between_updates(resources)
    assert len(noted) == 1
    single = PartBuilder()
    single.node("VariableV2", "a", shape=[], dtype=F32)
    single.const("one", 1.0)
    single.node("AssignAdd", "add", ["a", "one"], T=F32)
    run(compile_part(single, resources))
    assert len(noted) == 1, "one update has no between"

    # a save in the step that updates would wait for itself
    part = two_updates()
    part.const("prefix", str(tmp_path / "saved").encode(), dtypes.string)
    part.const("names", [b"a", b"b"], dtypes.string)
    part.const("slices", [b"", b""], dtypes.string)
    part.node("SaveV2", "save", ["prefix", "names", "slices", "a", "b", "^add_a", "^add_b"], dtypes=[F32, F32])
    assert not compile_part(part, resources).unfinished


def test_a_save_reads_references_at_its_moment(tmp_path: Path) -> None:
    """Not when the step comes to them: an update that a step under way makes meanwhile is in it."""
    resources = ResourceManager()
    part, prefix = PartBuilder(), str(tmp_path / "saved")
    kinds = {"number": dtypes.int64, "large": F32, "text": dtypes.string}
    values: dict[str, Any] = {"number": np.int64(1).reshape(()), "large": np.zeros(1 << 16, np.float32)}
    values["text"] = np.array([b"old"], object)
    for name, dtype in kinds.items():
        shape = list(values[name].shape)
        part.node("VariableV2", name, shape=shape, dtype=dtype)
        variable = resources.lookup_or_create(
            "", name, Variable, lambda name=name, dtype=dtype, shape=shape: Variable(name, dtype, TensorShape(shape))
        )
        variable.assign(values[name])
    part.const("prefix", prefix.encode(), dtypes.string)
    part.const("names", [name.encode() for name in kinds], dtypes.string)
    part.const("slices", [b""] * 3, dtypes.string)
    part.node("SaveV2", "save", ["prefix", "names", "slices", *kinds], dtypes=[*kinds.values()])
    program = compile_part(part, resources)
    unfinished, waits = resources.unfinished.begin(), threading.Event()
    none = resources.unfinished.none

    def waiting(*seconds: float) -> Any:
        waits.set()
        return none(*seconds)

    resources.unfinished.none = waiting  # type: ignore[method-assign]
    saving = threading.Thread(target=run_to_end, args=(program,))
    saving.start()
    assert waits.wait(30)
    for name, value in (("number", np.int64(2).reshape(())), ("large", np.ones(1 << 16, np.float32))):
        resources.lookup("", name, Variable).assign(value)
    resources.lookup("", "text", Variable).assign(np.array([b"new"], object))
    unfinished.end()
    saving.join(30)

    with BundleReader(prefix) as reader:
        assert reader.read("number") == 2
        assert reader.read("large").all()
        assert reader.read("text").tolist() == [b"new"]


def test_a_step_that_a_save_has_a_part_of_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    resources, part = initialized(), PartBuilder()
    part.node("VariableV2", "a", shape=[], dtype=F32)
    part.const("prefix", str(tmp_path / "saved").encode(), dtypes.string)
    part.const("names", [b"a"], dtypes.string)
    part.const("slices", [b""], dtypes.string)
    part.node("SaveV2", "save", ["prefix", "names", "slices", "a"], dtypes=[F32])
    program = compile_part(part, resources)
    monkeypatch.setattr(_cuts, "_PATIENCE", 0.0)
    monkeypatch.setattr(_cuts, "_HELD_BACK", 0.0)
    run_to_end(program)
    assert not caplog.messages
    unfinished = resources.unfinished.begin()
    run_to_end(program)
    unfinished.end()
    assert [message for message in caplog.messages if message.startswith("save saved while a step had made some of")]


def run_to_end(program: LoadedProgram) -> None:
    """A step whose kernels may wait for files."""
    execution = program.start(StepIO({}, _no_send))
    execution.advance()
    for wanted in execution.take_wanted():
        raise AssertionError(f"{wanted} is waited for")


def test_an_uninitialized_variable_is_reported_at_the_node_that_reads_it() -> None:
    part = PartBuilder()
    part.node("VariableV2", "w", shape=[2], dtype=F32)
    part.node("Identity", "w/read", ["w"], T=F32)
    part.fetch("w/read")
    with pytest.raises(errors.FailedPreconditionError) as caught:
        run(compile_part(part))
    assert caught.value.message == "Attempting to use uninitialized value w\n\t [[{{node w/read}}]]"


def test_a_stopped_program_does_not_run_to_its_end() -> None:
    part = PartBuilder()
    x = part.feed("x")
    part.const("one", 1.0)
    for i in range(1000):
        part.node("Add", f"a{i}", [f"a{i - 1}" if i else "x", "one"], T=F32)
    part.fetch("a999")
    calls: list[int] = []
    io = StepIO({x: np.ones((), np.float32)}, _no_send)

    def kernel(a: Any, b: Any) -> Any:
        calls.append(1)
        io.stop.append(True)
        return a

    program = compile_part(part)
    execution = with_kernel(program, "a0", kernel).start(io)
    with pytest.raises(errors.CancelledError):
        execution.advance()
    assert calls == [1]


def _unknown_op(part: PartBuilder) -> None:
    part.node("NoOp", "n")
    part.graph_def.node[-1].op = "Frobnicate"


def _missing_input(part: PartBuilder) -> None:
    part.node("Neg", "n", ["ghost"], T=F32)


def _missing_port(part: PartBuilder) -> None:
    part.const("c", 1.0)
    part.node("Neg", "n", ["c:1"], T=F32)


def _wrong_type(part: PartBuilder) -> None:
    part.const("c", 1)
    part.node("Neg", "n", ["c"], T=F32)


def _too_few_inputs(part: PartBuilder) -> None:
    part.const("c", 1.0)
    part.node("Add", "n", ["c"], T=F32)


def _data_after_control(part: PartBuilder) -> None:
    part.const("c", 1.0)
    part.node("Add", "n", ["c", "^c", "c"], T=F32)


def _cycle(part: PartBuilder) -> None:
    part.node("Neg", "n", ["m"], T=F32)
    part.node("Neg", "m", ["n"], T=F32)


def _twice(part: PartBuilder) -> None:
    part.node("NoOp", "n")
    part.node("NoOp", "n")


def _missing_attr(part: PartBuilder) -> None:
    part.const("c", 1.0)
    part.node("Neg", "n", ["c"])


def _value_for_reference(part: PartBuilder) -> None:
    part.const("c", 1.0)
    part.node("Assign", "n", ["c", "c"], T=F32)


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (_unknown_op, errors.NotFoundError, "Frobnicate"),
        (_missing_input, errors.InvalidArgumentError, "no node 'ghost'"),
        (_missing_port, errors.InvalidArgumentError, "has 1 outputs"),
        (_wrong_type, errors.InvalidArgumentError, "passed int32 from c:0 incompatible with expected float"),
        (_too_few_inputs, errors.InvalidArgumentError, "has 1 inputs; its attributes ask for 2"),
        (_data_after_control, errors.InvalidArgumentError, "after a control input"),
        (_cycle, errors.InvalidArgumentError, "cycle"),
        (_twice, errors.InvalidArgumentError, "there twice"),
        (_missing_attr, errors.InvalidArgumentError, "'T'"),
        (_value_for_reference, errors.InvalidArgumentError, "expected float_ref"),
    ],
)
def test_a_bad_partition_is_refused_at_registration(build: Any, error: type[errors.OpError], text: str) -> None:
    part = PartBuilder()
    build(part)
    with pytest.raises(error) as caught:
        compile_part(part)
    assert text in caught.value.message
    assert "{{node " in caught.value.message


def test_too_many_nodes_are_refused() -> None:
    part, _, _ = sum_part()
    with pytest.raises(errors.ResourceExhaustedError, match="2 is the limit"):
        compile_part(part, nodes_per_graph=2)


def test_names_from_the_graph_do_not_get_into_the_generated_code() -> None:
    part = PartBuilder()
    nasty = "x\n import os; os._exit(1) #"
    x = part.feed(nasty)
    part.node("Neg", "y'; raise SystemExit", [nasty], T=F32)
    y = part.fetch("y'; raise SystemExit")
    assert run(compile_part(part), {x: np.float32([1])})[y].tolist() == [-1]


# -- a program in halves -----------------------------------------------------------------------------------------------


class Half:
    """Half of a step: runs one stretch once all it wants has come, and sends what it is told to."""

    def __init__(
        self, io: StepIO, wants: tuple[Wanted, ...] = (), sends: tuple[tuple[str, Any, bool], ...] = ()
    ) -> None:
        self.io, self.wants, self.sends = io, list(wants), sends
        self.missing, self.left = len(wants), 1
        self.had: list[Any] = []
        self.careful: list[bool] = []
        self.shapes = len(wants)

    @property
    def ready(self) -> bool:
        return not self.missing and self.left > 0

    @property
    def done(self) -> bool:
        return not self.left

    def take_wanted(self) -> list[Wanted]:
        wanted, self.wants = self.wants, []
        return wanted

    def arrived(self, token: Any, value: Any, is_dead: bool) -> None:
        self.had.append((token, value, is_dead))
        self.missing -= 1

    def advance(self, careful: bool = False) -> None:
        self.careful.append(careful)
        for sent in self.sends:
            self.io.send(*sent)
        self.left -= 1

    def fetched(self) -> dict[str, Any]:
        return {f"fetch {id(self)}": self.had}


class Halves:
    """A step of two, the first of which sends over a cut edge, and what left the step."""

    def __init__(self, first: dict[str, Any], second: dict[str, Any], keys: tuple[str, ...] = ("cut",)) -> None:
        self.sent: list[Any] = []
        self.of: list[Half] = []

        def start(**what: Any) -> Any:
            return lambda io: (self.of.append(Half(io, **what)), self.of[-1])[1]

        io = StepIO({}, lambda *edge: self.sent.append(edge))
        self.step = SplitExecution([start(**first), start(**second)], keys, io)


def test_what_one_half_sends_the_other_has_within_the_same_stretch() -> None:
    halves = Halves({"sends": (("cut", 5, False), ("out", 6, True))}, {"wants": (Wanted("token", "cut"),)})
    assert halves.step.ready
    assert not halves.step.done
    assert list(halves.step.take_wanted()) == []

    halves.step.advance(careful=True)

    assert halves.of[1].had == [("token", 5, False)]
    assert halves.sent == [("out", 6, True)]
    assert halves.step.done
    assert not halves.step.ready
    assert [half.careful for half in halves.of] == [[True], [True]]
    assert len(halves.step.fetched()) == 2


def test_what_was_sent_before_it_is_wanted_waits_for_it() -> None:
    halves = Halves({"sends": (("cut", 5, True),)}, {"wants": (Wanted("own", "outside"),)})
    (wanted,) = halves.step.take_wanted()
    assert (wanted.key, wanted.token) == ("outside", (halves.of[1], "own"))
    halves.of[1].left = 2  # it goes on to want what the other has sent
    halves.step.advance()
    halves.of[1].wants.append(Wanted("late", "cut"))

    halves.step.arrived(wanted.token, 7, False)

    assert halves.of[1].had == [("own", 7, False), ("late", 5, True)]
    assert list(halves.step.take_wanted()) == []


def test_the_result_of_a_kernel_is_the_halfs_own_whatever_its_key() -> None:
    waiting, node = Waiting(), object()
    wanted = Wanted("token", "cut", waiting, node)  # type: ignore[arg-type]
    halves = Halves({"wants": (wanted,)}, {})

    (found,) = halves.step.take_wanted()

    assert (found.token, found.key, found.waiting, found.node) == ((halves.of[0], "token"), "cut", waiting, node)


def test_what_an_ended_half_did_not_send_is_dead_for_the_other_and_not_for_itself() -> None:
    halves = Halves({}, {"wants": (Wanted("a", "cut"), Wanted("b", "cut too"))}, ("cut", "cut too"))

    halves.step.advance()

    assert sorted(halves.of[1].had) == [("a", None, True), ("b", None, True)]
    assert halves.step.done


def test_a_half_that_fails_leaves_what_it_began_to_wait_for() -> None:
    halves = Halves({}, {})

    def fails(careful: bool = False) -> None:
        halves.of[0].wants.append(Wanted("token", "outside"))
        raise errors.internal("a kernel")

    halves.of[0].advance = fails  # type: ignore[method-assign]
    with pytest.raises(errors.InternalError, match="a kernel"):
        halves.step.advance()
    assert [wanted.key for wanted in halves.step.take_wanted()] == ["outside"]


def test_shapes_of_halves_that_exchange_them_differ() -> None:
    first = Halves({"wants": (Wanted("a", "x"),)}, {}).step.shapes
    second = Halves({}, {"wants": (Wanted("a", "x"),)}).step.shapes
    assert first != second
