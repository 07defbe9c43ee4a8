"""Every op with a kernel on a GPU, in every type that it takes, of no, one and a prime number of rows, and of many.

What it gives is what the CPU gives. The rows are in tests/support/gpu_shapes.py; what keeps a state (variables, arrays,
stacks) is in test_odd_states.py. test_census.py fails for an op without a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support import dry_gpu, gpu_kernels, gpu_shapes
from tenfold_core import dtypes, opdefs

if TYPE_CHECKING:
    from types import SimpleNamespace

#: Dry, test_types.py compiles enough: see test_ptx.py.
pytestmark = [pytest.mark.thorough, pytest.mark.skipif(dry_gpu.is_on(), reason="would compile for many minutes")]

LENGTHS, MANY = (0, 1, 7), 131
ELEMENTWISE = [op for op in gpu_kernels.gpu_ops() if gpu_kernels.elementwise(op)]
CASTS = gpu_kernels.gpu_rows("Cast")
OPS = sorted({*gpu_shapes.SHAPED, *ELEMENTWISE})


def compare(gpu: SimpleNamespace, op: str, dtype: Any, n: int, others: dict[str, Any]) -> None:
    make, attrs = gpu_shapes.SHAPED.get(op, (lambda v, n: [v(n) for _ in gpu_kernels.inputs_of(op)], {}))
    close = gpu_kernels.CLOSE.get(dtype.name if dtype else "bool", 1e-9)
    inputs = make(gpu_kernels.maker(op, dtype), n)

    gpu.same(op, inputs, rtol=close, atol=close, **gpu_kernels.type_attrs(op, dtype), **others, **attrs)


@pytest.mark.parametrize("op", OPS)
def test_an_op_of_odd_shapes_gives_what_the_cpu_gives(gpu: SimpleNamespace, op: str) -> None:
    types = list(gpu_kernels.types_of(op))
    assert types
    for dtype, others in types:
        for n in LENGTHS if dtype not in (types[0][0], dtypes.float32) else (*LENGTHS, MANY):
            try:
                compare(gpu, op, dtype, n, others)
            except Exception as error:
                error.add_note(f"{op} of {n} rows of {dtype and dtype.name}")
                raise


@pytest.mark.parametrize("source", sorted({each for row in CASTS for each in row.types["SrcT"]}, key=str), ids=str)
def test_a_type_is_cast_to_every_type(gpu: SimpleNamespace, source: Any) -> None:
    targets = {each for row in CASTS if source in row.types["SrcT"] for each in row.types["DstT"]}
    for n in (*LENGTHS, MANY):
        x = gpu_kernels.maker("Cast", source)(n)
        for target in sorted(targets, key=str):
            gpu.same("Cast", [x], DstT=target, rtol=1e-9)


@pytest.mark.parametrize("op", [op for op in gpu_shapes.SHAPED if any(gpu_kernels.other_types(op))])
def test_indices_axes_and_outputs_are_of_every_type(gpu: SimpleNamespace, op: str) -> None:
    make, attrs = gpu_shapes.SHAPED[op]
    types = [dtype for dtype, _ in gpu_kernels.types_of(op)]
    dtype = dtypes.float32 if dtypes.float32 in types else types[0]
    of_inputs = {each.type_attr for each in opdefs.get(op).inputs}
    for attr, other in gpu_kernels.other_types(op):
        for n in (0, 7):
            inputs = gpu_kernels.converted(op, make(gpu_kernels.maker(op, dtype), n), attr, other)
            said = gpu_kernels.type_attrs(op, dtype) | attrs | ({} if attr in of_inputs else {attr: other})

            gpu.same(op, inputs, rtol=3e-5, atol=3e-5, **said)


@pytest.mark.parametrize("n", LENGTHS)
def test_bits_of_every_type_are_seen_as_every_type(gpu: SimpleNamespace, n: int) -> None:
    (row,) = gpu_kernels.gpu_rows("Bitcast")
    for source in sorted(row.types["T"] - {dtypes.bool_}, key=str):
        for target in sorted(row.types["type"] - {dtypes.bool_}, key=str):
            larger = target.size // source.size
            x = gpu_kernels.maker("Bitcast", source)(n, *([larger] if larger > 1 else []))

            found = gpu.run("Bitcast", [x], type=target)

            assert found.tobytes() == x.tobytes(), (source, target)
            assert found.shape == (n, *([source.size // target.size] if source.size > target.size else []))
