"""Tasks as pods of a Kubernetes cluster: one pod a task, watched and logged by the API server.

Kubernetes is the one engine here without an agent (decision 0168): a pipe through the API server would break with each
upgrade of it, and take the tasks along. What a task is told goes as a Secret, what it says comes as its log, how it
ended is in its pod's status. The official client is imported where a run is opened, and not before.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, ClassVar

from tenfold.launchers.interface import LaunchRefusedError, checked_options, choice
from tenfold.launchers.kubernetes_api import missing
from tenfold.launchers.kubernetes_objects import POD_OPTIONS, job_labels, label, number, settings_of
from tenfold.launchers.kubernetes_pods import KubernetesProcesses, RunSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tenfold.launchers.interface import LaunchRequest

#: Seconds: for a pod to start, and for which a run lives without the process that launched it.
_PATIENCE, _LEASE = 600, 300


class KubernetesLauncher:
    """See Launcher."""

    name: ClassVar[str] = "kubernetes"
    summary: ClassVar[str] = "pods of a Kubernetes cluster"
    options: ClassVar[Mapping[str, str]] = {
        **POD_OPTIONS,
        "kubeconfig": "a configuration in place of KUBECONFIG and ~/.kube/config; in a pod its service account is used",
        "context": "a context of that configuration (default: the current one)",
        "namespace": "where the pods go (default: the context's)",
        "sync": "yes (default): the working directory is sent, up to 7.5 MiB packed; no: the image has it, or a volume",
        "control": "the URL by which pods reach the control service, where the run's own leads to this machine alone",
        "patience": "seconds for a pod to be scheduled and its image to be pulled (default: 600)",
        "lease": "seconds after which the pods are ended when the process that launched them is gone (default: 300)",
    }

    def missing(self) -> str | None:
        return missing()

    def open(self, request: LaunchRequest, echo: Callable[[str, str], None]) -> KubernetesProcesses:
        options = checked_options(self, request.options)
        sync = choice(self, options, "sync", ("yes", "no")) == "yes"
        patience = number(options, "patience", _PATIENCE, 1, 10**6)
        lease = number(options, "lease", _LEASE, 5, 10**6)
        if (why := self.missing()) is not None:
            raise LaunchRefusedError(why)
        settings = settings_of(options)
        job_labels(list(request.jobs))
        name = f"tenfold-{label(request.run)}-{uuid.uuid4().hex[:6]}"
        run = RunSettings(name, settings, sync, options.get("control"), patience, lease)
        return KubernetesProcesses(request, echo, run)
