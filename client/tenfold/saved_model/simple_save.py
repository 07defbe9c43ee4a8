"""`tf.saved_model.simple_save`: a model with one signature, to be served. As TF 1.15's saved_model/simple_save.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph import GraphKeys, get_collection
from tenfold.saved_model import signature_constants, signature_def_utils, tag_constants
from tenfold.saved_model.builder_impl import SavedModelBuilder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold.graph.operation import Operation

__all__ = ["simple_save"]


def simple_save(
    session: Any,
    export_dir: str,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    legacy_init_op: Operation | None = None,
) -> None:
    """Writes the session's graph and variables to `export_dir`, tagged "serve", with the signature "serving_default".

    The files of the collection ASSET_FILEPATHS go with it; `legacy_init_op` is run when the model is loaded. Blocks.
    Raises ValueError without inputs or outputs, AssertionError if the folder is there and is not empty.
    """
    signature = signature_def_utils.predict_signature_def(inputs, outputs)
    builder = SavedModelBuilder(export_dir)
    builder.add_meta_graph_and_variables(
        session,
        tags=[tag_constants.SERVING],
        signature_def_map={signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: signature},
        assets_collection=get_collection(GraphKeys.ASSET_FILEPATHS),
        main_op=legacy_init_op,
        clear_devices=True,
    )
    builder.save()
