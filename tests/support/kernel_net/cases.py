"""Cases of kernels: an op, its attributes and its inputs, made from the op's name and a number.

A recipe (recipes_*.py) says what fits an op: it may set attributes and gives an item for each input, a tuple for random
values of that shape, anything else for just these values. An op without one gets inputs of one shape. One case in four
is made slightly wrong. Which cases are in the table, and TensorFlow's answers to them: answers.py and make.py.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from support.kernel_net import recipes
from support.kernel_net.draw import Draw, attributes, objects, spoil
from tenfold_core import dtypes, opdefs
from tenfold_core.node_signature import signature

if TYPE_CHECKING:
    from tenfold_core.dtypes import DType


#: Ops, by how they begin, that are asked about finite numbers alone.
PLAIN = (
    *("TopK", "NthElement", "Cholesky", "BatchCholesky", "LRNGrad", "Conv", "Depthwise", "ScaleAndTranslate", "Matrix"),
    *(
        "BatchMatrix",
        "SelfAdjoint",
        "BatchSelfAdjoint",
        "Svd",
        "BatchSvd",
        "Qr",
        "Eig",
        "LogMatrix",
        "Lu",
        "Tridiagonal",
    ),
    *(
        "FakeQuantWithMinMaxVars",
        "FusedBatchNorm",
        "BatchNorm",
        "LSTM",
        "BlockLSTM",
        "GRU",
        "CTC",
        "Sdca",
        "Dilation2D",
    ),
    *(
        "Resize",
        "CropAndResize",
        "Mfcc",
        "AudioSpectrogram",
        "RandomPoisson",
        "RandomGamma",
        "Parameterized",
        "Stateless",
    ),
    *("FFT", "IFFT", "RFFT", "IRFFT", "BatchFFT", "BatchIFFT", "Combined", "NonMax", "Erf", "AdjustHue", "Igamma"),
)


@dataclass(frozen=True)
class Case:
    """One node and what it is fed."""

    op: str
    number: int
    attrs: dict[str, Any]
    inputs: tuple[np.ndarray, ...]

    def check(self) -> int:
        """A number that differs where attributes or inputs do."""
        found = zlib.crc32(repr(sorted((name, str(value)) for name, value in self.attrs.items())).encode())
        for value in self.inputs:
            data = repr(value.tolist()).encode() if value.dtype == object else value.tobytes()
            found = zlib.crc32(f"{value.dtype}{value.shape}".encode() + data, found)
        return found & 0xFFFF

    def __str__(self) -> str:
        inputs = ", ".join(f"{value.dtype}{list(value.shape)} {value.tolist()}" for value in self.inputs)
        return f"{self.op}({inputs}) {self.attrs}"


def case_of(op: str, number: int) -> Case:
    """The case of an op that has this number; always the same."""
    definition = opdefs.get(op)
    d = Draw(f"{op} {number}")
    d.is_plain = op.startswith(PLAIN)
    attrs = attributes(d, definition)
    items = recipes.of(op)(d, attrs)
    types = signature(definition, attrs).input_types
    assert len(items) == len(types), f"{op}: {len(items)} items for {len(types)} inputs"
    inputs = [_value(d, dtype, item) for dtype, item in zip(types, items, strict=True)]
    if number % 4 == 3:
        spoil(d, op, attrs, inputs)
    return Case(op, number, attrs, tuple(inputs))


def _value(d: Draw, dtype: DType, item: Any) -> np.ndarray:
    if isinstance(item, tuple):
        return d.array(dtype, item)
    if dtype.base_dtype is dtypes.string:
        if isinstance(item, bytes):
            return objects([item]).reshape(())
        made = np.asarray(item, object)
        return objects([each if isinstance(each, bytes) else b"%d" % each for each in made.ravel()]).reshape(made.shape)
    kind = np.dtype(dtype.base_dtype.as_numpy_dtype)
    made = np.asarray(item)
    if made.dtype.kind == "c" and kind.kind != "c":
        made = made.real
    if kind.kind == "u" and made.dtype.kind in "if":
        made = np.abs(made)
    return np.ascontiguousarray(made.astype(kind)).reshape(made.shape)
