"""`tf.contrib.opt`: Adam's variants, weight decay, averages of weights, optimizers of workers that meet at times.

Each name is loaded from its module at its first use.
"""

from tenfold.contrib.lazy import lazy_names

_HOME = "tenfold.contrib.opt"
_MATRIX = (
    "it keeps and inverts a matrix for each dimension of each variable; AdamOptimizer and LARSOptimizer do without"
)
_MASKED = "it is Adam with a step of its own for each variable; AdamOptimizer takes `global_step` in apply_gradients"

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        f"{_HOME}.adam_variants": "AdaMaxOptimizer LazyAdamOptimizer NadamOptimizer",
        f"{_HOME}.external": "ExternalOptimizerInterface ScipyOptimizerInterface",
        f"{_HOME}.lars": "LARSOptimizer RegAdagradOptimizer",
        f"{_HOME}.local_training": """
            AGNCustomGetter AGNOptimizer ElasticAverageCustomGetter ElasticAverageOptimizer ModelAverageCustomGetter
            ModelAverageOptimizer
        """,
        f"{_HOME}.sign": """
            AddSignOptimizer PowerSignOptimizer get_cosine_decay_fn get_linear_decay_fn get_restart_decay_fn
        """,
        "tenfold.train.weight_decay": """
            AdamWOptimizer DecoupledWeightDecayExtension MomentumWOptimizer extend_with_decoupled_weight_decay
        """,
        f"{_HOME}.wrappers": """
            DropStaleGradientOptimizer MovingAverageOptimizer MultitaskOptimizerWrapper VariableClippingOptimizer
            clip_gradients_by_global_norm
        """,
    },
    left_out={
        "GGTOptimizer": _MATRIX,
        "ShampooOptimizer": _MATRIX,
        "ShampooWOptimizer": _MATRIX,
        "AdamGSOptimizer": _MASKED,
        "LazyAdamGSOptimizer": _MASKED,
    },
)
