"""The cluster that the environment variable TF_CONFIG describes, as `tenfold run` and many schedulers set it, or else
that of a control service (runs/given_place.py).

`{"cluster": {job: [address, …]}, "task": {"type": job, "index": i}, "rpc_layer": …, "session_master": …}`. Follows
TF 1.15's distribute/cluster_resolver/tfconfig_cluster_resolver.py.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from tenfold.distribute.cluster_resolver.resolver import ClusterResolver, format_master_url
from tenfold_core.cluster_spec import ClusterSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold_protos.config_pb2 import ConfigProto


def read_tf_config() -> dict[str, Any]:
    """TF_CONFIG as it is now; {} where it is not set. Raises ValueError if it, or its task, is not a JSON object.

    Without TF_CONFIG, but with TENFOLD_CONTROL and TENFOLD_JOB, a control service gives the program a place in its
    cluster: blocks until that is complete, and raises as runs/given_place.py's `tf_config`.
    """
    text = os.environ.get("TF_CONFIG")
    if not text:
        from tenfold.runs.given_place import tf_config

        return tf_config()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"TF_CONFIG is not JSON ({error}): {text[:200]!r}") from None
    if not isinstance(value, dict):
        raise ValueError(f'TF_CONFIG must be a JSON object like {{"cluster": …, "task": …}}, not {text[:200]!r}')
    if not isinstance(value.get("task", {}), dict):
        raise ValueError(
            f'The task in TF_CONFIG must be an object like {{"type": "worker", "index": 0}}, not {value["task"]!r}'
        )
    return value


class TFConfigClusterResolver(ClusterResolver):
    """Reads TF_CONFIG at every call; the constructor's arguments override it."""

    def __init__(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
    ) -> None:
        self._task_type, self._task_id = task_type, task_id
        self._rpc_layer, self._environment = rpc_layer, environment

    @property
    def task_type(self) -> str | None:
        """This task's job."""
        told = self._task_type if self._task_type is not None else read_tf_config().get("task", {}).get("type")
        return None if told is None else str(told)

    @task_type.setter
    def task_type(self, task_type: str | None) -> None:
        self._task_type = task_type

    @property
    def task_id(self) -> int | None:
        """This task's index in its job."""
        told = self._task_id if self._task_id is not None else read_tf_config().get("task", {}).get("index")
        return None if told is None else int(told)

    @task_id.setter
    def task_id(self, task_id: int | None) -> None:
        self._task_id = task_id

    @property
    def rpc_layer(self) -> str | None:
        """The protocol between tasks."""
        return self._rpc_layer if self._rpc_layer is not None else read_tf_config().get("rpc_layer")

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer: str | None) -> None:
        self._rpc_layer = rpc_layer

    @property
    def environment(self) -> str:
        return self._environment or ""

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: ConfigProto | None = None
    ) -> Mapping[str, int]:
        return super().num_accelerators(
            self.task_type if task_type is None else task_type,
            self.task_id if task_id is None else task_id,
            config_proto,
        )

    def cluster_spec(self) -> ClusterSpec:
        """The cluster of TF_CONFIG; an empty one if it has none. Raises as ClusterSpec does."""
        return ClusterSpec(read_tf_config().get("cluster", {}))

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """The target of a task's master; "" in a cluster of at most one task; `session_master` if that is set.

        Raises RuntimeError if neither the arguments nor TF_CONFIG name a task, ValueError if the task does not exist.
        """
        config = read_tf_config()
        told = config.get("session_master")
        if told is not None:
            return str(told)
        spec = self.cluster_spec()
        if sum(spec.num_tasks(job) for job in spec.jobs) <= 1:
            return ""
        task_type = task_type if task_type is not None else self.task_type
        task_id = task_id if task_id is not None else self.task_id
        if task_type is None or task_id is None:
            raise RuntimeError(
                "TF_CONFIG does not say which task this is: it has no `task` section with `type` and `index`, and "
                "neither was given"
            )
        return format_master_url(spec.task_address(task_type, task_id), rpc_layer or self.rpc_layer)
