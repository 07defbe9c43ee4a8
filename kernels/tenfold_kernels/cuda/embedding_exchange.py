"""Lookups of embedding variables by a worker on a GPU: ids and rows are split and merged in the host's memory, where
they leave and arrive. The kernels are those of cpu/embedding_exchange.py."""

from __future__ import annotations

from tenfold_kernels.registry import EVERYTHING, shared_kernel

shared_kernel("EmbeddingMerge", "EmbeddingRows", "EmbeddingSplit", "EmbeddingSum", host=(EVERYTHING,))
