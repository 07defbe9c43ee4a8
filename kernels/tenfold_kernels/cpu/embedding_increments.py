"""Increments of checkpoints: what has changed since the save before, written and read back.

IncrSave and IncrRestore are to increments what SaveV2 and RestoreV2 are to checkpoints; KvResourceIncrImport reads the
rows of an embedding variable, in one go or, as KvResourceIncrRead and KvResourceIncrApply, in two. Tables know by
themselves what changed (resources/changed_rows.py), once ActivateSparseRecorder has asked them to; the other recording
ops are of DeepRec's graphs. Which save an increment follows is said by a tensor named `_incremental/since`, one name a
line if it follows each of several, the earliest first; without it or with "", it has all since the recorders were
activated, as DeepRec's. Follows DeepRec's kernels/incr_save_restore_ops.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import checkpoint, dtypes, errors
from tenfold_core.checkpoint import increments
from tenfold_core.checkpoint.table_rows import Snapshot
from tenfold_core.file_names import file_path
from tenfold_core.graph_files import graph_files
from tenfold_kernels.arrays import Array, invalid
from tenfold_kernels.cpu._cuts import cut, value_of
from tenfold_kernels.cpu.embedding import ROW_TYPES, variable_of
from tenfold_kernels.cpu.io_checkpoint import checked_v2_inputs, parsed_spec, restored_bundle
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources import embedding_files
from tenfold_kernels.resources.embedding_saves import Changes
from tenfold_kernels.resources.embedding_tables import EmbeddingTable
from tenfold_kernels.resources.sparse_recorders import SavedRows, SparseRecorder, changed_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tenfold_core.dtypes import DType
    from tenfold_kernels.resources.read_in_pieces import ReadInPieces
    from tenfold_kernels.resources.state import Variable


def _recorder(node: KernelNode, name: str, *, active: bool = False) -> SparseRecorder:
    """The recorder of a variable's indices, made where there is none."""
    return node.resources.lookup_or_create(
        "", f"{name}_sparse_incr", SparseRecorder, lambda: SparseRecorder(active=active)
    )


def _saved_rows(node: KernelNode, name: str) -> SavedRows:
    return node.resources.lookup_or_create("", f"{name}_saved_rows", SavedRows, SavedRows)


@kernel("RecordSparseIndices")
def build_record(node: KernelNode) -> Compute:
    name = node.attrs["var_name"].decode(errors="replace")
    active = bool(node.attrs.get("auto_record"))
    return lambda keys: _recorder(node, name, active=active).record(keys)


@kernel("ActivateSparseRecorder")
def build_activate(node: KernelNode) -> Compute:
    """Recorders of these names begin anew; tables of these names record from now on, or once they are there."""

    def compute(tensor_names: Array) -> None:
        names = {name.decode(errors="replace") for name in tensor_names.reshape(-1).tolist()}
        for name in names:
            _recorder(node, name).activate()
        for table in node.resources.every(EmbeddingTable):
            if table.name in names:
                table.record_changes()

    return compute


@kernel("CollectSparseIndices")
def build_collect(node: KernelNode) -> Compute:
    """Takes what a recorder has: the indices, and what they are in the whole variable of which this is a part."""
    a = node.attrs
    name, config, mode = (a.get(each, b"").decode(errors="replace") for each in ("tensor_name", "config", "part_mode"))
    part, parts, size = (int(a.get(each, 0)) for each in ("part_idx", "part_count", "hash_bucket_size"))
    dtype = a["ktype"].as_numpy_dtype
    settings = dict(item.split("=", 1) for item in config.split(",") if "=" in item)
    least = settings.get("update_count_thd", "0")
    if not least.isdigit():
        raise invalid(f"update_count_thd in the config of {node.op} must be a number, not {least!r}")

    def compute() -> tuple[Array, Array]:
        keys = _recorder(node, name).take(int(least))
        everywhere = keys
        if parts > 0 and size > 0:
            begin = part * (size // parts) + min(part, size % parts)
            everywhere = keys * parts + part if mode == "mod" else keys + begin
        return keys.astype(dtype), everywhere.astype(dtype)

    return compute


@kernel("IncrSave", files=True)
def build_incr_save(node: KernelNode) -> Compute:
    """Of an embedding variable its rows that have changed; of another one that `is_sparse` says so of, the rows that
    were recorded or that differ; of the others all."""
    types: Sequence[DType] = [t.base_dtype for t in node.input_types[4:]]

    def compute(prefix: Array, names_: Array, specs_: Array, is_sparse: Array, *tensors: Array) -> None:
        where, names, specs = checked_v2_inputs(prefix, names_, specs_ if specs_.size else _none(names_))
        if len(tensors) != len(names) or is_sparse.size != len(names):
            raise invalid(
                f"Got {len(names)} tensor names, {is_sparse.size} elements of is_sparse and {len(tensors)} tensors"
            )
        known = dict(zip(names, tensors, strict=True))
        named = known[increments.SINCE].item() if increments.SINCE in known else b""
        since = [file_path(each) for each in named.decode(errors="surrogateescape").split("\n")] if named else []
        saved = increments.saved_as(where)
        embeddings, values = _changed_embeddings(node, names, tensors, since, saved)
        rows = zip(names, specs, is_sparse.reshape(-1).tolist(), values, types, strict=True)
        with checkpoint.BundleWriter(where, files=graph_files()) as writer:
            for name, spec, sparse, held, dtype in rows:
                if name in embeddings:
                    for each, found in embeddings[name]:
                        writer.add(each, found, dtypes.as_dtype(found.dtype))
                    continue
                if name == increments.SINCE:
                    continue
                tensor = value_of(held)
                if dtype is dtypes.resource:
                    dtype = dtypes.as_dtype(tensor.dtype)
                changed = _changed_rows(node, name, spec, tensor, since, saved) if sparse else None
                if changed is not None:
                    for each, found in changed:
                        writer.add(each, found, dtype if found.dtype == tensor.dtype else dtypes.as_dtype(found.dtype))
                elif spec:
                    shape, part = parsed_spec(spec, tensor)
                    # a part goes by the name of the whole
                    writer.add_slice(increments.whole_name(name), shape, part, tensor, dtype)
                else:
                    writer.add(name, tensor, dtype)

    return compute


def _changed_embeddings(
    node: KernelNode, names: Sequence[str], tensors: Sequence[Array | Variable], since: Sequence[str], saved: str
) -> tuple[dict[str, Iterable[tuple[str, Array]]], Sequence[Array | ReadInPieces]]:
    """Of the tensors, all of one moment, at which the save `saved` ends: by the name of each embedding variable's
    handle, names and values of its changed rows; and the tensors, of which variables have their values."""
    under_way: list[tuple[dict[str, str], Callable[[], dict[str, Changes]]]] = []
    with cut(node, names, tensors, variable_of) as made:
        for table, slots in made.tables:
            if since:
                # what has changed since the earliest has what has changed since a later one
                under_way.append((slots, table.begin_changes(since[0], [*dict.fromkeys(slots.values())])))
            else:
                for name, slot in slots.items():
                    changes = table.begin_changes(None, [slot], _recorder(node, name).keys())
                    under_way.append(({name: slot}, changes))
            table.note_save(saved)
    # rows are copied only now, while updates go on
    found: dict[str, Iterable[tuple[str, Array]]] = {}
    for slots, finish in under_way:
        changed = finish()
        for name, slot in slots.items():
            found[name] = embedding_files.changed_tensors_of(changed[slot], slot, name)
    return found, made.values


def _changed_rows(
    node: KernelNode, name: str, spec: str, value: Array, since: Sequence[str], saved: str
) -> Sequence[tuple[str, Array]] | None:
    """Names and values of the rows [R, …] of a variable or a part of one that an increment has; None for all of it."""
    first, count = (increments.rows_of(spec) or (0, 0)) if spec else (0, len(value) if value.ndim else 0)
    if not count or value.dtype.hasobject:
        return None
    keys: Array | None
    if not since:
        recorded = _recorder(node, name).keys()
        keys = recorded[(recorded >= 0) & (recorded < count)]
    else:
        held = _saved_rows(node, name)
        keys = np.zeros(0, np.int64)
        for each in since:
            before = held.of(each)
            if before is None:
                before = _value_in(each, increments.whole_name(name) if spec else name, spec)
            if before is None or before.shape != value.shape:
                keys = None
                break
            keys = np.union1d(keys, changed_rows(before, value))
        held.keep(saved, value)
        if keys is None or 2 * keys.size > count:
            return None
    found = [(name + increments.KEYS, keys), (name + increments.VALUES, value[keys])]
    return [*found, (name + increments.FIRST_ROW, np.array(first, np.int64))] if spec else found


def _value_in(prefix: str, name: str, spec: str) -> Array | None:
    """What a whole checkpoint has under that name; None where it is none, or has nothing."""
    try:
        with checkpoint.BundleReader(prefix, files=graph_files()) as reader:
            if not reader.contains(name) or reader.contains(increments.PREVIOUS):
                return None
            if not spec:
                return reader.read(name)
            _, part, _ = checkpoint.parse_shape_and_slice(spec)
            return reader.read_slice(name, part)
    except errors.OpError:
        return None  # then all is saved, which is right as well


@kernel("IncrRestore", files=True)
def build_incr_restore(node: KernelNode) -> Compute:
    """Of an ordinary variable its value with an increment's rows in it, given the value before; of an embedding
    variable, which has three names, keys, values and versions of its rows. With the attribute `_reads_only` nothing is
    remembered for a later increment."""
    types: Sequence[DType] = [t.base_dtype for t in node.output_types]
    single = len(types) == 1

    def compute(prefix: Array, names_: Array, specs_: Array, is_sparse: Array, *given: Array) -> Any:
        if is_sparse.size != 1:
            raise invalid(f"is_sparse of {node.op} has one element, not {is_sparse.size}")
        where, names, specs = checked_v2_inputs(prefix, names_, specs_ if specs_.size == names_.size else _none(names_))
        if not bool(is_sparse.reshape(-1)[0]):
            values = restored_bundle(where, names, specs, types)
            return values[0] if single else tuple(values)
        if len(names) not in (1, 3) or len(names) > len(types):
            raise invalid(
                f"An increment is read for one variable, by its name, or by the three of an embedding variable's keys, "
                f"values and versions; got {len(names)} names and {len(types)} tensors"
            )
        with checkpoint.BundleReader(where, files=graph_files()) as reader:
            if len(names) == 3:
                changes = embedding_files.read_changes(reader, names[0].removesuffix("-keys"), "", 0, 1)
                rows, count = changes.rows, len(changes.rows.values)
                return (rows.keys[:count], rows.values, rows.versions[:count], *given[3:])
            value = given[0].copy()
            bounds = increments.rows_of(specs[0]) if specs[0] else (0, 0)
            if bounds is None or not value.ndim:
                raise invalid(f"{names[0]} is not made of whole rows: {specs[0]}")
            increments.put_rows(reader, names[0], bounds[0], value)
        if not node.attrs.get("_reads_only"):
            _saved_rows(node, names[0]).keep(where, value)
        return value if single else (value, *given[1:])

    return compute


def _none(names: Array) -> Array:
    return np.full(names.shape, b"", object)


@kernel("KvResourceIncrImport", dtype=ROW_TYPES, files=True)
def build_incr_import(node: KernelNode) -> Compute:
    """Makes the changes of an increment that belong to its part in a table that is there."""
    read = _reader_of_part(node)

    def compute(prefix: Array, resource: Array, names: Array, empty_key: Array, value: Array) -> None:
        changes, table, slot = read(prefix, resource, names)
        table.change(changes, slot, file_path(prefix.item()))

    return compute


@kernel("KvResourceIncrRead", dtype=ROW_TYPES, files=True)
def build_incr_read(node: KernelNode) -> Compute:
    """The changes of an increment that belong to its part, without making them: (keys [K], values [V, width], versions
    [K], frequencies [K], removed ids). The last K − V ids wait for admission."""
    read, keys_dtype, dtype = _reader_of_part(node), *(node.attrs[each].as_numpy_dtype for each in ("Tkeys", "dtype"))

    def compute(prefix: Array, resource: Array, names: Array) -> tuple[Array, ...]:
        (rows, removed), _, _ = read(prefix, resource, names)
        keys, gone = rows.keys.astype(keys_dtype), removed.astype(keys_dtype)
        return keys, rows.values.astype(dtype, copy=False), rows.versions, rows.freqs, gone

    return compute


@kernel("KvResourceIncrApply", dtype=ROW_TYPES)
def build_incr_apply(node: KernelNode) -> Compute:
    """Makes the changes that KvResourceIncrRead has read, in a table that is there."""

    def compute(resource: Array, keys: Array, values: Array, versions: Array, freqs: Array, removed: Array) -> None:
        table, slot = variable_of(node, resource)
        table.change(Changes(Snapshot(keys, values, versions, freqs), removed), slot)

    return compute


def _reader_of_part(node: KernelNode) -> Callable[[Array, Array, Array], tuple[Changes, EmbeddingTable, str]]:
    """What reads the changes that belong to the node's part; with them the table, and the slot or ""."""
    part, parts = int(node.attrs.get("partition_id", 0)), int(node.attrs.get("partition_num", 1))
    if not 0 <= part < parts:
        raise invalid(f"There is no part {part} of {parts}")

    def read(prefix: Array, resource: Array, names: Array) -> tuple[Changes, EmbeddingTable, str]:
        table, slot = variable_of(node, resource)
        where, name = file_path(prefix.item()), names.reshape(()).item().decode(errors="replace")
        behind = slot.removeprefix(table.name)
        behind = behind if name.endswith(behind) else ""
        with checkpoint.BundleReader(where, files=graph_files()) as reader:
            changes = embedding_files.read_changes(reader, name.removesuffix(behind), behind, part, parts)
        return changes, table, slot

    return read
