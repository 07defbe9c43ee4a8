"""The JSON of why something stands still."""

from typing import Literal

from pydantic import BaseModel, Field


class WhyOrder(BaseModel):
    """A question that the program is to answer immediately: why it makes no progress."""

    id: str


class WhyFrame(BaseModel):
    """A frame of a thread."""

    file: str = Field(description="The file's path on the task's machine; only the end of a long one.")
    line: int = Field(description="The current line, from 1; 0 if it is not known.")
    function: str = Field(description="The function's name.")


class WhyThreadView(BaseModel):
    """A thread of a task's process; idle threads are left out."""

    name: str = Field(description="The thread's name.")
    main: bool = Field(description="Whether it is the process's main thread.")
    doing: str = Field(
        description="`node` computes, `run` waits for a step, `create` for a session, `chief` for the chief to "
        "initialise, `join` for the end; empty: the program's own code."
    )
    node: str | None = Field(description="For `node`: the node.")
    op: str | None = Field(description="For `node`: its operation.")
    frames: list[WhyFrame] = Field(description="The innermost one last.")


class WhyWaitView(BaseModel):
    """Something that a step waits for on a task."""

    kind: str = Field(
        description="elements, room, gradients, lock; `tensor` of another task; `part`: another task's part of the "
        "step; `kernel`: its own kernel computes on another thread."
    )
    text: str = Field(description="The same as a sentence.")
    node: str | None = Field(description="The node that waits.")
    op: str | None = Field(description="Its operation.")
    resource: str | None = Field(description="The queue, accumulator, barrier, staging area or lock.")
    have: int | None = Field(description="How many there are.")
    need: int | None = Field(description="How many are needed; of `room` how many fit.")
    sender: str | None = Field(description="For a tensor or a part: the task that produces it.")
    tensor: str | None = Field(description="The tensor's name.")
    seconds: float | None = Field(description="How long it has waited; null if that is not known.")
    master: str = Field(description="The task whose master runs the step.")


class WhyStepView(BaseModel):
    """A call of Session.run in a program that has not returned."""

    names: list[str] = Field(description="Its fetches and targets.")
    seconds: float = Field(description="How long it has been running.")


class WhyTaskView(BaseModel):
    """A task, what it waits for, and where its program is."""

    name: str = Field(description="As in a device's name: `/job:ps/replica:0/task:0`.")
    state: str = Field(description="As the control service knows it.")
    reason: str = Field(description="Why it is in its state.")
    answered: bool = Field(description="Whether it answered in time.")
    silence: str = Field(description="Why it did not answer; empty for one that was not asked.")
    host: str | None = Field(description="The machine that it runs on; null if it did not report it.")
    pid: int | None = Field(description="Its process there.")
    waits: list[WhyWaitView] = Field(description="What steps wait for on this task.")
    steps: list[WhyStepView] = Field(description="Its program's calls that have not returned.")
    threads: list[WhyThreadView] = Field(description="Where its process is.")


class WhyView(BaseModel):
    """Why it is stuck: the suspect in one sentence, how the evidence leads there, and the evidence."""

    of: Literal["run", "cluster", "session"] = Field(description="The kind of object that was asked about.")
    name: str = Field(description="Its name.")
    suspect: str = Field(description="What blocks the others, in a sentence.")
    kind: str = Field(
        description=(
            "`silent`: does not answer; `absent`: is not running; `deadlock`; `computing`: computes a node; "
            "`program`: is in a program's own code; `chief`: has not initialised; `resource`: nothing fills "
            "or empties it; `unbegun`: a part of a step has not started; `nothing`: nothing waits."
        )
    )
    task: str | None = Field(description="The task that the suspect is, or is at.")
    node: str | None = Field(description="The node that it computes, or that waits.")
    because: list[str] = Field(description="The evidence from a wait to the suspect, one sentence each.")
    silent: list[str] = Field(description="Tasks that were asked and did not answer in time.")
    seconds: float = Field(description="How long it took to find out.")
    tasks: list[WhyTaskView] = Field(description="All tasks, with their answers.")
