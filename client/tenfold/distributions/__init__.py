"""`tf.distributions`: probability distributions, whose samples and log probabilities are ops.

A table of names; each is loaded from its module at its first use. `tf.contrib.distributions` has these and more.
"""

from __future__ import annotations

from typing import Any

from tenfold.contrib.lazy import lazy_names

TABLE = {
    "tenfold.distributions.bernoulli": "Bernoulli",
    "tenfold.distributions.beta": "Beta",
    "tenfold.distributions.categorical": "Categorical",
    "tenfold.distributions.dirichlet": "Dirichlet",
    "tenfold.distributions.dirichlet_multinomial": "DirichletMultinomial",
    "tenfold.distributions.distribution": """
        Distribution FULLY_REPARAMETERIZED NOT_REPARAMETERIZED ReparameterizationType
    """,
    "tenfold.distributions.gamma": "Exponential Gamma",
    "tenfold.distributions.kullback_leibler": "RegisterKL kl_divergence",
    "tenfold.distributions.laplace": "Laplace",
    "tenfold.distributions.multinomial": "Multinomial",
    "tenfold.distributions.normal": "Normal",
    "tenfold.distributions.student_t": "StudentT",
    "tenfold.distributions.uniform": "Uniform",
}

__getattr__: Any
__dir__: Any
__getattr__, __dir__ = lazy_names(__name__, TABLE)
