"""Pictures in files: JPEG, PNG, GIF and BMP to pixels and back. Outputs are fresh.

What a file is, its first bytes say, not the op: _jpeg.py, _png.py, _gif.py and _bmp.py read it. Follows
decode_image_op.cc, encode_jpeg_op.cc, encode_png_op.cc and extract_jpeg_shape_op.cc.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.arrays import Array, as_array, invalid, one_number, output_type, shape_text, text_attr
from tenfold_kernels.cpu import _bmp, _gif, _jpeg, _png
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

_FORMATS = ((_jpeg.MAGIC, "JPEG"), (_png.MAGIC, "PNG"), (_gif.MAGIC, "GIF"), (_bmp.MAGIC, "BMP"))
_DCT = {"": True, "INTEGER_FAST": True, "INTEGER_ACCURATE": False}


def _format(data: bytes) -> str:
    """Raises InvalidArgumentError for a file of none of the formats."""
    for magic, name in _FORMATS:
        if data.startswith(magic):
            return name
    what = f"unknown format starting with {data[:16]!r}" if data else "empty file"
    raise invalid(
        f"Expected image (JPEG, PNG, GIF or BMP), got {what}. Unknown image file format. One of JPEG, PNG, GIF, BMP "
        "required."
    )


def _contents(contents: Array) -> bytes:
    if contents.ndim:
        raise invalid(f"`contents` must be scalar but got shape{shape_text(contents.shape)}")
    data: bytes = contents.item()
    return data


def _decoding(node: KernelNode) -> _jpeg.Decoding:
    """What a node's attributes say of JPEG files. Raises InvalidArgumentError for what there is not."""
    channels = int(node.attrs["channels"])
    if channels not in (0, 1, 3, 4):
        raise invalid(f"`channels` must be 0, 1, 3 or 4 but got {channels}")
    if "ratio" not in node.attrs:
        return _jpeg.Decoding(channels)
    ratio, method = int(node.attrs["ratio"]), text_attr(node, "dct_method")
    if ratio not in (1, 2, 4, 8):
        raise invalid(f"ratio must be 1, 2, 4, or 8, got {ratio}")
    if method not in _DCT:
        raise invalid(f"dct_method must be one of {{'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}}, got {method!r}")
    return _jpeg.Decoding(
        channels,
        ratio,
        bool(node.attrs["fancy_upscaling"]),
        _DCT[method],
        bool(node.attrs["try_recover_truncated"]),
        float(node.attrs["acceptable_fraction"]),
    )


def _converted(pixels: Array, dtype: Any) -> Array:
    """uint8 or uint16 pixels over the whole range of another type."""
    kind = np.dtype(dtype)
    if pixels.dtype == kind:
        return pixels
    if kind == np.uint16:
        return pixels.astype(np.uint16) * np.uint16(256)
    return as_array(pixels.astype(kind) * kind.type(1 / np.iinfo(pixels.dtype).max))


@kernel("DecodeJpeg", "DecodePng", "DecodeGif", "DecodeImage")
def build_decode(node: KernelNode) -> Compute:
    """A file of any format → [height, width, channels]; [frames, …] from DecodeGif, and of a GIF from DecodeImage."""
    read = _reader(node)
    return lambda contents: read(_contents(contents))


def _reader(node: KernelNode) -> Callable[[bytes], Array]:
    from tenfold_kernels.cpu._compiled import png

    is_any, is_gif = node.op == "DecodeImage", node.op == "DecodeGif"
    how, dtype, op = _jpeg.Decoding(3) if is_gif else _decoding(node), output_type(node), node.op
    animated = is_gif or (is_any and bool(node.attrs["expand_animations"]))
    if op in ("DecodePng", "DecodeImage"):
        png.unfilter()  # compiled now, not in the first step

    def read(data: bytes) -> Array:
        kind = _format(data)
        if kind == "GIF":
            return _converted(_frames(data, how.channels, op, animated), dtype)
        if kind == "PNG":
            depth = np.uint8 if np.dtype(dtype) == np.uint8 else np.uint16
            pixels = _png.decode_png(data, how.channels, depth)
        elif kind == "JPEG":
            if how.channels == 4:
                raise invalid("channels must be 0, 1, or 3 for JPEG, got 4")
            pixels = _jpeg.decode_jpeg(data, how)
        elif is_any:
            if how.channels == 1:
                raise invalid("`channels` must be 0, 3 or 4 for BMP, but got 1")
            pixels = _bmp.decode_bmp(data, how.channels)
        else:
            raise invalid(
                "Trying to decode BMP format using a wrong op. Use `decode_bmp` or `decode_image` instead. "
                f"Op used: {op}"
            )
        pixels = _converted(pixels, dtype)
        return pixels[None] if is_gif else pixels

    return read


def _frames(data: bytes, channels: int, op: str, animated: bool) -> Array:
    """A GIF's frames; its only one, or the first for DecodeImage, unless it may be `animated`."""
    if channels not in (0, 3):
        raise invalid(f"channels must be 0 or 3 for GIF, got {channels}")
    if animated:
        return _gif.decode_gif(data)
    if op == "DecodeImage":
        return as_array(_gif.decode_gif(data, 1)[0])
    count = _gif.count_frames(data)
    if count > 1:
        raise invalid(
            f"Got {count} frames, but animated gifs can only be decoded by tf.io.decode_gif or tf.io.decode_image"
        )
    return as_array(_gif.decode_gif(data)[0])


@kernel("DecodeBmp")
def build_decode_bmp(node: KernelNode) -> Compute:
    channels = int(node.attrs["channels"])
    if channels not in (0, 3, 4):
        raise invalid(f"`channels` must be 0, 3 or 4 for BMP, but got {channels}")

    def compute(contents: Array) -> Array:
        data = _contents(contents)
        # What begins as no format does is read as TensorFlow 1.15 reads it, which does not look.
        kind = next((name for magic, name in _FORMATS if data.startswith(magic)), "BMP")
        if kind != "BMP":
            raise invalid(
                f"Trying to decode {kind} format using DecodeBmp op. Use `decode_{kind.lower()}` or `decode_image` "
                "instead."
            )
        return _bmp.decode_bmp(data, channels)

    return compute


@kernel("DecodeAndCropJpeg")
def build_decode_and_crop_jpeg(node: KernelNode) -> Compute:
    """(file, window [4] of y, x, height and width) → what DecodeJpeg gives, of the window."""
    how = _decoding(node)
    if how.channels == 4:
        raise invalid("channels must be 0, 1, or 3 for JPEG, got 4")

    def compute(contents: Array, window: Array) -> Array:
        data = _contents(contents)
        if window.ndim != 1:
            raise invalid(f"crop_window must be 1-D, got shape {shape_text(window.shape)}")
        if window.size != 4:
            raise invalid(f"crop_size must have four elements {shape_text(window.shape)}")
        if _format(data) != "JPEG":
            raise invalid(f"DecodeAndCropJpeg reads JPEG files, got {_format(data)}")
        y, x, height, width = window.tolist()
        header = _jpeg.read_header(data)
        rows, columns = (-(-side // how.ratio) for side in (header.height, header.width))
        if min(y, x) < 0 or min(height, width) <= 0 or y + height > rows or x + width > columns:
            raise _jpeg.broken(
                data, f"a window of {height} x {width} at ({y}, {x}) does not lie in a picture of {rows} x {columns}"
            )
        return np.ascontiguousarray(_jpeg.decode_jpeg(data, how, (y, height))[y : y + height, x : x + width])

    return compute


@kernel("ExtractJpegShape")
def build_extract_jpeg_shape(node: KernelNode) -> Compute:
    """A JPEG file → [height, width, channels], from its header alone."""
    dtype = output_type(node)

    def compute(contents: Array) -> Array:
        data = _contents(contents)
        header = _jpeg.read_header(data)
        return np.array([header.height, header.width, header.components], dtype)

    return compute


def _checked(image: Array, layout: str = "") -> Array:
    """Raises InvalidArgumentError unless it is a picture that a JPEG file can hold, with the channels of a layout."""
    if image.ndim != 3:
        raise invalid(f"image must be 3-dimensional{shape_text(image.shape)}")
    channels = image.shape[2]
    if not layout and channels not in (1, 3):
        raise invalid(f"image must have 1 or 3 channels, got {shape_text(image.shape)}")
    wanted = {"": channels, "grayscale": 1, "rgb": 3}[layout]
    if channels != wanted:
        raise invalid(f"format '{layout}' expects {wanted} channels, got {shape_text(image.shape)}")
    if not min(image.shape) > 0 or max(image.shape) > 65500:
        raise invalid(f"image must have 1 to 65500 rows and columns for JPEG, got {shape_text(image.shape)}")
    return image


def _check_quality(quality: int) -> int:
    if not 0 <= quality <= 100:
        raise invalid(f"quality must be in [0,100], got {quality}")
    return quality


@kernel("EncodeJpeg")
def build_encode_jpeg(node: KernelNode) -> Compute:
    """uint8 [height, width, 1 or 3] → a file."""
    layout, metadata = text_attr(node, "format"), node.attrs["xmp_metadata"]
    density = int(node.attrs["x_density"]), int(node.attrs["y_density"])
    if not all(0 < each < 1 << 16 for each in density):
        raise invalid(f"x_density and y_density must be in (0, 65536), got {density}")
    metadata = metadata if isinstance(metadata, bytes) else str(metadata).encode()
    if len(metadata) > (1 << 16) - 64:
        raise invalid(f"xmp_metadata must fit a segment of 64 KB, got {len(metadata)} bytes")
    how = _jpeg.Encoding(
        _check_quality(int(node.attrs["quality"])),
        progressive=bool(node.attrs["progressive"]),
        smallest=bool(node.attrs["optimize_size"]),
        sampled=bool(node.attrs["chroma_downsampling"]),
        density=density,
        is_metric=text_attr(node, "density_unit") == "cm",
        metadata=metadata,
    )
    return lambda image: as_array(_jpeg.encode_jpeg(_checked(image, layout), how))


@kernel("EncodeJpegVariableQuality")
def build_encode_jpeg_variable_quality(node: KernelNode) -> Compute:
    """(uint8 [height, width, 1 or 3], quality) → a file."""
    how = _jpeg.Encoding()

    def compute(image: Array, quality: Array) -> Array:
        wanted = _check_quality(one_number(quality, "quality"))
        return as_array(_jpeg.encode_jpeg(_checked(image), replace(how, quality=wanted)))

    return compute


@kernel("EncodePng")
def build_encode_png(node: KernelNode) -> Compute:
    """uint8 or uint16 [..., height, width, 1 to 4] → files [...]."""
    compression = int(node.attrs["compression"])
    if not -1 <= compression <= 9:
        raise invalid(f"compression should be in [-1,9], got {compression}")

    def compute(images: Array) -> Array:
        if images.ndim < 3:
            raise invalid(f"images must be at least rank 3{shape_text(images.shape)}")
        if not 1 <= images.shape[-1] <= 4:
            raise invalid(f"image must have 1, 2, 3, or 4 channels, got {images.shape[-1]}")
        if 0 in images.shape[-3:]:
            raise invalid(f"image must have pixels, got shape {shape_text(images.shape)}")
        batch = images.shape[:-3]
        files = np.empty(math.prod(batch), dtype=object)
        files[:] = [_png.encode_png(image, compression) for image in images.reshape(-1, *images.shape[-3:])]
        return files.reshape(batch)

    return compute
