"""Frames by their bytes, as RFC 9113 has them."""

from __future__ import annotations

import pytest

from tenfold_services.http2 import frame_types as frames
from tenfold_services.http2.frame_types import Code

from .peers import split


def test_a_header() -> None:
    assert frames.header(0x010203, 4, 5, 0x01020304) == bytes((1, 2, 3, 4, 5, 1, 2, 3, 4))
    assert frames.header(7, frames.PING) == bytes((0, 0, 7, 6, 0, 0, 0, 0, 0))
    assert len(frames.header(1, 2)) == frames.HEADER_BYTES


def test_numbers_of_the_rfc() -> None:
    assert [frames.DATA, frames.HEADERS, frames.PRIORITY, frames.RST_STREAM, frames.SETTINGS] == [0, 1, 2, 3, 4]
    assert [frames.PUSH_PROMISE, frames.PING, frames.GOAWAY, frames.WINDOW_UPDATE, frames.CONTINUATION] == [
        5, 6, 7, 8, 9,
    ]  # fmt: skip
    assert [frames.END_STREAM, frames.ACK, frames.END_HEADERS, frames.PADDED, frames.WITH_PRIORITY] == [1, 1, 4, 8, 32]
    assert [frames.TABLE_SIZE, frames.ENABLE_PUSH, frames.MAX_STREAMS] == [1, 2, 3]
    assert [frames.INITIAL_WINDOW, frames.FRAME_SIZE, frames.LIST_SIZE] == [4, 5, 6]
    assert (frames.DEFAULT_WINDOW, frames.DEFAULT_FRAME, frames.MAX_FRAME) == (65_535, 16_384, 16_777_215)
    assert frames.MAX_WINDOW == frames.STREAM_MASK == 2_147_483_647
    assert frames.PREFACE == b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    assert list(Code) == list(range(14))


def test_settings_there_and_back() -> None:
    said = frames.settings({1: 2, 0x0405: 0x06070809})
    assert said == bytes((0, 0, 12, 4, 0, 0, 0, 0, 0)) + bytes((0, 1, 0, 0, 0, 2, 4, 5, 6, 7, 8, 9))
    assert frames.parse_settings(said[9:]) == [(1, 2), (0x0405, 0x06070809)]


def test_small_frames() -> None:
    assert frames.window_update(3, 258) == bytes((0, 0, 4, 8, 0, 0, 0, 0, 3, 0, 0, 1, 2))
    assert frames.rst_stream(3, Code.CANCEL) == bytes((0, 0, 4, 3, 0, 0, 0, 0, 3, 0, 0, 0, 8))
    assert frames.goaway(5, Code.ENHANCE_YOUR_CALM) == bytes((0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 11))


def test_a_reason_is_text_of_so_many_bytes() -> None:
    assert frames.goaway(1, Code.NO_ERROR, "why")[17:] == b"why"
    assert frames.goaway(1, Code.NO_ERROR, "\ud800é")[17:] == "?é".encode()
    assert len(frames.goaway(1, Code.NO_ERROR, "x" * 501)) == 17 + 500
    assert len(frames.goaway(1, Code.NO_ERROR, "x" * 500)) == 17 + 500


@pytest.mark.parametrize(
    ("size", "found"),
    [
        (0, [(1, 5, 0)]),
        (10, [(1, 5, 10)]),
        (11, [(1, 1, 10), (9, 4, 1)]),
        (20, [(1, 1, 10), (9, 4, 10)]),
        (21, [(1, 1, 10), (9, 0, 10), (9, 4, 1)]),
    ],
)
def test_a_block_of_headers_is_continued(size: int, found: list[tuple[int, int, int]]) -> None:
    block = bytes(range(size))
    frames_of_it = split(frames.header_block(7, block, frames.END_STREAM, 10))
    assert [(kind, flags, len(payload)) for kind, flags, _, payload in frames_of_it] == found
    assert b"".join(payload for *_, payload in frames_of_it) == block
    assert {stream for _, _, stream, _ in frames_of_it} == {7}


@pytest.mark.parametrize("kind", [frames.ConnectionFault, frames.StreamFault])
def test_a_fault_has_its_code_and_its_text(kind: type) -> None:
    fault = kind(Code.CANCEL, "why")
    assert (fault.code, fault.text, str(fault)) == (Code.CANCEL, "why", "why")
