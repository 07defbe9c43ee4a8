"""The JSON of why something stands still."""

from typing import Literal

from pydantic import BaseModel, Field


class WhyOrder(BaseModel):
    """A question that the program is to answer at once: why nothing goes on there."""

    id: str


class WhyFrame(BaseModel):
    """A frame of a thread."""

    file: str
    line: int
    function: str


class WhyThreadView(BaseModel):
    """A thread of a task's process; those in which nothing happens are left out."""

    name: str
    main: bool
    doing: str = Field(
        description="`node` computes, `run` waits for a step, `create` for a session, `chief` for the chief to "
        "initialise, `join` for the end; empty: the program's own code."
    )
    node: str | None = Field(description="Of `node`: what it computes.")
    op: str | None
    frames: list[WhyFrame] = Field(description="The innermost one last.")


class WhyWaitView(BaseModel):
    """Something that a step waits for at a task."""

    kind: str = Field(
        description="elements, room, gradients, lock; `tensor` of another task; `part`: another task's part of the "
        "step; `kernel`: its own kernel computes beside."
    )
    text: str = Field(description="The same as a sentence.")
    node: str | None
    op: str | None
    resource: str | None = Field(description="The queue, accumulator, barrier, staging area or lock.")
    have: int | None = Field(description="How many there are.")
    need: int | None = Field(description="How many are needed; of `room` how many fit.")
    sender: str | None = Field(description="Of a tensor or a part: the task that makes it.")
    tensor: str | None
    seconds: float | None = Field(description="How long it has waited; null where that is not known.")
    master: str = Field(description="The task whose master runs the step.")


class WhyStepView(BaseModel):
    """A call of Session.run in a program that has not returned."""

    names: list[str] = Field(description="What it fetches and runs.")
    seconds: float


class WhyTaskView(BaseModel):
    """A task, what it waits for, and where its program is."""

    name: str
    state: str
    reason: str = Field(description="Why it is in its state.")
    answered: bool
    silence: str = Field(description="Why it did not answer; empty for one that was not asked.")
    host: str | None
    pid: int | None
    waits: list[WhyWaitView]
    steps: list[WhyStepView]
    threads: list[WhyThreadView]


class WhyView(BaseModel):
    """Why it stands still: the suspect in one sentence, how the evidence leads there, and the evidence."""

    of: Literal["run", "cluster", "session"]
    name: str
    suspect: str
    kind: str = Field(
        description="`silent` does not answer, `absent` is not there, `deadlock`, `computing` a node, `program`: in "
        "code of a program, `chief` has not initialised, `resource`: nobody fills or empties it, `unbegun`: a part of "
        "a step, `nothing` waits."
    )
    task: str | None = Field(description="The task that the suspect is, or is at.")
    node: str | None
    because: list[str] = Field(description="From a wait to the suspect, a sentence each.")
    silent: list[str] = Field(description="Tasks that were asked and did not answer in time.")
    seconds: float = Field(description="How long it took to find out.")
    tasks: list[WhyTaskView]
