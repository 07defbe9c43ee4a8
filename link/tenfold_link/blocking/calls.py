"""A call of a blocking link that the peer owes an answer, and what its caller waits at. The link's lock guards it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenfold_core import errors
    from tenfold_link.wire.buffers import Answer


class PendingCall:
    """A call under way. `answer` or `error` is set once, under the link's lock."""

    __slots__ = ("answer", "error", "gate", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.answer: Answer | None = None
        self.error: errors.OpError | None = None
        #: What its caller waits at while another one reads; None while it does not. Opened when the call is done, or to
        #: make its caller the reader.
        self.gate: threading.Lock | None = None

    def shut_gate(self) -> threading.Lock:
        """What the call's caller waits at, until `open_gate`."""
        gate = self.gate = threading.Lock()
        gate.acquire()
        return gate

    def open_gate(self) -> None:
        """Lets the call's caller go on, if it waits."""
        if self.gate is not None:
            self.gate.release()
            self.gate = None
