"""What is asked of the control service, as values: one request and how its answer is read, a stream of events, work in
between. Pure.

Made by the `*_calls.py` beside this file, once for both clients: see calls.py. exchange.py turns them into attempts and
pauses, transport.py sends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote

from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping

    import httpx
    from google.protobuf.message import Message

    from tenfold.control.answers import Answer
    from tenfold.control.event_stream import StreamEvent

T = TypeVar("T")
A = TypeVar("A", bound="Answer")

#: A long-poll asks for at most this much at a time; the service bounds it too.
LONGEST_POLL = 30.0
#: Objects on one page of a list: the most that the service gives.
_PAGE = 1000


def path_of(*parts: str) -> str:
    """The path of an object from its names."""
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def milliseconds(seconds: float) -> str:
    """A `wait` as the service reads it."""
    return f"{round(seconds * 1000)}ms"


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """One request. In a call of several it is sent by `answer = yield from Request(…)`."""

    method: str
    path: str
    #: From a 2xx response to what the caller gets.
    read: Callable[[httpx.Response], T]
    params: Mapping[str, Any] | None = None
    json: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] | None = None
    #: Seconds for one attempt; None is the client's own.
    timeout: float | None = None
    #: Seconds that the service may take longer than that, as it was asked to wait.
    wait: float = 0.0
    #: Whether it may be sent again when the connection broke; None: all but POST.
    repeatable: bool | None = None

    def __iter__(self) -> Generator[Request[Any], Any, T]:
        answer: T = yield self
        return answer


@dataclass(frozen=True, slots=True)
class Work(Generic[T]):
    """What takes time here and not at the service; off the event loop's thread where there is one."""

    do: Callable[[], T]

    def __iter__(self) -> Generator[Work[Any], Any, T]:
        result: T = yield self
        return result


@dataclass(frozen=True, slots=True)
class Emit(Generic[T]):
    """Something for who reads a stream."""

    item: T

    def __iter__(self) -> Generator[Emit[T], Any, None]:
        yield self


#: A call of several requests: its result is the call's.
Requests: TypeAlias = "Generator[Request[Any] | Work[Any], Any, T]"
#: A stream that is made of requests.
Updates: TypeAlias = "Generator[Request[Any] | Work[Any] | Emit[T], Any, None]"


@dataclass(frozen=True, slots=True)
class Stream(Generic[T]):
    """Server-sent events. Goes on after the last one where a connection broke."""

    path: str
    params: Mapping[str, Any]
    #: What the caller gets for an event; None ends the stream.
    read: Callable[[StreamEvent], Iterable[T] | None]


def pages(
    path: str, member: str, kind: type[A], params: Mapping[str, Any], limit: int | None = None
) -> Generator[Request[Any], Any, list[A]]:
    """The objects of a list over all its pages, or the first `limit` of them."""
    found: list[A] = []
    after: str | None = None
    while True:
        size = _PAGE if limit is None else min(_PAGE, limit - len(found))
        page = yield from Request("GET", path, members, params={**params, "limit": size, "after": after})
        found += [kind.from_json(each) for each in page[member]]
        after = page["next"]
        if after is None or (limit is not None and len(found) >= limit):
            return found


# -- how answers are read


def members(response: httpx.Response) -> dict[str, Any]:
    """The JSON object of an answer. Raises InternalError for anything else."""
    try:
        answer = response.json()
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        kind = response.headers.get("content-type", "no content type")
        text = f"{response.url} answered with {kind} and no JSON object: it is no control service of Tenfold."
        raise errors.InternalError(None, None, text)
    return answer


def one(kind: type[A]) -> Callable[[httpx.Response], A]:
    """An answer that is one object."""
    return lambda response: kind.from_json(members(response))


def each(kind: type[A], member: str) -> Callable[[httpx.Response], list[A]]:
    """An answer that lists objects under `member`."""
    return lambda response: [kind.from_json(found) for found in members(response)[member]]


def nothing(response: httpx.Response) -> None:
    """An answer that does not matter."""


def text(response: httpx.Response) -> str:
    """An answer that is plain text."""
    return response.text


def from_program(
    run: str, place: tuple[str, str], job: str, index: int, found: Message, timeout: float | None
) -> Request[None]:
    """What one program of a run sends when a report's answer asked for it. `place`: kind and name of what asked."""
    path = path_of("runs", run, *place, "tasks", job, str(index))
    headers = {"Content-Type": "application/x-protobuf"}
    return Request("PUT", path, nothing, content=found.SerializeToString(), headers=headers, timeout=timeout)
