"""The cluster that a Slurm job forms: its nodes from `scontrol`, this task's rank from the environment.

Tasks fill the nodes in order, `tasks_per_node` on each, at consecutive ports; jobs are assigned to the tasks in the
order of their names. Follows TF 1.15's distribute/cluster_resolver/slurm_cluster_resolver.py.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from tenfold.distribute.cluster_resolver.resolver import ClusterResolver, format_master_url
from tenfold_core.cluster_spec import ClusterSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold_protos.config_pb2 import ConfigProto

#: Seconds to wait for `scontrol`.
_SCONTROL_S = 60.0


class SlurmClusterResolver(ClusterResolver):
    """`jobs` maps each job's name to its number of tasks, such as {"ps": 1, "worker": 3}.

    With `auto_set_gpu`, finding the cluster also sets CUDA_VISIBLE_DEVICES to this task's share of its node's GPUs.
    Raises RuntimeError outside of a Slurm (or mpirun) job, if a node has too few GPUs for its tasks, or if `jobs` and
    the Slurm job differ in their number of tasks.
    """

    def __init__(
        self,
        jobs: Mapping[str, int],
        port_base: int = 8888,
        gpus_per_node: int = 1,
        gpus_per_task: int = 1,
        tasks_per_node: int | None = None,
        auto_set_gpu: bool = True,
        rpc_layer: str | None = "grpc",
    ) -> None:
        self._rank, tasks = _rank_and_size()
        if tasks_per_node is None:
            told = os.environ.get("SLURM_NTASKS_PER_NODE")
            if told is None:
                raise RuntimeError("Neither `tasks_per_node` or SLURM_NTASKS_PER_NODE is set.")
            tasks_per_node = int(told)
        if tasks_per_node * gpus_per_task > gpus_per_node:
            raise RuntimeError(
                f"Requested more GPUs per node then available. {tasks_per_node} tasks of {gpus_per_task} GPUs each on "
                f"nodes with {gpus_per_node}"
            )
        if sum(jobs.values()) != tasks:
            raise RuntimeError(
                f"Requested more tasks then assigned tasks. The jobs have {sum(jobs.values())}, Slurm gave {tasks}"
            )
        self._jobs = dict(sorted(jobs.items()))
        self._port_base, self._tasks_per_node = port_base, tasks_per_node
        self._gpus_per_node, self._gpus_per_task, self._auto_set_gpu = gpus_per_node, gpus_per_task, auto_set_gpu
        self.task_type, self.task_id, self.rpc_layer = None, None, rpc_layer

    def _resolve_hostnames(self) -> list[str]:
        """The names of the job's nodes. Blocks; raises what `subprocess.run` raises if `scontrol` fails."""
        told = subprocess.run(
            ["scontrol", "show", "hostname"], capture_output=True, text=True, check=True, timeout=_SCONTROL_S
        )
        return told.stdout.split()

    def cluster_spec(self) -> ClusterSpec:
        """Queries Slurm for the nodes. Also sets `task_type` and `task_id` of this task."""
        addresses, gpus = [], []
        for host in self._resolve_hostnames():
            for place in range(self._tasks_per_node):
                addresses.append(f"{host}:{self._port_base + place}")
                first = place * self._gpus_per_task
                gpus.append(",".join(str(gpu) for gpu in range(first, first + self._gpus_per_task)))
        cluster: dict[str, list[str]] = {}
        begin = 0
        for job, size in self._jobs.items():
            cluster[job] = addresses[begin : begin + size]
            if begin <= self._rank < begin + size:
                self.task_type, self.task_id = job, self._rank - begin
            begin += size
        if len(addresses) < begin:
            raise RuntimeError(
                f"Slurm's nodes have room for {len(addresses)} tasks, {self._tasks_per_node} on each; "
                f"the jobs need {begin}"
            )
        if self._auto_set_gpu:
            os.environ["CUDA_VISIBLE_DEVICES"] = gpus[self._rank]
        return ClusterSpec(cluster)

    def get_task_info(self) -> tuple[str | None, int | None]:
        """This process's job and index; (None, None) before the first call of `cluster_spec`."""
        return self.task_type, self.task_id

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        task_type = task_type if task_type is not None else self.task_type
        task_id = task_id if task_id is not None else self.task_id
        if task_type is None or task_id is None:
            return ""
        return format_master_url(self.cluster_spec().task_address(task_type, task_id), rpc_layer or self.rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: ConfigProto | None = None
    ) -> Mapping[str, int]:
        """The constructor's number of GPUs per node."""
        return {"GPU": self._gpus_per_node}


def _rank_and_size() -> tuple[int, int]:
    """This process's rank among the job's tasks, and their number; mpirun's variables take precedence over Slurm's."""
    for rank, size in (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS")):
        if rank in os.environ:
            return int(os.environ[rank]), int(os.environ[size])
    raise RuntimeError("This is no task of a Slurm job: neither SLURM_PROCID nor OMPI_COMM_WORLD_RANK is set")
