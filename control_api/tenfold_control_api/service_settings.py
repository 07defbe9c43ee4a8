"""The control service's settings: one frozen dataclass, made once at start and passed down.

`main.py` fills it from the environment and the command line; tests fill it by hand. Every limit on what a
client may ask for (sizes, counts, times) is a field here, so that one file shows what the service permits.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from tenfold_core import env_settings, errors
from tenfold_core.access.credentials import AccessSettings
from tenfold_core.loopback import HOSTS
from tenfold_core.user_folders import default_database

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Prefix of the variables that set a field (`TENFOLD_CONTROL_MAX_TASKS`); `tenfold control` has options, too, for …
PREFIX = "TENFOLD_CONTROL_"
NAMES = {
    "database": "TENFOLD_DATABASE",
    "token": "TENFOLD_TOKEN",
    "token_file": "TENFOLD_TOKEN_FILE",
    "tls_cert": "TENFOLD_TLS_CERT",
    "tls_key": "TENFOLD_TLS_KEY",
    "tls_ca": "TENFOLD_TLS_CA",
    "tls": "TENFOLD_TLS",
}

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration of one control service. Times are seconds, sizes are bytes."""

    #: SQLAlchemy URL, a plain `postgresql://` DSN, or the path of a SQLite file.
    database: str = field(default_factory=default_database)
    #: When set, every /v1 request must carry `Authorization: Bearer <token>`. Two, with a comma, while it
    #: is changed.
    token: str | None = None
    #: A file of tokens with roles, looked at again while the service runs; then `token` is not looked at.
    token_file: str | None = None
    #: PEM files: with them the service speaks HTTPS alone, and knows callers by their certificates.
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_ca: str | None = None
    #: Which tasks are dialled with TLS, where there is a certificate.
    tls: Literal["auto", "always"] = "auto"
    #: Without a token everybody is accepted, not only the user who runs the service.
    insecure: bool = False
    #: `Host` headers that are answered without a token; None answers all. Other names are refused, so that a web page
    #: cannot reach the service by a name of its own that it lets resolve to the service's address (DNS rebinding).
    allowed_hosts: tuple[str, ...] | None = HOSTS
    #: Whether a `Host` that is an IP address is answered, too. Set for a service that listens beyond loopback.
    answer_addresses: bool = False

    #: The URL at which supervisors of runs and other machines reach this service; None: where it listens.
    advertise: str | None = None

    #: How often a task is asked to renew its lease.
    heartbeat: float = 2.0
    #: A lease that was not renewed for this long ends, and its task is lost.
    lease_ttl: float = 10.0
    #: An ended lease is kept this long, so that a late request of its task gets the reason (410) and not just 404.
    ended_lease_memory: float = 24 * 3600.0
    #: Upper bound of `wait` of a long-poll.
    max_wait: float = 60.0
    #: With a database shared by replicas: how often the service looks for changes by other replicas.
    refresh_interval: float = 0.5

    max_clusters: int = 1000
    max_jobs: int = 100
    max_tasks: int = 10_000
    max_watchers: int = 10_000

    #: Folder of the models that are served; None: none are.
    models_folder: str | None = None
    #: Folder, or a URL of one, within which models may follow trainings; None: the folder of models.
    trainings_folder: str | None = None
    #: Whether clients may have programs started here (`POST /v1/runs`).
    allow_runs: bool = False
    #: Folder of what runs leave; None: beside the database's file.
    runs_folder: str | None = None
    #: Whether runs stop when this service ends in any way; else they go on, and a later service finds them again.
    runs_end_with_service: bool = False
    #: Variables of the service's environment that programs get besides the usual ones (docs/rest.md); never TENFOLD_….
    run_environment: tuple[str, ...] = ()
    #: An uploaded working directory is kept this long after it was last asked for.
    package_memory: float = 24 * 3600.0
    #: Bytes of an uploaded working directory, unpacked; packed it is bounded by max_body.
    max_unpacked_package: int = 4096 * MIB
    #: Bytes of files that the tasks of one run on other machines may send; each file counts for 4 KiB at least.
    max_run_output: int = 4096 * MIB
    #: Runs that have not ended.
    max_active_runs: int = 100
    #: Sweeps that have not ended.
    max_active_sweeps: int = 100
    #: How often a program of a run is asked to report how far it is.
    progress_interval: float = 1.0
    #: An event is kept this long.
    event_memory: float = 24 * 3600.0
    #: Where TensorBoard is, for the dashboard's link.
    tensorboard_url: str | None = None
    #: Where alerts of runs that ended and tasks that were lost are posted: URLs, which may hold a secret.
    webhooks: tuple[str, ...] = field(default=(), repr=False)
    #: Traces of runs that are being made at once, and bytes that one program may send to one.
    max_traces: int = 8
    max_program_trace: int = 16 * MIB
    #: Bytes of finished traces that are kept to be fetched again; the newest one always is.
    kept_trace_bytes: int = 64 * MIB
    #: Requests that follow the logs of a run: all, and of one caller.
    max_followers: int = 100
    max_followers_per_caller: int = 50
    #: A supervisor that has not reported for this long after its start has failed.
    run_start_timeout: float = 60.0

    #: Open sessions: all, and of one caller.
    max_sessions: int = 256
    max_sessions_per_caller: int = 192
    #: A session without a call for this long is closed.
    session_idle_timeout: float = 3600.0
    #: A session is closed this long after its creation, used or not.
    session_ttl: float = 7 * 24 * 3600.0
    #: CreateSession and ExtendSession, when the request's config names no operation_timeout_in_ms.
    session_timeout: float = 60.0
    #: A step whose RunOptions name no timeout_in_ms.
    step_timeout: float = 600.0
    #: Steps (and other calls to masters) that run at once; each holds one thread.
    call_threads: int = 32
    #: Calls that may wait for a thread; more are refused with RESOURCE_EXHAUSTED.
    call_backlog: int = 128

    max_body: int = 256 * MIB
    #: JSON bodies of sessions and steps: parsing JSON blocks every other request, the binary forms do not.
    max_json_body: int = 32 * MIB
    #: Nodes of a graph in a body that is large; it is read in a thread.
    max_graph_nodes: int = 500_000
    #: Bodies of everything but sessions and steps.
    max_small_body: int = 1 * MIB
    #: A stored answer larger than this is not kept under its Idempotency-Key; the key still guards against a second
    #: run.
    max_stored_answer: int = 16 * MIB
    #: Bytes of all stored answers, and of one caller's: beyond them the oldest are given up, and their keys still
    #: guard against a second run.
    max_stored_answers: int = 256 * MIB
    max_stored_answers_per_caller: int = 128 * MIB
    #: Idempotency-Keys that are remembered, and those of one caller: beyond them new ones are refused.
    max_keys: int = 1_000_000
    max_keys_per_caller: int = 500_000
    idempotency_memory: float = 24 * 3600.0

    #: A request's line and headers must have come after so many seconds, from the connection on or their first byte.
    head_timeout: float = 10.0
    #: A body must bring `body_pace` bytes a second, looked at after each so many seconds.
    body_timeout: float = 10.0
    body_pace: float = 1024.0
    #: Connections at a time; fewer where the process may open fewer files.
    max_connections: int = 20_000

    #: Open requests get this long to end when the service stops.
    grace: float = 5.0

    def __post_init__(self) -> None:
        if not 0 < self.heartbeat < self.lease_ttl:
            raise ValueError(
                f"heartbeat ({self.heartbeat} s) must be above 0 and below lease_ttl ({self.lease_ttl} s): "
                "a task must be able to renew before its lease ends."
            )
        if own := [name for name in self.run_environment if name.startswith("TENFOLD_")]:
            raise ValueError(f"run_environment names {own[0]}; variables of the service itself go to no program.")
        if self.token is not None and not self.token.strip(" ,"):
            raise ValueError("token is empty. Leave it out to run without one (loopback only), or set a real secret.")
        if self.tensorboard_url is not None and not self.tensorboard_url.startswith(("http://", "https://")):
            raise ValueError(f"tensorboard_url is {self.tensorboard_url!r}; it may be a URL of http or https.")
        for at, url in enumerate(self.webhooks, 1):
            # the URL is not repeated: it may hold a secret
            if not _is_of_the_web(url):
                raise ValueError(f"webhook {at} of {len(self.webhooks)} must be a URL of http or https.")

    @property
    def has_tokens(self) -> bool:
        return self.token is not None or self.token_file is not None

    @property
    def lets_everybody_in(self) -> bool:
        """Whether anyone who reaches the service is accepted."""
        return self.insecure and not self.has_tokens

    def access(self) -> AccessSettings:
        """What the service shows to tasks, and accepts."""
        return AccessSettings(
            token=self.token,
            token_file=self.token_file,
            tls_cert=self.tls_cert,
            tls_key=self.tls_key,
            tls_ca=self.tls_ca,
            tls=self.tls,
        )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """The settings by variables of PREFIX and NAMES. Raises ValueError naming the variable and what it may be."""
        try:
            return env_settings.read(cls(), PREFIX, environment, NAMES)
        except errors.InvalidArgumentError as error:
            raise ValueError(error.message) from None


def _is_of_the_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
