"""What a caller gets to see: other callers' sessions are there, and their names are not."""

from __future__ import annotations

from tenfold_control_api.why import views
from tenfold_control_api.why.conclude import conclude
from tenfold_control_api.why.evidence import Place
from tenfold_protos.why_pb2 import OpenSession, ResourceUse, StackFrame, StepWait, TaskAnswer, ThreadStack

PS = "/job:ps/replica:0/task:0"
SECRETS = ("secret_get", "secret_queue", "SecretOp", "secret.py", "secret_fetch")


def answer() -> TaskAnswer:
    """Two sessions wait: one is mine, in a queue that both use."""
    found = TaskAnswer(task=PS, host="here", pid=7)
    found.wait.add(kind="elements", node="get", op="Dequeue", resource="shared", need=1, session="mine", master=PS)
    found.wait.add(
        kind="elements", node="secret_get", op="SecretOp", resource="secret_queue", need=1, session="other", master=PS
    )
    found.wait.add(kind="lock", node="secret_get", op="SecretOp", resource="shared", session="other", master=PS)
    found.use.append(ResourceUse(resource="shared", node="secret_put", op="SecretOp", gives=True, session="other"))
    found.use.append(ResourceUse(resource="secret_queue", node="secret_put", op="SecretOp", session="other"))
    found.session.append(OpenSession(handle="mine", owner="me", own=True))
    found.session.append(OpenSession(handle="other", owner="you"))
    frame = StackFrame(file="/x/secret.py", line=1, function="f")
    found.thread.append(ThreadStack(name="main", main=True, frame=[frame]))
    found.client_step.add(name=["secret_fetch"], seconds=1.0)
    return found


def test_an_admin_sees_all() -> None:
    places = [Place(PS, "ready", answer=answer())]
    text = views.why_view("cluster", "c", places, conclude(places), 0.1).model_dump_json()
    assert all(secret in text for secret in SECRETS)
    assert "mine" not in text.replace("(another", "")


def test_another_caller_s_session_is_nothing_but_a_wait() -> None:
    shown = views.hidden([Place(PS, "ready", answer=answer())], frozenset(("mine",)))
    found = views.why_view("cluster", "c", shown, conclude(shown), 0.1)
    text = found.model_dump_json()

    assert not any(secret in text for secret in (*SECRETS, "secret"))
    (task,) = found.tasks
    assert [(wait.kind, wait.resource, wait.node) for wait in task.waits] == [
        ("elements", "shared", "get"),
        ("elements", "(another caller's)", None),
        ("lock", "shared", None),
    ]
    assert (task.threads, task.steps) == ([], [])
    # that somebody fills my queue is told, and not by what
    (use,) = [each for place in shown if place.answer is not None for each in place.answer.use]
    assert (use.resource, use.node, use.gives) == ("shared", "", True)


def test_a_task_without_an_answer_stays_as_it_is() -> None:
    place = Place(PS, "ready", silence="it was asked")
    assert views.hidden([place], frozenset()) == [place]
    (task,) = views.why_view("run", "r", [place], conclude([place]), 0.1).tasks
    assert (task.answered, task.silence, task.host, task.pid) == (False, "it was asked", None, None)


def test_sessions_are_mine_by_their_handle_or_their_owner() -> None:
    places = [Place(PS, "ready", answer=answer())]
    assert views.handles_of(places, lambda owner: owner == "me", frozenset(("kept",))) == {"mine", "kept"}


def test_of_a_run_the_sessions_of_its_programs_are_shown() -> None:
    places = [Place(PS, "running", answer=answer())]
    (shown,) = views.of_run(places, "me")
    assert shown.answer is not None
    assert [wait.node for wait in shown.answer.wait] == ["get", "", ""]
    assert len(shown.answer.thread) == len(shown.answer.client_step) == 1

    (both,) = views.of_run(places, "you")
    assert both.answer is not None
    assert [wait.node for wait in both.answer.wait] == ["get", "secret_get", "secret_get"]

    without = answer()
    del without.session[:]
    assert views.of_run([Place(PS, "running", answer=without)], None)[0].answer == without


def test_a_session_is_shown_its_own_waits() -> None:
    (shown,) = views.only([Place(PS, "ready", answer=answer())], "mine")
    assert shown.answer is not None
    assert [wait.node for wait in shown.answer.wait] == ["get"]
    assert views.only([Place(PS, "lost")], "mine") == [Place(PS, "lost")]


def test_what_is_not_counted_is_null() -> None:
    place = Place(PS, "ready", answer=TaskAnswer(wait=[StepWait(kind="tensor", sender=PS, tensor="t", seconds=1.5)]))
    (wait,) = views.why_view("run", "r", [place], conclude([place]), 0.1).tasks[0].waits
    assert (wait.have, wait.need, wait.node, wait.resource, wait.seconds) == (None, None, None, None, 1.5)
