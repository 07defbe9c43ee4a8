"""`tf.while_loop`: checks its arguments, builds the loop, and counts iterations where there is a limit.

    Enter ─▶ Merge ─▶ Switch ─▶ body ─▶ NextIteration ─▶ Merge      and from Switch, by the condition: Exit

while_context.py makes operations part of the loop, loop_shapes.py checks the shapes of its variables.
Follows TensorFlow 1.15's control_flow_ops.py (version 1 control flow).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import nest
from tenfold.graph.collections import GraphKeys
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import add_to_collection, name_scope
from tenfold.graph.default_stack import get_default_graph
from tenfold.ops import array, math
from tenfold.ops.control_flow_primitives import (
    as_tensor_or_composite,
    exit,
    identity,
    loop_cond,
    merge,
    next_iteration,
    switch_ref_or_tensor,
)
from tenfold.ops.loop_shapes import invariants_of, is_at_least_as_specific
from tenfold.ops.tensor_array import flow_of, with_flows
from tenfold.ops.while_context import WhileContext
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.graph.tensor import Tensor

__all__ = ["close_loop", "while_loop"]


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Repeats `body` while `cond` is true, both functions of the loop variables; gives their last values.

    `loop_vars` is a list, tuple or other structure of tensors, TensorArrays, IndexedSlices; `body` returns the same
    structure, each tensor of the shape with which it enters or that `shape_invariants` (same structure, TensorShape;
    of a sparse tensor that of its dense shape) allows. Up to `parallel_iterations` run at a time. `back_prop=False`
    means that no gradient will be computed; `swap_memory` is accepted. A single loop variable is returned alone unless
    `return_same_structure`.
    Raises TypeError and ValueError for arguments and results that do not fit.
    """
    if not callable(cond):
        raise TypeError("cond must be callable.")
    if not callable(body):
        raise TypeError("body must be callable.")
    if parallel_iterations < 1:
        raise TypeError("parallel_iterations must be a positive integer.")
    with name_scope(name, "while", _with_graph(loop_vars)):
        if not loop_vars:
            raise ValueError("No loop variables provided")
        limit = maximum_iterations
        if limit is not None:
            limit = convert_to_tensor(limit, name="maximum_iterations")
            if limit.shape.ndims != 0:
                raise ValueError(f"maximum_iterations must be a scalar, saw shape: {limit.shape}")
            cond, body, loop_vars = _limited(cond, body, loop_vars, limit, return_same_structure)
        if shape_invariants is not None:
            if limit is not None:
                shape_invariants = (TensorShape([]), shape_invariants)
            nest.assert_same_structure(loop_vars, shape_invariants)
            pairs = zip(nest.flatten(loop_vars), nest.flatten(shape_invariants), strict=True)
            shape_invariants = [shape for value, given in pairs for shape in invariants_of(value, given)]
        context = WhileContext(limit, parallel_iterations, back_prop, swap_memory)
        if context.outer_context is None:
            add_to_collection(GraphKeys.WHILE_CONTEXT, context)
        result = _build_loop(context, cond, body, loop_vars, shape_invariants, return_same_structure)
        return result if limit is None else result[1]


def _build_loop(
    context: WhileContext,
    pred: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any,
    return_same_structure: bool,
) -> Any:
    """Adds the loop of `context`, which is still empty; returns its results in the structure that the body returns."""
    first = [as_tensor_or_composite(flow_of(value)) for value in nest.flatten(loop_vars)]
    if shape_invariants is None:
        invariants = [shape for value in first for shape in invariants_of(value)]
    else:
        invariants = nest.flatten(shape_invariants)
    flat = nest.flatten(first, expand_composites=True)
    with context.entered(), get_default_graph()._lock:
        returned, exits = _build(context, pred, body, loop_vars, flat, invariants)
    results = with_flows(nest.flatten(returned, expand_composites=True), exits)
    packed = nest.pack_sequence_as(returned, results, expand_composites=True)
    return packed if return_same_structure or len(exits) != 1 else packed[0]


def _build(
    context: WhileContext,
    pred: Callable[..., Any],
    body: Callable[..., Any],
    structure: Any,
    loop_vars: list[Tensor],
    invariants: list[TensorShape],
) -> tuple[Any, list[Tensor]]:
    given = nest.flatten(structure, expand_composites=True)

    def as_given(tensors: list[Tensor]) -> Any:
        return nest.pack_sequence_as(structure, with_flows(given, tensors), expand_composites=True)

    entered = context.enter_loop_vars(loop_vars, invariants)
    merged = [merge([tensor, tensor])[0] for tensor in entered]
    context.pivot_for_pred = merged[0]
    condition = convert_to_tensor(pred(*as_given(merged)))
    context.pivot = loop_cond(condition, name="LoopCond")
    switched = [switch_ref_or_tensor(tensor, context.pivot) for tensor in merged]
    in_body = [identity(each[1]) for each in switched]
    context.pivot_for_body = in_body[0]
    packed = as_given(in_body)
    returned = body(*packed)
    if not nest.is_nested(returned):
        returned = [returned]
    nest.assert_same_structure(list(packed), list(returned), expand_composites=True)
    results = [convert_to_tensor(flow_of(value)) for value in nest.flatten(returned, expand_composites=True)]
    if len(results) != len(merged):
        raise ValueError(f"Number of inputs and outputs of body must match loop_vars: {len(merged)}, {len(results)}")
    for before, after in zip(merged, results, strict=True):
        close_loop(before, after)
    exits = [exit(each[0]) for each in switched]
    context.loop_exits = exits
    context.exit_result(exits)
    return returned, exits


def close_loop(before: Tensor, after: Tensor, enforce_shape_invariant: bool = True) -> Tensor:
    """Makes `after` the value of the loop variable `before` (a Merge) in the next iteration; gives the NextIteration.

    Raises ValueError if the shape may change and the loop variable's shape does not allow that.
    """
    following: Tensor = next_iteration(convert_to_tensor(after))
    if enforce_shape_invariant and not is_at_least_as_specific(following.shape, before.shape):
        source = before.op.inputs[0].op.inputs[0]
        raise ValueError(
            f"Input tensor '{source.name}' enters the loop with shape {source.shape}, but has shape {following.shape} "
            "after one iteration. To allow the shape to vary across iterations, use the `shape_invariants` argument of "
            "tf.while_loop to specify a less-specific shape."
        )
    before.op._update_input(1, following)
    return following


def _with_graph(loop_vars: Any) -> list[Any]:
    """The elements of `loop_vars` that belong to a graph."""
    return [value for value in nest.flatten(loop_vars, expand_composites=True) if hasattr(value, "graph")]


def _limited(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any, limit: Tensor, return_same_structure: bool
) -> tuple[Callable[..., Any], Callable[..., Any], Any]:
    """Condition, body and variables of a loop that also counts to `limit`."""
    counter = array.constant(0, dtype=limit.dtype, name="iteration_counter")
    if len(loop_vars) == 1 and not return_same_structure:
        return (
            lambda i, value: math.logical_and(math.less(i, limit), cond(value)),
            lambda i, value: (i + 1, body(value)),
            (counter, loop_vars[0]),
        )
    return (
        lambda i, values: math.logical_and(math.less(i, limit), cond(*values)),
        lambda i, values: (i + 1, body(*values)),
        (counter, loop_vars),
    )
