"""`tf.train.write_graph`: a GraphDef as a file, text or binary. Follows TF 1.15's framework/graph_io.py."""

from __future__ import annotations

import os
from typing import Any

from google.protobuf import text_format

from tenfold_core.checkpoint.files import AtomicFile, local_path


def write_graph(graph_or_graph_def: Any, logdir: str, name: str, as_text: bool = True) -> str:
    """Writes a Graph or a GraphDef to `logdir/name`, making the folder if needed; the file's path."""
    definition = (
        graph_or_graph_def.as_graph_def() if hasattr(graph_or_graph_def, "as_graph_def") else graph_or_graph_def
    )
    folder = local_path(logdir)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    data = text_format.MessageToString(definition).encode() if as_text else definition.SerializeToString()
    with AtomicFile(path) as out:
        out.write(data)
    return path
