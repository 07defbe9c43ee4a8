"""Steps on the wire: what a request may hold in each of its three forms, what the master is asked, what is answered."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest

from tenfold_control_api import steps as module
from tenfold_control_api.problems import ApiError
from tenfold_control_api.steps import (
    HEADER_LENGTH,
    InferenceStep,
    ProtobufStep,
    answer,
    graph_from,
    graph_message,
    message_from,
    parse_json,
    parse_message,
    read_apart,
    tensor_name,
)
from tenfold_core import errors, graph_wire, message_parts, tensor_util
from tenfold_protos import config_pb2, graph_pb2, master_pb2

X = {"name": "x", "datatype": "FP32", "shape": [2], "data": [1.0, 2.0]}


class Master:
    """Doubles the first feed for every fetch."""

    def __init__(self, error: errors.OpError | None = None, *, partitions: bool = False) -> None:
        self.error, self.asked = error, []  # type: ignore[var-annotated]
        self.metadata = config_pb2.RunMetadata()
        if partitions:
            self.metadata.partition_graphs.add()

    def run_step(self, *asked: Any) -> Any:
        self.asked.append(asked)
        if self.error is not None:
            raise self.error
        _, feeds, fetches, *_ = asked
        value = 2 * next(iter(feeds.values())) if feeds else np.float32(1)
        return [value for _ in fetches], self.metadata


def refused(call: Any, *given: Any) -> ApiError:
    with pytest.raises(ApiError) as raised:
        call(*given)
    return raised.value


def body(**members: Any) -> bytes:
    return json.dumps(members).encode()


def run(step: Any, master: Any = None) -> Any:
    acted: list[bool] = []
    found = step.run(master or Master(), "handle", 3.0, lambda: acted.append(True))
    assert acted == [True]
    return found


def test_a_name_without_an_output_is_its_first_one() -> None:
    assert [tensor_name(name) for name in ("x", "x:0", "x:1")] == ["x:0", "x:0", "x:1"]


# --- messages


def test_a_message_is_read_or_refused() -> None:
    made = graph_pb2.GraphDef(version=3)
    assert parse_message(graph_pb2.GraphDef, made.SerializeToString()) == made
    error = refused(parse_message, graph_pb2.GraphDef, b"\xff")
    assert (error.kind, error.detail) == (
        "malformed-message",
        "the body is not a GraphDef (1 bytes do not parse).",
    )


def test_a_message_that_is_too_large_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def large(*_: Any) -> Any:
        raise message_parts.TooLargeError("it has too many parts")

    monkeypatch.setattr(message_parts, "parse", large)
    error = refused(parse_message, graph_pb2.GraphDef, b"")
    assert (error.kind, error.detail) == ("body-too-large", "it has too many parts.")


def test_json_carries_messages_as_base64_or_as_json() -> None:
    made = config_pb2.RunOptions(timeout_in_ms=5)
    text = base64.b64encode(made.SerializeToString()).decode()
    assert message_from(config_pb2.RunOptions, text, "options") == made
    assert message_from(config_pb2.RunOptions, {"timeout_in_ms": 5}, "options") == made
    for value, words in (
        ("%%%", "'options' is not the base64 of a RunOptions."),
        ("/w==", "'options' is base64, but not of a RunOptions."),
        ({"unknown": 1}, "'options' is not the JSON of a RunOptions: "),
    ):
        error = refused(message_from, config_pb2.RunOptions, value, "options")
        assert error.kind == "malformed-message"
        assert error.detail.startswith(words)


def a_graph(nodes: int) -> graph_pb2.GraphDef:
    return graph_pb2.GraphDef(node=[{"name": f"n{number}", "op": "NoOp"} for number in range(nodes)])


def test_a_large_graph_has_a_bounded_number_of_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = a_graph(3)
    content = graph.SerializeToString()
    monkeypatch.setattr(graph_wire, "LARGE", len(content) + 1)
    assert graph_message(graph_pb2.GraphDef, content, 2) == graph
    monkeypatch.setattr(graph_wire, "LARGE", len(content))
    assert graph_message(graph_pb2.GraphDef, content, 3) == graph
    error = refused(graph_message, graph_pb2.GraphDef, content, 2)
    assert error.kind == "body-too-large"
    assert error.detail.endswith(" (TENFOLD_CONTROL_MAX_GRAPH_NODES).")
    broken = b"\xff" * len(content)
    error = refused(graph_message, graph_pb2.GraphDef, broken, 9)
    assert (error.kind, error.detail) == (
        "malformed-message",
        f"the body is not a GraphDef ({len(broken)} bytes do not parse).",
    )


def test_a_graph_in_json_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = a_graph(3)
    text = base64.b64encode(graph.SerializeToString()).decode()
    listed: Any = {"node": [{"name": f"n{number}", "op": "NoOp"} for number in range(3)]}
    assert graph_from(text, 2) == graph
    assert graph_from(listed, 3) == graph
    assert graph_from({}, 0) == graph_pb2.GraphDef()
    error = refused(graph_from, listed, 2)
    assert (error.kind, error.detail) == (
        "body-too-large",
        "the graph has 3 nodes; 2 are accepted (TENFOLD_CONTROL_MAX_GRAPH_NODES).",
    )
    assert refused(graph_from, "/w==", 3).detail == "'graph_def' is base64, but not of a GraphDef."
    monkeypatch.setattr(graph_wire, "LARGE", 4)
    assert refused(graph_from, "/w==", 3).detail == "the body is not a GraphDef (1 bytes do not parse)."
    monkeypatch.setattr(graph_wire, "LARGE", 1)
    assert graph_from(text, 3) == graph
    assert refused(graph_from, text, 2).kind == "body-too-large"
    error = refused(graph_from, "%" + text, 3)
    assert error.detail == "'graph_def' is not the base64 of a GraphDef."


async def test_a_large_body_is_read_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    apart: list[bool] = []
    original = graph_wire.apart

    def noted(read: Any, *given: Any) -> Any:
        apart.append(True)
        return original(read, *given)

    monkeypatch.setattr(graph_wire, "apart", noted)
    assert await read_apart(lambda: 1, graph_wire.LARGE - 1) == 1
    assert apart == []
    assert await read_apart(lambda: 2, graph_wire.LARGE) == 2
    assert apart == [True]


def test_what_is_no_json_says_where() -> None:
    assert parse_json(b'{"a": 1}') == {"a": 1}
    assert refused(parse_json, b"{").kind == "malformed-json"


# --- RunStep messages


def a_request(**given: Any) -> bytes:
    request = master_pb2.RunStepRequest(fetch=["y:0"], target=["t"], **given)
    request.feed.add(name="x").tensor.CopyFrom(tensor_util.make_tensor_proto(np.float32([1, 2])))
    return request.SerializeToString()


def test_a_message_is_answered_with_a_message() -> None:
    master = Master(partitions=True)
    step = ProtobufStep.parse(a_request(options=config_pb2.RunOptions(timeout_in_ms=1500)))
    assert step.timeout == 1.5

    found = run(step, master)

    ((handle, feeds, fetches, targets, options, left),) = master.asked
    assert (handle, fetches, targets, options.timeout_in_ms, left) == ("handle", ["y:0"], ["t"], 1500, 3.0)
    assert list(feeds) == ["x:0"]
    assert not feeds["x:0"].flags.writeable
    response = master_pb2.RunStepResponse.FromString(found.body)
    assert [each.name for each in response.tensor] == ["y:0"]
    np.testing.assert_array_equal(tensor_util.make_ndarray(response.tensor[0].tensor), [2, 4])
    assert len(response.metadata.partition_graphs) == 1
    assert (found.media_type, found.headers) == ("application/x-protobuf", {})


def test_an_error_is_in_the_answer_where_that_is_asked_for() -> None:
    error = errors.InvalidArgumentError(None, None, "no such node")
    with pytest.raises(errors.InvalidArgumentError):
        run(ProtobufStep.parse(a_request()), Master(error))
    found = run(ProtobufStep.parse(a_request(store_errors_in_response_body=True)), Master(error))
    response = master_pb2.RunStepResponse.FromString(found.body)
    assert (response.status_code, response.status_error_message) == (3, "no such node")
    assert list(response.tensor) == []


def test_partial_runs_are_not_offered() -> None:
    error = refused(ProtobufStep.parse, a_request(partial_run_handle="p"))
    assert (error.kind, error.detail) == (
        "partial-run",
        "partial runs are not offered over REST; open a session at the task's own grpc:// address.",
    )


def test_a_tensor_is_fed_once_and_is_one() -> None:
    request = master_pb2.RunStepRequest.FromString(a_request())
    request.feed.add(name="x:0").tensor.CopyFrom(tensor_util.make_tensor_proto(1))
    error = refused(ProtobufStep(request).run, Master(), "handle", 1.0, lambda: None)
    assert (error.kind, error.detail) == ("invalid-tensor", 'Endpoint "x:0" fed more than once.')
    request.feed[1].name = "z"
    request.feed[1].tensor.tensor_content = b"123"
    error = refused(ProtobufStep(request).run, Master(), "handle", 1.0, lambda: pytest.fail("it acted"))
    assert error.kind == "invalid-tensor"
    assert error.detail.startswith("The value fed for 'z:0': ")


@pytest.mark.parametrize(("milliseconds", "seconds"), [(0, None), (1, 0.001)])
def test_a_time_out_is_none_or_positive(milliseconds: int, seconds: float | None) -> None:
    step = InferenceStep.parse(body(options={"timeout_in_ms": milliseconds}), None)
    assert step.timeout == seconds
    error = refused(lambda: InferenceStep.parse(body(options={"timeout_in_ms": -1}), None).timeout)
    assert (error.kind, error.detail) == (
        "invalid-timeout",
        "timeout_in_ms is -1; it must be at least 0 (0: the service's own limit).",
    )


# --- the Open Inference Protocol


def test_a_step_in_json_is_answered_in_json() -> None:
    master = Master(partitions=True)
    step = InferenceStep.parse(body(id="7", inputs=[X], outputs=["y", {"name": "z:1"}, "y:0"], targets=["t"]), None)

    found = run(step, master)

    ((_, feeds, fetches, targets, _, left),) = master.asked
    np.testing.assert_array_equal(feeds["x:0"], np.float32([1, 2]))
    assert not feeds["x:0"].flags.writeable
    assert (fetches, targets, left) == (["y:0", "z:1"], ["t"], 3.0)
    told = json.loads(found.body)
    assert [output["name"] for output in told["outputs"]] == ["y", "z:1", "y:0"]
    assert told["outputs"][0]["data"] == [2.0, 4.0]
    assert (told["id"], list(told["metadata"])) == ("7", ["partition_graphs"])
    assert (found.media_type, found.headers) == ("application/json", {})
    assert b" " not in found.body


def test_a_step_says_no_more_than_it_knows() -> None:
    told = json.loads(run(InferenceStep.parse(b"{}", None)).body)
    assert told == {"outputs": []}


def test_binary_outputs_follow_the_head() -> None:
    outputs = ["y", {"name": "z", "parameters": {"binary_data": False}}]
    step = InferenceStep.parse(body(inputs=[X], outputs=outputs, parameters={"binary_data_output": True}), None)
    assert (step.all_binary, step.outputs) == (True, [("y", True), ("z", False)])
    found = run(step)
    length = int(found.headers[HEADER_LENGTH])
    told = json.loads(found.body[:length])
    assert found.body[length:] == np.float32([2, 4]).tobytes()
    assert [("data" in output) for output in told["outputs"]] == [False, True]
    assert found.media_type == "application/octet-stream"


def test_binary_inputs_follow_the_head() -> None:
    head = body(inputs=[{"name": "x", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}])
    step = InferenceStep.parse(head + np.float32([3, 4]).tobytes(), str(len(head)))
    np.testing.assert_array_equal(step.feeds()["x"], [3, 4])
    assert refused(InferenceStep.parse, head, str(len(head) + 1)).kind == "malformed-body"


@pytest.mark.parametrize(
    ("members", "words"),
    [
        (
            {"steps": 1},
            "a step has no member 'steps'; its members are id, inputs, options, outputs, parameters, targets.",
        ),
        ({"id": 7}, "'id' must be a text."),
        ({"options": []}, "'options' must be an object: the protobuf JSON of RunOptions."),
        ({"outputs": {}}, "'outputs' must be a list."),
        ({"targets": "t"}, "'targets' must be a list."),
        ({"targets": [""]}, "'targets' holds ''; it takes names."),
        ({"targets": [1]}, "'targets' holds 1; it takes names."),
        ({"outputs": [""]}, "'outputs' holds ''; it takes names."),
        ({"outputs": [1]}, "'outputs' holds 1; it takes names, or objects with a name."),
        ({"outputs": [{}]}, "'outputs' holds None; it takes names."),
        (
            {"parameters": {"binary_data_output": 1}},
            "the parameter 'binary_data_output' is 1; it must be true or false.",
        ),
        (
            {"outputs": [{"name": "y", "parameters": {"binary_data": "no"}}]},
            "the parameter 'binary_data' is 'no'; it must be true or false.",
        ),
    ],
)
def test_what_is_wrong_in_a_step_is_named(members: dict[str, Any], words: str) -> None:
    error = refused(InferenceStep.parse, body(**members), None)
    assert (error.kind, error.detail) == ("invalid-step", words)


def test_a_step_is_an_object_with_parameters_that_are_one() -> None:
    assert refused(InferenceStep.parse, b"[]", None).detail.startswith("a step is an object like {")
    assert refused(InferenceStep.parse, body(parameters=[]), None).kind == "invalid-step"


def test_an_input_is_named_once_and_is_a_tensor() -> None:
    error = refused(run, InferenceStep.parse(body(inputs=[X, {**X, "name": "x:0"}]), None))
    assert (error.kind, error.detail) == ("invalid-tensor", "'inputs' names tensor 'x:0' twice.")
    assert refused(run, InferenceStep.parse(body(inputs=[{**X, "shape": [3]}]), None)).kind == "invalid-tensor"


def test_a_value_without_a_datatype_was_computed_but_cannot_be_answered() -> None:
    error = refused(answer, [("y", np.zeros(1, "datetime64[s]"), False)], {})
    assert (error.kind, error.extra) == ("no-datatype", {"outcome": "done"})


def test_read_only_views_leave_the_array_as_it_is() -> None:
    array = np.zeros(2)
    assert not module._read_only(array).flags.writeable
    assert array.flags.writeable
