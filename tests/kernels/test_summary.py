"""Summaries are real Summary protos."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tenfold_core import errors, tensor_util
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


def test_a_tensor_has_metadata_or_the_name_of_its_node(ops: Any) -> None:
    one = np.float32([1, 2])
    metadata = summary_pb2.SummaryMetadata(display_name="shown").SerializeToString()
    for given, name in ((metadata, "shown"), (b"", ""), (b"\xff", "")):
        (value,) = parsed(ops.run("TensorSummaryV2", [b"t", one, given])).value
        assert (value.tag, value.HasField("metadata"), value.metadata.display_name) == ("t", True, name)
        assert (value.node_name, tensor_util.make_ndarray(value.tensor).tolist()) == ("", [1, 2])
    (value,) = parsed(ops.run("TensorSummary", [one], name="n")).value
    assert (value.tag, value.HasField("metadata"), value.node_name) == ("", False, "n")
    assert tensor_util.make_ndarray(value.tensor).tolist() == [1, 2]
    with pytest.raises(errors.InvalidArgumentError, match=r"^serialized_summary_metadata must be scalar$"):
        ops.run("TensorSummaryV2", [b"t", one, [b""]])
    with pytest.raises(errors.InvalidArgumentError, match=r"^tag must be scalar, got shape \[1\]$"):
        ops.run("TensorSummaryV2", [[b"t"], one, b""])


def test_nothing_and_blocks_of_numbers(ops: Any) -> None:
    most = np.finfo(np.float64).max
    histo = parsed(ops.run("HistogramSummary", [b"h", np.empty(0, np.float32)])).value[0].histo
    assert (histo.min, histo.max, histo.num, histo.sum, histo.sum_squares) == (most, -most, 0, 0, 0)
    assert list(histo.bucket) == [0]
    numbers = np.arange(2 * summary._BLOCK + 1, dtype=np.int32)
    histo = parsed(ops.run("HistogramSummary", [b"h", numbers])).value[0].histo
    assert (histo.num, histo.sum, sum(histo.bucket)) == (numbers.size, numbers.sum(), numbers.size)
    for wrong, word in ((np.nan, "Nan"), (-np.inf, "Infinity")):
        with pytest.raises(errors.InvalidArgumentError, match=f"^{word} in "):
            ops.run("HistogramSummary", [b"h", [1.0, wrong, 2.0]])


def test_tags_and_values_of_one_element_may_have_any_shape(ops: Any) -> None:
    (value,) = parsed(ops.run("ScalarSummary", [[b"a"], np.float32([[2]])])).value
    assert (value.tag, value.simple_value) == ("a", 2)
    with pytest.raises(errors.InvalidArgumentError, match=r"^tags and values are not the same shape: \[1\] != \[2\]$"):
        ops.run("ScalarSummary", [[b"a"], [1.0, 2.0]])


def test_values_without_tags_are_merged_too(ops: Any) -> None:
    untagged = summary_pb2.Summary(value=[{"node_name": "n"}]).SerializeToString()
    merged = parsed(ops.run("MergeSummary", [[untagged, untagged]]))
    assert [value.node_name for value in merged.value] == ["n", "n"]
