"""JPEG files to arrays and back, by libjpeg-turbo: simplejpeg reads, Pillow writes.

The header is read here. Both packages let the interpreter's lock go while they work. They are in the extra `image`,
imported at the first file; without them the error says what to install. Used by image_files.py. Follows TensorFlow's
jpeg_mem.cc: which of the library's ways is taken (decision 0107).
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenfold_core import errors
from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, invalid

MAGIC = b"\xff\xd8\xff"
_END_OF_IMAGE = b"\xff\xd9"
#: Frames of every kind of coding; C4, C8 and CC are other markers.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_SCAN, _ADOBE = 0xDA, 0xEE
#: Markers that nothing follows.
_BARE = frozenset((0x01, *range(0xD0, 0xD9)))
#: How the library's messages begin that come with a picture; with all others there is none.
_WARNINGS = ("Corrupt JPEG data", "Premature end of JPEG file", "Inconsistent progression", "Invalid SOS parameters",
             "Unknown Adobe color transform", "Warning:", "Application transferred")  # fmt: skip
#: The identifier of Adobe's metadata packets.
_XMP = b"http://ns.adobe.com/xap/1.0/\0"


@dataclass(frozen=True, slots=True)
class Header:
    height: int
    width: int
    components: int
    #: Adobe's programs write four colours as what is left of them.
    is_adobe: bool
    #: Whether the scan ends as it should.
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Decoding:
    """How a file is to be read; the defaults are TensorFlow's."""

    channels: int = 0
    #: One pixel for so many along each side.
    ratio: int = 1
    #: Smooths colours between the pixels that have their own.
    fancy: bool = True
    #: The quick cosine transform of whole numbers.
    fast: bool = True
    #: A file that was cut off is read as far as it goes.
    recover: bool = False
    #: So much of the rows must be there of a file that was cut off; those that are not are black.
    fraction: float = 1.0


def read_header(data: bytes) -> Header:
    """Raises InvalidArgumentError for what is no JPEG file."""
    at, adobe = 2, False
    frame: tuple[int, int, int] | None = None
    while data.startswith(MAGIC) and at + 4 <= len(data):
        if data[at] != 0xFF:
            at += 1  # what lies between segments is passed over, as libjpeg does
            continue
        kind = data[at + 1]
        if kind == 0xFF or kind in _BARE:
            at += 1 if kind == 0xFF else 2
            continue
        size = int.from_bytes(data[at + 2 : at + 4], "big")
        body = data[at + 4 : at + 2 + size]
        if kind in _FRAMES and len(body) >= 6:
            frame = struct.unpack(">xHHB", body[:6])
        elif kind == _ADOBE and body.startswith(b"Adobe"):
            adobe = True
        elif kind == _SCAN and frame is not None:
            return Header(*frame, is_adobe=adobe, is_whole=data.find(_END_OF_IMAGE, at) >= 0)
        at += 2 + max(size, 2)
    if frame is not None:
        return Header(*frame, is_adobe=adobe, is_whole=False)
    raise broken(data)


def broken(data: bytes, why: object = "") -> errors.InvalidArgumentError:
    reason = f": {why}" if why else ""
    return invalid(f"Invalid JPEG data or crop window, data size {len(data)}{reason}")


def _no_package(name: str) -> errors.UnimplementedError:
    return errors.unimplemented(
        f"JPEG files need the package {name}, which is not installed: pip install 'tenfold[image]'"
    )


def _codec() -> Any:
    try:
        import simplejpeg
    except ImportError:
        raise _no_package("simplejpeg") from None
    return simplejpeg


def decode_jpeg(data: bytes, how: Decoding, window: tuple[int, int] | None = None) -> Array:
    """uint8 [height, width, channels]; `window`: the first and the number of the rows that count in a cut off file.

    Raises InvalidArgumentError for a broken file, UnimplementedError without a codec.
    """
    header = read_header(data)
    height, width = (-(-side // how.ratio) for side in (header.height, header.width))
    allow((height, width, 4), np.uint8, 2)
    missing = height  # the first row that is not there
    if not header.is_whole and not how.recover:
        first, count = window or (0, height)
        missing = 0 if how.fraction >= 1 else -(-_rows_there(data) // how.ratio)
        if missing - first < count * min(how.fraction, 1.0) or missing <= first:
            raise broken(data, f"the file is cut off, {max(missing - first, 0)} of {count} rows can be read")
    channels = how.channels or min(header.components, 3)
    from_four = header.components == 4 and channels == 3
    space = "CMYK" if from_four else "GRAY" if channels == 1 else "RGB"
    try:
        pixels = _by_library(data, space, how, (height, width))
    except ValueError as error:
        if not from_four or how.ratio != 1:
            raise broken(data, error) from None
        pixels = _inks_by_pillow(data)
    pixels = _from_four(pixels, header.is_adobe) if from_four else pixels
    pixels[missing:] = 0
    return pixels


def _by_library(data: bytes, space: str, how: Decoding, least: tuple[int, int]) -> Array:
    """The picture that libjpeg makes, warnings or not. Raises ValueError where it makes none.

    When it is told to be lenient the package returns memory that nobody wrote for a file that has no picture: so it is
    strict first, and what it says tells whether there is one.
    """
    codec = _codec()
    options = {"fastdct": how.fast, "fastupsample": not how.fancy, "min_height": least[0], "min_width": least[1]}
    try:
        pixels: Array = codec.decode_jpeg(data, space, **options)
    except ValueError as error:
        if not str(error).startswith(_WARNINGS):
            raise
        pixels = codec.decode_jpeg(data, space, **options, strict=False)
    return pixels


def _rows_there(data: bytes) -> int:
    """How many rows of a file that was cut off libjpeg has before it waits for more, as Pillow's reader does."""
    try:
        from PIL import Image
    except ImportError:
        raise _no_package("pillow") from None
    try:
        with Image.open(io.BytesIO(data), formats=["JPEG"]) as picture:
            if picture.mode == "RGB":
                picture.draft("YCbCr", picture.size)  # in which nothing that was read is all zeros
            try:
                picture.load()
            except OSError:
                picture.tile = []
            rows = np.asarray(picture).reshape(picture.height, -1).any(axis=1)
    except (OSError, ValueError, SyntaxError) as error:
        raise broken(data, error) from None
    return int(np.flatnonzero(rows).max(initial=-1)) + 1


def _inks_by_pillow(data: bytes) -> Array:
    """Of files whose inks have sizes that simplejpeg does not know; Pillow gives what is left of each."""
    try:
        from PIL import Image
    except ImportError:
        raise _no_package("pillow") from None
    try:
        with Image.open(io.BytesIO(data), formats=["JPEG"]) as picture:
            return np.asarray(255 - np.asarray(picture.convert("CMYK")), np.uint8)
    except (OSError, ValueError, SyntaxError) as error:
        raise broken(data, error) from None


def _from_four(inks: Array, is_adobe: bool) -> Array:
    """RGB of cyan, magenta, yellow and black."""
    light = inks.astype(np.uint16) if is_adobe else 255 - inks.astype(np.uint16)
    return (light[..., :3] * light[..., 3:] // 255).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file is to be written; the defaults are TensorFlow's."""

    quality: int = 95
    progressive: bool = False
    smallest: bool = False
    #: Half as many colours as pixels along each side.
    sampled: bool = True
    #: Dots an inch, or a centimetre.
    density: tuple[int, int] = (300, 300)
    is_metric: bool = False
    metadata: bytes = b""


def encode_jpeg(image: Array, how: Encoding) -> bytes:
    """The file of uint8 [height, width, 1 or 3], as TensorFlow's byte for byte. Raises UnimplementedError without a
    codec."""
    try:
        from PIL import Image
    except ImportError:
        raise _no_package("pillow") from None
    file = io.BytesIO()
    picture = Image.fromarray(image[..., 0] if image.shape[2] == 1 else image)
    picture.save(
        file,
        "JPEG",
        quality=how.quality,
        progressive=how.progressive,
        optimize=how.smallest,
        subsampling=2 if how.sampled and image.shape[2] == 3 else 0,
        dpi=(300, 300),
    )
    data = file.getvalue()
    # JFIF's segment of 18 bytes comes after the first marker: units at 13, densities at 14 and 16.
    head = data[:13] + struct.pack(">BHH", 2 if how.is_metric else 1, *how.density) + data[18:20]
    if not how.metadata:
        return head + data[20:]
    packet = _XMP + how.metadata
    return head + b"\xff\xe1" + struct.pack(">H", len(packet) + 2) + packet + data[20:]
