"""Which test files of TensorFlow 1.15's contrib are run on Tenfold's client: of its layers, training, slim and others.

A module of contrib is answered with the package of its family and all modules of that. Read by api_files.py and
api_shim.py.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil

from files import Exclusion

_C = "tensorflow/contrib"

#: Folder below contrib → stems of its test files.
_FILES = {
    "copy_graph/python/util": "copy",
    "framework/python/framework": "checkpoint_utils experimental tensor_util",
    "framework/python/ops": "arg_scope checkpoint_ops ops variables",
    "layers/python/layers": """
        embedding_ops encoders initializers layers normalization optimizers regularizers summaries utils
    """,
    "losses/python/losses": "loss_ops",
    "losses/python/metric_learning": "metric_loss_ops",
    "metrics/python/metrics": "classification",
    "metrics/python/ops": "metric_ops metric_ops_large",
    "nn/python/ops": "alpha_dropout scaled_softplus",
    "opt/python/training": """
        adamax addsign agn_optimizer drop_stale_gradient_optimizer elastic_average_optimizer external_optimizer
        lars_optimizer lazy_adam_optimizer model_average_optimizer moving_average_optimizer
        multitask_optimizer_wrapper nadam_optimizer powersign reg_adagrad_optimizer sign_decay
        variable_clipping_optimizer weight_decay_optimizers
    """,
    "slim/python/slim": "evaluation learning summaries",
    "slim/python/slim/data": "dataset_data_provider parallel_reader prefetch_queue tfexample_decoder",
    "slim/python/slim/nets": """
        alexnet inception_v1 inception_v2 inception_v3 overfeat resnet_v1 resnet_v2 vgg
    """,
    "sparsemax/python/kernel_tests": "sparsemax sparsemax_loss",
    "training/python/training": """
        bucket_ops device_setter evaluation hparam resample sampling_ops sampling_ops_threading training
    """,
}

FILES = tuple(f"{_C}/{folder}/{stem}_test.py" for folder, stems in _FILES.items() for stem in stems.split())

#: Files that a test file imports from beside itself.
BESIDE = {
    f"{_C}/slim/python/slim/data/{stem}_test.py": (f"{_C}/slim/python/slim/data/test_utils.py",)
    for stem in ("dataset_data_provider", "parallel_reader", "tfexample_decoder")
}


_UNDERSCORE = "functions of TensorFlow's implementation that begin with an underscore"
_DEBUGGER = "the TensorFlow debugger is not served"
_SCIPY = "counts on the SciPy of its time: a newer one ends elsewhere on the same function, without TensorFlow too"
_NUMPY = "expects what NumPy 1 makes of float16; the variables' numbers are TensorFlow's own to the last bit"
EXCLUDED: tuple[Exclusion, ...] = (
    *(
        Exclusion(f"{_C}/layers/python/layers/embedding_ops_test.py", f"{case}.*", _UNDERSCORE)
        for case in ("SampledScatteredEmbeddingLookupTest", "SampledScatteredEmbeddingLookupSparseTest")
    ),
    *(
        Exclusion(f"{_C}/opt/python/training/external_optimizer_test.py", f"ScipyOptimizerInterfaceTest.{test}", _SCIPY)
        for test in ("test_nelder_mead_method2", "test_newton_tnc_method")
    ),
    *(
        Exclusion(f"{_C}/opt/python/training/weight_decay_optimizers_test.py", f"AdamWOptimizerTest.{test}", _NUMPY)
        for test in ("testSparse", "testResourceSparse")
    ),
    Exclusion(f"{_C}/slim/python/slim/learning_test.py", "TrainTest.testTrainWithSessionWrapper", _DEBUGGER),
    Exclusion(f"{_C}/slim/python/slim/evaluation_test.py", "SingleEvaluationTest.testAdditionalHooks", _DEBUGGER),
)


@functools.cache
def homes_of(short: str) -> str | None:
    """The modules that answer for tensorflow.`short`; None for a family that is not here."""
    parts = short.split(".")
    if parts[0] != "contrib" or len(parts) < 2:
        return None
    try:
        family = importlib.import_module(f"tenfold.contrib.{parts[1]}")
    except ModuleNotFoundError:
        return None
    inside = pkgutil.walk_packages(getattr(family, "__path__", ()), f"{family.__name__}.")
    names = [family.__name__, *(each.name for each in inside)]
    # What has the name of the module itself is asked first.
    return " ".join(sorted(names, key=lambda name: name.rpartition(".")[2] != parts[-1]))
