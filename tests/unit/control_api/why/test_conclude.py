"""From collected waits to the suspect: a story each, of what the tasks say and who is named."""

from __future__ import annotations

from typing import Any

import pytest

from tenfold_control_api.why.conclude import conclude
from tenfold_control_api.why.evidence import Place, own_frame, where
from tenfold_protos.why_pb2 import ResourceUse, RunningStep, StackFrame, StepWait, TaskAnswer, ThreadStack

PS, W0, W1 = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"
CHIEF = "/job:chief/replica:0/task:0"


def place(name: str, *, state: str = "running", reason: str = "", silence: str = "", **members: Any) -> Place:
    """A task that answers with `members`, or does not where it has a `silence`, or is not there."""
    live = not silence and state == "running"
    return Place(name, state, reason, TaskAnswer(task=name, **members) if live else None, silence)


def elements(step: int = 1, resource: str = "q", have: int = 0, need: int = 1, master: str = W0) -> StepWait:
    return StepWait(
        kind="elements",
        node="get",
        op="QueueDequeueV2",
        resource=resource,
        have=have,
        need=need,
        step=step,
        master=master,
    )


def tensor(sender: str, step: int = 1, master: str = W0) -> StepWait:
    return StepWait(kind="tensor", tensor="edge_1_w", sender=sender, step=step, master=master)


def use(master: str, *steps: int, gives: bool = True, resource: str = "q") -> ResourceUse:
    return ResourceUse(resource=resource, node="put", op="QueueEnqueueV2", gives=gives, master=master, step=steps)


def in_code(function: str = "load", file: str = "/home/me/train.py") -> ThreadStack:
    frames = [StackFrame(file=file, line=7, function=function)]
    return ThreadStack(name="MainThread", main=True, doing="", frame=frames)


def computes(node: str, op: str = "MatMul", function: str = "") -> ThreadStack:
    frames = [StackFrame(file="/home/me/train.py", line=9, function=function)] if function else []
    return ThreadStack(name="pool", doing="node", node=node, op=op, frame=frames)


def waits(doing: str) -> ThreadStack:
    return ThreadStack(name="MainThread", main=True, doing=doing)


def named(*places: Place) -> tuple[str, str | None]:
    found = conclude(places)
    return found.kind, found.task


def test_a_tensor_of_a_task_that_does_not_answer() -> None:
    found = conclude([place(PS, silence="it was asked"), place(W0, wait=[tensor(PS)])])

    assert (found.kind, found.task) == ("silent", PS)
    assert found.suspect == f"{PS} does not answer, though it is running: it was asked."
    assert found.because == (f"a step at {W0} waits for edge_1_w of {PS}",)


def test_a_tensor_of_a_task_that_is_not_there() -> None:
    found = conclude([place(PS, state="lost", reason="its lease ran out"), place(W0, wait=[tensor(PS)])])
    assert (found.kind, found.suspect) == ("absent", f"{PS} is lost: its lease ran out.")


def test_a_tensor_of_a_task_that_nobody_can_ask() -> None:
    assert named(place(W0, wait=[tensor("/job:tf/task:0")])) == ("silent", "/job:tf/task:0")


def test_a_task_that_was_not_asked_is_no_suspect_by_its_silence() -> None:
    assert named(Place(PS, "running"), place(W0, wait=[tensor(PS)])) == ("unbegun", PS)


def test_the_node_that_a_tensor_s_maker_computes() -> None:
    found = conclude(
        [
            place(PS, running=[RunningStep(step=1, computes=True)], thread=[computes("big")]),
            place(W0, wait=[tensor(PS)]),
        ]
    )
    assert (found.kind, found.task, found.node) == ("computing", PS, "big")
    assert found.suspect == f"{PS} computes 'big' (MatMul)."


def test_a_part_that_has_not_begun() -> None:
    assert named(place(PS), place(W0, wait=[tensor(PS)])) == ("unbegun", PS)


def test_an_empty_queue_whose_producer_is_elsewhere() -> None:
    found = conclude(
        [
            place(PS, wait=[elements()], use=[use(W1)]),
            place(W0, wait=[tensor(PS)], thread=[waits("run")]),
            place(W1, thread=[in_code()]),
        ]
    )
    assert (found.kind, found.task) == ("program", W1)
    assert found.suspect == f"The program of {W1} runs no step: it is in load (train.py:7)."
    assert found.because[-1] == f"{W1}, whose program fills 'q', runs no such step"


def test_an_empty_queue_whose_producer_computes() -> None:
    producing = {
        "running": [RunningStep(step=2, master=W0, computes=True)],
        "thread": [computes("read", "PyFunc", "f")],
    }
    found = conclude([place(W0, wait=[elements()], use=[use(W0, 2)], **producing)])
    assert (found.kind, found.node) == ("computing", "read")
    assert found.suspect == f"{W0} computes 'read' (PyFunc), in f (train.py:9)."


def test_an_empty_queue_that_nobody_fills() -> None:
    found = conclude([place(PS, wait=[elements(have=2, need=5)]), place(W0)])
    assert (found.kind, found.task, found.node) == ("resource", PS, "get")
    assert "'q', which has 2 of 5 elements, and no operation of an open session puts anything in." in found.suspect


def test_an_empty_queue_that_a_missing_worker_might_fill() -> None:
    assert named(place(PS, wait=[elements()]), place(W1, state="missing", reason="never came")) == ("absent", W1)


def test_an_empty_queue_that_only_waiting_steps_fill() -> None:
    found = conclude([place(PS, wait=[elements()], use=[use(W0, 1)]), place(W0)])
    assert found.kind == "resource"
    assert found.suspect.endswith("every step that would put in more waits itself.")


def test_a_full_queue_is_followed_to_who_empties_it_and_counts_last() -> None:
    full = StepWait(kind="room", node="put", op="QueueEnqueueV2", resource="q", have=2, need=2, step=3, master=W0)
    there = place(PS, wait=[full], use=[use(W1, gives=False)])
    assert named(there, place(W1, thread=[in_code()])) == ("program", W1)

    starved = place(PS, wait=[full, elements(4, "other")])
    assert conclude([starved]).suspect.startswith(f"'get' (QueueDequeueV2) at {PS} waits for 'other'")


def test_a_full_queue_that_nobody_empties() -> None:
    full = StepWait(kind="room", node="put", op="QueueEnqueueV2", resource="q", have=2, need=2, step=3, master=W0)
    assert (
        "which is full: 2 of 2, and no operation of an open session takes anything out"
        in conclude([place(PS, wait=[full])]).suspect
    )


def gradients(step: int, master: str) -> StepWait:
    return StepWait(
        kind="gradients", node="take", op="TakeGradient", resource="g", have=1, need=2, step=step, master=master
    )


def test_synchronous_training_without_a_worker() -> None:
    """The chief's step waits for two gradients; worker 0 has given its own and waits for the token of that step."""
    servers = place(
        PS,
        wait=[gradients(1, W0), elements(2, "sync_token_q")],
        use=[use(W0, 2, resource="g"), use(W0, 1, resource="sync_token_q")],
    )
    found = conclude([servers, place(W0), place(W1, state="failed", reason="it was ended by SIGKILL")])
    assert (found.kind, found.task) == ("absent", W1)


def test_synchronous_training_with_a_worker_that_does_something_else() -> None:
    servers = place(
        PS,
        wait=[gradients(1, W0), elements(2, "sync_token_q")],
        use=[use(W0, 2, resource="g"), use(W1, resource="g"), use(W0, 1, resource="sync_token_q")],
    )
    assert named(servers, place(W0), place(W1, thread=[in_code()])) == ("program", W1)


def lock(step: int, resource: str, holder: int) -> StepWait:
    return StepWait(kind="lock", node=f"wants_{resource}", op="MutexLock", resource=resource, step=step, holder=holder)


def test_a_lock_whose_holder_computes() -> None:
    busy = [RunningStep(step=1), RunningStep(step=2, computes=True)]
    found = conclude([place(W0, wait=[lock(1, "m", 2)], running=busy, thread=[computes("slow", "PyFunc")])])
    assert (found.kind, found.node) == ("computing", "slow")
    assert found.because[-1] == f"another step at {W0} holds the lock 'm'"


def test_two_steps_that_hold_what_the_other_wants() -> None:
    found = conclude([place(W0, wait=[lock(1, "m", 2), lock(2, "n", 1)])])
    assert (found.kind, found.task) == ("deadlock", W0)
    assert found.suspect.startswith("Steps wait for each other")


def test_a_lock_that_no_step_holds() -> None:
    assert named(place(W0, wait=[lock(1, "m", 0)])) == ("resource", W0)


def test_two_functions_of_the_program_at_once() -> None:
    functions = [computes("a", "PyFunc", "first"), computes("b", "PyFunc", "second")]
    found = conclude([place(W0, running=[RunningStep(step=1, computes=True)], thread=functions)])
    assert found.kind == "deadlock"
    assert "'a' in first (train.py:9) and 'b' in second (train.py:9)" in found.suspect


@pytest.mark.parametrize(
    ("chief", "expected"),
    [
        (place(CHIEF, state="failed", reason="it was ended by SIGABRT"), ("absent", CHIEF)),
        (place(CHIEF, silence="it was asked"), ("silent", CHIEF)),
        (place(CHIEF, thread=[in_code("download")]), ("program", CHIEF)),
        (place(CHIEF, state="succeeded"), ("chief", CHIEF)),
        (place(PS), ("chief", W1)),
    ],
)
def test_a_worker_that_waits_for_the_chief(chief: Place, expected: tuple[str, str]) -> None:
    assert named(chief, place(W1, thread=[waits("chief")])) == expected


def test_a_session_that_waits_for_a_task() -> None:
    found = conclude([place(W0, thread=[waits("create")]), place(W1, state="missing", reason="never came")])
    assert (found.kind, found.task) == ("absent", W1)
    assert found.because == (f"the program of {W0} waits for its session",)


def test_a_session_that_waits_for_a_program_without_a_server() -> None:
    assert named(place(W0, thread=[waits("create")]), place(W1, thread=[in_code()])) == ("program", W1)


def test_a_silent_task_is_the_better_explanation_than_a_queue() -> None:
    assert named(place(PS, wait=[elements()], use=[use(W0, 1)]), place(W1, silence="it was asked")) == ("silent", W1)


def test_nothing_waits() -> None:
    assert conclude([]).kind == "nothing"
    assert named(place(PS, thread=[waits("join")])) == ("nothing", None)
    assert named(place(PS, thread=[in_code()]), place(W0, thread=[in_code()])) == ("program", W0)
    assert named(place(PS, silence="it was asked")) == ("silent", PS)


def test_the_program_s_own_frame_is_the_innermost_one_that_is_not_the_library_s() -> None:
    files = {"runpy.py": True, "/home/me/tenfold/train.py": False, "threading.py": True, "errors.py": True}
    frames = [StackFrame(file=file, line=at, function="f", library=own) for at, (file, own) in enumerate(files.items())]
    thread = ThreadStack(frame=frames)
    frame = own_frame(thread)
    assert frame is not None
    assert (frame.file, where(thread)) == ("/home/me/tenfold/train.py", "in f (train.py:1)")
    assert where(ThreadStack()) == ""


def test_a_circle_of_tensors() -> None:
    """Each step waits for a tensor of the other one: the walk ends."""
    found = conclude([place(W0, wait=[tensor(W1)], thread=[in_code()]), place(W1, wait=[tensor(W0)])])
    assert (found.kind, found.task) == ("deadlock", W0)
    assert found.suspect == (
        f"Steps wait for each other in a circle: a step at {W0} waits for edge_1_w of {W1}; a step at {W1} waits for "
        f"edge_1_w of {W0}."
    )
