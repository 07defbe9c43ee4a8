"""Gradient rows of the fused ops that graph optimizers insert: none, since clients never differentiate those graphs."""

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
