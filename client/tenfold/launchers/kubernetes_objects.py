"""The Kubernetes objects that our pods are made of, as dictionaries: what the launcher (kubernetes_pods.py) and the
manifests of `tenfold render kubernetes` (kubernetes_manifests.py) have in common. Pure; imports nothing of Kubernetes.

Every container runs as a user that is not root, on a root file system that it cannot write, without capabilities and
without the API server's credentials. What it may write is /tmp.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold.launchers.interface import LaunchRefusedError, Resources

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Object = dict[str, Any]

#: The options that say what a pod is like, as `-o NAME=VALUE` has them: for the launcher and for manifests.
POD_OPTIONS: dict[str, str] = {
    "image": "the container image, with Tenfold and the program's packages in it (required)",
    "pull": "when the image is pulled, as imagePullPolicy: Always, IfNotPresent or Never (default: the cluster's rule)",
    "pull_secret": "a Secret with the registry's credentials, as imagePullSecrets",
    "python": "the interpreter in the image that has Tenfold (default: python3)",
    "user": "the number of the user that programs run as (default: 10001, the user of Tenfold's own image)",
    "volume": "CLAIM:/path: a PersistentVolumeClaim that each pod has there; several with commas between them",
    "nodes": "LABEL=VALUE: the nodes that pods may run on, as nodeSelector; several with commas between them",
    "gpu": "the resource that counts GPUs (default: nvidia.com/gpu)",
    "service_account": "the pods' service account (default: the namespace's); its token is not mounted",
    "priority": "the pods' PriorityClass",
    "port": "the first task's port; each further task has the next one (default: 2222)",
    "grace": "seconds between SIGTERM and SIGKILL for a task that is stopped or evicted (default: 60)",
}
#: Where the container's last words go, which the kubelet reads.
END_FILE = "/run/tenfold-end"
#: The label by which all objects of one run are found, and the one that names the task.
RUN_LABEL, TASK_LABEL = "tenfold.run", "tenfold.task"

_USER, _PORT, _GRACE = 10001, 2222, 60
_LABEL = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
#: A job's pods each have a name of the job, an index and a number in them.
_LONGEST_JOB = 30
#: Conditions under which a node's pods are soon given up: the tasks begin again elsewhere.
_NODE_LOST_S = 30


@dataclass(frozen=True, slots=True)
class PodSettings:
    """What the options say, checked."""

    image: str
    pull: str | None = None
    pull_secret: str | None = None
    python: str = "python3"
    user: int = _USER
    #: (claim, absolute path).
    claims: tuple[tuple[str, str], ...] = ()
    nodes: tuple[tuple[str, str], ...] = ()
    gpu: str = "nvidia.com/gpu"
    service_account: str | None = None
    priority: str | None = None
    port: int = _PORT
    grace: int = _GRACE


def settings_of(options: Mapping[str, str]) -> PodSettings:
    """The settings. Raises LaunchRefusedError for a value that is none, and where there is no image."""
    image = options.get("image", "")
    if not image or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*", image):
        said = f"image={image} is not a name of one" if image else "it needs an image"
        raise LaunchRefusedError(f"kubernetes: {said}; give -o image=NAME, with Tenfold in it")
    pull = options.get("pull")
    if pull not in (None, "Always", "IfNotPresent", "Never"):
        raise LaunchRefusedError(f"kubernetes: pull={pull} is not one of Always, IfNotPresent, Never")
    for name in ("pull_secret", "service_account", "priority"):
        if name in options and not _NAME.fullmatch(options[name]):
            raise LaunchRefusedError(f"kubernetes: {name}={options[name]} is not a name of a Kubernetes object")
    return PodSettings(
        image,
        pull,
        options.get("pull_secret"),
        options.get("python", "python3"),
        number(options, "user", _USER, 1, 2**31 - 1),
        _pairs(options, "volume", ":", "CLAIM:/path", r"[a-z0-9][a-z0-9.-]*", r"/[^:,]*"),
        _pairs(options, "nodes", "=", "LABEL=VALUE", r"[A-Za-z0-9][A-Za-z0-9._/-]*", r"[A-Za-z0-9._-]*"),
        options.get("gpu", "nvidia.com/gpu"),
        options.get("service_account"),
        options.get("priority"),
        number(options, "port", _PORT, 1, 65535),
        number(options, "grace", _GRACE, 1, 86_400),
    )


def number(options: Mapping[str, str], name: str, otherwise: int, least: int, most: int) -> int:
    """An option that is a whole number. Raises LaunchRefusedError."""
    text = options.get(name)
    if text is None:
        return otherwise
    if not text.isascii() or not text.isdecimal() or not least <= int(text[:20]) <= most:
        raise LaunchRefusedError(f"kubernetes: {name}={text} is not a number from {least} to {most}")
    return int(text)


def _pairs(
    options: Mapping[str, str], name: str, sign: str, form: str, left: str, right: str
) -> tuple[tuple[str, str], ...]:
    found = []
    for item in filter(None, options.get(name, "").split(",")):
        first, found_sign, second = item.strip().partition(sign)
        if not found_sign or not re.fullmatch(left, first) or not re.fullmatch(right, second):
            raise LaunchRefusedError(f"kubernetes: {name}={item} is not {form}")
        found.append((first, second))
    return tuple(found)


def label(text: str) -> str:
    """`text` as a DNS label: a run's or a job's name. Raises LaunchRefusedError where nothing of it is left."""
    found = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    found = re.sub(r"^[^a-z]+", "", found)[:_LONGEST_JOB].rstrip("-")
    if not _LABEL.fullmatch(found):
        raise LaunchRefusedError(f"kubernetes: {text!r} cannot be part of a Kubernetes name: it has no letter")
    return found


def job_labels(jobs: Sequence[str]) -> dict[str, str]:
    """Job → its DNS label. Raises LaunchRefusedError where two have the same."""
    found: dict[str, str] = {}
    for job in jobs:
        found[job] = label(job)
        twins = [other for other in found if found[other] == found[job]]
        if len(twins) > 1:
            raise LaunchRefusedError(f"kubernetes: the jobs {' and '.join(twins)} would have the same name there")
    return found


def resources_of(needed: Resources | None, gpu: str) -> Object:
    """A container's `resources`: a task gets what was asked for, no more and no less."""
    found: dict[str, str] = {}
    if needed is not None and needed.cores is not None:
        found["cpu"] = str(needed.cores)
    if needed is not None and needed.memory is not None:
        whole, rest = divmod(needed.memory, 1 << 20)
        found["memory"] = str(needed.memory) if rest else f"{whole}Mi"
    if needed is not None and needed.gpus:
        found[gpu] = str(needed.gpus)
    return {"requests": dict(found), "limits": dict(found)} if found else {}


def threads_of(needed: Resources | None) -> dict[str, str]:
    """The variables by which libraries take no more threads than the task has cores: a container sees its node's."""
    return {} if needed is None or needed.cores is None else {"OPENBLAS_NUM_THREADS": str(needed.cores)}


def container(
    settings: PodSettings,
    arguments: Sequence[str],
    env: Sequence[Object],
    needed: Resources | None,
    *,
    name: str = "task",
    mounts: Sequence[Object] = (),
    ports: Sequence[int] = (),
    working_dir: str | None = None,
) -> Object:
    """The container of a task: our first process (pod_process.py) with these arguments."""
    found: Object = {
        "name": name,
        "image": settings.image,
        "command": [settings.python, "-u", "-P", "-m", "tenfold.launchers.pod_process"],
        "args": ["--end", END_FILE, *arguments],
        "env": [*_own_env(needed), *env],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},
            *({"name": f"claim-{at}", "mountPath": path} for at, (_, path) in enumerate(settings.claims)),
            *mounts,
        ],
        "terminationMessagePath": END_FILE,
        "terminationMessagePolicy": "File",
    }
    if resources := resources_of(needed, settings.gpu):
        found["resources"] = resources
    if settings.pull is not None:
        found["imagePullPolicy"] = settings.pull
    if ports:
        found["ports"] = [{"containerPort": port} for port in ports]
    if working_dir is not None:
        found["workingDir"] = working_dir
    return found


def pod_spec(settings: PodSettings, only: Object, *, restart: str = "Never", volumes: Sequence[Object] = ()) -> Object:
    """The pod around the container `only`."""
    found: Object = {
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": settings.grace,
        "automountServiceAccountToken": False,
        # variables for each service of the namespace could be taken for ours
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": settings.user,
            "runAsGroup": settings.user,
            "fsGroup": settings.user,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "tolerations": [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _NODE_LOST_S}
            for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        ],
        "containers": [only],
        "volumes": [
            {"name": "tmp", "emptyDir": {}},
            *(
                {"name": f"claim-{at}", "persistentVolumeClaim": {"claimName": claim}}
                for at, (claim, _) in enumerate(settings.claims)
            ),
            *volumes,
        ],
    }
    if settings.service_account is not None:
        found["serviceAccountName"] = settings.service_account
    if settings.priority is not None:
        found["priorityClassName"] = settings.priority
    if settings.pull_secret is not None:
        found["imagePullSecrets"] = [{"name": settings.pull_secret}]
    if settings.nodes:
        found["nodeSelector"] = dict(settings.nodes)
    return found


def headless_service(name: str, labels: Mapping[str, str], owners: Sequence[Object] = ()) -> Object:
    """The service that gives each pod of these labels a name of its own, also before it is ready."""
    metadata: Object = {"name": name, "labels": dict(labels)}
    if owners:
        metadata["ownerReferences"] = list(owners)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": dict(labels)},
    }


def value(name: str, text: str) -> Object:
    """A variable of a container."""
    return {"name": name, "value": text}


def secret_value(name: str, secret: str, key: str) -> Object:
    """A variable whose value stands in a Secret."""
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def _own_env(needed: Resources | None) -> list[Object]:
    found = {"HOME": "/tmp", "NUMBA_CACHE_DIR": "/tmp/numba", **threads_of(needed)}
    return [value(name, text) for name, text in found.items()]
