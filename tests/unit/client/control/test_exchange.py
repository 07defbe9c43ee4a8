"""The machines of a call and of a stream, driven by hand: what they want done, and what they make of the results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tenfold.control.addresses import Addresses
from tenfold.control.exchange import Close, Emit, NextLine, Open, Pause, Peer, Send, attempts, follow, steps
from tenfold.control.request import Request, Requests, Stream, Work, members
from tenfold.control.retry import RetryPolicy
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Generator

    from tenfold.control.event_stream import StreamEvent

PEER = Peer(Addresses("http://c:1"), 30.0, RetryPolicy(attempts=2, first_pause=1.0))
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

    assert next(machine) == Send(POST, 35.0, "http://c:1")
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
    assert next(machine) == Send(GET, 30.0, "http://c:1")
    with pytest.raises(errors.UnavailableError, match=r"http://c:1 cannot be reached \(GET /v1/runs/r: gone\)"):
        machine.throw(httpx.ReadError("gone"))


def test_a_post_is_not_unless_it_never_arrived() -> None:
    broken, refused = attempts(POST, PEER), attempts(POST, PEER)
    next(broken)
    next(refused)

    with pytest.raises(errors.DeadlineExceededError, match="did not answer POST /v1/runs within 35 s"):
        broken.throw(httpx.ReadTimeout("late"))
    assert isinstance(refused.throw(httpx.ConnectError("refused")), Pause)


def test_a_service_that_does_not_answer_is_not_asked_for_longer_than_was_to_be_waited() -> None:
    machine = attempts(GET, PEER)
    next(machine)

    with pytest.raises(errors.DeadlineExceededError, match="http://c:1 did not answer GET /v1/runs/r within 30 s"):
        machine.throw(httpx.ReadTimeout("late"))


def test_where_there_is_another_service_that_is_asked_once() -> None:
    machine = attempts(GET, Peer(Addresses("http://a:1,http://b:1"), 30.0, RetryPolicy(attempts=9), None))
    assert next(machine) == Send(GET, 30.0, "http://a:1")
    assert machine.throw(httpx.ReadTimeout("late")) == Send(GET, 30.0, "http://b:1")

    with pytest.raises(errors.DeadlineExceededError, match="http://b:1 did not answer"):
        machine.throw(httpx.ReadTimeout("late"))


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
    assert machine.send(work.do()) == Send(GET, 30.0, "http://c:1")
    assert machine.send(reply(404, code="NOT_FOUND")) == Send(POST, 35.0, "http://c:1")
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


# -- several services


def pair(attempts: int = 2) -> Peer:
    return Peer(Addresses("http://a:1, http://b:2/"), 30.0, RetryPolicy(attempts=attempts, first_pause=1.0))


def test_the_next_service_is_asked_at_once_and_from_then_on() -> None:
    peer = pair()
    machine = attempts(POST, peer)

    first = next(machine)
    second = machine.throw(httpx.ConnectError("refused"))

    assert (first.url, second.url) == ("http://a:1", "http://b:2")
    assert ended(machine, reply(201, name="r")) == {"name": "r"}
    assert next(attempts(GET, peer)) == Send(GET, 30.0, "http://b:2")


def test_all_are_asked_before_a_pause_and_all_are_named() -> None:
    machine = attempts(GET, pair())
    asked = [next(machine)]
    asked.append(machine.throw(httpx.ConnectError("refused")))
    paused = machine.throw(httpx.ConnectError("refused"))
    asked.append(machine.send(None))
    asked.append(machine.throw(httpx.ConnectError("refused")))
    with pytest.raises(errors.UnavailableError, match="service at http://a:1 and http://b:2 cannot be reached") as told:
        machine.throw(httpx.ConnectError("refused"))
    assert "`tenfold up` starts one" in str(told.value)

    assert isinstance(paused, Pause)
    assert [each.url for each in asked] == ["http://a:1", "http://b:2"] * 2


def test_what_may_have_been_done_is_not_asked_of_another_one() -> None:
    machine = attempts(POST, pair())
    next(machine)

    with pytest.raises(errors.UnavailableError):
        machine.throw(httpx.ReadError("gone"))


def test_a_service_that_stops_is_left() -> None:
    machine = attempts(GET, pair())
    next(machine)
    machine.send(reply(503, code="UNAVAILABLE"))

    assert machine.send(None).url == "http://b:2"


def test_a_stream_goes_on_at_the_next_service() -> None:
    machine = follow(Stream("/v1/events", {}, lambda event: [event.data]), pair())
    opened = [next(machine)]
    machine.send(httpx.Response(200, request=ASKED))
    for line in ("id: 7", "data: x"):
        machine.send(line)
    assert machine.send("") == Emit("x")
    machine.send(None)
    assert isinstance(machine.throw(httpx.ReadError("gone")), Close)
    assert isinstance(machine.send(None), Pause)
    opened.append(machine.send(None))

    assert [each.url for each in opened] == ["http://a:1", "http://b:2"]
    assert opened[1].headers["Last-Event-ID"] == "7"


def test_other_services_are_learnt_once_and_asked_last() -> None:
    addresses = Addresses("http://a:1")
    addresses.learn(["http://b:2", "http://a:1"])
    addresses.learn(("http://b:2",))
    addresses.leave("http://a:1")

    assert (addresses.urls, addresses.current) == (["http://a:1", "http://b:2"], "http://b:2")
    addresses.learn(f"http://c:{number}" for number in range(100))
    assert len(addresses.urls) == 32


@pytest.mark.parametrize(("text", "why"), [("localhost:8080", "not a URL of a control service"), (" , ", "is empty")])
def test_an_address_that_is_none(text: str, why: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=why):
        Addresses(text)
