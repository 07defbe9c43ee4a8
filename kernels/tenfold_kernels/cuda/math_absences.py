"""Ops of this family that have no kernel on a GPU, and why: one that is placed there runs on the CPU if it may."""

from __future__ import annotations

from tenfold_kernels.registry import no_kernel

no_kernel(
    "Angle", device="GPU", why="loops have arithmetic for complex numbers, and no functions"
)  # fmt: skip
no_kernel(
    "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Invert", "LeftShift", "RightShift", "PopulationCount", "ApproximateEqual",
    "ClipByValue", "NextAfter", device="GPU", why="no program of the op census uses it",
)  # fmt: skip
no_kernel(
    "Bincount", "DenseBincount", "RaggedBincount", "SparseBincount", "HistogramFixedWidth", "Bucketize", "RaggedRange",
    device="GPU", why="it counts, or looks for, numbers that it has to check; no program of the op census uses it",
)  # fmt: skip
