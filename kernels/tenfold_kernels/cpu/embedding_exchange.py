"""Lookups of embedding variables as one exchange: ids split by part, rows merged again, gradients summed by key; and
gathers and updates of many tables in one call. The ops are Tenfold's own (opdefs/embedding_exchange.py).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes, opdefs
from tenfold_core.memory_limits import allow
from tenfold_kernels import optimizer_rules
from tenfold_kernels.arrays import Array, contiguous, invalid, output_type, shape_text, text_attr
from tenfold_kernels.cpu._compiled import rows as row_loops
from tenfold_kernels.cpu._compiled.spreading import spread
from tenfold_kernels.cpu._many_tables import ManyTables, Target, Targets
from tenfold_kernels.cpu.embedding import ROW_TYPES, TableUpdates, has_rule, is_read_only, table_of
from tenfold_kernels.registry import Compute, KernelNode, kernel, lookup
from tenfold_kernels.resources.id_map import as_ids
from tenfold_kernels.typesets import COMPILED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@kernel("EmbeddingSplit")
def build_split(node: KernelNode) -> Compute:
    parts, distinct, loop = int(node.attrs["parts"]), bool(node.attrs["distinct"]), spread()
    dtype = output_type(node)

    def compute(*ids: Array) -> tuple[Array, ...]:
        flat = np.concatenate([as_ids(each) for each in ids]) if len(ids) > 1 else as_ids(ids[0])
        sizes = np.fromiter((each.size for each in ids), np.int64, len(ids))
        table = np.zeros(1 << int(2 * sizes.max()).bit_length() if distinct else 1, np.int64)
        first, keys, places = (np.empty(flat.size, np.int64) for _ in range(3))
        sizes_PN = np.zeros((parts, len(ids)), np.int64)
        loop(contiguous(flat), sizes.cumsum(), parts, distinct, table, first, keys, sizes_PN.reshape(-1), places)
        bounds = (0, *sizes_PN.sum(1).cumsum().tolist())
        cut = (keys[begin:end].astype(dtype, copy=False) for begin, end in itertools.pairwise(bounds))
        return (*cut, *sizes_PN, places)

    return compute


def _ends(sizes: Array, count: int, total: int, what: str) -> list[int]:
    """Where the share of `total` of each of `count` lookups begins, and where the last one ends. Raises
    InvalidArgumentError."""
    if sizes.shape != (count,):
        raise invalid(f"sizes have shape {shape_text(sizes.shape)}; one for each of {count} lookups would be right")
    ends = [0, *sizes.cumsum().tolist()]
    if sizes.min() < 0 or ends[-1] != total:
        raise invalid(f"sizes come to {ends[-1]}, but there are {total} {what}")
    return ends


def _vector(name: str, value: Array) -> Array:
    if value.ndim != 1:
        raise invalid(f"{name} must be a vector, but has shape {shape_text(value.shape)}")
    return contiguous(value)


#: Rows of half types are moved and added as float32.
_ROWS = COMPILED | {dtypes.float16}


@kernel("EmbeddingMerge", T=_ROWS)
def build_merge(node: KernelNode) -> Compute:
    count, given = int(node.attrs["N"]), output_type(node)
    dtype = np.dtype(np.float32) if given == np.float16 else given
    gather = row_loops.gather_rows(dtype, np.int64)

    def compute(*inputs: Array) -> Any:
        ids, places, parts = inputs[:count], inputs[count], inputs[count + 1 :]
        found = contiguous(parts[0]) if len(parts) == 1 else _joined(parts)
        found = found.astype(dtype, copy=False)
        ends = _ends(np.fromiter((each.size for each in ids), np.int64, count), count, places.size, "places")
        allow((places.size, found.shape[1]), dtype)
        out = np.empty((places.size, found.shape[1]), dtype)
        bad = gather(found, _vector("places", places), out) if out.size else -1
        if bad >= 0:
            raise invalid(f"places[{bad}] is not in [0, {len(found)})")
        out = out.astype(given, copy=False)
        merged = [
            out[begin:end].reshape(*each.shape, found.shape[1])
            for each, (begin, end) in zip(ids, itertools.pairwise(ends), strict=True)
        ]
        return merged[0] if count == 1 else tuple(merged)

    return compute


def _joined(parts: Sequence[Array]) -> Array:
    """Rows of several arrays behind each other. Raises InvalidArgumentError unless all are matrices of one width."""
    if any(part.ndim != 2 or part.shape[1] != parts[0].shape[1] for part in parts):
        shapes = ", ".join(shape_text(part.shape) for part in parts)
        raise invalid(f"Rows of one width are needed from all parts, but they are {shapes}")
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _none(rows: Array) -> Array:
    """No rows of that width."""
    return rows.reshape(0, rows.shape[-1])


@kernel("EmbeddingSum", T=_ROWS)
def build_sum(node: KernelNode) -> Compute:
    count, out_type = int(node.attrs["N"]), output_type(node)
    dtype = np.dtype(np.float32) if out_type == np.float16 else out_type
    add = row_loops.add_rows(dtype, np.int64)

    def compute(*inputs: Array) -> Any:
        gradients, places, sizes = inputs[:count], inputs[count], inputs[count + 1 :]
        if not all(each.ndim for each in gradients):
            raise invalid("A gradient is a row for each id, but one is a scalar")
        given = _joined([each.reshape(-1, each.shape[-1]) if each.size else _none(each) for each in gradients])
        given = contiguous(given).astype(dtype, copy=False)
        if len(given) != places.size:
            raise invalid(f"There are {len(given)} rows of gradients for {places.size} places")
        bounds = np.cumsum([0, *(_vector("sizes", each).sum() for each in sizes)])
        shape = int(bounds[-1]), given.shape[1]
        if min(each.min(initial=0) for each in sizes) < 0:
            raise invalid("sizes of lookups cannot be negative")
        allow(shape, dtype)
        sums = np.zeros(shape, dtype)
        bad = add(given, _vector("places", places), sums) if given.size else -1
        if bad >= 0:
            raise invalid(f"places[{bad}] is not in [0, {len(sums)})")
        sums = sums.astype(out_type, copy=False)
        cut = [sums[begin:end] for begin, end in itertools.pairwise(bounds.tolist())]
        return cut[0] if len(cut) == 1 else tuple(cut)

    return compute


@kernel("EmbeddingRows", views=True)
def build_rows(node: KernelNode) -> Compute:
    """The rows of each lookup."""

    count = int(node.attrs["N"])

    def compute(rows: Array, sizes: Array) -> Any:
        if not rows.ndim:
            raise invalid("rows must not be a scalar")
        cut = [rows[begin:end] for begin, end in itertools.pairwise(_ends(sizes, count, len(rows), "rows"))]
        return cut[0] if len(cut) == 1 else tuple(cut)

    return compute


def _node_of_one(node: KernelNode, op: str, attrs: Mapping[str, Any], input_types: Sequence[Any]) -> KernelNode:
    """One of the nodes that this one stands for."""
    return KernelNode(node.name, op, attrs, tuple(input_types), (), node.device, node.resources)


def _applies_by_rule(updates: TableUpdates, count: int, shared: Sequence[int]) -> Compute:
    targets = Targets(updates.target, len(updates.layout.variables))
    resources = count * len(updates.layout.variables)

    def compute(*inputs: Any) -> None:
        grad, keys, sizes = inputs[-3:]
        ids = as_ids(_vector("indices", keys))
        ends = _ends(sizes, count, ids.size, "keys")
        update = updates.of_step(dict(zip(shared, inputs[resources:-3], strict=True)))
        updates.apply(targets.of(updates.generation, inputs[:resources]), ids, ends, grad, update)

    return compute


@kernel("KvResourceGathers")
def build_gathers(node: KernelNode) -> Compute:
    count, many, reads_only = int(node.attrs["N"]), ManyTables(), is_read_only(node)
    targets = Targets(lambda handles: Target(table_of(node, handles[0])), 1)

    def compute(*inputs: Array) -> Array:
        keys = as_ids(_vector("keys", inputs[count]))
        ends = _ends(inputs[count + 1], count, keys.size, "keys")
        among = targets.of(node.resources.generation, inputs[:count])
        return many.look_up(among, keys, ends) if reads_only else many.gather(among, keys, ends)

    return compute


@kernel("KvResourceSparseApplies", T=ROW_TYPES)
def build_applies(node: KernelNode) -> Compute:
    """Updates of N tables by `op`. `apart` are its inputs that each table has of its own, besides gradient and ids; all
    of them stand in `resources`, table by table. Its other inputs are `others`, in its order.
    """
    count, apart, name = int(node.attrs["N"]), [int(each) for each in node.attrs["apart"]], text_attr(node, "op")
    if not name.startswith("KvResourceSparseApply") or not opdefs.has(name):
        raise invalid(f"'{name}' is no update of embedding variables, such as KvResourceSparseApplyAdagrad")
    arguments = [argument.name for argument in opdefs.get(name).inputs]
    grad_at, keys_at = arguments.index("grad"), arguments.index("indices")
    shared = [at for at in range(len(arguments)) if at not in (*apart, grad_at, keys_at)]
    resources = count * len(apart)
    if len(node.input_types) != resources + len(shared) + 3 or not set(apart) < set(range(len(arguments))):
        raise invalid(
            f"{node.name} has {len(node.input_types)} inputs for {count} updates by {name} with {apart} apart"
        )
    types = dict(zip(shared, node.input_types[resources:], strict=False))
    types |= dict.fromkeys(apart, node.input_types[0]) | {grad_at: node.attrs["T"], keys_at: node.attrs["Tindices"]}
    attrs = {key: node.attrs[key] for key in ("T", "Tindices")}
    if "global_step" in arguments:
        attrs["Tstep"] = types[arguments.index("global_step")]
    one = _node_of_one(node, name, attrs, [types[at] for at in range(len(arguments))])
    if has_rule(name) and tuple(apart) == optimizer_rules.layout_of(name).variables:
        return _applies_by_rule(TableUpdates(one, name), count, shared)
    apply = lookup(one, "CPU")(one)

    def compute(*inputs: Any) -> None:
        grad, keys, sizes = inputs[-3:]
        ends = _ends(sizes, count, _vector("indices", keys).size, "keys")
        if grad.shape[:1] != keys.shape:
            raise invalid(f"The gradients have shape {shape_text(grad.shape)}, but there are {keys.size} keys")
        given = dict(zip(shared, inputs[resources:-3], strict=True))
        for number, (begin, end) in enumerate(itertools.pairwise(ends)):
            of_table = inputs[number * len(apart) : (number + 1) * len(apart)]
            given |= dict(zip(apart, of_table, strict=True)) | {grad_at: grad[begin:end], keys_at: keys[begin:end]}
            apply(*(given[at] for at in range(len(arguments))))

    return compute
