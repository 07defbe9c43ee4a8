"""`tf.contrib.cluster_resolver`: the resolvers of `tf.distribute.cluster_resolver` under their contrib names."""

from __future__ import annotations

from tenfold.distribute.cluster_resolver import (
    ClusterResolver,
    KubernetesClusterResolver,
    SimpleClusterResolver,
    SlurmClusterResolver,
    TFConfigClusterResolver,
    UnionClusterResolver,
)

__all__ = [
    "ClusterResolver",
    "KubernetesClusterResolver",
    "SimpleClusterResolver",
    "SlurmClusterResolver",
    "TFConfigClusterResolver",
    "UnionClusterResolver",
]
