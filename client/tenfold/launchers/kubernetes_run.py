"""One run's objects on Kubernetes, as dictionaries, and their names. Pure; kubernetes_pods.py creates them.

    Job NAME                 owns all others, and is the run's lease: it starts nothing (parallelism 0); its deadline
                             is put off as long as the process that launched the run lives. Past it the Job fails, is
                             removed at once (ttlSecondsAfterFinished 0), and the garbage collector removes the rest
    Service NAME             headless: the host names of the tasks
    Secret NAME-files-0, …   the working directory, packed, in pieces
    NAME-JOB-INDEX-START     a Secret and a Pod: one start of one task, with what is to be run and its environment

Nothing that is secret stands in a pod: whoever may read pods, but not Secrets, sees neither tokens nor environment.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold.launchers.interface import LaunchRefusedError
from tenfold.launchers.kubernetes_objects import (
    RUN_LABEL,
    TASK_LABEL,
    Object,
    PodSettings,
    container,
    headless_service,
    job_labels,
    pod_spec,
)
from tenfold.launchers.pod_process import TASK_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import IO

    from tenfold.launchers.interface import LaunchRequest

#: Where a pod finds what it is to start.
START_FOLDER = "/run/tenfold"
#: Bytes of one piece of a package, and how many there may be: a Secret has room for 1 MiB.
PIECE_BYTES, MOST_PIECES = 768 << 10, 10
#: Ports are 16 bits.
_LAST_PORT = 65535


@dataclass(frozen=True, slots=True)
class RunObjects:
    """The objects of one run, for the namespace that it is in."""

    name: str
    namespace: str
    settings: PodSettings
    request: LaunchRequest
    #: Whether the working directory is sent; else each pod has it at its path.
    sync: bool

    @property
    def labels(self) -> dict[str, str]:
        return {RUN_LABEL: self.name, "app.kubernetes.io/managed-by": "tenfold"}

    @property
    def selector(self) -> str:
        """Of all pods of the run."""
        return f"{RUN_LABEL}={self.name}"

    def addresses(self, jobs: Mapping[str, int]) -> dict[str, list[str]]:
        """Each task's host name and port. Raises LaunchRefusedError for more tasks than there are ports."""
        ports = self.ports()
        return {
            job: [
                f"{self._host(job, index)}.{self.name}.{self.namespace}.svc:{ports[f'{job}/{index}']}"
                for index in range(size)
            ]
            for job, size in jobs.items()
        }

    def ports(self) -> dict[str, int]:
        """Task → its port. They differ, so that pods may share a node's network."""
        tasks = [f"{job}/{index}" for job, size in self.request.jobs.items() for index in range(size)]
        if self.settings.port + len(tasks) - 1 > _LAST_PORT:
            raise LaunchRefusedError(
                f"kubernetes: {len(tasks)} tasks have no room from port {self.settings.port} on; give a lower -o port="
            )
        return {task: self.settings.port + number for number, task in enumerate(tasks)}

    def lease(self, seconds: int) -> Object:
        """The Job that owns the run, which ends after so many seconds unless they become more."""
        only = container(self.settings, [], [], None)
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": self.name, "labels": self.labels},
            "spec": {
                "parallelism": 0,
                "completions": 1,
                "backoffLimit": 0,
                "activeDeadlineSeconds": seconds,
                "ttlSecondsAfterFinished": 0,
                "template": {"spec": pod_spec(self.settings, only)},
            },
        }

    def owner(self, lease: Mapping[str, Any]) -> Object:
        """The reference by which an object ends with the run; `lease` is the Job as the server has it."""
        return {"apiVersion": "batch/v1", "kind": "Job", "name": self.name, "uid": lease["metadata"]["uid"]}

    def service(self, owner: Object) -> Object:
        return headless_service(self.name, self.labels, [owner])

    def files(self, package: IO[bytes], owner: Object) -> list[Object]:
        """The Secrets with the package. Raises LaunchRefusedError for one that is too large."""
        found: list[Object] = []
        while piece := package.read(PIECE_BYTES):
            if len(found) == MOST_PIECES:
                most = MOST_PIECES * PIECE_BYTES / (1 << 20)
                raise LaunchRefusedError(
                    f"kubernetes: {self.request.working_dir} is larger than the {most:g} MiB, packed, that can be sent "
                    "to pods; put it in the image or on a volume, and give -o sync=no"
                )
            name = f"{self.name}-files-{len(found)}"
            key = f"package-{len(found):03d}"
            found.append(self._secret(name, owner, {key: base64.b64encode(piece).decode()}, {}))
        return found

    def task_secret(
        self,
        pod: str,
        task: str,
        program: Sequence[str],
        interpreter: Sequence[str],
        env: Mapping[str, str],
        owner: Object,
    ) -> Object:
        """What pod_process.py of that pod starts."""
        said = {"name": task, "program": list(program), "interpreter": list(interpreter), "env": dict(env)}
        return self._secret(pod, owner, {}, {TASK_FILE: json.dumps(said)})

    def pod(self, pod: str, task: str, pieces: int, owner: Object) -> Object:
        """The pod of one start of a task."""
        job, _, index = task.partition("/")
        sources = [{"secret": {"name": pod}}]
        sources += [{"secret": {"name": f"{self.name}-files-{number}"}} for number in range(pieces)]
        start = {"name": "start", "projected": {"sources": sources, "defaultMode": 0o440}}
        needed = self.request.resources.get(job)
        only = container(
            self.settings,
            ["--start", START_FOLDER],
            [],
            needed,
            mounts=[{"name": "start", "mountPath": START_FOLDER, "readOnly": True}],
            ports=[self.ports()[task]],
            working_dir=None if self.sync else self.request.working_dir,
        )
        spec = pod_spec(self.settings, only, volumes=[start])
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": pod,
                "labels": {**self.labels, TASK_LABEL: self._host(job, int(index))},
                "ownerReferences": [owner],
            },
            "spec": {**spec, "hostname": self._host(job, int(index)), "subdomain": self.name},
        }

    def pod_name(self, task: str, start: int) -> str:
        job, _, index = task.partition("/")
        return f"{self.name}-{self._host(job, int(index))}-{start}"

    def _host(self, job: str, index: int) -> str:
        return f"{job_labels(list(self.request.jobs))[job]}-{index}"

    def _secret(self, name: str, owner: Object, data: Mapping[str, str], text: Mapping[str, str]) -> Object:
        found: Object = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "labels": self.labels, "ownerReferences": [owner]},
            "immutable": True,
            "type": "Opaque",
        }
        if data:
            found["data"] = dict(data)
        if text:
            found["stringData"] = dict(text)
        return found
