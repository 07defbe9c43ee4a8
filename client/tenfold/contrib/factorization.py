"""`tf.contrib.factorization`: k-means, as a graph and as an estimator; both are in estimator/canned."""

from __future__ import annotations

from tenfold.contrib.lazy import lazy_names

_TABLE = {
    "tenfold.estimator.canned.kmeans": "KMeansClustering",
    "tenfold.estimator.canned.kmeans_graph": """
        COSINE_DISTANCE KMEANS_PLUS_PLUS_INIT KMeans RANDOM_INIT SQUARED_EUCLIDEAN_DISTANCE
    """,
}
_LEFT_OUT = {
    "GMM": "Gaussian mixtures have an estimator of their own: use scikit-learn",
    "gmm": "Gaussian mixtures have an estimator of their own: use scikit-learn",
    "WALSModel": "it factorizes matrices by alternating least squares; use a library of its own",
    "WALSMatrixFactorization": "it factorizes matrices by alternating least squares; use a library of its own",
    "KMC2_INIT": "it chooses centers faster than k-means++, from more points than fit one step: use 'kmeans_plus_plus'",
}

__getattr__, __dir__ = lazy_names("tenfold.contrib.factorization", _TABLE, _LEFT_OUT)
