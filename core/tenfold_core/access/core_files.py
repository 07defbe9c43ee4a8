"""No core file of a `tenfold` command: its memory holds tokens, and the file would be where others may look.

Called by the command line (tenfold.cli.main) before anything else. PR_SET_DUMPABLE would do the same for one process,
but takes /proc/self/pagemap from it as well, by which large tensors of memory-mapped files are found
(docs/decisions/0159). In the system's terms the limit is RLIMIT_CORE.
"""

from __future__ import annotations

import contextlib
import os
import resource

#: Set to 1 where core files are wanted, to look into a crash.
WANTED = "TENFOLD_CORE_FILES"


def write_none() -> None:
    """From now on this process, and what it starts, leaves no core file when a signal ends it, unless `WANTED` says
    otherwise. Never raises.

    A limit of one byte, since 0 counts for files only: Linux takes 1 to mean that no program gets the memory through a
    pipe either (kernel.core_pattern with "|", as systemd-coredump has it).
    """
    if os.environ.get(WANTED) == "1":
        return
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    with contextlib.suppress(OSError, ValueError):  # a sandbox may forbid it
        # the hard limit stays: a program that wants its core files may ask for them
        resource.setrlimit(resource.RLIMIT_CORE, (1 if hard == resource.RLIM_INFINITY else min(1, hard), hard))
