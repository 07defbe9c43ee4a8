"""Errors of the control service as data: RFC 9457 problem details carrying TensorFlow's canonical code.

All other modules raise `ApiError`, whose kinds are the rows of problem_types.py; `handlers.py` turns it, and all other
exceptions, into `application/problem+json`. The client's counterpart is tenfold/control/problem.py.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sqlalchemy.exc import InterfaceError, OperationalError

from tenfold_control_api.database import DatabaseAwayError
from tenfold_control_api.problem_types import CODES, PROBLEM_TYPES
from tenfold_core import errors
from tenfold_core.help_links import link, runtime_kind
from tenfold_core.log_setup import request_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tenfold_control_api.problem_types import ProblemType

#: What the type of every problem begins with.
URN = "urn:tenfold:problem:"
_TASK = re.compile(r"/job:[A-Za-z][A-Za-z0-9_]*(?:/replica:\d+)?/task:\d+")
#: What stands for itself in a URI's fragment, besides letters and digits (RFC 3986); "/" separates.
_FRAGMENT = "~!$&'()*+,;=:@?"
#: Longest detail of a problem. A master's message may be very long (a graph in an error), and is cut.
MAX_DETAIL = 16_000


@dataclass(slots=True)
class ApiError(Exception):
    """A request that cannot be answered with 2xx. `kind` is the name of its row in problem_types.py."""

    kind: str
    detail: str
    task: str | None = None
    node: str | None = None
    #: Only where the row does not know.
    retryable: bool | None = None
    missing_tasks: Sequence[str] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    #: More members of the problem object, e.g. `outcome`, `errors`.
    extra: Mapping[str, Any] = field(default_factory=dict)
    #: What in a JSON body is wrong: names and indices from the body inwards; () is all of it, None nothing in a body.
    at: Sequence[str | int] | None = None

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"

    @property
    def type(self) -> ProblemType:
        return PROBLEM_TYPES[self.kind]

    @property
    def code(self) -> str:
        """The canonical code."""
        return self.type.code

    @property
    def http_status(self) -> int:
        return self.type.status

    def body(self, instance: str) -> dict[str, Any]:
        """The problem object. `instance` is the path of the request."""
        row = self.type
        problem: dict[str, Any] = {
            "type": URN + row.name,
            "title": row.title,
            "status": row.status,
            "detail": self.detail[:MAX_DETAIL],
            "instance": instance,
            "code": row.code,
            "retryable": row.retryable if self.retryable is None else self.retryable,
            "help": link(row.name),
        }
        if self.task:
            problem["task"] = self.task
        if self.node:
            problem["node"] = self.node
        if self.missing_tasks:
            problem["missing_tasks"] = list(self.missing_tasks)
        if name := request_id.get():
            problem["request_id"] = name
        if self.at is not None:
            problem["errors"] = [{"pointer": pointer(self.at), "detail": self.detail[:MAX_DETAIL]}]
        problem.update(self.extra)
        return problem


def pointer(inside: Iterable[str | int]) -> str:
    """Names and indices from a JSON body inwards → a JSON Pointer (RFC 6901) as a URI fragment, as in `#/jobs/ps`."""
    return "".join(["#", *(f"/{quote(_escaped(str(each)), safe=_FRAGMENT)}" for each in inside)])


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


#: Which member of a JSON body names a task of a cluster, where a body does.
PLACE_MEMBERS = {"no-such-cluster": "cluster", "no-such-job": "job", "no-such-task": "index"}


@contextlib.contextmanager
def pointing(members: Mapping[str, str]) -> Iterator[None]:
    """Within it an ApiError of one of these kinds says which member of the JSON body named what is not there: kind →
    member. For what a body and a path may name alike."""
    try:
        yield
    except ApiError as error:
        if error.at is None and error.kind in members:
            error.at = (members[error.kind],)
        raise


def from_database_error(error: Exception) -> ApiError:
    """The database did not take what a request asked of it. Says why a disk or a server failed, and nothing of what a
    statement held."""
    kept = isinstance(error, OperationalError | InterfaceError | DatabaseAwayError)
    why: Any = getattr(error, "orig", None) if kept else None
    told = str(why or "") or type(why or error).__name__
    return ApiError(
        "database-unavailable",
        f"the control service's database did not do its part ({told}); nothing was changed that was not answered.",
        headers={"Retry-After": "1"},
    )


def from_op_error(error: errors.OpError, **more: Any) -> ApiError:
    """What a master or a tensor codec raised, with the node and task that its message names."""
    message = str(error.message)
    code = errors.code_name(error.code)
    node = error.node_def.name if error.node_def is not None else error.node_name
    task = more.pop("task", None)
    if match := _TASK.search(message):
        task = match.group(0)
    return ApiError(runtime_kind(code if code in CODES else "UNKNOWN"), message, node=node, task=task, **more)
