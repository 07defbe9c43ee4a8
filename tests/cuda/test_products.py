"""Products of matrices on a GPU give what they give on the CPU: MatMul, BatchMatMul*, broadcast, adjoint, empty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

from support.gpu_programs import with_gpus
from tenfold_core import errors
from tenfold_kernels.cuda import _simulated

if TYPE_CHECKING:
    from types import SimpleNamespace

TYPES = ("float32", "float64", "float16", "bfloat16", "complex64", "complex128")
#: (rows, inner, columns)
SIZES = ((1, 1, 1), (3, 4, 5), (7, 1, 2), (0, 3, 2), (2, 0, 3), (3, 2, 0), (17, 13, 11))
#: Leading dimensions that broadcast: all, one side only, neighbours alike, alternating.
BATCHES = (
    ((), ()),
    ((2,), (2,)),
    ((3,), ()),
    ((), (3,)),
    ((2, 3), (2, 3)),
    ((2, 1), (3,)),
    ((1, 3), (2, 3)),
    ((2, 1, 3), (1, 2, 1)),
    ((0,), (1,)),
)
#: Narrow floats are rounded at the end, where the order of a sum shows.
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5, "complex64": 1e-5}


def sample(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    random = np.random.default_rng(seed)
    values = random.uniform(-1.0, 1.0, shape)
    if dtype.startswith("complex"):
        values = values + 1j * random.uniform(-1.0, 1.0, shape)
    return np.asarray(values).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def tolerance(dtype: str) -> dict[str, float]:
    wide = TOLERANCE.get(dtype, 1e-12)
    return {"rtol": wide, "atol": wide}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("transposes", [(False, False), (True, False), (False, True), (True, True)], ids=str)
def test_a_product_is_the_cpus(gpu: SimpleNamespace, dtype: str, transposes: tuple[bool, bool]) -> None:
    for rows, inner, columns in SIZES:
        a = sample((inner, rows) if transposes[0] else (rows, inner), dtype, 1)
        b = sample((columns, inner) if transposes[1] else (inner, columns), dtype, 2)

        gpu.same("MatMul", [a, b], transpose_a=transposes[0], transpose_b=transposes[1], **tolerance(dtype))


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float16"])
@pytest.mark.parametrize("batches", BATCHES, ids=str)
def test_batches_are_broadcast(gpu: SimpleNamespace, dtype: str, batches: Any) -> None:
    for rows, inner, columns in ((2, 3, 4), (1, 5, 1), (2, 0, 3)):
        for adjoints in ((False, False), (True, False), (False, True), (True, True)):
            x = sample((*batches[0], *((inner, rows) if adjoints[0] else (rows, inner))), dtype, 1)
            y = sample((*batches[1], *((columns, inner) if adjoints[1] else (inner, columns))), dtype, 2)

            gpu.same("BatchMatMulV2", [x, y], adj_x=adjoints[0], adj_y=adjoints[1], **tolerance(dtype))


def test_batches_of_the_first_version_are_alike(gpu: SimpleNamespace) -> None:
    x, y = sample((2, 3, 4), "float64", 1), sample((2, 4, 5), "float64", 2)

    gpu.same("BatchMatMul", [x, y], rtol=1e-12)
    with pytest.raises(errors.InvalidArgumentError, match=r"compatible batch dimensions: \[2,3,4\] vs. \[1,4,5\]"):
        gpu.run("BatchMatMul", [x, y[:1]])


@pytest.mark.parametrize(
    ("op", "shapes", "text"),
    [
        ("MatMul", ((2, 3, 1), (3, 2)), r"In\[0\] is not a matrix. Instead it has shape \[2,3,1\]"),
        ("MatMul", ((2, 3), (2,)), r"In\[1\] is not a matrix. Instead it has shape \[2\]"),
        ("MatMul", ((2, 3), (2, 3)), r"Matrix size-incompatible: In\[0\]: \[2,3\], In\[1\]: \[2,3\]"),
        ("BatchMatMulV2", ((3,), (3, 2)), r"In\[0\] ndims must be >= 2: 1"),
        ("BatchMatMulV2", ((1, 2, 3), (2, 3)), r"Matrix size-incompatible: In\[0\]: \[1,2,3\], In\[1\]: \[2,3\]"),
        ("BatchMatMulV2", ((2, 2, 3), (3, 3, 2)), r"compatible batch dimensions: \[2,2,3\] vs. \[3,3,2\]"),
    ],
)
def test_what_does_not_fit_is_refused_as_on_the_cpu(gpu: SimpleNamespace, op: str, shapes: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        gpu.run(op, [sample(shape, "float32", 0) for shape in shapes])


def test_a_library_may_add_to_what_is_there(gpu: SimpleNamespace) -> None:
    from tenfold_kernels.cuda import _runtime

    runtime = _runtime.runtime_of(gpu.device)
    a, b, total = sample((2, 3), "float32", 1), sample((3, 4), "float32", 2), sample((2, 4), "float32", 3)
    out = runtime.to_device(total)

    runtime.libraries.matmul(runtime.to_device(a), runtime.to_device(b), out, accumulate=True)

    np.testing.assert_allclose(out.to_host(), total + a @ b, rtol=1e-5)


@pytest.mark.parametrize("asked", [False, True])
def test_float32_is_rounded_to_tf32_only_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch, asked: bool) -> None:
    """1 + 2⁻¹¹ and 1 + 2⁻¹⁰ are two float32, of which TF32 has the second; on a GPU cuBLAS may still decline."""
    from tenfold_kernels.cuda import _precision, _runtime

    monkeypatch.setenv(_precision.TF32, "1" if asked else "0")
    with with_gpus(1):
        runtime = _runtime.runtime(0)
        a = np.eye(32, dtype=np.float32) * np.float32(1 + 2.0**-11)
        b = np.eye(32, dtype=np.float32) * np.float32(1 + 2.0**-10)
        out = runtime.empty((32, 32), np.dtype(np.float32))

        runtime.libraries.matmul(runtime.to_device(a), runtime.to_device(b), out)

        exact, rounded = a @ b, b
        found = out.to_host()
        assert (found == exact).all() or (asked and (found == rounded).all())
        assert not (asked and isinstance(runtime, _simulated.SimulatedRuntime)) or (found == rounded).all()
