"""`tf.contrib.tensorboard.plugins.projector`: which embeddings TensorBoard shows, written into its log folder.

As TensorFlow 1.15's contrib/tensorboard/plugins/projector.
"""

from __future__ import annotations

import os
from typing import Any

from google.protobuf import text_format

from tenfold.compat.python.file_io import write_string_to_file
from tenfold_protos.projector_config_pb2 import EmbeddingInfo, ProjectorConfig, SpriteMetadata

__all__ = ["EmbeddingInfo", "ProjectorConfig", "SpriteMetadata", "visualize_embeddings"]


def visualize_embeddings(summary_writer: Any, config: ProjectorConfig) -> None:
    """Writes `config` as projector_config.pbtxt into the writer's log folder. Blocks while the file is written.

    Raises ValueError if the writer has no log folder.
    """
    logdir = summary_writer.get_logdir()
    if logdir is None:
        raise ValueError("Summary writer must have a logdir")
    write_string_to_file(os.path.join(logdir, "projector_config.pbtxt"), text_format.MessageToString(config))
