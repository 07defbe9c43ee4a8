"""Gradient rows of the random ops; the op definitions are in framework/opdefs/random.py.

A sample does not depend smoothly on the shape or seed; RandomGamma does on alpha, and is refused by name.
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
