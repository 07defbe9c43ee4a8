"""What is known of each task when somebody asks why nothing goes on. Values; conclude.py reasons about them.

The tasks' answers stay the messages that they are (why.proto): nothing is read out of them that the conclusion does not
need.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenfold_protos.why_pb2 import StackFrame, TaskAnswer, ThreadStack

#: States in which a task cannot do its part: those of a cluster's tasks, then those of a run's.
ABSENT = frozenset(("missing", "lost", "stopped", "waiting", "failed"))
#: States in which it can, and answers.
LIVE = frozenset(("ready", "running"))


@dataclass(frozen=True, slots=True)
class Place:
    """One task: what the control service knows of it, and what it said."""

    #: "/job:ps/replica:0/task:0".
    name: str
    state: str
    #: Why it is in its state.
    reason: str = ""
    answer: TaskAnswer | None = None
    #: Why it did not answer; "" for one that was not asked, or answered.
    silence: str = ""

    @property
    def absent(self) -> bool:
        return self.state in ABSENT

    @property
    def silent(self) -> bool:
        """Whether it is said to be there, was asked, and did not answer."""
        return self.state in LIVE and self.answer is None and bool(self.silence)

    @property
    def threads(self) -> list[ThreadStack]:
        return [] if self.answer is None else list(self.answer.thread)

    @property
    def main(self) -> ThreadStack | None:
        return next((each for each in self.threads if each.main), None)


def own_frame(thread: ThreadStack) -> StackFrame | None:
    """The innermost frame of the program's own code."""
    return next((each for each in reversed(thread.frame) if not each.library), None)


def where(thread: ThreadStack) -> str:
    """ "in load (reader.py:17)": where a thread is in the program's own code; "" where it is in none."""
    frame = own_frame(thread)
    if frame is None:
        return ""
    file = re.split(r"[/\\]", frame.file)[-1]
    return f"in {frame.function} ({file}:{frame.line})"
