"""SaveSliceInfo: the part of a larger variable that a variable holds.

Stored with the parts of partitioned variables and with their slots; a Saver reads it. Follows
TensorFlow's Variable.SaveSliceInfo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.scope_names import prepend_scope, strip_scope
from tenfold_protos import variable_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence


class SaveSliceInfo:
    """The part of a larger variable that this one holds; a Saver writes it as a slice of `full_name`."""

    def __init__(
        self,
        full_name: str | None = None,
        full_shape: Sequence[int] | None = None,
        var_offset: Sequence[int] | None = None,
        var_shape: Sequence[int] | None = None,
        save_slice_info_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if save_slice_info_def is not None:
            full_name = prepend_scope(save_slice_info_def.full_name, import_scope)
            full_shape = list(save_slice_info_def.full_shape)
            var_offset = list(save_slice_info_def.var_offset)
            var_shape = list(save_slice_info_def.var_shape)
        self.full_name = full_name
        self.full_shape = full_shape
        self.var_offset = var_offset
        self.var_shape = var_shape

    @property
    def spec(self) -> str:
        """The slice in a checkpoint's notation: full shape, then offset,length per dimension."""
        full = " ".join(str(dim) for dim in self.full_shape or ())
        parts = zip(self.var_offset or (), self.var_shape or (), strict=True)
        return f"{full} " + ":".join(f"{offset},{length}" for offset, length in parts)

    def to_proto(self, export_scope: str | None = None) -> Any:
        """A SaveSliceInfoDef, or None if the variable is not inside `export_scope`."""
        name = self.full_name or ""
        if export_scope and not name.startswith(export_scope):
            return None
        return variable_pb2.SaveSliceInfoDef(
            full_name=strip_scope(name, export_scope),
            full_shape=self.full_shape or (),
            var_offset=self.var_offset or (),
            var_shape=self.var_shape or (),
        )
