"""The event files of evaluations: the metrics of one, and which checkpoint they are of. Used by estimator.py.

Tags and kinds of values are those of TF 1.15's estimator/estimator.py, so TensorBoard and BestExporter read either's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from google.protobuf.message import DecodeError

from tenfold import logging, summary
from tenfold_core import dtypes
from tenfold_core.tensor_util import make_tensor_proto
from tenfold_protos import summary_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping


def write_dict_to_summary(output_dir: str, metrics: Mapping[str, Any], global_step: int) -> None:
    """Writes the values as one summary of that step. Blocks until they are in the file."""
    said = ", ".join(f"{key} = {value}" for key, value in sorted(metrics.items()) if not isinstance(value, bytes))
    logging.info("Saving dict for global step %d: %s", global_step, said)
    message = summary_pb2.Summary()
    for key, value in metrics.items():
        if value is not None and key != "global_step":
            _add(message, key, value)
    _write(output_dir, message, global_step)


def _add(message: summary_pb2.Summary, key: str, value: Any) -> None:
    if isinstance(value, (float, np.float32, int, np.int32, np.int64)):
        message.value.add(tag=key, simple_value=float(value))
    elif isinstance(value, bytes):
        try:
            parts = summary_pb2.Summary.FromString(value).value
        except DecodeError:
            logging.warning("Skipping summary for %s, cannot parse string to Summary.", key)
            return
        for number, part in enumerate(parts):
            part.tag = f"{key}/{number}"
        message.value.extend(parts)
    elif isinstance(value, np.ndarray):
        message.value.add(tag=key, node_name=key, tensor=make_tensor_proto(value))
        logging.info("The array %s is in the summary, but TensorBoard shows it only by a plugin.", key)
    else:
        logging.warning(
            "Skipping summary for %s, must be a float, np.float32, np.int64, np.int32 or int or np.ndarray or a "
            "serialized string of Summary.",
            key,
        )


def write_checkpoint_path_to_summary(output_dir: str, checkpoint_path: str, global_step: int) -> None:
    """Writes which checkpoint was evaluated at that step. Blocks until it is in the file."""
    tag = "checkpoint_path"
    logging.info("Saving '%s' summary for global step %d: %s", tag, global_step, checkpoint_path)
    message = summary_pb2.Summary()
    message.value.add(tag=tag, tensor=make_tensor_proto(checkpoint_path, dtype=dtypes.string))
    _write(output_dir, message, global_step)


def _write(output_dir: str, message: summary_pb2.Summary, global_step: int) -> None:
    writer = summary.FileWriterCache.get(output_dir)
    writer.add_summary(message, global_step)
    writer.flush()
