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
from tenfold.train.saveable import SaveableObject, SaveSpec, saveables_of
from tenfold_core.device import DeviceSpec, canonical_name
from tenfold_protos import saver_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_protos.saver_pb2 import SaverDef

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
) -> SaverDef:
    """Adds the ops to the default graph. Raises what `saveables_of` raises."""
    saveables = saveables_of(var_list)
    with name_scope(name, "save", [saveable.op for saveable in saveables]):
        file = array.placeholder_with_default(filename or "model", shape=(), name="filename")
        # programs feed "save/Const", so the name is fixed
        file = array.placeholder_with_default(file, shape=(), name="Const")
        shards = _by_device(saveables) if sharded or gather else []
        if gather:
            save = _save_gathered(file, shards)
            restore = _restore_gathered(file, shards, reshape)
        elif sharded:
            save = _save_shards(file, shards, write_version)
            restores = []
            for place, members in shards:
                with device(place):
                    restores.append(_restore(file, members, reshape, restore_sequentially, "restore_shard", False))
            restore = control_flow.group(*restores, name="restore_all")
        else:
            save = _save(file, saveables, write_version)
            restore = _restore(file, saveables, reshape, restore_sequentially, "restore_all", True)
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
    return _write(file, specs, [spec.tensor for spec in specs], write_version)


def _write(file: Any, specs: Sequence[SaveSpec], tensors: Sequence[Any], write_version: int) -> Any:
    names, slices = [spec.name for spec in specs], [spec.slice_spec for spec in specs]
    if write_version == _V1:
        written = apply_op("SaveSlices", filename=file, tensor_names=names, shapes_and_slices=slices, data=tensors)
    else:
        written = apply_op("SaveV2", prefix=file, tensor_names=names, shape_and_slices=slices, tensors=tensors)
    with control_dependencies([written]):
        return array.identity(file, name="control_dependency")


def _save_shards(file: Any, shards: Sequence[_Shard], write_version: int) -> Any:
    count = array.constant(len(shards), name="num_shards")
    if write_version == _V1:
        written = []
        for number, (place, saveables) in enumerate(shards):
            with device(place):
                name = apply_op("ShardedFilename", basename=file, shard=number, num_shards=count)
                written.append(_save(name, saveables, write_version))
        with control_dependencies([each.op for each in written]):
            return apply_op("ShardedFilespec", basename=file, num_shards=count)
    temporary = _temporary(file)
    prefixes, written = [], []
    for number, (place, saveables) in enumerate(shards):
        with device(_on_cpu(place)):
            name = apply_op("ShardedFilename", basename=temporary, shard=number, num_shards=count)
            prefixes.append(name)
            written.append(_save(name, saveables, write_version))
    with control_dependencies([each.op for each in written]), device(_on_cpu(shards[-1][0])):
        return _merge(file, prefixes)


def _temporary(file: Any) -> Any:
    """The name that parts of a checkpoint have before they are merged."""
    return apply_op("StringJoin", inputs=[file, f"_temp_{uuid.uuid4().hex}/part"])


def _merge(file: Any, prefixes: Sequence[Any]) -> Any:
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
        count, temporary = array.constant(len(shards), name="num_shards"), _temporary(file)
    for number, (place, saveables) in enumerate(shards):
        specs = [spec for saveable in saveables for spec in saveable.specs]
        with control_dependencies(written[-1:]), device(None), device(place):
            tensors = [array.identity(spec.tensor) for spec in specs]
        with device(None):
            name = apply_op("ShardedFilename", basename=temporary, shard=number, num_shards=count)
            prefixes.append(name)
            written.append(_write(name, specs, tensors, _V2).op)
    with control_dependencies(written), device(None):
        return _merge(file, prefixes)


def _restore_gathered(file: Any, shards: Sequence[_Shard], reshape: bool) -> Any:
    """Reads all on the session's own task, one device's part after another, and sends it to where it belongs."""
    restored: list[Any] = []
    for _, saveables in shards:
        with control_dependencies(restored[-1:]), device(None):
            restored.append(_restore(file, saveables, reshape, False, "restore_shard", True))
    return control_flow.group(*restored, name="restore_all")


def _restore(
    file: Any, saveables: Sequence[SaveableObject], reshape: bool, sequentially: bool, name: str, bulk: bool
) -> Any:
    """An op that reads them all back; `bulk` reads them by one op instead of one for each."""
    tensors = iter(_read_bulk(file, saveables) if bulk and saveables else ())
    assigned: list[Any] = []
    for saveable in saveables:
        if bulk:
            values = [next(tensors) for _ in saveable.specs]
        else:
            # one after the other, so that large models need less memory
            with control_dependencies(assigned[-1:] if sequentially else None), device(_on_cpu(saveable.device)):
                values = [
                    apply_op(
                        "RestoreV2",
                        prefix=file,
                        tensor_names=[spec.name],
                        shape_and_slices=[spec.slice_spec],
                        dtypes=[spec.dtype],
                    )[0]
                    for spec in saveable.specs
                ]
        assigned.append(saveable.restore(values, _shapes(saveable) if reshape else None))
    return control_flow.group(*assigned, name=name)


def _read_bulk(file: Any, saveables: Sequence[SaveableObject]) -> Any:
    specs = [spec for saveable in saveables for spec in saveable.specs]
    with device("cpu:0"):
        return apply_op(
            "RestoreV2",
            prefix=file,
            tensor_names=[spec.name for spec in specs],
            shape_and_slices=[spec.slice_spec for spec in specs],
            dtypes=[spec.dtype for spec in specs],
        )


def _shapes(saveable: SaveableObject) -> list[Any]:
    shapes = []
    for spec in saveable.specs:
        tensor = spec.tensor
        shape = tensor.get_shape()
        shapes.append(shape.as_list() if shape.is_fully_defined() else array.shape(tensor))
    return shapes


def _by_device(saveables: Sequence[SaveableObject]) -> list[_Shard]:
    """The saveables by device, in the order of the devices' names. Raises ValueError if one lies on several."""
    shards: dict[str, list[SaveableObject]] = {}
    for saveable in saveables:
        places = {canonical_name(spec.device) for spec in saveable.specs}
        if len(places) != 1:
            raise ValueError(f"All tensors of a saveable object must be on the same device: {saveable.name}")
        shards.setdefault(places.pop(), []).append(saveable)
    return sorted(shards.items())


def _on_cpu(place: str) -> str:
    """The CPU of the device's task: files are written and read there."""
    spec = DeviceSpec.from_string(place)
    return DeviceSpec(spec.job, spec.replica, spec.task, "CPU", 0).to_string()
