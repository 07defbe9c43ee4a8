"""Targets that name a cluster instead of an address: "tenfold://host:port/cluster", "tenfold://host:port/cluster/job/index".

The control service at host:port knows where the cluster's masters are. Without host:port, "tenfold:///cluster", it is
the one that TENFOLD_CONTROL names, else this machine's; in a task of a run whose control service has no such cluster it
is the run's own (runs/run_cluster.py). `tf.Session` asks `find_master` (session/targets.py), programs that place
variables ask `cluster_spec`.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

import httpx

from tenfold.control.client import ControlClient
from tenfold.control.problem import problem_of
from tenfold.runs import run_cluster
from tenfold_core import errors
from tenfold_core.access.credentials import shown_token

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_core.cluster_spec import ClusterSpec

#: Seconds to wait for a master when the session has no deadline of its own.
PATIENCE_S = 120.0
_REQUEST_S = 10.0
_TARGET = re.compile(
    r"tenfold://(?P<host>(\[[^\]/]+\]|[^/:\s\[\]]+):\d{1,5})?/(?P<cluster>[^/\s]+)(/(?P<job>[^/\s]+)/(?P<index>\d{1,9}))?/?"
)
_FORMS = (
    '"tenfold://host:port/cluster" or "tenfold://host:port/cluster/job/index"; "tenfold:///cluster" asks the service '
    "that TENFOLD_CONTROL names"
)


@dataclass(frozen=True, slots=True)
class ControlTarget:
    """Which cluster of which control service, and which task of it; None: any that can be a master."""

    url: str
    cluster: str
    job: str | None
    index: int | None

    @staticmethod
    def parse(target: str) -> ControlTarget:
        """Raises InvalidArgumentError saying how it should look."""
        found = _TARGET.fullmatch(target)
        if found is None:
            raise errors.InvalidArgumentError(None, None, f"Session target {target!r} is malformed: it is {_FORMS}.")
        url = (
            f"http://{found['host']}" if found["host"] else os.environ.get("TENFOLD_CONTROL") or "http://localhost:8080"
        )
        index = None if found["index"] is None else int(found["index"])
        return ControlTarget(url, unquote(found["cluster"]), found["job"], index)


def find_master(target: str, timeout: float | None = None) -> str:
    """The "grpc://host:port" of a tenfold:// target. Blocks until there is a ready master, at most `timeout` seconds
    (two minutes by default).

    Raises NotFoundError for a cluster or task that is not declared, DeadlineExceededError naming the tasks that did
    not come, UnavailableError when no control service is there.
    """
    wanted = ControlTarget.parse(target)
    if (own := _of_this_run(target, wanted)) is not None:
        return own.master(wanted.job, wanted.index)
    with _asking(wanted) as client:
        return client.wait_for_master(
            wanted.cluster, wanted.job, wanted.index, timeout=PATIENCE_S if timeout is None else timeout
        )


def cluster_spec(target: str = "tenfold:///default", *, timeout: float = 60.0) -> ClusterSpec:
    """The addresses of the cluster of a tenfold:// target, once all of its tasks have registered; for
    `tf.train.replica_device_setter(cluster=…)`. Blocks; raises as `find_master` does."""
    wanted = ControlTarget.parse(target)
    if (own := _of_this_run(target, wanted)) is not None:
        return own.spec
    with _asking(wanted) as client:
        return client.wait_for_spec(wanted.cluster, until_complete=True, timeout=timeout).cluster_spec()


def _of_this_run(target: str, wanted: ControlTarget) -> run_cluster.RunCluster | None:
    """The cluster of the run whose task this process is, with its server started, where the target means that one."""
    own = run_cluster.of_target(target)
    if own is None:
        return None
    if os.environ.get("TENFOLD_CONTROL"):
        try:
            with _asking(wanted) as client:
                client.spec(wanted.cluster)
            return None
        except errors.NotFoundError:
            pass
    run_cluster.serve(own)
    return own


@contextlib.contextmanager
def _asking(wanted: ControlTarget) -> Iterator[ControlClient]:
    """A client, whose errors say what a program with such a target can do about them."""
    with ControlClient(wanted.url, shown_token(), _REQUEST_S) as client:
        try:
            yield client
        except errors.UnauthenticatedError as error:
            text = f"{error.message} Set TENFOLD_TOKEN or TENFOLD_TOKEN_FILE."
            raise errors.UnauthenticatedError(None, None, text) from error
        except errors.OpError as error:
            problem = problem_of(error)
            if problem is not None and problem.kind == "no-such-cluster":
                names = ", ".join(sorted(each.name for each in client.clusters())) or "none"
                text = f"cluster {wanted.cluster!r} is not declared at {wanted.url}; declared are: {names}."
                raise errors.NotFoundError(None, None, text) from error
            strange = isinstance(error.__cause__, httpx.RemoteProtocolError)
            if strange or isinstance(error, errors.InternalError) or (problem is not None and not problem.members):
                text = (
                    f"{wanted.url} is no control service of Tenfold ({error.message}). Its port is 8080 if nothing "
                    "else was said; to a task itself a session goes by grpc://host:port."
                )
                raise errors.UnavailableError(None, None, text) from error
            raise
