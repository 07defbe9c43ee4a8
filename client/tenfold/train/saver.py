"""`tf.train.Saver`: checkpoints of a graph's variables, written by the tasks that hold them.

saver_ops.py makes the ops, checkpoint_management.py writes the state file, meta_graph.py the meta graph beside a
checkpoint. Follows TF 1.15's training/saver.py.
"""

from __future__ import annotations

import os
import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold import logging
from tenfold.graph import add_to_collection, get_collection, get_default_graph
from tenfold.graph.collections import GraphKeys
from tenfold.session import observing
from tenfold.session.base_session import BaseSession
from tenfold.train import checkpoint_chain, checkpoint_management, meta_graph, saver_ops, training_util
from tenfold.train.partial_restore import PartialRestoreSaverBuilder
from tenfold.train.saveable import SaveableObject
from tenfold_core import errors
from tenfold_core.file_names import file_path, is_url, parent
from tenfold_protos import saver_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_protos.meta_graph_pb2 import MetaGraphDef
    from tenfold_protos.saver_pb2 import SaverDef

__all__ = ["SaveableObject", "Saver", "get_saver_or_default", "import_meta_graph"]

_SECONDS_AN_HOUR = 3600.0

#: What a checkpoint says of a name that it does not have; what else is not found are its files.
_NO_KEY = "not found in checkpoint"


class Saver:
    """Saves and restores variables.

    `var_list` is a list or a dictionary name → variable (default: all saveable objects of the graph when it is built).
    The newest `max_to_keep` checkpoints are kept (0 or None: all), and also one every
    `keep_checkpoint_every_n_hours`. `sharded` lets every device's task write its own file, in a folder that all of
    them share or in a store. With `gather` (not TensorFlow's) the session's own task writes and reads all files, a
    device's part after another, so only its disk is used. With `defer_build`, `build` must be called before the graph
    is finalized. `incremental_save_restore` (DeepRec's) lets an IncrementalSaver save what changes after a checkpoint,
    with `incremental_include_normal_var` rows of ordinary variables, too.

    Raises ValueError without variables unless `allow_empty`, for a `var_list` together with `defer_build`, or for
    `gather` with format V1.
    """

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: SaverDef | None = None,
        builder: Any = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: int = saver_pb2.SaverDef.V2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
        gather: bool = False,
        incremental_save_restore: bool = False,
        incremental_include_normal_var: bool = False,
    ) -> None:
        if gather and write_version != saver_pb2.SaverDef.V2:
            raise ValueError("gather=True needs write_version=SaverDef.V2, the default: V1 has no parts to merge")
        if defer_build and var_list:
            raise ValueError(
                "If `var_list` is provided then build cannot be deferred. Either set defer_build=False or "
                "var_list=None."
            )
        if not isinstance(builder, PartialRestoreSaverBuilder | None):
            raise ValueError("a `builder` of one's own is not supported: subclass SaveableObject for other state")
        self._restores_in_part = builder
        self._var_list, self._reshape, self._sharded = var_list, reshape, sharded
        self._max_to_keep, self._keep_hours = max_to_keep, keep_checkpoint_every_n_hours
        self._name, self._restore_sequentially, self._filename = name, restore_sequentially, filename
        self._gather = gather
        self._incremental = incremental_save_restore
        self._incremental_include_normal_var = incremental_include_normal_var
        self.saver_def = saver_def
        self._allow_empty, self._write_version = allow_empty, write_version
        self._pad_step_number, self._save_relative_paths = pad_step_number, save_relative_paths
        self._is_built = self._is_empty = False
        #: (prefix, when it was saved), oldest first.
        self._last_checkpoints: list[tuple[str, float]] = []
        self._to_be_deleted: list[tuple[str, float]] = []
        self._next_kept_time = 0.0
        #: One checkpoint after another, so that the state file names the one that was begun last: a timer's thread may
        #: still write an early one when the program saves what it has trained.
        self._saving = threading.Lock()
        if not defer_build:
            self.build()
        if self.saver_def is not None:
            self._check_saver_def()
            self._write_version = self.saver_def.version

    def build(self) -> None:
        """Adds the ops to the default graph. A second call does nothing."""
        if self._is_built:
            return
        self._is_built = True
        if self.saver_def is None:
            if self._var_list is None:
                self._var_list = get_collection(GraphKeys.GLOBAL_VARIABLES) + get_collection(GraphKeys.SAVEABLE_OBJECTS)
            if not self._var_list:
                if not self._allow_empty:
                    raise ValueError("No variables to save")
                self._is_empty = True
                return
            partial = self._restores_in_part
            saved = self._var_list if partial is None else partial.saveables(self._var_list)
            self.saver_def = saver_ops.build(
                saved,
                reshape=self._reshape,
                sharded=self._sharded,
                max_to_keep=self._max_to_keep,
                keep_checkpoint_every_n_hours=self._keep_hours,
                name=self._name,
                restore_sequentially=self._restore_sequentially,
                filename=self._filename,
                write_version=self._write_version,
                gather=self._gather,
                incremental=self._incremental,
            )
        elif self._name:
            # of an imported meta graph: its ops have the scope of the import in their names
            prefix = self._name.rstrip("/")
            scoped = saver_pb2.SaverDef()
            scoped.CopyFrom(self.saver_def)
            scoped.filename_tensor_name = f"{prefix}/{scoped.filename_tensor_name}"
            scoped.save_tensor_name = f"{prefix}/{scoped.save_tensor_name}"
            scoped.restore_op_name = f"{prefix}/{scoped.restore_op_name}"
            self.saver_def = scoped
        self._check_saver_def()
        self._next_kept_time = time.time() + self.saver_def.keep_checkpoint_every_n_hours * _SECONDS_AN_HOUR

    def _check_saver_def(self) -> None:
        definition = self.saver_def
        if not isinstance(definition, saver_pb2.SaverDef):
            raise ValueError(f"saver_def must be a saver_pb2.SaverDef: {definition}")
        for field in ("save_tensor_name", "restore_op_name"):
            if not getattr(definition, field):
                raise ValueError(f"saver_def must specify the {field}: {definition}")

    def save(
        self,
        sess: Any,
        save_path: str,
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str | None:
        """Saves the variables as `save_path`, with `-global_step` if given; the prefix, None if there are none.

        Blocks until the checkpoint is complete; then the state file names it, and the oldest checkpoints beyond
        `max_to_keep` are deleted. Calls from several threads are served one after another. Raises ValueError if the
        folder is not there, TypeError if `sess` is not a session.
        """
        if not self._is_built:
            raise RuntimeError("`build()` should be called before save if defer_build==True")
        latest_filename = latest_filename or "checkpoint"
        if os.path.dirname(latest_filename):
            raise ValueError("'latest_filename' must not contain path components")
        if not isinstance(sess, BaseSession):
            raise TypeError(f"'sess' must be a Session; {sess}")
        save_path = os.fspath(save_path)
        with self._saving:
            return self._save(
                sess, save_path, global_step, latest_filename, meta_graph_suffix, write_meta_graph, write_state,
                strip_default_attrs, save_debug_info,
            )  # fmt: skip

    def _save(
        self,
        sess: BaseSession,
        save_path: str,
        global_step: Any,
        latest_filename: str,
        meta_graph_suffix: str,
        write_meta_graph: bool,
        write_state: bool,
        strip_default_attrs: bool,
        save_debug_info: bool,
    ) -> str | None:
        folder = parent(save_path)
        file = save_path
        if global_step is not None:
            step = (
                int(global_step)
                if isinstance(global_step, (int, np.integer))
                else training_util.global_step(sess, global_step)
            )
            file = f"{save_path}-{step:08d}" if self._pad_step_number else f"{save_path}-{step}"
        elif os.path.basename(save_path) == latest_filename and not (self._sharded or self._gather):
            raise ValueError(f"'latest_filename' collides with 'save_path': '{latest_filename}' and '{save_path}'")
        saved = None if self._is_empty else self._save_variables(sess, file, save_path)
        if saved is not None and observing.observer is not None:
            observing.observer.note_checkpoint(saved)
        if saved is not None and write_state:
            self._record(saved)
            checkpoint_management.update_checkpoint_state(
                folder,
                saved,
                self.last_checkpoints,
                latest_filename,
                save_relative_paths=self._save_relative_paths,
            )
            self._delete_old(meta_graph_suffix)
        if write_meta_graph:
            with sess.graph.as_default():
                self.export_meta_graph(
                    checkpoint_management.meta_graph_filename(file, meta_graph_suffix),
                    strip_default_attrs=strip_default_attrs,
                    save_debug_info=save_debug_info,
                )
        return saved

    def _save_variables(self, sess: BaseSession, file: str, save_path: str) -> str:
        assert self.saver_def is not None
        if self._write_version != saver_pb2.SaverDef.V2:
            logging.warning("TensorFlow's V1 checkpoint format has been deprecated: use SaverDef.V2, the default.")
        try:
            saved = sess.run(self.saver_def.save_tensor_name, {self.saver_def.filename_tensor_name: file})
        except (errors.FailedPreconditionError, errors.NotFoundError) as error:
            if is_url(save_path) or os.path.isdir(os.path.dirname(file_path(save_path)) or "."):
                raise
            raise ValueError(f"Parent directory of {save_path} doesn't exist, can't save.") from error
        prefix = saved.decode() if isinstance(saved, bytes) else str(saved)
        self._note_whole(sess, prefix)
        return prefix

    def _note_whole(self, sess: BaseSession, prefix: str) -> None:
        """Increments follow this checkpoint from now on."""
        if self._incremental:
            checkpoint_chain.remember_whole(self.saver_def, sess.graph, prefix)

    def restore(self, sess: BaseSession, save_path: str | None) -> None:
        """Gives the variables the values of the checkpoint; they need no initialisation then. Blocks.

        Raises ValueError if there is no such checkpoint, NotFoundError or InvalidArgumentError if it does not fit.
        """
        if self._is_empty:
            return
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        prefix = os.fspath(save_path)
        if not checkpoint_management.checkpoint_exists(prefix):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {prefix}")
        assert self.saver_def is not None
        logging.info("Restoring parameters from %s", prefix)
        try:
            sess.run(self.saver_def.restore_op_name, {self.saver_def.filename_tensor_name: prefix})
        except errors.NotFoundError as error:
            if _NO_KEY not in error.message:
                raise _gone(error, prefix) from None
            raise _explained(error, "a Variable name or other graph key that is missing") from None
        except errors.InvalidArgumentError as error:
            raise _explained(error, "a mismatch between the current graph and the graph") from None
        self._note_whole(sess, prefix)

    def export_meta_graph(
        self,
        filename: str | None = None,
        collection_list: Sequence[str] | None = None,
        as_text: bool = False,
        export_scope: str | None = None,
        clear_devices: bool = False,
        clear_extraneous_savers: bool = False,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> MetaGraphDef:
        """The default graph with this saver, also written to `filename` if given."""
        return meta_graph.export_meta_graph(
            filename=filename,
            graph_def=get_default_graph().as_graph_def(add_shapes=True),
            saver_def=self.saver_def,
            collection_list=collection_list,
            as_text=as_text,
            export_scope=export_scope,
            clear_devices=clear_devices,
            clear_extraneous_savers=clear_extraneous_savers,
            strip_default_attrs=strip_default_attrs,
        )

    # -- which checkpoints there are -----------------------------------------------------------------------------------

    @property
    def last_checkpoints(self) -> list[str]:
        """The prefixes of the checkpoints that are kept as the newest, oldest first."""
        return [prefix for prefix, _ in self._last_checkpoints]

    def set_last_checkpoints(self, last_checkpoints: list[str]) -> None:
        """Sets that list; these checkpoints will be deleted in their turn, at any age."""
        self._last_checkpoints = [(prefix, float("inf")) for prefix in last_checkpoints]

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time: list[tuple[str, float]]) -> None:
        """Sets that list from (prefix, seconds since the epoch)."""
        self._last_checkpoints = list(last_checkpoints_with_time)

    def recover_last_checkpoints(self, checkpoint_paths: Sequence[str]) -> None:
        """Adds those checkpoints of an earlier run that still exist."""
        times = ((path, checkpoint_management.get_checkpoint_mtimes([path])) for path in checkpoint_paths)
        self._last_checkpoints = [(path, written[0]) for path, written in times if written]

    def _record(self, saved: str) -> None:
        assert self.saver_def is not None
        if self.saver_def.max_to_keep <= 0:
            return
        self._last_checkpoints = [each for each in self._last_checkpoints if each[0] != saved]
        self._last_checkpoints.append((saved, time.time()))
        if len(self._last_checkpoints) > self.saver_def.max_to_keep:
            self._to_be_deleted.append(self._last_checkpoints.pop(0))

    def _delete_old(self, meta_graph_suffix: str) -> None:
        """Deletes the oldest checkpoint beyond `max_to_keep`, unless it is time to keep one for good."""
        if not self._to_be_deleted:
            return
        assert self.saver_def is not None
        prefix, saved_at = self._to_be_deleted.pop(0)
        if saved_at > self._next_kept_time:
            self._next_kept_time += self.saver_def.keep_checkpoint_every_n_hours * _SECONDS_AN_HOUR
            return
        try:
            checkpoint_management.remove_checkpoint(prefix, self.saver_def.version, meta_graph_suffix)
        except OSError as error:
            # a file that cannot be deleted must not end the training
            logging.warning("Ignoring: %s", error)

    # -- as a message --------------------------------------------------------------------------------------------------

    @property
    def _builder(self) -> SimpleNamespace:
        """TensorFlow's private name, of which DeepRec's programs take `filename_tensor`."""
        return SimpleNamespace(filename_tensor=self.saver_def and self.saver_def.filename_tensor_name)

    def as_saver_def(self) -> SaverDef | None:
        return self.saver_def

    def to_proto(self, export_scope: str | None = None) -> SaverDef | None:
        """This saver as a SaverDef; None if its ops are not in `export_scope`."""
        definition = self.saver_def
        if export_scope is None or definition is None:
            return definition
        fields = ("filename_tensor_name", "save_tensor_name", "restore_op_name")
        prefix = export_scope.rstrip("/") + "/"
        if not all(getattr(definition, field).startswith(prefix) for field in fields):
            return None
        stripped = saver_pb2.SaverDef()
        stripped.CopyFrom(definition)
        for field in fields:
            setattr(stripped, field, getattr(definition, field)[len(prefix) :])
        return stripped

    @staticmethod
    def from_proto(saver_def: SaverDef, import_scope: str | None = None) -> Saver:
        """The saver that `saver_def` describes; its ops must be in the default graph."""
        return Saver(saver_def=saver_def, name=import_scope)


def get_saver_or_default(incremental_save_restore: bool = False) -> Saver:
    """The saver of the collection SAVERS, or a new sharded one, for increments if asked. Raises RuntimeError if there
    are several."""
    savers = get_collection(GraphKeys.SAVERS)
    if len(savers) > 1:
        raise RuntimeError(
            f"More than one item in collection {GraphKeys.SAVERS}. Please indicate which one to use by passing it to "
            "the constructor."
        )
    if savers:
        saver: Saver = savers[0]
        return saver
    saver = Saver(sharded=True, allow_empty=True, incremental_save_restore=incremental_save_restore)
    add_to_collection(GraphKeys.SAVERS, saver)
    return saver


def import_meta_graph(
    meta_graph_or_file: Any, clear_devices: bool = False, import_scope: str | None = None, **kwargs: Any
) -> Saver | None:
    """Adds a saved graph with its collections to the default graph; its saver, None if it has no variables.

    Raises OSError if the file cannot be read.
    """
    return import_meta_graph_with_return_elements(meta_graph_or_file, clear_devices, import_scope, **kwargs)[0]


def import_meta_graph_with_return_elements(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    import_scope: str | None = None,
    return_elements: Sequence[str] | None = None,
    **kwargs: Any,
) -> tuple[Saver | None, list[Any] | None]:
    """`import_meta_graph`, and the operations and tensors that `return_elements` names in the saved graph."""
    definition, variables, elements = meta_graph.import_with_elements(
        meta_graph_or_file, clear_devices, import_scope=import_scope, return_elements=return_elements, **kwargs
    )
    return _saver_of(definition, variables, import_scope), elements


def _saver_of(definition: MetaGraphDef, variables: dict[str, Any], import_scope: str | None) -> Saver | None:
    """The saver of an imported graph with these variables by their saved names; None if there is nothing to save."""
    if definition.HasField("saver_def"):
        scope = import_scope
        if variables:
            # the import may have made the scope's name unique
            name, variable = next(iter(variables.items()))
            scope = variable.name[: -len(name)]
        return Saver(saver_def=definition.saver_def, name=scope)
    if variables or get_collection(GraphKeys.SAVEABLE_OBJECTS, scope=import_scope):
        return Saver()
    logging.info("Saver not created because there are no variables in the graph to restore")
    return None


def _gone(error: errors.OpError, prefix: str) -> errors.OpError:
    message = (
        f"The files of checkpoint {prefix} are gone, at least in part: they were deleted meanwhile, as by a training "
        f"that keeps its newest checkpoints only (max_to_keep). Original error:\n\n{error.message}"
    )
    return type(error)(error.node_def, error.op, message)


def _explained(error: errors.OpError, cause: str) -> errors.OpError:
    message = (
        f"Restoring from checkpoint failed. This is most likely due to {cause} from the checkpoint. Please ensure that "
        f"you have not altered the graph expected based on the checkpoint. Original error:\n\n{error.message}"
    )
    return type(error)(error.node_def, error.op, message)


# TensorFlow's private names, which older programs use
_get_saver_or_default = get_saver_or_default
_import_meta_graph_with_return_elements = import_meta_graph_with_return_elements
