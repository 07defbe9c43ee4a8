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


@pytest.mark.parametrize(
    "name",
    ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "Upper", "", "a b", "a:", "a\n"],
)
def test_names_that_no_request_may_have(name: str) -> None:
    with pytest.raises(StreamFault, match=r"^a field that HTTP/2 does not allow$"):
        metadata.check_field(name.encode(), b"x")


@pytest.mark.parametrize("value", [b" x", b"\tx", b"x ", b"x\t", b"a\0b", b"a\rb", b"a\nb", b"a\n"])
def test_values_that_no_request_may_have(value: bytes) -> None:
    with pytest.raises(StreamFault, match=r"^a field that HTTP/2 does not allow$"):
        metadata.check_field(b"a", value)


@pytest.mark.parametrize(
    ("name", "value"),
    [(b"a-b.c_d~!#$%&'*+^`|9", b""), (b"a", b"x y\tz"), (b"a", b"\xff\x01"), (b"te", b"trailers"), (b"x-te", b"gzip")],
)
def test_fields_that_a_request_may_have(name: bytes, value: bytes) -> None:
    metadata.check_field(name, value)


def test_a_te_field_is_trailers() -> None:
    for value in (b"", b"gzip", b"Trailers", b"trailers, gzip"):
        with pytest.raises(StreamFault, match=r"^a te field other than trailers$"):
            metadata.check_field(b"te", value)


@pytest.mark.parametrize(
    "text", [b"", b"S", b"12345678", b"123456789S", b"1s", b"1 S", b"-1S", b"1.5S", b"1S\n", b"1SS"]
)
def test_times_that_are_none(text: bytes) -> None:
    with pytest.raises(StreamFault, match=r"^a malformed grpc-timeout$"):
        metadata.parse_timeout(text)


def test_a_time_of_eight_digits() -> None:
    assert metadata.parse_timeout(b"12345678S") == 12345678
    assert metadata.parse_timeout(b"10m") == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("method", "kind", "status"),
    [
        (b"POST", b"application/grpc", 200), (b"POST", b"application/grpc+proto", 200), (b"POST", b"text/html", 415),
        (b"POST", None, 415), (b"GET", b"application/grpc", 405), (b"GET", b"text/html", 405), (b"post", None, 405),
    ],
)  # fmt: skip
def test_what_a_peer_that_does_not_speak_grpc_is_told(method: bytes, kind: bytes | None, status: int) -> None:
    fields = [(b":method", method), *REQUEST[1:3]]
    head = parse(fields if kind is None else [*fields, (b"content-type", kind)])
    assert (head.status, head.path, head.timeout, head.encoding) == (status, b"/a.B/C", None, b"identity")
    assert (head.authorization, head.as_role, head.metadata) == (None, None, ())


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_request_has_method_scheme_and_path(missing: int) -> None:
    with pytest.raises(StreamFault, match=r"^a request without method, scheme or path$"):
        parse([field for number, field in enumerate(REQUEST) if number != missing])
    empty = [(name, b"" if number == missing else value) for number, (name, value) in enumerate(REQUEST)]
    if missing == 1:
        assert parse(empty).status == 200
    else:
        with pytest.raises(StreamFault, match=r"^a request without method, scheme or path$"):
            parse(empty)


@pytest.mark.parametrize("late", [(b"a", b"b"), (b"te", b"trailers"), (b"content-type", b"application/grpc")])
def test_pseudo_headers_come_before_all_others(late: Field) -> None:
    for end in range(5):
        fields = [*REQUEST[:2], late, REQUEST[2], (b"x", b"y")]
        with pytest.raises(StreamFault, match=r"^the pseudo-header fields are wrong$"):
            parse(fields[:end], fields[end:])


@pytest.mark.parametrize(
    "own",
    [
        "content-type", "te", "grpc-timeout", "grpc-encoding", "grpc-accept-encoding", "grpc-message-type",
        "content-length", "authorization", "tenfold-role",
    ],
)  # fmt: skip
def test_fields_of_grpc_and_ours_are_not_the_handlers(own: str) -> None:
    value = {"te": b"trailers", "grpc-timeout": b"1S"}.get(own, b"application/grpc")
    assert parse([*REQUEST, (own.encode(), value)]).metadata == ()
    assert parse([*REQUEST, (f"x-{own}".encode(), value)]).metadata == ((f"x-{own}".encode(), value),)


def test_text_of_the_caller_is_latin() -> None:
    assert metadata.readable(((b"a", b"\xe9"), (b"b-bin", b"AA==,*,AAE"))) == (
        ("a", "\u00e9"), ("b-bin", b"\0"), ("b-bin", b"\0\1"),
    )  # fmt: skip
    assert metadata.readable(()) == ()


def test_what_an_answer_begins_and_ends_with() -> None:
    decode = oracle.Decoder().decode
    assert decode(metadata.HEADERS) == [(":status", "200"), ("content-type", "application/grpc")]
    assert decode(metadata.TRAILERS) == [("grpc-status", "0")]
    assert decode(metadata.http_status(405)) == [(":status", "405"), ("content-length", "0")]
    assert decode(metadata.failure(Failure(12, "no"), b"gzip")) == [
        ("grpc-status", "12"), ("grpc-message", "no"), ("grpc-accept-encoding", "gzip"),
    ]  # fmt: skip
    assert decode(metadata.failure(Failure(12, ""))) == [("grpc-status", "12"), ("grpc-message", "")]


def test_metadata_of_an_answer() -> None:
    assert metadata.encoded(()) == b""
    block = metadata.encoded((("Name", "\u00e9"), ("raw-bin", b"\0"), ("text-bin", "ab"), ("bytes", b"x")))
    assert oracle.Decoder().decode(block, raw=True) == [
        (b"name", b"\xc3\xa9"), (b"raw-bin", b"AA"), (b"text-bin", b"YWI"), (b"bytes", b"x"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "sent"),
    [(" ~", b" ~"), ("%", b"%25"), ("$&", b"$&"), ("\x7f\x1f", b"%7F%1F"), ("\u20ac", b"%E2%82%AC"), ("\ud800", b"?")],
)
def test_a_failures_text_is_printable(text: str, sent: bytes) -> None:
    assert metadata.percent(text) == sent
