"""JPEG, GIF and BMP files, and files of any format by one op; PNG is test_image_png.py's."""

from __future__ import annotations

import builtins
import io
import struct
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors, memory_limits
from tenfold_kernels.cpu import _gif, _jpeg
from tenfold_kernels.cpu._compiled import png as compiled_png
from tenfold_kernels.cpu._png import encode_png


def smooth(height: int = 20, width: int = 33, channels: int = 3) -> Any:
    y, x = np.mgrid[:height, :width]
    return np.stack([x * 7, y * 11, 255 - x * 3 - y], -1).astype(np.uint8)[..., :channels]


def bmp(image: Any, *, top_down: bool = False) -> bytes:
    """The file of uint8 [height, width, channels], red first."""
    height, width, channels = image.shape
    order = image[..., [2, 1, 0, *range(3, channels)]] if channels > 2 else image
    rows = order if top_down else order[::-1]
    padding = bytes(-width * channels % 4)
    pixels = b"".join(row.tobytes() + padding for row in rows)
    head = struct.pack("<2sIHHI", b"BM", 54 + len(pixels), 0, 0, 54)
    sizes = struct.pack("<IiiHH", 40, width, -height if top_down else height, 1, channels * 8)
    return head + sizes + bytes(24) + pixels


def gif(frames: list[Any], **how: Any) -> bytes:
    """A GIF by Pillow, of palettes [height, width]."""
    from PIL import Image

    pictures = [Image.fromarray(frame, "P") for frame in frames]
    for picture in pictures:
        picture.putpalette([value for i in range(256) for value in (i, 255 - i, i // 2)])
    file = io.BytesIO()
    pictures[0].save(file, "GIF", save_all=True, append_images=pictures[1:], **how)
    return file.getvalue()


# --- JPEG ---


@pytest.mark.parametrize("channels", [1, 3])
def test_a_jpeg_is_nearly_what_was_written(ops: Any, channels: int) -> None:
    image = smooth(channels=channels)

    file = ops.run("EncodeJpeg", [image], quality=100, chroma_downsampling=False)
    read = ops.run("DecodeJpeg", [file], dct_method=b"INTEGER_ACCURATE")

    assert np.abs(read.astype(int) - image).max() <= 4
    assert ops.run("ExtractJpegShape", [file], output_type=dtypes.int32).tolist() == [20, 33, channels]


@pytest.mark.parametrize("ratio", [1, 2, 4, 8])
def test_a_ratio_reads_fewer_pixels(ops: Any, ratio: int) -> None:
    file = ops.run("EncodeJpeg", [smooth()])

    assert ops.run("DecodeJpeg", [file], ratio=ratio).shape == (-(-20 // ratio), -(-33 // ratio), 3)


def test_channels_are_made_and_dropped(ops: Any) -> None:
    colour, grey = ops.run("EncodeJpeg", [smooth()]), ops.run("EncodeJpeg", [smooth(channels=1)])

    assert ops.run("DecodeJpeg", [colour], channels=1).shape == (20, 33, 1)
    made = ops.run("DecodeJpeg", [grey], channels=3)
    assert (made == made[..., :1]).all()
    with pytest.raises(errors.InvalidArgumentError, match="channels must be 0, 1, or 3 for JPEG, got 4"):
        ops.run("DecodeJpeg", [colour], channels=4)


def test_methods_differ_a_little(ops: Any) -> None:
    file = ops.run("EncodeJpeg", [smooth()], quality=90)
    default, fast, accurate, plain = (
        ops.run("DecodeJpeg", [file], **how).astype(int)
        for how in (
            {},
            {"dct_method": b"INTEGER_FAST"},
            {"dct_method": b"INTEGER_ACCURATE"},
            {"fancy_upscaling": False},
        )
    )

    assert (default == fast).all()
    assert 0 < np.abs(fast - accurate).max() < 12
    assert np.abs(fast - plain).max() > 0


def test_a_window_of_a_jpeg(ops: Any) -> None:
    file = ops.run("EncodeJpeg", [smooth()])
    whole = ops.run("DecodeJpeg", [file])

    window = ops.run("DecodeAndCropJpeg", [file, np.int32([3, 4, 10, 20])])

    assert (window == whole[3:13, 4:24]).all()
    for outside in ([-1, 0, 5, 5], [0, 0, 21, 5], [0, 30, 5, 4], [0, 0, 0, 5]):
        with pytest.raises(errors.InvalidArgumentError, match="Invalid JPEG data or crop window"):
            ops.run("DecodeAndCropJpeg", [file, np.int32(outside)])


def test_what_a_writer_is_told(ops: Any) -> None:
    image = smooth(64, 64)
    plain = ops.run("EncodeJpeg", [image]).item()
    told = ops.run("EncodeJpeg", [image], density_unit=b"cm", x_density=7, y_density=9, xmp_metadata=b"<x/>").item()

    assert plain[13:18] == struct.pack(">BHH", 1, 300, 300)
    assert told[13:18] == struct.pack(">BHH", 2, 7, 9)
    assert b"http://ns.adobe.com/xap/1.0/\0<x/>" in told
    assert (ops.run("DecodeJpeg", [told]) == ops.run("DecodeJpeg", [plain])).all()
    assert len(ops.run("EncodeJpeg", [image], quality=20).item()) < len(plain)
    varied = ops.run("EncodeJpegVariableQuality", [image, np.int32(20)])
    assert varied.item() == ops.run("EncodeJpeg", [image], quality=20).item()


@pytest.mark.parametrize("how", [{"progressive": True}, {"optimize_size": True}])
def test_other_ways_to_write_give_the_same_picture(ops: Any, how: dict[str, bool]) -> None:
    image = smooth(64, 64)
    plain, other = (ops.run("EncodeJpeg", [image], **each) for each in ({}, how))

    assert other.item() != plain.item()
    assert other.item()[13:18] == struct.pack(">BHH", 1, 300, 300)
    difference = ops.run("DecodeJpeg", [plain]).astype(int) - ops.run("DecodeJpeg", [other])
    assert np.abs(difference).max() <= 2


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "says"),
    [
        ("EncodeJpeg", [smooth(channels=2)], {}, "image must have 1 or 3 channels"),
        ("EncodeJpeg", [smooth()], {"format": "grayscale"}, "expects 1 channels"),
        ("EncodeJpeg", [smooth()], {"quality": 101}, "quality must be in"),
        ("EncodeJpegVariableQuality", [smooth(), np.int32(-1)], {}, "quality must be in"),
        ("EncodeJpegVariableQuality", [smooth()[0], np.int32(9)], {}, "image must be 3-dimensional"),
        ("DecodeJpeg", [b"\xff\xd8\xff"], {"ratio": 3}, "ratio must be 1, 2, 4, or 8"),
        ("DecodeJpeg", [b"\xff\xd8\xff"], {"dct_method": b"FLOAT"}, "dct_method must be one of"),
        ("DecodeJpeg", [b"\xff\xd8\xff"], {}, "Invalid JPEG data"),
        ("DecodeJpeg", [b""], {}, "empty file"),
        ("DecodePng", [b"something"], {}, "unknown format starting with b'something'"),
        ("DecodeGif", [b"GIF8"], {}, "Invalid GIF data"),
        ("DecodeJpeg", [bmp(smooth())], {}, "wrong op"),
        ("DecodeBmp", [b"\x89PNG\r\n\x1a\n" + bytes(40)], {}, "decode PNG format using DecodeBmp op"),
    ],
)
def test_what_is_refused(ops: Any, op: str, inputs: Any, attrs: dict[str, Any], says: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=says):
        ops.run(op, inputs, **attrs)


def test_a_file_that_was_cut_off(ops: Any) -> None:
    image = smooth(64, 64)
    file = ops.run("EncodeJpeg", [image]).item()
    cut = file[: len(file) * 2 // 3]

    with pytest.raises(errors.InvalidArgumentError, match="cut off"):
        ops.run("DecodeJpeg", [cut])
    found = ops.run("DecodeJpeg", [cut], try_recover_truncated=True)
    assert (found[:16] == ops.run("DecodeJpeg", [file])[:16]).all()


def test_so_much_of_a_cut_off_file_may_be_enough(ops: Any) -> None:
    image = smooth(64, 64)
    file = ops.run("EncodeJpeg", [image]).item()
    start = file.rindex(b"\xff\xda")
    cut = file[: start + (len(file) - start) // 2]

    found = ops.run("DecodeJpeg", [cut], acceptable_fraction=0.1)

    missing = int(np.flatnonzero(found.any(axis=(1, 2))).max()) + 1
    assert 8 <= missing <= 56
    assert (found[:missing] == ops.run("DecodeJpeg", [file])[:missing]).all()
    with pytest.raises(errors.InvalidArgumentError, match=rf"cut off, {missing} of 64 rows can be read"):
        ops.run("DecodeJpeg", [cut], acceptable_fraction=0.95)


@pytest.mark.parametrize("progressive", [False, True])
def test_a_damaged_file_has_no_picture(ops: Any, progressive: bool) -> None:
    """Where libjpeg stops, nobody writes the pixels: what was in that memory before must not come out."""
    file = ops.run("EncodeJpeg", [smooth(64, 64)], progressive=progressive).item()
    middle = (file.index(b"\xff\xda") + len(file)) // 2
    damaged = file[:middle] + b"\xff\xff\x02\x00\xff\xc7" + file[middle + 6 :]

    for recover in (False, True):
        with pytest.raises(errors.InvalidArgumentError, match="Invalid JPEG data"):
            ops.run("DecodeJpeg", [damaged], try_recover_truncated=recover)


def test_a_picture_with_a_wrong_spot_is_read(ops: Any) -> None:
    """libjpeg warns and goes on, and so does TensorFlow."""
    file = ops.run("EncodeJpeg", [smooth(64, 64)]).item()
    middle = (file.rindex(b"\xff\xda") + len(file)) // 2

    found = ops.run("DecodeJpeg", [file[:middle] + file[middle + 30 :]])

    assert (found[:8] == ops.run("DecodeJpeg", [file])[:8]).all()


def test_four_inks_become_three_colours(ops: Any) -> None:
    from PIL import Image

    inks = np.zeros((16, 16, 4), np.uint8)
    inks[..., 0] = 255
    file = io.BytesIO()
    Image.fromarray(inks, "CMYK").save(file, "JPEG", quality=100)

    found = ops.run("DecodeJpeg", [file.getvalue()])

    assert np.abs(found.astype(int) - [0, 255, 255]).max() < 8


def test_without_the_codec_the_error_says_what_to_install(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ops.run("EncodeJpeg", [smooth()])
    real = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "simplejpeg":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(errors.UnimplementedError, match=r"pip install 'tenfold\[image\]'"):
        ops.run("DecodeJpeg", [file])


def test_a_small_jpeg_cannot_ask_for_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limits, "_limit", 1 << 20)
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 17, 8, 65000, 65000, 3) + bytes(9)
    file = b"\xff\xd8\xff\xe0\0\2" + frame + b"\xff\xda\0\2\xff\xd9"

    with pytest.raises(errors.ResourceExhaustedError, match="OOM"):
        _jpeg.decode_jpeg(file, _jpeg.Decoding())


# --- GIF ---


def test_frames_are_drawn_over_each_other(ops: Any) -> None:
    chance = np.random.default_rng(3)
    frames = [chance.integers(0, 200, (13, 17), np.uint8) for _ in range(3)]

    found = ops.run("DecodeGif", [gif(frames)])

    assert found.shape == (3, 13, 17, 3)
    for frame, picture in zip(frames, found, strict=True):
        assert (picture == np.stack([frame, 255 - frame, frame // 2], -1)).all()


@pytest.mark.parametrize("interlace", [0, 1])
def test_a_single_frame_for_every_op(ops: Any, interlace: int) -> None:
    frame = (np.arange(23 * 50) % 251).astype(np.uint8).reshape(23, 50)
    file = gif([frame], interlace=interlace)
    expected = np.stack([frame, 255 - frame, frame // 2], -1)

    assert (ops.run("DecodeJpeg", [file]) == expected).all()
    assert (ops.run("DecodeImage", [file], dtype=dtypes.uint8) == expected[None]).all()
    alone = ops.run("DecodeImage", [file], dtype=dtypes.uint8, expand_animations=False)
    assert (alone == expected).all()


def test_an_animation_is_no_single_picture(ops: Any) -> None:
    file = gif([np.full((4, 4), value, np.uint8) for value in (1, 2)])

    with pytest.raises(errors.InvalidArgumentError, match="animated gifs can only be decoded"):
        ops.run("DecodePng", [file], dtype=dtypes.uint8)
    with pytest.raises(errors.InvalidArgumentError, match="channels must be 0 or 3 for GIF"):
        ops.run("DecodeImage", [file], channels=1, dtype=dtypes.uint8)


def _block(*codes: bytes) -> bytes:
    return b"".join(bytes((len(code),)) + code for code in codes) + b"\0"


def _small_gif(*frames: bytes, colours: bytes = bytes(range(12))) -> bytes:
    """A file of 2 × 2 pixels with four colours."""
    return b"GIF89a" + struct.pack("<HHBBB", 2, 2, 0x81, 0, 0) + colours + b"".join(frames) + b";"


def _image(left: int, top: int, width: int, height: int, codes: bytes) -> bytes:
    return b"," + struct.pack("<HHHHB", left, top, width, height, 0) + b"\2" + _block(codes)


#: Codes of 3 bits and more: clear, then pixels 0, 1, 2, 3, then the end.
_FOUR = b"\x44\x34\x05"


def test_transparent_pixels_keep_what_was_there() -> None:
    control = b"!\xf9" + _block(b"\1\0\0\1")
    first, second = _image(0, 0, 2, 2, _FOUR), _image(1, 1, 1, 1, bytes((0b01_001_100, 0b1)))

    frames = _gif.decode_gif(_small_gif(first, control, second))

    assert frames[0].reshape(-1, 3)[:, 0].tolist() == [0, 3, 6, 9]
    assert (frames[1] == frames[0]).all()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"GIF89a", "ends in its header"),
        (_small_gif(), "does not contain any image"),
        (_small_gif(b"?"), "begins no block"),
        (b"GIF89a" + struct.pack("<HHBBB", 2, 2, 1, 0, 0) + _image(0, 0, 2, 2, _FOUR), "missing color map"),
        (_small_gif(_image(0, 0, 2, 2, bytes((0b11_111_100, 1)))), "a code stands for nothing"),
    ],
)
def test_broken_gifs(data: bytes, says: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=says):
        _gif.decode_gif(data)


def test_a_frame_that_is_not_there_to_its_end_does_not_count() -> None:
    whole = gif([np.full((6, 5), 3, np.uint8), np.full((6, 5), 9, np.uint8)])
    second = whole.rindex(b"\x2c")

    assert len(_gif.decode_gif(whole)) == 2
    assert len(_gif.decode_gif(whole[: second + 14])) == 1
    first = whole.index(b"\x2c")
    with pytest.raises(errors.InvalidArgumentError, match="does not contain any image"):
        _gif.decode_gif(whole[: first + 14])


# --- BMP, and any format ---


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("top_down", [False, True])
def test_bmp(ops: Any, channels: int, top_down: bool) -> None:
    image = np.random.default_rng(1).integers(0, 255, (5, 7, channels), np.uint8)

    assert (ops.run("DecodeBmp", [bmp(image, top_down=top_down)]) == image).all()


@pytest.mark.parametrize(
    ("data", "channels", "says"),
    [
        (b"BM", 0, "at least 32 bytes"),
        (bmp(smooth())[:-2], 0, "Incomplete bmp content, requires at least"),
        (bmp(smooth()), 1, "`channels` must be 0, 3 or 4 for BMP, but got 1"),
        (bmp(smooth(channels=2)), 0, "must be 1, 3 or 4, was 2"),
        (bmp(smooth())[:18] + bytes(40), 0, "Number of channels"),
    ],
)
def test_broken_bmps(ops: Any, data: bytes, channels: int, says: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=says):
        ops.run("DecodeBmp", [data], channels=channels)


@pytest.mark.parametrize("dtype", [dtypes.uint8, dtypes.uint16, dtypes.float32])
def test_one_op_reads_every_format(ops: Any, dtype: Any) -> None:
    image = smooth()
    jpeg = ops.run("EncodeJpeg", [image]).item()
    scale = {np.uint8: 1, np.uint16: 256, np.float32: np.float32(1 / 255)}[dtype.as_numpy_dtype]
    kind = dtype.as_numpy_dtype

    for file, expected in ((bmp(image), image), (jpeg, ops.run("DecodeJpeg", [jpeg]))):
        found = ops.run("DecodeImage", [file], dtype=dtype)
        np.testing.assert_allclose(found, expected.astype(kind) * scale, rtol=1e-6)
    found = ops.run("DecodeImage", [encode_png(image)], dtype=dtype)
    whole = image * np.uint16(257) * np.float32(1 / 65535) if dtype == dtypes.float32 else image * np.uint16(257)
    np.testing.assert_allclose(found, image if dtype == dtypes.uint8 else whole, rtol=1e-6)
    assert ops.run("DecodeGif", [encode_png(image)]).shape == (1, 20, 33, 3)


# --- what each op takes ---


PICTURE = smooth(4, 6)
PNG, GIF = encode_png(PICTURE), gif([np.full((4, 6), 3, np.uint8)])
JPEG = _jpeg.encode_jpeg(PICTURE, _jpeg.Encoding())
FOUR = np.zeros((4, 6, 4), np.uint8)
CROP = np.int32([0, 0, 1, 1])


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "text"),
    [
        *((op, [np.array([PNG], object)], {}, r"^`contents` must be scalar but got shape\[1\]$")
          for op in ("DecodeJpeg", "DecodePng", "DecodeGif", "DecodeImage", "DecodeBmp", "ExtractJpegShape")),
        ("DecodeAndCropJpeg", [np.array([JPEG], object), CROP], {}, r"^`contents` must be scalar but got shape\[1\]$"),
        ("DecodeJpeg", [b""], {}, r"^Expected image \(JPEG, PNG, GIF or BMP\), got empty file\. Unknown image file f"),
        ("DecodeImage", [b"some other thing than"], {}, "got unknown format starting with b'some other thing'"),
        *((op, [PNG], {"channels": channels}, f"^`channels` must be 0, 1, 3 or 4 but got {channels}$")
          for op in ("DecodeJpeg", "DecodePng", "DecodeImage") for channels in (-1, 2, 5)),
        *(("DecodeBmp", [bmp(PICTURE)], {"channels": channels}, f"^`channels` must be .* BMP, but got {channels}$")
          for channels in (-1, 1, 2, 5)),
        ("DecodeImage", [bmp(PICTURE)], {"channels": 1}, "^`channels` must be 0, 3 or 4 for BMP, but got 1$"),
        *((op, [JPEG], {"channels": 4}, "^channels must be 0, 1, or 3 for JPEG, got 4$")
          for op in ("DecodeJpeg", "DecodePng", "DecodeImage")),
        *((op, [GIF], {"channels": channels}, f"^channels must be 0 or 3 for GIF, got {channels}$")
          for op in ("DecodeJpeg", "DecodePng", "DecodeImage") for channels in (1, 4)),
        *((op, [bmp(PICTURE)], {}, f"^Trying to decode BMP format using a wrong op.*Op used: {op}$")
          for op in ("DecodeJpeg", "DecodePng", "DecodeGif")),
        *(("DecodeBmp", [data], {}, f"^Trying to decode {kind} format using DecodeBmp op.*`decode_{kind.lower()}`")
          for kind, data in (("PNG", PNG), ("JPEG", JPEG), ("GIF", GIF))),
        *((op, [JPEG, *rest], {"ratio": ratio}, f"^ratio must be 1, 2, 4, or 8, got {ratio}$")
          for op, rest in (("DecodeJpeg", []), ("DecodeAndCropJpeg", [CROP])) for ratio in (0, 3, 16)),
        ("DecodeJpeg", [JPEG], {"dct_method": b"odd"}, "^dct_method must be one of .*, got 'odd'$"),
        ("DecodeAndCropJpeg", [JPEG, CROP], {"channels": 4}, "^channels must be 0, 1, or 3 for JPEG, got 4$"),
        ("DecodeAndCropJpeg", [JPEG, CROP[None]], {}, r"^crop_window must be 1-D, got shape \[1,4\]$"),
        ("DecodeAndCropJpeg", [JPEG, CROP[:3]], {}, r"^crop_size must have four elements \[3\]$"),
        ("DecodeAndCropJpeg", [PNG, CROP], {}, "^DecodeAndCropJpeg reads JPEG files, got PNG$"),
        ("EncodeJpeg", [PICTURE[0]], {}, r"^image must be 3-dimensional\[6,3\]$"),
        ("EncodeJpeg", [FOUR], {}, r"^image must have 1 or 3 channels, got \[4,6,4\]$"),
        ("EncodeJpeg", [FOUR[..., :1]], {"format": b"rgb"}, r"^format 'rgb' expects 3 channels, got \[4,6,1\]$"),
        ("EncodeJpeg", [PICTURE], {"format": b"grayscale"}, r"^format 'grayscale' expects 1 channels, got \[4,6,3\]$"),
        ("EncodeJpeg", [PICTURE[:0]], {}, r"^image must have 1 to 65500 rows and columns for JPEG, got \[0,6,3\]$"),
        ("EncodeJpeg", [np.zeros((65501, 1, 1), np.uint8)], {}, r"^image must have 1 to 65500 rows .* \[65501,1,1\]$"),
        ("EncodeJpegVariableQuality", [PICTURE[:, :0], 9], {}, r"^image must have 1 to 65500 rows .* \[4,0,3\]$"),
        ("EncodeJpegVariableQuality", [FOUR, 9], {}, r"^image must have 1 or 3 channels, got \[4,6,4\]$"),
        ("EncodeJpegVariableQuality", [PICTURE, [9]], {}, r"^quality must be a scalar, got shape \[1\]$"),
        *(("EncodeJpeg", [PICTURE], {"quality": quality}, rf"^quality must be in \[0,100\], got {quality}$")
          for quality in (-1, 101)),
        *(("EncodeJpegVariableQuality", [PICTURE, quality], {}, rf"^quality must be in \[0,100\], got {quality}$")
          for quality in (-1, 101)),
        *(("EncodeJpeg", [PICTURE], {f"{side}_density": value}, r"^x_density and y_density must be in \(0, 65536\)")
          for side in "xy" for value in (0, -1, 65536)),
        ("EncodeJpeg", [PICTURE], {"xmp_metadata": bytes((1 << 16) - 63)}, "^xmp_metadata must fit.* got 65473 bytes$"),
        ("EncodePng", [PICTURE[0]], {}, r"^images must be at least rank 3\[6,3\]$"),
        ("EncodePng", [np.zeros((4, 6, 5), np.uint8)], {}, "^image must have 1, 2, 3, or 4 channels, got 5$"),
        ("EncodePng", [np.zeros((4, 6, 0), np.uint8)], {}, "^image must have 1, 2, 3, or 4 channels, got 0$"),
        ("EncodePng", [PICTURE[:0]], {}, r"^image must have pixels, got shape \[0,6,3\]$"),
        ("EncodePng", [PICTURE[:, :0]], {}, r"^image must have pixels, got shape \[4,0,3\]$"),
        *(("EncodePng", [PICTURE], {"compression": value}, rf"^compression should be in \[-1,9\], got {value}$")
          for value in (-2, 10)),
    ],
)  # fmt: skip
def test_what_each_op_refuses(ops: Any, op: str, inputs: Any, attrs: dict[str, Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(op, inputs, **attrs)


def test_the_ends_of_what_is_accepted(ops: Any) -> None:
    for quality in (0, 100):
        file = ops.run("EncodeJpeg", [PICTURE], quality=quality)
        assert ops.run("EncodeJpegVariableQuality", [PICTURE, quality]).item() == file.item()
    for density in (1, 65535):
        file = ops.run("EncodeJpeg", [PICTURE], x_density=density, y_density=density).item()
        assert struct.unpack(">HH", file[14:18]) == (density, density)
    file = ops.run("EncodeJpeg", [PICTURE], xmp_metadata=bytes((1 << 16) - 64)).item()
    assert (ops.run("DecodeJpeg", [file]) == ops.run("DecodeJpeg", [ops.run("EncodeJpeg", [PICTURE])])).all()
    long = np.zeros((65500, 1, 1), np.uint8)
    assert ops.run("ExtractJpegShape", [ops.run("EncodeJpeg", [long])]).tolist() == [65500, 1, 1]
    sizes = []
    for compression in range(-1, 10):
        file = ops.run("EncodePng", [smooth(90, 90)], compression=compression)
        assert (ops.run("DecodePng", [file]) == smooth(90, 90)).all()
        sizes.append(len(file.item()))
    assert sizes[1] > 90 * 90 * 3
    assert sizes[0] == sizes[7]


def test_attributes_of_a_writer(ops: Any) -> None:
    def written(**attrs: Any) -> bytes:
        data: bytes = ops.run("EncodeJpeg", [smooth(30, 40)], **attrs).item()
        return data

    def expected(**how: Any) -> bytes:
        return _jpeg.encode_jpeg(smooth(30, 40), _jpeg.Encoding(**how))

    assert written() == written(format=b"rgb") == written(density_unit=b"in") == expected()
    assert written(quality=40) == expected(quality=40)
    assert written(progressive=True) == expected(progressive=True) != expected()
    assert written(optimize_size=True) == expected(smallest=True) != expected()
    assert written(chroma_downsampling=False) == expected(sampled=False) != expected()
    assert written(density_unit=b"cm") == expected(is_metric=True)
    assert written(x_density=5, y_density=6) == expected(density=(5, 6))
    assert written(xmp_metadata=b"<x/>") == expected(metadata=b"<x/>")
    grey = smooth(30, 40, 1)
    assert ops.run("EncodeJpeg", [grey], format=b"grayscale").item() == _jpeg.encode_jpeg(grey, _jpeg.Encoding())


def test_attributes_of_a_reader(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    def decode(data: bytes, how: Any, window: Any = None) -> Any:
        told.append((how, window))
        return np.zeros((4, 6, 3), np.uint8)

    monkeypatch.setattr(_jpeg, "decode_jpeg", decode)
    ops.run("DecodeJpeg", [JPEG])
    ops.run("DecodeJpeg", [JPEG], channels=1, ratio=4, fancy_upscaling=False, try_recover_truncated=True,
            acceptable_fraction=0.5, dct_method=b"INTEGER_ACCURATE")  # fmt: skip
    ops.run("DecodeJpeg", [JPEG], dct_method=b"INTEGER_FAST")
    ops.run("DecodeImage", [JPEG], channels=3)
    ops.run("DecodeGif", [JPEG])
    ops.run("DecodeAndCropJpeg", [JPEG, np.int32([1, 2, 2, 3])], fancy_upscaling=False)
    plain = _jpeg.Decoding()
    assert told == [
        (plain, None),
        (_jpeg.Decoding(1, 4, False, False, True, 0.5), None),
        (plain, None),
        (_jpeg.Decoding(3), None),
        (_jpeg.Decoding(3), None),
        (_jpeg.Decoding(fancy=False), (1, 2)),
    ]


@pytest.mark.parametrize("ratio", [1, 2])
def test_windows_at_the_edges(ops: Any, ratio: int) -> None:
    file = ops.run("EncodeJpeg", [smooth(21, 33)])
    whole = ops.run("DecodeJpeg", [file], ratio=ratio)
    rows, columns = whole.shape[:2]
    for y, x, height, width in ((0, 0, rows, columns), (rows - 1, columns - 1, 1, 1), (0, 1, rows, 1)):
        found = ops.run("DecodeAndCropJpeg", [file, np.int32([y, x, height, width])], ratio=ratio)
        assert (found == whole[y : y + height, x : x + width]).all()
        assert found.flags.c_contiguous
    for y, x, height, width in ((0, 0, rows + 1, 1), (0, 0, 1, columns + 1), (rows, 0, 1, 1), (0, columns, 1, 1),
                                (0, -1, 1, 1), (-1, 0, 1, 1), (0, 0, 0, 1), (0, 0, 1, 0), (0, 0, -1, 1)):  # fmt: skip
        text = rf"a window of {height} x {width} at \({y}, {x}\) does not lie in a picture of {rows} x {columns}$"
        with pytest.raises(errors.InvalidArgumentError, match=text):
            ops.run("DecodeAndCropJpeg", [file, np.int32([y, x, height, width])], ratio=ratio)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_pictures_in_a_batch_and_in_two(ops: Any, kind: Any) -> None:
    images = np.random.default_rng(1).integers(0, np.iinfo(kind).max, (2, 3, 4, 5, 2), kind)
    files = ops.run("EncodePng", [images])
    assert files.shape == (2, 3)
    for place in np.ndindex(2, 3):
        assert (ops.run("DecodePng", [files[place]], dtype=dtypes.as_dtype(kind)) == images[place]).all()
    assert ops.run("EncodePng", [images[:0]]).shape == (0, 3)
    assert ops.run("EncodePng", [images[0, 0]]).shape == ()


def test_kinds_of_animations(ops: Any) -> None:
    two = gif([np.full((4, 4), value, np.uint8) for value in (1, 2)])
    assert ops.run("DecodeImage", [two]).shape == (2, 4, 4, 3)
    assert ops.run("DecodeImage", [two], expand_animations=False).shape == (4, 4, 3)
    assert (ops.run("DecodeImage", [two], expand_animations=False) == ops.run("DecodeGif", [two])[0]).all()
    for op in ("DecodeJpeg", "DecodePng"):
        with pytest.raises(
            errors.InvalidArgumentError, match=r"^Got 2 frames, but animated gifs can only be decoded by"
        ):
            ops.run(op, [two])
        assert ops.run(op, [GIF], channels=3).shape == (4, 6, 3)
    assert ops.run("DecodeGif", [JPEG]).shape == (1, 4, 6, 3)
    assert ops.run("DecodeImage", [bmp(PICTURE)], channels=4).shape == (4, 6, 4)
    assert ops.run("DecodeBmp", [b"??" + bmp(PICTURE)[2:]]).tolist() == PICTURE.tolist()


def test_of_an_animation_no_more_is_read_than_is_wanted(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(_gif, "decode_gif", lambda *given: asked.append(given[1:]) or np.zeros((1, 4, 6, 3), np.uint8))
    ops.run("DecodeImage", [GIF], expand_animations=False)
    ops.run("DecodeImage", [GIF])
    ops.run("DecodePng", [GIF])
    assert asked == [(1,), (), ()]


def test_the_range_of_other_types(ops: Any) -> None:
    """8 bits in 16: times 256; fractions of the largest of the file's type."""
    two = gif([np.full((4, 4), value, np.uint8) for value in (1, 2)])
    whole = ops.run("DecodeImage", [two])
    assert (ops.run("DecodeImage", [two], dtype=dtypes.uint16) == whole.astype(np.uint16) * 256).all()
    np.testing.assert_allclose(ops.run("DecodeImage", [two], dtype=dtypes.float32), whole / 255, rtol=1e-6)
    deep = np.uint16([[[0], [300], [65535]]])
    file = encode_png(deep)
    assert ops.run("DecodeImage", [file], dtype=dtypes.uint16).tolist() == deep.tolist()
    np.testing.assert_allclose(ops.run("DecodeImage", [file], dtype=dtypes.float32), deep / 65535, rtol=1e-6)
    assert ops.run("DecodeImage", [file], dtype=dtypes.uint8).tolist() == [[[0], [1], [255]]]
    assert ops.run("ExtractJpegShape", [JPEG], output_type=dtypes.int64).dtype == np.int64


def test_filters_are_compiled_before_the_first_step(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bool] = []
    monkeypatch.setattr(compiled_png, "unfilter", lambda: made.append(True))
    for op, count in (("DecodePng", 1), ("DecodeImage", 1), ("DecodeJpeg", 0), ("DecodeGif", 0)):
        made.clear()
        ops.build(op, [b""], {})
        assert len(made) == count, op
