"""Special functions, element by element: gamma's relatives, the incomplete gamma and beta, the inverse error function.

Computed in double by compiled loops (_compiled/special.py) and rounded to the type; two inputs broadcast. Outputs are
fresh. Follows cwise_op_*.cc and betainc_op.cc in names and edge cases.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold_kernels.arrays import Array, as_array, broadcast_shape, invalid, output_type, shape_text
from tenfold_kernels.registry import Compute, KernelNode, kernel, no_kernel
from tenfold_kernels.typesets import COMPLEX, FLOATING

no_kernel("BesselJ0", "BesselJ1", "BesselK0", "BesselK0e",
          "BesselK1", "BesselK1e", "BesselY0", "BesselY1", "Dawsn", "Expint", "FresnelCos", "FresnelSin", "Spence",
          device="CPU", why="no program of the op census uses it")  # fmt: skip

#: Op → loop.
_LOOPS = {
    "BesselI0": "bessel_i0",
    "BesselI0e": "bessel_i0e",
    "BesselI1": "bessel_i1",
    "BesselI1e": "bessel_i1e",
    "Digamma": "digamma",
    "Erfinv": "erfinv",
    "Ndtri": "ndtri",
    "Igamma": "igamma",
    "Igammac": "igammac",
    "IgammaGradA": "igamma_grad_a",
    "Zeta": "zeta",
    "Polygamma": "polygamma",
}


def run(loop: Any, inputs: tuple[Array, ...], dtype: Any) -> Array:
    shape = inputs[0].shape if len(inputs) == 1 else broadcast_shape(inputs)
    wide = [np.ascontiguousarray(np.broadcast_to(x, shape), dtype=np.float64).reshape(-1) for x in inputs]
    out = np.empty(wide[0].size)
    loop(*wide, out)
    return out.reshape(shape).astype(dtype)


def erf(x: Array) -> Array:
    """The error function, for kernels that fuse it."""
    from tenfold_kernels.cpu._compiled import special

    return run(special.loop("erf"), (x,), x.dtype)


@kernel(*_LOOPS, T=FLOATING)
def build_special(node: KernelNode) -> Compute:
    from tenfold_kernels.cpu._compiled import special

    loop, dtype = special.loop(_LOOPS[node.op]), output_type(node)
    return lambda *inputs: run(loop, inputs, dtype)


@kernel("Betainc", T=FLOATING)
def build_betainc(node: KernelNode) -> Compute:
    """(a, b, x); scalars repeat, other shapes must be equal."""
    from tenfold_kernels.cpu._compiled import special

    loop, dtype = special.loop("betainc"), output_type(node)

    def compute(a: Array, b: Array, x: Array) -> Array:
        shapes = {v.shape for v in (a, b, x) if v.ndim}
        if len(shapes) > 1:
            raise invalid("Shapes of a, b and x are inconsistent: " + ", ".join(shape_text(v.shape) for v in (a, b, x)))
        return run(loop, (a, b, x), dtype)

    return compute


@kernel("Xlog1py", T=FLOATING | COMPLEX)
def build_xlog1py(node: KernelNode) -> Compute:
    """x · log1p(y), 0 where x is 0."""
    dtype = output_type(node)

    def compute(x: Array, y: Array) -> Array:
        broadcast_shape((x, y))
        return as_array(np.where(x == 0, 0, x * np.log1p(y))).astype(dtype, copy=False)

    return compute
