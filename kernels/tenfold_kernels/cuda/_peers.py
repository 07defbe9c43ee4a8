"""Which GPUs of a process read each other's memory: copies between others go by the host. Of _driver.py only."""

from __future__ import annotations

from typing import Any


class Peers:
    """What one GPU reaches. Any thread: the worst is an answer that is asked for twice."""

    def __init__(self, cuda: Any, index: int) -> None:
        """`cuda` is CuPy's runtime; `index` the GPU's number."""
        self._cuda, self._index = cuda, index
        #: Those that were tried.
        self._known: set[int] = set()

    def reach(self, other: int) -> None:
        """Lets this GPU, which is the current one, read that one's memory itself, where the machine can."""
        if other in self._known:
            return
        self._known.add(other)
        if not self._cuda.deviceCanAccessPeer(self._index, other):
            return
        try:
            self._cuda.deviceEnablePeerAccess(other)
        except self._cuda.CUDARuntimeError:
            # somebody else of this process has done so, or there are too many: copies work either way
            return
