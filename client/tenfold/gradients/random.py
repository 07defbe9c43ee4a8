"""Gradient rows of the random ops; the op definitions are in tenfold_core/opdefs/random.py.

A sample is not differentiable by shape or seed. RandomGamma is by alpha. Follows TensorFlow's ops/random_grad.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient, not_differentiable, not_implemented
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops
from tenfold.ops import math

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


not_differentiable(
    "LogUniformCandidateSampler",
    "Multinomial",
    "ParameterizedTruncatedNormal",
    "RandomPoissonV2",
    "RandomShuffle",
    "RandomStandardNormal",
    "RandomUniform",
    "RandomUniformInt",
    "StatelessRandomNormal",
    "StatelessRandomUniform",
    "StatelessTruncatedNormal",
    "TruncatedNormal",
    why="samples",
)
not_differentiable(
    "AllCandidateSampler",
    "FixedUnigramCandidateSampler",
    "LearnedUnigramCandidateSampler",
    "RandomGammaGrad",
    "RandomPoisson",
    "StatelessMultinomial",
    "StatelessRandomGetAlg",
    "StatelessRandomGetKeyCounter",
    "StatelessRandomGetKeyCounterAlg",
    "StatelessRandomNormalV2",
    "StatelessRandomPoisson",
    "StatelessRandomUniformFullInt",
    "StatelessRandomUniformFullIntV2",
    "StatelessRandomUniformInt",
    "StatelessRandomUniformIntV2",
    "StatelessRandomUniformV2",
    "StatelessTruncatedNormalV2",
    "ThreadUnsafeUnigramCandidateSampler",
    "UniformCandidateSampler",
    why="a random number depends on no input",
)
not_differentiable("RandomCrop", why="a place drawn by lot, as in TensorFlow")
not_implemented("StatelessShuffle")

not_differentiable("ComputeAccidentalHits", why="indices")


@gradient("RandomGamma")
def _random_gamma(op: Operation, g: Tensor) -> Any:
    # by alpha, whose samples are rows before it: a sample moves as its rank in the distribution says
    shape, alpha = op.inputs
    rank = array_ops.shape(shape)[0]
    ones = array_ops.fill(array_ops.reshape(rank, [1]), array_ops.constant(1))
    spread = array_ops.reshape(alpha, array_ops.concat([ones, array_ops.shape(alpha)], 0))
    slope = apply_op("RandomGammaGrad", alpha=spread, sample=op.outputs[0])
    return None, math.reduce_sum(g * slope, axis=math.range(rank))
