"""gRPC's headers: requests that are well-formed, and those that are not; statuses and their texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hpack as oracle
import pytest

from tenfold_services.http2 import metadata
from tenfold_services.http2.frame_types import StreamFault
from tenfold_services.http2.handler import Failure

if TYPE_CHECKING:
    from tenfold_services.http2.hpack import Field

REQUEST: list[Field] = [
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", b"/a.B/C"),
    (b"content-type", b"application/grpc+proto"),
    (b"te", b"trailers"),
]


def test_a_request() -> None:
    head = metadata.parse([*REQUEST, (b"grpc-timeout", b"250m"), (b"grpc-encoding", b"gzip"), (b"tf-rpc", b"7")])
    assert head == (b"/a.B/C", 0.25, b"gzip", ((b"tf-rpc", b"7"),), 200, None, None)


def test_a_token_is_none_of_the_handlers_business() -> None:
    head = metadata.parse([*REQUEST, (b"authorization", b"Bearer x"), (b"a", b"b")])
    assert (head.authorization, head.metadata) == ("Bearer x", ((b"a", b"b"),))


def test_the_role_that_a_call_asks_with_is_none_of_theirs_either() -> None:
    head = metadata.parse([*REQUEST, (b"tenfold-role", b"run:untrusted"), (b"a", b"b")])
    assert (head.as_role, head.metadata) == ("run:untrusted", ((b"a", b"b"),))
    assert metadata.extended(metadata.parse(REQUEST), [(b"tenfold-role", b"read")]) == metadata.parse(
        [*REQUEST, (b"tenfold-role", b"read")]
    )


def test_fields_after_those_that_are_known() -> None:
    head = metadata.parse(REQUEST)
    shown = [(b"authorization", b"Bearer y")]
    assert metadata.extended(head, shown) == metadata.parse([*REQUEST, *shown])
    more = metadata.extended(head, [(b"grpc-timeout", b"3S"), (b"a", b"b")])
    assert more == metadata.parse([*REQUEST, (b"grpc-timeout", b"3S"), (b"a", b"b")])
    assert metadata.extended(head, [(b"grpc-encoding", b"gzip")]) is None
    assert metadata.extended(head, [(b":path", b"/other")]) is None
    with pytest.raises(StreamFault):
        metadata.extended(head, [(b"Upper", b"b")])


@pytest.mark.parametrize(("text", "seconds"), [(b"2H", 7200), (b"3M", 180), (b"0S", 0), (b"5u", 5e-6), (b"7n", 7e-9)])
def test_timeouts(text: bytes, seconds: float) -> None:
    assert metadata.parse_timeout(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "fields",
    [
        [],
        REQUEST[1:],
        REQUEST[:1] + REQUEST[2:],
        REQUEST[:2] + REQUEST[3:],
        [*REQUEST, (b":path", b"/late")],
        [REQUEST[0], *REQUEST],
        [(b":status", b"200"), *REQUEST],
        [*REQUEST, (b"Upper", b"x")],
        [*REQUEST, (b"", b"x")],
        [*REQUEST, (b"sp ace", b"x")],
        [*REQUEST, (b"a", b"x\ny")],
        [*REQUEST, (b"a", b" x")],
        [*REQUEST, (b"connection", b"close")],
        [*REQUEST, (b"te", b"gzip")],
        [*REQUEST, (b"grpc-timeout", b"123456789S")],
        [*REQUEST, (b"grpc-timeout", b"1s")],
        [*REQUEST, (b"grpc-timeout", b"-1S")],
    ],
)
def test_malformed_requests(fields: list[Field]) -> None:
    with pytest.raises(StreamFault):
        metadata.parse(fields)


def test_who_does_not_speak_grpc() -> None:
    assert metadata.parse([(b":method", b"GET"), *REQUEST[1:]]).status == 405
    assert metadata.parse([*REQUEST[:3], (b"content-type", b"text/html")]).status == 415


def test_metadata_of_the_caller() -> None:
    fields = ((b"a", b"b"), (b"k-bin", b"AAE"), (b"k-bin", b"AAE=,AA"), (b"bad-bin", b"*"))
    assert metadata.readable(fields) == (("a", "b"), ("k-bin", b"\0\1"), ("k-bin", b"\0\1"), ("k-bin", b"\0"))


def test_a_failure_in_trailers() -> None:
    said = Failure(3, "100 % naïve\n", (("tenfold-said", "1"), ("grpc-status-details-bin", b"\0\1")))
    fields = oracle.Decoder().decode(metadata.failure(said))
    assert fields == [
        ("grpc-status", "3"),
        ("grpc-message", "100 %25 na%C3%AFve%0A"),
        ("tenfold-said", "1"),
        ("grpc-status-details-bin", "AAE"),
    ]
