"""Gradient rows of stochastic dual coordinate ascent; the op definitions are in tenfold_core/opdefs/sdca.py."""

from __future__ import annotations

from tenfold.gradients.registry import not_differentiable

not_differentiable("SdcaOptimizer", "SdcaOptimizerV2", "SdcaShrinkL1", why="it trains, and is not trained through")
not_differentiable("SdcaFprint", why="a fingerprint is a step function of its text")
