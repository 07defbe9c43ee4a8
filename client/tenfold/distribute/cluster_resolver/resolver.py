"""The base class of cluster resolvers, and the resolver whose caller gives it the cluster.

Follows TF 1.15's distribute/cluster_resolver/cluster_resolver.py. The other resolvers are in the other files of this
folder.
"""

from __future__ import annotations

import abc
from collections import Counter
from typing import TYPE_CHECKING

from tenfold_core.cluster_spec import ClusterSpec
from tenfold_core.device import DeviceSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold_protos.config_pb2 import ConfigProto


def format_master_url(master: str, rpc_layer: str | None = None) -> str:
    """`rpc_layer://master`, or `master` unchanged if no layer is given."""
    return f"{rpc_layer}://{master}" if rpc_layer else master


class ClusterResolver(abc.ABC):
    """Finds the cluster and this process's task in it. Subclasses query the environment at each call."""

    #: This task's job, its index in it, and the protocol between tasks; None if unknown.
    task_type: str | None = None
    task_id: int | None = None
    rpc_layer: str | None = None

    @abc.abstractmethod
    def cluster_spec(self) -> ClusterSpec:
        """The cluster as it is now."""

    @abc.abstractmethod
    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """The target for a session: that of the given task, else the resolver's own; "" is this process."""

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: ConfigProto | None = None
    ) -> Mapping[str, int]:
        """Device type → number of devices, without CPUs, on the given task or on all.

        Opens a session on `master(task_type, task_id)` and lists its devices. Blocks meanwhile; raises the session's
        errors.
        """
        from tenfold.session.session import Session

        with Session(self.master(task_type, task_id), config=config_proto) as session:
            devices = session.list_devices()
        wanted = (task_type, task_id) if task_type is not None and task_id is not None else None
        specs = ((each.device_type, DeviceSpec.from_string(each.name)) for each in devices)
        return Counter(kind for kind, spec in specs if kind != "CPU" and wanted in (None, (spec.job, spec.task)))

    @property
    def environment(self) -> str:
        """Always "", as in TensorFlow outside of Google."""
        return ""


class SimpleClusterResolver(ClusterResolver):
    """A resolver that returns the arguments of its constructor. Raises TypeError for an argument of a wrong type."""

    def __init__(
        self,
        cluster_spec: ClusterSpec,
        master: str = "",
        task_type: str | None = None,
        task_id: int | None = None,
        environment: str = "",
        num_accelerators: Mapping[str, int] | None = None,
        rpc_layer: str | None = None,
    ) -> None:
        if not isinstance(cluster_spec, ClusterSpec):
            raise TypeError(f"cluster_spec must be a ClusterSpec. Got {type(cluster_spec).__name__}")
        if not isinstance(master, str):
            raise TypeError(f"master must be a string. Got {type(master).__name__}")
        self._cluster_spec, self._master = cluster_spec, master
        self._environment, self._accelerators = environment, num_accelerators
        self.task_type, self.task_id, self.rpc_layer = task_type, task_id, rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        return self._cluster_spec

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """As the base class. Raises ValueError if the cluster has no such task."""
        address = self._master
        if task_type is not None and task_id is not None:
            address = self._cluster_spec.task_address(task_type, task_id)
        return format_master_url(address, rpc_layer or self.rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: ConfigProto | None = None
    ) -> Mapping[str, int]:
        """The constructor's argument; opens no session."""
        return {} if self._accelerators is None else self._accelerators

    @property
    def environment(self) -> str:
        return self._environment
