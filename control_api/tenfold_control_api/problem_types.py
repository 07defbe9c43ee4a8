"""Every kind of failure that the REST interface answers with: one row each, read top to bottom. No behaviour.

problems.py looks a problem's code, status and title up here; OpenAPI and docs/rest.md show the table, and tests compare
them with it. A type stands for one failure: two that a client would handle differently, or mend differently, have a
row each. What a master answers (a graph that does not fit, a kernel that failed) has a row for each canonical code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenfold_core.help_links import runtime_kind

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Canonical code → (HTTP status, is the same request worth sending again, title).
CODES: Mapping[str, tuple[int, bool, str]] = {
    "CANCELLED": (499, False, "Cancelled"),
    "UNKNOWN": (500, False, "Unknown error"),
    "INVALID_ARGUMENT": (400, False, "Invalid argument"),
    "DEADLINE_EXCEEDED": (504, True, "Deadline exceeded"),
    "NOT_FOUND": (404, False, "Not found"),
    "ALREADY_EXISTS": (409, False, "Already exists"),
    "PERMISSION_DENIED": (403, False, "Permission denied"),
    "RESOURCE_EXHAUSTED": (429, True, "Resource exhausted"),
    "FAILED_PRECONDITION": (400, False, "Failed precondition"),
    "ABORTED": (409, True, "Aborted"),
    "OUT_OF_RANGE": (400, False, "Out of range"),
    "UNIMPLEMENTED": (501, False, "Unimplemented"),
    "INTERNAL": (500, False, "Internal error"),
    "UNAVAILABLE": (503, True, "Unavailable"),
    "DATA_LOSS": (500, False, "Data loss"),
    "UNAUTHENTICATED": (401, False, "Unauthenticated"),
}


@dataclass(frozen=True, slots=True)
class ProblemType:
    """One kind of failure: `urn:tenfold:problem:<name>`."""

    name: str
    code: str
    #: What has happened, as a sentence.
    meaning: str
    #: What its reader can do.
    remedy: str
    #: Where HTTP has a sharper status than the code's.
    own_status: int | None = None
    #: Where the code's answer does not hold for this failure.
    own_retryable: bool | None = None

    @property
    def status(self) -> int:
        return self.own_status if self.own_status is not None else CODES[self.code][0]

    @property
    def retryable(self) -> bool:
        return self.own_retryable if self.own_retryable is not None else CODES[self.code][1]

    @property
    def title(self) -> str:
        return self.name.replace("-", " ").capitalize()


_BAD, _GONE, _FULL, _TAKEN = "INVALID_ARGUMENT", "NOT_FOUND", "RESOURCE_EXHAUSTED", "ALREADY_EXISTS"
_STATE = "FAILED_PRECONDITION"

_ROWS = (
    # any request
    ProblemType(
        "invalid-request", _BAD, "A path, query or body does not match its schema.", "Fix the members in `errors`."
    ),
    ProblemType("malformed-json", _BAD, "The body is not JSON.", "Send strict JSON in UTF-8; NaN is a text."),
    ProblemType("malformed-body", _BAD, "The body does not match its content type.", "Send it again."),
    ProblemType(
        "malformed-message", _BAD, "The bytes or JSON are not such a protobuf message.", "Send what `detail` names."
    ),
    ProblemType("missing-parameter", _BAD, "A query parameter is needed here.", "Add the one that `detail` names."),
    ProblemType("invalid-duration", _BAD, "`wait` is not a duration.", "Write 30s, 500ms or 1m."),
    ProblemType("invalid-cursor", _BAD, "`after` is not the `next` of a page.", "Pass `next` on, or begin without it."),
    ProblemType(
        "invalid-event-id", _BAD, "`Last-Event-ID` is not an id of this stream.", "Send the last one, or none."
    ),
    ProblemType(
        "unsupported-media-type", _BAD, "The content type is not accepted here.", "Send what `detail` lists.", 415
    ),
    ProblemType("body-too-large", _FULL, "The body is above its limit.", "Send the binary forms, or less.", 413, False),
    ProblemType("malformed-head", _BAD, "The request is not HTTP/1.1.", "Check which client connects here."),
    ProblemType("head-too-large", _FULL, "Request line and headers are too long.", "Send fewer headers.", 431, False),
    ProblemType(
        "protocol-not-spoken", _STATE, "Caller and service have no version in common.", "Upgrade the older one."
    ),
    ProblemType("request-too-slow", "DEADLINE_EXCEEDED", "The request arrived too slowly.", "Send it faster.", 408),
    ProblemType("too-many-connections", "UNAVAILABLE", "Too many connections are open.", "Connect again later."),
    ProblemType("no-such-route", _GONE, "There is nothing at this path.", "See /openapi.json."),
    ProblemType(
        "method-not-allowed", "UNIMPLEMENTED", "The path has no such method.", "Use one in the header `Allow`.", 405
    ),
    ProblemType(
        "host-not-allowed",
        "PERMISSION_DENIED",
        "The service does not answer this `Host`.",
        "Use a known name, or a token.",
    ),
    ProblemType(
        "foreign-origin",
        "PERMISSION_DENIED",
        "A page of another origin requests a change.",
        "Send it from this origin.",
    ),
    ProblemType("token-needed", "UNAUTHENTICATED", "The request has no token.", "Send one as a bearer token."),
    ProblemType("token-unknown", "UNAUTHENTICATED", "This service does not know the token.", "Send another one."),
    ProblemType("token-expired", "UNAUTHENTICATED", "The token has expired.", "Request a new one."),
    ProblemType(
        "another-user", "UNAUTHENTICATED", "Without tokens only the service's user is accepted.", "See `detail`."
    ),
    ProblemType("role-too-small", "PERMISSION_DENIED", "The caller's role does not allow this.", "Use another token."),
    ProblemType("too-many-watchers", _FULL, "Too many requests are waiting.", "Try again later, or without `wait`."),
    ProblemType("stopping", "UNAVAILABLE", "The control service is stopping.", "Try again in a moment."),
    ProblemType(
        "database-unavailable", "UNAVAILABLE", "The service's database does not answer.", "Try again in a moment."
    ),
    ProblemType(
        "disk-unavailable", "UNAVAILABLE", "The service cannot write to its disk.", "Free some space, or see `detail`."
    ),
    ProblemType("not-ready", "UNAVAILABLE", "Part of the service is not working.", "See its log; restart it."),
    ProblemType("internal-error", "INTERNAL", "The control service failed.", "See its log; report it."),
    # Idempotency-Key
    ProblemType("invalid-idempotency-key", _BAD, "The key is not 1 to 255 printable ASCII characters.", "Choose one."),
    ProblemType("idempotency-key-reused", _BAD, "The key belongs to another request.", "Use a new key.", 422),
    ProblemType("in-progress", "ABORTED", "The request with this key is being worked on.", "Send it again later."),
    ProblemType(
        "outcome-unknown",
        "UNKNOWN",
        "The service stopped during the request, or lost its answer.",
        "Check whether it took effect.",
    ),
    ProblemType("answer-not-kept", "DATA_LOSS", "It was done; its answer was not kept.", "See `detail`."),
    ProblemType("too-many-keys", _FULL, "Too many keys are remembered.", "Send fewer keyed requests, or none."),
    # clusters and tasks
    ProblemType("no-such-cluster", _GONE, "The cluster is not declared.", "PUT /v1/clusters/{cluster}."),
    ProblemType("no-such-job", _GONE, "The cluster has no such job.", "Use one that `detail` lists."),
    ProblemType("no-such-task", _GONE, "The job has no such index.", "Use a smaller index, or declare more."),
    ProblemType("invalid-cluster-name", _BAD, "The cluster's name is not allowed.", "Use letters, digits, `_ . -`."),
    ProblemType("invalid-jobs", _BAD, "No jobs, or a name or size that is not allowed.", "See `detail`."),
    ProblemType(
        "invalid-address",
        _BAD,
        "The address is not HOST:PORT, or is another host's own.",
        "Send one that others can dial.",
    ),
    ProblemType("cluster-too-large", _BAD, "Too many jobs or tasks.", "Declare fewer, or raise the limit."),
    ProblemType("too-many-clusters", _FULL, "The maximum number of clusters is reached.", "DELETE one.", None, False),
    ProblemType("tasks-alive", _STATE, "Tasks hold live leases.", "End them first, or `force` a deletion."),
    ProblemType("sessions-open", _STATE, "Sessions of the cluster are open.", "Close them first, or `force` it."),
    ProblemType("nothing-to-drain", _STATE, "The task holds no live lease.", "Nothing: it is already gone."),
    ProblemType(
        "task-taken", _TAKEN, "Another process holds the index.", "Wait until its lease ends, or claim another."
    ),
    ProblemType("no-free-index", _FULL, "All indices of the job are taken.", "Declare more, or wait."),
    ProblemType(
        "failed-is-not-finished", _BAD, "A finished task must have exit code 0.", "Report `lost` or `stopped`."
    ),
    ProblemType("cluster-incomplete", "UNAVAILABLE", "Some addresses are not yet known.", "Wait for `missing_tasks`."),
    ProblemType("version-gone", "OUT_OF_RANGE", "The version belongs to another history.", "Start with after=0.", 410),
    ProblemType(
        "too-many-changes", "ABORTED", "Too many requests change this object simultaneously.", "Send the request again."
    ),
    ProblemType("no-such-lease", _GONE, "The lease was never granted, or is forgotten.", "Register again."),
    ProblemType("lease-ended", _STATE, "The lease has ended.", "Register again, as a new task.", 410),
    # what belongs to one caller
    ProblemType(
        "owned-by-another", "PERMISSION_DENIED", "Another caller owns it.", "Use its owner's token, or an admin's."
    ),
    # sessions and steps
    ProblemType("no-such-session", _GONE, "Never created, closed, or expired.", "Create a session."),
    ProblemType(
        "too-many-sessions", _FULL, "The maximum number of sessions is reached.", "DELETE sessions that are not needed."
    ),
    ProblemType("no-master", "UNAVAILABLE", "No task can be the master.", "Start one of `missing_tasks`."),
    ProblemType("tasks-missing", "UNAVAILABLE", "Tasks that the graph needs are missing.", "Start them, or `wait`."),
    ProblemType("session-lost", "UNAVAILABLE", "The session's task is lost.", "Wait until it renews its lease."),
    ProblemType("session-gone", "ABORTED", "The session's task was restarted.", "Create a session.", None, False),
    ProblemType("task-lost", "UNAVAILABLE", "The task was lost while a call to it ran.", "See `outcome`.", None, False),
    ProblemType("too-many-calls", _FULL, "Too many calls to masters run or wait.", "Send it again later."),
    ProblemType("call-not-started", "DEADLINE_EXCEEDED", "The call did not start in time.", "Send it later."),
    ProblemType(
        "call-unanswered", "DEADLINE_EXCEEDED", "The master did not answer in time.", "See `outcome`.", None, False
    ),
    ProblemType("graph-version", "ABORTED", "Another client extended the graph.", "Read its version.", None, False),
    ProblemType("invalid-step", _BAD, "The step has invalid members.", "See `detail`."),
    ProblemType("invalid-tensor", _BAD, "A tensor's members are inconsistent.", "See `detail`."),
    ProblemType("invalid-timeout", _BAD, "A time-out is negative.", "0 means the service's own limit."),
    ProblemType("no-datatype", "UNIMPLEMENTED", "The protocol cannot hold this type.", "Use protobuf."),
    ProblemType("partial-run", _BAD, "REST does not offer partial runs.", "Open the session's `target`."),
    ProblemType(
        "placement-unknown",
        "UNIMPLEMENTED",
        "The master does not provide placements.",
        "It is not Tenfold's, or too old.",
    ),
    # models
    ProblemType("no-models", _STATE, "The service serves no models.", "Start it with --models."),
    ProblemType("no-such-model", _GONE, "No model has this name.", "GET /v1/models lists them."),
    ProblemType("invalid-model", _STATE, "The folder has no model that can be served.", "See `detail`."),
    ProblemType(
        "no-such-version", _GONE, "The model is not served in this version.", "Omit the version, or use the served one."
    ),
    ProblemType("no-such-signature", _BAD, "The model has no such signature.", "Name one that `detail` lists."),
    # runs
    ProblemType("no-such-run", _GONE, "Never submitted, or deleted.", "GET /v1/runs lists them."),
    ProblemType("invalid-filter", _BAD, "The filter is malformed.", "See `position`, a character index from 0."),
    ProblemType("no-artifacts", _GONE, "The run has no output folder here.", "Read it on the machine that has it."),
    ProblemType("no-such-artifact", _GONE, "The run's output folder has no such file.", "GET …/artifacts lists them."),
    ProblemType("invalid-artifact", _BAD, "The path or the piece of the file is invalid.", "See `detail`."),
    ProblemType("output-too-large", _FULL, "The run has sent too many bytes of files.", "Send less.", 413, False),
    ProblemType("range-not-there", "OUT_OF_RANGE", "The file ends before the range.", "Request a smaller range.", 416),
    ProblemType("no-logs", _GONE, "The run has no logs here.", "Wait until it has started."),
    ProblemType("no-such-package", _GONE, "The service does not have the package.", "PUT /v1/packages/{sha256}."),
    ProblemType(
        "runs-not-allowed", "PERMISSION_DENIED", "The service starts no programs.", "Start it with --allow-runs."
    ),
    ProblemType("run-too-large", _BAD, "The run has too many tasks.", "Submit fewer."),
    ProblemType(
        "run-without-worker",
        _BAD,
        "There are only parameter servers: nothing ends the run.",
        "Add a worker or a chief.",
    ),
    ProblemType("empty-entrypoint", _BAD, "There is no command.", 'Specify one, as in `["python", "trainer.py"]`.'),
    ProblemType("invalid-launcher", _BAD, "No such launcher or launcher option.", "`tenfold launchers` lists them."),
    ProblemType("launcher-not-usable", _STATE, "The service's machine lacks a requirement.", "See `detail`."),
    ProblemType(
        "working-dir-and-package", _BAD, "The request has both a folder and a package.", "Specify one of them."
    ),
    ProblemType(
        "no-such-working-dir", _BAD, "No such folder on the service's machine.", "Specify another, or upload it."
    ),
    ProblemType(
        "no-such-program", _BAD, "The folder or package does not have the program's file.", "See `errors`; correct it."
    ),
    ProblemType("submission-differs", _TAKEN, "The submission id belongs to another run.", "Choose another id."),
    ProblemType("too-many-runs", _FULL, "The maximum number of active runs is reached.", "Wait, or stop one."),
    ProblemType("too-many-followers", _FULL, "Too many clients follow logs.", "Try later, or without `follow`."),
    ProblemType("run-active", _STATE, "The run has not ended.", "Stop it first."),
    ProblemType("run-ended", _STATE, "The run has ended.", "Stop reporting.", 410),
    ProblemType("run-taken", _STATE, "The run has another supervisor.", "Stop reporting.", 410),
    ProblemType("run-left", _STATE, "The program is no longer that task of the run.", "Join again.", 410),
    ProblemType("run-joined", _BAD, "The run has no supervisor: programs joined it.", "Report as its tasks."),
    ProblemType("run-without-process", _BAD, "The report does not identify its process.", "Add `process`."),
    ProblemType("no-run-to-join", _GONE, "These programs have no active run.", "Join later, or with `create`."),
    ProblemType("no-such-sweep", _GONE, "There is no such sweep.", "GET /v1/sweeps lists them."),
    ProblemType("invalid-space", _BAD, "These parameters have no settings to run.", "See `detail`."),
    ProblemType("sweep-differs", _TAKEN, "The name belongs to another sweep.", "Choose another name."),
    ProblemType("sweep-without-room", _BAD, "One run needs more than all of them may take.", "Ask for less."),
    ProblemType("sweep-active", _STATE, "The sweep has not ended.", "Cancel it, and wait for its end."),
    ProblemType("too-many-sweeps", _FULL, "The maximum number of active sweeps is reached.", "Wait, or cancel one."),
    ProblemType("trace-active", "ABORTED", "The run is being traced.", "Try again once that is over."),
    ProblemType("too-many-traces", _FULL, "Too many runs are being traced.", "Try again later."),
    ProblemType(
        "nothing-traced", "DEADLINE_EXCEEDED", "No program ran a step in time.", "See `missing_tasks`; raise `wait`."
    ),
    ProblemType("no-such-trace", _GONE, "Not created yet, ended, or forgotten.", "Request a new one."),
    ProblemType("too-many-questions", _FULL, "Too many requests ask why runs are stuck.", "Try again later."),
    ProblemType("no-such-question", _GONE, "The request for this program's answer has ended.", "Nothing."),
    ProblemType("run-deleted", "ABORTED", "The run has been deleted.", "Send the request again."),
    ProblemType("package-differs", _BAD, "The package has another sha256.", "Upload it under its own sha256."),
    ProblemType("package-not-zip", _BAD, "The package is not a zip file.", "Upload one."),
    ProblemType("package-broken", _BAD, "A file in the package is broken.", "Create it again."),
    ProblemType("package-too-large", _FULL, "The unpacked package is above the limit.", "Leave data out.", 413, False),
    # events
    ProblemType("events-gone", "OUT_OF_RANGE", "That event has been forgotten.", "Start without it.", 410),
)

#: What the master and the kernels said, by canonical code.
_RUNTIME = {
    "CANCELLED": ("The call was cancelled.", "Its session was closed, or its master stopped."),
    "UNKNOWN": ("A kernel or the master failed without a code.", "See `detail` and `node`."),
    "INVALID_ARGUMENT": ("The graph or its feeds are invalid.", "See `detail` and `node`."),
    "DEADLINE_EXCEEDED": ("The runtime did not finish in time.", "See `outcome`; raise `timeout_in_ms`."),
    "NOT_FOUND": ("Something that the graph names does not exist.", "See `detail` and `node`."),
    "ALREADY_EXISTS": ("Something that the graph creates already exists.", "See `detail` and `node`."),
    "PERMISSION_DENIED": ("The runtime is not allowed to do that.", "See `detail`."),
    "RESOURCE_EXHAUSTED": ("A task has reached a limit or is out of memory.", "See `detail`."),
    "FAILED_PRECONDITION": ("For example, a variable is not initialized.", "See `detail` and `node`."),
    "ABORTED": (
        "The step or session ended, for example because a task restarted.",
        "Create the session again if it is gone.",
    ),
    "OUT_OF_RANGE": ("An input has ended.", "This is how an epoch ends."),
    "UNIMPLEMENTED": ("There is no kernel for this op, type or device.", "See `detail` and `node`."),
    "INTERNAL": ("The runtime violated one of its own rules.", "See the task's log; report it."),
    "UNAVAILABLE": ("A task cannot be reached.", "See `missing_tasks` and `outcome`."),
    "DATA_LOSS": ("The data is damaged.", "See `detail`."),
    "UNAUTHENTICATED": ("A task refuses the control service.", "Give both the same token."),
}

#: All types by name.
PROBLEM_TYPES: Mapping[str, ProblemType] = {
    row.name: row
    for row in (*_ROWS, *(ProblemType(runtime_kind(code), code, *texts) for code, texts in _RUNTIME.items()))
}
