"""The server of a run's task whose program starts none, but names its cluster (runs/run_cluster.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.runs.run_cluster import RunCluster


def start(cluster: RunCluster) -> Callable[[], None] | None:
    """Starts it, and gives what waits for its end; None where the program has one. Blocks until it listens; raises as
    `tf.train.Server` does."""
    # late: a program that names no cluster pays nothing
    from tenfold.session import inprocess
    from tenfold.train.server_lib import Server

    if inprocess.find(f"grpc://{cluster.spec.task_address(cluster.job, cluster.index)}") is not None:
        return None
    return Server(cluster.spec, cluster.job, cluster.index).join
