"""Whether the tasks that save a checkpoint see one and the same folder, found out before anything is trained.

In a sharded checkpoint each task writes its own part, and one of them joins all: on disks of their own the parts do not
meet. So a probe, an empty file of a random name, is written by this process and read by each of those tasks. Used by
CheckpointSaverHook and Supervisor.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import time
from typing import TYPE_CHECKING, Any

from tenfold.graph import device
from tenfold.graph.op_builder import apply_op
from tenfold_core import errors
from tenfold_core.device import DeviceSpec
from tenfold_core.file_errors import os_errors
from tenfold_core.file_names import file_path, join
from tenfold_core.files import EVERYWHERE
from tenfold_protos import config_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.graph.graph import Graph
    from tenfold.session.base_session import BaseSession

_FILE_OPS = {"SaveV2", "MergeV2Checkpoints", "RestoreV2", "SaveSlices", "RestoreSlice"}
#: A file system of a network may show a new file a little later on another machine.
_PATIENCE = 3.0
_PAUSE = 0.2


def tasks_that_save(graph: Graph, saver_def: Any) -> list[str]:
    """The tasks, as device names, whose ops write and read the files of a saver; "" is the session's own."""
    scope = saver_def.save_tensor_name.rpartition("/")[0]
    prefix = f"{scope}/" if scope else ""
    found = set()
    for op in graph.get_operations():
        if op.type in _FILE_OPS and op.name.startswith(prefix):
            spec = DeviceSpec.from_string(op.device)
            known = spec.job is not None and spec.task is not None
            found.add(DeviceSpec(spec.job, spec.replica, spec.task).to_string() if known else "")
    return sorted(found)


def check_shared_folder(session: BaseSession, folder: str, saver_def: Any) -> None:
    """Raises FailedPreconditionError, naming the tasks, where those that save see another folder than this process.

    Makes the folder. Does nothing where one task saves everything. Blocks for some steps of a session of its own, and
    for three seconds where the probe is not seen at once.
    """
    tasks = tasks_that_save(session.graph, saver_def)
    if len(tasks) < 2:
        return
    path = join(file_path(folder), f".tenfold-probe-{secrets.token_hex(8)}")
    with os_errors(folder):
        EVERYWHERE.make_folders(file_path(folder) or ".")
        EVERYWHERE.create(path).close()
    try:
        unseen = _unseen(session, path, tasks)
    finally:
        with contextlib.suppress(OSError):
            EVERYWHERE.unlink(path)
    if unseen:
        said = "; ".join(f"{task or 'the task of the session'}: {why}" for task, why in unseen.items())
        raise errors.FailedPreconditionError(
            None,
            None,
            f"The checkpoint folder {folder} of this process (on {socket.gethostname()}) is not that of all tasks that "
            f"save: a file that was written to it cannot be read there. {said}. Each task would write its part of a "
            "checkpoint to a place of its own. Give a folder that all of them share, or a URL such as s3://bucket/run; "
            "or let one task save everything: tf.train.Saver(gather=True).",
        )


def _unseen(session: BaseSession, path: str, tasks: Sequence[str]) -> dict[str, str]:
    """The tasks that cannot read the file, and what they said."""
    from tenfold.graph.graph import Graph
    from tenfold.session.session import Session

    graph = Graph()
    with graph.as_default():
        reads = {}
        for task in tasks:
            with device(f"{task}/cpu:0" if task else None):
                reads[task] = apply_op("ReadFile", filename=path)
    unseen: dict[str, str] = {}
    bounded = config_pb2.RunOptions(timeout_in_ms=60_000)
    with Session(session.sess_str, graph=graph, config=session._config) as probing:
        try:
            probing.run(list(reads.values()), options=bounded)
            return {}
        except errors.OpError:
            pass  # which task it was, and whether it was the only one, is asked now
        end = time.monotonic() + _PATIENCE
        for task, read in reads.items():
            while True:
                try:
                    probing.run(read, options=bounded)
                    unseen.pop(task, None)
                    break
                except errors.NotFoundError as error:
                    unseen[task] = error.message.partition("\n")[0]
                    if time.monotonic() + _PAUSE > end:
                        break
                    time.sleep(_PAUSE)
                except (errors.PermissionDeniedError, errors.UnimplementedError) as error:
                    unseen[task] = error.message.partition("\n")[0]
                    break
    return unseen
