"""What a Saver saves: named tensors or slices of them, and how each gets its value back.

`saveables_of` turns a user's list or dictionary of variables (partitioned ones too) into SaveableObjects;
saver_ops.py builds the ops. Follows TF 1.15's training/saving/saveable_object*.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenfold.graph import device
from tenfold.graph.op_builder import apply_op
from tenfold.graph.tensor import Tensor
from tenfold.ops import array, state_ops
from tenfold.ops.embedding_variables import EmbeddingVariable, is_embedding_variable
from tenfold.ops.reference_variables import RefVariable
from tenfold.ops.resource_variables import is_resource_variable
from tenfold.ops.saveable_objects import SaveableObject, SaveSpec
from tenfold.ops.variables import Variable
from tenfold_core import dtypes

__all__ = ["SaveSpec", "SaveableObject", "VariableSaveable", "saveables_of"]

_REFERENCE_OPS = frozenset({"Variable", "VariableV2", "AutoReloadVariable"})
_RESOURCE_OPS = frozenset({"VarHandleOp", "ReadVariableOp"})


class EmbeddingSaveable(SaveableObject):
    """An embedding variable or a slot of one: saved and read whole, by its own task."""

    def __init__(self, variable: EmbeddingVariable, name: str) -> None:
        self._variable = variable
        spec = SaveSpec(variable.handle, "", name, dtype=dtypes.resource, device=variable.device)
        super().__init__(variable.handle, [spec], name)

    @property
    def initializer(self) -> Any:
        return self._variable.initializer

    def restored_from(self, file: Any) -> Any:
        return self._variable.imported(file, self.name)

    def changed_by(self, file: Any) -> Any:
        """The operation that makes the changes which an increment has."""
        return self._variable.changed(file, self.name)

    @property
    def table_name(self) -> str:
        """The name of its table on its task."""
        name: str = self._variable.primary.op.name
        return name


class VariableSaveable(SaveableObject):
    """A variable of either kind, or the slice that one part of a partitioned variable is."""

    def __init__(self, variable: Any, slice_spec: str, name: str) -> None:
        self._variable = variable
        if is_resource_variable(variable):

            def read() -> Tensor:
                with device(variable.device):
                    value = variable.read_value()
                    with device("/device:CPU:0"):
                        return array.identity(value)

            spec = SaveSpec(read, slice_spec, name, dtype=variable.dtype, device=variable.device)
            self._identity = variable.handle
        else:
            reference = variable._ref() if isinstance(variable, RefVariable) else variable
            spec = SaveSpec(reference, slice_spec, name, dtype=reference.dtype.base_dtype)
            self._identity = reference
        super().__init__(self._identity, [spec], name)

    @property
    def initializer(self) -> Any:
        return self._variable.initializer if isinstance(self._variable, Variable) else None

    @property
    def handle(self) -> Tensor | None:
        """That of a resource variable."""
        return self._identity if is_resource_variable(self._variable) else None

    @property
    def part_name(self) -> str:
        """The name of the variable itself, also of one that is a part and saved by the name of the whole."""
        name: str = self._variable.op.name
        return name

    @property
    def nbytes(self) -> int | None:
        """Bytes of its value; None where the shape is not known, and for strings."""
        count = self._variable.get_shape().num_elements()
        dtype = self.specs[0].dtype.base_dtype
        return None if count is None or dtype == dtypes.string else count * dtype.size

    @property
    def rank(self) -> int | None:
        """How many dimensions its value has, if that is known."""
        rank: int | None = self._variable.get_shape().ndims
        return rank

    def restore(self, restored_tensors: Sequence[Any], restored_shapes: Sequence[Any] | None) -> Any:
        value = restored_tensors[0]
        if restored_shapes is not None:
            value = array.reshape(value, restored_shapes[0])
        if not is_resource_variable(self._variable):
            reference = self._identity
            known = restored_shapes is None and reference.get_shape().is_fully_defined()
            return state_ops.assign(reference, value, validate_shape=known)
        with device(self._variable.device):
            value = array.identity(value)
            if self._variable.shape.is_fully_defined() and not value.shape.is_fully_defined():
                # a checkpoint of another shape is refused here, before the variable is touched
                value = apply_op("EnsureShape", input=value, shape=self._variable.shape)
            return self._variable.assign(value, read_value=False)


def saveables_of(var_list: Any) -> list[SaveableObject]:
    """The saveables of a list or a dictionary name → variable, in the order of their names.

    Raises TypeError for what cannot be saved, ValueError if a name or a variable comes twice.
    """
    named = var_list if isinstance(var_list, Mapping) else _by_name(var_list)
    result: list[SaveableObject] = []
    seen: set[int] = set()
    for name in sorted(named):
        for saveable in _saveables_for(named[name], name):
            if id(saveable.op) in seen:
                raise ValueError(f"The same saveable will be restored with two names: {saveable.name}")
            seen.add(id(saveable.op))
            result.append(saveable)
    return result


def _by_name(items: Any) -> dict[str, Any]:
    """Variables by the names that a checkpoint gives them; the slices of one tensor together."""
    if not isinstance(items, (list, tuple, set)):
        raise TypeError(f"Variables to save should be passed in a dict or a list: {items}")
    named: dict[str, Any] = {}
    for item in sorted(items, key=lambda each: str(each.name)):
        info = item._get_save_slice_info() if isinstance(item, Variable) else None
        if info is not None:
            parts = named.setdefault(str(info.full_name), [])
            if not isinstance(parts, list):
                raise ValueError(f"Mixing slices and non-slices with the same name: {info.full_name}")
            parts.append(item)
            continue
        if isinstance(item, SaveableObject) or _is_partitioned(item):
            name = item.name
        else:
            name = _variable_op(item, "Variable to save is not a Variable").name
        if name in named:
            raise ValueError(f"At least two variables have the same name: {name}")
        named[name] = item
    return named


def _saveables_for(item: Any, name: str) -> list[SaveableObject]:
    if not isinstance(name, str):
        raise TypeError(
            "names_to_saveables must be a dict mapping string names to trackable operations. "
            f"Name is not a string: {name}"
        )
    if isinstance(item, SaveableObject):
        return [item]
    if is_embedding_variable(item):
        return [EmbeddingSaveable(item, name)]
    if isinstance(item, (list, tuple)) or _is_partitioned(item):
        if all(map(is_embedding_variable, item)):
            return [EmbeddingSaveable(part, _part_name(part, name)) for part in item]
        return [_slice_saveable(part, name, next(iter(item))) for part in item]
    _variable_op(item, "names_to_saveables must be a dict mapping string names to Tensors/Variables. Not a variable")
    return [VariableSaveable(item, "", name)]


def _part_name(part: EmbeddingVariable, name: str) -> str:
    """v/part_1, of v; and of its slot v/Adagrad, v/part_1/Adagrad."""
    number = f"/part_{part._parts[0]}"
    primary, slot = part.primary.op.name, part.op.name[len(part.primary.op.name) :]
    whole = name.removesuffix(slot) if primary.endswith(number) else name
    return f"{whole}{number}{slot}"


def _slice_saveable(part: Any, name: str, first: Any) -> VariableSaveable:
    if not isinstance(part, Variable):
        raise ValueError(f"Slices must all be Variables: {part}")
    info, first_info = part._get_save_slice_info(), first._get_save_slice_info()
    if info is None:
        raise ValueError(f"Slices must all be slices: {part}")
    if info.full_name != first_info.full_name:
        raise ValueError(f"Slices must all be from the same tensor: {first_info.full_name} != {info.full_name}")
    return VariableSaveable(part, info.spec, name)


def _variable_op(item: Any, message: str) -> Any:
    """The op that holds the variable's value. Raises TypeError if `item` is no variable."""
    if isinstance(item, Variable):
        return item.op
    if isinstance(item, Tensor) and item.op.type in _REFERENCE_OPS | _RESOURCE_OPS:
        return item.op.inputs[0].op if item.op.type == "ReadVariableOp" else item.op
    raise TypeError(f"{message}: {item}")


def _is_partitioned(item: Any) -> bool:
    return hasattr(item, "_get_variable_list")
