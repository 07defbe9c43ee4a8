"""A token is added to each request that goes through, and nothing else is changed, however the bytes are cut."""

from __future__ import annotations

import random

import hpack
import pytest

from tenfold_services.http2 import frame_types as frames
from tenfold_services.tunnel.authorization import AuthorizedRequests

LONG = "x" * 500
FIELDS = [(":method", "POST"), (":path", "/tensorflow.MasterService/RunStep"), ("te", "trailers"), ("user-agent", "tf")]


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return frames.header(len(payload), kind, flags, stream) + payload


def blocks(data: bytes) -> list[tuple[int, list[tuple[str, str]]]]:
    """(stream, fields) of each request in `data`, which begins with the greeting; one table for all, as at a server."""
    assert data.startswith(frames.PREFACE)
    data = data[len(frames.PREFACE) :]
    decoder, found, block = hpack.Decoder(), [], b""
    while data:
        upper, lower, kind, flags, stream = frames.HEADER.unpack_from(data)
        end = frames.HEADER_BYTES + (upper << 8 | lower)
        payload, data = data[frames.HEADER_BYTES : end], data[end:]
        if kind not in (frames.HEADERS, frames.CONTINUATION):
            assert not block, "a block of headers is not interrupted"
            continue
        if flags & frames.PADDED and kind == frames.HEADERS:
            payload = payload[1 : len(payload) - payload[0]]
        block += payload
        if flags & frames.END_HEADERS:
            found.append((stream, [(str(name), str(value)) for name, value in decoder.decode(block)]))
            block = b""
    return found


def requests() -> bytes:
    """What a client says: two requests that share a table, one of them padded and in pieces, bodies, and a PING."""
    encoder = hpack.Encoder()
    first, second = encoder.encode(FIELDS), encoder.encode([*FIELDS, ("grpc-timeout", "1S")])
    padded = bytes((3,)) + second[:2] + b"\0" * 3
    return b"".join(
        (
            frames.PREFACE,
            frames.settings({}),
            frame(frames.HEADERS, frames.END_HEADERS, 1, first),
            frame(frames.DATA, frames.END_STREAM, 1, b"\x01\x04" * 70),
            frame(frames.PING, 0, 0, b"12345678"),
            frame(frames.HEADERS, frames.PADDED | frames.END_STREAM, 3, padded),
            frame(frames.CONTINUATION, frames.END_HEADERS, 3, second[2:]),
            frame(frames.DATA, 0, 5),
        )
    )


@pytest.mark.parametrize("token", ["tenfold-one", LONG])
@pytest.mark.parametrize("seed", range(20))
def test_each_request_shows_the_token(token: str, seed: int) -> None:
    made, sent, chance = AuthorizedRequests(lambda: token), requests(), random.Random(seed)
    out, at = b"", 0
    while at < len(sent):
        size = chance.choice((1, 2, 9, 30, 1000))
        out += made.take(memoryview(sent)[at : at + size])
        at += size

    shown = ("authorization", f"Bearer {token}")
    assert blocks(out) == [(1, [*FIELDS, shown]), (3, [*FIELDS, ("grpc-timeout", "1S"), shown])]
    assert b"\x01\x04" * 70 in out
    assert b"12345678" in out


def test_the_token_is_asked_for_with_each_request() -> None:
    tokens = iter(["tenfold-old", "tenfold-new"])
    out = AuthorizedRequests(lambda: next(tokens)).take(memoryview(requests()))

    assert [dict(fields)["authorization"] for _, fields in blocks(out)] == ["Bearer tenfold-old", "Bearer tenfold-new"]


def test_without_a_token_nothing_is_changed() -> None:
    assert AuthorizedRequests(lambda: None).take(memoryview(requests())) == requests()


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01", frames.PREFACE[:-1] + b"x"])
def test_what_is_no_http2_is_refused(sent: bytes) -> None:
    with pytest.raises(frames.ConnectionFault, match="no HTTP/2"):
        AuthorizedRequests(lambda: "tenfold-x").take(memoryview(sent))


class Tokens:
    """Counts how often the token is asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> str:
        self.asked += 1
        return "t"


SHOWN = b"\x1f\x08\x08Bearer t"


def taken(made: AuthorizedRequests, *parts: bytes) -> list[bytes]:
    return [made.take(memoryview(part)) for part in parts]


def test_the_greeting_goes_on_once_it_is_whole_and_is_not_taken_for_a_frame() -> None:
    made, greeting = AuthorizedRequests(Tokens()), frames.PREFACE
    assert taken(made, b"", greeting[:1], greeting[1:-1], greeting[-1:]) == [b"", b"", b"", greeting]
    ping = frame(frames.PING, 0, 0, b"12345678")
    assert taken(made, ping[:8], ping[8:9], ping[9:12], ping[12:]) == [b"", ping[:9], ping[9:12], ping[12:]]


@pytest.mark.parametrize("length", [0, 1, 255, 256, 65_535, 65_536, 70_000])
@pytest.mark.parametrize("kind", [frames.HEADERS, frames.CONTINUATION])
def test_a_block_goes_on_in_one_more_frame(length: int, kind: int) -> None:
    tokens = Tokens()
    made = AuthorizedRequests(tokens)
    taken(made, frames.PREFACE)
    block, flags = b"\x88" * length, frames.END_HEADERS | frames.END_STREAM
    sent, after = frame(kind, flags, 7, block), frame(frames.DATA, frames.END_STREAM, 7, b"xyz")

    (out,) = taken(made, sent + after)

    more = frame(frames.CONTINUATION, frames.END_HEADERS, 7, SHOWN)
    assert out == frame(kind, frames.END_STREAM, 7, block) + more + after
    assert tokens.asked == 1


@pytest.mark.parametrize(
    ("kind", "flags"),
    [
        (frames.HEADERS, 0), (frames.HEADERS, frames.END_STREAM), (frames.CONTINUATION, 0),
        (frames.DATA, frames.END_HEADERS), (frames.PING, frames.END_HEADERS), (frames.PUSH_PROMISE, frames.END_HEADERS),
        (frames.SETTINGS, frames.END_HEADERS), (0x77, frames.END_HEADERS),
    ],
)  # fmt: skip
def test_other_frames_go_on_as_they_are_and_no_token_is_asked_for(kind: int, flags: int) -> None:
    tokens = Tokens()
    made = AuthorizedRequests(tokens)
    sent = frame(kind, flags, 3, b"12345678") + frame(kind, flags, 5)
    assert b"".join(taken(made, frames.PREFACE, sent, frame(frames.DATA, 0, 5))) == (
        frames.PREFACE + sent + frame(frames.DATA, 0, 5)
    )
    assert tokens.asked == 0


def test_the_token_comes_with_the_last_byte_of_the_block() -> None:
    made = AuthorizedRequests(Tokens())
    taken(made, frames.PREFACE)
    sent = frame(frames.HEADERS, frames.END_HEADERS, 1, b"abc")
    more = frame(frames.CONTINUATION, frames.END_HEADERS, 1, SHOWN)
    assert taken(made, sent[:-1], sent[-1:]) == [frame(frames.HEADERS, 0, 1, b"abc")[:-1], b"c" + more]


@pytest.mark.parametrize("token", ["x" * 119, "x" * 120, "x" * 121, "\u00e9"])
def test_the_length_of_a_token_is_an_integer_of_hpack(token: str) -> None:
    made = AuthorizedRequests(lambda: token)
    taken(made, frames.PREFACE)
    (out,) = taken(made, frame(frames.HEADERS, frames.END_HEADERS, 1))
    field = out[2 * frames.HEADER_BYTES :]
    assert hpack.Decoder().decode(field, raw=True) == [(b"authorization", f"Bearer {token}".encode())]
