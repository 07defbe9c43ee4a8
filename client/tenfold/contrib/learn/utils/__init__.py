"""`tf.contrib.learn.utils`: serving inputs, exports, and the strategies of an Experiment that make them."""

from tenfold.contrib.learn.utils import gc, input_fn_utils, saved_model_export_utils
from tenfold.contrib.learn.utils.input_fn_utils import (
    InputFnOps,
    build_default_serving_input_fn,
    build_parsing_serving_input_fn,
)
from tenfold.contrib.learn.utils.saved_model_export_utils import make_export_strategy

__all__ = [
    "InputFnOps",
    "build_default_serving_input_fn",
    "build_parsing_serving_input_fn",
    "gc",
    "input_fn_utils",
    "make_export_strategy",
    "saved_model_export_utils",
]
