"""Optionals and tensors as variants: what an edge carries, and what is no such value."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels.resources.optionals import Optional, optional_of
from tenfold_kernels.resources.tensor_variants import TensorVariant, vector_of


@pytest.mark.parametrize("made", [Optional(), Optional(()), Optional((np.ones(2),))], ids=["none", "empty", "one"])
def test_an_optional_travels_as_a_scalar(made: Optional) -> None:
    edge = made.as_array()
    assert (edge.shape, edge.dtype) == ((), object)
    assert optional_of(edge) is made


def test_what_is_no_optional_is_refused() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="Input variant must be scalar"):
        optional_of(Optional().as_array().reshape(1))
    with pytest.raises(errors.InvalidArgumentError, match=r"not an OptionalVariant object. It is a TensorVariant\."):
        optional_of(vector_of(np.ones(1)).reshape(()))


def test_a_vector_of_variants_is_read_only() -> None:
    values = np.ones(2), np.zeros(3)
    vector = vector_of(*values)
    assert (vector.shape, vector.dtype, vector.flags.writeable) == ((2,), object, False)
    assert all(type(item) is TensorVariant for item in vector)
    assert [item.value is value for item, value in zip(vector, values, strict=True)] == [True, True]
    assert vector_of().shape == (0,)
    assert vector[0] != TensorVariant(values[0]), "variants are the same only if they are the same object"
