"""`tf.saved_model.constants`: names of the files and collections of a SavedModel, as TensorFlow 1.15's."""

from __future__ import annotations

from tenfold_core.saved_model import (
    ASSETS_DIRECTORY,
    ASSETS_KEY,
    INIT_OP_SIGNATURE_KEY,
    LEGACY_INIT_OP_KEY,
    MAIN_OP_KEY,
    VARIABLES_DIRECTORY,
    VARIABLES_FILENAME,
)
from tenfold_core.saved_model import FILENAME_PB as SAVED_MODEL_FILENAME_PB
from tenfold_core.saved_model import FILENAME_PBTXT as SAVED_MODEL_FILENAME_PBTXT
from tenfold_core.saved_model import SCHEMA_VERSION as SAVED_MODEL_SCHEMA_VERSION

__all__ = [
    "ASSETS_DIRECTORY",
    "ASSETS_KEY",
    "EXTRA_ASSETS_DIRECTORY",
    "INIT_OP_SIGNATURE_KEY",
    "LEGACY_INIT_OP_KEY",
    "MAIN_OP_KEY",
    "SAVED_MODEL_FILENAME_PB",
    "SAVED_MODEL_FILENAME_PBTXT",
    "SAVED_MODEL_SCHEMA_VERSION",
    "TRAIN_OP_KEY",
    "TRAIN_OP_SIGNATURE_KEY",
    "VARIABLES_DIRECTORY",
    "VARIABLES_FILENAME",
]

#: Folder of files that a server may want beside the model, such as requests to warm it up.
EXTRA_ASSETS_DIRECTORY = "assets.extra"
#: Where the op that trains the model is kept: a collection, and a signature in what `_SavedModelBuilder` writes.
TRAIN_OP_KEY = "saved_model_train_op"
TRAIN_OP_SIGNATURE_KEY = "__saved_model_train_op"
