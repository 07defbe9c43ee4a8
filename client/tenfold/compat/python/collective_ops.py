"""`tensorflow.python.ops.collective_ops`: reductions that tasks agree on by numbers. They are not served.

Programs import the module for a mode that few of them run in. Each function says what to use.
"""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["all_gather", "all_reduce", "broadcast_recv", "broadcast_send"]


def _left_out(what: str) -> NoReturn:
    raise NotImplementedError(
        f"collective_ops.{what} is not part of Tenfold: tf.contrib.all_reduce and tf.contrib.nccl reduce what several "
        "devices hold in one graph, tf.train.SyncReplicasOptimizer sums the gradients of tasks"
    )


def all_reduce(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError."""
    _left_out("all_reduce")


def all_gather(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError."""
    _left_out("all_gather")


def broadcast_send(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError."""
    _left_out("broadcast_send")


def broadcast_recv(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError."""
    _left_out("broadcast_recv")
