"""What callers get to see of the evidence: messages become JSON, and other callers' sessions are taken out. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_control_api.why.evidence import Place
from tenfold_control_api.why.models import WhyFrame, WhyStepView, WhyTaskView, WhyThreadView, WhyView, WhyWaitView
from tenfold_control_api.why.roots import sentence
from tenfold_protos.why_pb2 import TaskAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal

    from tenfold_control_api.why.roots import Conclusion
    from tenfold_protos.why_pb2 import StepWait, ThreadStack

#: What is left of the names in another caller's session.
_HIDDEN = "(another caller's)"


def why_view(
    of: Literal["run", "cluster", "session"], name: str, places: Sequence[Place], found: Conclusion, seconds: float
) -> WhyView:
    return WhyView(
        of=of,
        name=name,
        suspect=found.suspect,
        kind=found.kind,
        task=found.task,
        node=found.node,
        because=list(found.because),
        silent=[each.name for each in places if each.silent],
        seconds=round(seconds, 3),
        tasks=[_task(each) for each in places],
    )


def _task(place: Place) -> WhyTaskView:
    answer = place.answer if place.answer is not None else TaskAnswer()
    return WhyTaskView(
        name=place.name,
        state=place.state,
        reason=place.reason,
        answered=place.answer is not None,
        silence=place.silence,
        host=answer.host or None,
        pid=answer.pid or None,
        waits=[_wait(place.name, each) for each in answer.wait],
        steps=[WhyStepView(names=list(each.name), seconds=round(each.seconds, 3)) for each in answer.client_step],
        threads=[_thread(each) for each in answer.thread if each.doing != "idle"],
    )


def _wait(place: str, wait: StepWait) -> WhyWaitView:
    counted = wait.kind in ("elements", "room", "gradients")
    return WhyWaitView(
        kind=wait.kind,
        text=sentence(place, wait),
        node=wait.node or None,
        op=wait.op or None,
        resource=wait.resource or None,
        have=wait.have if counted else None,
        need=wait.need if counted else None,
        sender=wait.sender or None,
        tensor=wait.tensor or None,
        seconds=round(wait.seconds, 3) if wait.seconds > 0 else None,
        master=wait.master,
    )


def _thread(thread: ThreadStack) -> WhyThreadView:
    return WhyThreadView(
        name=thread.name,
        main=thread.main,
        doing=thread.doing,
        node=thread.node or None,
        op=thread.op or None,
        frames=[WhyFrame(file=each.file, line=each.line, function=each.function) for each in thread.frame],
    )


def handles_of(places: Sequence[Place], owned: Callable[[str], bool], known: frozenset[str]) -> frozenset[str]:
    """The handles of the sessions that are the caller's: those `known` to be, and those whose owner is, as `owned`
    says."""
    sessions = [each for place in places if place.answer is not None for each in place.answer.session]
    return known | {each.handle for each in sessions if each.owner and owned(each.owner)}


def of_run(places: Sequence[Place], submitter: str | None) -> list[Place]:
    """The same places without what is in sessions of others than the run's own programs and its `submitter`."""
    sessions = [each for place in places if place.answer is not None for each in place.answer.session]
    owners = {each.owner for each in sessions if each.own} | {submitter}
    if not any(each.own for each in sessions):
        # its programs are clients of each other's servers, or have none
        return list(places)
    mine = frozenset(each.handle for each in sessions if each.own or (each.owner and each.owner in owners))
    return hidden(places, mine, threads=True)


def hidden(places: Sequence[Place], mine: frozenset[str], *, threads: bool = False) -> list[Place]:
    """The same places without what is in sessions other than `mine`: that a step waits or holds something stays, the
    names of its nodes, tensors and resources go. So do `threads`, which run steps of any session, unless they are the
    caller's own program's."""
    found = []
    for each in places:
        answer = None if each.answer is None else _hidden(each.answer, mine, threads)
        found.append(Place(each.name, each.state, each.reason, answer, each.silence))
    return found


def _hidden(answer: TaskAnswer, mine: frozenset[str], threads: bool) -> TaskAnswer:
    found = TaskAnswer()
    found.CopyFrom(answer)
    shared = {each.resource for each in answer.wait if each.session in mine}
    del found.session[:]
    if not threads:
        del found.thread[:], found.client_step[:]
    for wait in found.wait:
        if wait.session not in mine:
            wait.node, wait.op, wait.tensor, wait.have, wait.need = "", "", "", 0, 0
            wait.resource = wait.resource if wait.resource in shared else _HIDDEN * bool(wait.resource)
    del found.use[:]
    for use in answer.use:
        if use.resource in shared:
            one = found.use.add()
            one.CopyFrom(use)
            if use.session not in mine:
                one.node = one.op = ""
    return found


def only(places: Sequence[Place], handle: str) -> list[Place]:
    """The same places with nothing but what concerns the session of this handle."""
    kept = []
    for each in places:
        answer = None
        if each.answer is not None:
            answer = TaskAnswer()
            answer.CopyFrom(each.answer)
            del answer.wait[:]
            answer.wait.extend(wait for wait in each.answer.wait if wait.session == handle)
        kept.append(Place(each.name, each.state, each.reason, answer, each.silence))
    return kept
