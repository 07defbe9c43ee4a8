"""Embedding variables: their handles, lookups, exports and updates. The table is resources/embedding_tables.py.

A slot variable's handle names a column of its primary variable's table. Updates use the optimizers' loops by row
(optimizer_rules.py), with the rows of the ids that may be trained. Follows DeepRec's kernels/kv_variable_ops.cc and
training_ali_ops.cc.
"""

from __future__ import annotations

import contextlib
import json
import os
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import checkpoint, dtypes, errors
from tenfold_core.checkpoint.increments import saved_as
from tenfold_core.file_errors import os_errors
from tenfold_core.file_names import file_path
from tenfold_core.graph_files import graph_files
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels import optimizer_rules, scalar
from tenfold_kernels.arrays import Array, contiguous, invalid, output_type, shape_text, text_attr
from tenfold_kernels.cpu._compiled.admitting import admit
from tenfold_kernels.cpu._compiled.id_index import id_loops
from tenfold_kernels.cpu._cuts import EMBEDDING, cut
from tenfold_kernels.cpu._many_tables import Found, ManyTables, Target, Targets, Update, found
from tenfold_kernels.cpu._variables import handle_of
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources import embedding_files
from tenfold_kernels.resources.embedding_rows import EmbeddingLoops, TableOptions
from tenfold_kernels.resources.embedding_tables import EmbeddingSlot, EmbeddingTable
from tenfold_kernels.resources.id_map import as_ids
from tenfold_kernels.resources.sparse_recorders import SparseRecorder
from tenfold_kernels.resources.state import ResourceHandle, Variable
from tenfold_kernels.typesets import COMPILED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import BinaryIO

    from tenfold_kernels.resources.read_in_pieces import ReadInPieces

#: DeepRec's StorageTypes with a tier on a disk: SSDHASH, LEVELDB, and those with memory before them.
_ON_DISK = frozenset((4, 5, 12, 14, 101, 102))
#: Set to 1 where a task only answers lookups.
_INFERENCE = "INFERENCE_MODE"
#: What rows may be of. Half types are updated as float32.
ROW_TYPES = COMPILED | {dtypes.float16, dtypes.bfloat16}
#: Inputs of updates that no optimizer's rule knows.
_NO_SCALARS = frozenset(("global_step", "weight_decay"))
#: Loops whose regularization is of whole rows here.
_OF_ROWS = {"ftrl": "row_ftrl"}


@kernel("KvVarHandleOp")
def build_handle(node: KernelNode) -> Compute:
    """The same handle in every step; the table comes with its initialization."""
    container = text_attr(node, "container") or node.resources.default_container
    name = text_attr(node, "shared_name") or node.name
    handle = _Handle(node.device, container, name, type_name=EMBEDDING).as_array()
    return lambda: handle


@dataclass(frozen=True, slots=True)
class _Handle(ResourceHandle):
    """A handle that remembers what it found, and in which generation of the resources."""

    found: list[tuple[int, weakref.ref[Any]]] = field(default_factory=list, compare=False, repr=False)


def _found(node: KernelNode, handle: ResourceHandle) -> EmbeddingTable | EmbeddingSlot | None:
    generation, memo = node.resources.generation, handle.found if isinstance(handle, _Handle) else []
    for known, what in memo:
        found: EmbeddingTable | EmbeddingSlot | None = what()
        if known == generation and found is not None:
            return found
    types: tuple[type[EmbeddingTable] | type[EmbeddingSlot], ...] = (EmbeddingTable, EmbeddingSlot)
    for type_ in types:
        with contextlib.suppress(errors.NotFoundError):
            found = node.resources.lookup(handle.container, handle.name, type_)
            memo[:] = [(generation, weakref.ref(found))]
            return found
    return None


def variable_of(node: KernelNode, resource: Array) -> tuple[EmbeddingTable, str]:
    """The table behind a handle, and the slot that the handle names; "" for the weights themselves.

    Raises FailedPreconditionError before the variable was initialized."""
    handle = handle_of(node, resource)
    found = _found(node, handle)
    if found is None:
        raise errors.failed_precondition(f"Attempting to use uninitialized value {handle.name}")
    return (found.table, found.name) if isinstance(found, EmbeddingSlot) else (found, "")


def table_of(node: KernelNode, resource: Array) -> EmbeddingTable:
    """The table that a primary variable's handle names."""
    table, slot = variable_of(node, resource)
    if slot:
        raise invalid(f"{node.op} needs an embedding variable, not its slot {slot}")
    return table


def _options(node: KernelNode) -> TableOptions:
    a = node.attrs
    return TableOptions(
        filter_freq=int(a.get("filter_freq", 0)),
        steps_to_live=int(a.get("steps_to_live", 0)),
        l2_weight_threshold=float(a.get("l2_weight_threshold", -1.0)),
        value_without_weights=float(a.get("default_value_no_permission", 0.0)),
        record_freq=bool(a.get("record_freq", False)),
        record_version=bool(a.get("record_version", False)),
        saves_waiting=_more_options(node).get("saves_filtered", True),
    )


def _file_maker(node: KernelNode) -> Callable[[], BinaryIO] | None:
    """What makes files for the rows of a table with a tier on a disk."""
    if int(node.attrs.get("storage_type", 1)) not in _ON_DISK:
        return None
    folder = file_path(text_attr(node, "storage_path"))

    def make_file() -> BinaryIO:
        with os_errors(folder):
            return graph_files().scratch(folder)

    return make_file


def _more_options(node: KernelNode) -> dict[str, Any]:
    """What has no attribute of its own."""
    given = text_attr(node, "attr_json_str")
    try:
        found = json.loads(given) if given else {}
    except ValueError as error:
        raise invalid(f"attr_json_str is no JSON: {given}") from error
    if not isinstance(found, dict):
        raise invalid(f"attr_json_str is not a JSON object: {given}")
    return found


def _maker(node: KernelNode) -> Callable[[Array, Array, Array], None]:
    """Makes the table that a handle names, or a slot of the primary variable's; what is there stays as it is."""
    options, make_file = _options(node), _file_maker(node)
    shape = TensorShape(node.attrs["shape"]).as_list()
    if len(shape) != 1 or not shape[0]:
        raise invalid(f"The rows of an embedding variable are vectors of a known size, not of shape {shape}")
    width, key_dtype, dtype = shape[0], node.attrs["Tkeys"], node.attrs["dtype"]

    def make(resource: Array, primary: Array, value: Array) -> None:
        handle, first = handle_of(node, resource), handle_of(node, primary)
        if not value.size or value.size % width:
            raise invalid(
                f"The embedding variable {handle.name} needs rows of {width} elements to begin with, but got a value "
                f"of shape {shape_text(value.shape)}"
            )
        rows = value.reshape(-1, width)
        if handle == first:

            def table() -> EmbeddingTable:
                account = node.resources.quota.account(handle.name)
                loops = EmbeddingLoops(id_loops(), admit())
                if make_file is not None:
                    make_file().close()  # a folder that cannot be used is told at once
                made = EmbeddingTable(handle.name, key_dtype, dtype, rows, loops, options, account, make_file)
                with contextlib.suppress(errors.NotFoundError):
                    if node.resources.lookup("", f"{handle.name}_sparse_incr", SparseRecorder).active:
                        made.record_changes()
                return made

            node.resources.lookup_or_create(handle.container, handle.name, EmbeddingTable, table)
            return
        of = table_of(node, primary)
        of.add_slot(handle.name, rows)
        slot = EmbeddingSlot(of, handle.name)
        node.resources.lookup_or_create(handle.container, handle.name, EmbeddingSlot, lambda: slot)

    return make


@kernel("InitializeKvVariableOp", dtype=ROW_TYPES, files=True)
def build_initialize(node: KernelNode) -> Compute:
    make = _maker(node)
    return lambda resource, primary, value, empty_key: make(resource, primary, value)


@kernel("KvResourceImportV2", dtype=ROW_TYPES, files=True)
def build_import(node: KernelNode) -> Compute:
    """Makes the table or the slot, and reads from a checkpoint what belongs to its part."""
    make = _maker(node)
    part, parts = int(node.attrs.get("partition_id", 0)), int(node.attrs.get("partition_num", 1))
    reset = bool(node.attrs.get("reset_version"))
    any_width = bool(_more_options(node).get("restores_any_width"))
    if not 0 <= part < parts:
        raise invalid(f"There is no part {part} of {parts}")

    def compute(prefix: Array, resource: Array, primary: Array, value: Array, names: Array, empty_key: Array) -> None:
        make(resource, primary, value)
        table, slot = variable_of(node, resource)
        where, name = file_path(prefix.item()), names.reshape(()).item().decode(errors="replace")
        with checkpoint.BundleReader(where, files=graph_files()) as reader:
            # a slot's name is behind its variable's
            behind = slot.removeprefix(table.name)
            behind = behind if name.endswith(behind) else ""
            found = embedding_files.read(reader, name.removesuffix(behind), behind, part, parts)
        if reset:
            found = found._replace(versions=np.zeros(len(found.keys), np.int64))
        table.put(found, slot, where, any_width=any_width)

    return compute


@kernel("KvVarIsInitializedOp")
def build_is_initialized(node: KernelNode) -> Compute:
    return lambda resource: np.array(_found(node, handle_of(node, resource)) is not None)


@kernel("KvVariableShape")
def build_shape(node: KernelNode) -> Compute:
    """[rows, width]"""
    dtype = output_type(node)

    def compute(resource: Array) -> Array:
        table, _ = variable_of(node, resource)
        return np.array([len(table), table.width], dtype)

    return compute


@kernel("DestroyKvResourceOp")
def build_destroy(node: KernelNode) -> Compute:
    lenient = bool(node.attrs.get("ignore_lookup_error", True))

    def compute(resource: Array) -> None:
        handle = handle_of(node, resource)
        found = _found(node, handle)
        if found is not None:
            node.resources.delete(handle.container, handle.name, type(found))
        elif not lenient:
            raise errors.not_found(f"There is no embedding variable {handle.name}")

    return compute


def is_read_only(node: KernelNode) -> bool:
    """Whether lookups of a node add and count nothing."""
    return bool(node.attrs.get("is_inference")) or os.environ.get(_INFERENCE) == "1"


@kernel("KvResourceGather", "KvResourceGatherV1", dtype=ROW_TYPES)
def build_gather(node: KernelNode) -> Compute:
    """Rows of weights; `is_inference`, or INFERENCE_MODE=1 in the task's environment, adds none and counts nothing."""
    given, reads_only, many = bool(node.attrs.get("is_use_default_value_tensor")), is_read_only(node), ManyTables()

    def compute(resource: Array, keys: Array, default: Array, counts: Array | None = None) -> Array:
        table = table_of(node, resource)
        if reads_only and not given:
            return table.look_up(keys)
        if counts is not None and counts.shape != keys.shape:
            raise invalid(f"counts have shape {shape_text(counts.shape)}, but the keys {shape_text(keys.shape)}")
        if given and default.shape not in ((table.width,), (*keys.shape, table.width)):
            raise invalid(
                f"Default values have shape {shape_text(default.shape)}; {shape_text((table.width,))} or "
                f"{shape_text((*keys.shape, table.width))} would do"
            )
        if reads_only:
            return _with_first(table, keys, default)
        if given or counts is not None:
            return table.gather(keys, default if given else None, counts)
        ids = as_ids(keys)
        return many.gather(found([Target(table)]), ids, (0, ids.size)).reshape(*keys.shape, table.width)

    return compute


def _with_first(table: EmbeddingTable, keys: Array, first: Array) -> Array:
    """Rows of weights, which for unknown ids are those of `first` that they would begin with."""
    found = table.look_up(keys)
    if not table.options.filter_freq:
        absent = ~table.has(keys)
        found[absent] = np.broadcast_to(first, found.shape)[absent]
    return found


@kernel("KvResourceExport")
def build_export(node: KernelNode) -> Compute:
    """(keys [N], values [N, width], versions [N], frequencies [N]) of the ids that have weights; without an update the
    version is 0."""

    def compute(resource: Array) -> tuple[Array, ...]:
        table, slot = variable_of(node, resource)
        found = table.export(slot)
        return tuple(found._replace(versions=np.maximum(found.versions, 0)))

    return compute


def saved_embeddings(
    node: KernelNode, names: Sequence[str], tensors: Sequence[Array | Variable], where: str
) -> tuple[dict[str, Iterable[tuple[str, Array]]], Sequence[Array | ReadInPieces]]:
    """Of the tensors that a node saves, all of one moment: by the name of each embedding variable's handle, names and
    values of what a checkpoint has of it; and the tensors, of which variables have their values."""
    under_way = []
    with cut(node, names, tensors, variable_of) as made:
        for table, slots in made.tables:
            under_way.append(embedding_files.tensors_of(table, slots))
            table.note_save(saved_as(where))
    # rows are copied only now, while updates go on
    return {name: found for table_tensors in under_way for name, found in table_tensors}, made.values


@kernel("EVGetFrequency")
def build_frequency(node: KernelNode) -> Compute:
    return lambda resource, ids: table_of(node, resource).frequencies(ids)


@kernel("KvResourceLookupTier")
def build_tier(node: KernelNode) -> Compute:
    """In which tier the row of each id is: 0, the memory; −1 for ids without one."""
    return lambda resource, ids: table_of(node, resource).has(ids).astype(np.int32) - 1


@kernel("EVGetVersion")
def build_version(node: KernelNode) -> Compute:
    """Of ids without an update 0."""
    return lambda resource, ids: np.maximum(table_of(node, resource).versions(ids), 0)


#: Updates by the rules of optimizers, for tables of their own.
_BY_RULE = (
    "KvResourceSparseApplyAdagrad",
    "KvResourceSparseApplyAdam",
    "KvResourceSparseApplyFtrl",
    "KvResourceSparseApplyFtrlV2",
    "KvResourceSparseApplyGradientDescent",
    "KvResourceSparseApplyMomentum",
)


def has_rule(op: str) -> bool:
    """Whether `TableUpdates` does the updates of an op."""
    return op in _BY_RULE


@kernel(*_BY_RULE, T=ROW_TYPES)
def build_apply(node: KernelNode) -> Compute:
    """Updates the rows of ids, which may be new; those without weights yet stay as they are."""
    updates = TableUpdates(node, node.op)
    layout = updates.layout
    targets = Targets(updates.target, len(layout.variables))
    grad_at, keys_at = layout.gradient, layout.indices

    def compute(*inputs: Any) -> None:
        update = updates.of_step(inputs)
        among = targets.of(updates.generation, tuple(inputs[i] for i in layout.variables))
        keys = as_ids(inputs[keys_at]) if inputs[keys_at].ndim == 1 else inputs[keys_at]
        updates.apply(among, keys, (0, keys.size), inputs[grad_at], update)

    return compute


class TableUpdates:
    """Updates of embedding variables by an op of an optimizer's rule, for a node that does one or many of them."""

    def __init__(self, node: KernelNode, op: str) -> None:
        """`node` has the op's attrs."""
        from tenfold_kernels.cpu._compiled import sparse_updates

        self._node, self.layout = node, optimizer_rules.layout_of(op)
        rule, self._work = self.layout.rule, work_type(node)
        name = _OF_ROWS.get(rule.loop, rule.loop)
        self._loop, self._many = sparse_updates.loop(name, self._work, np.int64), ManyTables(name)
        self._scalars_at = [(name, i) for name, i in self.layout.scalars if name not in _NO_SCALARS]
        places = dict(self.layout.scalars)
        self._step_at = places.get("global_step")
        self._decay_at = places.get("weight_decay") if node.attrs.get("apply_weight_decay") else None

    @property
    def generation(self) -> int:
        """Of the resources that handles name."""
        return self._node.resources.generation

    def target(self, handles: Sequence[Array]) -> Target:
        """What the handles of the rule's variables name."""
        table, slots = slots_of(self._node, self.layout.rule.variables, handles)
        return Target(table, tuple(slots))

    def of_step(self, inputs: Any) -> Update:
        """The update by the scalars among the op's inputs: a sequence, or a mapping by place."""
        rule, work = self.layout.rule, self._work
        scalars = {}
        for name, i in self._scalars_at:
            optimizer_rules.check_scalar(name, inputs[i])
            scalars[name] = work(inputs[i][()])
        if rule.check is not None:
            rule.check(scalars)
        arguments = [a if isinstance(a, bool) else a.item() for a in rule.prepare(scalars, work, self._node.attrs)]
        kept = None
        if self._decay_at is not None:
            optimizer_rules.check_scalar("weight_decay", inputs[self._decay_at])
            kept = work(1 - inputs[self._decay_at].item() * _adam_rate(scalars))

        def apply(columns: list[Array], rows: Array, places: Array, grad: Array) -> None:
            if kept is not None:
                chosen = np.unique(rows)
                columns[0][chosen] *= kept
            self._loop(*columns, given_rows(grad, places, work), rows, *arguments)

        step = 0 if self._step_at is None else int(inputs[self._step_at])
        return Update(apply, arguments if kept is None else None, step)

    def apply(self, among: Found, keys: Array, ends: Sequence[int], grad: Array, update: Update) -> None:
        """Updates tables, of which number n has the keys, and rows of the gradient, from ends[n] to ends[n + 1]. `keys`
        are the caller's own."""
        among.targets[0].table.check_gradient(self.layout.gradient_name, grad, keys)
        self._many.update(among, keys, ends, grad, update)


def _adam_rate(scalars: Mapping[str, Any]) -> float:
    """The learning rate of Adam's step, corrected for its start: what weights decay by, too."""
    lr, beta1_power, beta2_power = (np.float64(scalars[name]) for name in ("lr", "beta1_power", "beta2_power"))
    with np.errstate(all="ignore"):
        return scalar.adam_rate(lr, beta1_power, beta2_power, 1.0)


def work_type(node: KernelNode) -> Any:
    """The NumPy type in which rows are updated."""
    dtype = node.attrs["T"]
    return dtype.as_numpy_dtype if dtype in COMPILED else np.float32


def given_rows(grad: Array, places: Array, work: Any) -> Array:
    """The rows of a gradient at these places, in the type of the update."""
    given = grad if places.size == len(grad) else grad[places]
    return contiguous(given.astype(work, copy=False))


def slots_of(
    node: KernelNode, names: Sequence[str], handles: Sequence[Array], any_width: Sequence[str] = ()
) -> tuple[EmbeddingTable, list[str]]:
    """The table of the first handle, and the slots that the others name, which are as wide as its weights but for those
    of `any_width`."""
    table = table_of(node, handles[0])
    slots = []
    for name, handle in zip(names[1:], handles[1:], strict=True):
        other, slot = variable_of(node, handle)
        if other is not table or not slot:
            raise invalid(f"{node.op} needs a slot of the embedding variable {table.name} as its {name}")
        if name not in any_width and table.width_of(slot) != table.width:
            raise invalid(
                f"{node.op} needs a slot as wide as the weights of {table.name}, {table.width}, as its {name}; {slot} "
                f"has {table.width_of(slot)}"
            )
        slots.append(slot)
    return table, slots
