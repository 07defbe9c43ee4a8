"""`tf.train.write_graph`: a GraphDef as a file, text or binary. Follows TF 1.15's framework/graph_io.py."""

from __future__ import annotations

import os
from typing import Any

from google.protobuf import text_format

from tenfold_core.checkpoint.files import AtomicFile
from tenfold_core.file_names import file_path
from tenfold_core.files import EVERYWHERE


def write_graph(graph_or_graph_def: Any, logdir: str, name: str, as_text: bool = True) -> str:
    """Writes a Graph or a GraphDef to `logdir/name`, making the folder if needed; the file's path."""
    definition = (
        graph_or_graph_def.as_graph_def() if hasattr(graph_or_graph_def, "as_graph_def") else graph_or_graph_def
    )
    folder = file_path(logdir)
    EVERYWHERE.make_folders(folder)
    path = os.path.join(folder, name)
    data = text_format.MessageToString(definition).encode() if as_text else definition.SerializeToString()
    with AtomicFile(path) as out:
        out.write(data)
    return path
