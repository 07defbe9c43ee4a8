"""JPEG files: the header segment by segment, files cut off, which way of the library is taken, what is written."""

from __future__ import annotations

import builtins
import io
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels.cpu import _jpeg
from tenfold_kernels.cpu._jpeg import Decoding, Encoding, Header

START, END, SCAN = b"\xff\xd8", b"\xff\xd9", b"\xff\xda\0\2"


def segment(kind: int, body: bytes) -> bytes:
    return bytes((0xFF, kind)) + struct.pack(">H", len(body) + 2) + body


def frame(height: int = 20, width: int = 30, components: int = 3, kind: int = 0xC0) -> bytes:
    return segment(kind, struct.pack(">BHHB", 8, height, width, components) + bytes(3 * components))


def plain(size: tuple[int, int] = (64, 48), components: int = 3, end: bytes = END) -> bytes:
    return START + frame(*size, components) + SCAN + bytes(10) + end


FOUND = Header(20, 30, 3, is_adobe=False, is_whole=True)
ADOBE = segment(0xEE, b"Adobe\0")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (START + frame() + SCAN + END, FOUND),
        (START + frame() + SCAN, replace(FOUND, is_whole=False)),
        (START + frame(), replace(FOUND, is_whole=False)),
        (START + segment(0xE0, b"JFIF\0") + frame() + SCAN + END, FOUND),
        (START + ADOBE + frame() + SCAN + END, replace(FOUND, is_adobe=True)),
        (START + frame() + ADOBE + SCAN, replace(FOUND, is_adobe=True, is_whole=False)),
        (START + ADOBE + frame(), replace(FOUND, is_adobe=True, is_whole=False)),
        (START + segment(0xEE, b"Other") + segment(0xED, b"Adobe") + frame() + SCAN + END, FOUND),
        (START + frame() + SCAN + ADOBE + END, FOUND),
        (START + frame(kind=0xFE) + frame(kind=0xC4) + frame() + SCAN + END, FOUND),
        # what lies between segments is passed over, and so are markers that nothing follows
        (START + b"\xff\xff\xff" + frame()[1:] + b"odd\0" + SCAN + END, FOUND),
        (START + b"\xff" + frame() + SCAN + END, FOUND),
        (START + b"\xff\x01" + frame() + SCAN + END, FOUND),
        (START + b"\xff\x01\xff\xd0\xff\xd7\xff\xd8" + frame() + SCAN + END, FOUND),
        (START + segment(0xC0, bytes(5)) + frame() + SCAN + END, FOUND),
        (START + segment(0xC0, struct.pack(">BHHB", 8, 20, 30, 3)) + SCAN + END, FOUND),
        (START + b"\xff\xe1\0\0" + frame() + SCAN + END, FOUND),
        (START + b"\xff\xe1\0\1" + frame() + SCAN + END, FOUND),
        (START + b"\xff\xe1\0\2" + frame() + SCAN + END, FOUND),
        # a scan before the frame is ignored, and of two frames the later one counts
        (START + SCAN + frame() + SCAN + END, FOUND),
        (START + frame(9, 9, 1) + frame() + SCAN + END, FOUND),
        # the end that is in another segment is not this file's
        (START + segment(0xE1, END) + frame() + SCAN + bytes(9), replace(FOUND, is_whole=False)),
        (START + frame() + SCAN + segment(0xC0, bytes(9)) + END, FOUND),
    ],
)
def test_headers(data: bytes, expected: Header) -> None:
    assert _jpeg.read_header(data) == expected


@pytest.mark.parametrize("kind", range(0xC0, 0xD0))
def test_frames_of_every_kind_of_coding(kind: int) -> None:
    data = START + frame(kind=kind) + SCAN + END
    if kind not in (0xC4, 0xC8, 0xCC):
        assert _jpeg.read_header(data) == FOUND
        return
    with pytest.raises(
        errors.InvalidArgumentError, match=rf"^Invalid JPEG data or crop window, data size {len(data)}$"
    ):
        _jpeg.read_header(data)


@pytest.mark.parametrize(
    "data", [b"", START, START + b"\xff", b"\xff\xd9" + frame() + SCAN, START + b"\0" + frame(), START + SCAN + END]
)
def test_what_is_no_header(data: bytes) -> None:
    with pytest.raises(
        errors.InvalidArgumentError, match=rf"^Invalid JPEG data or crop window, data size {len(data)}$"
    ):
        _jpeg.read_header(data)


# ---- which way of the library ----------------------------------------------------------------------------------------


class Codec:
    """Takes down how it was called; raises these errors, one a call, before it gives a picture."""

    def __init__(self, *refusals: str) -> None:
        self.refusals, self.calls = list(refusals), []  # type: ignore[var-annotated]

    def decode_jpeg(self, data: bytes, space: str, **options: Any) -> Any:
        self.calls.append((space, options))
        if self.refusals:
            raise ValueError(self.refusals.pop(0))
        rows, columns = options["min_height"], options["min_width"]
        return np.full((rows, columns, {"GRAY": 1, "RGB": 3, "CMYK": 4}[space]), 100, np.uint8)


@pytest.fixture
def codec(monkeypatch: pytest.MonkeyPatch) -> Codec:
    made = Codec()
    monkeypatch.setattr(_jpeg, "_codec", lambda: made)
    return made


@pytest.mark.parametrize(
    ("components", "channels", "space", "given"),
    [(1, 0, "GRAY", 1), (3, 0, "RGB", 3), (4, 0, "CMYK", 3), (3, 1, "GRAY", 1), (1, 3, "RGB", 3),
     (4, 3, "CMYK", 3), (4, 1, "GRAY", 1)],
)  # fmt: skip
def test_spaces_of_colours(codec: Codec, components: int, channels: int, space: str, given: int) -> None:
    found = _jpeg.decode_jpeg(plain(components=components), Decoding(channels))
    assert [call[0] for call in codec.calls] == [space]
    assert found.shape == (64, 48, given)
    assert (found == (155 * 155 // 255 if space == "CMYK" else 100)).all()


@pytest.mark.parametrize(
    ("how", "options"),
    [
        (Decoding(), {"fastdct": True, "fastupsample": False, "min_height": 64, "min_width": 48}),
        (Decoding(fast=False), {"fastdct": False, "fastupsample": False, "min_height": 64, "min_width": 48}),
        (Decoding(fancy=False), {"fastdct": True, "fastupsample": True, "min_height": 64, "min_width": 48}),
        (Decoding(ratio=8), {"fastdct": True, "fastupsample": False, "min_height": 8, "min_width": 6}),
    ],
)
def test_what_the_library_is_told(codec: Codec, how: Decoding, options: dict[str, Any]) -> None:
    _jpeg.decode_jpeg(plain(), how)
    assert codec.calls == [("RGB", options)]


def test_sides_are_rounded_up(codec: Codec, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(_jpeg, "allow", lambda dims, dtype, times: asked.append((dims, dtype, times)))
    assert _jpeg.decode_jpeg(plain((65, 49)), Decoding(ratio=4)).shape == (17, 13, 3)
    assert asked == [((17, 13, 4), np.uint8, 2)]


@pytest.mark.parametrize("start", ["Corrupt JPEG data", "Premature end of JPEG file", "Inconsistent progression",
                                   "Invalid SOS parameters", "Unknown Adobe color transform", "Warning: x",
                                   "Application transferred too few"])  # fmt: skip
def test_warnings_come_with_a_picture(codec: Codec, start: str) -> None:
    codec.refusals = [f"{start} …"]
    assert _jpeg.decode_jpeg(plain(), Decoding()).shape == (64, 48, 3)
    assert [options.get("strict") for _, options in codec.calls] == [None, False]


def test_other_errors_come_without_one(codec: Codec) -> None:
    for refusals in (["no picture"], ["Corrupt JPEG data", "no picture"]):
        codec.refusals = list(refusals)
        with pytest.raises(
            errors.InvalidArgumentError, match=r"^Invalid JPEG data or crop .*, data size .*: no picture$"
        ):
            _jpeg.decode_jpeg(plain(), Decoding())


def test_inks_that_the_library_does_not_know(codec: Codec, monkeypatch: pytest.MonkeyPatch) -> None:
    inks = np.full((64, 48, 4), 55, np.uint8)
    monkeypatch.setattr(_jpeg, "_inks_by_pillow", lambda data: inks)
    codec.refusals = ["unknown sizes"]
    assert (_jpeg.decode_jpeg(plain(components=4), Decoding()) == 200 * 200 // 255).all()
    for components, how in ((4, Decoding(ratio=2)), (4, Decoding(1)), (3, Decoding())):
        codec.refusals = ["unknown sizes"]
        with pytest.raises(errors.InvalidArgumentError, match=r"unknown sizes$"):
            _jpeg.decode_jpeg(plain(components=components), how)


def test_light_of_four_inks() -> None:
    inks = np.array([[[0, 10, 255, 0], [0, 10, 255, 255], [100, 200, 50, 51]]], np.uint8)
    assert _jpeg._from_four(inks, False).tolist() == [
        [[255, 245, 0], [0, 0, 0], [155 * 204 // 255, 55 * 204 // 255, 205 * 204 // 255]]
    ]
    assert _jpeg._from_four(inks, True).tolist() == [[[0, 0, 0], [0, 10, 255], [20, 40, 10]]]


def test_adobes_inks_are_what_is_left(codec: Codec) -> None:
    data = START + ADOBE + frame(4, 5, 4) + SCAN + END
    assert (_jpeg.decode_jpeg(data, Decoding()) == 100 * 100 // 255).all()


# ---- files that were cut off -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "how", "window", "there"),
    [
        (40, Decoding(fraction=0.5), None, 40),
        (40, Decoding(fraction=0.625), None, 40),
        (64, Decoding(fraction=0.99), None, 64),
        (40, Decoding(fraction=0.5), (10, 20), 40),
        (40, Decoding(fraction=0.1), (39, 10), 40),
        (40, Decoding(fraction=1.0, recover=True), None, 64),
        (40, Decoding(fraction=0.5, ratio=2), None, 20),
        (41, Decoding(fraction=0.5, ratio=2), None, 21),
        (1, Decoding(fraction=0.0), None, 1),
    ],
)
def test_enough_of_a_file(
    codec: Codec, monkeypatch: pytest.MonkeyPatch, rows: int, how: Decoding, window: Any, there: int
) -> None:
    """Rows that are not there are black."""
    monkeypatch.setattr(_jpeg, "_rows_there", lambda data: rows)
    found = _jpeg.decode_jpeg(plain(end=b""), how, window)
    assert (found[:there] == 100).all()
    assert not found[there:].any()
    assert (_jpeg.decode_jpeg(plain(), how, window) == 100).all(), "of a whole file all rows are there"


@pytest.mark.parametrize(
    ("rows", "how", "window", "text"),
    [
        (40, Decoding(), None, "0 of 64 rows"),
        (64, Decoding(fraction=1.5), None, "0 of 64 rows"),
        (39, Decoding(fraction=0.625), None, "39 of 64 rows"),
        (40, Decoding(fraction=0.5), (40, 10), "0 of 10 rows"),
        (40, Decoding(fraction=0.0), (40, 10), "0 of 10 rows"),
        (40, Decoding(fraction=0.11), (39, 10), "1 of 10 rows"),
        (30, Decoding(fraction=0.1), (39, 10), "0 of 10 rows"),
        (0, Decoding(fraction=0.0), None, "0 of 64 rows"),
        (40, Decoding(fraction=0.7, ratio=2), None, "20 of 32 rows"),
    ],
)
def test_too_little_of_a_file(
    codec: Codec, monkeypatch: pytest.MonkeyPatch, rows: int, how: Decoding, window: Any, text: str
) -> None:
    monkeypatch.setattr(_jpeg, "_rows_there", lambda data: rows)
    with pytest.raises(errors.InvalidArgumentError, match=f": the file is cut off, {text} can be read$"):
        _jpeg.decode_jpeg(plain(end=b""), how, window)


@pytest.mark.parametrize("channels", [1, 3])
def test_how_many_rows_there_are(channels: int) -> None:
    """Black ones count, too, where they have colours; a file that ends in its header has none."""
    rng = np.random.default_rng(2)
    image = rng.integers(0, 255, (64, 64, channels), np.uint8)
    image[:32] = 0 if channels == 3 else 9
    data = _jpeg.encode_jpeg(image, Encoding())
    scan = data.rindex(b"\xff\xda")
    rows = [_jpeg._rows_there(data[: scan + size]) for size in (14, (len(data) - scan) // 2, len(data) - scan)]
    assert rows[0] < rows[1] < rows[2] == 64
    assert rows[1] >= 24
    if channels == 3:
        black = _jpeg.encode_jpeg(np.zeros((64, 64, 3), np.uint8), Encoding())
        assert _jpeg._rows_there(black) == 64
    with pytest.raises(errors.InvalidArgumentError, match=r"^Invalid JPEG data or crop window"):
        _jpeg._rows_there(data[:40])


def without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    real = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == package:
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)


def test_without_a_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    data = _jpeg.encode_jpeg(np.zeros((8, 8, 3), np.uint8), Encoding())
    without(monkeypatch, "PIL")
    for call in (_jpeg._rows_there, _jpeg._inks_by_pillow):
        with pytest.raises(
            errors.UnimplementedError, match=r"^JPEG files need the package pillow, .* 'tenfold\[image\]'$"
        ):
            call(data)
    with pytest.raises(errors.UnimplementedError, match=r"^JPEG files need the package pillow"):
        _jpeg.encode_jpeg(np.zeros((8, 8, 3), np.uint8), Encoding())
    without(monkeypatch, "simplejpeg")
    with pytest.raises(errors.UnimplementedError, match=r"^JPEG files need the package simplejpeg"):
        _jpeg.decode_jpeg(data, Decoding())


def test_inks_by_pillow() -> None:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.full((16, 16, 4), (200, 100, 50, 0), np.uint8), "CMYK").save(file, "JPEG", quality=100)
    inks = _jpeg._inks_by_pillow(file.getvalue())
    assert (inks.shape, inks.dtype) == ((16, 16, 4), np.uint8)
    assert np.abs(inks.astype(int) - [55, 155, 205, 255]).max() < 8
    with pytest.raises(errors.InvalidArgumentError, match=r"^Invalid JPEG data or crop window"):
        _jpeg._inks_by_pillow(b"odd")


# ---- what is written -------------------------------------------------------------------------------------------------


def segments(data: bytes) -> dict[int, bytes]:
    """The first of each kind as far as the scan."""
    found: dict[int, bytes] = {}
    at = 2
    while data[at + 1] != 0xDA:
        size = int.from_bytes(data[at + 2 : at + 4], "big")
        found.setdefault(data[at + 1], data[at + 4 : at + 2 + size])
        at += 2 + size
    return found


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("sampled", [True, False])
@pytest.mark.parametrize("progressive", [True, False])
def test_colours_have_half_as_many_pixels_where_it_is_asked_for(
    channels: int, sampled: bool, progressive: bool
) -> None:
    image = np.random.default_rng(1).integers(0, 255, (24, 40, channels), np.uint8)
    found = segments(_jpeg.encode_jpeg(image, Encoding(sampled=sampled, progressive=progressive)))
    assert (0xC2 in found, 0xC0 in found) == (progressive, not progressive)
    body = found[0xC2 if progressive else 0xC0]
    assert struct.unpack(">BHHB", body[:6]) == (8, 24, 40, channels)
    wide = 0x22 if sampled and channels == 3 else 0x11
    assert list(body[7::3]) == [wide, 0x11, 0x11][:channels]


def test_units_densities_and_metadata() -> None:
    image = np.zeros((8, 8, 1), np.uint8)
    plain_file = _jpeg.encode_jpeg(image, Encoding())
    told = Encoding(is_metric=True, density=(7, 65535), metadata=b"<x/>")
    file = _jpeg.encode_jpeg(image, told)
    assert segments(plain_file)[0xE0] == b"JFIF\0\1\1" + struct.pack(">BHH", 1, 300, 300) + b"\0\0"
    assert segments(file)[0xE0] == b"JFIF\0\1\1" + struct.pack(">BHH", 2, 7, 65535) + b"\0\0"
    assert segments(file)[0xE1] == b"http://ns.adobe.com/xap/1.0/\0<x/>"
    assert 0xE1 not in segments(plain_file)
    assert file.endswith(plain_file[20:])
    assert _jpeg.read_header(file) == Header(8, 8, 1, is_adobe=False, is_whole=True)


def test_defaults_are_tensorflows() -> None:
    assert Encoding() == Encoding(95, progressive=False, smallest=False, sampled=True, density=(300, 300),
                                  is_metric=False, metadata=b"")  # fmt: skip
    assert Decoding() == Decoding(0, ratio=1, fancy=True, fast=True, recover=False, fraction=1.0)
    image = np.random.default_rng(1).integers(0, 255, (24, 40, 3), np.uint8)
    assert _jpeg.encode_jpeg(image, Encoding()) == _jpeg.encode_jpeg(image, Encoding(95))
    sizes = [len(_jpeg.encode_jpeg(image, Encoding(quality))) for quality in (10, 50, 95, 100)]
    assert sizes == sorted(set(sizes))
    assert len(_jpeg.encode_jpeg(image, Encoding(smallest=True))) < sizes[2]
