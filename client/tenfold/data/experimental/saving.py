"""Iterators in checkpoints: `make_saveable_from_iterator`, and the hook that saves a program's iterators.

The state of an iterator is a tensor that the task makes and takes back; a Saver treats it as any other value. Follows
TensorFlow 1.15's data/experimental/ops/iterator_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.data.iterators import GLOBAL_ITERATORS
from tenfold.graph.default_scopes import colocate_with, get_collection
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.train.checkpoint_management import latest_checkpoint
from tenfold.train.saveable import SaveableObject, SaveSpec
from tenfold.train.saver import Saver
from tenfold.train.saving_hooks import CheckpointSaverHook
from tenfold.train.session_run_hook import SessionRunHook

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.data.iterators import Iterator
    from tenfold.graph.tensor import Tensor

#: As in TensorFlow 1.15, the step fails if the pipeline's functions have a state that is not saved with the iterator.
_FAIL = 2


class _IteratorState(SaveableObject):
    """The place of an iterator."""

    def __init__(self, resource: Tensor) -> None:
        state = tensor_op("SerializeIterator", resource_handle=resource, external_state_policy=_FAIL)
        super().__init__(resource, [SaveSpec(state, "", f"{resource.name}-state")], resource.name)

    def restore(self, restored_tensors: Sequence[Any], restored_shapes: Any) -> Any:
        with colocate_with(self.op):
            return apply_op("DeserializeIterator", resource_handle=self.op, serialized=restored_tensors[0])


def make_saveable_from_iterator(iterator: Iterator) -> SaveableObject:
    """The iterator as something that a `tf.train.Saver` saves and restores: its place, not its dataset."""
    return _IteratorState(iterator._iterator_resource)


class CheckpointInputPipelineHook(SessionRunHook):
    """Saves the iterators of an estimator's graph as often as its checkpoints, and restores them first.

    A worker of several saves its own, under a name with its task.
    """

    def __init__(self, estimator: Any) -> None:
        config = estimator._config
        prefix = "input"
        if config.num_worker_replicas > 1:
            prefix += f"_{config.task_type}_{config.task_id}"
        self._latest_filename = f"checkpoint_{prefix}"
        self._folder = estimator.model_dir
        self._checkpoint_saver_hook = CheckpointSaverHook(
            estimator.model_dir,
            save_secs=config.save_checkpoints_secs,
            save_steps=config.save_checkpoints_steps,
            checkpoint_basename=f"{prefix}.ckpt",
        )
        self._is_first_run = True

    def begin(self) -> None:
        hook = self._checkpoint_saver_hook
        if hook._saver is None and hook._scaffold is None:
            states = [_IteratorState(resource) for resource in get_collection(GLOBAL_ITERATORS)]
            hook._saver = _OwnStateFile(states, self._latest_filename)
        hook.begin()

    def before_run(self, run_context: Any) -> Any:
        # Not after_create_session: the program's own hooks start its iterators there, in any order with this one.
        if self._is_first_run:
            self._restore_or_save(run_context.session)
            self._is_first_run = False
        return self._checkpoint_saver_hook.before_run(run_context)

    def _restore_or_save(self, session: Any) -> None:
        hook = self._checkpoint_saver_hook
        latest = latest_checkpoint(self._folder, latest_filename=self._latest_filename)
        if latest:
            hook._get_saver().restore(session, latest)
            return
        step = session.run(hook._global_step_tensor)
        hook._save(session, step)
        hook._timer.update_last_triggered_step(step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._checkpoint_saver_hook.after_run(run_context, run_values)

    def end(self, session: Any) -> None:
        self._checkpoint_saver_hook.end(session)


class _OwnStateFile(Saver):
    """A Saver whose newest checkpoint is named in a file of its own, beside that of the model's."""

    def __init__(self, var_list: Any, latest_filename: str) -> None:
        super().__init__(var_list)
        self._own_latest_filename = latest_filename

    def save(
        self,
        sess: Any,
        save_path: str,
        global_step: Any = None,
        latest_filename: str | None = None,
        *args: Any,
        **named: Any,
    ) -> str | None:
        """As `Saver.save`, with this saver's own state file."""
        return super().save(sess, save_path, global_step, latest_filename or self._own_latest_filename, *args, **named)
