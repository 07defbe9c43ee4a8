"""Whatever a peer sends, in whatever pieces: requests, answers or GOAWAY come of it, and never an exception."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold_services.http2 import frame_types as frames
from tenfold_services.http2.http2_settings import Http2Settings

from .peers import GREETING, POST, Peer, data, frame, request

if TYPE_CHECKING:
    from tenfold_services.http2.frame_types import Code

STREAMS = st.sampled_from([0, 1, 2, 3, 5, 7])
KINDS = st.integers(0, 12)
SENSIBLE = st.one_of(
    st.builds(request, STREAMS, ends=st.booleans()),
    st.builds(data, STREAMS, st.binary(max_size=60), ends=st.booleans()),
    st.builds(frames.window_update, STREAMS, st.integers(0, frames.MAX_WINDOW)),
    st.builds(frames.rst_stream, STREAMS, st.sampled_from(frames.Code)),
    st.builds(lambda name, value: frames.settings({name: value}), st.integers(1, 6), st.integers(0, 1 << 31)),
    st.builds(lambda payload: frame(frames.PING, 0, 0, payload), st.binary(min_size=8, max_size=8)),
)
ANY = st.builds(frame, KINDS, st.integers(0, 255), STREAMS, st.one_of(st.binary(max_size=40), st.just(POST)))
SETTINGS = Http2Settings(streams=3, stream_window=100, connection_window=70_000, control_burst=20)


def story(sent: bytes, size: int, *, room: int = 0) -> tuple[list[tuple[bytes, bool, bool]], Code | None]:
    """What became of the requests, and of the connection."""
    peer = Peer(SETTINGS, greet=False, room=room)
    peer.send(sent, size)
    for stream in list(peer.connection.streams)[:1]:
        peer.connection.out.answer(stream, b"\x88", [b"answer" * 50], b"\x88")
    peer.pull(64)
    peer.connection.lost()
    fault = peer.connection.fault
    return [(bytes(got.data), got.complete, got.gone) for got in peer.requests.values()], fault and fault.code


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300), st.integers(1, 50))
def test_any_bytes(sent: bytes, size: int) -> None:
    assert story(sent, size)[1] is not None or frames.PREFACE.startswith(sent[: len(frames.PREFACE)])


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300), st.integers(1, 50))
def test_any_bytes_after_a_greeting(sent: bytes, size: int) -> None:
    story(GREETING + sent, size)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(SENSIBLE, SENSIBLE, ANY), max_size=20), st.integers(1, 80))
def test_frames_mean_the_same_in_whatever_pieces_they_come(sent: list[bytes], size: int) -> None:
    whole = GREETING + b"".join(sent)
    assert story(whole, 1 << 20) == story(whole, size)


@settings(max_examples=60, deadline=None)
@given(st.lists(SENSIBLE, max_size=20), st.integers(1, 80))
def test_frames_mean_the_same_wherever_payload_is_put(sent: list[bytes], size: int) -> None:
    whole = GREETING + b"".join(sent)
    assert story(whole, size) == story(whole, size, room=1 << 16)
