"""`tf.saved_model.load`: puts a graph of a SavedModel into a session, with its variables, and runs its init op.

core/tenfold_core/saved_model.py reads the files, train/saver.py imports the graph and restores. What builder_impl.py
writes and what TensorFlow 1 and 2 write is read, the latter's functions by the function library. Follows TF 1.15's
saved_model/loader_impl.py.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold.graph import GraphKeys, get_collection
from tenfold.graph.scope_names import prepend_scope
from tenfold.saved_model import constants, signature_def_utils
from tenfold.train import saver as saver_module
from tenfold_core import opdefs
from tenfold_core import saved_model as files

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold.graph.graph import Graph
    from tenfold_protos.meta_graph_pb2 import MetaGraphDef
    from tenfold_protos.saved_model_pb2 import SavedModel

__all__ = [
    "SavedModelLoader",
    "get_asset_tensors",
    "get_init_op",
    "get_train_op",
    "load",
    "maybe_saved_model_directory",
    "parse_saved_model",
]

parse_saved_model = _parse_saved_model = files.read


def maybe_saved_model_directory(export_dir: str | bytes | os.PathLike[str]) -> bool:
    """Whether the folder has the file of a SavedModel; whether it can be loaded is not looked at."""
    return files.is_saved_model(export_dir)


contains_saved_model = maybe_saved_model_directory


def get_asset_tensors(
    export_dir: str, meta_graph_def_to_load: MetaGraphDef, import_scope: str | None = None
) -> dict[str, bytes]:
    """Name of a constant in the imported graph → path of its file in the model's folder."""
    paths = files.asset_paths(export_dir, meta_graph_def_to_load)
    return {prepend_scope(name, import_scope): os.fsencode(path) for name, path in paths.items()}


def _of_signature(definition: MetaGraphDef, key: str, import_scope: str | None) -> Any:
    if key not in definition.signature_def:
        return None
    return signature_def_utils.load_op_from_signature_def(definition.signature_def[key], key, import_scope)


def _of_collection(definition: MetaGraphDef, key: str) -> Any:
    if key not in definition.collection_def:
        return None
    files.one_op(definition, key)
    return get_collection(key)[0]


def get_init_op(meta_graph_def: MetaGraphDef, import_scope: str | None = None) -> Any:
    """The operation of the default graph to run once the variables are restored, or None.

    Raises RuntimeError if the model has several, NotFoundError if the graph lacks it.
    """
    op = _of_signature(meta_graph_def, constants.INIT_OP_SIGNATURE_KEY, import_scope)
    for key in (constants.MAIN_OP_KEY, constants.LEGACY_INIT_OP_KEY):
        op = _of_collection(meta_graph_def, key) if op is None else op
    return op


def get_train_op(meta_graph_def: MetaGraphDef, import_scope: str | None = None) -> Any:
    """The operation or tensor of the default graph that trains the model, or None."""
    op = _of_signature(meta_graph_def, constants.TRAIN_OP_SIGNATURE_KEY, import_scope)
    return _of_collection(meta_graph_def, constants.TRAIN_OP_KEY) if op is None else op


def load(
    sess: Any,
    tags: Iterable[str],
    export_dir: str | bytes | os.PathLike[str],
    import_scope: str | None = None,
    **saver_kwargs: Any,
) -> MetaGraphDef:
    """Adds the graph with exactly these tags to the session's graph, under `import_scope`, and restores its variables.

    The message of the graph as it was saved. `saver_kwargs` are those of `tf.train.import_meta_graph`. Blocks. Raises
    OSError if there is no SavedModel, RuntimeError if it has no graph with these tags.
    """
    return SavedModelLoader(export_dir).load(sess, tags, import_scope, **saver_kwargs)


def _add_default_attrs(definition: MetaGraphDef) -> None:
    for node in definition.graph_def.node:
        if opdefs.has(node.op):
            for attr in opdefs.get(node.op).to_proto().attr:
                if attr.HasField("default_value") and attr.name not in node.attr:
                    node.attr[attr.name].CopyFrom(attr.default_value)


class SavedModelLoader:
    """One SavedModel; `load` does what its other methods do one by one. Raises OSError if it cannot be read."""

    def __init__(self, export_dir: str | bytes | os.PathLike[str]) -> None:
        self._export_dir = os.fsdecode(export_dir)
        self._saved_model = files.read(self._export_dir)

    @property
    def export_dir(self) -> str:
        return self._export_dir

    @property
    def variables_path(self) -> str:
        """The prefix of its checkpoint."""
        return files.variables_path(self._export_dir)

    @property
    def saved_model(self) -> SavedModel:
        return self._saved_model

    def get_meta_graph_def_from_tags(self, tags: Iterable[str]) -> MetaGraphDef:
        """The graph with exactly these tags. Raises RuntimeError that lists those that there are."""
        return files.graph_with_tags(self._saved_model, tags)

    def load_graph(
        self, graph: Graph, tags: Iterable[str], import_scope: str | None = None, **saver_kwargs: Any
    ) -> tuple[saver_module.Saver | None, list[Any] | None]:
        """Adds the saved graph to `graph`: the saver that restores its variables, and the `return_elements`.

        Attributes that were left out because they have their defaults are there again in the message afterwards.
        """
        definition = self.get_meta_graph_def_from_tags(tags)
        _add_default_attrs(definition)
        with graph.as_default():
            return saver_module.import_meta_graph_with_return_elements(
                definition, import_scope=import_scope, **saver_kwargs
            )

    def restore_variables(self, sess: Any, saver: Any, import_scope: str | None = None) -> None:
        """Restores the variables. Blocks. Raises ValueError without a saver if the graph has variables."""
        with sess.graph.as_default():
            if isinstance(saver, saver_module.Saver):
                saver.restore(sess, self.variables_path)
                return
            keys = (GraphKeys.GLOBAL_VARIABLES, GraphKeys.SAVEABLE_OBJECTS)
            if saver is not None or any(get_collection(key, scope=import_scope) for key in keys):
                raise ValueError(
                    "No tf.train.Saver object was passed to the function SavedModelLoader.restore_variables. Since "
                    "there are variables in the graph, a saver is required."
                )
            logging.info("The specified SavedModel has no variables; no checkpoints were restored.")

    def run_init_ops(self, sess: Any, tags: Iterable[str], import_scope: str | None = None) -> None:
        """Runs the init op, if there is one, with the paths of the assets fed. Blocks."""
        definition = self.get_meta_graph_def_from_tags(tags)
        with sess.graph.as_default():
            init_op = get_init_op(definition, import_scope)
            if init_op is not None:
                sess.run(fetches=[init_op], feed_dict=get_asset_tensors(self._export_dir, definition, import_scope))

    def load(
        self, sess: Any, tags: Iterable[str], import_scope: str | None = None, **saver_kwargs: Any
    ) -> MetaGraphDef:
        """`load_graph`, `restore_variables` and `run_init_ops`; the message of the saved graph."""
        with sess.graph.as_default():
            saver, _ = self.load_graph(sess.graph, tags, import_scope, **saver_kwargs)
            self.restore_variables(sess, saver, import_scope)
            self.run_init_ops(sess, tags, import_scope)
        return self.get_meta_graph_def_from_tags(tags)
