"""Numbers of requests that must not be served twice: a run of a graph, and a tensor that can be taken once.

gRPC may send a request again when a connection breaks; a master numbers what must not happen twice. Used by
worker_service.py. In TensorFlow: recent_request_ids.cc.
"""

from __future__ import annotations

from collections import deque

from tenfold_core import errors

#: Numbers remembered, as in TensorFlow.
REMEMBERED = 100_000


class RequestIds:
    """The last numbers, bounded."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        #: The same numbers, oldest first and as a set.
        self._order: deque[int] = deque()
        self._known: set[int] = set()
        self._remembered = remembered

    def check(self, request_id: int, what: str) -> None:
        """Notes the number; 0 stands for none. Raises AbortedError for one that came before."""
        if not request_id:
            return
        if request_id in self._known:
            raise errors.aborted(f"The same {what} request was received twice: request_id {request_id}.")
        self._known.add(request_id)
        self._order.append(request_id)
        if len(self._order) > self._remembered:
            self._known.discard(self._order.popleft())
