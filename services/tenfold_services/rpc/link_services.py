"""What a task answers over its links: the steps of sessions, and the calls between workers.

`endpoints` gives the listener and the dialers their method table for each link. The methods are in
link_master_service.py and link_worker_service.py; which number means what is in tenfold_link/wire/calls.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_services.rpc.link_master_service import MasterEndpoint
from tenfold_services.rpc.link_worker_service import WorkerEndpoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_link.aio.link import Link
    from tenfold_link.aio.methods import LinkMethod
    from tenfold_services.master.master import Master

    from ..worker.worker import Worker


def endpoints(master: Master, worker: Worker) -> Callable[[Link], dict[int, LinkMethod]]:
    """The methods of one task, for each of its links."""

    def methods(link: Link) -> dict[int, LinkMethod]:
        return {**MasterEndpoint(link, master).methods(), **WorkerEndpoint(link, worker).methods()}

    return methods
