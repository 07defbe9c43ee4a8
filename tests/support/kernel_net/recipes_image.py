"""What fits the ops of images, their files, boxes, and sound. See cases.py."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes

if TYPE_CHECKING:
    from support.kernel_net.draw import Draw

Attrs = dict[str, Any]


def _image(d: Draw, depth: int = 0) -> tuple[int, ...]:
    return d.randint(1, 2), d.randint(1, 5), d.randint(1, 5), depth or d.randint(1, 3)


def _pixels(d: Draw, a: Attrs, shape: tuple[int, ...]) -> Any:
    return np.round(d.floats(shape, 0, 255)) if a["T"].is_integer else d.floats(shape, 0, 1)


def _contrast(d: Draw, a: Attrs) -> list[Any]:
    return [_pixels(d, a, _image(d)), d.choice((0.5, 1.7, 0.0, -1.0))]


def _old_contrast(d: Draw, a: Attrs) -> list[Any]:
    return [_pixels(d, a, _image(d)), d.choice((0.5, 1.7)), 0.1, 0.8]


def _adjusted(d: Draw, a: Attrs) -> list[Any]:
    return [_pixels(d, a, _image(d, 3 if d.maybe(0.9) else 0)), d.choice((0.3, -0.4, 1.5, 0.0))]


def _colours(d: Draw, a: Attrs) -> list[Any]:
    return [d.floats((*d.shape(0, 2), 3 - d.maybe(0.05)), 0, 1)]


def _resize(d: Draw, a: Attrs) -> list[Any]:
    if a.get("align_corners") and d.maybe(0.9) and "half_pixel_centers" in a:
        a["half_pixel_centers"] = False
    return [_pixels(d, a, _image(d)), d.ints(2, 1 - d.maybe(0.1), 6)]


def _resize_grad(d: Draw, a: Attrs) -> list[Any]:
    if a.get("align_corners"):
        a["half_pixel_centers"] = False
    shape = _image(d)
    return [(shape[0], d.randint(1, 6), d.randint(1, 6), shape[3]), shape]


def _nearest_grad(d: Draw, a: Attrs) -> list[Any]:
    if a.get("align_corners"):
        a["half_pixel_centers"] = False
    return [_image(d), d.ints(2, 1, 6)]


def _scaled(d: Draw, a: Attrs) -> list[Any]:
    a["kernel_type"] = d.choice((b"lanczos1", b"lanczos3", b"lanczos5", b"gaussian", b"box", b"triangle", b"keyscubic",
                                 b"mitchellcubic", b"odd" if d.maybe(0.2) else b"box"))  # fmt: skip
    return [_pixels(d, a, _image(d)), d.ints(2, 1, 6), d.floats((2,), 0.4, 2), d.floats((2,), -0.5, 0.5)]


def _scaled_grad(d: Draw, a: Attrs) -> list[Any]:
    _, size, *rest = _scaled(d, a)
    shape = _image(d)
    return [(shape[0], *size, shape[3]), shape, *rest]


def _boxes_of(d: Draw, *shape: int) -> np.ndarray:
    corners = d.floats((*shape, 2), -0.1, 0.6)
    return np.concatenate([corners, corners + d.floats((*shape, 2), 0.1, 0.6)], axis=-1)


def _crops(d: Draw, a: Attrs) -> list[Any]:
    shape, count = _image(d), d.randint(0, 2)
    a["extrapolation_value"] = d.choice((0.0, 0.5))
    return [_pixels(d, a, shape), _boxes_of(d, count), d.ints(count, 0, shape[0] - 1 + d.maybe(0.1)), d.ints(2, 1, 4)]


def _crops_grad_image(d: Draw, a: Attrs) -> list[Any]:
    shape, count = _image(d), d.randint(0, 2)
    boxes, at = _boxes_of(d, count), d.ints(count, 0, shape[0] - 1)
    return [(count, *d.ints(2, 1, 4), shape[3]), boxes, at, list(shape)]


def _crops_grad_boxes(d: Draw, a: Attrs) -> list[Any]:
    shape, count = _image(d), d.randint(0, 2)
    boxes, at = _boxes_of(d, count), d.ints(count, 0, shape[0] - 1)
    return [(count, *d.ints(2, 1, 4), shape[3]), shape, boxes, at]


def _drawn(d: Draw, a: Attrs) -> list[Any]:
    shape = (d.randint(1, 2), d.randint(2, 6), d.randint(2, 6), d.choice((1, 3, 4)))
    return [_pixels(d, a, shape), _boxes_of(d, shape[0], d.randint(0, 3))]


def _drawn_v2(d: Draw, a: Attrs) -> list[Any]:
    items = _drawn(d, a)
    return [*items, d.floats((d.randint(0, 2), items[0].shape[3] + d.choice((0, 0, 1))), 0, 1)]


def _sampled(d: Draw, a: Attrs) -> list[Any]:
    a["max_attempts"], a["use_image_if_no_bounding_boxes"] = d.choice((100, 3)), d.maybe(0.8)
    a["aspect_ratio_range"] = d.choice(([0.75, 1.33], [0.5, 2.0]))
    a["area_range"] = d.choice(([0.05, 1.0], [0.3, 0.9]))
    boxes = np.clip(_boxes_of(d, 1, d.randint(0, 2)), 0, 1)
    return [[d.randint(5, 60), d.randint(5, 60), 3], boxes, d.choice((0.1, 0.5)), d.ints(2, 0, 99)]


def _suppressed(count: int) -> Any:
    def make(d: Draw, a: Attrs) -> list[Any]:
        boxes = d.randint(0, 6)
        last = [d.choice((0.3, 0.5, 0.0, 1.0)), d.choice((0.0, 0.2, 0.5)), d.choice((0.0, 0.4))]
        return [_boxes_of(d, boxes), d.floats((boxes,), 0, 1), d.randint(0, 5), *last[:count]]

    return make


def _overlapping(d: Draw, a: Attrs) -> list[Any]:
    boxes = d.randint(0, 5)
    return [d.floats((boxes, boxes), 0, 1), d.floats((boxes,), 0, 1), d.randint(0, 5), 0.5, d.choice((0.0, 0.3))]


def _combined(d: Draw, a: Attrs) -> list[Any]:
    batch, boxes, classes = d.randint(1, 2), d.randint(1, 5), d.randint(1, 3)
    return [_boxes_of(d, batch, boxes, d.choice((1, classes))), d.floats((batch, boxes, classes), 0, 1),
            d.randint(1, 3), d.randint(1, 5), d.choice((0.3, 0.6)), d.choice((0.1, 0.4))]  # fmt: skip


def _glimpse(d: Draw, a: Attrs) -> list[Any]:
    shape = _image(d)
    a["uniform_noise"], a["noise"] = False, b"zero"
    return [shape, d.ints(2, 1, 4), d.floats((shape[0], 2), -1, 1)]


def _picture(d: Draw) -> np.ndarray:
    shape = d.randint(1, 5), d.randint(1, 5), d.choice((1, 3, 4))
    return np.array(d.ints(shape[0] * shape[1] * shape[2], 0, 255), np.uint8).reshape(shape)


def _bmp(d: Draw) -> bytes:
    height, width, channels = d.choice((3, -3)), d.randint(1, 4), d.choice((1, 3, 4))
    stride = -(-width * channels // 4) * 4
    pixels = bytes(d.ints(stride * abs(height), 0, 255))
    head = struct.pack("<2sIHHIIiiHH", b"BM", 54 + len(pixels), 0, 0, 54, 40, width, height, 1, channels * 8)
    return head + bytes(24) + pixels


def _gif(d: Draw) -> bytes:
    screen = b"GIF89a" + struct.pack("<HHBBB", 2, 2, 0x81, 0, 0) + bytes(d.ints(12, 0, 255))
    first = b"," + struct.pack("<HHHHB", 0, 0, 2, 2, 0) + b"\2\3" + b"\x44\x34\x05" + b"\0"
    control = b"!\xf9\4\1\0\0\1\0"
    second = b"," + struct.pack("<HHHHB", 1, 0, 1, 2, 0) + b"\2\2" + bytes((0b11_001_100, 0b1010)) + b"\0"
    return screen + first + (control + second if d.maybe() else b"") + b";"


def _png(d: Draw, wide: bool = False) -> bytes:
    from tenfold_kernels.cpu._png import encode_png

    image = _picture(d)
    if d.maybe(0.3):
        image = np.concatenate([image, image], axis=-1)[..., :2]
    return bytes(encode_png(image.astype(np.uint16) * 257 if wide else image, d.choice((-1, 0, 9))))


def _jpeg(d: Draw) -> bytes:
    from tenfold_kernels.cpu._jpeg import Encoding, encode_jpeg

    image = _picture(d)
    image = image[..., :1] if image.shape[-1] == 4 else image
    return bytes(encode_jpeg(np.ascontiguousarray(image), Encoding(d.choice((95, 50)), sampled=d.maybe())))


def _cut(d: Draw, data: bytes) -> bytes:
    return data[: d.randrange(len(data))] if d.maybe(0.1) else data


def _file(kind: str) -> Any:
    def make(d: Draw, a: Attrs) -> list[Any]:
        if "channels" in a:
            a["channels"] = d.choice((0, 0, 1, 3, 4))
        if "dtype" in a:
            a["dtype"] = d.choice((dtypes.uint8, dtypes.uint16, *([dtypes.float32] if kind == "any" else [])))
        if "ratio" in a:
            a["ratio"], a["acceptable_fraction"] = d.choice((1, 1, 2, 4, 8)), 1.0
            a["dct_method"] = d.choice((b"", b"INTEGER_FAST", b"INTEGER_ACCURATE"))
        made = {"bmp": _bmp, "gif": _gif, "png": lambda d: _png(d, d.maybe(0.3)), "jpeg": _jpeg}
        which = d.choice(tuple(made)) if kind == "any" else kind
        return [_cut(d, made[which](d))]

    return make


def _cropped(d: Draw, a: Attrs) -> list[Any]:
    (data,) = _file("jpeg")(d, a)
    a["channels"] = d.choice((0, 1, 3))
    return [data, d.choice(([0, 0, 1, 1], [0, 0, 2, 3], [1, 0, 1, 1]))]


def _encoded(d: Draw, a: Attrs) -> list[Any]:
    image = _picture(d)
    if "compression" in a:
        a["compression"] = d.choice((-1, 0, 9))
        return [image]
    a["format"] = b""
    a["quality"], a["density_unit"] = d.choice((95, 30, 100)), d.choice((b"in", b"cm"))
    return [image if image.shape[-1] != 4 else image[..., :3]]


def _variable_quality(d: Draw, a: Attrs) -> list[Any]:
    return [_picture(d)[..., :1], d.choice((30, 95, 100, 101))]


def _wav(d: Draw, a: Attrs) -> list[Any]:
    channels, frames = d.randint(1, 2), d.randint(0, 4)
    data = bytes(d.ints(frames * channels * 2, 0, 255))
    layout = struct.pack("<IHHIIHH", 16, 1, channels, 8000, 16000 * channels, 2 * channels, 16)
    file = b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + layout
    if d.maybe(0.3):
        file += b"LIST" + struct.pack("<I", 4) + b"abcd"
    file += b"data" + struct.pack("<I", len(data)) + data
    a["desired_channels"], a["desired_samples"] = d.choice((-1, 1, 2, 3)), d.choice((-1, -1, 2, 6))
    return [_cut(d, file)]


def _to_wav(d: Draw, a: Attrs) -> list[Any]:
    return [d.floats((d.randint(0, 4), d.randint(1, 2)), -1.2, 1.2), d.choice((8000, 44100))]


def _spectrogram(d: Draw, a: Attrs) -> list[Any]:
    a["window_size"], a["stride"] = d.choice((4, 5, 8, 2)), d.choice((1, 2, 3))
    return [d.floats((d.randint(2, 14), d.randint(1, 2)), -1, 1)]


def _mfcc(d: Draw, a: Attrs) -> list[Any]:
    a["upper_frequency_limit"], a["lower_frequency_limit"] = d.choice(((4000.0, 20.0), (3000.0, 100.0)))
    a["filterbank_channel_count"], a["dct_coefficient_count"] = d.choice(((40, 13), (10, 4), (20, 20)))
    return [d.floats((d.randint(1, 2), d.randint(1, 3), d.choice((65, 33))), 0, 40), d.choice((16000, 8000))]


def _image_summary(d: Draw, a: Attrs) -> list[Any]:
    a["max_images"] = d.choice((1, 2, 3))
    shape = (d.randint(0, 3), d.randint(1, 3), d.randint(1, 3), d.choice((1, 3, 4, 4 if d.maybe(0.8) else 2)))
    if a["T"].is_integer:
        return [b"tag", np.array(d.ints(int(np.prod(shape)), 0, 255)).reshape(shape)]
    values = d.floats(shape, *d.choice(((0, 1), (-1, 1), (-3, -1), (0, 300), (0, 0))))
    if values.size and d.maybe(0.2):
        values.ravel()[0] = d.choice((np.nan, np.inf))
    return [b"tag", values]


def _audio_summary(d: Draw, a: Attrs) -> list[Any]:
    a["max_outputs"] = d.choice((1, 2, 3))
    shape = d.choice(((2, 3, 2), (3, 4), (1, 2, 1), (2, 0), (1, 3, 2)))
    values = d.floats(shape, -1.2, 1.2)
    if "sample_rate" in a:
        a["sample_rate"] = d.choice((8000.0, 44100.5))
        return [b"tag", values]
    return [b"tag", values, d.choice((8000.0, 44100.5, 0.0, -1.0))]


RECIPES = {
    "AdjustContrastv2": _contrast, "AdjustContrast": _old_contrast, "AdjustHue": _adjusted,
    "AdjustSaturation": _adjusted, "RGBToHSV": _colours, "HSVToRGB": _colours,
    **dict.fromkeys(("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea"), _resize),
    "ResizeBilinearGrad": _resize_grad, "ResizeBicubicGrad": _resize_grad, "ResizeNearestNeighborGrad": _nearest_grad,
    "ScaleAndTranslate": _scaled, "ScaleAndTranslateGrad": _scaled_grad, "CropAndResize": _crops,
    "CropAndResizeGradImage": _crops_grad_image, "CropAndResizeGradBoxes": _crops_grad_boxes,
    "DrawBoundingBoxes": _drawn, "DrawBoundingBoxesV2": _drawn_v2, "StatelessSampleDistortedBoundingBox": _sampled,
    "NonMaxSuppression": _suppressed(0), "NonMaxSuppressionV2": _suppressed(1), "NonMaxSuppressionV3": _suppressed(2),
    "NonMaxSuppressionV4": _suppressed(2), "NonMaxSuppressionV5": _suppressed(3),
    "NonMaxSuppressionWithOverlaps": _overlapping, "CombinedNonMaxSuppression": _combined,
    "ExtractGlimpse": _glimpse, "ExtractGlimpseV2": _glimpse, "DecodeBmp": _file("bmp"), "DecodeGif": _file("gif"),
    "DecodePng": _file("png"), "DecodeJpeg": _file("jpeg"), "ExtractJpegShape": _file("jpeg"),
    "DecodeImage": _file("any"), "DecodeAndCropJpeg": _cropped, "EncodePng": _encoded, "EncodeJpeg": _encoded,
    "EncodeJpegVariableQuality": _variable_quality, "DecodeWav": _wav, "EncodeWav": _to_wav,
    "AudioSpectrogram": _spectrogram, "Mfcc": _mfcc, "ImageSummary": _image_summary, "AudioSummary": _audio_summary,
    "AudioSummaryV2": _audio_summary,
}  # fmt: skip
