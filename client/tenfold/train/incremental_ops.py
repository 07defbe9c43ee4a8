"""The ops of an IncrementalSaver: each task writes what has changed of its variables, and reads it back.

As saver_ops.py does for whole checkpoints: parts under temporary names, merged by one task. Embedding variables know
what has changed; ordinary ones are written whole, or by rows that differ from the save before. Follows DeepRec's
training/incremental_saver.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold.graph import control_dependencies, device, name_scope
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array, control_flow
from tenfold.train import saver_ops
from tenfold.train.saveable import EmbeddingSaveable, SaveableObject, VariableSaveable, saveables_of
from tenfold_core import dtypes
from tenfold_core.checkpoint import increments

if TYPE_CHECKING:
    from collections.abc import Sequence


#: What an increment says of the saves that it follows; only tasks need the first.
_LINKS = (increments.SINCE, increments.PREVIOUS, increments.DIGEST, increments.ALSO, increments.ALSO_DIGEST)


class IncrementalOps(NamedTuple):
    """Names in the graph; the first six are fed."""

    filename: str
    #: The saves before, as the tasks know them, the earliest first, one a line, "" for none; and what the file says of
    #: the one that it follows, and of another one that it follows as well.
    since: str
    previous: str
    digest: str
    also: str
    also_digest: str
    save: str
    restore: str
    #: Whether all increments are restored, a mark on one of the tasks: taken away, set, and what says that it is there.
    begin_recovery: str
    end_recovery: str
    is_recovered: str


def build(var_list: Any, *, by_rows: bool, name: str | None) -> IncrementalOps:
    """Adds the ops to the default graph. `by_rows`: of ordinary variables of two dimensions or more only rows that have
    changed. Raises what `saveables_of` raises."""
    saveables = saveables_of(var_list)
    with name_scope(name, "incr_save", [saveable.op for saveable in saveables]) as scope:
        file = array.placeholder_with_default("model", shape=(), name="filename")
        links = [array.placeholder_with_default("", shape=(), name=name.partition("/")[2]) for name in _LINKS]
        shards = saver_ops.by_device(saveables)
        save = _save(file, shards, by_rows, links)
        restores: list[Any] = []
        for place, members in shards:
            by_name = [(_name(saveable, by_rows), saveable) for saveable in members]
            whole = [saveable for name, saveable in by_name if name is None]
            with device(place), control_dependencies(saver_ops.activated(members)):
                restores.extend(_restored(file, name, saveable) for name, saveable in by_name if name is not None)
                restores.append(saver_ops.restore_op(file, whole, False, False, "restore_whole", False))
        restore = control_flow.group(*restores, name="restore_all")
        with device(saver_ops.on_cpu(shards[0][0])):
            recovery = _recovery(f"{scope}recovered")
    made = (file, *links, save, restore, *recovery)
    return IncrementalOps(*(each.name for each in made))


def _recovery(name: str) -> tuple[Any, Any, Any]:
    """The three ops of the mark, a variable that is there or is not: a task that comes back has none."""
    mark = apply_op("VarHandleOp", dtype=dtypes.bool_, shape=[], shared_name=name, name="recovered")
    return (
        apply_op("DestroyResourceOp", resource=mark, ignore_lookup_error=True, name="begin_recovery"),
        apply_op("AssignVariableOp", resource=mark, value=array.constant(True), name="end_recovery"),
        apply_op("VarIsInitializedOp", resource=mark, name="is_recovered"),
    )


def _save(file: Any, shards: Sequence[tuple[str, list[SaveableObject]]], by_rows: bool, links: Sequence[Any]) -> Any:
    temporary = saver_ops.temporary_name(file)
    prefixes, written = [], []
    count = array.constant(len(shards), name="num_shards")
    for number, (place, saveables) in enumerate(shards):
        with device(saver_ops.on_cpu(place)):
            shard = apply_op("ShardedFilename", basename=temporary, shard=number, num_shards=count)
            prefixes.append(shard)
            named = [
                (_name(saveable, by_rows) or spec.name, spec.slice_spec, _name(saveable, by_rows) is not None)
                for saveable in saveables
                for spec in saveable.specs
            ]
            tensors = saver_ops.saved_tensors(saveables)
            # what the increment follows is written once
            follows = _LINKS[: 1 if number else len(_LINKS)]
            named += [(each, "", False) for each in follows]
            tensors += links[: len(follows)]
            names, slices, sparse = zip(*named, strict=True)
            op = apply_op(
                "IncrSave",
                prefix=shard,
                tensor_names=list(names),
                shape_and_slices=list(slices),
                is_sparse=list(sparse),
                tensors=tensors,
            )
            written.append(op)
    with control_dependencies(written), device(saver_ops.on_cpu(shards[-1][0])):
        return saver_ops.merge(file, prefixes)


def _restored(file: Any, name: str, saveable: SaveableObject) -> Any:
    """The operation that changes one variable by the rows that an increment has under that name."""
    if isinstance(saveable, EmbeddingSaveable):
        return saveable.changed_by(file)
    (spec,) = saveable.specs
    made = apply_op(
        "IncrRestore",
        prefix=file,
        tensor_names=[name],
        shape_and_slices=[spec.slice_spec],
        is_sparse=[True],
        in_tensors=[spec.tensor],
    )
    return saveable.restore(made, None)


def _name(saveable: SaveableObject, by_rows: bool) -> str | None:
    """The name of what is written by rows; None for what is written whole."""
    if isinstance(saveable, EmbeddingSaveable):
        return saveable.name
    if not by_rows or not isinstance(saveable, VariableSaveable) or len(saveable.specs) != 1:
        return None
    spec = saveable.specs[0]
    if (saveable.rank or 0) < 2 or spec.dtype in (dtypes.string, dtypes.variant):
        return None
    if not spec.slice_spec:
        return spec.name
    return saveable.part_name if increments.rows_of(spec.slice_spec) is not None else None
