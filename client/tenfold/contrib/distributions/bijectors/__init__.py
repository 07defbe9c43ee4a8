"""`tf.contrib.distributions.bijectors`: invertible functions and the logarithms of their Jacobian determinants.

A table of names; each is loaded from its module at its first use.
"""

from __future__ import annotations

from typing import Any

from tenfold.contrib.lazy import lazy_names

#: What TensorFlow has and no public program was found to use.
_RARE_NAMES = """
    AbsoluteValue AffineLinearOperator BatchNormalization CholeskyOuterProduct ConditionalBijector FillTriangular
    Gumbel Kumaraswamy MaskedAutoregressiveFlow MatrixInverseTriL Ordered Permute PowerTransform RealNVP Reshape
    ScaleTriL SinhArcsinh SoftmaxCentered Softsign Square TransformDiagonal Weibull
    masked_autoregressive_default_template masked_dense real_nvp_default_template
"""

__getattr__: Any
__dir__: Any
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "tenfold.contrib.distributions.bijectors.affine": "Affine AffineScalar",
        "tenfold.contrib.distributions.bijectors.bijector": "Bijector",
        "tenfold.contrib.distributions.bijectors.combined": "Chain Inline Invert",
        "tenfold.contrib.distributions.bijectors.elementwise": "Exp Identity Sigmoid Softplus",
    },
    dict.fromkeys(_RARE_NAMES.split(), "no public program was found that uses it; Inline makes one from its functions"),
)
