"""`tf.saved_model`: models as a folder with graphs, values of variables and files, in TensorFlow's format.

A table of names, each loaded at its first use. builder_impl.py writes, loader_impl.py reads, the files themselves are
core/tenfold_core/saved_model.py's. Names are TF 1.15's; what writes and loads TensorFlow 2's objects is not among them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tenfold.lazy_module import make_lazy
from tenfold.left_out import hint as _hint

make_lazy(__name__)

_HOME = "tenfold.saved_model"
#: Module of this folder → its names that are names of `tf.saved_model` itself; `public=name` where the two differ.
_EXPORTS = {
    "builder_impl": "Builder=SavedModelBuilder",
    "loader_impl": "contains_saved_model=maybe_saved_model_directory load maybe_saved_model_directory",
    "simple_save": "simple_save",
    "main_op": "main_op_with_restore",
    "utils": "build_tensor_info get_tensor_from_tensor_info",
    "signature_def_utils": """
        build_signature_def classification_signature_def is_valid_signature predict_signature_def
        regression_signature_def
    """,
    "constants": """
        ASSETS_DIRECTORY ASSETS_KEY LEGACY_INIT_OP_KEY MAIN_OP_KEY SAVED_MODEL_FILENAME_PB SAVED_MODEL_FILENAME_PBTXT
        SAVED_MODEL_SCHEMA_VERSION VARIABLES_DIRECTORY VARIABLES_FILENAME
    """,
    "signature_constants": """
        CLASSIFY_INPUTS CLASSIFY_METHOD_NAME CLASSIFY_OUTPUT_CLASSES CLASSIFY_OUTPUT_SCORES
        DEFAULT_SERVING_SIGNATURE_DEF_KEY PREDICT_INPUTS PREDICT_METHOD_NAME PREDICT_OUTPUTS REGRESS_INPUTS
        REGRESS_METHOD_NAME REGRESS_OUTPUTS
    """,
    "tag_constants": "GPU SERVING TPU TRAINING",
}
_MODULES = frozenset(
    {
        *("builder", "builder_impl", "constants", "loader", "loader_impl", "main_op", "signature_constants"),
        *("signature_def_utils", "tag_constants", "utils"),
    }
)


def _table() -> dict[str, tuple[str, str]]:
    table = {}
    for module, names in _EXPORTS.items():
        for row in names.split():
            public, _, attribute = row.partition("=")
            table[public] = (f"{_HOME}.{module}", attribute or public)
    return table


_TABLE = _table()
__all__ = sorted({*_TABLE, *_MODULES})


def __getattr__(name: str) -> Any:
    if name in _TABLE:
        module, attribute = _TABLE[name]
        value = getattr(import_module(module), attribute)
    elif name in _MODULES:
        value = import_module(f"{_HOME}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_hint(f'saved_model.{name}')}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
