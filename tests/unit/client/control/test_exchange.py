"""The machines of a call and of a stream, driven by hand: what they want done, and what they make of the results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tenfold.control.exchange import Close, Emit, NextLine, Open, Pause, Peer, Send, attempts, follow, steps
from tenfold.control.request import Request, Requests, Stream, Work, members
from tenfold.control.retry import RetryPolicy
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Generator

    from tenfold.control.event_stream import StreamEvent

PEER = Peer("http://c:1", 30.0, RetryPolicy(attempts=2, first_pause=1.0))
ASKED = httpx.Request("GET", "http://c:1/v1/runs/r")
GET = Request("GET", "/v1/runs/r", members)
POST = Request("POST", "/v1/runs", members, wait=5.0)


def ended(machine: Generator[Any, Any, Any], result: Any) -> Any:
    """What the machine gives once it was sent that."""
    with pytest.raises(StopIteration) as end:
        machine.send(result)
    return end.value.value


def reply(status: int, **content: Any) -> httpx.Response:
    return httpx.Response(status, json=content, request=ASKED)


def test_an_answer() -> None:
    machine = attempts(POST, PEER)

    assert next(machine) == Send(POST, 35.0)
    assert ended(machine, reply(201, name="r")) == {"name": "r"}


def test_an_answer_that_is_no_object() -> None:
    machine = attempts(GET, PEER)
    next(machine)

    with pytest.raises(
        errors.InternalError, match=r"answered with text/html.* and no JSON object: it is no control service"
    ):
        machine.send(httpx.Response(200, html="<p>hello", request=ASKED))


def test_a_get_is_sent_again_when_the_connection_breaks() -> None:
    machine = attempts(GET, PEER)
    next(machine)

    paused = machine.throw(httpx.ReadError("gone"))

    assert isinstance(paused, Pause)
    assert 0.5 <= paused.seconds <= 1.0
    assert next(machine) == Send(GET, 30.0)
    with pytest.raises(errors.UnavailableError, match=r"http://c:1 cannot be reached \(GET /v1/runs/r: gone\)"):
        machine.throw(httpx.ReadError("gone"))


def test_a_post_is_not_unless_it_never_arrived() -> None:
    broken, refused = attempts(POST, PEER), attempts(POST, PEER)
    next(broken)
    next(refused)

    with pytest.raises(errors.DeadlineExceededError, match="did not answer POST /v1/runs within 35 s"):
        broken.throw(httpx.ReadTimeout("late"))
    assert isinstance(refused.throw(httpx.ConnectError("refused")), Pause)


def test_a_busy_service_is_asked_again_and_a_refusal_is_an_error() -> None:
    machine = attempts(GET, PEER)
    next(machine)

    assert isinstance(machine.send(reply(503)), Pause)
    next(machine)
    with pytest.raises(errors.NotFoundError, match="no run r"):
        machine.send(reply(404, code="NOT_FOUND", detail="no run r"))


def test_a_call_of_several_requests_may_answer_an_error() -> None:
    def upload() -> Requests[str]:
        name = yield from Work(lambda: "n")
        try:
            yield from GET
        except errors.NotFoundError:
            name += str((yield from POST)["size"])
        return name

    machine = steps(upload(), PEER)

    work = next(machine)
    assert isinstance(work, Work)
    assert machine.send(work.do()) == Send(GET, 30.0)
    assert machine.send(reply(404, code="NOT_FOUND")) == Send(POST, 35.0)
    assert ended(machine, reply(201, size=3)) == "n3"


def read(event: StreamEvent) -> list[str] | None:
    return None if event.name == "end" else event.data.split()


STREAM = Stream("/v1/events", {"run": "r"}, read)


def test_a_stream_goes_on_where_it_broke() -> None:
    machine = follow(STREAM, PEER)

    opened = next(machine)
    assert isinstance(opened, Open)
    assert opened.headers == {"Accept": "text/event-stream"}
    assert machine.send(reply(200)) == NextLine()
    assert [machine.send(line) for line in ("id: 7", "data: a b")] == [NextLine()] * 2
    assert [machine.send(""), machine.send(None), machine.send(None)] == [Emit("a"), Emit("b"), NextLine()]
    assert machine.throw(httpx.ReadError("gone")) == Close()
    assert isinstance(machine.send(None), Pause)
    again = machine.send(None)
    assert isinstance(again, Open)
    assert again.headers["Last-Event-ID"] == "7"
    machine.send(reply(200))
    machine.send("event: end")
    machine.send("data: -")
    assert machine.send("") == Close()
    with pytest.raises(StopIteration):
        machine.send(None)


def test_a_stream_that_nobody_gives() -> None:
    refused, ends = follow(STREAM, PEER), follow(STREAM, PEER)
    next(refused)
    next(ends)

    with pytest.raises(errors.NotFoundError):
        refused.send(reply(404, code="NOT_FOUND"))
    ends.send(reply(200))
    assert ends.send(None) == Close()
    assert isinstance(ends.send(None), Pause)
    assert isinstance(ends.send(None), Open)
    ends.send(reply(200))
    ends.send(None)
    with pytest.raises(errors.UnavailableError, match="the stream ended"):
        ends.send(None)
