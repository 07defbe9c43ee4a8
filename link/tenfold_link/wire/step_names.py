"""A run signature as its client says it, and the message that says it on a link; a number stands for it from then on.

session/link_master.py gives numbers for it, rpc/link_master_service.py learns what they mean (short_ids.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tenfold_protos.master_pb2 import RunStepRequest


class StepNames(NamedTuple):
    """A session and the names of a step: what it feeds, fetches and runs, in the client's order and spelling."""

    session_handle: str
    feeds: tuple[str, ...]
    fetches: tuple[str, ...]
    targets: tuple[str, ...]

    @classmethod
    def of(cls, request: RunStepRequest) -> StepNames:
        """What a RunStepRequest names."""
        return cls(
            request.session_handle,
            tuple([feed.name for feed in request.feed]),
            tuple(request.fetch),
            tuple(request.target),
        )

    def say(self, request: RunStepRequest) -> None:
        """Makes a RunStepRequest name it."""
        request.session_handle = self.session_handle
        for name in self.feeds:
            request.feed.add(name=name)
        request.fetch.extend(self.fetches)
        request.target.extend(self.targets)
