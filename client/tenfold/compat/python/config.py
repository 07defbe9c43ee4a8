"""Functions of DeepRec's `tensorflow.python.framework.config`."""

from __future__ import annotations

__all__ = ["enable_group_embedding"]


def enable_group_embedding(fusion_type: str = "") -> None:
    """Chooses kernels of DeepRec's for groups of lookups; here what is fused is decided when the graph is compiled.
    Raises ValueError for another type than "localized", "collective" or none."""
    if fusion_type not in ("", "localized", "collective"):
        raise ValueError(f"fusion_type must be 'localized' or 'collective', not {fusion_type!r}")
