"""Optimizer updates, dense (Apply*, ResourceApply*) and by rows (SparseApply*), from the table of optimizer_rules.py.

Half and bfloat16 are updated in float and rounded back. All variables of an update are locked together, whatever
use_locking says. Follows training_ops.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold_core import dtypes
from tenfold_kernels import optimizer_rules
from tenfold_kernels.arrays import Array, contiguous, invalid
from tenfold_kernels.cpu._variables import is_resource, variable_reader
from tenfold_kernels.registry import Compute, KernelNode, kernel, no_kernel
from tenfold_kernels.typesets import COMPILED, FLOATING

no_kernel(
    "ApplyAddSign",
    "ApplyPowerSign",
    "ResourceApplyAdamWithAmsgrad",
    device="CPU",
    why="no program of the op census uses it",
)


@kernel(*optimizer_rules.OPS, T=FLOATING | {dtypes.bfloat16})
def build_apply(node: KernelNode) -> Compute:
    """Updates var and its slots in place. Gives var's reference, or nothing for resources."""
    layout = optimizer_rules.layout_of(node.op)
    rule, sparse = layout.rule, layout.sparse
    variable_places, grad_place, indices_place = layout.variables, layout.gradient, layout.indices
    dtype = node.attrs["T"].as_numpy_dtype
    work = dtype if node.attrs["T"] in COMPILED else np.float32
    resource = is_resource(node)
    readers = [variable_reader(node) for _ in variable_places]
    run = (_sparse_run if sparse else _dense_run)(node, layout, work)
    arguments_of = arguments_reader(node, layout, work)

    def update(variables: Sequence[Any], inputs: Sequence[Any], arguments: tuple[Any, ...]) -> None:
        indices = inputs[indices_place] if sparse else None
        buffers = [v.buffer(exclusive=resource, rows=indices) for v in variables]
        shape = buffers[0].shape
        for buffer in buffers:
            if buffer.shape != shape:
                optimizer_rules.check_slots(rule, buffers)
        grad = inputs[grad_place]
        if work is dtype:
            run(buffers, grad, indices, arguments)
            return
        wide = [b.astype(work) for b in buffers]
        run(wide, grad.astype(work), indices, arguments)
        for buffer, updated in zip(buffers, wide, strict=True):
            buffer[...] = updated

    def compute(*inputs: Any) -> Any:
        arguments = arguments_of(inputs)
        if resource:
            variables = [variable_at(inputs[i]) for variable_at, i in zip(readers, variable_places, strict=True)]
        else:
            variables = [inputs[i] for i in variable_places]
        # `with locked(...)` written out: it would take a fifth of the time of a small update
        if len(variables) == 1:
            with variables[0].lock:
                update(variables, inputs, arguments)
        else:
            locks = [v.lock for v in sorted(variables, key=id)]
            for lock in locks:
                lock.acquire()
            try:
                update(variables, inputs, arguments)
            finally:
                for lock in locks:
                    lock.release()
        return None if resource else variables[0]

    return compute


def arguments_reader(
    node: KernelNode, layout: optimizer_rules.Layout, work: Any
) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """(the node's inputs) → the loop's arguments, as Python's numbers. It raises what is wrong with the scalars."""
    rule, attrs = layout.rule, node.attrs
    #: The scalars' bytes → the loop's arguments. Learning rates stay the same for many steps, and all updates of one
    #: step share Adam's powers, so the nodes of a kind share this too.
    prepared = _prepared_for(node)
    scalar_indices = [i for _, i in layout.scalars]
    as_they_come = rule.as_they_come
    rest = (1.0, optimizer_rules.flag(attrs, "use_nesterov"))

    def arguments_of(inputs: Sequence[Any]) -> tuple[Any, ...]:
        key, ranks = b"", 0
        if as_they_come:
            given = [inputs[i] for i in scalar_indices]
            if not any([value.ndim for value in given]):
                return (*[value.item() for value in given], *rest)
        else:
            for i in scalar_indices:
                value = inputs[i]
                ranks += value.ndim
                key += value.tobytes()
            found = None if ranks else prepared.get(key)
            if found is not None:
                return found
        scalars = {name: _scalar(name, inputs[i], work) for name, i in layout.scalars}
        if rule.check is not None:
            rule.check(scalars)
        # Python's numbers hold the same values and reach compiled code faster than NumPy's
        arguments = tuple([a if isinstance(a, bool) else a.item() for a in rule.prepare(scalars, work, attrs)])
        if len(prepared) >= _PREPARED_KEPT:
            prepared.clear()
        prepared[key] = arguments
        return arguments

    return arguments_of


#: (op, attrs of the update, type) → its prepared arguments.
_prepared: dict[tuple[Any, ...], dict[bytes, tuple[Any, ...]]] = {}
_PREPARED_KEPT = 64


def _prepared_for(node: KernelNode) -> dict[bytes, tuple[Any, ...]]:
    flags = tuple(sorted((name, value) for name, value in node.attrs.items() if isinstance(value, bool)))
    return _prepared.setdefault((optimizer_rules.stem_of(node.op)[0], flags, node.attrs["T"]), {})


def _scalar(name: str, value: Array, work: Any) -> Any:
    optimizer_rules.check_scalar(name, value)
    return work(value[()])


Run = Callable[[Sequence[Array], Array, Array | None, tuple[Any, ...]], None]


def _dense_run(node: KernelNode, layout: optimizer_rules.Layout, work: Any) -> Run:
    from tenfold_kernels.cpu._compiled import updates

    loop = updates.loop(layout.rule.loop, work)

    def run(buffers: Sequence[Array], grad: Array, indices: Array | None, arguments: tuple[Any, ...]) -> None:
        if grad.shape != buffers[0].shape:
            optimizer_rules.check_gradient(layout, buffers[0].shape, grad)
        if grad.ndim == 1 and grad.flags.c_contiguous and grad.flags.aligned:
            loop(*buffers, grad, *arguments)
        else:
            loop(*[b.reshape(-1) for b in buffers], contiguous(grad).reshape(-1), *arguments)

    return run


def _sparse_run(node: KernelNode, layout: optimizer_rules.Layout, work: Any) -> Run:
    from tenfold_kernels.cpu._compiled import sparse_updates

    loop = sparse_updates.loop(layout.rule.loop, work, node.attrs["Tindices"].as_numpy_dtype)

    def run(buffers: Sequence[Array], grad: Array, indices: Array | None, arguments: tuple[Any, ...]) -> None:
        assert indices is not None
        shape = buffers[0].shape
        optimizer_rules.check_rows(shape, grad, indices)
        width = math.prod(shape[1:])
        tables = [b.reshape(shape[0], width) for b in buffers]
        bad = loop(*tables, contiguous(grad).reshape(indices.size, width), contiguous(indices), *arguments)
        if bad >= 0:
            raise invalid(f"Index {indices[bad]} at offset {bad} in indices is out of range")

    return run
