"""The JSON shapes of the REST interface, with the examples that OpenAPI shows. No behaviour; views.py fills the
answers.

Requests forbid members that they do not know: a misspelt option must not pass in silence.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from tenfold_control_api.figures import FiguresReport, TaskFigures  # noqa: TC001 - Pydantic reads the annotations

Address = Annotated[str, StringConstraints(min_length=3, max_length=300)]
Incarnation = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Size = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]


class _Request(BaseModel):
    """JSON's types as they are: neither true nor "1" passes for a number."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ClusterDeclaration(_Request):
    """Jobs with their numbers of tasks."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"jobs": {"ps": 1, "worker": 2}, "stop_with_workers": True}]}
    )
    jobs: dict[str, Size]
    stop_with_workers: Annotated[bool, Field(strict=True)] | None = Field(
        default=None,
        description=(
            "Whether parameter servers end once every worker, and the chief, has finished. Without it a new "
            "cluster has false, and an existing one keeps its value."
        ),
    )


class Device(BaseModel):
    """A device as `DeviceAttributes` describes it."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: Annotated[str, StringConstraints(min_length=1, max_length=300)]
    device_type: Annotated[str, StringConstraints(max_length=64)] = "CPU"
    memory_limit: int = 0
    incarnation: Incarnation | None = None
    physical_device_desc: Annotated[str, StringConstraints(max_length=1000)] = ""


class TaskRegistration(_Request):
    """A task's registration. `incarnation` is new with every start of the task's process."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "address": "127.0.0.1:2222",
                    "incarnation": "6f1c0a52b8d94e77",
                    "devices": [{"name": "/job:worker/replica:0/task:0/device:CPU:0", "device_type": "CPU"}],
                }
            ]
        }
    )
    address: Address
    incarnation: Incarnation | int | None = Field(
        default=None, description="Chosen by the task; without it the service generates one. Numbers become text."
    )
    devices: Annotated[list[Device], Field(max_length=256)] = []
    insecure: bool = Field(default=False, description="Whether it accepts any client (`--insecure`).")
    lease: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")] | None = Field(
        default=None,
        description=(
            "A lease id that the task has chosen, 128 random bits: it becomes the task's lease. Send it "
            "again to repeat the registration, or to change it while the lease is live. The control "
            "service's credential for the task is derived from it."
        ),
    )


#: How a task can end.
Ending = Literal["finished", "stopped", "lost"]
Reason = Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00]*$")]
ExitCode = Annotated[int, Field(ge=-255, le=255)]


class LeaseRelease(_Request):
    """How a task leaves. `exit_code` is negative if a signal ended it, as in Python's subprocess."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"state": "finished", "exit_code": 0}]})
    state: Ending = "finished"
    reason: Reason | None = None
    exit_code: ExitCode | None = None


class LeaseRenewal(_Request):
    """Optional content of a heartbeat."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"figures": {"resident_bytes": 104857600, "steps": 1200, "variables": 4}}]}
    )
    figures: FiguresReport | None = None


class TaskEnd(_Request):
    """How a task ended, reported by an observer: the supervisor of its process, or an operator."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"state": "lost", "reason": "ended by SIGKILL", "exit_code": -9}]}
    )
    state: Ending
    reason: Reason | None = None
    exit_code: ExitCode | None = None


class TaskDrain(_Request):
    """A drain: `grace` is the time that its running steps have to end."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"grace": 30, "reason": "the host is updated"}]})
    grace: Annotated[float, Field(ge=0, le=3600)] = 30.0
    reason: Annotated[Reason, StringConstraints(min_length=1)] = "drained by request"


class SessionCreation(_Request):
    """A session on the master of one task; without a job, the first ready task in the order chief, master, worker,
    any."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"cluster": "default", "job": "worker", "index": 0, "graph_def": "<base64 of a GraphDef>"}]
        }
    )
    cluster: str
    job: str | None = None
    index: Annotated[int, Field(ge=0)] | None = None
    graph_def: str | dict[str, Any] = Field(
        default="", description="A GraphDef: base64 of its bytes, or its protobuf JSON. Empty: extend it later."
    )
    config: str | dict[str, Any] = Field(
        default="", description="A ConfigProto: base64 of its bytes, or its protobuf JSON."
    )


class GraphExtension(_Request):
    """Nodes to add to a session's graph."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"graph_def": "<base64 of a GraphDef>"}]})
    graph_def: str | dict[str, Any]
    current_graph_version: int | None = Field(
        default=None, description="The version that the caller extends; another one is refused with ABORTED."
    )


# -- answers


class Condition(BaseModel):
    type: str
    status: bool
    reason: str
    message: str


class ObjectView(BaseModel):
    """What every object has."""

    name: str
    uid: str
    version: int
    state: str
    conditions: list[Condition] = []


class DrainView(BaseModel):
    """The task takes no new work. It ends once its running steps have ended, or after `grace` seconds."""

    grace: float
    reason: str


class TaskView(ObjectView):
    cluster: str
    job: str
    index: int
    state: Literal["missing", "ready", "lost", "stopped", "finished"]
    since: str
    reason: str
    address: str | None
    incarnation: str | None
    devices: list[Device]
    exit_code: int | None
    last_heartbeat_age: float | None = Field(description="Seconds since the last renewal; null without a live lease.")
    drain: DrainView | None = Field(None, description="Set while the task is being drained.")
    insecure: bool = Field(False, description="Whether it accepts any client, as it reports itself.")
    figures: TaskFigures | None = Field(
        None, description="The newest figures from a heartbeat; null if there are none, or if another replica has them."
    )


class JobView(ObjectView):
    cluster: str
    size: int
    counts: dict[str, int]
    missing_tasks: list[str]
    tasks: list[TaskView]


class TaskList(BaseModel):
    cluster: str
    version: int
    tasks: list[TaskView]
    next: str | None = Field(description="`after` of the next page; null on the last one.")


class TableView(BaseModel):
    """A table with all its parts. Figures that only embedding variables have are null for lookup tables."""

    name: str = Field(description="Without the `/part_0` of a part.")
    kind: str = Field(description="`EmbeddingVariable`, or the op that makes the lookup table.")
    parts: int = Field(description="The number of tasks that hold a part; of a lookup table each has one of its own.")
    rows: int = Field(description="Ids or keys, those that wait for admission included.")
    admitted: int | None = Field(description="Ids in the table that its filter has admitted.")
    waiting: int | None = Field(description="Ids that it has not admitted yet: they have no weights.")
    evicted: int | None = Field(description="Ids that were evicted since the tasks have the table.")
    bytes: int = Field(description="Memory of the rows with all slots, of their ids and of initial values.")
    quota_bytes: int | None = Field(description="The part of `bytes` that counts for the limits of the tasks' state.")
    lookups: int | None = Field(description="Ids that were looked up since then, each as often as it was.")
    found: int | None = Field(description="Those of them that had weights of their own by then.")
    hit_rate: float | None = Field(description="`found` of `lookups`, from 0 to 1.")
    largest: str | None = Field(description="The task with the most rows, as in ps/0; null for a single part.")
    unevenness: float | None = Field(description="How many times the mean of the parts the largest is, by rows.")


class TablesView(BaseModel):
    """The tables of all tasks."""

    tables: list[TableView] = Field(description="The largest, at most 256; the largest first.")
    left_out: int = Field(description="How many parts of tables are not in the list.")
    rows: int = Field(description="Rows of all tables.")
    bytes: int = Field(description="Bytes of all tables.")
    largest: str | None = Field(description="The parameter server with the most bytes of tables, as in ps/0.")
    unevenness: float | None = Field(
        description="How many times the mean of all parameter servers that is; null for a single one."
    )


class JobList(BaseModel):
    cluster: str
    version: int
    jobs: list[JobView]
    tables: TablesView | None = Field(None, description="Tables of these jobs' tasks; null if no task reports one.")


class ClusterView(ObjectView):
    created: str
    jobs: dict[str, int]
    stop_with_workers: bool
    complete: bool
    counts: dict[str, int]
    missing_tasks: list[str]
    spec: dict[str, dict[int, str]]


class ServiceView(BaseModel):
    """The control service itself: whom it accepts, and how."""

    version: str
    insecure: bool = Field(description="Whether it accepts any client (`--insecure`, without tokens).")
    tokens: bool = Field(description="Whether it requires a token.")
    tls: bool = Field(description="Whether it speaks HTTPS only.")
    services: list[str] = Field(description="URLs of other services with the same database.")
    runs_found: int = Field(description="Number of runs in its database when it started.")


class ClusterList(BaseModel):
    clusters: list[ClusterView]
    next: str | None = Field(description="`after` of the next page; null on the last one.")


class SpecTask(BaseModel):
    name: str
    job: str
    index: int
    state: str
    address: str | None
    incarnation: str | None


class SpecView(BaseModel):
    """The versioned cluster spec. `spec` holds the last known address of every task that ever registered."""

    cluster: str
    version: int
    complete: bool
    changed: bool
    jobs: dict[str, int]
    stop_with_workers: bool
    spec: dict[str, dict[int, str]]
    tasks: list[SpecTask]
    missing_tasks: list[str]


class LeaseView(BaseModel):
    id: str
    state: Literal["live", "ended"]
    cluster: str
    task: str
    ttl: float
    heartbeat: float
    expires_in: float | None
    spec_version: int | None = None
    complete: bool | None = None
    outcome: str | None = None
    reason: str | None = None
    exit_code: int | None = None
    #: Set while the task is to end.
    drain: DrainView | None = None


class RegistrationView(BaseModel):
    lease: LeaseView
    task: TaskView
    spec_version: int


class ReleaseView(BaseModel):
    task: TaskView
    spec_version: int


class SessionView(ObjectView):
    cluster: str
    job: str
    index: int
    master: str
    target: str
    graph_version: int
    created: str
    idle: float


class SessionList(BaseModel):
    sessions: list[SessionView]
    next: str | None = Field(description="`after` of the next page; null on the last one.")


class ProblemPart(BaseModel):
    """One invalid value: in the body, or a parameter."""

    pointer: str | None = Field(
        default=None,
        examples=["#/jobs/ps"],
        description="A JSON Pointer into the body (RFC 6901), as a URI fragment; `#` is the whole body.",
    )
    parameter: str | None = Field(default=None, description="Name of the parameter.")
    where: Literal["query", "path", "header"] | None = Field(
        default=None, alias="in", description="The location of the parameter."
    )
    detail: str


class NodePlacementView(BaseModel):
    name: str
    op: str
    requested: str = Field(description="The program's request: a device's name or a part of one, or nothing.")
    assigned: str
    reason: str


class TaskPlacementView(BaseModel):
    task: str
    nodes: int
    variables: int
    variable_bytes: int = Field(description="Bytes of the variables whose shapes are known.")


class PlacementView(BaseModel):
    """Where a session's master has placed the nodes, in the graph's order."""

    session: str
    graph_version: int
    nodes: list[NodePlacementView]
    tasks: list[TaskPlacementView]
    next: str | None = Field(description="`after` of the next page; null on the last one.")


class Problem(BaseModel):
    """RFC 9457 problem details; `code` is TensorFlow's canonical code. Types may be added: treat an unknown type by
    its `code`."""

    model_config = ConfigDict(extra="allow")
    type: str = Field(
        pattern="^urn:tenfold:problem:[a-z0-9-]+$",
        examples=["urn:tenfold:problem:no-such-cluster"],
        description="One of `x-problem-types`; docs/rest.md explains each, `help` leads to what to do.",
    )
    title: str
    status: int
    detail: str
    instance: str
    code: str
    retryable: bool
    help: str | None = Field(
        default=None,
        description="The page and the place in Tenfold's documentation that say what to do.",
        examples=["docs/how-to/by-symptom.md#no-such-cluster"],
    )
    task: str | None = Field(default=None, description="The task that failed.")
    node: str | None = Field(default=None, description="The node of the graph that failed.")
    missing_tasks: list[str] = Field(default=[], description="Tasks that did not arrive or are absent.")
    request_id: str | None = Field(default=None, description="The id of the request in the service's log.")
    outcome: str | None = Field(
        default=None,
        description="What happened to a step: `not-run`, `done`, or `unknown`. For an ended lease: how it ended.",
    )
    errors: list[ProblemPart] = Field(default=[], description="For `invalid-request`: each invalid value.")
