"""gRPC's headers: requests that are well-formed, and those that are not; statuses and their texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hpack as oracle
import pytest

from tenfold_services.http2 import metadata
from tenfold_services.http2.frame_types import StreamFault
from tenfold_services.http2.handler import Failure
from tenfold_services.http2.hpack import FieldRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_services.http2.hpack import Field
    from tenfold_services.http2.metadata import Head

REQUEST: list[Field] = [
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", b"/a.B/C"),
    (b"content-type", b"application/grpc+proto"),
    (b"te", b"trailers"),
]


def parse(fields: Sequence[Field], after: Sequence[Field] = ()) -> Head:
    """What `fields` mean, as those that a block begins with, and the ones `after` them."""
    return metadata.head_of(FieldRun(tuple(fields)), list(after))


def test_a_request() -> None:
    head = parse([*REQUEST, (b"grpc-timeout", b"250m"), (b"grpc-encoding", b"gzip"), (b"tf-rpc", b"7")])
    assert head == (b"/a.B/C", 0.25, b"gzip", ((b"tf-rpc", b"7"),), 200, None, None)


def test_a_token_is_none_of_the_handlers_business() -> None:
    head = parse([*REQUEST, (b"authorization", b"Bearer x"), (b"a", b"b")])
    assert (head.authorization, head.metadata) == ("Bearer x", ((b"a", b"b"),))


def test_the_role_that_a_call_asks_with_is_none_of_theirs_either() -> None:
    head = parse([*REQUEST, (b"tenfold-role", b"run:untrusted"), (b"a", b"b")])
    assert (head.as_role, head.metadata) == ("run:untrusted", ((b"a", b"b"),))


@pytest.mark.parametrize(
    "more",
    [
        [(b"tenfold-role", b"read")],
        [(b"authorization", b"Bearer y")],
        [(b"grpc-timeout", b"3S"), (b"a", b"b")],
        [(b"a", b"c"), (b"grpc-encoding", b"gzip"), (b"a", b"b")],
    ],
)
def test_fields_mean_the_same_wherever_a_run_of_them_ends(more: list[Field]) -> None:
    whole = [*REQUEST, *more]
    for end in range(len(whole) + 1):
        assert parse(whole[:end], whole[end:]) == parse(whole)


def test_a_run_is_read_once() -> None:
    run = FieldRun(tuple(REQUEST))
    head = metadata.head_of(run, [])
    assert metadata.head_of(run, []) is head
    assert metadata.head_of(run, [(b"a", b"b")]).metadata == ((b"a", b"b"),)
    assert metadata.head_of(run, [(b"grpc-timeout", b"1S")]).timeout == 1
    assert metadata.head_of(run, []) == head == parse(REQUEST)


@pytest.mark.parametrize("more", [(b":path", b"/other"), (b":authority", b"x"), (b"Upper", b"b"), (b"te", b"gzip")])
def test_what_comes_after_a_run_is_checked_like_it(more: Field) -> None:
    with pytest.raises(StreamFault):
        parse(REQUEST, [more])
    with pytest.raises(StreamFault):
        parse([*REQUEST, (b"a", b"b")], [more])
    with pytest.raises(StreamFault):
        parse([*REQUEST[:3], (b"a", b"b")], [more])


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
        parse(fields)


def test_who_does_not_speak_grpc() -> None:
    assert parse([(b":method", b"GET"), *REQUEST[1:]]).status == 405
    assert parse([*REQUEST[:3], (b"content-type", b"text/html")]).status == 415


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
