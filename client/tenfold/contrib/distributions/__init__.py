"""`tf.contrib.distributions`: those of `tf.distributions`, and more.

A table of names; each is loaded from its module at its first use.
"""

from __future__ import annotations

from typing import Any

from tenfold import distributions
from tenfold.contrib.lazy import lazy_names

_RARE = "no public program was found that uses it; TensorFlow Probability's source has it to copy"
#: What TensorFlow has and no public program was found to use.
_RARE_NAMES = """
    Autoregressive BatchReshape Cauchy Chi2 Chi2WithAbsDf Gumbel HalfNormal InverseGamma NegativeBinomial
    ConditionalDistribution ConditionalTransformedDistribution Kumaraswamy MultivariateNormalLinearOperator
    MultivariateStudentTLinearOperator PoissonLogNormalQuadratureCompound QuantizedDistribution SeedStream
    SinhArcsinh VectorDiffeomixture VectorDeterministic VectorExponentialDiag VectorLaplaceDiag
    VectorSinhArcsinhDiag WishartCholesky WishartFull auto_correlation estimator_head_distribution_regression
    moving_mean_variance normal_conjugates_known_scale_posterior percentile
    quadrature_scheme_lognormal_gauss_hermite
"""
_LEFT_OUT = dict.fromkeys(_RARE_NAMES.split(), _RARE)

__getattr__: Any
__dir__: Any
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        **distributions.TABLE,
        "tenfold.distributions.beta": "Beta BetaWithSoftplusConcentration",
        "tenfold.distributions.gamma": """
            Exponential ExponentialWithSoftplusRate Gamma GammaWithSoftplusConcentrationRate
        """,
        "tenfold.distributions.laplace": "Laplace LaplaceWithSoftplusScale",
        "tenfold.distributions.normal": "Normal NormalWithSoftplusScale",
        "tenfold.distributions.parameters": "fill_triangular",
        "tenfold.distributions.student_t": "StudentT StudentTWithAbsDfSoftplusScale",
        "tenfold.contrib.distributions.binomial": "Binomial",
        "": "bijectors=tenfold.contrib.distributions.bijectors",
        "tenfold.contrib.distributions.deterministic": "Deterministic",
        "tenfold.contrib.distributions.geometric": "Geometric",
        "tenfold.contrib.distributions.independent": "Independent",
        "tenfold.contrib.distributions.logistic": "Logistic",
        "tenfold.contrib.distributions.mixture": "Mixture",
        "tenfold.contrib.distributions.mixture_same_family": "MixtureSameFamily",
        "tenfold.contrib.distributions.multivariate_normal": """
            MultivariateNormalDiag MultivariateNormalDiagPlusLowRank MultivariateNormalDiagWithSoftplusScale
            MultivariateNormalFullCovariance MultivariateNormalTriL
        """,
        "tenfold.contrib.distributions.one_hot_categorical": "OneHotCategorical",
        "tenfold.contrib.distributions.poisson": "Poisson",
        "tenfold.contrib.distributions.relaxed": """
            ExpRelaxedOneHotCategorical RelaxedBernoulli RelaxedOneHotCategorical
        """,
        "tenfold.contrib.distributions.transformed": "TransformedDistribution",
    },
    _LEFT_OUT,
)
