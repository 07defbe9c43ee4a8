"""The file `checkpoint` of a folder, and the files of a checkpoint: find, list, times, delete.

A checkpoint is named by its prefix, such as `train/model.ckpt-100`; format V2 has the files PREFIX.index and
PREFIX.data-…, V1 one file PREFIX. Used by saver.py and session_manager.py. Follows TF 1.15's
training/checkpoint_management.py.
"""

from __future__ import annotations

import glob
import os
import re
from typing import TYPE_CHECKING

from google.protobuf import text_format

from tenfold import logging
from tenfold_core.checkpoint.files import AtomicFile
from tenfold_core.file_errors import os_error
from tenfold_core.file_names import file_path, is_absolute, is_url, join, relative
from tenfold_core.files import EVERYWHERE
from tenfold_protos import checkpoint_state_pb2, saver_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_protos.checkpoint_state_pb2 import CheckpointState

_V2 = saver_pb2.SaverDef.V2
#: Name of the state file where none is given.
_LATEST = "checkpoint"


def generate_checkpoint_state_proto(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> CheckpointState:
    """The state, the newest checkpoint last; relative to a relative `save_dir`. ValueError for uneven timestamps."""
    paths = list(all_model_checkpoint_paths or ())
    if not paths or paths[-1] != model_checkpoint_path:
        paths.append(model_checkpoint_path)
    if all_model_checkpoint_timestamps and len(all_model_checkpoint_timestamps) != len(paths):
        raise ValueError(
            "Checkpoint timestamps, if provided, must match checkpoint paths (got paths "
            f"{paths} and timestamps {all_model_checkpoint_timestamps})"
        )
    if not os.path.isabs(save_dir):
        # the folder may be moved as a whole
        paths = [path if os.path.isabs(path) else relative(path, save_dir) for path in paths]
    return checkpoint_state_pb2.CheckpointState(
        model_checkpoint_path=paths[-1],
        all_model_checkpoint_paths=paths,
        all_model_checkpoint_timestamps=all_model_checkpoint_timestamps or (),
        last_preserved_timestamp=last_preserved_timestamp or 0.0,
    )


def update_checkpoint_state(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
    *,
    save_relative_paths: bool = False,
) -> None:
    """Writes the state file of `save_dir` as a whole: a reader sees the old one or the new one.

    Raises RuntimeError if the checkpoint would have the state file's name.
    """
    state_file = os.path.join(save_dir, latest_filename or _LATEST)
    paths = list(all_model_checkpoint_paths or ())
    if save_relative_paths:
        paths = [relative(path, save_dir) if is_absolute(path) else path for path in paths]
        if is_absolute(model_checkpoint_path):
            model_checkpoint_path = relative(model_checkpoint_path, save_dir)
    state = generate_checkpoint_state_proto(
        save_dir, model_checkpoint_path, paths, all_model_checkpoint_timestamps, last_preserved_timestamp
    )
    if state_file == state.model_checkpoint_path:
        raise RuntimeError(
            f"Save path '{model_checkpoint_path}' conflicts with path used for checkpoint state.  Please use a "
            "different save path."
        )
    with AtomicFile(file_path(state_file)) as out:
        out.write(text_format.MessageToString(state).encode())


def get_checkpoint_state(checkpoint_dir: str | None, latest_filename: str | None = None) -> CheckpointState | None:
    """The state of the folder, with paths that work from here; None if there is none or it cannot be read.

    Raises ValueError if it names no checkpoint, the step's error where a store cannot be asked.
    """
    folder = os.fspath(checkpoint_dir or "")
    state_file = os.path.join(folder, latest_filename or _LATEST)
    state = checkpoint_state_pb2.CheckpointState()
    try:
        text_format.Merge(EVERYWHERE.read_whole(file_path(state_file)).decode(), state)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, text_format.ParseError) as error:
        if isinstance(error, OSError) and is_url(state_file):
            # a store that cannot be asked: to go on would be to train from the beginning
            raise os_error(state_file, error) from None
        logging.warning("%s: %s", type(error).__name__, error)
        logging.warning("%s: Checkpoint ignored", state_file)
        return None
    if not state.model_checkpoint_path:
        raise ValueError(f"Invalid checkpoint state loaded from {folder}")
    state.model_checkpoint_path = join(folder, state.model_checkpoint_path)
    state.all_model_checkpoint_paths[:] = [join(folder, path) for path in state.all_model_checkpoint_paths]
    return state


def latest_checkpoint(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """The prefix of the folder's newest checkpoint, if its files exist; otherwise None."""
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None:
        return None
    if checkpoint_exists(state.model_checkpoint_path):
        return state.model_checkpoint_path
    logging.error("Couldn't match files for checkpoint %s", state.model_checkpoint_path)
    return None


def checkpoint_exists(checkpoint_prefix: str) -> bool:
    """Whether there is a checkpoint of that name (a pattern in format V1)."""
    return bool(_first_file(checkpoint_prefix))


def get_checkpoint_mtimes(checkpoint_prefixes: Sequence[str]) -> list[float]:
    """When each of the checkpoints that exist was written, in seconds since the epoch."""
    files = [_first_file(prefix) for prefix in checkpoint_prefixes]
    return [EVERYWHERE.stat(file).mtime_ns / 1e9 for file in files if file]


def remove_checkpoint(
    checkpoint_prefix: str, checkpoint_format_version: int = _V2, meta_graph_suffix: str = "meta"
) -> None:
    """Deletes the checkpoint's files and its meta graph. Missing files are not an error."""
    checkpoint_prefix = file_path(checkpoint_prefix)
    patterns = [glob.escape(meta_graph_filename(checkpoint_prefix, meta_graph_suffix))]
    if checkpoint_format_version == _V2:
        # the index first: readers ignore the data files without it
        escaped = glob.escape(checkpoint_prefix)
        patterns = [f"{escaped}.index", f"{escaped}.data-?????-of-?????", *patterns]
    else:
        patterns.append(checkpoint_prefix)
    for pattern in patterns:
        for file in EVERYWHERE.matching(pattern):
            EVERYWHERE.unlink(file)


def meta_graph_filename(checkpoint_filename: str, meta_graph_suffix: str = "meta") -> str:
    """The meta graph beside a checkpoint; the shards of one share it."""
    return re.sub(r"-[\d\?]+-of-\d+$", "", checkpoint_filename) + f".{meta_graph_suffix}"


def _first_file(prefix: str) -> str:
    """A file whose existence shows that the checkpoint is there; "" without."""
    prefix = file_path(prefix)
    index = f"{prefix}.index"
    if EVERYWHERE.exists(index):
        return index
    # a V1 prefix may be a pattern of shards, NAME-?????-of-00004
    return next(iter(EVERYWHERE.matching(prefix)), "")
