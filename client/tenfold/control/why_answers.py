"""Why a run, a cluster or a session stands still, as the control service tells it. Seconds are seconds.

Of answers.py's kind; made by why_calls.py.
"""

from __future__ import annotations

from tenfold.control.answers import Answer, answer


@answer
class WhyFrame(Answer):
    """A frame of a thread."""

    file: str
    line: int
    function: str


@answer
class WhyThread(Answer):
    """A thread of a task's process; those in which nothing happens are left out."""

    name: str
    main: bool
    #: node | run | create | chief | join; "": the program's own code.
    doing: str
    #: Of `node`: what it computes.
    node: str | None
    op: str | None
    #: The innermost one last.
    frames: tuple[WhyFrame, ...]


@answer
class WhyWait(Answer):
    """Something that a step waits for at a task."""

    #: elements | room | gradients | lock | tensor | part
    kind: str
    #: The same as a sentence.
    text: str
    node: str | None
    op: str | None
    #: The queue, accumulator, barrier, staging area or lock.
    resource: str | None
    #: How many there are and how many are needed, of `room` how many fit; None where nothing is counted.
    have: int | None
    need: int | None
    #: Of a tensor or a part: the task that makes it.
    sender: str | None
    tensor: str | None
    #: How long it has waited; None where that is not known.
    seconds: float | None
    #: The task whose master runs the step.
    master: str


@answer
class WhyStep(Answer):
    """A call of Session.run in a program that has not returned: what it fetches and runs, and for how long."""

    names: tuple[str, ...]
    seconds: float


@answer
class WhyTask(Answer):
    """A task, what it waits for, and where its program is."""

    name: str
    state: str
    #: Why it is in its state.
    reason: str
    answered: bool
    #: Why it did not answer; "" for one that was not asked.
    silence: str
    host: str | None
    pid: int | None
    waits: tuple[WhyWait, ...]
    steps: tuple[WhyStep, ...]
    threads: tuple[WhyThread, ...]


@answer
class Why(Answer):
    """Why it is stuck: the suspect in one sentence, how the evidence leads there, and the evidence."""

    #: run | cluster | session
    of: str
    name: str
    suspect: str
    #: silent | absent | deadlock | computing | program | chief | resource | unbegun | nothing
    kind: str
    #: The task and the node that the suspect is, or is at.
    task: str | None
    node: str | None
    #: From a wait to the suspect, a sentence each.
    because: tuple[str, ...]
    #: Tasks that were asked and did not answer in time.
    silent: tuple[str, ...]
    #: Seconds that it took.
    seconds: float
    tasks: tuple[WhyTask, ...]
