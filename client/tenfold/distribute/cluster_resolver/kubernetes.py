"""The cluster that the pods of a Kubernetes cluster form: those of certain labels, as the API server knows them.

Follows TF 1.15's documentation of distribute/cluster_resolver/kubernetes_cluster_resolver.py. Pods of `tenfold run --on
kubernetes` and `tenfold render kubernetes` find their cluster in TF_CONFIG and need none of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.distribute.cluster_resolver.resolver import ClusterResolver, format_master_url
from tenfold_core.address import join_address
from tenfold_core.cluster_spec import ClusterSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Seconds to connect to the API server, and for its answer.
_TIMEOUT_S = (5.0, 30.0)
_DEFAULT = {"worker": ["job-name=tensorflow"]}


class KubernetesClusterResolver(ClusterResolver):
    """`job_to_label_mapping` maps each job to label selectors, as {"worker": ["job-name=a", "job-name=b"]}; without it
    the job `worker` is the pods of `job-name=tensorflow`. A job's tasks are its pods, selector by selector and in each
    by name; they listen on `tf_server_port`.

    The client is the `kubernetes` package's (extra `kubernetes`), configured by KUBECONFIG or ~/.kube/config or, in a
    pod, by its service account. `override_client`, a CoreV1Api or what has its method `list_pod_for_all_namespaces`, is
    used as it is, and the package need not be there.

    Raises ImportError where the package is missing, RuntimeError where no cluster is configured. Which task this is
    cannot be found out: `task_type` and `task_id` are None until they are set.
    """

    def __init__(
        self,
        job_to_label_mapping: Mapping[str, Sequence[str]] | None = None,
        tf_server_port: int = 8470,
        rpc_layer: str | None = "grpc",
        override_client: Any = None,
    ) -> None:
        self._selectors = {job: list(each) for job, each in (job_to_label_mapping or _DEFAULT).items()}
        self._port = tf_server_port
        self._client = override_client if override_client is not None else _connected()
        #: What is said with each call of a client of ours; another's is its owner's affair.
        self._how: dict[str, Any] = {} if override_client is not None else {"_request_timeout": _TIMEOUT_S}
        self.task_type, self.task_id, self.rpc_layer = None, None, rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """The pods as they are now. Blocks, within a bound.

        Raises RuntimeError if a pod of them is not in the phase Running, or has no address yet, and if the API server
        does not tell: it names the pod, or what the server said.
        """
        found: dict[str, list[str]] = {}
        for job, selectors in self._selectors.items():
            found[job] = []
            for selector in selectors:
                pods = sorted(self._pods(job, selector), key=lambda pod: str(pod.metadata.name))
                found[job] += [_address(pod, self._port) for pod in pods]
        return ClusterSpec(found)

    def _pods(self, job: str, selector: str) -> list[Any]:
        try:
            listed = self._client.list_pod_for_all_namespaces(label_selector=selector, **self._how)
        except Exception as error:
            # of the client's own kinds, which this process may not have
            from tenfold.launchers.kubernetes_api import words

            raise RuntimeError(f"The pods of job {job!r} ({selector}) cannot be listed: {words(error)}") from error
        return list(listed.items)

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """The target of that task's master, or of the one that was set; "" where neither is. Blocks as `cluster_spec`,
        and raises as it does."""
        task_type = task_type if task_type is not None else self.task_type
        task_id = task_id if task_id is not None else self.task_id
        if task_type is None or task_id is None:
            return ""
        return format_master_url(self.cluster_spec().task_address(task_type, task_id), rpc_layer or self.rpc_layer)


def _connected() -> Any:
    from tenfold.launchers.kubernetes_api import ApiRefusedError, configured

    try:
        from kubernetes import client
    except ImportError as error:
        raise ImportError(
            "KubernetesClusterResolver needs the kubernetes client, pip install 'tenfold[kubernetes]', or "
            "override_client"
        ) from error
    try:
        settings, _ = configured()
    except ApiRefusedError as error:
        raise RuntimeError(f"KubernetesClusterResolver: {error}") from error
    return client.CoreV1Api(client.ApiClient(settings))


def _address(pod: Any, port: int) -> str:
    name, phase = pod.metadata.name, pod.status.phase
    if phase != "Running":
        raise RuntimeError(f"Pod {name!r} is not running; phase: {phase!r}")
    # a pod on its node's network has the node's address as its own; any other is not reached by its node's
    for address in (pod.status.pod_ip, pod.status.host_ip):
        if isinstance(address, str) and address:
            return join_address(address, port)
    raise RuntimeError(f"Pod {name!r} runs, and has no address yet")
