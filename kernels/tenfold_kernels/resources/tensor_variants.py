"""A tensor as a variant's value: what a sparse tensor's three parts are in a pipeline's elements.

A DT_VARIANT edge carries them in an object array. Between tasks one travels as TensorFlow encodes it. Used by
cpu/sparse_serialize.py, cpu/dataset_files.py and resources/messages.py. Follows variant_op_registry.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tenfold_kernels.arrays import objects

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

TYPE_NAME = "tensorflow::Tensor"


@dataclass(frozen=True, slots=True, eq=False)
class TensorVariant:
    """The value is never written to."""

    value: Array


def vector_of(*values: Array) -> Array:
    """A vector of variants, read-only."""
    out = objects([TensorVariant(value) for value in values])
    out.setflags(write=False)
    return out
