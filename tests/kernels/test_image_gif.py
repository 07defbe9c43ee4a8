"""GIF files, block by block: tables of colours, what is transparent, frames of other sizes, and files cut anywhere."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels.cpu import _gif

#: Four colours, each of three alike.
COLOURS = bytes(value for colour in (10, 20, 30, 40) for value in (colour,) * 3)


def codes(*values: int, bits: int = 2) -> bytes:
    """LZW without a string of its own: the table is cleared before each pixel."""
    total, at = 0, 0
    for code in [each for value in values for each in (1 << bits, value)] + [(1 << bits) + 1]:
        total |= code << at
        at += bits + 1
    return total.to_bytes(-(-at // 8), "little")


def blocks(*parts: bytes) -> bytes:
    return b"".join(bytes((len(part),)) + part for part in parts) + b"\0"


def picture(
    width: int,
    height: int,
    *pixels: int,
    left: int = 0,
    top: int = 0,
    flags: int = 0,
    table: bytes = b"",
    bits: int = 2,
) -> bytes:
    head = b"," + struct.pack("<HHHHB", left, top, width, height, flags) + table + bytes((bits,))
    return head + blocks(codes(*pixels, bits=bits))


def file(*parts: bytes, flags: int = 0x81, colours: bytes = COLOURS) -> bytes:
    return b"GIF89a" + struct.pack("<HHBBB", 9, 9, flags, 0, 0) + colours + b"".join(parts) + b";"


def control(transparent: int, flags: int = 1, label: int = 0xF9) -> bytes:
    return b"!" + bytes((label,)) + blocks(bytes((flags, 0, 0, transparent)))


def grey(data: bytes, most: int = 1 << 20) -> list[Any]:
    """One channel of the frames."""
    found = _gif.decode_gif(data, most)
    assert found.dtype == np.uint8
    assert (found == found[..., :1]).all()
    frames: list[Any] = found[..., 0].tolist()
    return frames


WHOLE = picture(2, 2, 0, 1, 2, 3)


def test_frames_and_how_many_are_wanted() -> None:
    data = file(WHOLE, picture(1, 1, 3), picture(1, 2, 2, 2, left=1))
    frames = [[[10, 20], [30, 40]], [[40, 20], [30, 40]], [[40, 30], [30, 30]]]
    assert grey(data) == frames
    assert grey(data, 1) == frames[:1]
    assert grey(data, 2) == frames[:2]
    assert _gif.count_frames(data) == 3


def test_the_size_is_that_of_the_largest_frame() -> None:
    """What reaches beyond it, or begins behind it, is not drawn; where nothing is drawn the first frame is black."""
    data = file(picture(1, 2, 3, 2), picture(3, 1, 1, 2, 3, left=1, top=1), picture(1, 1, 3, left=3),
                picture(1, 1, 3, top=2), picture(1, 1, 3, left=2, top=1))  # fmt: skip
    first = [[40, 0, 0], [30, 0, 0]]
    second = [[40, 0, 0], [30, 20, 30]]
    assert grey(data) == [first, second, second, second, [[40, 0, 0], [30, 20, 40]]]


def test_what_is_transparent_keeps_what_was_there() -> None:
    """For one picture only, and only where the flag says so, in a block of that kind."""
    pixel = picture(2, 1, 1, 3)
    below = [[10, 20], [30, 40]]
    assert grey(file(WHOLE, control(3), pixel, pixel)) == [below, [[20, 20], [30, 40]], [[20, 40], [30, 40]]]
    for other in (control(3, flags=2), control(3, label=0xFE), b"!\xf9" + blocks(b"\1\0\0"),
                  control(3) + control(3, flags=0)):  # fmt: skip
        assert grey(file(WHOLE, other, pixel))[1] == [[20, 40], [30, 40]]
    assert grey(file(WHOLE, b"!\xf9" + blocks(b"\1\0\0\3more"), pixel))[1] == [[20, 20], [30, 40]]
    assert grey(file(control(0), WHOLE)) == [[[0, 20], [30, 40]]]
    # a colour that there is not may be transparent
    assert grey(file(control(7), picture(2, 1, 1, 7, bits=3))) == [[[20, 0]]]


def test_a_frame_may_have_colours_of_its_own() -> None:
    own = bytes((1, 1, 1, 2, 2, 2))
    frame = picture(2, 1, 0, 1, flags=0x80, table=own)
    assert grey(file(WHOLE, frame, picture(1, 1, 3)))[1:] == [[[1, 2], [30, 40]], [[40, 2], [30, 40]]]
    assert grey(file(frame, flags=0, colours=b"")) == [[[1, 2]]]
    with pytest.raises(errors.InvalidArgumentError, match=r"missing color map for frame 0$"):
        grey(file(WHOLE, flags=0x01, colours=b""))
    with pytest.raises(errors.InvalidArgumentError, match=r"missing color map for frame 1$"):
        grey(file(frame, WHOLE, flags=0, colours=b""))
    # the bits that say how long the table is say nothing else
    assert grey(file(picture(1, 3, 0, 1, 2, flags=0x81, table=COLOURS))) == [[[10], [20], [30]]]
    large = bytes(value for colour in range(256) for value in (colour,) * 3)
    assert grey(file(picture(2, 1, 200, 255, bits=8), flags=0x87, colours=large)) == [[[200, 255]]]


def test_colours_that_there_are_not() -> None:
    text = "found color index 2 outside of color map range 2$"
    with pytest.raises(errors.InvalidArgumentError, match=text):
        grey(file(picture(2, 1, 2, 0), flags=0x80, colours=COLOURS[:6]))
    assert grey(file(picture(2, 1, 1, 0), flags=0x80, colours=COLOURS[:6])) == [[[20, 10]]]
    with pytest.raises(errors.InvalidArgumentError, match=r"found color index 5 outside of color map range 4$"):
        grey(file(WHOLE, picture(1, 1, 5, bits=3)))


@pytest.mark.parametrize("height", [1, 2, 3, 4, 5, 8, 9, 11])
def test_rows_of_an_interlaced_picture(height: int) -> None:
    order = [*range(0, height, 8), *range(4, height, 8), *range(2, height, 4), *range(1, height, 2)]
    colours = bytes(value for colour in range(16) for value in (colour,) * 3)
    data = file(picture(1, height, *order, flags=0x40, bits=4), flags=0x83, colours=colours)
    assert grey(data) == [[[row] for row in range(height)]]


@pytest.mark.parametrize("bits", [0, 9, 255])
def test_codes_have_one_to_eight_bits(bits: int) -> None:
    broken = b"," + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + bytes((bits,)) + blocks(b"\x44")
    for data in (file(broken), file(WHOLE, broken)):
        with pytest.raises(
            errors.InvalidArgumentError, match=rf"^Invalid GIF data \(size \d+\), codes of {bits} bits$"
        ):
            grey(data)


def test_pixels_that_are_missing() -> None:
    short, wrong = picture(2, 2, 0, 1, 2), b"," + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\2" + blocks(b"\x3c")
    for bad in (short, wrong):
        with pytest.raises(
            errors.InvalidArgumentError, match="the first picture's pixels are cut off, or a code stand"
        ):
            grey(file(bad, WHOLE))
        assert grey(file(WHOLE, picture(1, 1, 3), bad, WHOLE)) == [[[10, 20], [30, 40]], [[40, 20], [30, 40]]]
    assert grey(file(picture(2, 2, 0, 1, 2, 3, 1, 1))) == [[[10, 20], [30, 40]]], "more than there is room for"


def test_what_is_no_block_ends_the_file() -> None:
    assert grey(file(WHOLE, b"?", WHOLE)) == [[[10, 20], [30, 40]]]
    data = file(b"?", WHOLE)
    with pytest.raises(
        errors.InvalidArgumentError, match=rf"^Invalid GIF data \(size {len(data)}\), byte 25 begins no "
    ):
        grey(data)
    assert grey(file(WHOLE, b";", WHOLE)) == [[[10, 20], [30, 40]]]
    assert grey(file(WHOLE)[:-1]) == [[[10, 20], [30, 40]]], "the last byte may be missing"


def test_files_cut_anywhere() -> None:
    """Frames count that are there to their end."""
    second = picture(1, 1, 3, flags=0x80, table=COLOURS[:6])
    data = file(WHOLE, b"!\xfe" + blocks(b"words"), second)
    one, end = len(file(WHOLE)) - 1, len(data) - 1
    for size in range(len(data)):
        cut = data[:size]
        if size < 13:
            with pytest.raises(errors.InvalidArgumentError, match=r"it is no GIF, or ends in its header$"):
                grey(cut)
        elif size < one:
            with pytest.raises(errors.InvalidArgumentError, match=r"it does not contain any image$"):
                grey(cut)
        elif size < end:
            assert _gif.count_frames(cut) == 1, size
    with pytest.raises(errors.InvalidArgumentError, match="it is no GIF"):
        grey(b"GIG89a" + data[6:])
    assert _gif.count_frames(b"GIF8xx" + data[6:]) == 2


def test_several_blocks_are_one_text() -> None:
    whole = codes(0, 1, 2, 3)
    head = b"," + struct.pack("<HHHHB", 0, 0, 2, 2, 0) + b"\2"
    assert grey(file(head + blocks(*(bytes((byte,)) for byte in whole)))) == [[[10, 20], [30, 40]]]


def test_memory_is_asked_for_first(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(_gif, "allow", lambda dims, dtype, times: asked.append((dims, dtype, times)))
    grey(file(WHOLE, picture(1, 2, 1, 1)))
    assert asked == [((2, 2, 2, 3), np.uint8, 2), ((2, 2), np.uint8, 2), ((2, 1), np.uint8, 2)]
