"""Runs the pods of the tests' Kubernetes cluster as processes of this machine, each in a mount namespace of its own.

What a container gets is real: Secrets as files, variables by reference, the names of other pods in /etc/hosts, SIGTERM
and after its grace SIGKILL, its last words, its log with times. What it does not get: an image (the only one is this
machine's files), a network, users and limits of its own, and an empty /tmp. So tasks have different ports, and the
security context is not tried here.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.kube.store import Event, StatusError, Store, now
from support.process_trees import kill_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.kube.store import Object

#: The image that is always there: this machine.
IMAGE = "tenfold:test"
#: Cores of a node.
_CORES = 64
_WAIT_S = 60.0
#: In the namespace: files of our own, then the program. $1 is the file of hosts, $2 the folder; SOURCE TARGET … --.
_MOUNTS = """
set -e
mount --bind "$1" /etc/hosts
mount -t tmpfs tmpfs /run
cd "$2"
shift 2
while [ "$1" != -- ]; do
  if [ -d "$1" ]; then mkdir -p "$2"; else touch "$2"; fi
  mount --bind "$1" "$2"
  shift 2
done
shift
exec "$@"
"""


def why_not() -> str | None:
    """Why there can be no pods here."""
    if not sys.platform.startswith("linux") or shutil.which("unshare") is None:
        return "pods of the tests need Linux and `unshare`"
    tried = subprocess.run(["unshare", "-m", "true"], capture_output=True, text=True, check=False)
    return f"pods of the tests need mount namespaces: {tried.stderr.strip()}" if tried.returncode else None


@dataclass(eq=False)
class _Container:
    """One that was started. Guarded by `changed`."""

    process: subprocess.Popen[bytes]
    folder: Path
    lines: list[str] = field(default_factory=list)
    ended: bool = False
    changed: threading.Condition = field(default_factory=threading.Condition)
    timer: threading.Timer | None = None


class Kubelet:
    """All nodes, `node-1` and so on."""

    def __init__(self, store: Store, folder: Path, nodes: int = 2) -> None:
        self._store, self._folder = store, folder
        self.nodes = [f"node-{number}" for number in range(1, nodes + 1)]
        #: Images that there are → the folder in which their containers begin, and where their own programs lie.
        self.images = {IMAGE: ("/", "")}
        self._turn = 0
        self._hosts = folder / "hosts"
        self._hosts.write_text("127.0.0.1 localhost\n")
        self._containers: dict[str, _Container] = {}
        self._threads: list[threading.Thread] = []
        self._over = threading.Event()
        self._version = store.version
        self._watcher = threading.Thread(target=self._watch, name="kubelet", daemon=True)
        self._watcher.start()

    # -- for tests and the API

    def lose(self, node: str) -> list[str]:
        """The node is gone at once, with all its processes; nobody tells of it. Its pods, which are evicted then."""
        self.nodes.remove(node)
        lost = [pod for pod in self._store.list("pods", None) if pod["spec"].get("nodeName") == node]
        for pod in lost:
            if (container := self._containers.get(pod["metadata"]["uid"])) is not None:
                container.folder = Path(os.devnull)  # nothing is said of it any more
                kill_tree(container.process.pid)
        return [pod["metadata"]["name"] for pod in lost]

    def evict(self, name: str, reason: str, message: str) -> None:
        """The node ends a pod for reasons of its own."""
        pod = next(each for each in self._store.list("pods", None) if each["metadata"]["name"] == name)
        status = {**pod.get("status", {}), "reason": reason, "message": message}
        self._store.set_status("pods", pod["metadata"]["namespace"], name, status)
        self._end(pod, 1)

    def logs(self, name: str, since: float | None, follow: bool) -> Iterator[str]:
        """Raises StatusError for a pod that is not there or has not started."""
        pod = next((each for each in self._store.list("pods", None) if each["metadata"]["name"] == name), None)
        if pod is None:
            raise StatusError(404, "NotFound", f'pods "{name}" not found')
        container = self._containers.get(pod["metadata"]["uid"])
        if container is None:
            message = f'container "task" in pod "{name}" is waiting to start: ContainerCreating'
            raise StatusError(400, "BadRequest", message)
        return self._lines(container, since, follow)

    def close(self) -> None:
        self._over.set()
        with self._store.changed:
            self._store.changed.notify_all()
        self._watcher.join(_WAIT_S)
        for container in self._containers.values():
            if container.timer is not None:
                container.timer.cancel()
            kill_tree(container.process.pid)
        for thread in self._threads:
            thread.join(_WAIT_S)

    # -- pods

    def _watch(self) -> None:
        version = self._version
        while not self._over.is_set():
            try:
                for event in self._store.watch("pods", None, "", version, 0.2):
                    if self._over.is_set():
                        return
                    if event is not None:
                        self._on_pod(event)
            except StatusError:  # what has happened to that version is not known any more: as it is now
                with self._store.changed:
                    version = self._store.version
                    pods = self._store.list("pods", None)
                for pod in pods:
                    self._on_pod(Event(version, "MODIFIED" if pod["spec"].get("nodeName") else "ADDED", "pods", pod))

    def _on_pod(self, event: Event) -> None:
        pod, uid = event.object, event.object["metadata"]["uid"]
        if event.kind == "ADDED":
            self._schedule(pod)
        elif event.kind == "DELETED" and uid in self._containers:
            kill_tree(self._containers[uid].process.pid)
        elif pod["metadata"].get("deletionTimestamp"):
            self._end(pod, pod["metadata"]["deletionGracePeriodSeconds"])
        elif pod["spec"].get("nodeName") and uid not in self._containers and "status" not in pod:
            self._start(pod)

    def _schedule(self, pod: Object) -> None:
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        requests = (pod["spec"]["containers"][0].get("resources") or {}).get("requests") or {}
        if int(requests.get("cpu", 0)) > _CORES or not self.nodes:
            message = f"0/{len(self.nodes)} nodes are available: {len(self.nodes)} Insufficient cpu."
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
            self._store.set_status("pods", namespace, name, {"phase": "Pending", "conditions": [condition]})
            return
        node = self.nodes[self._turn % len(self.nodes)]
        self._turn += 1
        self._store.update("pods", namespace, name, lambda found: found["spec"].update(nodeName=node))

    def _start(self, pod: Object) -> None:
        container = pod["spec"]["containers"][0]
        if container["image"] not in self.images:
            for reason, message in (
                ("ErrImagePull", f'failed to pull and unpack image "{container["image"]}": not found'),
                ("ImagePullBackOff", f'Back-off pulling image "{container["image"]}": ErrImagePull: not found'),
            ):
                self._say(pod, "Pending", {"waiting": {"reason": reason, "message": message}})
            return
        try:
            command, variables, mounts, folder = self._prepared(pod)
        except StatusError as error:
            self._say(pod, "Pending", {"waiting": {"reason": "CreateContainerConfigError", "message": str(error)}})
            return
        self._name(pod)
        begin, programs = self.images[container["image"]]
        where = container.get("workingDir") or begin
        if programs:
            variables["PATH"] = f"{programs}:{variables['PATH']}"
        process = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", _MOUNTS, "sh", str(self._hosts), where, *mounts, "--", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=variables,
            start_new_session=True,
        )
        started = _Container(process, folder)
        self._containers[pod["metadata"]["uid"]] = started
        thread = threading.Thread(target=self._read, args=(pod, started), name="container", daemon=True)
        self._threads.append(thread)
        self._say(pod, "Running", {"running": {"startedAt": now()}})
        thread.start()

    def _read(self, pod: Object, container: _Container) -> None:
        """Body of a thread: the lines of a container, and its end."""
        assert container.process.stdout is not None
        with container.process.stdout as out:
            for line in out:
                moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0") + "Z"
                with container.changed:
                    container.lines.append(f"{moment} {line.decode('utf-8', 'replace').rstrip(chr(10))}\n")
                    container.changed.notify_all()
        code = container.process.wait(_WAIT_S)
        with container.changed:
            container.ended = True
            container.changed.notify_all()
        if container.folder == Path(os.devnull) or self._over.is_set():
            return
        message = (container.folder / "end").read_text()[:4096]
        state = {"exitCode": code if code >= 0 else 128 - code, "reason": "Error" if code else "Completed"}
        self._say(pod, "Failed" if code else "Succeeded", {"terminated": {**state, "message": message}})
        namespace, name, uid = (pod["metadata"][key] for key in ("namespace", "name", "uid"))
        with contextlib.suppress(StatusError):
            if self._store.get("pods", namespace, name)["metadata"].get("deletionTimestamp"):
                self._store.remove("pods", namespace, name, uid)

    def _end(self, pod: Object, grace: int) -> None:
        """SIGTERM, and SIGKILL after the grace. One that has no process is taken off the list."""
        uid = pod["metadata"]["uid"]
        container = self._containers.get(uid)
        if pod["spec"].get("nodeName") not in self.nodes:
            return
        if container is None or container.ended:
            self._store.remove("pods", pod["metadata"]["namespace"], pod["metadata"]["name"], uid)
            return
        if container.timer is not None:
            container.timer.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.kill(container.process.pid, signal.SIGTERM)
        container.timer = threading.Timer(grace, kill_tree, [container.process.pid])
        container.timer.daemon = True
        container.timer.start()

    def _say(self, pod: Object, phase: str, state: Object) -> None:
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        with contextlib.suppress(StatusError):
            before = self._store.get("pods", namespace, name).get("status", {})
            kept = {key: before[key] for key in ("reason", "message") if key in before}
            only = pod["spec"]["containers"][0]
            status = {
                "name": only["name"],
                "image": only["image"],
                "imageID": "",
                "ready": "running" in state,
                "restartCount": 0,
                "state": state,
            }
            conditions = [{"type": "PodScheduled", "status": "True"}]
            self._store.set_status(
                "pods",
                namespace,
                name,
                {
                    **kept,
                    "phase": phase,
                    "podIP": "127.0.0.1",
                    "hostIP": "127.0.0.1",
                    "conditions": conditions,
                    "containerStatuses": [status],
                },
            )

    # -- what a container gets

    def _prepared(self, pod: Object) -> tuple[list[str], dict[str, str], list[str], Path]:
        """Command, environment, mounts, and the folder of its own. Raises StatusError for a Secret that is missing."""
        folder = self._folder / pod["metadata"]["uid"]
        folder.mkdir()
        (folder / "end").touch()
        only = pod["spec"]["containers"][0]
        mounts = [str(folder / "end"), only["terminationMessagePath"]]
        volumes = {each["name"]: each for each in pod["spec"].get("volumes", ())}
        for mount in only.get("volumeMounts", ()):
            volume = volumes[mount["name"]]
            if "projected" in volume or "secret" in volume:
                source = folder / mount["name"]
                source.mkdir()
                for secret in self._sources(volume):
                    for key, value in self._secret(pod, secret).items():
                        (source / key).write_bytes(value)
                mounts += [str(source), mount["mountPath"]]
        variables = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        own: dict[str, str] = {}
        for each in only.get("env", ()):
            own[each["name"]] = self._value(pod, each, own)
        own.pop("NUMBA_CACHE_DIR", None)  # what this machine has compiled is good
        command = [_expanded(each, own) for each in (*only["command"], *only.get("args", ()))]
        return command, {**variables, **own}, mounts, folder

    @staticmethod
    def _sources(volume: Object) -> list[str]:
        if "secret" in volume:
            return [volume["secret"]["secretName"]]
        return [each["secret"]["name"] for each in volume["projected"]["sources"]]

    def _secret(self, pod: Object, name: str) -> dict[str, bytes]:
        found = self._store.get("secrets", pod["metadata"]["namespace"], name)
        return {key: base64.b64decode(value) for key, value in found.get("data", {}).items()}

    def _value(self, pod: Object, variable: Object, before: dict[str, str]) -> str:
        source: dict[str, Any] = variable.get("valueFrom") or {}
        if "secretKeyRef" in source:
            return self._secret(pod, source["secretKeyRef"]["name"])[source["secretKeyRef"]["key"]].decode()
        if "fieldRef" in source:
            annotation = re.fullmatch(r"metadata\.annotations\['(.+)'\]", source["fieldRef"]["fieldPath"])
            assert annotation is not None
            return str(pod["metadata"]["annotations"][annotation[1]])
        return _expanded(variable.get("value", ""), before)

    def _name(self, pod: Object) -> None:
        """Gives the pod its names, for all."""
        host, service = pod["spec"].get("hostname"), pod["spec"].get("subdomain")
        if host and service:
            name = f"{host}.{service}"
            full = f"{name}.{pod['metadata']['namespace']}.svc"
            line = f"127.0.0.1 {name} {full} {full}.cluster.local\n"
            if line not in self._hosts.read_text():
                with self._hosts.open("a") as hosts:  # in place: it is mounted
                    hosts.write(line)

    @staticmethod
    def _lines(container: _Container, since: float | None, follow: bool) -> Iterator[str]:
        at = 0
        first = "" if since is None else _moment_before(since)
        while True:
            with container.changed:
                if follow:
                    _ = len(container.lines) > at or container.ended or container.changed.wait(_WAIT_S)
                pieces, ended = container.lines[at:], container.ended
            at += len(pieces)
            yield from (line for line in pieces if line > first)
            if not follow or (ended and not pieces):
                return


def _moment_before(seconds: float) -> str:
    return datetime.fromtimestamp(datetime.now(UTC).timestamp() - seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")


def _expanded(text: str, variables: dict[str, str]) -> str:
    """$(NAME) is a variable that is known, $$ is a dollar; all else stays."""

    def replaced(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return variables.get(match[1], match[0])

    return re.sub(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)", replaced, text)
