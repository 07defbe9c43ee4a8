"""What a pod's status says of its task, in the forms in which Kubernetes has it."""

from __future__ import annotations

from typing import Any

import pytest

from tenfold.launchers.kubernetes_status import Ended, PodView, as_asked, gone, view
from tenfold.launchers.pod_process import last_words


def pod(state: dict[str, Any] | None = None, *, phase: str = "Running", **status: Any) -> dict[str, Any]:
    found = {"phase": phase, **status}
    if state is not None:
        found["containerStatuses"] = [{"name": "task", "state": state}]
    return {"metadata": {"name": "p", "uid": "u"}, "spec": {"nodeName": "n1"}, "status": found}


def terminated(code: int, message: str = "", reason: str = "Error") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "message": message, "reason": reason}}


def test_one_that_runs_and_one_that_is_new() -> None:
    assert view(pod({"running": {}})) == PodView("p", "u", "n1", started=True)
    assert view({"metadata": {"name": "p", "uid": "u"}}) == PodView("p", "u")
    assert view(pod({"waiting": {"reason": "ContainerCreating"}}, phase="Pending")).waits == ""


@pytest.mark.parametrize(
    ("found", "ended"),
    [
        (pod(terminated(0, last_words(0, None).decode(), "Completed"), phase="Succeeded"), Ended(0)),
        (pod(terminated(143, last_words(-15, None).decode()), phase="Failed"), Ended(-15)),
        (
            pod(terminated(1, last_words(1, {"type": "ValueError", "message": "no"}).decode()), phase="Failed"),
            Ended(1, {"type": "ValueError", "message": "no"}),
        ),
        # no last words: the process was killed, or is not ours
        (pod(terminated(137), phase="Failed"), Ended(-9)),
        (pod(terminated(255, "Segmentation fault"), phase="Failed"), Ended(255)),
        (
            pod(terminated(137, reason="OOMKilled"), phase="Failed"),
            Ended(
                -9,
                {
                    "type": "OOMKilled",
                    "message": "its container took more memory than its limit; give the job more with --memory",
                },
            ),
        ),
        (
            pod(terminated(128, "exec: no such file", "StartError"), phase="Failed"),
            Ended(128, {"type": "StartError", "message": "exec: no such file"}),
        ),
        (
            pod(phase="Failed", reason="Evicted", message="The node was low on resource: memory. "),
            Ended(-9, {"type": "Evicted", "message": "The node was low on resource: memory."}),
        ),
        (
            pod(terminated(137), phase="Failed", reason="Evicted", message="low"),
            Ended(-9, {"type": "Evicted", "message": "low"}),
        ),
        # the container has ended, the pod is about to
        (pod(terminated(0, last_words(0, None).decode(), "Completed")), Ended(0)),
    ],
)
def test_how_it_ended(found: dict[str, Any], ended: Ended) -> None:
    assert view(found).ended == ended


@pytest.mark.parametrize("reason", ["InvalidImageName", "ImagePullBackOff", "CreateContainerConfigError"])
def test_what_time_does_not_mend(reason: str) -> None:
    seen = view(pod({"waiting": {"reason": reason, "message": "two\n lines"}}, phase="Pending"))
    assert (seen.refused, seen.started) == ({"type": reason, "message": "two lines"}, False)


def test_what_it_waits_for() -> None:
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    assert view(pod(phase="Pending", conditions=[unschedulable])).waits == "Unschedulable: 0/3 nodes"
    pulling = view(pod({"waiting": {"reason": "ErrImagePull", "message": "no host"}}, phase="Pending"))
    assert (pulling.waits, pulling.refused) == ("ErrImagePull: no host", None)


def test_one_that_is_gone() -> None:
    running, done = view(pod({"running": {}})), view(pod(terminated(3), phase="Failed"))
    lost = {"type": "HostLost", "message": "its pod on n1 was deleted, and not by this run"}
    assert gone(running, None) == Ended(-9, lost)
    assert gone(running, 15) == Ended(-15)
    assert gone(None, 9) == Ended(-9)
    assert gone(done, 15) == Ended(3)


def test_the_end_of_one_that_was_to_be_killed_is_that() -> None:
    assert as_asked(Ended(-15, {"type": "x"}), 9) == Ended(-9)
    assert as_asked(Ended(0), 9) == Ended(0)
    assert as_asked(Ended(-15), 15) == Ended(-15)
