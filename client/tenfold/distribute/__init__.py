"""`tf.distribute`: what of TensorFlow's namespace parameter-server training uses: the server, cluster resolvers."""

from __future__ import annotations

from typing import NoReturn

from tenfold.distribute import cluster_resolver
from tenfold.left_out import hint as _hint
from tenfold.train.server_lib import Server

__all__ = ["Server", "cluster_resolver"]


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_hint(f'distribute.{name}')}")
