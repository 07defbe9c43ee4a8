"""Pictures and sounds in summaries: how numbers become shades, which are written, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.kernel_runs import make_node
from tenfold_core import errors, tensor_util
from tenfold_kernels import registry
from tenfold_kernels.cpu._png import decode_png
from tenfold_kernels.resources.state import ResourceManager
from tenfold_protos import summary_pb2


def pictures(ops: Any, tensor: Any, tag: Any = b"p", **attrs: Any) -> Any:
    return summary_pb2.Summary.FromString(ops.run("ImageSummary", [tag, tensor], **attrs)[()]).value


def shades(ops: Any, row: Any, dtype: Any = np.float32, **attrs: Any) -> list[Any]:
    """The bytes of a picture of one row, of grey numbers or of colours."""
    numbers = np.array(row, dtype)
    tensor = numbers.reshape(1, 1, -1, 1 if numbers.ndim == 1 else numbers.shape[1])
    (value,) = pictures(ops, tensor, max_images=1, **attrs)
    found = decode_png(value.image.encoded_image_string, 0, np.uint8)[0]
    return found[:, 0].tolist() if numbers.ndim == 1 else found.tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([0.0, 1.0, 2.0], [0, 127, 255]),
        ([1.0, 2.0, 4.0], [63, 127, 255]),
        ([0.0, 0.0], [0, 0]),
        ([-1.0, 0.0, 2.0], [64, 128, 255]),
        ([-2.0, 0.0, 1.0], [1, 128, 191]),
        ([-4.0, -2.0], [1, 64]),
        ([np.inf, 0.0, 2.0], [9, 0, 255]),
        ([-np.inf, np.nan], [9, 9]),
    ],
)
def test_numbers_become_shades(ops: Any, numbers: list[float], expected: list[int], dtype: Any) -> None:
    assert shades(ops, numbers, dtype, bad_color=np.array([9], np.uint8)) == expected


def test_a_picture_of_next_to_nothing_is_black_or_grey(ops: Any) -> None:
    assert shades(ops, [0.0, 0.9e-6]) == [0, 0]
    assert shades(ops, [0.0, 1.1e-6]) == [0, 255]
    assert shades(ops, [-0.9e-6, 0.5e-6]) == [128, 128]
    assert shades(ops, [-1.1e-6, 0.0]) == [1, 128]


def test_a_colour_with_one_number_missing_is_marked_as_a_whole(ops: Any) -> None:
    assert shades(ops, [[1.0, np.nan, 1.0], [1.0, 0.0, 0.5]]) == [[255, 0, 0], [255, 0, 127]]
    assert shades(ops, [[np.inf] * 4, [1.0] * 4]) == [[255, 0, 0, 255], [255] * 4]
    colour = np.array([1, 2, 3], np.uint8)
    for given in (colour, tensor_util.make_tensor_proto(colour)):
        assert shades(ops, [[np.inf] * 3, [1.0] * 3], bad_color=given) == [[1, 2, 3], [255] * 3]


@pytest.mark.parametrize("depth", [1, 3, 4])
def test_bytes_are_shades_already(ops: Any, depth: int) -> None:
    tensor = np.arange(6 * depth, dtype=np.uint8).reshape(1, 2, 3, depth)
    (value,) = pictures(ops, tensor, bad_color=np.array([], np.uint8))
    assert value.tag == "p/image/0"
    assert (value.image.height, value.image.width, value.image.colorspace) == (2, 3, depth)
    assert decode_png(value.image.encoded_image_string, 0, np.uint8).tolist() == tensor[0].tolist()


@pytest.mark.parametrize(("limit", "tags"), [(1, ["p/image"]), (2, ["p/image/0", "p/image/1"]), (9, 3)])
def test_so_many_pictures_are_written(ops: Any, limit: int, tags: Any) -> None:
    found = [value.tag for value in pictures(ops, np.zeros((3, 1, 1, 1), np.uint8), max_images=limit)]
    assert found == (tags if isinstance(tags, list) else [f"p/image/{i}" for i in range(tags)])


def test_a_node_that_leaves_everything_out_writes_three_and_marks_red(ops: Any) -> None:
    tensor = np.full((4, 1, 1, 3), np.nan, np.float32)
    inputs = [ops.value(b"p"), tensor]
    whole = make_node("ImageSummary", inputs, {}, ResourceManager(), "n")
    node = replace(whole, attrs={"T": whole.attrs["T"]})
    values = summary_pb2.Summary.FromString(registry.lookup(node, "CPU")(node)(*inputs)[()]).value
    assert len(values) == 3
    assert decode_png(values[0].image.encoded_image_string, 0, np.uint8).tolist() == [[[255, 0, 0]]]
    tensor = np.full((1, 1, 1, 4), np.nan, np.float32)
    values = summary_pb2.Summary.FromString(registry.lookup(node, "CPU")(node)(inputs[0], tensor)[()]).value
    assert decode_png(values[0].image.encoded_image_string, 0, np.uint8).tolist() == [[[255, 0, 0, 255]]]


def grey(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize(
    ("tensor", "attrs", "message"),
    [
        (grey(2, 2, 1), {}, r"^Tensor must be 4-D with last dim 1, 3, or 4, not \[2,2,1\]$"),
        (grey(1, 2, 2, 2), {}, r"not \[1,2,2,2\]$"),
        (grey(1, 2, 2, 5), {}, r"not \[1,2,2,5\]$"),
        (grey(1, 0, 2, 1), {}, r"^input tensor must have non-zero dims. Found: \[1, 0, 2, 1\]\.$"),
        (grey(3, 2, 0, 4), {}, r"Found: \[3, 2, 0, 4\]\.$"),
        (grey(0, 1 << 15, 1 << 14, 1), {}, r"^Tensor too large for summary \[0,32768,16384,1\]$"),
        (grey(1, 1, 1, 3), {"bad_color": np.zeros(2, np.uint8)}, "got depth = 3, bad_color.size = 2$"),
        (grey(1, 1, 1, 1), {"bad_color": np.zeros(2, np.int32)}, "^bad_color must be uint8, got int32$"),
        (
            grey(1, 1, 1, 1),
            {"bad_color": np.zeros((1, 4), np.uint8)},
            r"^bad_color must be a vector, got shape",
        ),
    ],
)
def test_pictures_that_cannot_be(ops: Any, tensor: Any, attrs: Any, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        pictures(ops, tensor, **attrs)


def test_the_largest_picture_and_tags(ops: Any) -> None:
    assert len(pictures(ops, grey(0, (1 << 29) - 1, 1, 1))) == 0
    with pytest.raises(errors.InvalidArgumentError, match=r"^Tags must be a scalar$"):
        pictures(ops, grey(1, 1, 1, 1), tag=[b"p"])
    with pytest.raises(errors.InvalidArgumentError, match=r"^Tag must be a scalar$"):
        sounds(ops, grey(1, 1), tag=[b"p"])


# -- sounds ------------------------------------------------------------------------------------------------------------


def sounds(ops: Any, tensor: Any, rate: Any = 8000.0, tag: Any = b"s", **attrs: Any) -> Any:
    inputs = [tag, tensor, np.asarray(rate, np.float32)]
    return summary_pb2.Summary.FromString(ops.run("AudioSummaryV2", inputs, **attrs)[()]).value


@pytest.mark.parametrize(("limit", "tags"), [(1, ["s/audio"]), (2, ["s/audio/0", "s/audio/1"]), (9, 3)])
def test_so_many_sounds_are_written(ops: Any, limit: int, tags: Any) -> None:
    found = [value.tag for value in sounds(ops, grey(3, 2), max_outputs=limit)]
    assert found == (tags if isinstance(tags, list) else [f"s/audio/{i}" for i in range(tags)])


def test_a_sound_of_channels(ops: Any) -> None:
    tensor = np.array([[[0.0, 0.5], [-0.5, 0.0], [0.5, 0.5]]], np.float32)
    (value,) = sounds(ops, tensor, [44100.4])
    audio = value.audio
    assert (audio.num_channels, audio.length_frames, audio.content_type) == (2, 3, "audio/wav")
    assert audio.sample_rate == np.float32(44100.4)
    assert int.from_bytes(audio.encoded_audio_string[24:28], "little") == 44100
    samples = np.frombuffer(audio.encoded_audio_string[44:], "<i2")
    assert samples.tolist() == [0, 16384, -16384, 0, 16384, 16384]


def test_a_slow_sound_has_a_frame_a_second(ops: Any) -> None:
    (value,) = sounds(ops, grey(1, 2), 0.25)
    assert value.audio.sample_rate == 0.25
    assert int.from_bytes(value.audio.encoded_audio_string[24:28], "little") == 1


def test_the_first_version_has_its_rate_as_an_attribute(ops: Any) -> None:
    inputs = [b"s", grey(4, 2)]
    raw = ops.run("AudioSummary", inputs, sample_rate=16000.0)
    values = summary_pb2.Summary.FromString(raw[()]).value
    assert [value.audio.sample_rate for value in values] == [16000] * 3
    whole = make_node("AudioSummary", [ops.value(v) for v in inputs], {"sample_rate": 1.0}, ResourceManager(), "n")
    bare = replace(whole, attrs={"sample_rate": 1.0})
    found = registry.lookup(bare, "CPU")(bare)(*(ops.value(v) for v in inputs))
    assert len(summary_pb2.Summary.FromString(found[()]).value) == 3
    none = replace(whole, attrs={})
    with pytest.raises(errors.InvalidArgumentError, match=r"^sample_rate must be > 0$"):
        registry.lookup(none, "CPU")(none)(*(ops.value(v) for v in inputs))


@pytest.mark.parametrize(
    ("tensor", "rate", "message"),
    [
        (grey(3), 1.0, r"^Tensor must be 3-D or 2-D, got: \[3\]$"),
        (grey(1, 1, 1, 1), 1.0, "^Tensor must be 3-D or 2-D"),
        (grey(1, 1), [1.0, 2.0], "^sample_rate must be rank-0 or contain a single value$"),
        (grey(1, 1), 0.0, "^sample_rate must be > 0$"),
        (grey(1, 1), np.nan, "^sample_rate must be > 0$"),
        (grey(1, 1), np.inf, "^cannot write a WAV of 1 frames, 1 channels at inf Hz$"),
        (grey(1, 1), 2.0**31, "^cannot write a WAV"),
        (grey(1, 5, 0), 1.0, "^cannot write a WAV of 5 frames, 0 channels at 1.0 Hz$"),
        (grey(1, 0, 1 << 16), 1.0, "^cannot write a WAV of 0 frames, 65536 channels at 1.0 Hz$"),
        (grey(1, 0, 2), 2.0**30, "^cannot write a WAV"),
    ],
)
def test_sounds_that_cannot_be(ops: Any, tensor: Any, rate: Any, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        sounds(ops, tensor, rate)


def test_the_fastest_and_the_widest_sound(ops: Any) -> None:
    assert len(sounds(ops, grey(1, 0), 2.0**31 - 128)) == 1
    assert len(sounds(ops, grey(1, 0, (1 << 16) - 1), 1.0)) == 1
