"""Summaries of pictures and sounds: PNG and WAV inside Summary protos. Outputs are scalars of bytes.

The PNGs are written by _png.py, the WAVs, of 16-bit samples, by _wav.py. Follows summary_image_op.cc and
summary_audio_op.cc.
"""

from __future__ import annotations

import numpy as np

from tenfold_core import dtypes, tensor_util
from tenfold_kernels.arrays import Array, invalid, shape_text
from tenfold_kernels.cpu._png import encode_png
from tenfold_kernels.cpu._wav import encode_wav
from tenfold_kernels.cpu.summary import serialized, tag_of
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_protos import summary_pb2, tensor_pb2

#: Channels that a picture may have: grey, RGB, RGB with alpha.
_CHANNELS = (1, 3, 4)
_BLACK = np.float32(1e-6)


def _as_uint8(image: Array, bad_color: Array) -> Array:
    """A float picture scaled to 0..255 (or centred at 128 if it has negative values); what is not finite is marked."""
    finite = np.isfinite(image).all(axis=-1)
    values = image[finite].astype(np.float32)
    low = values.min() if values.size else np.float32(np.inf)
    high = values.max() if values.size else np.float32(-np.inf)
    kind = image.dtype.type
    if low < 0:
        most = max(abs(low), abs(high))
        scale, offset = kind(0 if most < _BLACK else np.float32(127) / most), kind(128)
    else:
        scale, offset = kind(0 if high < _BLACK else np.float32(255) / high), kind(0)
    out = np.empty(image.shape, np.uint8)
    out[finite] = (image[finite] * scale + offset).astype(np.uint8)
    out[~finite] = bad_color[: image.shape[-1]]
    return out


@kernel("ImageSummary", T=(dtypes.uint8, dtypes.float16, dtypes.float32, dtypes.float64))
def build_image_summary(node: KernelNode) -> Compute:
    """images_BHWC → max_images PNGs, tagged TAG/image/0 and so on."""
    limit = int(node.attrs.get("max_images", 3))
    given = node.attrs.get("bad_color", np.array([255, 0, 0, 255], np.uint8))
    bad_color = tensor_util.make_ndarray(given) if isinstance(given, tensor_pb2.TensorProto) else np.asarray(given)
    if bad_color.dtype != np.uint8:
        raise invalid(f"bad_color must be uint8, got {dtypes.as_dtype(bad_color.dtype).op_name}")
    if bad_color.ndim != 1:
        raise invalid(f"bad_color must be a vector, got shape {shape_text(bad_color.shape)}")

    def compute(tag: Array, tensor: Array) -> Array:
        if tag.ndim:
            raise invalid("Tags must be a scalar")
        if tensor.ndim != 4 or tensor.shape[3] not in _CHANNELS:
            raise invalid(f"Tensor must be 4-D with last dim 1, 3, or 4, not {shape_text(tensor.shape)}")
        batch, height, width, depth = tensor.shape
        if height * width >= 1 << 29:
            raise invalid(f"Tensor too large for summary {shape_text(tensor.shape)}")
        if not height * width:
            raise invalid(f"input tensor must have non-zero dims. Found: [{batch}, {height}, {width}, {depth}].")
        if tensor.dtype != np.uint8 and bad_color.size < depth:
            raise invalid(f"expected depth <= bad_color.size, got depth = {depth}, bad_color.size = {bad_color.size}")
        name = tag_of(tag)
        summary = summary_pb2.Summary()
        for i in range(min(limit, batch)):
            image = tensor[i] if tensor.dtype == np.uint8 else _as_uint8(tensor[i], bad_color)
            value = summary.value.add(tag=f"{name}/image/{i}" if limit > 1 else f"{name}/image")
            value.image.height, value.image.width, value.image.colorspace = height, width, depth
            value.image.encoded_image_string = encode_png(image)
        return serialized(summary)

    return compute


@kernel("AudioSummary", "AudioSummaryV2")
def build_audio_summary(node: KernelNode) -> Compute:
    """sounds [batch, frames] or [batch, frames, channels] → max_outputs WAVs, tagged TAG/audio/0 and so on."""
    limit = int(node.attrs.get("max_outputs", 3))
    fixed_rate = node.attrs.get("sample_rate")

    def compute(tag: Array, tensor: Array, sample_rate: Array | None = None) -> Array:
        if tag.ndim:
            raise invalid("Tag must be a scalar")
        if tensor.ndim not in (2, 3):
            raise invalid(f"Tensor must be 3-D or 2-D, got: {shape_text(tensor.shape)}")
        if sample_rate is not None and sample_rate.size != 1:
            raise invalid("sample_rate must be rank-0 or contain a single value")
        rate = float(sample_rate.reshape(-1)[0]) if sample_rate is not None else float(fixed_rate or 0)
        if not rate > 0:
            raise invalid("sample_rate must be > 0")
        batch, frames = tensor.shape[:2]
        channels = tensor.shape[2] if tensor.ndim == 3 else 1
        whole_rate = max(round(rate), 1) if np.isfinite(rate) else 0
        if not 0 < channels < 1 << 16 or not 0 < whole_rate * channels * 2 < 1 << 32:
            raise invalid(f"cannot write a WAV of {frames} frames, {channels} channels at {rate} Hz")
        name = tag_of(tag)
        summary = summary_pb2.Summary()
        for i in range(min(limit, batch)):
            value = summary.value.add(tag=f"{name}/audio/{i}" if limit > 1 else f"{name}/audio")
            value.audio.sample_rate, value.audio.num_channels = rate, channels
            value.audio.length_frames, value.audio.content_type = frames, "audio/wav"
            value.audio.encoded_audio_string = encode_wav(tensor[i].reshape(frames, channels), whole_rate)
        return serialized(summary)

    return compute
