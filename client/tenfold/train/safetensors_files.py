"""`tf.train.export_safetensors`, `load_safetensors`, `restore_safetensors`: weights as other frameworks exchange them.

Not in TensorFlow. The format is tenfold_core/safetensors.py's; files are wherever tf.gfile finds them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tenfold.graph import get_collection
from tenfold.graph.collections import GraphKeys
from tenfold.train.checkpoint_utils import load_checkpoint
from tenfold_core import errors
from tenfold_core.checkpoint import TensorSlice
from tenfold_core.safetensors import SafetensorsReader, write_safetensors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold.session.base_session import BaseSession


def export_safetensors(
    ckpt_dir_or_file: str,
    path: str,
    names: Sequence[str] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> list[str]:
    """Writes the tensors of a checkpoint, or of a folder's newest one, as a safetensors file; their names, sorted.

    `names` are those wanted (default: all), `metadata` texts of the caller's. bfloat16 stays bfloat16. One tensor at a
    time is in memory, and the file appears whole. Blocks. Raises ValueError for a folder without a checkpoint,
    NotFoundError for a name that is not there, InvalidArgumentError for a type that the format does not have, such as
    string.
    """
    reader = load_checkpoint(ckpt_dir_or_file)
    shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    wanted = sorted(shapes if names is None else set(names))
    for name in wanted:
        if name not in shapes:
            raise errors.NotFoundError(None, None, f"Key {name} not found in checkpoint {ckpt_dir_or_file}")
    tensors = {name: (types[name], shapes[name]) for name in wanted}
    with reader.opened() as opened:
        write_safetensors(
            os.fspath(path),
            tensors,
            lambda name: opened.read_slice(name, TensorSlice.full(len(shapes[name]))),
            metadata,
        )
    return wanted


def load_safetensors(path: str, names: Sequence[str] | None = None) -> dict[str, Any]:
    """The tensors of a safetensors file as NumPy arrays by name, or those of `names`. Blocks.

    Raises NotFoundError for a file or a name that is not there, DataLossError for what is no such file.
    """
    with SafetensorsReader(os.fspath(path)) as reader:
        return {name: reader.read(name) for name in (reader.names() if names is None else names)}


def restore_safetensors(
    sess: BaseSession, path: str, var_list: Sequence[Any] | Mapping[str, Any] | None = None
) -> list[str]:
    """Gives variables the values of a safetensors file; the names taken, sorted.

    `var_list` is a list of variables, found under their own names, or name in the file → variable (default: all global
    variables). The file may have more. Nothing is assigned unless every name, type and shape fits: raises NotFoundError
    or InvalidArgumentError then. One tensor at a time is in memory. Blocks.
    """
    if var_list is None:
        var_list = get_collection(GraphKeys.GLOBAL_VARIABLES)
    named = dict(var_list) if hasattr(var_list, "items") else {each.op.name: each for each in var_list}
    with SafetensorsReader(os.fspath(path)) as reader:
        for name, variable in named.items():
            place = reader.tensors.get(name)
            if place is None:
                raise errors.NotFoundError(
                    None,
                    None,
                    f"{path} has no tensor {name} for the variable {variable.op.name}; it has {reader.names()}",
                )
            if place.dtype is not variable.dtype.base_dtype or not variable.shape.is_compatible_with(place.shape):
                raise errors.InvalidArgumentError(
                    None,
                    None,
                    f"variable {variable.op.name} is of type {variable.dtype.base_dtype.name} and shape "
                    f"{variable.shape}; tensor {name} of {path} is of type {place.dtype.name} and shape "
                    f"{list(place.shape)}",
                )
        for name in sorted(named):
            named[name].load(reader.read(name), sess)
    return sorted(named)
