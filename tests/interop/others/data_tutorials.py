"""Small made-up data for the tutorials of table_tutorials.py, in the forms in which they read it."""

from __future__ import annotations

import gzip
import pickle
import random
from typing import TYPE_CHECKING

import numpy as np
from others.data_models import write_cifar_pickles, write_packed_mnist

if TYPE_CHECKING:
    from pathlib import Path

_WORDS = ("to", "be", "or", "not", "that", "is", "the", "question")


def write_downloaded_cifar(folder: Path) -> None:
    """CIFAR-10 as Python's pickles with the names of its classes, and the archive that was downloaded for it."""
    write_cifar_pickles(folder)
    names = [f"class {number}".encode() for number in range(10)]
    (folder / "cifar-10-batches-py" / "batches.meta").write_bytes(pickle.dumps({b"label_names": names}, protocol=2))
    (folder / "cifar-10-python.tar.gz").touch()


def write_mnist_with_errors(folder: Path) -> None:
    """All 70,000 digits, three of a hundred with another's label: programs show what they got wrong."""
    write_packed_mnist(folder)
    for name in ("train", "t10k"):
        path = folder / f"{name}-labels-idx1-ubyte.gz"
        packed = bytearray(gzip.decompress(path.read_bytes()))
        for at in range(8, len(packed), 33):
            packed[at] = (packed[at] + 1) % 10
        path.write_bytes(gzip.compress(bytes(packed), 1))


def write_lines(folder: Path) -> None:
    """A text of a few lines."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(13)
    (folder / "file.txt").write_text("".join(" ".join(rng.choices(_WORDS, k=5)) + "\n" for _ in range(20)))


def _picture(rng: np.random.RandomState, height: int, width: int) -> object:
    from PIL import Image

    return Image.fromarray(rng.randint(0, 256, (height, width, 3)).astype(np.uint8))


def write_cats_and_dogs(folder: Path) -> None:
    """Four pictures, each named after what it shows."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.RandomState(14)
    for number in range(4):
        _picture(rng, 20, 30).save(folder / f"{('cat', 'dog')[number % 2]}_{number}.png")  # type: ignore[attr-defined]


def write_faces(folder: Path) -> None:
    """A hundred pictures of 96 · 96."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.RandomState(15)
    for number in range(100):
        _picture(rng, 96, 96).save(folder / f"{number}.jpg")  # type: ignore[attr-defined]


def write_sketches(folder: Path) -> None:
    """Pictures of 256 · 256 in a folder for each of five classes."""
    rng = np.random.RandomState(16)
    for kind in range(5):
        (folder / f"class{kind}").mkdir(parents=True, exist_ok=True)
        for number in range(20):
            _picture(rng, 256, 256).save(folder / f"class{kind}" / f"{number}.png")  # type: ignore[attr-defined]


def make_folder(folder: Path) -> None:
    """An empty folder: a program writes there and does not make it."""
    folder.mkdir(parents=True, exist_ok=True)
