"""GIF files to frames: whole pictures, each drawn over the one before. _compiled/gif.py unpacks the pixels.

Used by image_files.py. Follows the GIF89a specification and, where it chooses, TensorFlow's gif_io.cc: delays and ways
of disposal are not looked at, and pixels that are transparent keep what the frame before has there, black in the first.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, invalid

MAGIC = b"GIF8"
_EXTENSION, _IMAGE, _TRAILER, _CONTROL = 0x21, 0x2C, 0x3B, 0xF9
#: First row and step of the four passes of an interlaced picture.
_PASSES = ((0, 8), (4, 8), (2, 4), (1, 2))


@dataclass(slots=True)
class _Frame:
    left: int
    top: int
    width: int
    height: int
    interlaced: bool
    #: The number of the transparent colour; −1 without one.
    transparent: int
    colours: Array | None
    least_bits: int
    data: bytes


class _Parser:
    """Takes a file apart. Raises InvalidArgumentError for one that is broken before its first picture ends."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 13
        self.frames: list[_Frame] = []
        #: The file ends in the middle of something.
        self.cut_off = False
        if not data.startswith(MAGIC) or len(data) < 13:
            raise self.broken("it is no GIF, or ends in its header")
        flags = data[10]
        self.colours = self._colours(flags)

    def broken(self, why: str) -> Exception:
        return invalid(f"Invalid GIF data (size {len(self.data)}), {why}")

    def _take(self, size: int) -> bytes:
        taken = self.data[self.at : self.at + size]
        self.at += size
        self.cut_off |= len(taken) < size
        return taken

    def _colours(self, flags: int) -> Array | None:
        """The table that the flags announce: [colours, 3]."""
        if not flags & 0x80:
            return None
        table = self._take(3 << (flags & 7) + 1)
        return np.frombuffer(table[: len(table) // 3 * 3], np.uint8).reshape(-1, 3)

    def _blocks(self) -> bytes:
        """The blocks from here on, without their lengths, up to an empty one."""
        parts = []
        while size := (self._take(1) or b"\0")[0]:
            parts.append(self._take(size))
        return b"".join(parts)

    def parse(self, most: int) -> list[_Frame]:
        """The frames, `most` of them at most."""
        transparent = -1
        while not self.cut_off and len(self.frames) < most:
            kind = (self._take(1) or b";")[0]
            if kind == _TRAILER:
                break
            if kind == _EXTENSION:
                label, body = self._take(1), self._blocks()
                if label == bytes((_CONTROL,)) and len(body) >= 4:
                    transparent = body[3] if body[0] & 1 else -1
            elif kind == _IMAGE:
                frame = self._picture(transparent)
                if frame is not None and not self.cut_off:
                    self.frames.append(frame)  # as giflib: one that is not there to its end does not count
                transparent = -1
            elif self.frames:
                break  # as giflib: what was read until here counts
            else:
                raise self.broken(f"byte {self.at - 1} begins no block")
        return self.frames

    def _picture(self, transparent: int) -> _Frame | None:
        head = self._take(9)
        if len(head) < 9:
            return None
        left, top, width, height, flags = struct.unpack("<HHHHB", head)
        colours = self._colours(flags)
        bits = self._take(1)
        if not bits:
            return None
        if not 1 <= bits[0] <= 8:
            raise self.broken(f"codes of {bits[0]} bits")
        return _Frame(
            left, top, width, height, bool(flags & 0x40), transparent,
            self.colours if colours is None else colours, bits[0], self._blocks(),
        )  # fmt: skip


#: More frames than this are not looked for.
_MOST_FRAMES = 1 << 20


def count_frames(data: bytes) -> int:
    """How many frames there are, before their pixels are looked at. Raises InvalidArgumentError for a broken file."""
    return len(_Parser(data).parse(_MOST_FRAMES))


def decode_gif(data: bytes, most: int = _MOST_FRAMES) -> Array:
    """uint8 [frames, height, width, 3], of the first `most` frames; the size is that of the largest frame.

    Raises InvalidArgumentError for a broken file, ResourceExhaustedError for one that is too large.
    """
    parser = _Parser(data)
    frames = parser.parse(most)
    if not frames:
        raise parser.broken("it does not contain any image")
    height, width = (max(side) for side in zip(*((f.height, f.width) for f in frames), strict=True))
    allow((len(frames), height, width, 3), np.uint8, 2)
    out = np.zeros((len(frames), height, width, 3), np.uint8)
    for number, frame in enumerate(frames):
        index = _pixels(frame)
        if index is None:
            if not number:
                raise parser.broken("the first picture's pixels are cut off, or a code stands for nothing")
            return out[:number]
        if number:
            out[number] = out[number - 1]
        _draw(parser, frame, number, index, out[number])
    return out


def _draw(parser: _Parser, frame: _Frame, number: int, index: Array, canvas: Array) -> None:
    if frame.colours is None:
        raise parser.broken(f"missing color map for frame {number}")
    index = index[: max(len(canvas) - frame.top, 0), : max(canvas.shape[1] - frame.left, 0)]
    if not index.size:
        return
    drawn = index != frame.transparent
    highest = int(index.max(where=drawn, initial=0))
    if highest >= len(frame.colours):
        raise parser.broken(f"found color index {highest} outside of color map range {len(frame.colours)}")
    part = canvas[frame.top : frame.top + index.shape[0], frame.left : frame.left + index.shape[1]]
    part[drawn] = frame.colours[index[drawn]]


def _pixels(frame: _Frame) -> Array | None:
    """The number of each pixel's colour: [height, width]. None where pixels are missing or a code is wrong."""
    from tenfold_kernels.cpu._compiled import gif

    allow((frame.height, frame.width), np.uint8, 2)
    out = np.zeros(frame.height * frame.width, np.uint8)
    if gif.unpack()(np.frombuffer(frame.data, np.uint8), frame.least_bits, out) < out.size:
        return None
    rows = out.reshape(frame.height, frame.width)
    if not frame.interlaced:
        return rows
    order = np.concatenate([np.arange(first, frame.height, step) for first, step in _PASSES])
    sorted_rows = np.empty_like(rows)
    sorted_rows[order] = rows
    return sorted_rows
