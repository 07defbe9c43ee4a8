"""`tf.distribute`: the part of TensorFlow's namespace that parameter-server training uses: servers, cluster resolvers."""

from __future__ import annotations

from tenfold.distribute import cluster_resolver
from tenfold.train.server_lib import Server

__all__ = ["Server", "cluster_resolver"]
