"""`tf.contrib.saved_model`: what a SavedModel holds. As TF 1.15's contrib/saved_model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core import saved_model

if TYPE_CHECKING:
    from tenfold_protos.meta_graph_pb2 import MetaGraphDef, SignatureDef

__all__ = ["get_meta_graph_def", "get_saved_model_tag_sets", "get_signature_def_by_key"]


def get_signature_def_by_key(meta_graph_def: MetaGraphDef, signature_def_key: str) -> SignatureDef:
    """A signature of a graph. Raises ValueError, with those that there are, if it has none of that name."""
    if signature_def_key not in meta_graph_def.signature_def:
        raise ValueError(
            f"No SignatureDef with key '{signature_def_key}' found in MetaGraphDef: it has "
            f"{sorted(meta_graph_def.signature_def)}"
        )
    return meta_graph_def.signature_def[signature_def_key]


def get_saved_model_tag_sets(saved_model_dir: str) -> list[list[str]]:
    """The tags of each graph, sorted. Raises OSError if there is no SavedModel."""
    return [sorted(graph.meta_info_def.tags) for graph in saved_model.read(saved_model_dir).meta_graphs]


def get_meta_graph_def(saved_model_dir: str, tag_set: str) -> MetaGraphDef:
    """The graph with these tags, separated by commas. Raises RuntimeError if there is none, OSError without a model."""
    return saved_model.graph_with_tags(saved_model.read(saved_model_dir), tag_set.split(","))
