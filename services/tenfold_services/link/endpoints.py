"""What a task answers over its links: the steps of sessions, and the calls between workers.

`endpoints` gives the listener and the dialers their method table for each link. The methods are in master_endpoint.py
and worker_endpoint.py; which number means what is in tenfold/framework/link_calls.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .master_endpoint import MasterEndpoint
from .worker_endpoint import WorkerEndpoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..interfaces import MasterInterface
    from ..master.local_steps import LocalSteps
    from ..worker.worker import Worker
    from .link import Link
    from .methods import LinkMethod


def endpoints(
    master: MasterInterface, worker: Worker, local_steps: LocalSteps | None = None
) -> Callable[[Link], dict[int, LinkMethod]]:
    """The methods of one task, for each of its links."""

    def methods(link: Link) -> dict[int, LinkMethod]:
        return {**MasterEndpoint(link, master, local_steps).methods(), **WorkerEndpoint(link, worker).methods()}

    return methods
