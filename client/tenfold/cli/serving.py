"""What `tenfold task` does with its server, static or registered: prints where it listens, ends the process with it.

Called by task.py and registered_task.py.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import click

from tenfold_core import log_setup

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_services.background import BackgroundServer

#: Seconds that running steps get once the task was told to stop.
GRACE_S = 5.0
#: The way out of a port that is taken.
OTHER_PORT = "Another port: --bind HOST:PORT (TENFOLD_BIND), where port 0 takes a free one."


def end_with_server(server: BackgroundServer, end: Callable[[], None]) -> None:
    """Calls `end` on a thread of its own once the server has stopped by itself. Never blocks."""

    def wait() -> None:
        server.join()
        if not server.stopped_by_caller:
            end()

    threading.Thread(target=wait, name="end-with-server", daemon=True).start()


def announce(job: str, index: int, address: str) -> None:
    """Prints the one line that says that the task listens, which local.py waits for. From now on its log names it."""
    log_setup.set_task(f"/job:{job}/task:{index}")
    click.echo(f"/job:{job}/task:{index} listening on grpc://{address}")
