"""`tf.distribute.cluster_resolver`: classes that find the cluster's tasks from the environment or a scheduler.

Names and behaviour are TF 1.15's. Tasks that register with the control service (tenfold.control) get the cluster from
it instead.
"""

from __future__ import annotations

from tenfold.distribute.cluster_resolver.kubernetes import KubernetesClusterResolver
from tenfold.distribute.cluster_resolver.resolver import ClusterResolver, SimpleClusterResolver, format_master_url
from tenfold.distribute.cluster_resolver.slurm import SlurmClusterResolver
from tenfold.distribute.cluster_resolver.tf_config import TFConfigClusterResolver
from tenfold.distribute.cluster_resolver.union import UnionClusterResolver

#: The public name in TensorFlow 1.15.
UnionResolver = UnionClusterResolver

__all__ = [
    "ClusterResolver",
    "KubernetesClusterResolver",
    "SimpleClusterResolver",
    "SlurmClusterResolver",
    "TFConfigClusterResolver",
    "UnionClusterResolver",
    "UnionResolver",
    "format_master_url",
]
