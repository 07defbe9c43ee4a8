"""A program that cuts, turns, joins, gathers and scatters gives on a GPU what it gives on the CPU, step after step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.gpu_programs import ran_on, with_gpus

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def gpus() -> Iterator[None]:
    with with_gpus(1):
        yield


#: Nodes of the program that are on the GPU.
OURS = {
    "split", "transpose", "concat", "Pad", "Tile", "UnsortedSegmentSum", "GatherNd", "DynamicPartition", "one_hot",
    "MatrixBandPart", "stack", "ScatterNd", "DynamicStitch",
}  # fmt: skip


def build(use_resource: bool) -> tuple[list[Any], tuple[Any, Any, Any]]:
    x, ids = tf.placeholder(tf.float32, [4, 6]), tf.placeholder(tf.int64, [3])
    segments = tf.placeholder(tf.int32, [3])
    start = np.arange(15, dtype=np.float32).reshape(5, 3)
    table = tf.get_variable("table", initializer=start, use_resource=use_resource)
    left, right = tf.split(x, 2, axis=1)
    joined = tf.concat([tf.transpose(left), tf.reverse(tf.transpose(right), [0])], 0)
    padded = tf.pad(joined[1:5:2, ::-1], [[1, 1], [0, 2]])
    tiled = tf.tile(tf.expand_dims(padded[1], 0), [2, 1])
    rows = tf.gather(table, ids)
    summed = tf.unsorted_segment_sum(rows, segments, 2)
    chosen = tf.gather_nd(x, [[0, 1], [3, 5]])
    parts = tf.dynamic_partition(rows, segments, 2)
    moved = [
        tiled,
        summed,
        chosen,
        tf.matrix_band_part(tf.one_hot(ids, 5), 0, 1),
        tf.stack(tf.unstack(summed, num=2), axis=1),
        tf.scatter_nd([[0], [2], [0]], rows, [3, 3]),
        tf.dynamic_stitch([[2, 0], [1]], [parts[1], parts[0]]),
    ]
    gradients = tf.gradients([tiled * tiled, summed * summed, chosen * chosen], [x, table])
    return [*moved, *map(tf.convert_to_tensor, gradients)], (x, ids, segments)


def steps(device: str, use_resource: bool) -> tuple[list[Any], dict[str, str]]:
    """What six steps give, and where the nodes of one more ran."""
    found = []
    with tf.Graph().as_default():
        with tf.device(device):
            fetches, (x, ids, segments) = build(use_resource)
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
            session.run(tf.global_variables_initializer())
            for step in range(6):
                random = np.random.default_rng(step)
                feeds = {x: random.normal(size=(4, 6)), ids: random.permutation(5)[:3], segments: [1, 0, 1]}
                found.append(session.run(fetches, feeds))
            metadata = tf.RunMetadata()
            traced = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            session.run(fetches, feeds, options=traced, run_metadata=metadata)
    return found, ran_on(metadata)


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
def test_a_program_of_moves(use_resource: bool) -> None:
    (found, places), (wanted, _) = steps("/gpu:0", use_resource), steps("/cpu:0", use_resource)

    assert {node: place for node, place in places.items() if not place.startswith("GPU") and node in OURS} == {}
    assert places.keys() >= OURS
    for ours, theirs in zip(found, wanted, strict=True):
        for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            np.testing.assert_allclose(mine, other, rtol=1e-6, err_msg=f"fetch {number}")
