"""`tf.distribute.cluster_resolver`: which tasks the cluster has, told by its surroundings instead of by hand.

Names and behaviour are TF 1.15's. The control service does the same for tasks that register (tenfold.control).
"""

from __future__ import annotations

from tenfold.distribute.cluster_resolver.resolver import ClusterResolver, SimpleClusterResolver, format_master_url
from tenfold.distribute.cluster_resolver.slurm import SlurmClusterResolver
from tenfold.distribute.cluster_resolver.tf_config import TFConfigClusterResolver
from tenfold.distribute.cluster_resolver.union import UnionClusterResolver

#: The name under which TensorFlow 1.15 shows it.
UnionResolver = UnionClusterResolver

__all__ = [
    "ClusterResolver",
    "SimpleClusterResolver",
    "SlurmClusterResolver",
    "TFConfigClusterResolver",
    "UnionClusterResolver",
    "UnionResolver",
    "format_master_url",
]
