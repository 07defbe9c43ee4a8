"""Gradient rows of what graph optimizers put in: none, since no client differentiates a rewritten graph."""

from __future__ import annotations

from tenfold.gradients.registry import not_implemented

not_implemented(
    "FusedPadConv2D",
    "FusedResizeAndPadConv2D",
    "ParallelConcat",
    "_ArrayToList",
    "_FusedBatchNormEx",
    "_FusedConv2D",
    "_FusedDepthwiseConv2dNative",
    "_FusedMatMul",
    "_ListToArray",
    "_ParallelConcatStart",
    "_ParallelConcatUpdate",
    "_UnaryOpsComposition",
)
