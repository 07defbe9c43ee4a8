"""Images (`tf.image`, `tf.io`): files of any format, and what JPEG does to an image.

Functions that are exactly one operation (decode_jpeg, encode_png, …) are in ops/generated_ops.py. Follows TensorFlow
1.15's ops/image_ops_impl.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import control_dependencies, name_scope
from tenfold.graph.op_builder import tensor_op
from tenfold.graph.tensor import Tensor
from tenfold.ops import math, slicing
from tenfold.ops.control_flow import Assert
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.image import convert_image_dtype
from tenfold.ops.random import random_uniform
from tenfold.ops.string import substr
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype

if TYPE_CHECKING:
    from collections.abc import Callable


def is_jpeg(contents: Any, name: str | None = None) -> Tensor:
    """Whether a file, a scalar string, begins as JPEG files do: a scalar bool."""
    with name_scope(name, "is_jpeg"):
        return math.equal(substr(contents, 0, 3), b"\xff\xd8\xff", name=name)


def _is_png(contents: Any) -> Tensor:
    with name_scope(None, "is_png"):
        return math.equal(substr(contents, 0, 3), b"\211PN")


def decode_image(
    contents: Any, channels: Any = None, dtype: Any = dtypes.uint8, name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:  # fmt: skip
    """The image in a JPEG, PNG, GIF or BMP file: [height, width, channels], over the range of `dtype`.

    A GIF gives [frames, height, width, 3], or its first frame without `expand_animations`; so the shape is not known
    before. `channels` is 0 or None (the file's), 1, 3 or 4: the step fails where a format has no such. Raises
    ValueError for another number. As TensorFlow 1.15's `tf.image.decode_image`.
    """
    with name_scope(name, "decode_image"):
        if channels not in (None, 0, 1, 3, 4):
            raise ValueError("channels must be in (None, 0, 1, 3, 4)")
        wanted, kind, start = channels or 0, as_dtype(dtype), substr(contents, 0, 3)

        def decoded(op_type: str, format_name: str, refused: tuple[int, ...], **how: Any) -> Tensor:
            allowed = [each for each in (None, 0, 1, 3, 4) if each not in refused]
            words = f"Channels must be in ({', '.join(map(str, allowed))}) when decoding {format_name} images"
            first, last = refused[0], refused[-1]
            good = math.logical_and(math.not_equal(wanted, first), math.not_equal(wanted, last))
            with control_dependencies([Assert(good, [words])]):
                return convert_image_dtype(tensor_op(op_type, None, contents=contents, **how), kind)

        def bmp() -> Tensor:
            is_bmp = math.equal(substr(contents, 0, 2), b"BM", name="is_bmp")
            with control_dependencies([Assert(is_bmp, ["Unable to decode bytes as JPEG, PNG, GIF, or BMP"])]):
                return decoded("DecodeBmp", "BMP", (1,))

        def gif() -> Tensor:
            frames = decoded("DecodeGif", "GIF", (1, 4))
            return frames if expand_animations else slicing.gather(frames, 0)

        def png() -> Tensor:
            depth = dtypes.uint8 if kind == dtypes.uint8 else dtypes.uint16
            return convert_image_dtype(
                tensor_op("DecodePng", None, contents=contents, channels=wanted, dtype=depth), kind
            )

        def gif_or_bmp() -> Tensor:
            return _either(math.equal(start, b"GIF", name="is_gif"), gif, bmp, "cond_gif")

        def others() -> Tensor:
            return _either(_is_png(contents), png, gif_or_bmp, "cond_png")

        def jpeg() -> Tensor:
            return decoded("DecodeJpeg", "JPEG", (4,), channels=wanted)

        return _either(is_jpeg(contents), jpeg, others, "cond_jpeg")


def _either(condition: Tensor, one: Callable[[], Tensor], other: Callable[[], Tensor], name: str) -> Tensor:
    result: Tensor = cond(condition, one, other, name=name)
    return result


def adjust_jpeg_quality(image: Any, jpeg_quality: Any, name: str | None = None) -> Tensor:
    """The image as it is after a JPEG file of this quality, in [0, 100], an int or a scalar int32 tensor."""
    with name_scope(name, "adjust_jpeg_quality", [image]):
        image = convert_to_tensor(image, name="image")
        kind = image.dtype.base_dtype
        if not isinstance(jpeg_quality, Tensor):
            jpeg_quality = convert_to_tensor(jpeg_quality, dtype=dtypes.int32)
        pixels = convert_image_dtype(image, dtypes.uint8)
        file = tensor_op("EncodeJpegVariableQuality", None, images=pixels, quality=jpeg_quality)
        return convert_image_dtype(tensor_op("DecodeJpeg", None, contents=file), kind)


def random_jpeg_quality(image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None) -> Tensor:
    """`adjust_jpeg_quality` by a random quality of [min, max). Raises ValueError unless 0 <= min < max <= 100."""
    if min(min_jpeg_quality, max_jpeg_quality) < 0 or max(min_jpeg_quality, max_jpeg_quality) > 100:
        raise ValueError("jpeg encoding range must be between 0 and 100.")
    if min_jpeg_quality >= max_jpeg_quality:
        raise ValueError("`min_jpeg_quality` must be less than `max_jpeg_quality`.")
    quality = random_uniform([], min_jpeg_quality, max_jpeg_quality, seed=seed, dtype=dtypes.int32)
    return adjust_jpeg_quality(image, quality)
