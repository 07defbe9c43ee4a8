"""The files of MNIST: a header of big-endian numbers, then bytes; mostly compressed by gzip.

An image file begins with 2051, the number of images, rows and columns; a file of labels with 2049 and the number of
labels. input_data.py makes data sets of them.
"""

from __future__ import annotations

import gzip
import os
import struct
from typing import IO, TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

_IMAGES, _LABELS = 2051, 2049
_GZIP = b"\x1f\x8b"


def extract_images(f: Any) -> np.ndarray:
    """The images of an open file, compressed or not: uint8 [images, rows, columns, 1].

    Raises ValueError if these are no images, or fewer than the file says.
    """
    images, rows, columns, pixels = _numbers(f, _IMAGES, 3, "MNIST image file")
    return _array(pixels, f, images * rows * columns).reshape(images, rows, columns, 1)


def extract_labels(f: Any, one_hot: bool = False, num_classes: int = 10) -> np.ndarray:
    """The labels of an open file, compressed or not: uint8 [labels], or float64 [labels, num_classes] if `one_hot`."""
    labels, rest = _numbers(f, _LABELS, 1, "MNIST label file")
    numbers = _array(rest, f, labels)
    return dense_to_one_hot(numbers, num_classes) if one_hot else numbers


def dense_to_one_hot(labels_dense: np.ndarray, num_classes: int) -> np.ndarray:
    """Class numbers [labels] as rows with a 1: float64 [labels, num_classes]. Raises ValueError for other numbers."""
    if len(labels_dense) and not (labels_dense.min() >= 0 and labels_dense.max() < num_classes):
        raise ValueError(f"Labels from {labels_dense.min()} to {labels_dense.max()} are no classes of {num_classes}")
    rows: np.ndarray = np.eye(num_classes)[labels_dense]
    return rows


def find(folder: str, name: str, needed: Sequence[str]) -> str:
    """The path of the file `name` or, unpacked, of the same without `.gz`.

    Raises FileNotFoundError that says which files belong into the folder: nothing is downloaded.
    """
    for path in (os.path.join(folder, name), os.path.join(folder, name.removesuffix(".gz"))):
        if os.path.isfile(path):
            return path
    raise FileNotFoundError(
        f"{name} is not in {os.path.abspath(folder)}, and Tenfold downloads no data. Put the files of the data set "
        f"there, as they are or unpacked: {', '.join(needed)}. Or ask for fake_data=True."
    )


def _numbers(f: Any, magic: int, count: int, kind: str) -> tuple[Any, ...]:
    stream = _unpacked(f)
    name = getattr(f, "name", "the file")
    head = stream.read(4 * (count + 1))
    if len(head) < 4 * (count + 1):
        raise ValueError(f"{name} ends within its header: no {kind}")
    found, *sizes = struct.unpack(f">{count + 1}I", head)
    if found != magic:
        raise ValueError(f"Invalid magic number {found} in {kind}: {name} (it begins with {magic})")
    return (*sizes, stream)


def _unpacked(f: Any) -> IO[bytes]:
    start = f.read(2)
    f.seek(0)
    return gzip.GzipFile(fileobj=f) if start == _GZIP else f  # type: ignore[return-value]


def _array(stream: IO[bytes], f: Any, size: int) -> np.ndarray:
    values = np.frombuffer(stream.read(size), np.uint8)
    if values.size < size:
        raise ValueError(f"{getattr(f, 'name', 'The file')} has {values.size} bytes of data; its header says {size}")
    return values.copy()
