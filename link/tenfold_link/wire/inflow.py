"""What comes in over the links of those who may only run graphs: bytes of their frames, by peer and together.

A frame's header and its buffers that travel in the socket count from before memory is taken for them until the call
that they belong to is over; what lies in shared memory is the sender's. Members of the cluster are not counted: their
steps have limits of their own, and they can end the task anyway. FrameReader asks, serving.py gives back. No I/O; one
thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core.env_settings import limit_reached

if TYPE_CHECKING:
    from tenfold_core import errors


class Inflow:
    """Bytes under way, of a link, a peer or all. `whole` counts them, too."""

    __slots__ = ("limit", "taken", "variable", "who", "whole")

    def __init__(self, who: str, limit: int, variable: str, whole: Inflow | None = None) -> None:
        """`variable` sets another limit."""
        self.who, self.limit, self.variable, self.whole = who, limit, variable, whole
        self.taken = 0

    def take(self, count: int) -> errors.OpError | None:
        """Counts so many more; or says why there may not be so many, and counts nothing."""
        if self.taken + count > self.limit:
            what = f"{count} more bytes would come in over links of {self.who}, {self.taken} are being worked on"
            return limit_reached(what, self.limit, self.variable)
        refusal = None if self.whole is None else self.whole.take(count)
        if refusal is None:
            self.taken += count
        return refusal

    def give(self, count: int) -> None:
        """So many are done with; of a link that has ended all were given back before."""
        count = min(count, self.taken)
        self.taken -= count
        if self.whole is not None:
            self.whole.give(count)
