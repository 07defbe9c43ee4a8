"""The layouts of a step's frames, which both ends of every release read, and a run signature's message."""

from __future__ import annotations

import pytest

from tenfold_link.wire import calls
from tenfold_link.wire.calls import LinkCall, StepNames
from tenfold_protos.master_pb2 import RunStepRequest


def test_numbers_of_methods_are_for_good() -> None:
    assert {call.name: int(call) for call in LinkCall} == {
        "RUN_STEP": 1, "RUN_GRAPH": 16, "RECV_TENSOR": 17, "CLEANUP_GRAPH": 18, "PUSH": 19, "ARRANGE": 20,
        "PRODUCER": 21,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("layout", "values", "data"),
    [
        (calls.RUN_STEP, (1, 2, 3, 4), "0100000000000000 02 00 0300 04000000"),
        (calls.RUN_STEP_ANSWER, (1, 2, 3), "01 00 0200 03000000"),
        (calls.RUN_GRAPH, (1, 2, 3, 4, 5, 6, 7), "0100000000000000 0200000000000000 03 04 0500 0600 0000 07000000"),
        (calls.RUN_GRAPH_ANSWER, (1, 2, 3, 4), "01 00 0200 0300 0000 04000000"),
        (calls.KEY_NUMBER, (258,), "0201"),
        (calls.PUSH, (1, 2), "0100000000000000 0200"),
        (calls.STEP, (1,), "0100000000000000"),
    ],
)
def test_layouts_are_for_good(layout: object, values: tuple[int, ...], data: str) -> None:
    assert layout.pack(*values) == bytes.fromhex(data)  # type: ignore[attr-defined]


def test_flags_are_for_good() -> None:
    assert (calls.HAS_NAMES, calls.HAS_OPTIONS) == (1, 2)
    assert (calls.STEP_DONE, calls.UNKNOWN_NUMBER) == (0, 1)
    assert (calls.RECORD_TIMELINE, calls.RECORD_COSTS, calls.RECORD_PARTITION_GRAPHS) == (1, 2, 4)


def test_the_names_of_a_step_are_said_and_read_in_their_order() -> None:
    names = StepNames("session", ("b:0", "a:0"), ("d:1", "c:0"), ("z", "y"))
    request = RunStepRequest()
    names.say(request)
    assert request.session_handle == "session"
    assert [feed.name for feed in request.feed] == ["b:0", "a:0"]
    assert list(request.fetch) == ["d:1", "c:0"]
    assert list(request.target) == ["z", "y"]
    assert StepNames.of(request) == names
