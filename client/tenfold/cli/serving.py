"""What `tenfold task` does with its server, static or registered: prints where it listens, ends the process with it.

Called by task.py and registered_task.py.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tenfold_services.background import BackgroundServer

#: Seconds that running steps get once the task was told to stop.
GRACE_S = 5.0


def end_with_server(server: BackgroundServer) -> None:
    """Ends the process, as a signal would, once the server has stopped by itself. Never blocks."""

    def end() -> None:
        server.join()
        # harmless if this process stopped the server itself: no thread waits for a signal then
        if not server.stopped_by_caller:
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end, name="end-with-server", daemon=True).start()


def announce(job: str, index: int, address: str) -> None:
    """Prints the one line that says that the task listens; local.py waits for it."""
    click.echo(f"/job:{job}/task:{index} listening on grpc://{address}")
