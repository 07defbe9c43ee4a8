"""The status of a Kubernetes pod, as JSON, and the last words of its container: what is odd in them is not known, and
raises nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fuzz.harness import Fault
from fuzz.messages import changed_bytes
from tenfold.launchers.kubernetes_status import view
from tenfold.launchers.kubernetes_tasks import PodTasks
from tenfold.launchers.pod_process import last_words, read_last_words

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

_ODD: tuple[Any, ...] = (None, True, -1, 1 << 70, 1.5, "", "x", [], [7], {}, {"a": {}}, "143", [{}])


def one_input(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    if (said := read_last_words(text)) is not None and read_last_words(last_words(*said).decode()) is None:
        raise Fault(f"{said} is not read again")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return
    if not isinstance(found, dict):
        return
    tasks = PodTasks(5, 100)
    task = tasks.begin("worker/0", view(found).name, 0, 0.0)
    task.created = True
    tasks.on_pod(view(found), False, 1.0)
    tasks.on_pod(view(found), True, 2.0)
    tasks.overdue(1e9)
    if task.exit_code is None:
        raise Fault("a pod that is gone has not ended")


def mutated(data: bytes, chance: random.Random) -> bytes:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return changed_bytes(data, chance)
    places = list(_places(found))
    if not places or chance.random() < 0.1:
        return changed_bytes(data, chance)
    place, key = chance.choice(places)
    place[key] = chance.choice(_ODD)
    return json.dumps(found).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each container with each key of it."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in list(items):
        yield value, key
        yield from _places(each)


def seeds() -> Iterator[bytes]:
    words = last_words(1, {"type": "ValueError", "message": "no", "node": "n"}).decode()
    yield words.encode()
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    for state, status in (
        ({"running": {"startedAt": "2026-01-01T00:00:00Z"}}, {"phase": "Running"}),
        ({"terminated": {"exitCode": 1, "reason": "Error", "message": words}}, {"phase": "Failed"}),
        ({"terminated": {"exitCode": 137, "reason": "OOMKilled"}}, {"phase": "Failed", "reason": "Evicted"}),
        ({"waiting": {"reason": "ImagePullBackOff", "message": "none"}}, {"phase": "Pending"}),
        ({}, {"phase": "Pending", "conditions": [unschedulable]}),
    ):
        metadata = {"name": "p", "uid": "u", "deletionTimestamp": "now", "deletionGracePeriodSeconds": 30}
        whole = {**status, "containerStatuses": [{"name": "task", "state": state}]}
        yield json.dumps({"metadata": metadata, "spec": {"nodeName": "n"}, "status": whole}).encode()
