"""Gradient rows of the random ops; the op definitions are in tenfold_core/opdefs/random.py.

A sample is not differentiable by shape or seed. RandomGamma is differentiable by alpha, which is not implemented.
"""

from __future__ import annotations

from tenfold.gradients.registry import not_differentiable, not_implemented

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
not_implemented(
    "RandomGamma",
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
not_implemented(
    "RandomCrop",
    "StatelessParameterizedTruncatedNormal",
    "StatelessRandomGammaV2",
    "StatelessRandomGammaV3",
    "StatelessShuffle",
)

not_differentiable("ComputeAccidentalHits", why="indices")
