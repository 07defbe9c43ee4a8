"""The objects of the tests' Kubernetes cluster: versions, events for watches, deletion in two steps.

A version is a number that grows with each change of anything. The newest changes are kept for watches that begin at an
older version; a version before them is gone (410). Thread-safe; waits are on `changed`.
"""

from __future__ import annotations

import copy
import threading
import uuid
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Object = dict[str, Any]
#: Changes that are kept for watches.
_KEPT = 1000


class StatusError(Exception):
    """A refusal, as the API has it."""

    def __init__(self, code: int, reason: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.code, self.reason, self.headers = code, reason, headers or {}

    @property
    def body(self) -> Object:
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": str(self),
            "reason": self.reason,
            "code": self.code,
        }


@dataclass(frozen=True, slots=True)
class Event:
    version: int
    kind: str
    resource: str
    object: Object


class Store:
    """All objects, by (resource, namespace, name)."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        self._objects: dict[tuple[str, str, str], Object] = {}
        self._version = 1
        self._events: deque[Event] = deque(maxlen=_KEPT)
        #: The version before which nothing is known any more.
        self._compacted = 0
        #: Called with (resource, object) before one is created; may raise StatusError.
        self.admission: list[Callable[[str, Object], None]] = []

    @property
    def version(self) -> int:
        with self.changed:
            return self._version

    def compact(self) -> None:
        """Forgets all changes up to now: watches that want them get 410."""
        with self.changed:
            self._events.clear()
            self._compacted = self._version
            self.changed.notify_all()

    def create(self, resource: str, namespace: str, body: Object, *, dry: bool = False) -> Object:
        with self.changed:
            found = copy.deepcopy(body)
            metadata = found.setdefault("metadata", {})
            name = metadata.get("name") or str(metadata.get("generateName", "")) + uuid.uuid4().hex[:5]
            key = (resource, namespace, name)
            for admit in self.admission:
                admit(resource, found)
            if key in self._objects:
                raise StatusError(409, "AlreadyExists", f'{resource} "{name}" already exists')
            metadata.update(name=name, namespace=namespace, uid=str(uuid.uuid4()), creationTimestamp=now())
            if resource == "secrets":
                _encode(found)
            if not dry:
                self._put(key, found, "ADDED")
            return copy.deepcopy(found)

    def get(self, resource: str, namespace: str, name: str) -> Object:
        with self.changed:
            return copy.deepcopy(self._found(resource, namespace, name))

    def list(self, resource: str, namespace: str | None, selector: str = "") -> list[Object]:
        with self.changed:
            return [
                copy.deepcopy(found)
                for (kind, space, _), found in sorted(self._objects.items())
                if kind == resource and namespace in (None, space) and matches(selector, found)
            ]

    def patch(self, resource: str, namespace: str, name: str, patch: Object) -> Object:
        """A merge patch; one that names a version needs that of the object."""
        with self.changed:
            found = copy.deepcopy(self._found(resource, namespace, name))
            wanted = (patch.get("metadata") or {}).get("resourceVersion")
            if wanted is not None and wanted != found["metadata"]["resourceVersion"]:
                raise StatusError(
                    409,
                    "Conflict",
                    f'Operation cannot be fulfilled on {resource} "{name}": the object has been modified; please apply '
                    "your changes to the latest version and try again",
                )
            _merge(found, patch)
            self._put((resource, namespace, name), found, "MODIFIED")
            return copy.deepcopy(found)

    def set_status(self, resource: str, namespace: str, name: str, status: Object) -> None:
        """Replaces the status; an object that is gone is no error."""
        with self.changed:
            found = self._objects.get((resource, namespace, name))
            if found is not None and found.get("status") != status:
                self._put((resource, namespace, name), {**copy.deepcopy(found), "status": status}, "MODIFIED")

    def update(self, resource: str, namespace: str, name: str, change: Callable[[Object], None]) -> None:
        """Changes the object in place; one that is gone is no error."""
        with self.changed:
            found = self._objects.get((resource, namespace, name))
            if found is not None:
                changed = copy.deepcopy(found)
                change(changed)
                self._put((resource, namespace, name), changed, "MODIFIED")

    def delete(self, resource: str, namespace: str, name: str, grace: int | None = None) -> Object:
        """A pod that has a node is only marked, unless `grace` is 0 or it has ended: its kubelet removes it."""
        with self.changed:
            found = copy.deepcopy(self._found(resource, namespace, name))
            if resource == "pods":
                seconds = found["spec"].get("terminationGracePeriodSeconds", 30) if grace is None else grace
                ended = found.get("status", {}).get("phase") in ("Succeeded", "Failed")
                if found["spec"].get("nodeName") and seconds > 0 and not ended:
                    metadata = found["metadata"]
                    before = metadata.get("deletionGracePeriodSeconds")
                    if before is None or seconds < before:
                        metadata.update(deletionTimestamp=now(), deletionGracePeriodSeconds=seconds)
                        self._put((resource, namespace, name), found, "MODIFIED")
                    return found
            self.remove(resource, namespace, name)
            return found

    def remove(self, resource: str, namespace: str, name: str, uid: str | None = None) -> None:
        """Takes it away; one that is gone, or is another of that name, is no error."""
        with self.changed:
            key = (resource, namespace, name)
            found = self._objects.get(key)
            if found is not None and uid in (None, found["metadata"]["uid"]):
                del self._objects[key]
                self._tell("DELETED", resource, found)

    def watch(
        self, resource: str, namespace: str | None, selector: str, version: int, look_s: float
    ) -> Iterator[Event | None]:
        """Changes after `version`, as they happen; None after `look_s` without one. Raises StatusError (410)."""
        while True:
            with self.changed:
                if version < self._compacted:
                    raise StatusError(410, "Expired", f"too old resource version: {version} ({self._compacted})")
                found = [event for event in self._events if event.version > version and event.resource == resource]
                version = max(version, self._version)
                if not found and not self.changed.wait(look_s):
                    found = [None]
            for event in found:
                space = "" if event is None else event.object["metadata"]["namespace"]
                if event is None or (namespace in (None, space) and matches(selector, event.object)):
                    yield event

    def _found(self, resource: str, namespace: str, name: str) -> Object:
        found = self._objects.get((resource, namespace, name))
        if found is None:
            raise StatusError(404, "NotFound", f'{resource} "{name}" not found')
        return found

    def _put(self, key: tuple[str, str, str], found: Object, kind: str) -> None:
        self._objects[key] = found
        self._tell(kind, key[0], found)

    def _tell(self, kind: str, resource: str, found: Object) -> None:
        self._version += 1
        found["metadata"]["resourceVersion"] = str(self._version)
        self._events.append(Event(self._version, kind, resource, copy.deepcopy(found)))
        if len(self._events) == _KEPT:
            self._compacted = self._events[0].version
        self.changed.notify_all()


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def matches(selector: str, found: Object) -> bool:
    """Equality-based selectors: "a=b,c=d"."""
    labels = found["metadata"].get("labels") or {}
    pairs = [each.replace("==", "=").partition("=") for each in filter(None, selector.split(","))]
    return all(labels.get(name.strip()) == value.strip() for name, _, value in pairs)


def _merge(found: Object, patch: Object) -> None:
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, dict) and isinstance(found.get(key), dict):
            _merge(found[key], value)
        else:
            found[key] = value


def _encode(secret: Object) -> None:
    import base64

    for key, text in (secret.pop("stringData", None) or {}).items():
        secret.setdefault("data", {})[key] = base64.b64encode(text.encode()).decode()
    size = sum(len(base64.b64decode(value)) for value in (secret.get("data") or {}).values())
    if size > 1 << 20:
        raise StatusError(422, "Invalid", f"Secret is invalid: data: Too long: may not be more than {1 << 20} bytes")
