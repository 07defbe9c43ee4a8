"""Which inputs must stay as they are while a kernel runs, by argument, family and type."""

from __future__ import annotations

import pytest

from tenfold_core import dtypes
from tenfold_kernels import steering

F32, INT = dtypes.float32, dtypes.int32


@pytest.mark.parametrize(
    ("op", "argument", "dtype", "expected"),
    [
        ("QueueEnqueueV2", "handle", dtypes.resource, False),
        ("TensorArrayWriteV3", "value", F32, True),
        ("TensorArrayWriteV3", "value", dtypes.variant, False),
        ("Assign", "ref", F32.as_ref, False),
        ("Gather", "params", INT, False),
        ("Gather", "indices", INT, True),
        ("UniqueV2", "x", F32, True),
        ("CropAndResize", "boxes", F32, True),
        ("Sum", "input", INT, False),
        ("Sum", "reduction_indices", INT, True),
        ("Identity", "input", INT, False),
        ("Reshape", "tensor", INT, False),
        ("Softmax", "logits", F32, False),
        ("FFT", "input", dtypes.complex64, False),
        ("OneHot", "indices", INT, True),
        ("StringToNumber", "string_tensor", dtypes.string, True),
    ],
)
def test_what_steers(op: str, argument: str, dtype: dtypes.DType, expected: bool) -> None:
    assert steering.steers(op, argument, dtype) is expected


def test_each_input_has_the_name_of_its_argument() -> None:
    assert steering.argument_names("Add", 2, {}) == ["x", "y"]
    assert steering.argument_names("Add", 3, {}) == ["", "", ""]
    assert steering.argument_names("ConcatV2", 3, {"N": 2}) == ["values", "values", "axis"]
    types = {"Tcomponents": (F32, INT)}
    assert steering.argument_names("QueueEnqueueV2", 3, types) == ["handle", "components", "components"]
