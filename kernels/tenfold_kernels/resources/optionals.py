"""Optionals: some tensors, or none. What tf.cond's gradient keeps the values of a branch in that may not have run.

A DT_VARIANT edge carries one in a 0-d object array, as it does a TensorList. Used by cpu/dataset_optional.py and
cpu/math_variants.py. Follows optional_ops_util.h.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tenfold_kernels.arrays import invalid, scalar_object

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Optional:
    """Immutable; `components` is None where there is nothing."""

    components: tuple[Array, ...] | None = None

    def as_array(self) -> Array:
        """The value of a variant edge."""
        return scalar_object(self)


def optional_of(value: Array) -> Optional:
    """What a variant edge carries. Raises InvalidArgumentError for another kind of variant."""
    if value.ndim:
        raise invalid("Input variant must be scalar.")
    found = value.item()
    if not isinstance(found, Optional):
        raise invalid(f"Input is not an OptionalVariant object. It is a {type(found).__name__}.")
    return found
