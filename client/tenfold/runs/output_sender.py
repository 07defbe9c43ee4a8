"""What a task on another machine than the control service leaves: a folder of its own, sent to the service at its end.

Used by cli/child.py around the program, where supervise.py asked for it. Tasks of the service's machine write into the
run's folder themselves (recorded_news.py). A program that is killed sends nothing, and the next one of the machine
removes its folder.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import stat
from typing import TYPE_CHECKING

from tenfold.cli.scratch import scratch_folder
from tenfold.runs.program_report import CONTROL, RUN, TASK
from tenfold.runs.recorded_news import OUTPUT
from tenfold_core.access.credentials import shown_token

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

log = logging.getLogger(__name__)

#: The variable that asks for it.
SEND = "TENFOLD_OUTPUT_SEND"
#: Seconds for one piece of a file.
_REQUEST_S = 30.0


class OutputSender:
    """The folder of this process's program, between `begin` and `finish`."""

    def __init__(self, run: str, job: str, index: int, control: str) -> None:
        self._place, self._control = (run, job, index), control
        self._scratch = contextlib.ExitStack()
        self.folder = str(self._scratch.enter_context(scratch_folder("output")))
        self._finished = False

    def finish_on_sigterm(self) -> None:
        """SIGTERM then sends the files before it ends this process, unless the program has a way of its own. Main
        thread only."""

        def end(number: int, frame: FrameType | None) -> None:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one is not asked to wait
            self.finish()
            os.kill(os.getpid(), number)

        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, end)

    def finish(self) -> None:
        """Sends all files, and removes the folder. Blocks. Never raises: what cannot be sent stays, and the log says
        where. A second call does nothing."""
        if self._finished:
            return
        self._finished = True
        try:
            found = list(_files(self.folder, ""))
            if found:
                self._send(found)
            self._scratch.close()
        except Exception as error:
            why = getattr(error, "message", error)
            parent, name = os.path.split(self.folder)
            kept = os.path.join(parent, name.replace("output", "unsent", 1))
            with contextlib.suppress(OSError):  # under a name that is not removed as abandoned
                os.rename(self.folder, kept)
                self.folder = kept
            log.warning("output of this task stays in %s on %s: %s", self.folder, socket.gethostname(), why)

    def _send(self, paths: list[str]) -> None:
        from tenfold.control import ControlClient

        with ControlClient(self._control, shown_token(), _REQUEST_S) as client:
            for path in paths:
                client.send_output(*self._place, path, os.path.join(self.folder, path))


def begin() -> OutputSender | None:
    """Makes the folder and names it to the program, if the environment asks for it; else None. Main thread only. Raises
    OSError."""
    run, control = os.environ.get(RUN), os.environ.get(CONTROL)
    job, _, index = os.environ.get(TASK, "").partition("/")
    if not os.environ.get(SEND) or not run or not control or not index.isdecimal():
        return None
    sender = OutputSender(run, job, int(index), control)
    sender.finish_on_sigterm()
    os.environ[OUTPUT] = sender.folder
    return sender


def _files(folder: str, above: str) -> Iterator[str]:
    """The paths of regular files below the folder, with slashes; of links none."""
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda each: each.name)
    for each in found:
        mode = each.stat(follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            yield from _files(each.path, f"{above}{each.name}/")
        elif stat.S_ISREG(mode):
            yield above + each.name
