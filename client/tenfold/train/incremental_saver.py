"""`IncrementalSaver`: increments of checkpoints, what has changed since the save before, beside a Saver of whole ones.

incremental_ops.py makes the ops, checkpoint_chain.py says which increments there are and whether they fit. A chain
begins with the newest whole checkpoint of the Saver; the increments of an earlier one go with the first of a
new chain. Decision 0192. Follows DeepRec's training/incremental_saver.py.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold import logging
from tenfold.graph import get_collection
from tenfold.graph.collections import GraphKeys
from tenfold.session.base_session import BaseSession
from tenfold.train import checkpoint_management, incremental_ops, training_util
from tenfold.train.checkpoint_chain import (
    SUB_INCR_CKPT_DIR,
    increments_after,
    increments_folder,
    last_whole,
    link_to,
    remember_whole,
)
from tenfold.train.saver import Saver
from tenfold_core import errors
from tenfold_core.file_names import file_path, parent
from tenfold_core.files import EVERYWHERE

if TYPE_CHECKING:
    from tenfold.train.incremental_ops import IncrementalOps

__all__ = ["SUB_INCR_CKPT_DIR", "IncrementalSaver"]


class IncrementalSaver(Saver):
    """Saves what has changed since the save before, and changes variables accordingly.

    `saver_def` is that of the Saver whose whole checkpoints the increments follow, which was made with
    `incremental_save_restore=True`. Increments have embedding variables by rows, others whole; with
    `incremental_include_normal_var` those of two dimensions or more by rows that differ, at the cost of a copy of each
    on its task. Other arguments are Saver's. Several threads may call it, one is served after another.
    """

    def __init__(self, *arguments: Any, incremental_include_normal_var: bool = False, **more: Any) -> None:
        self._by_rows = incremental_include_normal_var
        self._ops: IncrementalOps | None = None
        #: The present chain: a whole checkpoint, and its increments in order.
        self._chain: list[str] = []
        self._superseded: list[str] = []
        super().__init__(*arguments, **more)

    def build(self, filename_tensor: Any = None) -> None:
        """Adds the ops to the default graph. A second call does nothing. DeepRec's `filename_tensor` is not needed."""
        if self._is_built:
            return
        self._is_built = True
        if self._var_list is None:
            self._var_list = get_collection(GraphKeys.GLOBAL_VARIABLES) + get_collection(GraphKeys.SAVEABLE_OBJECTS)
        if not self._var_list:
            if not self._allow_empty:
                raise ValueError("No variables to save")
            self._is_empty = True
            return
        self._ops = incremental_ops.build(self._var_list, by_rows=self._by_rows, name=self._name)

    @property
    def last_incr_checkpoints(self) -> list[str]:
        """The prefixes of the increments of the present chain, oldest first."""
        return self._chain[1:]

    def incremental_save(
        self,
        sess: Any,
        save_path: str,
        global_step: Any = None,
        meta_graph_suffix: str = "meta",
        write_state: bool = True,
    ) -> str | None:
        """Saves what has changed since the save before as `save_path`, with `-global_step` if given; the prefix, None
        without variables. Makes the folder, which should hold nothing but increments.

        Blocks until the increment is complete and the folder's state file lists it. A save that fails loses nothing:
        the next one begins where the last good one ended. Without a whole checkpoint of the Saver it has all since
        the recorders were activated, follows nothing, and is not listed. Raises RuntimeError before `build`, TypeError
        if `sess` is not a session, FailedPreconditionError where a task does not know the save before.
        """
        if not self._is_built:
            raise RuntimeError("`build()` should be called before save if defer_build==True")
        if not isinstance(sess, BaseSession):
            raise TypeError(f"'sess' must be a Session; {sess}")
        if self._is_empty:
            return None
        with self._saving:
            return self._save_changes(sess, os.fspath(save_path), global_step, write_state)

    def _save_changes(self, sess: BaseSession, save_path: str, global_step: Any, write_state: bool) -> str:
        assert self._ops is not None
        folder, file = parent(save_path), save_path
        if global_step is not None:
            is_number = isinstance(global_step, (int, np.integer))
            step = int(global_step) if is_number else training_util.global_step(sess, global_step)
            file = f"{save_path}-{step:08d}" if self._pad_step_number else f"{save_path}-{step}"
        if folder:
            EVERYWHERE.make_folders(file_path(folder))
        full = last_whole(self.saver_def, sess.graph)
        if full is None:
            logging.warning("There is no whole checkpoint that the increment %s could follow", file)
            return self._run_save(sess, {self._ops.filename: file})
        earlier = None
        if self._chain[:1] != [full]:
            # what restored the chain before needs the whole checkpoint no more, if this one has all since its end
            earlier = next(iter(self._chain[-1:]), None)
            self._superseded += self._chain[1:]
            self._chain = [full]
        if file in self._chain:
            raise ValueError(f"{file} is there already, and later increments follow it: give another name or step")
        if earlier == file:
            earlier = None
        prefix = self._run_links(sess, file, folder, self._chain[-1], earlier)
        self._chain.append(prefix)
        if write_state:
            checkpoint_management.update_checkpoint_state(
                folder, prefix, self._chain[1:], save_relative_paths=self._save_relative_paths
            )
            self._delete_superseded()
        return prefix

    def _run_links(self, sess: BaseSession, file: str, folder: str, before: str, earlier: str | None) -> str:
        """Saves an increment that follows `before`, and `earlier` as well where files and tasks still know that."""
        assert self._ops is not None
        name, digest = link_to(before, folder)
        feeds = {self._ops.filename: file, self._ops.previous: name, self._ops.digest: digest}
        if earlier is not None:
            try:
                also, also_digest = link_to(earlier, folder)
                more = {self._ops.also: also, self._ops.also_digest: also_digest}
                return self._run_save(sess, {**feeds, **more, self._ops.since: f"{earlier}\n{before}"})
            except (errors.NotFoundError, errors.FailedPreconditionError) as error:
                logging.info("The increment %s does not follow %s: %s", file, earlier, error)
        return self._run_save(sess, {**feeds, self._ops.since: before})

    def _run_save(self, sess: BaseSession, feeds: dict[Any, Any]) -> str:
        assert self._ops is not None
        saved = sess.run(self._ops.save, feeds)
        return saved.decode() if isinstance(saved, bytes) else str(saved)

    def _delete_superseded(self) -> None:
        """Deletes the increments of earlier chains, which no state file names any more."""
        gone, self._superseded = [each for each in self._superseded if each not in self._chain], []
        for prefix in gone:
            try:
                checkpoint_management.remove_checkpoint(prefix)
            except OSError as error:
                # a file that cannot be deleted must not end the training
                logging.warning("Ignoring: %s", error)

    def incremental_restore(self, sess: BaseSession, save_path: str | None, incr_save_path: str) -> None:
        """Changes the variables, which have been restored from the whole checkpoint `save_path`, as the increment says.
        Blocks. Raises ValueError without a checkpoint, NotFoundError or InvalidArgumentError where it does not fit.
        """
        if self._is_empty:
            return
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        assert self._ops is not None
        logging.info("Restoring changes from %s", incr_save_path)
        sess.run(self._ops.restore, {self._ops.filename: incr_save_path})

    def begin_recovery(self, sess: BaseSession) -> None:
        """Called before the whole checkpoint is restored: workers that ask `is_recovered` wait from now on. Blocks."""
        if self._ops is not None:
            sess.run(self._ops.begin_recovery)

    def end_recovery(self, sess: BaseSession) -> None:
        """Called once all increments are restored, or there is nothing to restore. Blocks."""
        if self._ops is not None:
            sess.run(self._ops.end_recovery)

    def is_recovered(self, sess: BaseSession) -> bool:
        """Whether variables have what the increments say, not the whole checkpoint alone. Blocks.

        To be asked once variables are initialized: a chief that restores them again has begun its recovery by then."""
        return self._ops is None or bool(sess.run(self._ops.is_recovered))

    def recover_incr_checkpoints(self, sess: BaseSession, checkpoint_dir: str) -> list[str]:
        """Changes the variables, which have been restored from the newest whole checkpoint of the folder, as all
        increments that follow it say, in order; their prefixes.

        Blocks. Raises DataLossError, before anything is changed, where an increment is missing or damaged.
        """
        state = checkpoint_management.get_checkpoint_state(checkpoint_dir)
        if self._is_empty or state is None:
            return []
        full = state.model_checkpoint_path
        chain = increments_after(full, checkpoint_dir)
        for prefix in chain:
            self.incremental_restore(sess, full, prefix)
        remember_whole(self.saver_def, sess.graph, full)
        self._chain = [full, *chain]
        if not chain:
            # those of an earlier checkpoint go with the first of the new chain
            old = checkpoint_management.get_checkpoint_state(increments_folder(checkpoint_dir))
            self._superseded = [*old.all_model_checkpoint_paths] if old else []
        return chain


def _get_incremental_saver(incremental_save_restore: bool, full_saver: Saver) -> IncrementalSaver | None:
    """DeepRec's private name: the saver of increments beside `full_saver`, of the same variables."""
    if not incremental_save_restore:
        return None
    made = IncrementalSaver(
        sharded=True,
        allow_empty=True,
        saver_def=full_saver.saver_def,
        defer_build=True,
        incremental_include_normal_var=full_saver._incremental_include_normal_var,
    )
    made._var_list = full_saver._var_list
    made.build()
    return made
