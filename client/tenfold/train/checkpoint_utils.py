"""Reading checkpoints, and initializing variables from them: `list_variables`, `init_from_checkpoint`, ….

A checkpoint of format V2 is read by its index, one of V1 by its tables (tenfold_core/checkpoint). Follows TF 1.15's
training/checkpoint_utils.py; warm_starting.py builds on this.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import device
from tenfold.graph.op_builder import apply_op
from tenfold.graph.tensor import Tensor
from tenfold.ops import variable_scope
from tenfold.ops.embedding_variables import is_embedding_variable
from tenfold.ops.partitioned_variable import PartitionedVariable
from tenfold.ops.variables import Variable
from tenfold.train.checkpoint_management import latest_checkpoint
from tenfold.train.saveable import VariableSaveable
from tenfold_core import errors
from tenfold_core.checkpoint import BundleReader, SliceTableReader, TensorSlice, meta_filename
from tenfold_core.file_names import file_path
from tenfold_core.files import EVERYWHERE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tenfold_core.dtypes import DType


class CheckpointReader:
    """One checkpoint, by its prefix. Raises NotFoundError if there is none, or a tensor is asked for that it lacks."""

    def __init__(self, filepattern: str) -> None:
        self._pattern = file_path(filepattern)
        with self.opened() as reader:
            self._entries: dict[str, tuple[DType, tuple[int, ...]]] = {}
            for name in reader.names():
                found = reader.dtype_and_shape(name)
                if found is not None:
                    self._entries[name] = found

    def opened(self) -> BundleReader | SliceTableReader:
        """The checkpoint's files; the caller closes them."""
        if EVERYWHERE.exists(meta_filename(self._pattern)):
            return BundleReader(self._pattern)
        return SliceTableReader(self._pattern)

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Name → whole shape."""
        return {name: list(shape) for name, (_, shape) in self._entries.items()}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """Name → type."""
        return {name: dtype for name, (dtype, _) in self._entries.items()}

    def has_tensor(self, tensor_str: str) -> bool:
        """Whether the checkpoint holds that name."""
        return tensor_str in self._entries

    def get_tensor(self, tensor_str: str) -> Any:
        """The whole value, as an array of the caller's own. Blocks on the disk."""
        if tensor_str not in self._entries:
            raise errors.NotFoundError(None, None, f"Key {tensor_str} not found in checkpoint")
        with self.opened() as reader:
            rank = len(self._entries[tensor_str][1])
            value = reader.read_slice(tensor_str, TensorSlice.full(rank))
        return value if rank else value[()]

    def debug_string(self) -> bytes:
        """A line for each tensor: name, type, shape."""
        lines = [
            f"{name} (DT_{dtype.name.upper().replace('FLOAT32', 'FLOAT').replace('FLOAT64', 'DOUBLE')}) "
            f"[{','.join(str(dim) for dim in shape)}]\n"
            for name, (dtype, shape) in sorted(self._entries.items())
        ]
        return "".join(lines).encode()


NewCheckpointReader = CheckpointReader


def checkpoint_filename(ckpt_dir_or_file: str) -> str | None:
    """The checkpoint itself, or the newest one of a folder."""
    path = file_path(ckpt_dir_or_file)
    return latest_checkpoint(path) if EVERYWHERE.is_folder(path) else path


def load_checkpoint(ckpt_dir_or_file: str) -> CheckpointReader:
    """A reader of a checkpoint or of a folder's newest one. Raises ValueError for a folder without any."""
    name = checkpoint_filename(ckpt_dir_or_file)
    if name is None:
        raise ValueError(f"Couldn't find 'checkpoint' file or checkpoints in given directory {ckpt_dir_or_file}")
    return CheckpointReader(name)


def load_variable(ckpt_dir_or_file: str, name: str) -> Any:
    """The value of one variable, named with or without `:0`."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def list_variables(ckpt_dir_or_file: str) -> list[tuple[str, list[int]]]:
    """(name, shape) of all variables, sorted."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def wait_for_new_checkpoint(
    checkpoint_dir: str,
    last_checkpoint: str | None = None,
    seconds_to_sleep: float = 1,
    timeout: float | None = None,
) -> str | None:
    """The newest checkpoint of a folder once it differs from `last_checkpoint`; None after `timeout` seconds."""
    logging.info("Waiting for new checkpoint at %s", checkpoint_dir)
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        path = latest_checkpoint(checkpoint_dir)
        if path is not None and path != last_checkpoint:
            logging.info("Found new checkpoint at %s", path)
            return path
        if end is not None and time.monotonic() + seconds_to_sleep > end:
            return None
        time.sleep(seconds_to_sleep)


def checkpoints_iterator(
    checkpoint_dir: str,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Iterator[str]:
    """New checkpoints of a folder as they appear, at most one each `min_interval_secs`; older ones may be missed.

    Ends when none comes within `timeout` seconds and `timeout_fn`, if given, returns True.
    """
    last: str | None = None
    while True:
        path = wait_for_new_checkpoint(checkpoint_dir, last, timeout=timeout)
        if path is None:
            if timeout_fn is None:
                logging.info("Timed-out waiting for a checkpoint.")
                return
            if timeout_fn():
                return
            continue
        began = time.monotonic()
        last = path
        yield path
        left = began + min_interval_secs - time.monotonic()
        if left > 0:
            time.sleep(left)


def init_from_checkpoint(ckpt_dir_or_file: str, assignment_map: Mapping[str, Any]) -> None:
    """Makes the initializers of variables read a checkpoint; run them afterwards.

    `assignment_map`: name in the checkpoint → variable, PartitionedVariable, list of its parts, or name of a variable
    of the graph; or `scope/` → `other_scope/`, where "/" is the root, for all variables made by `get_variable` there.
    An embedding variable begins with the rows that one of that name had, in any number of parts. Raises ValueError for
    a tensor that the checkpoint lacks or that has another shape.
    """
    file = checkpoint_filename(ckpt_dir_or_file)
    shapes = load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map()
    assert file is not None
    known = variable_scope._get_default_variable_store().variables
    for source, target in sorted(assignment_map.items()):
        found = _parts(target, known)
        if found is not None:
            if not _is_there(found, source, shapes):
                raise ValueError(f"Tensor {source} is not found in {ckpt_dir_or_file} checkpoint {shapes}")
            if source in shapes and isinstance(found, Variable) and not found.shape.is_compatible_with(shapes[source]):
                raise ValueError(
                    f"Shape of variable {found.name} ({found.get_shape()}) doesn't match with shape of tensor "
                    f"{source} ({shapes[source]}) from checkpoint reader."
                )
            _start_from(found, file, source)
            continue
        for variable_name, tensor_name in _scope_pairs(source, target, known):
            if not _is_there(_parts(variable_name, known), tensor_name, shapes):
                raise ValueError(
                    f"Tensor {tensor_name} ({variable_name} in {source}) is not found in {ckpt_dir_or_file} checkpoint"
                )
            _start_from(_parts(variable_name, known), file, tensor_name)


def _parts(target: Any, known: Mapping[str, Any]) -> Any:
    """The variable or the list of parts that `target` is or names; None if it names a scope."""
    if isinstance(target, PartitionedVariable):
        return list(target)
    if isinstance(target, Variable) or (isinstance(target, list) and all(isinstance(v, Variable) for v in target)):
        return target
    if target in known:
        return known[target]
    parts: list[Any] = []
    while (part := known.get(f"{target}/part_{len(parts)}")) is not None:
        parts.append(part)
    return parts or None


def _scope_pairs(source: str, target: str, known: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(variable, tensor of the checkpoint) for a pair of scopes. Raises ValueError unless `source` is one."""
    scope = target[: target.rindex("/")] if "/" in target else ""
    if not source.endswith("/"):
        raise ValueError(
            f"Assignment map with scope only name {scope} should map to scope only {source}. "
            "Should be 'scope/': 'other_scope/'."
        )
    inside = {name.split("/part_")[0] for name in known if not scope or name.startswith(scope + "/")}
    for name in sorted(inside):
        rest = name[len(scope) :]
        if target != "/":
            rest = rest[1:]
        yield name, (rest if source == "/" else source + rest).removesuffix("/")


def _is_there(found: Any, name: str, shapes: Mapping[str, Any]) -> bool:
    """Whether a checkpoint has what a variable or its parts are to begin with."""
    if is_embedding_variable(found if isinstance(found, Variable) else found[0]):
        return f"{name}-keys" in shapes or f"{name}/part_0-keys" in shapes
    return name in shapes


def _start_from(found: Any, file: str, tensor_name: str) -> None:
    parts: list[Any] = [found] if isinstance(found, Variable) else found
    if is_embedding_variable(parts[0]):
        for part in parts:
            part._initializer_op = part.imported(convert_to_tensor(file), tensor_name)
        return
    if isinstance(found, Variable):
        _set_initializer(found, file, tensor_name, "")
        return
    whole = {part._get_save_slice_info().full_name for part in found}
    if len(whole) > 1:
        raise ValueError(f"Slices must all be from the same tensor: {' != '.join(sorted(whole))}")
    for part in found:
        _set_initializer(part, file, tensor_name, part._get_save_slice_info().spec)


def _set_initializer(variable: Any, file: str, tensor_name: str, slice_spec: str) -> None:
    # the file is read on the variable's own task
    with device(variable.device), device("/cpu:0"):
        (value,) = apply_op(
            "RestoreV2",
            "checkpoint_initializer",
            prefix=file,
            tensor_names=[tensor_name],
            shape_and_slices=[slice_spec],
            dtypes=[variable.dtype.base_dtype],
        )
        saveable = VariableSaveable(variable, slice_spec, tensor_name)
    # the caller has compared the checkpoint's shape with it
    value.set_shape(variable.shape)
    start = saveable.restore([value], None)
    variable._initializer_op = start.op if isinstance(start, Tensor) else start
    variable._initial_value = value
