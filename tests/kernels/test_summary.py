"""Summaries are real Summary protos."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels import contexts
from tenfold_kernels.cpu import summary
from tenfold_kernels.cpu._png import decode_png
from tenfold_protos import summary_pb2


def parsed(array: np.ndarray) -> summary_pb2.Summary:
    return summary_pb2.Summary.FromString(array[()])


def test_scalar(ops: Any) -> None:
    one = parsed(ops.run("ScalarSummary", [b"loss", np.float32(0.5).reshape(())]))
    two = parsed(ops.run("ScalarSummary", [[b"a", b"b"], [1, 2]]))

    assert [(v.tag, v.simple_value) for v in one.value] == [("loss", 0.5)]
    assert [(v.tag, v.simple_value) for v in two.value] == [("a", 1), ("b", 2)]


def test_a_histograms_buckets_are_what_a_search_for_each_number_gives() -> None:
    limits = summary._LIMITS
    rng = np.random.default_rng(0)
    inner = limits[1:-1]
    tiny = np.array([0.0, -0.0, 5e-324, -5e-324])
    anywhere = np.exp(rng.uniform(-300, 300, 20_000)) * rng.choice([-1, 1], 20_000)
    numbers = np.concatenate([inner, np.nextafter(inner, np.inf), np.nextafter(inner, -np.inf), tiny, anywhere])

    proto = summary.histogram(numbers)

    search = np.bincount(np.searchsorted(limits, numbers, side="right"), minlength=limits.size)
    bounds = np.searchsorted(limits, proto.bucket_limit)
    assert [search[a + 1 : b + 1].sum() for a, b in itertools.pairwise([-1, *bounds])] == list(proto.bucket)
    assert proto.sum_squares == pytest.approx(np.square(numbers).sum())


def test_the_table_of_buckets_is_the_same_where_denormals_count_as_zero() -> None:
    assert contexts.run(summary._buckets_of_prefixes).tolist() == summary._buckets_of_prefixes().tolist()


def test_histogram(ops: Any) -> None:
    histo = parsed(ops.run("HistogramSummary", [b"h", [-1.0, 0.0, 0.5, 0.5]])).value[0].histo

    assert (histo.min, histo.max, histo.num, histo.sum, histo.sum_squares) == (-1, 0.5, 4, 0, 1.5)
    assert sum(histo.bucket) == 4
    assert len(histo.bucket) == len(histo.bucket_limit)
    assert list(histo.bucket_limit) == sorted(histo.bucket_limit)
    for value, count in ((-1.0, 1), (0.5, 2)):
        place = next(i for i, limit in enumerate(histo.bucket_limit) if value < limit)
        assert histo.bucket[place] == count


def test_merge_keeps_all_and_refuses_a_tag_twice(ops: Any) -> None:
    a, b = (ops.run("ScalarSummary", [tag, 1.0]) for tag in (b"a", b"b"))

    assert [v.tag for v in parsed(ops.run("MergeSummary", [a, b])).value] == ["a", "b"]
    with pytest.raises(errors.InvalidArgumentError, match=r"^Duplicate tag a found in summary inputs"):
        ops.run("MergeSummary", [a, a])
    with pytest.raises(errors.InvalidArgumentError, match="Could not parse"):
        ops.run("MergeSummary", [b"\xff\xff"])


@pytest.mark.parametrize(
    ("op", "inputs", "text"),
    [
        ("ScalarSummary", [[b"a", b"b"], [1.0]], r"^tags and values are not the same shape: \[2\] != \[1\]$"),
        ("HistogramSummary", [b"h", [np.nan]], "^Nan in summary histogram for: HistogramSummary$"),
        ("HistogramSummary", [b"h", [np.inf]], "^Infinity in Histogram for: HistogramSummary$"),
    ],
)
def test_wrong_inputs(ops: Any, op: str, inputs: list[Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(op, inputs)


def test_a_picture_becomes_a_png(ops: Any) -> None:
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)

    raw = ops.run("ImageSummary", [b"tag", np.stack([image] * 3)], max_images=2)

    values = summary_pb2.Summary.FromString(raw[()]).value
    assert [v.tag for v in values] == ["tag/image/0", "tag/image/1"]
    png = values[0].image.encoded_image_string
    assert png.startswith(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x04\x00\x00\x00\x02\x08\x02")
    assert decode_png(png, 0, np.uint8).tolist() == image.tolist()


def test_a_sound_becomes_a_wav(ops: Any) -> None:
    raw = ops.run("AudioSummaryV2", [b"tag", [[0.0, 0.5, -2.0]], np.array(8000, np.float32)], max_outputs=1)

    (value,) = summary_pb2.Summary.FromString(raw[()]).value
    assert value.tag == "tag/audio"
    assert (value.audio.length_frames, value.audio.num_channels, value.audio.content_type) == (3, 1, "audio/wav")
    assert np.frombuffer(value.audio.encoded_audio_string[44:], "<i2").tolist() == [0, 16384, -32768]
