"""The master's end of a link: steps by number, within the read or by the scheduled path, and what is malformed."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from tenfold_core import errors, message_parts
from tenfold_core.access.gate import Caller
from tenfold_core.access.roles import Role
from tenfold_link.wire.calls import (
    HAS_NAMES,
    HAS_OPTIONS,
    RUN_STEP,
    RUN_STEP_ANSWER,
    STEP_DONE,
    UNKNOWN_NUMBER,
    LinkCall,
)
from tenfold_protos.config_pb2 import RunMetadata, RunOptions
from tenfold_protos.graph_pb2 import GraphDef
from tenfold_protos.master_pb2 import RunStepRequest
from tenfold_services.exchange.step_frames import pack, reader
from tenfold_services.rpc import link_master_service as module
from tenfold_services.rpc.link_master_service import MasterEndpoint

CALLER = Caller(Role.RUN, "token ci")
ONE = np.float32([1])


class FakeLink:
    peer_caller = CALLER

    def __init__(self) -> None:
        self.staged: list[Any] = []

    def stage(self, buffer: Any) -> Any:
        self.staged.append(buffer)
        return buffer


class FakeStep:
    """A step that needs no other task."""

    def __init__(self, fetched: Any, *, is_short: bool = True) -> None:
        self._fetched, self._is_short = fetched, is_short
        self.ran: list[Any] = []

    def is_short(self, values: Any) -> bool:
        return self._is_short

    def run_timed(self, values: Any) -> Any:
        self.ran.append([value.tolist() for value in values])
        return self._fetched


class FakeMaster:
    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.step: FakeStep | None = None
        self.metadata: RunMetadata | None = None

    def check_caller(self, handle: str, caller: Caller) -> None:
        self.asked.append(("check", handle, caller))
        if handle == "another's":
            raise errors.permission_denied("not yours")

    def find_step(self, *names: Any) -> Any:
        self.asked.append(("find", *names))
        return self.step

    async def run_step(self, *given: Any) -> Any:
        self.asked.append(("run", *given))
        return [ONE + 1], self.metadata

    def names(self) -> list[str]:
        return [each[0] for each in self.asked]


@pytest.fixture
def master() -> FakeMaster:
    return FakeMaster()


@pytest.fixture
def link() -> FakeLink:
    return FakeLink()


@pytest.fixture
def end(link: FakeLink, master: FakeMaster) -> MasterEndpoint:
    return MasterEndpoint(cast("Any", link), cast("Any", master))


def names(session: str = "s", options: RunOptions | None = None, request_id: int = 0) -> RunStepRequest:
    request = RunStepRequest(session_handle=session, fetch=["y:0"], target=["t"], request_id=request_id)
    if options is not None:
        request.options.CopyFrom(options)
    request.feed.add(name="x:0")
    return request


def run(end: MasterEndpoint, number: int, flags: int = 0, message: Any = None, values: Any = (ONE,)) -> Any:
    content = b"" if message is None else message.SerializeToString()
    parts, buffers = [RUN_STEP.pack(number, flags, len(values), len(content)), content], []  # type: ignore[var-annotated]
    for value in values:
        pack(value, False, parts, buffers)
    return end.run_step(cast("Any", FakeLink()), b"".join(parts), buffers)


def read(reply: Any) -> tuple[list[Any], RunMetadata]:
    header, buffers = reply
    status, count, length = RUN_STEP_ANSWER.unpack_from(header)
    assert status == STEP_DONE
    begin = RUN_STEP_ANSWER.size + length
    records = reader(header, begin, buffers)
    values = [records.read()[0].tolist() for _ in range(count)]
    return values, RunMetadata.FromString(header[RUN_STEP_ANSWER.size : begin])


def test_what_an_end_serves(end: MasterEndpoint) -> None:
    [(number, method)] = end.methods().items()
    assert (number, method.name, method.handle, method.needs) == (
        LinkCall.RUN_STEP,
        "RunStep",
        end.run_step,
        Role.RUN_UNTRUSTED,
    )


def test_a_short_step_is_answered_within_the_read(end: MasterEndpoint, master: FakeMaster) -> None:
    master.step = FakeStep([ONE])

    assert read(run(end, 4, HAS_NAMES, names())) == ([[1]], RunMetadata())

    assert master.asked == [("check", "s", CALLER), ("find", "s", ("x:0",), ("y:0",), ("t",))]
    assert master.step.ran == [[[1]]]


def test_a_number_stands_for_the_names_from_then_on(end: MasterEndpoint, master: FakeMaster) -> None:
    master.step = FakeStep([ONE])
    run(end, 4, HAS_NAMES, names())
    master.asked.clear()

    assert read(run(end, 4)) == ([[1]], RunMetadata())

    assert master.asked == []
    assert len(master.step.ran) == 2


def test_an_unknown_number_is_answered_so(end: MasterEndpoint, master: FakeMaster) -> None:
    assert run(end, 4) == (RUN_STEP_ANSWER.pack(UNKNOWN_NUMBER, 0, 0), ())
    assert master.asked == []


def test_names_are_learned_from_a_frame_that_has_them_alone(end: MasterEndpoint, master: FakeMaster) -> None:
    assert run(end, 4, HAS_OPTIONS, names())[0] == RUN_STEP_ANSWER.pack(UNKNOWN_NUMBER, 0, 0)
    assert master.asked == []


async def test_a_step_of_several_tasks_takes_the_scheduled_path(end: MasterEndpoint, master: FakeMaster) -> None:
    master.metadata = RunMetadata(partition_graphs=[GraphDef()])

    assert read(await run(end, 4, HAS_NAMES, names())) == ([[2]], master.metadata)
    await run(end, 4)

    assert master.names() == ["check", "find", "run", "find", "run"]
    _, handle, feeds, fetches, targets, options, number = master.asked[2]
    assert (handle, feeds["x:0"].tolist(), fetches, targets) == ("s", [1], ("y:0",), ("t",))
    assert (options, number) == (RunOptions(), 0)


async def test_a_long_step_takes_it_too_and_is_kept_in_mind(end: MasterEndpoint, master: FakeMaster) -> None:
    master.step = FakeStep([ONE], is_short=False)
    for flags, message in ((HAS_NAMES, names()), (0, None)):
        assert read(await run(end, 4, flags, message))[0] == [[2]]
    assert master.names() == ["check", "find", "run", "run"]
    assert master.step.ran == []


async def test_a_step_that_cannot_run_here_any_more_is_looked_up_again(end: MasterEndpoint, master: FakeMaster) -> None:
    master.step = FakeStep(None)
    assert read(await run(end, 4, HAS_NAMES, names()))[0] == [[2]]
    master.step = FakeStep([ONE])
    assert read(run(end, 4))[0] == [[1]]
    assert master.names() == ["check", "find", "run", "find"]


async def test_options_go_along_by_the_scheduled_path(end: MasterEndpoint, master: FakeMaster) -> None:
    master.step = FakeStep([ONE])
    options = RunOptions(timeout_in_ms=5)
    await run(end, 4, HAS_NAMES | HAS_OPTIONS, names(options=options, request_id=6))
    await run(end, 4, HAS_OPTIONS, RunStepRequest(options=options, request_id=7))
    assert master.names() == ["check", "run", "run"]
    assert [each[-2:] for each in master.asked[1:]] == [(options, 6), (options, 7)]


async def test_options_are_read_where_the_frame_says_that_they_are_there(
    end: MasterEndpoint, master: FakeMaster
) -> None:
    await run(end, 4, HAS_NAMES, names(options=RunOptions(timeout_in_ms=5), request_id=6))
    assert master.asked[-1][-2:] == (RunOptions(), 0)


def test_a_session_of_another_caller_is_refused(end: MasterEndpoint, master: FakeMaster) -> None:
    with pytest.raises(errors.PermissionDeniedError, match="not yours"):
        run(end, 4, HAS_NAMES, names("another's"))
    assert run(end, 4)[0] == RUN_STEP_ANSWER.pack(UNKNOWN_NUMBER, 0, 0)


async def test_feeds_that_take_long_to_read_are_read_in_a_thread(end: MasterEndpoint, master: FakeMaster) -> None:
    master.step = FakeStep([ONE])
    words = np.array([b"x" * (1 << 20)], object)
    request = names(options=RunOptions(timeout_in_ms=5), request_id=6)

    assert read(await run(end, 4, HAS_NAMES | HAS_OPTIONS, request, [words]))[0] == [[2]]

    _, _, feeds, *_, options, number = master.asked[-1]
    assert feeds["x:0"].tolist() == words.tolist()
    assert (options, number) == (request.options, 6)
    assert master.step.ran == []


async def test_a_step_without_feeds_reads_none(end: MasterEndpoint, master: FakeMaster) -> None:
    request = names()
    del request.feed[:]
    await run(end, 4, HAS_NAMES, request, [])
    assert master.asked[-1][2] == {}


def test_values_that_may_change_are_copied_into_the_answer(
    end: MasterEndpoint, master: FakeMaster, link: FakeLink
) -> None:
    kept = np.zeros(1 << 20, np.uint8)
    kept.flags.writeable = False
    master.step = FakeStep([kept, np.zeros(1 << 20, np.uint8)])
    assert len(read(run(end, 4, HAS_NAMES, names()))[0]) == 2
    assert len(link.staged) == 1


@pytest.mark.parametrize("values", [[], [ONE, ONE]])
def test_a_step_has_as_many_feeds_as_its_names(end: MasterEndpoint, values: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=rf"RunStep brings {len(values)} feeds for 1: x:0\."):
        run(end, 4, HAS_NAMES, names(), values)


def test_a_header_that_is_cut_off_is_refused(end: MasterEndpoint) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="RunStep: the frame's header is cut off: unpack_from"):
        end.run_step(cast("Any", FakeLink()), b"\0" * (RUN_STEP.size - 1), [])


@pytest.mark.parametrize("size", [1, message_parts.PORTION + 1])
def test_a_message_that_is_none_is_refused(end: MasterEndpoint, size: int) -> None:
    header = RUN_STEP.pack(4, HAS_NAMES, 0, size) + b"\xff" * size
    with pytest.raises(errors.InvalidArgumentError, match="RunStep: its message is malformed"):
        end.run_step(cast("Any", FakeLink()), header, [])


def test_a_step_has_so_many_names(end: MasterEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(module, "check_counts", lambda *counts: asked.append(counts))
    request = names()
    request.fetch.extend(["z"] * 2)
    run(end, 4, HAS_NAMES, request).close()
    assert asked == [(1, 3, 1)]


def test_a_large_message_is_read_by_portions_of_so_many_parts(
    end: MasterEndpoint, master: FakeMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    master.step = FakeStep([ONE])
    read(run(end, 4, HAS_NAMES, names("s" * message_parts.PORTION)))
    assert master.asked[0][1] == "s" * message_parts.PORTION
    monkeypatch.setattr(module, "MAX_NAMES", 20_000)
    monkeypatch.setattr(module, "check_counts", lambda *counts: None)
    assert read(run(end, 5, HAS_NAMES, RunStepRequest(target=["twelve bytes"] * 39_990), []))[0] == [[1]]
    request = RunStepRequest(target=["twelve bytes"] * 40_002)
    with pytest.raises(errors.ResourceExhaustedError, match=r"RunStep: .*\.$"):
        run(end, 5, HAS_NAMES, request, [])
