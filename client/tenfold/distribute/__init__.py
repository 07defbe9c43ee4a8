"""`tf.distribute`: what of TensorFlow's namespace parameter-server training uses: the server, cluster resolvers."""

from __future__ import annotations

from tenfold.distribute import cluster_resolver
from tenfold.train.server_lib import Server

__all__ = ["Server", "cluster_resolver"]
