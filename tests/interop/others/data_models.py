"""Small made-up data for the programs of table_models.py, in the forms in which they read it."""

from __future__ import annotations

import gzip
import json
import pickle
import random
import struct
from typing import TYPE_CHECKING

import numpy as np
from others.data import digits

if TYPE_CHECKING:
    from pathlib import Path

_WORDS = [f"w{i}" for i in range(40)]


def _sentences(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(_WORDS, k=rng.randint(4, 9))) for _ in range(count)]


def write_cifar_pickles(folder: Path) -> None:
    """CIFAR-10 as Python's pickles: six files of 200 pictures."""
    inner = folder / "cifar-10-batches-py"
    inner.mkdir(parents=True, exist_ok=True)
    rng = np.random.RandomState(0)
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        batch = {
            b"data": rng.randint(0, 256, (10000, 3072)).astype(np.uint8),
            b"labels": rng.randint(0, 10, 10000).tolist(),
        }
        (inner / name).write_bytes(pickle.dumps(batch, protocol=2))


def write_mnist_tfrecords(folder: Path) -> None:
    """Digits as the Examples that the official models read."""
    import tenfold as tf

    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", 1000), ("test", 200)):
        images, labels = digits(count)
        with tf.python_io.TFRecordWriter(str(folder / f"{name}.tfrecords")) as out:
            for image, label in zip(images, labels, strict=True):
                features = {
                    "image_raw": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.tobytes()])),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(label)])),
                }
                out.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


def write_slim_cifar10(folder: Path) -> None:
    """CIFAR-10 as slim keeps data sets: records of PNG files, and the names of the classes."""
    import tenfold as tf

    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.RandomState(1)
    with tf.Graph().as_default(), tf.Session() as session:
        picture = tf.placeholder(tf.uint8, [32, 32, 3])
        png = tf.image.encode_png(picture)
        for name, count in (("train", 200), ("test", 40)):
            with tf.python_io.TFRecordWriter(str(folder / f"cifar10_{name}.tfrecord")) as out:
                for _ in range(count):
                    encoded = session.run(png, {picture: rng.randint(0, 256, (32, 32, 3)).astype(np.uint8)})
                    features = {
                        "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[encoded])),
                        "image/format": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"png"])),
                        "image/class/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[rng.randint(10)])),
                        "image/height": tf.train.Feature(int64_list=tf.train.Int64List(value=[32])),
                        "image/width": tf.train.Feature(int64_list=tf.train.Int64List(value=[32])),
                    }
                    out.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    (folder / "labels.txt").write_text("".join(f"{i}:class{i}\n" for i in range(10)))


def write_cola(folder: Path) -> None:
    """Sentences that are grammatical or not, and a vocabulary of a hundred tokens."""
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_WORDS, *"abcdefghijklmnopqrstuvwxyz.,"]
    tokens += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    (folder / "vocab.txt").write_text("\n".join(tokens[:100]) + "\n")
    (folder / "cola").mkdir(parents=True, exist_ok=True)
    for name, count in (("train", 32), ("dev", 8)):
        rows = [f"x\t{i % 2}\t\t{text}" for i, text in enumerate(_sentences(count, count))]
        (folder / "cola" / f"{name}.tsv").write_text("\n".join(rows) + "\n")
    rows = ["index\tsentence", *(f"{i}\t{text}" for i, text in enumerate(_sentences(8, 3)))]
    (folder / "cola" / "test.tsv").write_text("\n".join(rows) + "\n")


def write_sentence_pairs(folder: Path) -> None:
    """Sentences in two languages, cut in pieces already, and the pieces."""
    for part in ("segmented", "prepro"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for name, count in (("train", 200), ("eval", 32), ("test", 32)):
        for seed, language in enumerate(("de", "en")):
            text = "\n".join(_sentences(count, seed)) + "\n"
            (folder / "segmented" / f"{name}.{language}.bpe").write_text(text)
            (folder / "prepro" / f"{name}.{language}").write_text(text)
    pieces = ["<pad>", "<unk>", "<s>", "</s>", *_WORDS, *(f"x{i}" for i in range(6))]
    (folder / "segmented" / "bpe.vocab").write_text("".join(f"{piece}\t0\n" for piece in pieces))


def write_legacy_pairs(folder: Path) -> None:
    """The same as the older program reads it: a text a language, and words with their frequencies."""
    (folder / "corpora").mkdir(parents=True, exist_ok=True)
    (folder / "preprocessed").mkdir(exist_ok=True)
    for seed, language in enumerate(("de", "en")):
        (folder / "corpora" / f"train.tags.de-en.{language}").write_text("\n".join(_sentences(3000, seed)) + "\n")
        rows = [f"{word}\t1000\n" for word in ("<PAD>", "<UNK>", "<S>", "</S>", *_WORDS)]
        (folder / "preprocessed" / f"{language}.vocab.tsv").write_text("".join(rows))


def write_words(folder: Path) -> None:
    """Three files of a text."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, count) in enumerate((("train", 200), ("valid", 60), ("test", 60))):
        (folder / f"{name}.txt").write_text("\n".join(_sentences(count, seed)) + "\n")


def write_xl_records(folder: Path) -> None:
    """Pieces of eight words with the words that follow, as Transformer-XL's own program cuts them."""
    import tenfold as tf

    (folder / "records").mkdir(parents=True, exist_ok=True)
    rng = np.random.RandomState(5)
    name = "train.bsz-4.tlen-8.tfrecords"
    with tf.python_io.TFRecordWriter(str(folder / "records" / name)) as out:
        for _ in range(80):
            words = rng.randint(0, 44, 9).tolist()
            features = {
                "inputs": tf.train.Feature(int64_list=tf.train.Int64List(value=words[:8])),
                "labels": tf.train.Feature(int64_list=tf.train.Int64List(value=words[1:])),
            }
            out.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    info = {"filenames": [name], "bin_sizes": [], "num_batch": 20}
    (folder / "records" / "record_info-train.bsz-4.tlen-8.json").write_text(json.dumps(info))
    (folder / "corpus-info.json").write_text(json.dumps({"vocab_size": 44, "cutoffs": [], "dataset": "ptb"}))


def write_whole_mnist(folder: Path) -> None:
    """All 70,000 digits of MNIST's size, unpacked."""
    _write_unpacked_mnist(folder, 60, 10)


def write_some_mnist(folder: Path) -> None:
    """A thousand digits of each, unpacked."""
    _write_unpacked_mnist(folder, 1, 1)


def write_packed_mnist(folder: Path) -> None:
    """All 70,000 digits of MNIST's size, packed, as they are downloaded."""
    write_whole_mnist(folder)
    for path in folder.glob("*-ubyte"):
        (folder / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), 1))
        path.unlink()


def _write_unpacked_mnist(folder: Path, train: int, test: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, times in (("train", train), ("t10k", test)):
        images, labels = digits(1000)
        images, labels = np.tile(images, (times, 1, 1)), np.tile(labels, times)
        packed = struct.pack(">4I", 2051, len(images), 28, 28) + images.tobytes()
        (folder / f"{name}-images-idx3-ubyte").write_bytes(packed)
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 2049, len(images)) + labels.tobytes())


def write_pairs(folder: Path) -> None:
    """Two pictures side by side, four times."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.RandomState(6)
    for number in range(4):
        Image.fromarray(rng.randint(0, 256, (256, 512, 3)).astype(np.uint8)).save(folder / f"{number}.png")
