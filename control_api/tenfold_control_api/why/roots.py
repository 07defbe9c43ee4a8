"""What a walk along waits ends at, how much each kind explains, and waits as sentences. Values; conclude.py walks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenfold_protos.why_pb2 import StepWait

#: How much a root of each kind explains.
WEIGHT = {
    "silent": 6, "absent": 5, "deadlock": 4, "computing": 3, "program": 3, "chief": 2, "resource": 2, "unbegun": 1,
}  # fmt: skip
#: Steps of the walk; circles end earlier.
DEEPEST = 40
#: Ops that call functions of the program.
FUNCTIONS = ("PyFunc", "EagerPyFunc")
PARAMETER_SERVERS = "ps"


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Who keeps the others waiting, as far as the evidence goes."""

    #: One sentence.
    suspect: str
    #: silent | absent | deadlock | computing | program | chief | resource | unbegun | nothing
    kind: str
    task: str | None = None
    node: str | None = None
    #: How the walk came there, one sentence each, from a wait to the suspect.
    because: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Root:
    kind: str
    task: str
    text: str
    node: str = ""
    path: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind, self.task, self.node


def sentence(place: str, wait: StepWait) -> str:
    """What a wait at a task is, in words."""
    if wait.kind == "tensor":
        return f"a step at {place} waits for {wait.tensor} of {wait.sender}"
    if wait.kind == "part":
        return f"a step of {place} waits for its part at {wait.sender}"
    node = f"'{wait.node}' ({wait.op})" if wait.node else "a step"
    if wait.kind == "kernel":
        return f"{node} at {place} computes"
    what = {
        "elements": f"'{wait.resource}', which has {wait.have} of {wait.need} elements",
        "gradients": f"'{wait.resource}', which has {wait.have} of {wait.need} gradients",
        "room": f"room in '{wait.resource}', which is full: {wait.have} of {wait.need}",
        "lock": f"the lock '{wait.resource}'",
    }.get(wait.kind, wait.kind)
    return f"{node} at {place} waits for {what}"
