"""`do_async_embedding`: the lookups of the next batches are made beside the step that trains on this one.

Called by session_creators.py before a graph is finalized. What lies between the input of a batch and the results of its
lookups moves behind a `staged` (staged.py) of its own: the tensors that leave this part, which are the rows and what
gradients need of their ids, pass through the buffer, so that a step updates just the ids whose rows it was given.
Variables are read where they were. Rows lack the updates of the steps in between: `capacity + threads_num` of this
session's at most, unless the machine holds up one of several threads, and what other workers have sent in that time.
Its idea and options are of DeepRec's training/async_embedding_stage.py, its doc Async-Embedding-Stage.md; the graph is
cut by the rules below. What passes may be fetched and fed as before (session/elements.py), the rest of what moved may
not.

An op *moves* if a lookup needs it and its value is new in each step: it, or something that it needs, is stateful (an
input, a counting lookup, a random number), other than by naming or reading variables. Parts that have nothing in
common get buffers of their own. A lookup stays in its step if it needs what the step is fed, or something inside of a
loop or conditional that the rest of the step needs as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold import logging
from tenfold.graph.default_scopes import control_dependencies, device
from tenfold.ops.lookup_marks import marked_lookups
from tenfold.train.staged import stage_tensors
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tenfold.graph.graph import Graph
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor
    from tenfold_protos.config_pb2 import ConfigProto

#: The collection of a graph that was cut, so that its next session does not cut it again.
_CUT = ("lookups_ahead",)
#: Stateful ops that give what a variable holds: they may run in the step and ahead of it.
_READS = frozenset({"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "ReadKvVariableOp", "VarIsInitializedOp"})
_FED = frozenset({"Placeholder", "PlaceholderV2", "PlaceholderWithDefault"})
#: Ops that say how large a tensor is: made ahead, so that the tensor itself need not pass through the buffer.
_SIZES = frozenset({"Shape", "ShapeN", "Size", "Rank"})


def look_up_ahead(graph: Graph, config: ConfigProto | None) -> None:
    """Cuts `graph` as `do_async_embedding` of `config` asks; once for a graph. Does nothing without the option.

    Raises ValueError for fewer than one thread or value. Warns where the graph has no lookup that can be made ahead.
    """
    options = None if config is None else config.graph_options.optimizer_options
    if options is None or not options.do_async_embedding or graph.get_collection(_CUT):
        return
    ahead = options.async_embedding_options
    if ahead.threads_num < 1 or ahead.capacity < 1:
        raise ValueError(
            "do_async_embedding needs optimizer_options.async_embedding_options with threads_num and capacity of 1 or "
            f"more, not {ahead.threads_num} and {ahead.capacity}"
        )
    graph.add_to_collection(_CUT, True)
    parts = _parts(_moving(graph))
    for part in parts:
        _cut(graph, part, ahead.capacity, ahead.threads_num)
    if not parts:
        logging.warning("do_async_embedding: no lookup of this graph can be made ahead of its step")
        return
    logging.info(
        "Lookups are made ahead of their step: their rows lack up to %d updates of this session",
        ahead.capacity + ahead.threads_num,
    )


def _moving(graph: Graph) -> dict[Operation, None]:
    """The ops that move, in the order of the graph."""
    marks = [tensor.op for tensor in marked_lookups(graph) if tensor.op._get_control_flow_context() is None]
    while True:
        needed = _reached(marks, _needs)
        new = _reached([op for op in needed if _is_new(op)], _feeds, needed)
        fed = _reached([op for op in needed if op.type in _FED], _feeds, needed)
        torn = _reached([op for op in new if any(_is_torn(each, new) for each in op.outputs)], _feeds, needed)
        can = [op for op in marks if op in new and op not in fed and op not in torn]
        if len(can) == len(marks):
            break
        _say_what_stays([op.name for op in marks if op in new and op in fed], "is fed")
        _say_what_stays([op.name for op in marks if op in torn and op not in fed], "is inside of a loop or conditional")
        marks = can
    for op in list(new):
        for reader in _feeds(op):
            if reader.type in _SIZES and _is_plain(reader) and all(tensor.op in new for tensor in reader.inputs):
                new[reader] = None
    return dict.fromkeys(op for op in graph.get_operations() if op in new)


def _say_what_stays(names: list[str], why: str) -> None:
    if names:
        logging.warning("do_async_embedding: %s stay in their step, as they need what %s", ", ".join(names), why)


def _needs(op: Operation) -> Iterable[Operation]:
    yield from (tensor.op for tensor in op.inputs)
    yield from op.control_inputs


def _feeds(op: Operation) -> Iterable[Operation]:
    for tensor in op.outputs:
        yield from tensor.consumers()
    yield from op._control_outputs


def _reached(
    starts: Iterable[Operation],
    follow: Callable[[Operation], Iterable[Operation]],
    within: dict[Operation, None] | None = None,
) -> dict[Operation, None]:
    """`starts` and what `follow` leads to from them, of `within`."""
    found = dict.fromkeys(starts)
    waiting = list(found)
    while waiting:
        for op in follow(waiting.pop()):
            if op not in found and (within is None or op in within):
                found[op] = None
                waiting.append(op)
    return found


def _is_new(op: Operation) -> bool:
    """Whether the values of `op` differ from step to step by its own doing."""
    return op._op_def.is_stateful and op.type not in _READS and not any(map(_is_place, op.outputs))


def _is_place(tensor: Tensor) -> bool:
    """Whether `tensor` names a state, rather than being a value."""
    return bool(tensor.dtype._is_ref_dtype or tensor.dtype in (dtypes.resource, dtypes.variant))


def _is_torn(tensor: Tensor, moving: dict[Operation, None]) -> bool:
    """Whether `tensor` is needed on both sides of the cut, and cannot pass through a buffer."""
    if tensor.op._get_control_flow_context() is None and not _is_place(tensor):
        return False
    return any(reader not in moving for reader in tensor.consumers())


def _is_plain(op: Operation) -> bool:
    return not op.control_inputs and op._get_control_flow_context() is None


def _parts(moving: dict[Operation, None]) -> list[list[Operation]]:
    """The ops that move, apart where nothing connects them."""
    left, parts = dict(moving), []
    while left:
        first = next(iter(left))
        part = _reached([first], lambda op: (*_needs(op), *_feeds(op)), left)
        parts.append([op for op in moving if op in part])
        for op in part:
            del left[op]
    return parts


def _cut(graph: Graph, part: list[Operation], capacity: int, threads: int) -> None:
    """Puts a buffer between `part` and what needs it."""
    inside = dict.fromkeys(part)
    passing = [
        tensor for op in part for tensor in op.outputs if any(reader not in inside for reader in tensor.consumers())
    ]
    readers = [[reader for reader in tensor.consumers() if reader not in inside] for tensor in passing]
    awaited = {op: [each for each in op._control_outputs if each not in inside] for op in part}
    if not passing:
        return
    with graph.as_default(), control_dependencies(None), device(None), device(_place(part)):
        taken, put = stage_tensors(passing, capacity, threads, name="async_embedding")
    graph._made_ahead.update((op, {}) for op in part)
    for tensor, ahead, consumers in zip(passing, taken, readers, strict=True):
        graph._made_ahead[tensor.op][tensor.value_index] = ahead
        for op in consumers:
            for index, given in enumerate(op.inputs):
                if given is tensor:
                    op._update_input(index, ahead)
    for op, waiting in awaited.items():
        for each in waiting:
            others = [other for other in each.control_inputs if other is not op]
            each._remove_all_control_inputs()
            each._add_control_inputs([*others, taken[0].op])
        if waiting:
            put._add_control_input(op)


def _place(part: list[Operation]) -> str:
    """Where the buffer is: with what reads the batch, so on the worker."""
    return next((op.device for op in part if _is_new(op)), part[0].device)
