"""Made-up data for the programs of table_drawn.py: stories, ratings, pictures, rates of exchange."""

from __future__ import annotations

import gzip
import io
import random
from typing import TYPE_CHECKING

import numpy as np
from others import data

if TYPE_CHECKING:
    from pathlib import Path

_PEOPLE = ("John", "Mary", "Sandra", "Daniel")
_PLACES = ("kitchen", "garden", "office", "hallway", "bathroom")
_JOBS = ("writer", "student", "doctor", "other")
_GENRES = 19


def write_babi(folder: Path) -> None:
    """The first task of bAbI: stories of who went where, each question with its answer and the line that tells it."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(6)
    for name, stories in (("train", 2000), ("test", 200)):
        lines: list[str] = []
        for _ in range(stories):
            where: dict[str, tuple[str, int]] = {}
            number = 0
            for _ in range(5):
                for _ in range(2):
                    number += 1
                    person, place = rng.choice(_PEOPLE), rng.choice(_PLACES)
                    where[person] = place, number
                    lines.append(f"{number} {person} went to the {place}.")
                number += 1
                person = rng.choice(sorted(where))
                lines.append(f"{number} Where is {person}? \t{where[person][0]}\t{where[person][1]}")
        (folder / f"qa1_single-supporting-fact_{name}.txt").write_text("\n".join(lines) + "\n")


def write_ratings(folder: Path) -> None:
    """Ratings of films with what is known of user and film, 42 columns a line, as MovieLens's files joined."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(7)
    for name, count in (("train", 2000), ("test", 400)):
        rows = [",".join(f"column{i}" for i in range(42))]
        for _ in range(count):
            user, item, rating = rng.randrange(1, 944), rng.randrange(1, 1683), rng.randrange(1, 6)
            seen = [str(880000000 + user), "1997-11-20", "1997", "11", "20", "47", "3"]
            person = [str(rng.randrange(15, 66)), rng.choice("FM"), rng.choice(_JOBS), "55105", "5", "55", "551"]
            film = ["A film", "01-Jan-1995", "", "http"] + [str(rng.randrange(2)) for _ in range(_GENRES)]
            rows.append(",".join([str(user), str(item), str(rating), *seen, *person, *film, "1995-01-01", "1995"]))
        (folder / f"{name}.csv").write_text("\n".join(rows) + "\n")


def write_fruits(folder: Path) -> None:
    """JPEG pictures of two kinds as Examples, a file for each kind."""
    from PIL import Image

    import tenfold as tf

    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.RandomState(8)
    for name, colour in (("apple", (200, 30, 30)), ("orange", (240, 150, 20))):
        with tf.python_io.TFRecordWriter(str(folder / f"{name}.tfrecords")) as out:
            for i in range(40):
                pixels = np.clip(np.array(colour) + rng.randint(-20, 20, (32, 32, 3)), 0, 255).astype(np.uint8)
                packed = io.BytesIO()
                Image.fromarray(pixels).save(packed, "JPEG")
                feature = {
                    "image/file_name": _bytes(f"{i}.jpg".encode()),
                    "image/encoded_image": _bytes(packed.getvalue()),
                }
                out.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def _bytes(value: bytes) -> object:
    import tenfold as tf

    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def write_float_digits(folder: Path) -> None:
    """Digits as Examples of 28 · 28 floating-point numbers and a label, in three files."""
    import tenfold as tf

    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", 600), ("val", 100), ("test", 100)):
        images, labels = data.digits(count)
        with tf.python_io.TFRecordWriter(str(folder / f"{name}.tfrecords")) as out:
            for image, label in zip(images, labels, strict=True):
                feature = {
                    "image": tf.train.Feature(float_list=tf.train.FloatList(value=image.ravel() / 255)),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(label)])),
                }
                out.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def write_plain_mnist(folder: Path) -> None:
    """MNIST's four files as they are once they are unpacked; of 70,000 images, for programs that count on it."""
    data.write_mnist(folder, 60000, 10000)
    for path in folder.glob("*.gz"):
        name = path.name.removesuffix(".gz")
        (folder / name).write_bytes(gzip.decompress(path.read_bytes()))


def write_rates(folder: Path) -> None:
    """Monthly rates of exchange: a date and a number a line."""
    folder.mkdir(parents=True, exist_ok=True)
    rates = 1.5 + np.cumsum(np.random.RandomState(9).normal(0, 0.03, 600))
    lines = [f'"{1970 + i // 12}-{i % 12 + 1:02}","{rate:.4f}"' for i, rate in enumerate(rates)]
    (folder / "euro-foreign-exchange-reference-.csv").write_text("\n".join(["Date,Rate", *lines, "", ""]))


def write_ptb_texts(folder: Path) -> None:
    """Penn Treebank under the names without `ptb.`."""
    data.write_ptb(folder)
    for name in ("train", "valid", "test"):
        (folder / f"ptb.{name}.txt").rename(folder / f"{name}.txt")
