"""Runs a program that must not outlive its parent: `python -m tenfold.cli.child (-m MODULE | FILE) [argument …]`.

The parent (children.py) holds the write end of this process's standard input and never writes. When the parent ends,
even by SIGKILL, the kernel closes the pipe; this process then sends itself SIGTERM, and exits if the program has not
stopped within a bound. Works on every POSIX system, needs no polling.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
from typing import TYPE_CHECKING

from tenfold.cli import run_server, signals
from tenfold.cli.modules_apart import keep_apart
from tenfold.runs import output_sender, program_report, recorded, run_cluster
from tenfold.runs.error_file import ReportedExit, leave_error
from tenfold_core import log_setup

if TYPE_CHECKING:
    from types import TracebackType

#: Seconds that a program has to stop by itself once its parent is gone. Longer than a task's own numbered steps.
GRACE_S = 15.0


def watch_parent(grace: float = GRACE_S) -> threading.Thread:
    """Starts the watch. Never blocks. Must be called in a process whose standard input is the parent's pipe."""

    def watch() -> None:
        while os.read(0, 4096):
            pass  # the parent never writes; only the end of the file counts
        signals.parent_gone.set()
        os.kill(os.getpid(), signal.SIGTERM)
        if not threading.Event().wait(grace):
            os._exit(1)

    thread = threading.Thread(target=watch, name="watch-parent", daemon=True)
    thread.start()
    return thread


def main(arguments: list[str]) -> None:
    """Watches the parent, then becomes the program. Raises SystemExit on wrong usage, else what the program raises."""
    if not arguments or (arguments[0] == "-m" and len(arguments) < 2):
        raise SystemExit("usage: python -m tenfold.cli.child (-m MODULE | FILE) [argument ...]")
    watch_parent()
    if (logs := log_setup.asked_for()) is not None:
        log_setup.configure(*logs, task=_task())
    run_cluster.start = run_server.start
    reporter = program_report.begin()
    if reporter is not None:
        recorded.watch()
    output = output_sender.begin()
    try:
        become(arguments)
    finally:
        if output is not None:
            output.finish()
        if reporter is not None:
            reporter.finish()


def _task() -> str | None:
    """The task that the program is to be, where it is one."""
    job, slash, index = os.environ.get(program_report.TASK, "").partition("/")
    return f"/job:{job}/task:{index}" if slash else None


def become(arguments: list[str]) -> None:
    """Runs `-m MODULE argument …` or `FILE argument …` as this process's main program. What it raises is also left for
    who started it (runs/error_file.py).

    A `sys.exit` with a failure is kept in `sys.last_value`, where the interpreter keeps only errors, so that
    code that runs at exit (tf.train.Server) can tell that the program failed.
    """
    try:
        _run(arguments)
    except ReportedExit:
        # of a program that became one itself (run_as_tensorflow.py)
        raise
    except SystemExit as end:
        if end.code not in (None, 0):
            sys.last_value = end
            leave_error(end)
        raise
    except Exception as error:
        leave_error(error)
        sys.last_value = error.with_traceback(_of_program(error))
        sys.excepthook(type(error), error, error.__traceback__)
        raise ReportedExit(1) from None


def _of_program(error: Exception) -> TracebackType | None:
    """The error's traceback without the frames that lead to the program, this file's and runpy's; of an error of the
    runtime, whose message says what failed, also without those of Tenfold that lead from the program to it."""
    # late: these load NumPy, for which the program has not prepared yet
    from tenfold.graph.traceback import RUNPY, is_ours
    from tenfold_core.errors import OpError

    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename in (__file__, *RUNPY):
        traceback = traceback.tb_next
    if isinstance(error, OpError):
        frames = []
        each = traceback
        while each is not None:
            frames.append(each)
            each = each.tb_next
        while len(frames) > 1 and is_ours(frames[-1].tb_frame.f_code.co_filename):
            frames.pop()
            frames[-1].tb_next = None
    return traceback


def _run(arguments: list[str]) -> None:
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        if not arguments[1].startswith("tenfold."):
            # As `python -m MODULE` does.
            _find_modules_in(os.getcwd())
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        # As `python FILE` does: the program may import modules of its own folder.
        _find_modules_in(os.path.dirname(os.path.abspath(arguments[0])))
        runpy.run_path(arguments[0], run_name="__main__")


def _find_modules_in(folder: str) -> None:
    """The program finds modules of this folder, unless it was asked to leave folders out: by PYTHONSAFEPATH, -P or -I.

    The last -P of our own process is that of its parent, so that nothing but a program finds modules there.
    """
    options = sys.orig_argv[1:]
    options = options[: options.index("-m")] if "-m" in options else options
    ours = options[-1:] == ["-P"]
    if sys.flags.safe_path and not ours:
        return
    if "-P" in options[:-1] or sys.flags.isolated or os.environ.get("PYTHONSAFEPATH"):
        return
    if sys.path[:1] != [folder]:
        sys.path.insert(0, folder)
    keep_apart(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
