"""`basic_train_loop`: trains in one session after another, a new one whenever a server has restarted.

Goes with supervisor.py. Follows TF 1.15's training/basic_loops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tenfold.train.supervisor import Supervisor


def basic_train_loop(
    supervisor: Supervisor,
    train_step_fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    master: str = "",
) -> None:
    """Calls `train_step_fn(session, …)` until the supervisor stops, in a new session after each AbortedError."""
    while True:
        try:
            with supervisor.managed_session(master) as sess:
                while not supervisor.should_stop():
                    train_step_fn(sess, *(args or ()), **(kwargs or {}))
            return
        except errors.AbortedError as error:
            logging.info("A server of the cluster has restarted; the training goes on in a new session: %s", error)
