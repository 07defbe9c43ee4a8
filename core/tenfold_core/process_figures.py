"""What the system says of this process: memory, processor time, page faults, threads.

Part of a program's report (tenfold.runs.program_report) and of a task's figures (tenfold_services.figures).
"""

from __future__ import annotations

import os
import resource
import threading


def process_figures() -> dict[str, float]:
    """Bytes of memory (Linux only), seconds of processor time, minor page faults, threads. Never raises."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    found: dict[str, float] = {
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "minor_faults": used.ru_minflt,
        "threads": threading.active_count(),
    }
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = [int(part) for part in file.read().split()]
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
            # the name in parentheses may hold anything; what follows it are fields, the 18th of them the threads
            threads = int(file.read().rpartition(")")[2].split()[17])
    except (OSError, ValueError, IndexError):
        return found
    size = os.sysconf("SC_PAGE_SIZE")
    return {**found, "threads": threads, "resident_bytes": pages[1] * size, "shared_bytes": pages[2] * size}
