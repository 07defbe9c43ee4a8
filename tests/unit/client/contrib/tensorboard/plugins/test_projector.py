"""The embedding projector's settings, as TensorBoard reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tenfold as tf

if TYPE_CHECKING:
    from pathlib import Path


def test_settings_are_written_into_the_log_folder(tmp_path: Path) -> None:
    projector = tf.contrib.tensorboard.plugins.projector
    config = projector.ProjectorConfig(model_checkpoint_path="model.ckpt")
    embedding = config.embeddings.add()
    embedding.tensor_name = "words"
    embedding.sprite.single_image_dim.extend([28, 28])

    with tf.summary.FileWriter(str(tmp_path)) as writer:
        projector.visualize_embeddings(writer, config)

    assert (tmp_path / "projector_config.pbtxt").read_text() == (
        'model_checkpoint_path: "model.ckpt"\nembeddings {\n  tensor_name: "words"\n'
        "  sprite {\n    single_image_dim: 28\n    single_image_dim: 28\n  }\n}\n"
    )


def test_a_writer_without_a_folder_is_refused() -> None:
    class Writer:
        def get_logdir(self) -> None:
            return None

    projector = tf.contrib.tensorboard.plugins.projector
    with pytest.raises(ValueError, match="must have a logdir"):
        projector.visualize_embeddings(Writer(), projector.ProjectorConfig())
