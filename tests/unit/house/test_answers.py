"""The SDK's typed answers are the schemas of docs/openapi.json, member for member; both clients have the same calls."""

from __future__ import annotations

import dataclasses
import inspect
import json
import typing
from pathlib import Path
from typing import Any

import pytest

from tenfold.control import (
    AsyncControlClient,
    AsyncRemoteSession,
    ControlClient,
    RemoteSession,
    cluster_answers,
    model_answers,
    run_answers,
    sweep_answers,
    trace_answers,
    why_answers,
)
from tenfold.control.calls import Call, StreamCall

if typing.TYPE_CHECKING:
    from tenfold.control.answers import Answer

OPENAPI = json.loads((Path(__file__).resolve().parents[3] / "docs" / "openapi.json").read_text(encoding="utf-8"))
SCHEMAS: dict[str, Any] = OPENAPI["components"]["schemas"]

#: Schema → its class.
ANSWERS: dict[str, type[Answer]] = {
    "ArtifactView": run_answers.Artifact,
    "CheckpointReport": run_answers.Checkpoint,
    "ClusterView": cluster_answers.Cluster,
    "ComparedScalar": run_answers.ComparedScalar,
    "ComparedValue": run_answers.ComparedValue,
    "ComparisonView": run_answers.Comparison,
    "Condition": cluster_answers.Condition,
    "CurveView": run_answers.Curve,
    "Device": cluster_answers.Device,
    "EventView": cluster_answers.Event,
    "FollowingView": model_answers.Following,
    "JobList": cluster_answers.Jobs,
    "JobView": cluster_answers.Job,
    "DistributionView": run_answers.DistributionCurve,
    "DrainView": cluster_answers.Drain,
    "LeaseView": cluster_answers.LeaseStatus,
    "LogLine": run_answers.LogLine,
    "ModelMetadata": model_answers.ModelMetadata,
    "ModelView": model_answers.Model,
    "PackageView": run_answers.Package,
    "NodePlacementView": trace_answers.NodePlacement,
    "PeerFigures": cluster_answers.PeerFigures,
    "PlacementView": trace_answers.Placement,
    "ProgramReportView": run_answers.ProgramOrders,
    "ProgressView": run_answers.Progress,
    "QueueFigures": cluster_answers.QueueFigures,
    "ReleaseView": cluster_answers.Release,
    "ReportView": run_answers.SupervisorOrders,
    "Restarts": run_answers.Restarts,
    "RunPlaceView": run_answers.RunPlace,
    "RunProgressView": run_answers.RunProgress,
    "RunTaskView": run_answers.RunTask,
    "RunView": run_answers.Run,
    "SessionFigures": cluster_answers.SessionFigures,
    "ServiceView": cluster_answers.Service,
    "SourceView": run_answers.Source,
    "SessionView": cluster_answers.SessionStatus,
    "SweepSummary": sweep_answers.SweepSummary,
    "SweepView": sweep_answers.Sweep,
    "TableFigures": cluster_answers.TableFigures,
    "TableView": cluster_answers.Table,
    "TablesView": cluster_answers.Tables,
    "TaskError": run_answers.TaskError,
    "TaskFigures": cluster_answers.TaskFigures,
    "TaskPlacementView": trace_answers.TaskPlacement,
    "TaskProgressView": run_answers.TaskProgress,
    "TaskView": cluster_answers.Task,
    "TensorMetadata": model_answers.TensorMetadata,
    "TraceOrder": run_answers.TraceOrder,
    "WhyFrame": why_answers.WhyFrame,
    "TrialView": sweep_answers.Trial,
    "WhyOrder": run_answers.WhyOrder,
    "WhyStepView": why_answers.WhyStep,
    "WhyTaskView": why_answers.WhyTask,
    "WhyThreadView": why_answers.WhyThread,
    "WhyView": why_answers.Why,
    "WhyWaitView": why_answers.WhyWait,
}
#: Answers without a class of their own, and why.
OTHERWISE = {
    "AnswerParameters": "of arrays by name",
    "ArtifactList": "a list, of all pages",
    "ClusterList": "a list",
    "EventList": "events come as a stream",
    "InferenceResponse": "arrays, in the structure of the fetches",
    "InferenceTensor": "an array",
    "LogPage": "a list",
    "ModelInferenceResponse": "arrays by name",
    "ModelList": "a list",
    "ModelReady": "for other clients of the protocol",
    "RegistrationView": "control/spec.py: Lease",
    "RunList": "a list, of all pages",
    "ServerLive": "for other clients of the protocol",
    "ServerMetadata": "for other clients of the protocol",
    "ServerReady": "for other clients of the protocol",
    "SessionList": "a list",
    "SweepList": "a list, of all pages",
    "TaskList": "a list, of all pages",
    "SpecTask": "control/spec.py: Spec",
    "SpecView": "control/spec.py: Spec",
    "TensorParameters": "an array",
}


def answered() -> set[str]:
    """The schemas of objects in 2xx answers."""
    found: set[str] = set()

    def walk(part: Any) -> None:
        if isinstance(part, dict):
            name = str(part.get("$ref", "")).rpartition("/")[2]
            if name and name not in found and "enum" not in SCHEMAS[name]:
                found.add(name)
                walk(SCHEMAS[name])
            for each in part.values():
                walk(each)
        elif isinstance(part, list):
            for each in part:
                walk(each)

    for path in OPENAPI["paths"].values():
        for operation in path.values():
            walk([answer for status, answer in operation["responses"].items() if status.startswith("2")])
    return found


def hint(schema: dict[str, Any]) -> str:
    """The schema as the classes write it."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return "str" if "enum" in SCHEMAS[name] else ANSWERS[name].__name__
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(hint(each) for each in schema["anyOf"]))
    match schema.get("type"):
        case "array":
            return f"tuple[{hint(schema['items'])}, ...]"
        case "object":
            values = schema.get("additionalProperties")
            return f"Mapping[str, {hint(values) if isinstance(values, dict) else 'Any'}]"
        case kind:
            return {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}.get(
                str(kind), "Any"
            )


def test_every_answer_has_a_class() -> None:
    missing = answered() - set(ANSWERS) - set(OTHERWISE)

    assert not missing, f"add a class to client/tenfold/control/*_answers.py, and its row to ANSWERS: {missing}"
    assert not (set(ANSWERS) | set(OTHERWISE)) - answered(), "the service does not answer with these any more"


@pytest.mark.parametrize("schema", ANSWERS)
def test_a_class_has_the_members_of_its_schema(schema: str) -> None:
    required = SCHEMAS[schema].get("required", [])
    wanted = {name: (hint(member), name in required) for name, member in SCHEMAS[schema].get("properties", {}).items()}

    found = {
        field.name: (field.type, field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING)
        for field in dataclasses.fields(ANSWERS[schema])
        if field.name != "json"
    }

    assert found == wanted, f"(annotation, required) of the members of {ANSWERS[schema]}"
    assert typing.get_type_hints(ANSWERS[schema])


@pytest.mark.parametrize(
    ("blocking", "awaiting"), [(ControlClient, AsyncControlClient), (RemoteSession, AsyncRemoteSession)]
)
def test_both_clients_have_the_same_calls(blocking: type, awaiting: type) -> None:
    """What is no call of both (calls.py) is listed."""
    apart = {"create_session", "session", "close", "url", "target", "learn"}

    for kind in (blocking, awaiting):
        for name, member in inspect.getmembers(kind):
            if not name.startswith("_") and name not in apart:
                assert isinstance(member, (Call, StreamCall)), (
                    f"{kind.__name__}.{name}: write it with @call, see calls.py"
                )
                assert member.__doc__
