"""17. Input pipelines: a batch of small, of image-like and of parsed elements, mapped, batched and prefetched.

The consumer does nothing with a batch, so that the pipeline itself is timed. All repeat without end; results are the
first batches after the iterator is started again.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from typing import TYPE_CHECKING, Any

import harness
import numpy as np
from harness import Case, Context, Measure, Subject, Topology

if TYPE_CHECKING:
    from collections.abc import Callable

#: Not pinned: a pipeline works beside its consumer.
ALONE = Topology(servers=(), clients=("worker:0",), pinned=False)
SMALL_BATCH, IMAGE_BATCH = 128, 64
IMAGES = 1024


def pipeline(make: Callable[[Any], Any], is_shuffled: bool) -> Callable[[Context], Measure]:
    """The case of a dataset that `make` builds with the side's `tf`. Of shuffled ones only the shapes are compared."""

    def build(ctx: Context) -> Measure:
        tf = ctx.tf
        graph = tf.Graph()
        with ctx.building(graph):
            iterator = tf.data.make_initializable_iterator(make(tf))
            batch = iterator.get_next()
        sess = ctx.session(graph)
        sess.run(iterator.initializer)

        def result() -> dict[str, object]:
            sess.run(iterator.initializer)
            batches = [sess.run(batch) for _ in range(3)]
            if is_shuffled:
                return {"shapes": np.array([part.shape[0] for each in batches for part in _parts(each)])}
            return {f"batch {number}": _joined(each) for number, each in enumerate(batches)}

        # A target, not a fetch: what a batch costs is making it.
        parts = list(batch) if isinstance(batch, tuple) else [batch]
        return Measure(step=lambda: sess.run([part.op for part in parts]), result=result)

    return build


def _joined(value: Any) -> Any:
    """A batch as one array, to be compared."""
    return np.concatenate([np.asarray(part, np.float64).reshape(-1) for part in _parts(value)])


def _parts(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def small(parallel: int | None) -> Callable[[Any], Any]:
    """Scalars: x → 2x + 1."""

    def make(tf: Any) -> Any:
        numbers = tf.data.Dataset.range(1 << 20).repeat()
        return numbers.map(lambda x: x * 2 + 1, num_parallel_calls=parallel).batch(SMALL_BATCH).prefetch(2)

    return make


def rows(tf: Any) -> Any:
    """Pairs of a vector and a label, shuffled: the usual program on data in memory."""
    choose = np.random.default_rng(3)
    features = choose.standard_normal([4096, 32]).astype(np.float32)
    labels = choose.integers(0, 10, [4096]).astype(np.int32)
    data = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(1024, seed=5).repeat()
    return data.map(lambda x, y: (x * 0.5, y)).batch(SMALL_BATCH).prefetch(2)


def images(parallel: int | None) -> Callable[[Any], Any]:
    """Images of 32×32×3 bytes: flipped, cast and brought to mean 0, as for CIFAR-10."""

    def make(tf: Any) -> Any:
        choose = np.random.default_rng(4)
        pixels = choose.integers(0, 256, [IMAGES, 32, 32, 3]).astype(np.uint8)
        labels = choose.integers(0, 10, [IMAGES]).astype(np.int32)

        def prepare(image: Any, label: Any) -> Any:
            scaled = tf.cast(tf.reverse(image, [1]), tf.float32) * (1.0 / 255)
            return scaled - tf.reduce_mean(scaled), label

        data = tf.data.Dataset.from_tensor_slices((pixels, labels)).repeat()
        return data.map(prepare, num_parallel_calls=parallel).batch(IMAGE_BATCH).prefetch(2)

    return make


def shuffled(tf: Any) -> Any:
    """Numbers, drawn out of a buffer of 10,000."""
    return tf.data.Dataset.range(1 << 20).shuffle(10_000, seed=7).repeat().batch(SMALL_BATCH).prefetch(2)


def cropped(tf: Any) -> Any:
    """Images of 256×256×3 bytes, of which a window of 224×224 is taken at random."""
    pixels = np.random.default_rng(8).integers(0, 256, [256, 256, 256, 3]).astype(np.uint8)
    data = tf.data.Dataset.from_tensor_slices(pixels).repeat()
    return data.map(lambda image: tf.random_crop(image, [224, 224, 3], seed=9)).batch(IMAGE_BATCH).prefetch(2)


def flipped(tf: Any) -> Any:
    """Images of 32×32×3 bytes, flipped at random, and scaled."""
    pixels = np.random.default_rng(10).integers(0, 256, [IMAGES, 32, 32, 3]).astype(np.uint8)

    def prepare(image: Any) -> Any:
        return tf.cast(tf.image.random_flip_left_right(image, seed=11), tf.float32) * (1.0 / 255)

    return tf.data.Dataset.from_tensor_slices(pixels).repeat().map(prepare).batch(IMAGE_BATCH).prefetch(2)


def _examples(tf: Any, count: int) -> list[bytes]:
    choose = np.random.default_rng(6)

    def example(number: int) -> bytes:
        floats = tf.train.FloatList(value=choose.standard_normal(16).tolist())
        features = {
            "x": tf.train.Feature(float_list=floats),
            "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[number % 10])),
        }
        return bytes(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())

    return [example(number) for number in range(count)]


def _wanted(tf: Any) -> dict[str, Any]:
    return {"x": tf.FixedLenFeature([16], tf.float32), "y": tf.FixedLenFeature([], tf.int64)}


def examples(tf: Any) -> Any:
    """Serialized `tf.train.Example`s, batched and then parsed."""

    def parse(serialized: Any) -> Any:
        parsed = tf.parse_example(serialized, _wanted(tf))
        return parsed["x"], parsed["y"]

    data = tf.data.Dataset.from_tensor_slices(_examples(tf, 512)).repeat()
    return data.batch(SMALL_BATCH).map(parse).prefetch(2)


def recorded(tf: Any) -> Any:
    """The same in a TFRecord file, parsed one by one, and then batched."""
    path = os.path.join(tempfile.mkdtemp(prefix="tenfold-pipelines-"), "examples.tfrecord")
    atexit.register(shutil.rmtree, os.path.dirname(path), ignore_errors=True)
    with tf.python_io.TFRecordWriter(path) as writer:
        for example in _examples(tf, 4096):
            writer.write(example)

    def parse(serialized: Any) -> Any:
        parsed = tf.parse_single_example(serialized, _wanted(tf))
        return parsed["x"], parsed["y"]

    return tf.data.TFRecordDataset(path).repeat().map(parse).batch(SMALL_BATCH).prefetch(2)


def _case(name: str, make: Callable[[Any], Any], size: int, *, is_shuffled: bool = False) -> Case:
    return Case(
        name,
        ALONE,
        pipeline(make, is_shuffled),
        {"tenfold": 1},
        work=size,
        unit="element",
        rtol=1e-5,
        warm_up_s=2.0,
    )


SUBJECT = Subject(
    number="17",
    module="input_pipelines",
    title="input pipelines: tf.data",
    sides=(harness.TENFOLD, harness.TENSORFLOW, harness.TENSORFLOW_DIRECT),
    cases=(
        _case("small elements", small(None), SMALL_BATCH),
        _case("small elements, 2 calls at once", small(2), SMALL_BATCH),
        _case("shuffled rows", rows, SMALL_BATCH, is_shuffled=True),
        _case("images", images(None), IMAGE_BATCH),
        _case("images, 2 calls at once", images(2), IMAGE_BATCH),
        _case("shuffle buffer of 10,000", shuffled, SMALL_BATCH, is_shuffled=True),
        _case("parsed examples", examples, SMALL_BATCH),
        _case("TFRecord, parsed one by one", recorded, SMALL_BATCH),
        _case("random flip of 32x32", flipped, IMAGE_BATCH, is_shuffled=True),
        _case("random crop of 224x224", cropped, IMAGE_BATCH, is_shuffled=True),
    ),
)


if __name__ == "__main__":
    harness.main(SUBJECT)
