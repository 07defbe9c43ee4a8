"""The ops of a Saver: save, restore, and their names as a SaverDef. Follows TF 1.15's BaseSaverBuilder.

Unsharded, one SaveV2 writes the whole checkpoint; sharded, each device's task writes its own part under a temporary
name and one of them merges the indices, so that no reader sees half a checkpoint. V1 writes one file a shard. Gathered,
all parts come to the session's own task, which needs no disk that others share.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from tenfold.graph import control_dependencies, device, name_scope
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array, control_flow
from tenfold.train.saveable import EmbeddingSaveable, SaveableObject, SaveSpec, VariableSaveable, saveables_of
from tenfold_core import dtypes
from tenfold_core.device import DeviceSpec, canonical_name
from tenfold_protos import saver_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_protos.saver_pb2 import SaverDef

#: Bytes from which on a variable is read by an op of its own, so that its task need not hold it beside all others.
_LARGE = 16 << 20

_V1, _V2 = saver_pb2.SaverDef.V1, saver_pb2.SaverDef.V2
#: A device and the saveables on it.
_Shard = tuple[str, list[SaveableObject]]


def build(
    var_list: Any,
    *,
    reshape: bool,
    sharded: bool,
    max_to_keep: int | None,
    keep_checkpoint_every_n_hours: float,
    name: str | None,
    restore_sequentially: bool,
    filename: str | None,
    write_version: int,
    gather: bool = False,
    incremental: bool = False,
) -> SaverDef:
    """Adds the ops to the default graph. `incremental`: tables know from a save or restore on what changes. Raises what
    `saveables_of` raises."""
    saveables = saveables_of(var_list)
    with name_scope(name, "save", [saveable.op for saveable in saveables]):
        file = array.placeholder_with_default(filename or "model", shape=(), name="filename")
        # programs feed "save/Const", so the name is fixed
        file = array.placeholder_with_default(file, shape=(), name="Const")
        # a table is written where it is
        tables = [each.name for each in saveables for spec in each.specs if spec.dtype is dtypes.resource]
        if tables and gather:
            raise ValueError(f"The embedding variable {tables[0]} is saved by its own task and cannot be gathered")
        sharded = sharded or bool(tables)
        shards = by_device(saveables) if sharded or gather else []
        if gather:
            save = _save_gathered(file, shards)
            restore = _restore_gathered(file, shards, reshape)
        elif sharded:
            save = _save_shards(file, shards, write_version, incremental)
            restores = []
            for place, members in shards:
                with device(place), control_dependencies(activated(members) if incremental else []):
                    restores.append(restore_op(file, members, reshape, restore_sequentially, "restore_shard", False))
            restore = control_flow.group(*restores, name="restore_all")
        else:
            save = _save(file, saveables, write_version)
            restore = restore_op(file, saveables, reshape, restore_sequentially, "restore_all", True)
    return saver_pb2.SaverDef(
        filename_tensor_name=file.name,
        save_tensor_name=save.name,
        restore_op_name=restore.name,
        max_to_keep=max_to_keep or 0,
        sharded=sharded or gather,
        keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
        version=write_version,  # type: ignore[arg-type]
    )


def _save(file: Any, saveables: Sequence[SaveableObject], write_version: int) -> Any:
    """Writes them into one file; a tensor with the file's name that is there once they are written."""
    specs = [spec for saveable in saveables for spec in saveable.specs]
    tensors = saved_tensors(saveables) if write_version == _V2 else [spec.tensor for spec in specs]
    return _write(file, specs, tensors, write_version)


def saved_tensors(saveables: Sequence[SaveableObject]) -> list[Any]:
    """What the op that writes is given of each of their tensors: its value, or a handle through which the op reads it,
    so that all of them are of one moment: that of a work queue, and beside embedding variables on a parameter server
    that of a variable."""
    together = any(isinstance(each, EmbeddingSaveable) for each in saveables)

    def given(saveable: SaveableObject, spec: SaveSpec) -> Any:
        place = DeviceSpec.from_string(spec.device or "")
        by_handle = together and place.job == "ps" and place.device_type in (None, "CPU")
        handle = saveable.handle if by_handle and isinstance(saveable, VariableSaveable) else None
        handle = saveable.handles.get(spec.name, handle)
        return spec.tensor if handle is None else handle

    return [given(saveable, spec) for saveable in saveables for spec in saveable.specs]


def _write(file: Any, specs: Sequence[SaveSpec], tensors: Sequence[Any], write_version: int) -> Any:
    names, slices = [spec.name for spec in specs], [spec.slice_spec for spec in specs]
    if write_version == _V1:
        written = apply_op("SaveSlices", filename=file, tensor_names=names, shapes_and_slices=slices, data=tensors)
    else:
        written = apply_op("SaveV2", prefix=file, tensor_names=names, shape_and_slices=slices, tensors=tensors)
    with control_dependencies([written]):
        return array.identity(file, name="control_dependency")


def _save_shards(file: Any, shards: Sequence[_Shard], write_version: int, incremental: bool) -> Any:
    count = array.constant(len(shards), name="num_shards")
    if write_version == _V1:
        written = []
        for number, (place, saveables) in enumerate(shards):
            with device(place):
                name = apply_op("ShardedFilename", basename=file, shard=number, num_shards=count)
                written.append(_save(name, saveables, write_version))
        with control_dependencies([each.op for each in written]):
            return apply_op("ShardedFilespec", basename=file, num_shards=count)
    temporary = temporary_name(file)
    prefixes, written = [], []
    for number, (place, saveables) in enumerate(shards):
        with device(on_cpu(place)):
            name = apply_op("ShardedFilename", basename=temporary, shard=number, num_shards=count)
            prefixes.append(name)
            # before the save, so that no change after it is missed
            with control_dependencies(activated(saveables) if incremental else []):
                written.append(_save(name, saveables, write_version))
    with control_dependencies([each.op for each in written]), device(on_cpu(shards[-1][0])):
        return merge(file, prefixes)


def activated(saveables: Sequence[SaveableObject]) -> list[Any]:
    """The operation, if one is needed, after which the tables among them know what changes."""
    names = [each.table_name for each in saveables if isinstance(each, EmbeddingSaveable)]
    return [apply_op("ActivateSparseRecorder", tensor_names=sorted(set(names)))] if names else []


def temporary_name(file: Any) -> Any:
    """The name that parts of a checkpoint have before they are merged."""
    return apply_op("StringJoin", inputs=[file, f"_temp_{uuid.uuid4().hex}/part"])


def merge(file: Any, prefixes: Sequence[Any]) -> Any:
    """The operation's tensor that joins the parts into one checkpoint."""
    merged = apply_op(
        "MergeV2Checkpoints",
        checkpoint_prefixes=array.stack(prefixes),
        destination_prefix=file,
        delete_old_dirs=True,
    )
    with control_dependencies([merged]):
        return array.identity(file)


def _save_gathered(file: Any, shards: Sequence[_Shard]) -> Any:
    """As `_save_shards`, but all is written by the session's own task, one device's part after another.

    A part is read once the one before is written: the task has memory for one at a time.
    """
    prefixes: list[Any] = []
    written: list[Any] = []
    with device(None):
        count, temporary = array.constant(len(shards), name="num_shards"), temporary_name(file)
    for number, (place, saveables) in enumerate(shards):
        specs = [spec for saveable in saveables for spec in saveable.specs]
        with control_dependencies(written[-1:]), device(None), device(place):
            tensors = [array.identity(spec.tensor) for spec in specs]
        with device(None):
            name = apply_op("ShardedFilename", basename=temporary, shard=number, num_shards=count)
            prefixes.append(name)
            written.append(_write(name, specs, tensors, _V2).op)
    with control_dependencies(written), device(None):
        return merge(file, prefixes)


def _restore_gathered(file: Any, shards: Sequence[_Shard], reshape: bool) -> Any:
    """Reads all on the session's own task, one device's part after another, and sends it to where it belongs."""
    restored: list[Any] = []
    for _, saveables in shards:
        with control_dependencies(restored[-1:]), device(None):
            restored.append(restore_op(file, saveables, reshape, False, "restore_shard", True))
    return control_flow.group(*restored, name="restore_all")


def restore_op(
    file: Any, saveables: Sequence[SaveableObject], reshape: bool, sequentially: bool, name: str, bulk: bool
) -> Any:
    """An op that reads them all back: with `bulk` by one op, `sequentially` by one after another, else by one op for
    those that are not large."""
    by_themselves = [(saveable, saveable.restored_from(file)) for saveable in saveables]
    assigned: list[Any] = [op for _, op in by_themselves if op is not None]
    saveables = [saveable for saveable, op in by_themselves if op is None]
    together = [each for each in saveables if bulk or (_is_small(each) and not sequentially)]
    with device("cpu:0" if bulk or not together else on_cpu(together[0].device)):
        tensors = iter(_read(file, together) if together else ())
    in_one_op = {id(each) for each in together}
    for saveable in saveables:
        if id(saveable) in in_one_op:
            values = [next(tensors) for _ in saveable.specs]
        else:
            # one after the other, so that large models need less memory
            with control_dependencies(assigned[-1:] if sequentially else None), device(on_cpu(saveable.device)):
                values = _read(file, [saveable])
        assigned.append(saveable.restore(values, _shapes(saveable) if reshape else None))
    return control_flow.group(*assigned, name=name)


def _read(file: Any, saveables: Sequence[SaveableObject]) -> Any:
    specs = [spec for saveable in saveables for spec in saveable.specs]
    return apply_op(
        "RestoreV2",
        prefix=file,
        tensor_names=[spec.name for spec in specs],
        shape_and_slices=[spec.slice_spec for spec in specs],
        dtypes=[spec.dtype for spec in specs],
    )


def _is_small(saveable: SaveableObject) -> bool:
    size = saveable.nbytes if isinstance(saveable, VariableSaveable) else None
    return size is not None and size < _LARGE


def _shapes(saveable: SaveableObject) -> list[Any]:
    shapes = []
    for spec in saveable.specs:
        tensor = spec.tensor
        shape = tensor.get_shape()
        shapes.append(shape.as_list() if shape.is_fully_defined() else array.shape(tensor))
    return shapes


def by_device(saveables: Sequence[SaveableObject]) -> list[_Shard]:
    """The saveables by device, in the order of the devices' names. Raises ValueError if one lies on several."""
    shards: dict[str, list[SaveableObject]] = {}
    for saveable in saveables:
        places = {canonical_name(spec.device) for spec in saveable.specs}
        if len(places) != 1:
            raise ValueError(f"All tensors of a saveable object must be on the same device: {saveable.name}")
        shards.setdefault(places.pop(), []).append(saveable)
    return sorted(shards.items())


def on_cpu(place: str) -> str:
    """The CPU of the device's task: files are written and read there."""
    spec = DeviceSpec.from_string(place)
    return DeviceSpec(spec.job, spec.replica, spec.task, "CPU", 0).to_string()
