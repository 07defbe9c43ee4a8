"""Small data of the forms that public programs read, made up: nothing can be downloaded. Used by run.py."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import struct
import wave
from pathlib import Path

import numpy as np

#: Training images: the tutorials set 5,000 of them apart for validation.
TRAIN, TEST = 6000, 1000
_FOLDER = re.compile(r"""read_data_sets\(\s*(?:train_dir\s*=\s*)?["']([^"']+)["']""")
_DEFAULT = re.compile(r"""["'](/tmp/[\w./-]*(?:mnist|MNIST|data)[\w./-]*)["']""")


def folders_of(text: str) -> set[str]:
    """The folders from which a program's text reads MNIST, as far as it says so literally."""
    if "mnist" not in text.lower():
        return set()
    return {*_FOLDER.findall(text), *_DEFAULT.findall(text), "MNIST_data", "MNIST-data", "MNIST_data/"}


def digits(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Images with a bar at a height that tells their class, in noise: uint8 [count, 28, 28], [count]."""
    rng = np.random.RandomState(count)
    labels = rng.randint(0, 10, count).astype(np.uint8)
    images = rng.randint(0, 60, (count, 28, 28)).astype(np.uint8)
    for row in range(2):
        images[np.arange(count), 4 + 2 * labels + row, 4:24] = 230
    return images, labels


def write_mnist(folder: Path, train: int = TRAIN, test: int = TEST) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", train), ("t10k", test)):
        images, labels = digits(count)
        packed = struct.pack(">4I", 2051, count, 28, 28) + images.tobytes()
        (folder / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(packed, 1))
        packed = struct.pack(">2I", 2049, count) + labels.tobytes()
        (folder / f"{name}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(packed, 1))


def write_cifar10(folder: Path) -> None:
    """The binary version, a hundredth of it a file: label, then 32 · 32 red, green and blue values."""
    inner = folder / "cifar-10-batches-bin"
    inner.mkdir(parents=True, exist_ok=True)
    rng = np.random.RandomState(0)
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        rows = rng.randint(0, 256, (2000, 3073)).astype(np.uint8)
        rows[:, 0] %= 10
        (inner / f"{name}.bin").write_bytes(rows.tobytes())
    # The programs ask whether the archive is there before they download it.
    (folder / "cifar-10-binary.tar.gz").touch()


def write_ptb(folder: Path) -> None:
    """Penn Treebank's three files, of made-up words."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(0)
    words = [f"w{i}" for i in range(800)] + ["<unk>"]
    for name, lines in (("train", 1500), ("valid", 200), ("test", 200)):
        text = "".join(" " + " ".join(rng.choices(words, k=20)) + " \n" for _ in range(lines))
        (folder / f"ptb.{name}.txt").write_text(text)


def prepare(folder: Path, text: str, train: int = TRAIN, tmp: Path | None = None) -> None:
    """Writes what the program of this text, run in `folder`, looks for; what it looks for in /tmp goes to `tmp`."""
    written: set[str] = set()
    for name in folders_of(text):
        path = Path(os.path.normpath(folder / os.path.expanduser(name)))
        inside = path.is_relative_to(folder.parent.parent)
        if not inside and path.is_relative_to("/tmp"):
            path, inside = (tmp or Path("/tmp")) / path.relative_to("/tmp"), True
        if inside and str(path) not in written and not (path / "train-images-idx3-ubyte.gz").exists():
            written.add(str(path))
            write_mnist(path, train)


def write_text(folder: Path) -> None:
    """A text to learn letter by letter."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(1)
    (folder / "input.txt").write_text(" ".join(rng.choice(("to", "be", "or", "not", "that")) for _ in range(20000)))


_BERT = {
    **{"attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 32},
    **{"initializer_range": 0.02, "intermediate_size": 64, "max_position_embeddings": 64, "num_attention_heads": 2},
    **{"num_hidden_layers": 2, "type_vocab_size": 2, "vocab_size": 100},
}


def write_bert(folder: Path) -> None:
    """A small model's settings, and examples of masked words for it."""
    import tenfold as tf

    (folder / "bert.json").write_text(json.dumps(_BERT))
    rng = np.random.RandomState(2)

    def ints(values: np.ndarray) -> tf.train.Feature:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values.tolist()))

    with tf.python_io.TFRecordWriter(str(folder / "bert.tfrecord")) as out:
        for _ in range(40):
            features = {
                "input_ids": ints(rng.randint(0, 100, 32)),
                "input_mask": ints(np.ones(32, int)),
                "segment_ids": ints(np.repeat([0, 1], 16)),
                "masked_lm_positions": ints(rng.randint(0, 32, 5)),
                "masked_lm_ids": ints(rng.randint(0, 100, 5)),
                "masked_lm_weights": tf.train.Feature(float_list=tf.train.FloatList(value=[1.0] * 5)),
                "next_sentence_labels": ints(np.array([rng.randint(2)])),
            }
            out.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


def write_gpt2(folder: Path, words: int = 16, width: int = 8, layers: int = 1) -> None:
    """A small model's settings and words, and a checkpoint of random numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"n_vocab": 257, "n_ctx": words, "n_embd": width, "n_head": 2, "n_layer": layers}
    (folder / "hparams.json").write_text(json.dumps(settings))
    letters = [chr(i) for i in range(33, 127)] + [chr(i) for i in range(161, 173)] + [chr(i) for i in range(174, 256)]
    letters += [chr(256 + i) for i in range(256 - len(letters))]
    (folder / "encoder.json").write_text(json.dumps({c: i for i, c in enumerate([*letters, "<|endoftext|>"])}))
    (folder / "vocab.bpe").write_text("#version: 0.2\n")
    shapes = {"wpe": [words, width], "wte": [257, width], "ln_f/g": [width], "ln_f/b": [width]}
    for layer in range(layers):
        for name in ("ln_1/g", "ln_1/b", "ln_2/g", "ln_2/b"):
            shapes[f"h{layer}/{name}"] = [width]
        products = (("attn/c_attn", 1, 3), ("attn/c_proj", 1, 1), ("mlp/c_fc", 1, 4), ("mlp/c_proj", 4, 1))
        for name, rows, columns in products:
            shapes[f"h{layer}/{name}/w"] = [1, rows * width, columns * width]
            shapes[f"h{layer}/{name}/b"] = [columns * width]
    _write_checkpoint(folder / "model.ckpt", {f"model/{name}": shape for name, shape in shapes.items()})


def _write_checkpoint(prefix: Path, shapes: dict[str, list[int]]) -> None:
    import tenfold as tf

    with tf.Graph().as_default(), tf.Session() as session:
        for name, shape in shapes.items():
            tf.get_variable(name, shape)
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(prefix))


def write_mnist_records(folder: Path) -> None:
    """The training images as Examples, as the tutorial's own program writes them."""
    import tenfold as tf

    folder.mkdir(parents=True, exist_ok=True)
    images, labels = digits(500)
    with tf.python_io.TFRecordWriter(str(folder / "train.tfrecords")) as out:
        for image, label in zip(images, labels, strict=True):
            features = {
                "image_raw": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.tobytes()])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(label)])),
            }
            out.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


def write_speech(folder: Path) -> None:
    """A second of a tone for each of thirty speakers of three words, and of noise."""
    rng = np.random.RandomState(3)
    time = np.arange(16000) / 16000
    for word, pitch in (("yes", 300), ("no", 500), ("bed", 700)):
        (folder / word).mkdir(parents=True, exist_ok=True)
        for speaker in range(30):
            _write_wav(folder / word / f"{speaker:08x}_nohash_0.wav", np.sin(2 * np.pi * (pitch + speaker) * time))
    (folder / "_background_noise_").mkdir(exist_ok=True)
    _write_wav(folder / "_background_noise_" / "white.wav", rng.uniform(-1, 1, 3 * 16000))


def _write_wav(path: Path, samples: np.ndarray) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes((samples * 20000).astype("<i2").tobytes())


def write_named_entities(folder: Path) -> None:
    """Words, tags and letters of the text that lies there, and made-up vectors for the words."""
    lines = [line.split() for line in (folder / "test.txt").read_text(encoding="utf-8").splitlines() if line.strip()]
    words = [*sorted({line[0].lower() for line in lines}), "$UNK$", "$NUM$"]
    vocabularies = {
        "words": words,
        "tags": sorted({line[-1] for line in lines}),
        "chars": sorted({letter for line in lines for letter in line[0]}),
    }
    for name, entries in vocabularies.items():
        (folder / f"{name}.txt").write_text("\n".join(entries), encoding="utf-8")
    vectors = np.random.RandomState(4).randn(len(words), 300)
    np.savez_compressed(folder / "glove.6B.300d.trimmed.npz", embeddings=vectors)
