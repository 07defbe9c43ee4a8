"""What a pod's status says of its task: where it is, whether it runs, how it ended, what keeps it from starting. Pure.

Read by kubernetes_pods.py from pods as the API server sends them; nothing of Kubernetes is imported. The sources are
the API's own descriptions of PodStatus, ContainerStatus and PodCondition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold.launchers.pod_process import read_last_words

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Reasons of a waiting container that time does not mend.
_FOR_GOOD = frozenset(
    (
        *("InvalidImageName", "ErrImageNeverPull", "ImageInspectError"),
        *("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError"),
    )
)
#: Reasons of an image that is not there yet, or not at all: the second pull that fails settles it.
_PULLS, _PULLED_AGAIN = frozenset(("ErrImagePull", "RegistryUnavailable")), "ImagePullBackOff"
#: Reasons of a pod whose node, and not whose program, ended it.
_OF_THE_NODE = frozenset(
    ("Evicted", "NodeLost", "NodeAffinity", "Preempting", "Shutdown", "Terminated", "NodeShutdown")
)
#: Exit codes above it are signals.
_SIGNALS, _LAST_SIGNAL = 128, 64
_SIGKILL = 9
_CHARACTERS = 2000

Error = dict[str, str]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a task ended: negative where a signal did it."""

    code: int
    error: Error | None = None


@dataclass(frozen=True, slots=True)
class PodView:
    """One pod, as it is now."""

    name: str
    uid: str
    #: None before it has one.
    node: str | None = None
    #: Whether its container has started, so that there are lines.
    started: bool = False
    ended: Ended | None = None
    #: Why it will not start, for good.
    refused: Error | None = None
    #: Why it has not started yet; empty where nothing is known.
    waits: str = ""
    #: Seconds that it gets to end; None while nobody has deleted it.
    deleted: float | None = None


def view(pod: Mapping[str, Any]) -> PodView:
    """The pod in our words. What is missing in it, or has another form, is taken for not known."""
    metadata, status, spec = _part(pod, "metadata"), _part(pod, "status"), _part(pod, "spec")
    state = _part(next(iter(_parts(status, "containerStatuses")), {}), "state")
    waiting, terminated = _part(state, "waiting"), _part(state, "terminated")
    phase = str(status.get("phase") or "")
    refused, waits = _waiting(waiting, status)
    return PodView(
        name=str(metadata.get("name", "")),
        uid=str(metadata.get("uid", "")),
        node=str(spec["nodeName"]) if spec.get("nodeName") else None,
        started="running" in state or "terminated" in state,
        ended=_ended(phase, status, terminated),
        refused=refused,
        waits=waits,
        deleted=_number(metadata.get("deletionGracePeriodSeconds")) if metadata.get("deletionTimestamp") else None,
    )


def gone(last: PodView | None, asked: int | None) -> Ended:
    """How a task ended whose pod is not there any more. `asked`: the signal that we wanted it to end by."""
    if last is not None and last.ended is not None:
        return as_asked(last.ended, asked)
    if asked is not None:
        return Ended(-asked)
    where = f" on {last.node}" if last is not None and last.node else ""
    return Ended(-_SIGKILL, {"type": "HostLost", "message": f"its pod{where} was deleted, and not by this run"})


def as_asked(ended: Ended, asked: int | None) -> Ended:
    """The end of a task that was to be killed is that signal: Kubernetes sends SIGTERM first, and a moment later the
    other."""
    if asked == _SIGKILL and (ended.code < 0 or ended.code > _SIGNALS):
        return Ended(-_SIGKILL)
    return ended


def _ended(phase: str, status: Mapping[str, Any], terminated: Mapping[str, Any]) -> Ended | None:
    if phase not in ("Succeeded", "Failed"):
        # a pod whose container has ended is about to be one of them
        if not terminated:
            return None
    elif not terminated:
        reason = str(status.get("reason") or "Failed")
        message = str(status.get("message") or "its pod has ended, and nothing is known of its container")
        return Ended(0) if phase == "Succeeded" else Ended(-_SIGKILL, _error(reason, message))
    code = _number(terminated.get("exitCode"))
    reason = str(terminated.get("reason") or "")
    said = read_last_words(str(terminated.get("message") or ""))
    if said is not None:
        code, error = said
        if code == -_SIGKILL and error is None and reason == "OOMKilled":
            error = _out_of_memory()
        return Ended(code, error)
    if _SIGNALS < code <= _SIGNALS + _LAST_SIGNAL:
        code = _SIGNALS - code
    if reason == "OOMKilled":
        return Ended(code, _out_of_memory())
    if str(status.get("reason") or "") in _OF_THE_NODE:
        return Ended(code or -_SIGKILL, _error(str(status["reason"]), str(status.get("message") or "")))
    if code and reason not in ("", "Error", "Completed"):
        return Ended(code, _error(reason, str(terminated.get("message") or "the container was not started")))
    return Ended(code)


def _waiting(waiting: Mapping[str, Any], status: Mapping[str, Any]) -> tuple[Error | None, str]:
    """(why it will not start, why it has not started yet)."""
    reason, message = str(waiting.get("reason") or ""), str(waiting.get("message") or "")
    if reason in _FOR_GOOD or reason == _PULLED_AGAIN:
        return _error(reason, message or "no more is said"), ""
    if reason in _PULLS:
        return None, f"{reason}: {message}"
    for condition in _parts(status, "conditions"):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return None, f"{condition.get('reason') or 'Unschedulable'}: {condition.get('message') or ''}".rstrip(": ")
    return None, "" if reason in ("", "ContainerCreating", "PodInitializing") else f"{reason}: {message}"


def _out_of_memory() -> Error:
    return _error("OOMKilled", "its container took more memory than its limit; give the job more with --memory")


def _error(kind: str, message: str) -> Error:
    """One line of it."""
    return {"type": kind, "message": " ".join(message.split())[:_CHARACTERS]}


def _part(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = of.get(name)
    return found if isinstance(found, dict) else {}


def _parts(of: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = of.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _number(found: Any) -> int:
    return found if isinstance(found, int) and abs(found) < 1 << 31 else 0
