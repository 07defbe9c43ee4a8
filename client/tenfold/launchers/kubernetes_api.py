"""The API server, by the official client: the calls that a run needs, list and watch, logs, and what a refusal says.

The client's package is imported where a connection is made, and not before. Each call has a deadline; one that finds no
answer, or an overloaded server, is made again within a bound. What is refused is an ApiRefusedError in the server's
words. Objects are dictionaries, as manifests have them.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tenfold.launchers.kubernetes_objects import Object

#: Seconds to connect, for an answer, and within which a call that found none is made again, the first one and others.
_CONNECT_S, _ANSWER_S, _FIRST_S, _AGAIN_S = 5.0, 15.0, 5.0, 30.0
#: Seconds of the first pause before a call is made again, and of the longest.
_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0
#: Seconds of one watch, which the server ends; and of silence after which a log is asked for anew.
_WATCH_S, _LOG_SILENCE_S = 240, 300.0
#: Characters of one line of a watch: the largest object that a server stores has 1.5 MiB.
_LONGEST = 4 << 20
#: Statuses that pass: too many requests, and a server or what is in front of it that is in trouble.
_PASSING = frozenset((408, 429, 500, 502, 503, 504))
GONE, CONFLICT, NOT_FOUND = 410, 409, 404
#: Where a pod finds the namespace that it is in.
_IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_CHARACTERS = 1000


class ApiRefusedError(Exception):
    """The server does not do what was asked. `status` is that of HTTP; 0: there was no answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def missing() -> str | None:
    """Why there is no client here."""
    found = importlib.util.find_spec("kubernetes") is not None
    return None if found else 'the kubernetes client is not installed: pip install "tenfold[kubernetes]"'


def configured(kubeconfig: str | None = None, context: str | None = None) -> tuple[Any, str | None]:
    """The client's Configuration, and the namespace that is said: of that file, else of KUBECONFIG, ~/.kube/config or,
    in a pod, its service account. Raises ApiRefusedError where there is none that can be read."""
    from kubernetes import client, config

    settings = client.Configuration()
    settings.retries = False  # calls are made again by `_call`, where their time is bounded
    settings.client_side_validation = False  # the server is the one that says what is valid
    # the client reads the variable once, when it is imported
    file = kubeconfig or os.environ.get("KUBECONFIG") or None
    try:
        if file is None and context is None and _is_in_cluster():
            config.load_incluster_config(client_configuration=settings)
            return settings, _IN_CLUSTER.read_text(encoding="utf-8").strip()
        config.load_kube_config(file, context, client_configuration=settings)
        contexts, active = config.list_kube_config_contexts(file)
        chosen = next((each for each in contexts if each["name"] == context), active)
        return settings, chosen["context"].get("namespace")
    except (config.ConfigException, OSError, KeyError, TypeError, ValueError) as error:
        raise ApiRefusedError(0, f"no cluster is configured: {error}") from error


class KubernetesApi:
    """One API server and one namespace of it. Its methods block, within their bounds, and may be called on any
    thread."""

    def __init__(self, kubeconfig: str | None, context: str | None, namespace: str | None) -> None:
        """Connects to nothing yet. Raises ApiRefusedError where no configuration is found that can be read."""
        from kubernetes import client

        settings, found = configured(kubeconfig, context)
        self.namespace = namespace or found or "default"
        settings.connection_pool_maxsize = 256  # each task has a log that is followed
        self._client = client.ApiClient(settings)
        self._core, self._batch = client.CoreV1Api(self._client), client.BatchV1Api(self._client)
        self.host = str(settings.host)

    def close(self) -> None:
        with contextlib.suppress(Exception):  # of a pool that is in use; nothing depends on it
            self._client.close()

    # -- objects

    def create_job(self, body: Object) -> Object:
        """The Job as the server has it, with its uid. A run's first call, so that a server that is not there is
        soon found out."""
        made = self._call(self._batch.create_namespaced_job, self.namespace, body, within=_FIRST_S)
        return made or self._call(self._batch.read_namespaced_job, body["metadata"]["name"], self.namespace)

    def patch_job(self, name: str, body: Object, within: float = _AGAIN_S) -> Object:
        return self._call(self._batch.patch_namespaced_job, name, self.namespace, body, within=within)

    def delete_job(self, name: str, within: float = _AGAIN_S) -> None:
        """And what it owns, after it. One that is gone is no error."""
        self._delete(self._batch.delete_namespaced_job, name, {"propagationPolicy": "Background"}, within=within)

    def create_service(self, body: Object) -> Object:
        return self._call(self._core.create_namespaced_service, self.namespace, body)

    def create_secret(self, body: Object) -> Object:
        return self._call(self._core.create_namespaced_secret, self.namespace, body)

    def delete_secret(self, name: str) -> None:
        self._delete(self._core.delete_namespaced_secret, name, {})

    def create_pod(self, body: Object) -> Object:
        return self._call(self._core.create_namespaced_pod, self.namespace, body)

    def delete_pod(self, name: str, grace: int, within: float = _AGAIN_S) -> None:
        """Asks for its end, after `grace` seconds at the latest; 0 takes it off the list and asks nobody. One that is
        gone is no error."""
        self._delete(self._core.delete_namespaced_pod, name, {"gracePeriodSeconds": grace}, within=within)

    def _delete(self, call: Callable[..., Any], name: str, how: Object, *, within: float = _AGAIN_S) -> None:
        try:
            self._call(call, name, self.namespace, body=how, within=within)
        except ApiRefusedError as error:
            if error.status != NOT_FOUND:
                raise

    def _call(self, call: Callable[..., Any], *arguments: Any, within: float = _AGAIN_S, **others: Any) -> Object:
        """Makes the call, again where no answer came or the server is in trouble. Raises ApiRefusedError.

        An object that is there already (409) once an earlier try had no answer was made by that try: {}.
        """
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        deadline, pause, unanswered = time.monotonic() + within, _PAUSE_S, False
        while True:
            try:
                found = call(*arguments, _request_timeout=(_CONNECT_S, _ANSWER_S), **others)
                plain = self._client.sanitize_for_serialization(found)
                return plain if isinstance(plain, dict) else {}
            except ApiException as error:
                refused = ApiRefusedError(int(error.status or 0), words(error))
                if refused.status == CONFLICT and unanswered and "create" in call.__name__:
                    return {}
                if refused.status not in _PASSING or time.monotonic() + pause > deadline:
                    raise refused from error
            except (HTTPError, OSError) as error:
                unanswered = True
                if time.monotonic() + pause > deadline:
                    raise ApiRefusedError(0, f"{self.host} does not answer: {_reason(error)}") from error
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    # -- pods, as they change

    def list_pods(self, selector: str) -> tuple[list[Object], str]:
        """All pods of that selector, and the version from which on a watch tells of changes."""
        found = self._call(self._core.list_namespaced_pod, self.namespace, label_selector=selector)
        return list(found.get("items") or ()), version_of(found)

    def watch_pods(self, selector: str, version: str, stop: Stop) -> Iterator[tuple[str, Object]]:
        """(ADDED | MODIFIED | DELETED | BOOKMARK, pod) as they happen after that version, until the server ends it, as
        it does every few minutes. Raises ApiRefusedError: GONE for a version that is too old, 0 where the connection
        broke.

        Lines are read here: the client's own Watch turns a server's ERROR into a KeyError in some of its versions.
        """
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        try:
            response = self._core.list_namespaced_pod(
                self.namespace,
                label_selector=selector,
                resource_version=version,
                watch=True,
                allow_watch_bookmarks=True,
                timeout_seconds=_WATCH_S,
                _preload_content=False,
                _request_timeout=(_CONNECT_S, _WATCH_S + _ANSWER_S),
            )
            with _reading(response, stop):
                for line in _lines(response):
                    event = json.loads(line)
                    kind, found = str(event["type"]), dict(event["object"])
                    if kind == "ERROR":
                        raise ApiRefusedError(int(found.get("code") or 0), str(found.get("message") or "no reason"))
                    yield kind, found
        except ApiException as error:
            raise ApiRefusedError(int(error.status or 0), words(error)) from error
        except (HTTPError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ApiRefusedError(0, f"the watch broke: {_reason(error)}") from error

    def follow_log(self, pod: str, stop: Stop, since: float | None = None) -> Iterator[tuple[str, str]]:
        """(time, line) of the pod's container from its start, or of the last `since` seconds, until the container has
        ended or `stop` is set. The time is comparable text. Raises ApiRefusedError."""
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        recent = {} if since is None else {"since_seconds": max(1, int(since))}
        try:
            response = self._core.read_namespaced_pod_log(
                pod,
                self.namespace,
                follow=True,
                timestamps=True,
                _preload_content=False,
                _request_timeout=(_CONNECT_S, _LOG_SILENCE_S),
                **recent,
            )
            with _reading(response, stop):
                for line in _lines(response):
                    moment, _, text = line.partition(" ")
                    yield comparable(moment), text
        except ApiException as error:
            raise ApiRefusedError(int(error.status or 0), words(error)) from error
        except (HTTPError, OSError, ValueError, AttributeError) as error:
            raise ApiRefusedError(0, f"the log broke: {_reason(error)}") from error


def version_of(found: Mapping[str, Any]) -> str:
    """The version of an object or of a list; empty where there is none."""
    metadata = found.get("metadata")
    return str(metadata.get("resourceVersion") or "") if isinstance(metadata, dict) else ""


def comparable(moment: str) -> str:
    """A time of RFC 3339, of which servers leave out trailing zeros, as text that sorts in time: nanoseconds, UTC."""
    whole, _, rest = moment.partition(".")
    digits = rest.rstrip("Z") if rest else ""
    return f"{whole.rstrip('Z')}.{digits[:9].ljust(9, '0')}"


class Stop(threading.Event):
    """An event whose setting ends the responses that are being read."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._responses: list[Any] = []

    def add(self, response: Any) -> None:
        with self._lock:
            self._responses.append(response)
            if self.is_set():
                _unblock(response)

    def discard(self, response: Any) -> None:
        with self._lock:
            self._responses = [each for each in self._responses if each is not response]

    def set(self) -> None:
        super().set()
        with self._lock:
            for response in self._responses:
                _unblock(response)


@contextmanager
def _reading(response: Any, stop: Stop) -> Iterator[None]:
    """Until the block ends, or `stop` is set."""
    stop.add(response)
    try:
        yield
    finally:
        stop.discard(response)
        response.close()
        response.release_conn()


def _unblock(response: Any) -> None:
    """Ends the reading of a response on another thread."""
    with contextlib.suppress(Exception):  # it has ended by itself, or this urllib3 cannot: then its time-out ends it
        response.shutdown()


def _lines(response: Any) -> Iterator[str]:
    """The lines of a response as they come; one that is longer than any may be is cut."""
    rest = b""
    for piece in response.stream(1 << 16, decode_content=False):
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            if line:
                yield line.decode("utf-8", "replace")
        if len(rest) > _LONGEST:
            yield rest.decode("utf-8", "replace")
            rest = b""
    if rest:
        yield rest.decode("utf-8", "replace")


def words(error: Any) -> str:
    """What the server said, in one line: the message of its Status, else the reason of the answer; of any other error
    the innermost reason."""
    body = getattr(error, "body", None)
    if body is None and getattr(error, "status", None) is None:
        return _reason(error)
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body or "")
    with contextlib.suppress(ValueError):
        found = json.loads(text)
        if isinstance(found, dict) and found.get("message"):
            text = str(found["message"])
    return " ".join((text or str(error.reason) or f"status {error.status}").split())[:_CHARACTERS]


def _reason(error: BaseException) -> str:
    """One line: the innermost reason of a chain of them."""
    inner = getattr(error, "reason", None)
    if isinstance(inner, BaseException):
        return _reason(inner)
    text = " ".join(str(error).split())[:_CHARACTERS] or type(error).__name__
    return text.rpartition(">: ")[2] or text


def _is_in_cluster() -> bool:
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and _IN_CLUSTER.exists()
