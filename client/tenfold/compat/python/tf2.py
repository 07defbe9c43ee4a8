"""`tensorflow.python.tf2`: whether TensorFlow 2's behaviour is on. It never is."""

from __future__ import annotations

from tenfold.compat import disable_v2_behavior as disable
from tenfold.compat import enable_v2_behavior as enable

__all__ = ["disable", "enable", "enabled"]


def enabled() -> bool:
    """Always False."""
    return False
