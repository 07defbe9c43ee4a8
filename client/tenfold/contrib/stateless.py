"""`tf.contrib.stateless`: random numbers that shape and seed alone decide, under their contrib names."""

from __future__ import annotations

from tenfold.ops.random_stateless import (
    stateless_multinomial,
    stateless_random_normal,
    stateless_random_uniform,
    stateless_truncated_normal,
)

__all__ = [
    "stateless_multinomial",
    "stateless_random_normal",
    "stateless_random_uniform",
    "stateless_truncated_normal",
]
