"""Gradient rows of Parquet files: there are none; definitions in tenfold_core/opdefs/parquet.py."""

from __future__ import annotations

from tenfold.gradients.registry import not_differentiable

not_differentiable("ParquetTabularDatasetV1", why="data that is read")
