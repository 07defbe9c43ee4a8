"""Several resolvers as one: their clusters merged, everything else from the first. Follows TF 1.15."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.distribute.cluster_resolver.resolver import ClusterResolver, format_master_url
from tenfold_core.cluster_spec import ClusterSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold_protos.config_pb2 import ConfigProto


class UnionClusterResolver(ClusterResolver):
    """The union of the given resolvers.

    Raises ValueError without any resolver, TypeError if an argument is not a resolver.
    """

    def __init__(
        self,
        *resolvers: ClusterResolver,
        rpc_layer: str | None = None,
        task_type: str | None = None,
        task_id: int | None = None,
    ) -> None:
        if not resolvers:
            raise ValueError("At least one ClusterResolver is required.")
        for resolver in resolvers:
            if not isinstance(resolver, ClusterResolver):
                raise TypeError(f"All arguments must be a sub-class of `ClusterResolver.` Got {resolver!r}")
        self._resolvers = resolvers
        self._rpc_layer, self._task_type, self._task_id = rpc_layer, task_type, task_id

    def cluster_spec(self) -> ClusterSpec:
        """All jobs of all resolvers.

        If several resolvers have a job as a list, the lists are concatenated. If one of them has the job by index, the
        tasks are merged by index; raises KeyError if two have the same index.
        """
        parts = [resolver.cluster_spec().as_dict() for resolver in self._resolvers]
        merged: dict[str, list[str] | dict[int, str]] = {}
        for job in dict.fromkeys(job for part in parts for job in part):
            mine = [part[job] for part in parts if job in part]
            if all(isinstance(tasks, list) for tasks in mine):
                merged[job] = [address for tasks in mine for address in tasks if isinstance(address, str)]
                continue
            by_index: dict[int, str] = {}
            for tasks in mine:
                indexed = dict(enumerate(tasks)) if isinstance(tasks, list) else tasks
                twice = sorted(set(by_index) & set(indexed))
                if twice:
                    raise KeyError(f"Duplicate keys detected when merging two ClusterSpecs: job {job!r}, tasks {twice}")
                by_index.update(indexed)
            merged[job] = by_index
        return ClusterSpec(merged)

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        if task_type is not None and task_id is not None:
            return format_master_url(self.cluster_spec().task_address(task_type, task_id), rpc_layer or self.rpc_layer)
        return self._resolvers[0].master(rpc_layer=rpc_layer)

    @property
    def task_type(self) -> str | None:
        """This task's job: as given, else the first resolver's."""
        return self._task_type or self._resolvers[0].task_type

    @task_type.setter
    def task_type(self, task_type: str | None) -> None:
        self._task_type = task_type

    @property
    def task_id(self) -> int | None:
        """This task's index: as given, else the first resolver's."""
        return self._task_id if self._task_id is not None else self._resolvers[0].task_id

    @task_id.setter
    def task_id(self, task_id: int | None) -> None:
        self._task_id = task_id

    @property
    def rpc_layer(self) -> str | None:
        """The protocol between tasks: as given, else the first resolver's."""
        return self._rpc_layer or self._resolvers[0].rpc_layer

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer: str | None) -> None:
        self._rpc_layer = rpc_layer

    @property
    def environment(self) -> str:
        return self._resolvers[0].environment

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: ConfigProto | None = None
    ) -> Mapping[str, int]:
        return self._resolvers[0].num_accelerators(task_type, task_id, config_proto)
