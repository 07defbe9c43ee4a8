"""Busy neighbours: processes that keep a core each busy while a row is measured, as other people's programs would."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Ends with the process that started it, however that one ends.
_WORK = """
import os
parent = os.getppid()
print(flush=True)
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""


@contextlib.contextmanager
def neighbours(count: int) -> Iterator[None]:
    """`count` processes compute for as long as this is open. Waits until they do."""
    command = [sys.executable, "-c", _WORK]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(count)]
    try:
        for each in started:
            assert each.stdout is not None
            each.stdout.readline()
        yield
    finally:
        for each in started:
            each.kill()
            each.communicate()
