"""How random samples move with their parameters: RandomGammaGrad.

Computed in double by a compiled loop (_compiled/special.py): the derivative that keeps a sample's rank. Follows
Eigen's gamma_sample_der_alpha in meaning.
"""

from __future__ import annotations

from tenfold_core import dtypes
from tenfold_kernels.arrays import output_type
from tenfold_kernels.cpu.special import run
from tenfold_kernels.registry import Compute, KernelNode, kernel


@kernel("RandomGammaGrad", T={dtypes.float32, dtypes.float64})
def build_random_gamma_grad(node: KernelNode) -> Compute:
    """(alpha, sample) → d sample / d alpha; they broadcast."""
    from tenfold_kernels.cpu._compiled import special

    loop, dtype = special.loop("gamma_sample_slope"), output_type(node)
    return lambda alpha, sample: run(loop, (alpha, sample), dtype)
