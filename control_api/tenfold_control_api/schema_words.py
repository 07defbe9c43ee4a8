"""What the members of the REST interface's objects mean, in the words of the OpenAPI document: one row for each name.

A member of the same name means the same in every object; where it does not, a row `Model.member` says so. Models give a
description of their own only where it belongs to their code. openapi.py puts the rows into the document, and a test
finds members without a word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORDS = {
    # distributions and sweeps
    "lowest": "The lowest value.",
    "p5": "5% of the values are below it.",
    "median": "Half of the values are below it.",
    "p95": "95% of the values are below it.",
    "highest": "The highest value.",
    "norm": "The Euclidean norm of all values.",
    "distributions": "Histograms, by name.",
    "sweeps": "The sweeps, newest first.",
    "low": "The lower end of the interval.",
    "high": "The upper end of the interval.",
    "metric": "The scalar that compares the runs; null where there is none.",
    "goal": "Whether the lowest or the highest value of the metric is the best.",
    "parallel": "Runs at a time, at most.",
    "trials": "The sweep's runs, each with its settings.",
    "stopped_early": "It was stopped because it was among the worst.",
    # objects
    "name": "The object's name.",
    "uid": "Distinguishes this object from an earlier one with the same name.",
    "version": "Increases with every change of the object.",
    "state": "The object's state, in one word.",
    "conditions": "Observations about the object, each with its reason.",
    "created": "When the object was created.",
    "started": "When it was started; null before that.",
    "ended": "When it ended; null before that.",
    "since": "When it entered its state.",
    "updated": "When these figures arrived.",
    "time": "When it happened.",
    "reason": "Why it is so, in a sentence.",
    "message": "The details, in a sentence.",
    # clusters and tasks
    "cluster": "Name of the cluster.",
    "clusters": "The clusters of this page, by name.",
    "jobs": "Each job and its number of tasks.",
    "job": "Name of the job.",
    "index": "The task's index in its job, from 0.",
    "task": "The task, as in /job:worker/replica:0/task:0.",
    "tasks": "The tasks, by job and index.",
    "size": "How many tasks the job has.",
    "counts": "How many tasks are in each state.",
    "missing_tasks": "The tasks that are not ready, by name.",
    "complete": "Whether every declared task is ready.",
    "stop_with_workers": "Whether parameter servers end once every worker, and the chief, has finished.",
    "address": "Where the task listens, host:port; null before it has registered.",
    "incarnation": "Identifies one start of the task's process; a restarted task has a new one.",
    "devices": "The task's devices.",
    "exit_code": (
        "The process's exit code; negative: the signal that ended it; null: it is running, or did not report it."
    ),
    "drain": "Set while the task is being drained.",
    "grace": "Seconds that running steps have to end.",
    "spec": "Job, then index, then address.",
    "changed": "Whether the spec is newer than `after`.",
    "services": "URLs of all control services that share the database.",
    "device_type": "CPU or GPU.",
    "memory_limit": "The device's memory in bytes; 0 if it is not known.",
    "physical_device_desc": "The hardware's own name.",
    # leases
    "lease": "The lease that the task renews.",
    "ttl": "Seconds after which a lease ends if it is not renewed.",
    "heartbeat": "Seconds until the next renewal or report is due.",
    "expires_in": "Seconds until the lease ends if it is not renewed; null once it has ended.",
    "spec_version": "The newest version of the cluster spec.",
    "outcome": "How an ended lease ended.",
    "figures": "Measurements of the process.",
    "threads": "Threads of the process.",
    "variable_bytes": "Bytes of the initialized variables.",
    "bytes_sent": "Bytes sent to that task.",
    "bytes_received": "Bytes received.",
    "capacity": "The queue's capacity; null if it is unbounded.",
    # sessions
    "session": "Id of the session.",
    "sessions": "The sessions of this page.",
    "master": "The task whose master has the session.",
    "target": "The master's address, as a session's target.",
    "graph_version": "Increases with every extension of the graph.",
    "graph_def": "A GraphDef: base64 of its bytes, or its protobuf JSON.",
    "idle": "Seconds since it was last used.",
    "op": "The node's op type.",
    "assigned": "The device on which the node was placed.",
    "nodes": "The nodes of this page, in the graph's order.",
    "variables": "How many variables were placed there.",
    # runs
    "runs": "The runs of this page, the newest first.",
    "run": "Name of the run.",
    "entrypoint": "The command, one word per element.",
    "working_dir": "Where the command is started: an absolute path on its machine.",
    "package": "Sha256 of the zip file that was unpacked as the working directory.",
    "environment": "Names of the variables that were added to the environment.",
    "submission_id": "The submitter's id for the run.",
    "launcher": "What starts the tasks: `local`, the service on its machine; an engine; `external`, the submitter.",
    "success": "Which tasks must end with exit code 0: the chief, all workers, or any worker.",
    "restarts": "How failed tasks restart.",
    "restarts_used": "How many restarts have happened.",
    "deadline": "Seconds after which the run fails.",
    "limit": "The most restarts.",
    "backoff": "Seconds before the first restart; doubled with each.",
    "longest_backoff": "The longest pause before a restart, in seconds.",
    "stop": "Why the run is to stop; null otherwise.",
    "attempt": "Counts from 1; a restart of all tasks starts the next attempt.",
    "supervisor": "The process that reports.",
    "process": "The process that joins.",
    "host": "Name of the machine.",
    "pid": "Process id on that machine.",
    "starts": "How often the task was started.",
    "error": "The error that the program raised; null if it raised none.",
    "last_lines": "The last output of a failed task.",
    "node": "The node of the graph that failed.",
    "progress": "The newest progress; null until a program has reported a step.",
    "steps": "How many steps it has run.",
    "step": "The global step; null if it is not known.",
    "global_step": "The training's global step; null if it is not known.",
    "steps_per_second": "Steps per second, as measured last.",
    "examples_per_second": "Examples per second, as measured last.",
    "values": "Scalars by name.",
    "points": "Scalars measured since the last report.",
    "curves": "Scalars over time, by name.",
    "checkpoints": "Checkpoints written.",
    "path": "Where it was written.",
    "lines": "The lines, the oldest first.",
    "level": "The severity: DEBUG, INFO, WARNING, ERROR or CRITICAL.",
    "text": "The line without its end.",
    "seconds": "The longest time to wait for the steps.",
    # events
    "events": "The events, the oldest first.",
    "kind": "The kind of object that the event is about.",
    "action": "What happened, in one word.",
    "object": "Name of the object to which it happened.",
    "data": "More facts about it, by name.",
    # models and tensors
    "models": "The models, by name.",
    "model_name": "The model that answered.",
    "model_version": "The version that answered.",
    "versions": "The versions that can be queried.",
    "platform": "The kind of model.",
    "extensions": "Supported extensions of the Open Inference Protocol.",
    "signatures": "The model's signatures, by name.",
    "tags": "The tags of the SavedModel's graph.",
    "inputs": "The input tensors.",
    "outputs": "The output tensors.",
    "datatype": "The elements' type in the Open Inference Protocol.",
    "shape": "The length of each dimension.",
    "parameters": "Options, by name.",
    "ready": "Always true.",
    "live": "Always true.",
    # problems
    "type": "What kind of thing it is.",
    "title": "The kind of problem, in a few words.",
    "status": "The HTTP status.",
    "detail": "What was wrong, and what would be correct.",
    "instance": "The path of the request.",
    "code": "TensorFlow's canonical code.",
    "retryable": "Whether the same request may succeed later.",
    "id": "Its id.",
    # what runs are called
    "display_name": "The run's display name; null if it has none.",
    "notes": "Notes about the run.",
    "seed": "The graph-level random seed; null if there is none.",
    "source": "The commit of the working directory; null if it is not known.",
    "commit": "The commit, as Git names it.",
    "branch": "The branch; null if none is checked out.",
    "dirty": "Whether files differed from the commit.",
    "diff_truncated": "Whether the end of the diff is missing.",
    # rows of one object
    "RunSubmission.tags": "Words for finding runs.",
    "RunSubmission.notes": "Notes about the run.",
    "RunView.tags": "Words for finding runs.",
    "RunView.parameters": (
        "Parameters by name: those that the program recorded, and those that people set, which take precedence."
    ),
    "RunView.versions": "Versions of Python, Tenfold and NumPy, if its program reported them.",
    "Condition.type": "The observed condition.",
    "Condition.status": "Whether it holds.",
    "Condition.reason": "Why, in one word.",
    "Device.name": "As in /job:worker/replica:0/task:0/device:CPU:0.",
    "EventView.id": "Increases with every event; `after` of the next request.",
    "FiguresReport.bytes_received": "Total bytes received, including from clients.",
    "TaskFigures.bytes_received": "Total bytes received, including from clients.",
    "PeerFigures.bytes_received": "Bytes received from that task.",
    "GraphExtension.graph_def": "The nodes to add: base64 of a GraphDef's bytes, or its protobuf JSON.",
    "InferenceResponse.id": "The request's `id`.",
    "ModelInferenceResponse.id": "The request's `id`.",
    "LeaseView.id": "The lease's id. It is a secret: anyone who knows it can renew and release the lease.",
    "LogLine.task": "The task that wrote it, as in worker/0; `run` is the supervisor.",
    "ModelView.path": "The model's folder, within the service's models folder.",
    "NodePlacementView.name": "The node's name.",
    "NodePlacementView.reason": "Why it was placed there.",
    "PlacementView.tasks": "Each task's share.",
    "ProgramReport.steps": "How many steps the program's sessions have run.",
    "QueueFigures.name": "The queue's name.",
    "QueueFigures.size": "How many elements it holds.",
    "RunJoin.index": "The task's index in its job, from 0.",
    "RunReport.restarts": "How many restarts have happened.",
    "RunSubmission.environment": "Variables to add to the environment of every task.",
    "ServerMetadata.name": "The server's name.",
    "ServerMetadata.version": "The server's release.",
    "ServiceView.version": "The service's release.",
    "CurveView.steps": "The global step of each point; null if it is not known.",
    "CurveView.values": "The value of each point.",
    "SessionFigures.steps": "Steps that it has run.",
    "TaskError.type": "The exception's class.",
    "TaskError.task": "The task that failed, as the runtime names it.",
    "TaskPlacementView.nodes": "How many nodes were placed there.",
    "TraceOrder.id": "Names the trace in the upload's path.",
    "TraceOrder.steps": "The number of steps to trace.",
}
#: Parameters of paths, queries and headers.
_PARAMETERS = {
    **{name: _WORDS[name] for name in ("cluster", "job", "index", "state", "exit_code", "kind")},
    "session": "Id of the session.",
    "sweep": "Name of the sweep.",
    "run": "Name of the run.",
    "lease": "Id of the lease.",
    "trace": "Id of the trace.",
    "asked": "Id of the question, as the answer to a report named it.",
    "reason": "Why, in a sentence.",
    "format": "The form of the answer.",
    "path": "Path of the file in the output folder.",
    "range": "The requested part, as `bytes=0-99`.",
    "last-event-id": "The id of the last event that was received.",
    "limit": "Maximum number of objects on a page.",
}
#: Members that are moments, where they are texts: RFC 3339, in UTC.
_MOMENTS = frozenset({"modified", "created", "started", "ended", "since", "updated", "time"})


def explain(document: dict[str, Any]) -> None:
    """Describes every member and parameter of an OpenAPI document that has no description, and marks moments."""
    for model, schema in document["components"]["schemas"].items():
        for name, member in schema.get("properties", {}).items():
            words = _WORDS.get(f"{model}.{name}", _WORDS.get(name))
            if words is not None:
                member.setdefault("description", words)
            if name in _MOMENTS:
                for text in _texts(member):
                    text["format"] = "date-time"
    for methods in document["paths"].values():
        for operation in methods.values():
            for parameter in operation.get("parameters", ()):
                words = _PARAMETERS.get(parameter["name"].lower())
                if words is not None:
                    parameter.setdefault("description", words)


def _texts(member: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The schemas of texts among those that a member may have."""
    for each in (member, *member.get("anyOf", ())):
        if each.get("type") == "string":
            yield each
