"""The calls that Tenfold makes over links: their numbers, and the layouts of the frames of a step.

Both ends read this file: session/link_master.py and tenfold_services/rpc/. All little-endian; tensors follow as
values.py writes them. What is said once for each graph (names, options, plans) travels as a protobuf message
inside the frame, so that the frame of a step is a few numbers and its tensors.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tenfold_protos.master_pb2 import RunStepRequest


class LinkCall(IntEnum):
    """Method numbers. A number is never reused for another meaning."""

    #: client → master: a step of a session
    RUN_STEP = 1
    #: task → task
    RUN_GRAPH = 16
    RECV_TENSOR = 17
    CLEANUP_GRAPH = 18
    PUSH = 19
    ARRANGE = 20
    PRODUCER = 21


#: RUN_STEP: signature number u64 · flags u8 · 0 u8 · feeds u16 · length of the message u32 · RunStepRequest · feeds
RUN_STEP = struct.Struct("<QBxHI")
#: The message names the step: session_handle, feed (names only), fetch, target. The number stands for them from now on.
HAS_NAMES = 1
#: The message has options or a request_id.
HAS_OPTIONS = 2

#: Its answer: status u8 · 0 u8 · values u16 · length of the metadata u32 · RunMetadata · values
RUN_STEP_ANSWER = struct.Struct("<BxHI")
STEP_DONE = 0
#: The number means nothing at this end (any more): send the names again. Nothing was run.
UNKNOWN_NUMBER = 1

#: RUN_GRAPH: plan number u64 · step u64 · flags u8 · options u8 · feeds u16 · tensors brought along u16 · 0 u16 ·
#: length of the plan u32 · LinkRunPlan · feeds · (number of the call_key u16 · tensor) …
RUN_GRAPH = struct.Struct("<QQBBHHxxI")
#: bits of `options`
RECORD_TIMELINE, RECORD_COSTS, RECORD_PARTITION_GRAPHS = 1, 2, 4

#: Its answer: status u8 · 0 u8 · fetches u16 · tensors brought along u16 · 0 u16 · length of the statistics u32 ·
#: StepStats · fetches · (number of the answer_key u16 · tensor) …
RUN_GRAPH_ANSWER = struct.Struct("<BxHHxxI")
#: Number of a key within its plan.
KEY_NUMBER = struct.Struct("<H")

#: PUSH: step u64 · tensors u16 · (length of the key u16 · key · tensor) …
PUSH = struct.Struct("<QH")
#: RECV_TENSOR: step u64 · key. Its answer is a tensor.
#: CLEANUP_GRAPH: step u64 …
STEP = struct.Struct("<Q")


class StepNames(NamedTuple):
    """A run signature as its client says it: a session, and what a step feeds, fetches and runs, in the client's order
    and spelling. A number stands for it once it was said (short_ids.py)."""

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
