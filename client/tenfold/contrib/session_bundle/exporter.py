"""Exports a model as TensorFlow 0.x did: variables, a meta graph with signatures, assets.

What is written is what TensorFlow's own session_bundle loads, and session_bundle.py here. As 1.15's
contrib/session_bundle/exporter.py.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from google.protobuf import any_pb2

from tenfold import gfile, logging
from tenfold.contrib.framework.deprecation import deprecated
from tenfold.contrib.session_bundle import constants, gc
from tenfold.graph import add_to_collection, get_default_graph
from tenfold.graph.operation import Operation
from tenfold.graph.tensor import Tensor
from tenfold.train import training_util
from tenfold.train.saver import Saver
from tenfold_core import dtypes
from tenfold_protos import graph_pb2, manifest_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from google.protobuf.message import Message

    from tenfold.contrib.session_bundle.gc import Filter
    from tenfold_protos.manifest_pb2 import Signature

__all__ = ["Exporter", "classification_signature", "generic_signature", "gfile_copy_callback", "regression_signature"]

_deprecated = deprecated("2017-06-30", "No longer supported. Switch to SavedModel immediately.")


@_deprecated
def gfile_copy_callback(files_to_copy: Mapping[str | bytes, str | bytes], export_dir_path: str | bytes) -> None:
    """Copies files (path → name in the folder) into a folder, which is made. Blocks."""
    folder = os.fsdecode(export_dir_path)
    logging.info("Write assets into: %s using gfile_copy.", folder)
    gfile.MakeDirs(folder)
    for source, name in files_to_copy.items():
        # a file that is there may be half of one, of a program that ended meanwhile
        gfile.Copy(os.fsdecode(source), os.path.join(folder, os.fsdecode(name)), overwrite=True)


@_deprecated
def regression_signature(input_tensor: Any, output_tensor: Any) -> Signature:
    """Numbers for examples."""
    signature = manifest_pb2.Signature()
    signature.regression_signature.input.tensor_name = input_tensor.name
    signature.regression_signature.output.tensor_name = output_tensor.name
    return signature


@_deprecated
def classification_signature(input_tensor: Any, classes_tensor: Any = None, scores_tensor: Any = None) -> Signature:
    """Classes, scores or both for examples."""
    signature = manifest_pb2.Signature()
    signature.classification_signature.input.tensor_name = input_tensor.name
    if classes_tensor is not None:
        signature.classification_signature.classes.tensor_name = classes_tensor.name
    if scores_tensor is not None:
        signature.classification_signature.scores.tensor_name = scores_tensor.name
    return signature


@_deprecated
def generic_signature(name_tensor_map: Mapping[str, Any]) -> Signature:
    """Tensors by names of the model's own."""
    signature = manifest_pb2.Signature()
    for name, tensor in name_tensor_map.items():
        signature.generic_signature.map[name].tensor_name = tensor.name
    return signature


class Exporter:
    """Writes exports of the model whose variables `saver` saves. `init` comes first, once."""

    def __init__(self, saver: Any) -> None:
        saver_def = saver.as_saver_def()
        # what is kept is decided by `exports_to_keep`: a saver that deletes would delete what was renamed meanwhile
        saver_def.ClearField("max_to_keep")
        self._saver = Saver(saver_def=saver_def)
        self._has_init = False
        self._assets_to_copy: dict[bytes, bytes] = {}
        self._assets_callback: Callable[[Any, Any], None] | None = None

    @_deprecated
    def init(
        self,
        graph_def: Any = None,
        init_op: Operation | None = None,
        clear_devices: bool = False,
        default_graph_signature: Signature | None = None,
        named_graph_signatures: Mapping[str, Signature] | None = None,
        assets_collection: Iterable[Any] | None = None,
        assets_callback: Callable[[Any, Any], None] | None = gfile_copy_callback,
    ) -> None:
        """Says what is exported with the variables: a graph to serve in place of the default one (`graph_def`), an op
        to run once variables are restored, signatures, and constants that name files, which the callback copies.

        Raises RuntimeError for a second call, TypeError for an `init_op` or an asset of another kind, ValueError for an
        asset without a path.
        """
        assets: list[tuple[bytes, Tensor]] = []
        for tensor in assets_collection or ():
            path = _path_in(tensor)
            if not path:
                raise ValueError(f"invalid asset filepath tensor {tensor}")
            name = os.path.basename(path)
            assets.append((name, tensor))
            self._assets_to_copy[path] = name
        if self._has_init:
            raise RuntimeError("init should be called only once")
        self._has_init = True
        if graph_def or clear_devices:
            served = graph_pb2.GraphDef()
            served.CopyFrom(graph_def or get_default_graph().as_graph_def())
            for node in served.node if clear_devices else ():
                node.device = ""
            _collect(constants.GRAPH_KEY, served)
        if init_op is not None:
            if not isinstance(init_op, Operation):
                raise TypeError(f"init_op needs to be an Operation: {init_op}")
            add_to_collection(constants.INIT_OP_KEY, init_op)
        signatures = manifest_pb2.Signatures()
        if default_graph_signature is not None:
            signatures.default_signature.CopyFrom(default_graph_signature)
        for key, signature in (named_graph_signatures or {}).items():
            signatures.named_signatures[key].CopyFrom(signature)
        _collect(constants.SIGNATURES_KEY, signatures)
        for name, tensor in assets:
            asset = manifest_pb2.AssetFile(filename=os.fsdecode(name))
            asset.tensor_binding.tensor_name = tensor.name
            _collect(constants.ASSETS_KEY, asset)
        self._assets_callback = assets_callback

    @_deprecated
    def export(
        self, export_dir_base: str, global_step_tensor: Any, sess: Any = None, exports_to_keep: Filter | None = None
    ) -> bytes:
        """Writes the folder `export_dir_base`/<global step>, whole or not at all; its path. Blocks.

        `exports_to_keep`, a filter of gc.py, says which of the folders there are kept. Raises RuntimeError before
        `init`, and where the folder is there already.
        """
        if not self._has_init:
            raise RuntimeError("init must be called first")
        base = os.fsdecode(export_dir_base)
        base = base.removesuffix("/")
        step = training_util.global_step(sess, global_step_tensor)
        folder = os.path.join(base, constants.VERSION_FORMAT_SPECIFIER % step)
        if gfile.Exists(folder):
            raise RuntimeError(
                "Overwriting exports can cause corruption and are not allowed. "
                f"Duplicate export dir: {os.fsencode(folder)!r}"
            )
        unfinished = f"{folder}-tmp"
        gfile.MakeDirs(unfinished)
        self._saver.save(
            sess,
            os.path.join(unfinished, constants.EXPORT_BASE_NAME),
            meta_graph_suffix=constants.EXPORT_SUFFIX_NAME,
        )
        if self._assets_callback and self._assets_to_copy:
            assets = os.path.join(unfinished, constants.ASSETS_DIRECTORY)
            gfile.MakeDirs(assets)
            self._assets_callback(self._assets_to_copy, os.fsencode(assets))
        gfile.Rename(unfinished, folder)
        if exports_to_keep:
            named = re.compile(re.escape(base) + r"/(\d{8})")

            def parser(path: gc.Path) -> gc.Path | None:
                found = named.fullmatch(path.path)
                return path._replace(export_version=int(found[1])) if found else None

            for each in gc.negation(exports_to_keep)(gc.get_paths(base, parser=parser)):
                gfile.DeleteRecursively(each.path)
        return os.fsencode(folder)


def _collect(key: str, message: Message) -> None:
    packed = any_pb2.Any()
    packed.Pack(message)
    add_to_collection(key, packed)


def _path_in(tensor: Any) -> bytes:
    """The path that a constant holds. Raises TypeError for anything else."""
    if not isinstance(tensor, Tensor):
        raise TypeError("tensor is not a Tensor")
    if tensor.op.type != "Const":
        raise TypeError("Only constants tensor are supported")
    if tensor.dtype != dtypes.string:
        raise TypeError("File paths should be string")
    values: list[bytes] = list(tensor.op.get_attr("value").string_val)
    if len(values) != 1:
        raise TypeError("Only scalar tensors are supported")
    return values[0]
