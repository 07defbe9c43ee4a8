"""What of an exported model depends on its mode: tags, signatures, and the folder that it goes to.

Used by saved_models.py. Follows TF 1.15's saved_model/model_utils/export_utils.py.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from tenfold import gfile, logging
from tenfold.estimator.export.export import SINGLE_RECEIVER_DEFAULT_NAME
from tenfold.estimator.export.export_output import EvalOutput, ExportOutput, TrainOutput, get_export_outputs
from tenfold.estimator.mode_keys import ModeKeys
from tenfold.saved_model import signature_constants, signature_def_utils, tag_constants

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Mode → tags of its graph in a SavedModel.
EXPORT_TAG_MAP = {
    ModeKeys.PREDICT: [tag_constants.SERVING],
    ModeKeys.TRAIN: [tag_constants.TRAINING],
    ModeKeys.EVAL: [tag_constants.EVAL],
}
#: Mode → name of its signature.
SIGNATURE_KEY_MAP = {
    ModeKeys.PREDICT: signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY,
    ModeKeys.TRAIN: signature_constants.DEFAULT_TRAIN_SIGNATURE_DEF_KEY,
    ModeKeys.EVAL: signature_constants.DEFAULT_EVAL_SIGNATURE_DEF_KEY,
}

#: How often a folder's name, which is a time in seconds, is tried.
MAX_DIRECTORY_CREATION_ATTEMPTS = 10

_FRIENDLY_METHOD_NAMES = {
    signature_constants.CLASSIFY_METHOD_NAME: "Classify",
    signature_constants.REGRESS_METHOD_NAME: "Regress",
    signature_constants.PREDICT_METHOD_NAME: "Predict",
    signature_constants.SUPERVISED_TRAIN_METHOD_NAME: "Train",
    signature_constants.SUPERVISED_EVAL_METHOD_NAME: "Eval",
}


def build_all_signature_defs(
    receiver_tensors: Any,
    export_outputs: Any,
    receiver_tensors_alternatives: Mapping[str, Any] | None = None,
    serving_only: bool = True,
) -> dict[str, Any]:
    """Name → SignatureDef, for every output and every way to feed; those that do not fit each other are left out.

    With `serving_only`, so are those that cannot be served. Raises ValueError if the outputs are no dictionary.
    """
    if export_outputs is None or not isinstance(export_outputs, dict):
        raise ValueError(f"export_outputs must be a dict and not{type(export_outputs)}")
    ways: list[tuple[str, Any]] = [("", receiver_tensors)]
    ways += [(f"{name or 'None'}:", each) for name, each in (receiver_tensors_alternatives or {}).items()]
    made: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for prefix, receivers in ways:
        inputs = receivers if isinstance(receivers, dict) else {SINGLE_RECEIVER_DEFAULT_NAME: receivers}
        for key, output in export_outputs.items():
            name = f"{prefix}{key or 'None'}"
            try:
                made[name] = output.as_signature_def(inputs)
            except ValueError as error:
                left_out[name] = str(error)
    _log_signature_report(made, left_out)
    if serving_only:
        made = {name: each for name, each in made.items() if signature_def_utils.is_valid_signature(each)}
    return made


def _log_signature_report(signature_def_map: Mapping[str, Any], excluded_signatures: Mapping[str, str]) -> None:
    names: dict[str, list[str]] = {method: [] for method in _FRIENDLY_METHOD_NAMES}
    for name, signature in signature_def_map.items():
        names.setdefault(signature.method_name, []).append(name)
    for method, found in names.items():
        said = _FRIENDLY_METHOD_NAMES.get(method, method)
        logging.info("Signatures INCLUDED in export for %s: %s", said, found or "None")
    if excluded_signatures:
        logging.info("Signatures EXCLUDED from export because they cannot be be served via TensorFlow Serving APIs:")
        for name, why in excluded_signatures.items():
            logging.info("'%s' : %s", name, why)
    if not signature_def_map:
        logging.warning("Export includes no signatures!")
    elif signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY not in signature_def_map:
        logging.warning("Export includes no default signature!")


def export_outputs_for_mode(
    mode: str, serving_export_outputs: Any = None, predictions: Any = None, loss: Any = None, metrics: Any = None
) -> dict[str, ExportOutput]:
    """The outputs of a model in that mode, by name of the signature. Raises ValueError for another mode."""
    if mode not in SIGNATURE_KEY_MAP:
        raise ValueError(
            f"Export output type not found for mode: {mode}. Expected one of: {SIGNATURE_KEY_MAP.keys()}.\nOne likely "
            "error is that V1 Estimator Modekeys were somehow passed to this function. Please ensure that you are "
            "using the new ModeKeys."
        )
    if mode == ModeKeys.PREDICT:
        return get_export_outputs(serving_export_outputs, predictions)
    kind = TrainOutput if mode == ModeKeys.TRAIN else EvalOutput
    return {SIGNATURE_KEY_MAP[mode]: kind(loss=loss, predictions=predictions, metrics=metrics)}


def get_timestamped_export_dir(export_dir_base: Any) -> bytes:
    """A new folder's path, whose name is the time in seconds; it is not made. Blocks up to ten seconds.

    Raises RuntimeError if another process takes every name.
    """
    base = os.fsencode(export_dir_base)
    for attempt in range(1, MAX_DIRECTORY_CREATION_ATTEMPTS + 1):
        path = os.path.join(base, str(int(time.time())).encode())
        if not gfile.Exists(os.fsdecode(path)):
            return path
        time.sleep(1)
        logging.warning(
            "Directory %s already exists; retrying (attempt %s/%s)",
            path,
            attempt,
            MAX_DIRECTORY_CREATION_ATTEMPTS,
        )
    raise RuntimeError(
        f"Failed to obtain a unique export directory name after {MAX_DIRECTORY_CREATION_ATTEMPTS} attempts."
    )


def get_temp_export_dir(timestamped_export_dir: Any) -> bytes:
    """The folder beside it where the model is written: its name is not a number, so that nobody serves it yet."""
    folder, name = os.path.split(os.fsencode(timestamped_export_dir))
    return os.path.join(folder, b"temp-" + name)
