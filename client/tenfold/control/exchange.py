"""From a request to attempts, pauses and an answer, or an error of tf.errors. Pure: no I/O and no clock.

A machine is a generator. It yields what is to be done (`Send`, `Open`, `NextLine`, `Close`, `Pause`, `Work`, and `Emit`
in streams), and is sent the result, or thrown httpx's exception. transport.py does these things, blocking or awaiting.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import httpx

from tenfold.control.event_stream import EventParser
from tenfold.control.problem import error_of
from tenfold.control.request import Emit, Request, Stream, Work
from tenfold.control.retry import NO_RETRY, RetryPolicy
from tenfold_core import errors, protocol

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from tenfold.control.addresses import Addresses
    from tenfold.control.request import Requests, Updates
    from tenfold_core.access.credentials import Shown

T = TypeVar("T")

#: Statuses of a request that did nothing and may succeed later.
_NOT_NOW = (429, 503)
#: What most services say, which need not be looked into.
_SPOKEN_HERE = protocol.rest().text()
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


@dataclass(frozen=True, slots=True)
class Peer:
    """The services that are asked, one after the other, and how patiently."""

    addresses: Addresses
    #: Seconds for one attempt.
    timeout: float
    retry: RetryPolicy
    token: Shown = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Send:
    """Gives the whole response."""

    request: Request[Any]
    timeout: float
    url: str


@dataclass(frozen=True, slots=True)
class Open:
    """Begins a stream; gives the response, read if it is a refusal. `Close` ends it."""

    path: str
    params: Mapping[str, Any]
    headers: Mapping[str, str]
    url: str


@dataclass(frozen=True, slots=True)
class NextLine:
    """Gives the open response's next line; None at its end."""


@dataclass(frozen=True, slots=True)
class Close:
    """Gives up the open response."""


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


Action: TypeAlias = Send | Open | NextLine | Close | Pause | Work[Any]
#: A call: one request or several.
Exchange: TypeAlias = "Request[T] | Requests[T]"


def steps(exchange: Exchange[T], peer: Peer) -> Generator[Action, Any, T]:
    """Carries out a call. Its errors are raised in it where it waits, so that it may answer them."""
    result: T = yield from _driven(iter(exchange), peer)
    return result


def streamed(source: Stream[T] | Updates[T], peer: Peer) -> Generator[Action | Emit[T], Any, None]:
    """Carries out a stream, whether the service sends it or it is made of requests."""
    yield from follow(source, peer) if isinstance(source, Stream) else _driven(source, peer)


def _driven(call: Generator[Any, Any, Any], peer: Peer) -> Generator[Any, Any, Any]:
    try:
        wanted = next(call)
        while True:
            try:
                answer = (yield from attempts(wanted, peer)) if isinstance(wanted, Request) else (yield wanted)
            except Exception as error:
                wanted = call.throw(error)
            else:
                wanted = call.send(answer)
    except StopIteration as end:
        return end.value


#: Said where no connection was made at all.
_HOW_TO_START = " If none is running, `tenfold up` starts one with a cluster, `tenfold control` one alone."


def attempts(request: Request[T], peer: Peer) -> Generator[Action, Any, T]:
    """Sends a request, again where that is allowed; to the next service at once where one cannot be reached.

    Raises the `tf.errors` class of a problem answer, with a ControlProblem as its cause, UnavailableError
    when the service cannot be reached, and DeadlineExceededError when it does not answer in time.
    """
    repeatable = request.method != "POST" if request.repeatable is None else request.repeatable
    pauses = (peer.retry if repeatable else NO_RETRY).pauses()
    connect_pauses = peer.retry.pauses()
    timeout = (peer.timeout if request.timeout is None else request.timeout) + request.wait
    away: set[str] = set()
    while True:
        url = peer.addresses.current
        try:
            response: httpx.Response = yield Send(request, timeout, url)
        except _UNSENT as error:
            peer.addresses.leave(url)
            away.add(url)
            if peer.addresses.current not in away:
                continue
            away.clear()
            if (pause := next(connect_pauses, None)) is None:
                raise _unreachable(peer.addresses, request.method, request.path, error, _HOW_TO_START) from error
        except httpx.TimeoutException as error:
            # who asks has waited as long as was to be waited: another service may answer, this one is not asked again
            peer.addresses.leave(url)
            away.add(url)
            if peer.addresses.current not in away and next(pauses, None) is not None:
                continue
            text = f"{url} did not answer {request.method} {request.path} within {timeout:g} s."
            raise errors.DeadlineExceededError(None, None, text) from error
        except httpx.TransportError as error:
            peer.addresses.leave(url)
            if (pause := next(pauses, None)) is None:
                raise _unreachable(url, request.method, request.path, error) from error
        else:
            check_version(response, url)
            if response.is_success:
                return request.read(response)
            if response.status_code not in _NOT_NOW or (pause := next(pauses, None)) is None:
                raise _refused(response)
            peer.addresses.leave(url)
        yield Pause(pause)


def check_version(response: httpx.Response, url: str) -> None:
    """Whether the service at `url` and this client speak a version of REST in common. A service that says nothing is
    one from before, or no control service, which its answer shows. Raises VersionError."""
    told = response.headers.get(protocol.HEADER)
    if told is not None and told != _SPOKEN_HERE:
        protocol.agree_on_rest(protocol.parse(told), f"the control service at {url}")


def follow(stream: Stream[T], peer: Peer) -> Generator[Action | Emit[T], Any, None]:
    """The events of a stream, until `stream.read` says that it is over. One that breaks, or ends by itself, goes on
    after the last event that came; raises as `attempts` does once that has failed as often as requests are repeated."""
    last: str | None = None
    pauses = peer.retry.pauses()
    while True:
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last is not None else {})}
        url = peer.addresses.current
        problem: Exception = _unreachable(peer.addresses, "GET", stream.path, ConnectionError("the stream ended"))
        try:
            response: httpx.Response = yield Open(stream.path, stream.params, headers, url)
            if not response.is_success:
                problem = _refused(response)
                if response.status_code not in _NOT_NOW:
                    raise problem
            else:
                parser = EventParser()
                while (line := (yield NextLine())) is not None:
                    if (event := parser.read(line)) is None:
                        continue
                    last = event.id if event.id is not None else last
                    pauses = peer.retry.pauses()
                    if not event.data:
                        continue
                    items = stream.read(event)
                    if items is None:
                        yield Close()
                        return
                    for item in items:
                        yield Emit(item)
        except httpx.TransportError as error:
            problem = _unreachable(peer.addresses, "GET", stream.path, error)
        yield Close()
        peer.addresses.leave(url)
        if (pause := next(pauses, None)) is None:
            raise problem
        yield Pause(pause)


def _unreachable(where: Addresses | str, method: str, path: str, error: Exception, advice: str = "") -> errors.OpError:
    reason = str(error) or type(error).__name__
    text = f"the control service at {where} cannot be reached ({method} {path}: {reason}).{advice}"
    return errors.UnavailableError(None, None, text)


def _refused(response: httpx.Response) -> errors.OpError:
    members: Any = None
    if response.headers.get("content-type", "").partition(";")[0].endswith("json"):
        try:
            members = response.json()
        except ValueError:
            members = None
    return error_of(response.status_code, members if isinstance(members, dict) else {}, response.text)
