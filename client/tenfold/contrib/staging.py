"""`tf.contrib.staging`: StagingArea, which is in ops/staging.py."""

from __future__ import annotations

from tenfold.ops.staging import StagingArea

__all__ = ["StagingArea"]
