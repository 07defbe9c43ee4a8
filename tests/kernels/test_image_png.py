"""PNG files: what is written can be read, other writers' filters and depths too; broken files are errors."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels.cpu import _png


def picture(channels: int, dtype: Any = np.uint8, height: int = 5, width: int = 7) -> Any:
    return np.random.default_rng(1).integers(0, np.iinfo(dtype).max, (height, width, channels), dtype, endpoint=True)


def png(header: tuple[int, ...], rows: bytes, *more: tuple[bytes, bytes]) -> bytes:
    out = _png.MAGIC
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", *header)), *more, (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    for kind, data in chunks:
        out += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return out


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_written_and_read(ops: Any, channels: int, dtype: Any) -> None:
    image = picture(channels, dtype)

    file = ops.run("EncodePng", [image])

    assert (ops.run("DecodePng", [file], dtype=dtypes.as_dtype(dtype)) == image).all()


def test_a_batch_of_pictures(ops: Any) -> None:
    files = ops.run("EncodePng", [np.stack([picture(3), picture(3)])])

    assert files.shape == (2,)
    assert files[0] == files[1]


def test_channels_are_made_and_dropped(ops: Any) -> None:
    file = ops.run("EncodePng", [picture(3)])

    assert (ops.run("DecodePng", [file], channels=4)[..., 3] == 255).all()
    grey = ops.run("DecodePng", [file], channels=1)
    weights = np.array([0.299, 0.587, 0.114])
    assert np.abs(grey[..., 0] - picture(3) @ weights).max() < 1.5


def test_every_filter() -> None:
    # 3 pixels of grey: 10 20 30 | then the same row as differences to the left, above, their mean, and Paeth's choice
    rows = bytes([0, 10, 20, 30, 1, 10, 10, 10, 2, 0, 0, 0, 3, 5, 5, 5, 4, 0, 0, 0])

    image = _png.decode_png(png((3, 5, 8, 0, 0, 0, 0), rows), 0, np.uint8)

    assert image[:, :, 0].tolist() == [[10, 20, 30]] * 3 + [[10, 20, 30]] + [[10, 20, 30]]


def unfiltered(rows: Any, apart: int) -> Any:
    """What the PNG specification says about filters, a byte at a time."""
    out = np.zeros((rows.shape[0], rows.shape[1] - 1), np.int64)
    for r, row in enumerate(rows.astype(np.int64)):
        for i, value in enumerate(row[1:]):
            left = out[r, i - apart] if i >= apart else 0
            up = out[r - 1, i] if r else 0
            corner = out[r - 1, i - apart] if r and i >= apart else 0
            nearest = min((left, up, corner), key=lambda near: abs(left + up - corner - near))
            out[r, i] = (value + (0, left, up, (left + up) // 2, nearest)[row[0]]) % 256
    return out


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8, 40])
@pytest.mark.parametrize("apart", [1, 3, 4, 8])
def test_filters_do_what_the_specification_says(apart: int, width: int) -> None:
    random = np.random.default_rng(apart * 100 + width)
    rows = random.integers(0, 256, (40, 1 + width), np.uint8)
    rows[:, 0] = random.integers(0, 5, 40)

    assert (_png._unfiltered(rows, apart) == unfiltered(rows, apart)).all()


def test_few_bits_and_palettes() -> None:
    bits = _png.decode_png(png((3, 1, 2, 0, 0, 0, 0), bytes([0, 0b00_01_11_00])), 0, np.uint8)
    assert bits[0, :, 0].tolist() == [0, 85, 255]

    colours = (b"PLTE", bytes([1, 2, 3, 9, 8, 7]))
    chosen = _png.decode_png(png((2, 1, 1, 3, 0, 0, 0), bytes([0, 0b01_000000]), colours), 0, np.uint8)
    assert chosen[0].tolist() == [[1, 2, 3], [9, 8, 7]]
    seen = (b"tRNS", b"\x05")
    clear = _png.decode_png(png((2, 1, 1, 3, 0, 0, 0), bytes([0, 0b01_000000]), colours, seen), 4, np.uint8)
    assert clear[0, :, 3].tolist() == [5, 255]


def test_interlaced() -> None:
    # 2 × 2: the first pass has one pixel, the sixth the one to its right, the seventh the second row
    rows = bytes([0, 1, 0, 2, 0, 3, 4])

    image = _png.decode_png(png((2, 2, 8, 0, 0, 0, 1), rows), 0, np.uint8)

    assert image[:, :, 0].tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"GIF89a", "Invalid PNG data"),
        (png((3, 1, 8, 0, 0, 0, 0), b"\0ab"), "3 bytes of pixels, 4 are needed"),
        (png((3, 1, 8, 0, 0, 0, 0), b"\7abc"), "filter 7"),
        (png((3, 1, 5, 0, 0, 0, 0), b"\0abc"), "depth 5"),
        (png((0, 1, 8, 0, 0, 0, 0), b"\0"), "size 0 x 1"),
        (png((1, 1, 8, 3, 0, 0, 0), b"\0\0"), "palette is missing"),
        (png((1, 1, 8, 3, 0, 0, 0), b"\0\5", (b"PLTE", b"abc")), "colour 5 of a palette of 1"),
        (png((3, 1, 8, 0, 0, 0, 0), b"\0abc")[:-20], "needed|cut off"),
        (png((3, 1, 8, 0, 0, 0, 0), b"\0abc")[:-12], "cut off before its end"),
        (png((3, 1, 8, 0, 0, 0, 0), b"\0abc")[:-1], "cut off before its end"),
    ],
)
def test_broken_files(data: bytes, says: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=says):
        _png.decode_png(data, 0, np.uint8)


def test_a_small_file_cannot_ask_for_the_world() -> None:
    bomb = png((1 << 26, 1 << 26, 8, 6, 0, 0, 0), b"\0")
    with pytest.raises(errors.ResourceExhaustedError, match="OOM"):
        _png.decode_png(bomb, 0, np.uint8)


def test_a_smooth_picture_is_small(ops: Any) -> None:
    y, x = np.mgrid[:256, :256]
    image = np.stack([x, y, (x + y) // 2], -1).astype(np.uint8)

    file = ops.run("EncodePng", [image]).item()

    assert len(file) < 1000  # TensorFlow's has 864 bytes; without filters it is 190 times as large
    assert (_png.decode_png(file, 0, np.uint8) == image).all()


def test_each_row_has_the_filter_that_leaves_least() -> None:
    rows = np.array([[10, 20, 30, 40], [10, 20, 30, 40], [9, 200, 7, 100]], np.uint8)

    filtered = _png._filtered(rows, 1)

    assert filtered[:, 0].tolist() == [1, 2, 2]
    assert filtered[0, 1:].tolist() == [10] * 4
    assert not filtered[1, 1:].any()


def test_a_damaged_chunk_that_is_not_needed_is_passed_over() -> None:
    file = png((3, 1, 8, 0, 0, 0, 0), b"\0abc", (b"tEXt", b"a word"))

    assert _png.decode_png(file.replace(b"a word", b"a lord"), 0, np.uint8).reshape(-1).tolist() == [97, 98, 99]


# ---- what other readers make of it -----------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_others_read_what_is_written(channels: int) -> None:
    from PIL import Image

    for image in (picture(channels), np.zeros((1, 1, channels), np.uint8), picture(channels, height=40, width=1)):
        for compression in (-1, 0, 9):
            with Image.open(io.BytesIO(_png.encode_png(image, compression))) as read:
                assert read.mode == ["L", "LA", "RGB", "RGBA"][channels - 1]
                assert np.asarray(read).reshape(image.shape).tolist() == image.tolist()
    deep = picture(1, np.uint16)
    with Image.open(io.BytesIO(_png.encode_png(deep))) as read:
        assert np.asarray(read).astype(np.int64).tolist() == deep[..., 0].tolist()


@pytest.mark.parametrize("step", [1, 2, 3, 4, 6, 8])
def test_filters_are_taken_off_again(step: int) -> None:
    """Whatever was chosen; for each row no other filter leaves less, and of equals the first was taken."""
    rng = np.random.default_rng(step)
    rows = np.cumsum(rng.integers(-3, 4, (30, 8 * step)), axis=rng.integers(0, 2)).astype(np.uint8)
    rows[3], rows[4] = 0, rows[5]
    filtered = _png._filtered(rows, step)
    assert (unfiltered(filtered, step) == rows).all()
    for at, row in enumerate(rows):
        sums = []
        for kind in range(5):
            up = rows[at - 1].astype(int) if at else np.zeros(row.size, int)
            left = np.concatenate([np.zeros(step, int), row[:-step].astype(int)])
            corner = np.concatenate([np.zeros(step, int), up[:-step]])
            nearest = [min((a, b, c), key=lambda near: abs(a + b - c - near))
                       for a, b, c in zip(left.tolist(), up.tolist(), corner.tolist(), strict=True)]  # fmt: skip
            guess = (np.zeros(row.size, int), left, up, (left + up) // 2, np.array(nearest))[kind]
            sums.append(int(np.abs((row - guess).astype(np.uint8).view(np.int8).astype(int)).sum()))
        assert filtered[at, 0] == int(np.argmin(sums)), at


# ---- every depth and colour ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("width", [1, 3, 8, 9])
def test_grey_of_few_bits(depth: int, width: int) -> None:
    """Rows begin with a byte; the samples are scaled to the whole range."""
    rng = np.random.default_rng(depth)
    values = rng.integers(0, 1 << depth, (3, width))
    rows = b""
    for row in values.tolist():
        text = "".join(f"{value:0{depth}b}" for value in row)
        text += "1" * (-len(text) % 8)
        rows += b"\0" + int(text, 2).to_bytes(len(text) // 8, "big")
    data = png((width, 3, depth, 0, 0, 0, 0), rows)
    wide = values * 255 // ((1 << depth) - 1)
    assert _png.decode_png(data, 0, np.uint8)[..., 0].tolist() == wide.tolist()
    assert _png.decode_png(data, 3, np.uint16).tolist() == np.repeat(wide[..., None] * 257, 3, axis=2).tolist()
    clear = (b"tRNS", struct.pack(">H", int(values[0, 0])))
    alpha = np.where(values == values[0, 0], 0, 255)
    with_alpha = png((width, 3, depth, 0, 0, 0, 0), rows, clear)
    assert _png.decode_png(with_alpha, 2, np.uint8)[..., 1].tolist() == alpha.tolist()
    assert _png.decode_png(with_alpha, 4, np.uint8)[..., 3].tolist() == alpha.tolist()
    assert _png.decode_png(with_alpha, 0, np.uint8).shape[2] == 1
    assert _png.decode_png(with_alpha, 2, np.uint16)[..., 1].tolist() == (alpha * 257).tolist()
    assert (_png.decode_png(data, 2, np.uint16)[..., 1] == 65535).all()


@pytest.mark.parametrize("depth", [1, 2, 4, 8])
def test_palettes_and_their_opacity(depth: int) -> None:
    colours = [(1, 2, 3), (40, 50, 60), (7, 8, 9), (200, 210, 220)][: 1 << depth]
    count = len(colours)
    text = "".join(f"{index:0{depth}b}" for index in range(count))
    row = int(text.ljust(-(-len(text) // 8) * 8, "0"), 2).to_bytes(-(-len(text) // 8), "big")
    table = (b"PLTE", bytes(value for colour in colours for value in colour) + b"\x09")
    header = (count, 1, depth, 3, 0, 0, 0)
    plain = png(header, b"\0" + row, table)
    assert _png.decode_png(plain, 0, np.uint8)[0].tolist() == [list(colour) for colour in colours]
    assert _png.decode_png(plain, 4, np.uint8)[0, :, 3].tolist() == [(1 << depth) - 1] * count
    for opacity in (b"\x05", b"\x05\x06", bytes(range(5, 40))):
        data = png(header, b"\0" + row, table, (b"tRNS", opacity))
        expected = (list(opacity) + [255] * 4)[:count]
        assert _png.decode_png(data, 4, np.uint8)[0, :, 3].tolist() == expected
        assert _png.decode_png(data, 0, np.uint8).shape[2] == 4
        assert _png.decode_png(data, 3, np.uint8)[0].tolist() == [list(colour) for colour in colours]


def test_a_palette_of_one_colour() -> None:
    data = png((2, 1, 1, 3, 0, 0, 0), b"\0\0", (b"PLTE", b"\1\2\3"))
    assert _png.decode_png(data, 0, np.uint8).tolist() == [[[1, 2, 3]] * 2]


def test_files_are_compressed_as_zlib_does_by_default() -> None:
    y, x = np.mgrid[:60, :60]
    image = (x * y % 251).astype(np.uint8)[..., None]
    assert _png.encode_png(image) == _png.encode_png(image, -1) == _png.encode_png(image, 6)
    assert _png.encode_png(image) != _png.encode_png(image, 1)


@pytest.mark.parametrize("depth", [8, 16])
@pytest.mark.parametrize("colour", [0, 2])
def test_one_colour_may_be_clear(colour: int, depth: int) -> None:
    """All of its samples must be alike; more than that is not looked at, and less is nothing."""
    count = 3 if colour else 1
    full = (1 << depth) - 1
    pixels = [[5] * count, [5] * (count - 1) + [6], [full] * count]
    kind = ">u2" if depth == 16 else "u1"
    header = (3, 1, depth, colour, 0, 0, 0)
    rows = b"\0" + np.array(pixels, kind).tobytes()
    dtype = np.uint16 if depth == 16 else np.uint8
    for named, alpha in (
        (struct.pack(f">{count}H", *pixels[0]), [0, full, full]),
        (struct.pack(f">{count}H", *pixels[1]) + b"more", [full, 0, full]),
        (struct.pack(f">{count}H", *pixels[0])[:-1], [full, full, full]),
    ):
        data = png(header, rows, (b"tRNS", named))
        assert _png.decode_png(data, 4, dtype)[0, :, 3].tolist() == alpha
        if not colour:
            assert _png.decode_png(data, 2, dtype)[0].tolist() == [[*p, a] for p, a in zip(pixels, alpha, strict=True)]
        assert _png.decode_png(data, 0, dtype)[0].tolist() == pixels


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_depths_become_each_other(channels: int) -> None:
    deep, flat = picture(channels, np.uint16), picture(channels)
    assert (_png.decode_png(_png.encode_png(deep), 0, np.uint8) == deep >> 8).all()
    assert (_png.decode_png(_png.encode_png(flat), 0, np.uint16) == flat * np.uint16(257)).all()
    for file, dtype in ((deep, np.uint16), (flat, np.uint8)):
        found = _png.decode_png(_png.encode_png(file), 4, dtype)
        colours = file[..., :3] if channels > 2 else np.repeat(file[..., :1], 3, axis=2)
        assert (found[..., :3] == colours).all()
        assert (found[..., 3] == (file[..., -1] if channels % 2 == 0 else np.iinfo(dtype).max)).all()
        assert (_png.decode_png(_png.encode_png(file), 3, dtype) == colours).all()
        if channels < 3:
            assert (_png.decode_png(_png.encode_png(file), 1, dtype) == file[..., :1]).all()


PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


@pytest.mark.parametrize(("height", "width"), [(1, 1), (5, 3), (8, 8), (9, 17), (1, 6), (7, 1)])
@pytest.mark.parametrize("colour", [0, 2])
def test_interlaced_pictures_of_every_size(colour: int, height: int, width: int) -> None:
    image = picture(3 if colour else 1, height=height, width=width)
    rows = b""
    for x, y, step_x, step_y in PASSES:
        part = image[y::step_y, x::step_x]
        rows += b"".join(b"\0" + row.tobytes() for row in part) if part.size else b""
    for interlace, data in ((1, rows), (0, b"".join(b"\0" + row.tobytes() for row in image))):
        found = _png.decode_png(png((width, height, 8, colour, 0, 0, interlace), data), 0, np.uint8)
        assert found.tolist() == image.tolist()
    with pytest.raises(errors.InvalidArgumentError, match=f"{len(rows) - 1} bytes of pixels, {len(rows)} are needed$"):
        _png.decode_png(png((width, height, 8, colour, 0, 0, 1), rows[:-1]), 0, np.uint8)


# ---- chunks ----------------------------------------------------------------------------------------------------------


HEADER, ROW = (3, 1, 8, 0, 0, 0, 0), b"\0abc"


def chunk(kind: bytes, body: bytes, *, check: int = 0) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body) ^ check)


IHDR, IDAT, IEND = (chunk(b"IHDR", struct.pack(">IIBBBBB", *HEADER)), chunk(b"IDAT", zlib.compress(ROW)),
                    chunk(b"IEND", b""))  # fmt: skip


def text_of(*chunks: bytes) -> str:
    try:
        return _png.decode_png(_png.MAGIC + b"".join(chunks), 0, np.uint8).tobytes().decode()
    except errors.InvalidArgumentError as error:
        return error.message


def test_chunks_in_turn() -> None:
    assert text_of(IHDR, IDAT, IEND) == "abc"
    assert text_of(IHDR, IDAT, IEND, b"more") == "abc"
    packed = zlib.compress(ROW)
    parts = [chunk(b"IDAT", packed[:3]), chunk(b"tEXt", b"between"), chunk(b"IDAT", packed[3:])]
    assert text_of(IHDR, *parts, IEND) == "abc"
    assert text_of(IHDR, chunk(b"IDAT", zlib.compress(ROW + b"more")), IEND) == "abc"
    assert text_of(IHDR, chunk(b"ODDx", b"unknown"), IDAT, IEND) == "abc"
    assert text_of(IHDR, chunk(b"tEXt", b"as long as it"), IDAT, IEND) == "abc", "as long as the header"
    assert text_of(IDAT, IEND) == "Invalid PNG data: size 0 x 0, depth 0, colour type 0"
    assert text_of(chunk(b"IHDR", b"short"), IDAT, IEND) == "Invalid PNG data: size 0 x 0, depth 0, colour type 0"
    assert text_of(IHDR, IEND).startswith("Invalid PNG data: 0 bytes of pixels, 4 are needed")
    assert text_of(IHDR, chunk(b"IDAT", b"odd"), IEND).startswith("Invalid PNG data: Error -3")
    assert (
        text_of(IHDR, IDAT) == f"Invalid PNG data: the file of {8 + len(IHDR + IDAT)} bytes is cut off before its end"
    )
    assert text_of(IHDR, IDAT, IEND[:-1]).endswith("is cut off before its end")
    assert text_of() == "Invalid PNG data: the file of 8 bytes is cut off before its end"
    with pytest.raises(errors.InvalidArgumentError, match=r"^Invalid PNG data, size 7$"):
        _png.decode_png(_png.MAGIC[:-1], 0, np.uint8)


def test_damaged_chunks() -> None:
    """Those that are not needed are passed over, unless the file ends in them."""
    at = 8 + len(IHDR)
    assert text_of(IHDR, chunk(b"tEXt", b"words", check=1), IDAT, IEND) == "abc"
    assert text_of(IHDR, chunk(b"gAMA", b"four", check=1), IDAT, IEND) == "abc"
    said = f"Invalid PNG data: chunk b'IDAT' at byte {at} is cut off or damaged"
    assert text_of(IHDR, chunk(b"IDAT", zlib.compress(ROW), check=1), IEND) == said
    assert text_of(chunk(b"IHDR", IHDR[8:21], check=1), IDAT, IEND).startswith("Invalid PNG data: chunk b'IHDR' at b")
    long = struct.pack(">I", 5000) + b"tEXtwords and no end"
    assert text_of(IHDR, long) == f"Invalid PNG data: chunk b'tEXt' at byte {at} is cut off or damaged"
    assert text_of(IHDR, IDAT, chunk(b"tEXt", b"words", check=1)).endswith("is cut off before its end")
    # nor is a damaged palette one
    assert text_of(chunk(b"IHDR", struct.pack(">IIBBBBB", 3, 1, 8, 3, 0, 0, 0)), chunk(b"PLTE", b"abc", check=1),
                   IDAT, IEND).endswith("is cut off or damaged")  # fmt: skip


@pytest.mark.parametrize(
    ("header", "known"),
    [
        ((1 << 27, 1, 1, 0), True), (((1 << 27) + 1, 1, 1, 0), False), ((1, 1 << 27, 1, 0), True),
        ((1, (1 << 27) + 1, 1, 0), False), ((0, 1, 8, 0), False), ((1, 0, 8, 0), False), ((1, 1, 16, 3), False),
        ((1, 1, 4, 2), False), ((1, 1, 2, 4), False), ((1, 1, 1, 6), False), ((1, 1, 8, 1), False),
        ((1, 1, 8, 5), False),
        ((1, 1, 8, 7), False), ((1, 1, 3, 0), False), ((1, 1, 16, 2), True), ((1, 1, 16, 4), True),
        ((1, 1, 16, 6), True),
    ],
)  # fmt: skip
def test_sizes_depths_and_colours(header: tuple[int, ...], known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_png, "allow", lambda *given: None)
    said = text_of(chunk(b"IHDR", struct.pack(">IIBBBBB", *header, 0, 0, 0)), chunk(b"IDAT", zlib.compress(b"")), IEND)
    width, height, depth, colour = header
    wrong = f"Invalid PNG data: size {width} x {height}, depth {depth}, colour type {colour}"
    assert (said == wrong) is not known
    assert not known or " are needed" in said


def test_memory_is_asked_for_first(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(_png, "allow", lambda dims, dtype, times: asked.append((dims, dtype, times)))
    data = _png.encode_png(picture(3))
    for channels in (0, 1, 4):
        _png.decode_png(data, channels, np.uint8)
    assert asked == [((5, 7, 4), np.uint16, 2)] * 3


def light_of(*chunks: bytes, colour: int = 2) -> tuple[int | None, bool, int]:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, colour, 0, 0, 0))
    file = _png._parse(_png.MAGIC + header + b"".join(chunks) + IEND)
    return file.gamma, file.is_srgb, file.bits


def test_what_a_file_says_of_light() -> None:
    gamma = chunk(b"gAMA", struct.pack(">I", 45455))
    assert light_of() == (None, False, 0)
    assert light_of(gamma) == (45455, False, 0)
    assert light_of(gamma, chunk(b"gAMA", struct.pack(">I", 99999))) == (45455, False, 0)
    assert light_of(chunk(b"gAMA", bytes(3)), gamma) == (45455, False, 0)
    assert light_of(chunk(b"gAMA", bytes(5))) == (None, False, 0)
    for value, believed in ((15, 0), (16, 16), (625_000_000, 625_000_000), (625_000_001, 0)):
        assert light_of(chunk(b"gAMA", struct.pack(">I", value)), gamma) == (believed, False, 0)
    for intent in range(4):
        assert light_of(chunk(b"sRGB", bytes((intent,)))) == (None, True, 0)
    for wrong in (b"\4", b"", b"\0\0"):
        assert light_of(chunk(b"sRGB", wrong)) == (None, False, 0)
    assert light_of(chunk(b"sBIT", b"\5\6\4")) == (None, False, 6)
    assert light_of(chunk(b"sBIT", b"\5\6\4\7")) == (None, False, 0)
    assert light_of(chunk(b"sBIT", b"\5\6\4\7"), colour=6) == (None, False, 6)
    assert light_of(chunk(b"sBIT", b"\5\6\4"), colour=6) == (None, False, 0)
    assert light_of(chunk(b"sBIT", b"\5"), colour=0) == (None, False, 0)
    assert light_of(chunk(b"sBIT", b"\5\6"), colour=4) == (None, False, 0)
    late = chunk(b"sRGB", b"\0")
    assert light_of(chunk(b"PLTE", b"abc"), late, gamma) == (None, False, 0)
    assert light_of(IDAT, late, gamma) == (None, False, 0)
    assert light_of(gamma, late, chunk(b"PLTE", b"abc"), chunk(b"IDAT", b"")) == (45455, True, 0)
