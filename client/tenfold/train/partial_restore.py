"""PartialRestoreSaverBuilder: a Saver that restores what a checkpoint has, and begins anew what it lacks.

Handed to a Saver as its `builder`, by programs that were written for DeepRec: so a program that gained variables since
the checkpoint goes on from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.ops.saveable_objects import SaveableObject
from tenfold.train.checkpoint_management import latest_checkpoint
from tenfold.train.checkpoint_utils import load_checkpoint
from tenfold.train.saveable import saveables_of
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Sequence


class PartialRestoreSaverBuilder:
    """Of the checkpoint that is the newest one in `checkpoint_dir` when the Saver is built; without one nothing is
    lacking. Raises TypeError for what has no beginning of its own."""

    def __init__(self, checkpoint_dir: str) -> None:
        self._folder = checkpoint_dir

    def saveables(self, var_list: Any) -> list[SaveableObject]:
        """Those of a list or a dictionary, as `Saver(var_list)` takes it."""
        found = saveables_of(var_list)
        newest = latest_checkpoint(self._folder)
        if newest is None:
            return found
        reader = load_checkpoint(newest)

        def is_there(saveable: SaveableObject) -> bool:
            names = (spec.name + ("-keys" if spec.dtype is dtypes.resource else "") for spec in saveable.specs)
            return all(map(reader.has_tensor, names))

        return [saveable if is_there(saveable) else _BegunAnew(saveable) for saveable in found]


class _BegunAnew(SaveableObject):
    """Saved as `inner` is; what is restored is its beginning."""

    def __init__(self, inner: SaveableObject) -> None:
        super().__init__(inner.op, inner.specs, inner.name)
        self._inner = inner

    def restored_from(self, file: Any) -> Any:
        begun = self._inner.initializer
        if begun is None:
            raise TypeError(f"{self.name} is not in the checkpoint, and has no initializer")
        return begun

    def restore(self, restored_tensors: Sequence[Any], restored_shapes: Sequence[Any] | None) -> Any:
        return self._inner.restore(restored_tensors, restored_shapes)
