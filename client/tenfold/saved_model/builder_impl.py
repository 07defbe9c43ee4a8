"""`tf.saved_model.Builder`: writes graphs with their signatures, the values of their variables and their files.

assets.py says which files go along, utils.py and signature_def_utils.py make signatures, loader_impl.py reads all of
it. Follows TF 1.15's saved_model/builder_impl.py.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from google.protobuf import any_pb2

from tenfold import logging
from tenfold.graph import add_to_collection, get_collection
from tenfold.graph.operation import Operation
from tenfold.graph.tensor import Tensor
from tenfold.saved_model import assets, constants, signature_def_utils
from tenfold.train.saver import Saver
from tenfold_core import saved_model as files
from tenfold_core.file_errors import os_errors
from tenfold_core.file_names import file_path, parent
from tenfold_core.files import EVERYWHERE
from tenfold_protos import saved_model_pb2, types_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tenfold_protos.meta_graph_pb2 import MetaGraphDef, SignatureDef, TensorInfo

__all__ = ["SavedModelBuilder"]

_VARIABLES_THERE = (
    "Graph state including variables and assets has already been saved. Please invoke `add_meta_graph()` instead."
)
_NO_VARIABLES_YET = (
    "Graph state including variables and assets has not been saved yet. Please invoke "
    "`add_meta_graph_and_variables()` first."
)


class _SavedModelBuilder:
    """What both builders share; by itself the one that keeps init and train op as signatures, as TensorFlow 2 reads.

    `export_dir` is made. Raises AssertionError if it is there and is not empty.
    """

    def __init__(self, export_dir: str | os.PathLike[str]) -> None:
        self._saved_model = saved_model_pb2.SavedModel(saved_model_schema_version=constants.SAVED_MODEL_SCHEMA_VERSION)
        self._export_dir = os.fspath(export_dir)
        self._has_saved_variables = False
        folder = file_path(self._export_dir)
        with os_errors(folder):
            EVERYWHERE.make_folders(folder)
            if EVERYWHERE.is_folder(folder) and EVERYWHERE.names(folder):
                raise AssertionError(
                    "Export directory already exists, and isn't empty. Please choose a different export directory, or "
                    f"delete all the contents of the specified directory: {self._export_dir}"
                )

    def add_meta_graph(
        self,
        tags: Iterable[str],
        signature_def_map: Mapping[str, SignatureDef] | None = None,
        assets_list: Sequence[Tensor] | None = None,
        clear_devices: bool = False,
        init_op: Any = None,
        train_op: Any = None,
        saver: Saver | None = None,
    ) -> None:
        """Adds the default graph under further tags. Raises AssertionError before the variables were saved."""
        self._require_variables()
        signatures = self._signatures(signature_def_map, init_op, train_op)
        definition = _saver_or_new(saver).export_meta_graph(clear_devices=clear_devices, strip_default_attrs=True)
        self._save_listed_assets(definition, assets_list)
        self._add(definition, tags, signatures)

    def add_meta_graph_and_variables(
        self,
        sess: Any,
        tags: Iterable[str],
        signature_def_map: Mapping[str, SignatureDef] | None = None,
        assets_list: Sequence[Tensor] | None = None,
        clear_devices: bool = False,
        init_op: Any = None,
        train_op: Any = None,
        strip_default_attrs: bool = False,
        saver: Saver | None = None,
    ) -> None:
        """Adds the default graph, the first, with the values that its variables have in `sess`. Blocks."""
        self._refuse_second_variables()
        signatures = self._signatures(signature_def_map, init_op, train_op)
        saver = self._save_variables(sess, saver)
        definition = saver.export_meta_graph(clear_devices=clear_devices, strip_default_attrs=strip_default_attrs)
        self._save_listed_assets(definition, assets_list)
        self._add(definition, tags, signatures)
        self._has_saved_variables = True

    def save(self, as_text: bool = False) -> bytes:
        """Writes saved_model.pb, or saved_model.pbtxt with `as_text`; its path. Blocks."""
        path = files.write(self._export_dir, self._saved_model, as_text)
        logging.info("SavedModel written to: %s", path)
        return os.fsencode(path)

    # -- the parts of adding a graph -----------------------------------------------------------------------------------

    def _require_variables(self) -> None:
        if not self._has_saved_variables:
            raise AssertionError(_NO_VARIABLES_YET)

    def _refuse_second_variables(self) -> None:
        if self._has_saved_variables:
            raise AssertionError(_VARIABLES_THERE)

    def _signatures(
        self, signature_def_map: Mapping[str, SignatureDef] | None, init_op: Any, train_op: Any
    ) -> dict[str, SignatureDef]:
        signatures = dict(signature_def_map or {})
        _check_signatures(signatures)
        for key, op in ((constants.INIT_OP_SIGNATURE_KEY, init_op), (constants.TRAIN_OP_SIGNATURE_KEY, train_op)):
            if op is not None:
                signatures[key] = signature_def_utils.op_signature_def(op, key)
        return signatures

    def _save_variables(self, sess: Any, saver: Saver | None) -> Saver:
        prefix = files.variables_path(self._export_dir)
        folder = parent(file_path(prefix))
        with os_errors(folder):
            EVERYWHERE.make_folders(folder)
        saver = _saver_or_new(saver)
        saver.save(sess, prefix, write_meta_graph=False, write_state=False)
        return saver

    def _save_listed_assets(self, definition: MetaGraphDef, assets_list: Sequence[Tensor] | None) -> None:
        named = assets.named(assets_list)
        definition.asset_file_def.extend(assets.asset_file_def(tensor, name) for tensor, name, _ in named)
        assets.copy(named, self._export_dir)

    def _add(self, definition: MetaGraphDef, tags: Iterable[str], signatures: Mapping[str, SignatureDef]) -> None:
        definition.meta_info_def.tags.extend(tags)
        for key, signature in signatures.items():
            definition.signature_def[key].CopyFrom(signature)
        self._saved_model.meta_graphs.append(definition)


class SavedModelBuilder(_SavedModelBuilder):
    """Builds a SavedModel: `add_meta_graph_and_variables` once, `add_meta_graph` for further graphs, then `save`.

    `main_op` (of old `legacy_init_op`) is run when the model is loaded, after the variables are restored. The assets
    are string constants of the graph that hold paths of files: the files are copied, and the constants hold the paths
    of the copies when the main op runs. Raises AssertionError if `export_dir` is there and is not empty.
    """

    def add_meta_graph(  # type: ignore[override]
        self,
        tags: Iterable[str],
        signature_def_map: Mapping[str, SignatureDef] | None = None,
        assets_collection: Sequence[Tensor] | None = None,
        legacy_init_op: Operation | None = None,
        clear_devices: bool = False,
        main_op: Operation | None = None,
        strip_default_attrs: bool = False,
        saver: Saver | None = None,
    ) -> None:
        """Adds the default graph under further tags; it takes the values of the first graph's variables.

        Raises AssertionError before the first graph or for a bad signature, KeyError for a reserved one, TypeError for
        an asset or main op of the wrong kind, ValueError if the graph has a main op already.
        """
        self._require_variables()
        signatures = self._signatures(signature_def_map, None, None)
        self._add_collections(assets_collection, legacy_init_op if main_op is None else main_op)
        definition = _saver_or_new(saver).export_meta_graph(
            clear_devices=clear_devices, strip_default_attrs=strip_default_attrs
        )
        self._add(definition, tags, signatures)

    def add_meta_graph_and_variables(  # type: ignore[override]
        self,
        sess: Any,
        tags: Iterable[str],
        signature_def_map: Mapping[str, SignatureDef] | None = None,
        assets_collection: Sequence[Tensor] | None = None,
        legacy_init_op: Operation | None = None,
        clear_devices: bool = False,
        main_op: Operation | None = None,
        strip_default_attrs: bool = False,
        saver: Saver | None = None,
    ) -> None:
        """Adds the default graph, and saves the values that its variables have in `sess`. Blocks until they are saved.

        Raises as `add_meta_graph` does, and AssertionError the second time.
        """
        self._refuse_second_variables()
        signatures = self._signatures(signature_def_map, None, None)
        self._add_collections(assets_collection, legacy_init_op if main_op is None else main_op)
        saver = self._save_variables(sess, saver)
        definition = saver.export_meta_graph(clear_devices=clear_devices, strip_default_attrs=strip_default_attrs)
        self._add(definition, tags, signatures)
        self._has_saved_variables = True

    def _add_collections(
        self, assets_collection: Sequence[Tensor] | None, main_op: Operation | None, train_op: Any = None
    ) -> None:
        named = assets.named(assets_collection)
        for tensor, name, _ in named:
            packed = any_pb2.Any()
            packed.Pack(assets.asset_file_def(tensor, name))
            add_to_collection(constants.ASSETS_KEY, packed)
        assets.copy(named, self._export_dir)
        self._maybe_add_main_op(main_op)
        self._add_train_op(train_op)

    def _maybe_add_main_op(self, main_op: Operation | None) -> None:
        if main_op is None:
            return
        if not isinstance(main_op, Operation):
            raise TypeError(f"main_op needs to be an Operation: {main_op!r}")
        for key in (constants.MAIN_OP_KEY, constants.LEGACY_INIT_OP_KEY):
            if get_collection(key):
                raise ValueError(f"Graph already contains one or more main ops under the collection {key}.")
        add_to_collection(constants.MAIN_OP_KEY, main_op)

    def _add_train_op(self, train_op: Any) -> None:
        if train_op is None:
            return
        if not isinstance(train_op, (Tensor, Operation)):
            raise TypeError(f"train_op needs to be a Tensor or Op: {train_op!r}")
        add_to_collection(constants.TRAIN_OP_KEY, train_op)


def _saver_or_new(saver: Saver | None) -> Saver:
    """A sharded saver of everything that can be saved, unless one is given."""
    return saver or Saver(sharded=True, allow_empty=True)


def _check_signatures(signatures: Mapping[str, SignatureDef]) -> None:
    for signature in signatures.values():
        for infos in (signature.inputs, signature.outputs):
            for name in infos:
                _check_tensor_info(infos[name])
    reserved = {constants.INIT_OP_SIGNATURE_KEY: "initialization", constants.TRAIN_OP_SIGNATURE_KEY: "the train op"}
    for key, purpose in reserved.items():
        if key in signatures:
            raise KeyError(f'SignatureDef map key "{key}" is reserved for {purpose}. Please use a different key.')


def _check_tensor_info(info: TensorInfo | None) -> None:
    if info is None:
        raise AssertionError("All TensorInfo protos used in the SignatureDefs must have the name and dtype fields set.")
    encoding = info.WhichOneof("encoding")
    if encoding is None:
        raise AssertionError(
            "All TensorInfo protos used in the SignatureDefs must have one of the 'encoding' fields (e.g., name or "
            f"coo_sparse) set: {info}"
        )
    if encoding == "composite_tensor":
        for component in info.composite_tensor.components:
            _check_tensor_info(component)
    elif info.dtype == types_pb2.DT_INVALID:
        raise AssertionError(f"All TensorInfo protos used in the SignatureDefs must have the dtype field set: {info}")
