"""What a Saver saves, for state of any kind: named tensors, and how they get their values back.

train/saveable.py has those of variables, ops/lookup_mutable.py those of tables. Follows TensorFlow 1.15's
training/saving/saveable_object.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_core.dtypes import DType


class SaveSpec:
    """One tensor of a checkpoint: its name, which slice of it ("" for all), and the value to save.

    `tensor` may be a function that makes the tensor, called when the save op is built.
    """

    def __init__(
        self, tensor: Any, slice_spec: str, name: str, dtype: DType | None = None, device: str | None = None
    ) -> None:
        self._tensor = tensor
        self.slice_spec, self.name = slice_spec, name
        self.dtype: DType = tensor.dtype if dtype is None else dtype
        self.device: str = tensor.device if device is None else device

    @property
    def tensor(self) -> Any:
        """The value to save."""
        return self._tensor() if callable(self._tensor) else self._tensor


class SaveableObject:
    """Something that a Saver saves as one or more tensors; subclass it for state that is no variable."""

    def __init__(self, op: Any, specs: Sequence[SaveSpec], name: str) -> None:
        self.op, self.specs, self.name = op, specs, name
        #: By the name of a spec: the handle through which a save reads the value at its own moment.
        self.handles: dict[str, Any] = {}

    @property
    def device(self) -> str:
        """Where the first tensor is."""
        return self.specs[0].device

    @property
    def initializer(self) -> Any:
        """The op that makes the state as it is at first; None for state without one."""
        return None

    def restored_from(self, file: Any) -> Any:
        """An op that reads from the checkpoint `file`, a string tensor, by itself; None where the tensors of `specs`
        are to be read for `restore`."""
        return None

    def restore(self, restored_tensors: Sequence[Any], restored_shapes: Sequence[Any] | None) -> Any:
        """An op that assigns the tensors, in the order of `specs`; reshaped first if shapes are given."""
        raise NotImplementedError("Calling an abstract method.")
