"""Generations of the chief in synchronous training: after a restore, gradients from before it are dropped.

A chief that restarts sets the variables to a checkpoint's values, while the parameter servers still hold gradients and
tokens of later steps, and workers wait there. Gradients and tokens therefore carry the global step plus an offset that
each generation of the chief makes larger; an older gradient is dropped like any stale one, older tokens are taken out.
A chief that never begins one, as in programs without `chief_init_op`, is in the first. Used by sync_replicas.py.

TensorFlow has no generations and applies the old gradients. In the first generation the offset is 0, and all numbers
are TensorFlow's. A TensorFlow worker that starts in a later generation sends the global step without an offset:
Tenfold's accumulators accept it as one of that generation (tenfold_kernels/resources/accumulators.py). A TensorFlow
parameter server drops its first gradient, and the worker waits for ever if no token is left over.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tenfold.graph import control_dependencies, device, get_default_graph, name_scope
from tenfold.ops import array, control_flow, math, state_ops
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.variables import Variable
from tenfold_core import dtypes
from tenfold_core.chief_generation import AT_ONCE, CLOSED_BEFORE, STRIDE
from tenfold_protos import attr_value_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Generation:
    """The offset, a variable beside the global step. Global steps that are not int64 are too small for it."""

    def __init__(self, global_step: Any) -> None:
        self._step = global_step
        self._offset: Any = None
        if global_step.dtype.base_dtype is dtypes.int64:
            # without device functions: one more variable would change where they place the next one
            with device(None), device(global_step.device):
                # in no collection: it is not saved, and sessions do not wait until it is initialised
                settings: dict[str, Any] = {"trainable": False, "collections": [], "use_resource": False}
                self._offset = Variable(0, dtype=dtypes.int64, name="sync_rep_generation", **settings)

    def step(self) -> Any:
        """The global step as gradients and tokens carry it, also before the chief has begun."""
        with device(self._step.device):
            return _now(self._step) if self._offset is None else math.add(_now(self._step), self._offset_or(0, 0))

    def later(self) -> Any:
        """Whether there was a generation before this one, a bool scalar; None if steps are too small to tell."""
        if self._offset is None:
            return None
        with device(self._step.device):
            return self._offset_or(0, 0) > 0

    def _offset_or(self, more: int, without: int) -> Any:
        """The offset plus `more`, or `without` while the offset is not initialised."""

        def there() -> Any:
            # a read inside the branch: one outside would not wait for the condition
            again = state_ops.variable_op_v2((), dtypes.int64, "offset", shared_name=self._offset.op.name)
            return math.add(again, array.constant(more, dtypes.int64))

        begun = state_ops.is_variable_initialized(self._offset)
        return cond(begun, there, lambda: array.constant(without, dtypes.int64))

    def begin(
        self,
        accumulators: Sequence[tuple[Any, str]],
        tokens: Any,
        set_local_step: Callable[[Any], Any],
        give_tokens: Callable[[], Any],
    ) -> Any:
        """An op that begins a generation of the chief.

        1 the offset grows · 2 the accumulators accept nothing · 3 they are emptied, and so is the queue of `tokens` ·
        4 they accept gradients of this generation · 5 the chief's own step is set, and if there was an earlier
        generation, `give_tokens()` wakes the workers.
        """
        if self._offset is None:
            opened = [self._accept(each, place, self._step) for each, place in accumulators]
            return control_flow.group(set_local_step(self._step), *opened, self._without_tokens(tokens))
        with device(self._step.device), name_scope("sync_rep_begin"):
            offset = self._offset_or(STRIDE, 0)
            with control_dependencies([state_ops.assign(self._offset, offset)]):
                offset = array.identity(offset)
                step = math.add(self._step, offset)
            closed = math.add(offset, array.constant(CLOSED_BEFORE, dtypes.int64))
        opened, closings = [], []
        for accumulator, place in accumulators:
            with device(place):
                closings.append(accumulator.set_global_step(closed))
            with device(place), control_dependencies(closings[-1:]):
                count = accumulator.num_accumulated()
                emptied = cond(count > 0, partial(_taken, accumulator, count), control_flow.no_op)
            with control_dependencies([emptied]):
                opened.append(self._accept(accumulator, place, step))
        with control_dependencies(closings):
            emptied = self._without_tokens(tokens)
        with control_dependencies([*opened, emptied]), device(self._step.device):
            woken = cond(offset > 0, give_tokens, control_flow.no_op)
        with control_dependencies(opened):
            return control_flow.group(set_local_step(step), woken)

    def _without_tokens(self, tokens: Any) -> Any:
        """Takes out what is in the queue, without waiting: a worker may have taken some after they were counted."""
        with device(self._step.device), get_default_graph()._attr_scope({AT_ONCE: attr_value_pb2.AttrValue(b=True)}):
            return tokens.dequeue_up_to(tokens.size()).op

    @staticmethod
    def _accept(accumulator: Any, place: str, step: Any) -> Any:
        with device(place):
            return accumulator.set_global_step(step, name="SetGlobalStep")


def _now(variable: Any) -> Any:
    """The variable's value once the control dependencies of this scope are met."""
    return variable.read_value() if hasattr(variable, "read_value") else array.identity(variable)


def _taken(accumulator: Any, count: Any) -> Any:
    """Empties the accumulator; what comes while this waits for nothing is dropped."""
    take = getattr(accumulator, "take_indexed_slices_grad", None) or accumulator.take_grad
    taken = take(count)
    return control_flow.group(getattr(taken, "values", taken).op)
