"""`tf.distribute`: the part of TensorFlow's namespace that parameter-server training uses: the cluster resolvers."""

from __future__ import annotations

from tenfold.distribute import cluster_resolver

__all__ = ["cluster_resolver"]
