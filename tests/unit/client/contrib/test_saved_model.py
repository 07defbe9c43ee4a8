"""What a SavedModel holds, by its folder: tags, graphs, signatures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tenfold as tf
from tenfold_core import saved_model
from tenfold_protos import saved_model_pb2

if TYPE_CHECKING:
    from pathlib import Path


def test_graphs_and_signatures_are_found(tmp_path: Path) -> None:
    model = saved_model_pb2.SavedModel()
    graph = model.meta_graphs.add()
    graph.meta_info_def.tags.extend(["serve", "gpu"])
    graph.signature_def["s"].method_name = "m"
    saved_model.write(str(tmp_path), model)
    contrib = tf.contrib.saved_model

    assert contrib.get_saved_model_tag_sets(str(tmp_path)) == [["gpu", "serve"]]
    found = contrib.get_meta_graph_def(str(tmp_path), "serve,gpu")
    assert contrib.get_signature_def_by_key(found, "s").method_name == "m"
    with pytest.raises(ValueError, match=r"No SignatureDef with key 't'.*\['s'\]"):
        contrib.get_signature_def_by_key(found, "t")
    with pytest.raises(RuntimeError, match="available_tags"):
        contrib.get_meta_graph_def(str(tmp_path), "serve")
