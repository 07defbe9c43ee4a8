"""What NumPy computes until the loops of convolutions, pools and normalisations are loaded is what they compute."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_kernels.cpu._compiled import compiling, machine_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tenfold_kernels.cpu._compiled.loop_spec import LoopSpec

RNG = np.random.default_rng(9)


class StandIns(compiling.Loops):
    """Gives no machine code where there is a stand-in, and keeps the names of those that it gave."""

    def __init__(self) -> None:
        super().__init__("blocking")
        self.given: list[str] = []

    def get(self, spec: LoopSpec, stand_in: Callable[..., Any] | None, *, heavy: bool = False) -> Callable[..., Any]:
        if stand_in is None:
            return machine_code.compile_spec(spec)
        self.given.append(stand_in.__name__)
        return stand_in


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> Callable[[], contextlib.AbstractContextManager[StandIns]]:
    @contextlib.contextmanager
    def use() -> Iterator[StandIns]:
        with monkeypatch.context() as patch:
            found = StandIns()
            patch.setattr(compiling, "loops", found)
            yield found

    return use


def sample(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def window(stride: int, padding: bytes = b"SAME", dilation: int = 1) -> dict[str, Any]:
    return {"strides": [1, stride, stride, 1], "padding": padding, "dilations": [1, dilation, dilation, 1]}


IMAGE, FILTER, SIZES = sample(8, 9, 9, 16), sample(3, 3, 16, 80), np.array([8, 9, 9, 16], np.int32)
POOL: dict[str, Any] = {"ksize": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "padding": b"SAME"}
ROWS, VECTOR = sample(6, 8, 8, 16), sample(16)
NANS = np.where(RNG.random((3, 7, 7, 16)) < 0.2, np.nan, RNG.integers(0, 4, (3, 7, 7, 16))).astype(np.float32)
LRN: dict[str, Any] = {"depth_radius": 4, "bias": 1.5, "alpha": 0.1}
NONE = np.zeros(0, np.float32)

#: (op, inputs, attrs, stand-ins that it uses)
CASES: list[tuple[str, list[Any], dict[str, Any], set[str]]] = [
    ("Conv2D", [IMAGE, FILTER], window(1), {"_products_in_numpy", "_forward_in_numpy"}),
    ("Conv2D", [IMAGE, FILTER], window(2, b"VALID"), {"_products_in_numpy"}),
    ("Conv2D", [IMAGE, FILTER], window(1, b"SAME", 2), {"_gather_in_numpy"}),
    ("Conv2DBackpropInput", [SIZES, FILTER, sample(8, 9, 9, 80)], window(1), {"_products_in_numpy"}),
    ("Conv2DBackpropInput", [SIZES, FILTER, sample(8, 5, 5, 80)], window(2), {"_scatter_in_numpy"}),
    (
        "Conv2DBackpropFilter",
        [IMAGE, np.array(FILTER.shape, np.int32), sample(8, 9, 9, 80)],
        window(1),
        {"_products_in_numpy", "_filter_in_numpy"},
    ),
    ("MaxPool", [NANS], POOL, {"_max_in_numpy"}),
    ("MaxPoolGrad", [NANS, sample(3, 4, 4, 16), sample(3, 4, 4, 16)], POOL, {"_max_gradient_in_numpy"}),
    *(("LRN", [ROWS], {**LRN, "beta": beta}, {"_forward_in_numpy"}) for beta in (0.5, 0.75)),
    ("LRNGrad", [ROWS, sample(6, 8, 8, 16), ROWS], {**LRN, "beta": 0.75}, {"_backward_in_numpy"}),
    (
        "FusedBatchNormV3",
        [ROWS, VECTOR, VECTOR, NONE, NONE],
        {"epsilon": 0.01},
        {"_moments_in_numpy", "_scale_in_numpy"},
    ),
    (
        "FusedBatchNormGradV3",
        [ROWS, sample(6, 8, 8, 16), VECTOR, VECTOR, np.abs(VECTOR), np.zeros((), np.float32)],
        {"epsilon": 0.01},
        {"_sums_in_numpy", "_back_in_numpy"},
    ),
]


@pytest.mark.parametrize(("op", "inputs", "attrs", "names"), CASES)
def test_stand_ins_give_what_the_loops_give(
    ops: Any, stand_ins: Any, op: str, inputs: list[Any], attrs: dict[str, Any], names: set[str]
) -> None:
    compiled = ops.run(op, inputs, **attrs)
    with stand_ins() as found:
        plain = ops.run(op, inputs, **attrs)

    assert names <= set(found.given)
    pairs = zip(plain, compiled, strict=True) if isinstance(plain, (list, tuple)) else [(plain, compiled)]
    for ours, theirs in pairs:
        bound = 3e-5 * np.nanmax(np.abs(theirs), initial=0)
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=bound)


def test_modules_of_loops_import_no_numba() -> None:
    code = (
        "import sys; from tenfold_kernels.cpu import nn_conv, nn_norm, nn_pool; "
        "from tenfold_kernels.cpu._compiled import convolve, normalize, pooling, response, windows, winograd; "
        "print([name for name in sys.modules if name.split('.')[0] in ('numba', 'llvmlite')])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)

    assert done.stdout.strip() == "[]"
