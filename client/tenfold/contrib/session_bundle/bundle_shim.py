"""Loads an export of TensorFlow 0.x or a SavedModel, both as a SavedModel. As 1.15's session_bundle/bundle_shim.py.

An export's signatures become those of a SavedModel.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold.contrib.session_bundle import constants, session_bundle
from tenfold.saved_model import loader_impl
from tenfold.saved_model import signature_constants as names
from tenfold.session.session import Session
from tenfold.train import meta_graph
from tenfold_protos import manifest_pb2, meta_graph_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold_protos.config_pb2 import ConfigProto
    from tenfold_protos.manifest_pb2 import Signatures
    from tenfold_protos.meta_graph_pb2 import MetaGraphDef, SignatureDef

__all__ = ["load_session_bundle_or_saved_model_bundle_from_path"]


def load_session_bundle_or_saved_model_bundle_from_path(
    export_dir: str, tags: Iterable[str] | None = None, target: str = "", config: ConfigProto | None = None
) -> tuple[Any, MetaGraphDef]:
    """A session with the model in a folder, and its meta graph; `tags` choose one of a SavedModel. Blocks.

    Raises RuntimeError where there is neither, for an export that has signatures of both kinds, and for named
    signatures other than generic "inputs" and "outputs".
    """
    if loader_impl.maybe_saved_model_directory(export_dir):
        session = Session(target, config=config)
        return session, loader_impl.load(session, tags or (), export_dir)
    if session_bundle.maybe_session_bundle_dir(export_dir):
        return _load_export(export_dir, target, config)
    raise RuntimeError(f"SessionBundle or SavedModelBundle not found at specified export location: {export_dir}")


def _load_export(export_dir: str, target: str, config: ConfigProto | None) -> tuple[Any, MetaGraphDef]:
    definition = meta_graph.read_meta_graph_file(os.path.join(export_dir, constants.META_GRAPH_DEF_FILENAME))
    if definition.signature_def:
        raise RuntimeError("Legacy graph contains signature def, unable to up-convert.")
    default, named = _converted(definition)
    key = names.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    if default is not None:
        definition.signature_def[key].CopyFrom(default)
    if named is not None:
        definition.signature_def[key if default is None else f"{key}_from_named"].CopyFrom(named)
    return session_bundle.load_session_bundle_from_path(export_dir, target, config, meta_graph_def=definition)


def _converted(definition: MetaGraphDef) -> tuple[SignatureDef | None, SignatureDef | None]:
    """The default signature, and that of the named ones "inputs" and "outputs"; None for one that is not there."""
    signatures = manifest_pb2.Signatures()
    definition.collection_def[constants.SIGNATURES_KEY].any_list.value[0].Unpack(signatures)
    default = _of_default(signatures) if signatures.HasField("default_signature") else None
    # "inputs" and "outputs" make one together
    named = _of_named(signatures) if len(signatures.named_signatures) > 1 else None
    return default, named


def _of_default(signatures: Signatures) -> SignatureDef | None:
    signature, made = signatures.default_signature, meta_graph_pb2.SignatureDef()
    kind = signature.WhichOneof("type")
    if kind == constants.REGRESSION_SIGNATURE:
        regression = signature.regression_signature
        made.method_name = names.REGRESS_METHOD_NAME
        made.inputs[names.REGRESS_INPUTS].name = regression.input.tensor_name
        made.outputs[names.REGRESS_OUTPUTS].name = regression.output.tensor_name
        return made
    if kind == constants.CLASSIFICATION_SIGNATURE:
        classification = signature.classification_signature
        made.method_name = names.CLASSIFY_METHOD_NAME
        made.inputs[names.CLASSIFY_INPUTS].name = classification.input.tensor_name
        made.outputs[names.CLASSIFY_OUTPUT_CLASSES].name = classification.classes.tensor_name
        made.outputs[names.CLASSIFY_OUTPUT_SCORES].name = classification.scores.tensor_name
        return made
    logging.error(
        "Only classification and regression default signatures are supported for up-conversion. %s is not supported",
        kind,
    )
    return None


def _of_named(signatures: Signatures) -> SignatureDef:
    made = meta_graph_pb2.SignatureDef(method_name=names.PREDICT_METHOD_NAME)
    inputs = signatures.named_signatures[names.PREDICT_INPUTS]
    outputs = signatures.named_signatures[names.PREDICT_OUTPUTS]
    kinds = [each.WhichOneof("type") for each in (inputs, outputs)]
    if kinds != [constants.GENERIC_SIGNATURE] * 2:
        raise RuntimeError(
            "Named input and output signatures can only be up-converted if they are generic signature. Input signature "
            f"type is {kinds[0]}, output signature type is {kinds[1]}"
        )
    for given, info in ((inputs, made.inputs), (outputs, made.outputs)):
        for key, binding in given.generic_signature.map.items():
            info[key].name = binding.tensor_name
    return made
