"""The tables of the control service's database, in SQL that SQLite and PostgreSQL both speak.

Moments are wall-clock seconds (for people and for clearing up), never lease deadlines. The tables are made by the steps
of migrations: a change of this file needs one, and a new SCHEMA_VERSION.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Index, Integer, LargeBinary, MetaData, String, Table, Text

#: Of the newest step in migrations/versions.
SCHEMA_VERSION = 13

metadata = MetaData()

meta = Table(
    "tenfold_meta",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

services = Table(
    "tenfold_services",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("host", String(300), nullable=False),
    #: Where it listens, once it does.
    Column("address", String(300)),
    Column("started", Float, nullable=False),
    #: Counts on while the service lives.
    Column("beats", BigInteger, nullable=False),
)

clusters = Table(
    "tenfold_clusters",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("uid", String(32), nullable=False),
    Column("created", Float, nullable=False),
    #: Only grows; a writer that finds another version than it started from lost a race and starts over.
    Column("version", BigInteger, nullable=False),
    #: JSON list of [job, size], in declared order.
    Column("jobs", Text, nullable=False),
    #: 0 or 1: whether parameter servers end with the workers.
    Column("stop_with_workers", Integer, nullable=False, server_default="0"),
    #: The last version whose task rows were marked with it, and the first one since which all were. Services of before
    #: version 10 of the tables, which may still run beside, mark none.
    Column("marked", BigInteger, nullable=False, server_default="0"),
    Column("marked_since", BigInteger, nullable=False, server_default="0"),
)

tasks = Table(
    "tenfold_tasks",
    metadata,
    Column("cluster", String(63), ForeignKey("tenfold_clusters.name"), primary_key=True),
    Column("job", String(63), primary_key=True),
    Column("task_index", Integer, primary_key=True),
    Column("state", String(16), nullable=False),
    Column("since", Float, nullable=False),
    Column("reason", Text, nullable=False),
    Column("address", String(300)),
    Column("incarnation", String(64)),
    Column("devices", Text, nullable=False),
    Column("lease_id", String(32)),
    Column("exit_code", Integer),
    #: JSON object of a cluster.Drain.
    Column("drain", Text),
    #: 0 or 1.
    Column("insecure", Integer, nullable=False, server_default="0"),
    #: As cluster.Task has them.
    Column("registrar", String(300)),
    Column("own_lease", Integer, nullable=False, server_default="0"),
    #: The cluster's version that wrote this row.
    Column("version", BigInteger, nullable=False, server_default="0"),
    Index("tenfold_tasks_version", "cluster", "version"),
)

leases = Table(
    "tenfold_leases",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("cluster", String(63), ForeignKey("tenfold_clusters.name"), nullable=False),
    Column("job", String(63), nullable=False),
    Column("task_index", Integer, nullable=False),
    Column("incarnation", String(64), nullable=False),
    Column("ttl", Float, nullable=False),
    #: live | ended
    Column("state", String(16), nullable=False),
    #: How the lease ended: the state of its task afterwards, and why.
    Column("outcome", String(16)),
    Column("reason", Text),
    Column("exit_code", Integer),
    Column("ended", Float),
    #: Counts renewals where replicas share the database; a replica that sees it move grants a whole ttl anew.
    Column("renewals", BigInteger, nullable=False, default=0),
    Index("tenfold_leases_state", "state", "ended"),
)

sessions = Table(
    "tenfold_sessions",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("cluster", String(63), nullable=False),
    Column("job", String(63), nullable=False),
    Column("task_index", Integer, nullable=False),
    Column("incarnation", String(64), nullable=False),
    Column("target", String(320), nullable=False),
    #: The master's own name for the session.
    Column("handle", String(256), nullable=False),
    Column("graph_version", BigInteger, nullable=False),
    Column("created", Float, nullable=False),
    #: The principal that opened it.
    Column("owner", String(300)),
)

answers = Table(
    "tenfold_answers",
    metadata,
    #: sha256 over the caller's principal, the path and the client's Idempotency-Key; of the path and the key alone
    #: where `principal` is NULL, as before version 9.
    Column("key", String(64), primary_key=True),
    Column("principal", String(300)),
    #: Bytes that the row counts for in the budget of answers.
    Column("size", BigInteger, nullable=False, server_default="0"),
    #: sha256 over query, content type and body: the same key must come with the same request.
    Column("fingerprint", String(64), nullable=False),
    #: running | done
    Column("state", String(16), nullable=False),
    #: The process that runs it; the outcome of a `running` row whose owner has ended is unknown.
    Column("owner", String(32), nullable=False),
    #: In the time of service_time.py.
    Column("created", Float, nullable=False),
    Column("status", Integer),
    #: JSON list of [name, value].
    Column("headers", Text),
    #: NULL with state done: the answer was too large to keep.
    Column("body", LargeBinary),
    Index("tenfold_answers_created", "created"),
    Index("tenfold_answers_principal", "principal", "created"),
)

runs = Table(
    "tenfold_runs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("submission_id", String(63), nullable=False, unique=True),
    #: sha256 over the submission: the same id must come with the same one.
    Column("fingerprint", String(64), nullable=False),
    Column("launcher", String(16), nullable=False),
    #: JSON of what was submitted.
    Column("submission", Text, nullable=False),
    Column("created", Float, nullable=False),
    Column("state", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    #: Only grows, as a cluster's.
    Column("version", BigInteger, nullable=False),
    Column("started", Float),
    Column("ended", Float),
    Column("attempt", Integer, nullable=False),
    Column("restarts", Integer, nullable=False),
    #: JSON list of the tasks as the supervisor reported them.
    Column("tasks", Text, nullable=False),
    #: JSON of the process that runs it.
    Column("supervisor", Text),
    #: Why it is to stop.
    Column("stop", Text),
    #: Counts reports where replicas share the database, as the leases' `renewals`.
    Column("reports", BigInteger, nullable=False, default=0),
    #: The service that starts it, as long as no supervisor has reported.
    Column("owner", String(32)),
    #: The principal that submitted it.
    Column("submitter", String(300)),
    #: JSON of runs/details.py: name, tags, parameters and the like.
    Column("details", Text, nullable=False, server_default="{}"),
    Index("tenfold_runs_state", "state"),
    Index("tenfold_runs_created", "created", "id"),
)

progress = Table(
    "tenfold_progress",
    metadata,
    Column("run", String(32), primary_key=True),
    Column("job", String(63), primary_key=True),
    Column("task_index", Integer, primary_key=True),
    #: JSON of what the task's program reported.
    Column("body", Text, nullable=False),
)

newest = Table(
    "tenfold_newest",
    metadata,
    Column("run", String(32), primary_key=True),
    Column("job", String(63), primary_key=True),
    Column("task_index", Integer, primary_key=True),
    #: When the program reported, in wall-clock seconds: another value with each report.
    Column("updated", Float, nullable=False),
    #: JSON of the newest values of its curves: the same row of `progress` may be a thousand times as large.
    Column("body", Text, nullable=False),
)

diffs = Table(
    "tenfold_run_diffs",
    metadata,
    Column("run", String(32), primary_key=True),
    #: How the files of the run's working directory differed from their commit.
    Column("diff", Text, nullable=False),
)

sweeps = Table(
    "tenfold_sweeps",
    metadata,
    Column("name", String(50), primary_key=True),
    #: sha256 over the definition: the same name must come with the same one.
    Column("fingerprint", String(64), nullable=False),
    #: JSON of what was asked for, of the settings by trial, and of what its runs are called.
    Column("definition", Text, nullable=False),
    Column("points", Text, nullable=False),
    Column("details", Text, nullable=False),
    Column("created", Float, nullable=False),
    Column("state", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    #: Only grows, as a run's.
    Column("version", BigInteger, nullable=False),
    Column("ended", Float),
    #: JSON of the trials that have left the queue (sweeps/record.py).
    Column("trials", Text, nullable=False),
    #: Why it is to stop.
    Column("stop", Text),
    #: The service that drives it.
    Column("owner", String(32)),
    #: The principal that made it.
    Column("submitter", String(300)),
    Index("tenfold_sweeps_state", "state"),
    Index("tenfold_sweeps_created", "created", "name"),
)

events = Table(
    "tenfold_events",
    metadata,
    #: Only grows, also when old events are deleted.
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("time", Float, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("action", String(32), nullable=False),
    Column("object", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("cluster", String(63)),
    Column("run", String(32)),
    #: JSON object.
    Column("data", Text, nullable=False),
    #: The principal whose session it is about; admins may read it, too.
    Column("owner", String(300)),
    Index("tenfold_events_time", "time"),
    sqlite_autoincrement=True,
)
