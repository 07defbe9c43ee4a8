"""Small made-up records of the forms that public programs read: Examples, and lines of libsvm's. See data.py."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path


def _ints(values: list[int]) -> object:
    import tenfold as tf

    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    import tenfold as tf

    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.python_io.TFRecordWriter(str(path)) as out:
        for row in rows:
            out.write(tf.train.Example(features=tf.train.Features(feature=row)).SerializeToString())


def write_cifar_records(folder: Path) -> None:
    """CIFAR-10 as Examples of the bytes of a picture, its planes one after the other."""
    import tenfold as tf

    rng = np.random.RandomState(11)
    for name, count in (("train", 400), ("validation", 100), ("eval", 100)):
        rows = []
        for _ in range(count):
            picture = rng.randint(0, 256, 3072).astype(np.uint8).tobytes()
            image = tf.train.Feature(bytes_list=tf.train.BytesList(value=[picture]))
            rows.append({"image": image, "label": _ints([rng.randint(10)])})
        _write(folder / f"{name}.tfrecords", rows)


def write_translations(folder: Path) -> None:
    """Sentences of a few numbered words with their translations; 1 ends a sentence."""
    rng = random.Random(12)
    for name, count in (("train", 24), ("dev", 8)):
        rows = []
        for _ in range(count):
            words = [rng.randint(2, 40) for _ in range(rng.randint(3, 7))]
            rows.append({"inputs": _ints([*words, 1]), "targets": _ints([*reversed(words), 1])})
        _write(folder / f"wmt32k-{name}-00001-of-00001", rows)


def write_drawings(folder: Path) -> None:
    """Strokes of three kinds of drawings: steps in x and y, and whether the pen is lifted."""
    import tenfold as tf

    rng = np.random.RandomState(13)
    for name, count in (("training", 60), ("eval", 20)):
        rows = []
        for _ in range(count):
            length, kind = int(rng.randint(10, 30)), int(rng.randint(3))
            ink = tf.train.Feature(float_list=tf.train.FloatList(value=rng.uniform(-1, 1, 3 * length) + kind))
            rows.append({"ink": ink, "shape": _ints([length, 3]), "class_index": _ints([kind])})
        _write(folder / f"{name}.tfrecord-00000-of-00001", rows)
    (folder / "training.tfrecord.classes").write_text("bear\ncat\ncow\n")


def write_clicks(folder: Path) -> None:
    """Lines of libsvm's with a label and ten numbered features of a hundred."""
    rng = random.Random(14)
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("tr", 600), ("va", 100), ("te", 50)):
        lines = []
        for _ in range(count):
            features = " ".join(f"{10 * field + rng.randrange(10)}:{rng.random():.3f}" for field in range(10))
            lines.append(f"{rng.randrange(2)} {features}\n")
        (folder / f"{name}.libsvm").write_text("".join(lines))
