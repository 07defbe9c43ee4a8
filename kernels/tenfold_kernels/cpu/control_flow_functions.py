"""Calls of functions that were not put in place when the graph was lowered: those of functions that call themselves.

Where a master could do it, calls and functional control flow never get here (graph/lower.py in the services). Follows
functional_ops.cc and partitioned_function_ops.cc.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_core import errors
from tenfold_core.device import is_compatible
from tenfold_kernels.arrays import Array, invalid, shape_text
from tenfold_kernels.loop_turns import too_many_turns
from tenfold_kernels.registry import Compute, Function, KernelNode, kernel
from tenfold_kernels.resources.waiting import Lack, Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from tenfold_protos.attr_value_pb2 import NameAttrList

Later: TypeAlias = "Callable[[Callable[[], None]], None]"
#: So many calls are made at a stretch. A loop may go on for ever; between stretches it sees that its step was ended.
_TURN = 64
#: A kernel as the calls that it makes, one after the other: yields what `Function.start` returned, gets the outputs.
_Calls: TypeAlias = "Generator[Any, list[Any], list[Any]]"


def _function(node: KernelNode, function: NameAttrList) -> Function:
    if node.functions is None:
        raise errors.not_found(
            f"Function {function.name} is not defined: the graph of node '{node.name}' has no library."
        )
    return node.functions.instantiate(function.name, function.attr, node.device)


def _most_turns(node: KernelNode) -> int:
    assert node.functions is not None
    return node.functions.most_turns


class _Rest:
    """The calls of a kernel that are left once one has to wait, or there were many: they run on another thread."""

    def __init__(self, calls: _Calls, count: int, later: Later) -> None:
        self._calls, self._count, self._later = calls, count, later
        self.answer = Waiting(self._cancel)
        self.answer.lack = self._lack
        #: The call that is waited for.
        self._current: Waiting | None = None

    def _lack(self) -> Lack | None:
        """What the call waits for that is under way; None while it computes. Any thread."""
        current = self._current
        return None if current is None or not current.is_open or current.lack is None else current.lack()

    def go_on(self, result: Any) -> None:
        """Goes on with what a call has returned."""
        if type(result) is not Waiting:
            self._later(partial(self._turn, result, None))
            return
        self._current = result
        result.listen(lambda outputs, error: self._later(partial(self._turn, outputs, error)))
        if not self.answer.is_open:
            result.cancel()

    def _turn(self, outputs: Any, error: errors.OpError | None) -> None:
        result: Any = outputs
        try:
            for _ in range(_TURN):
                if not self.answer.is_open:
                    return
                result = self._calls.throw(error) if error is not None else self._calls.send(result)
                error = None
                if type(result) is Waiting:
                    break
        except StopIteration as end:
            self.answer.complete(_as_outputs(end.value, self._count))
        except errors.OpError as failure:
            self.answer.fail(failure)
        except Exception as bug:  # must end the step, not leave it waiting
            self.answer.fail(errors.internal(f"{type(bug).__name__}: {bug}"))
        else:
            self.go_on(result)

    def _cancel(self) -> None:
        if self._current is not None:
            self._current.cancel()


def _follow(node: KernelNode, calls: _Calls) -> Any:
    """Runs a kernel's calls: its outputs, or a Waiting for them."""
    count = len(node.output_types)
    try:
        result = next(calls)
        for _ in range(_TURN):
            if type(result) is Waiting:
                break
            result = calls.send(result)
    except StopIteration as end:
        return _as_outputs(end.value, count)
    assert node.functions is not None
    rest = _Rest(calls, count, node.functions.later)
    rest.go_on(result)
    return rest.answer


def _as_outputs(values: Sequence[Any], count: int) -> Any:
    """As a Compute returns them."""
    return None if count == 0 else values[0] if count == 1 else tuple(values)


def is_true(value: Array) -> bool:
    """What a condition that is no bool means: a number other than 0, a text or a tensor that is not empty."""
    if value.ndim:
        return value.size > 0
    return len(value.item()) > 0 if value.dtype.hasobject else bool(value)


@kernel("PartitionedCall", "StatefulPartitionedCall", blocking=True)
def build_call(node: KernelNode) -> Compute:
    function = _function(node, node.attrs["f"])

    def calls(args: tuple[Any, ...]) -> _Calls:
        return (yield function.start(args))

    return lambda *args: _follow(node, calls(args))


@kernel("RemoteCall", blocking=True)
def build_remote_call(node: KernelNode) -> Compute:
    """What is left for a worker: a call whose target only the step says. It must be this device."""
    function = _function(node, node.attrs["f"])

    def calls(target: Array, args: tuple[Any, ...]) -> _Calls:
        wanted = target.item().decode(errors="replace")
        if not is_compatible(wanted, node.device):
            raise errors.unimplemented(
                f"RemoteCall on {node.device} cannot run its function on '{wanted}': only a target that is a constant "
                "of the graph may be another device."
            )
        return (yield function.start(args))

    return lambda target, *args: _follow(node, calls(target, args))


@kernel("ToBool")
def build_to_bool(node: KernelNode) -> Compute:
    return lambda value: np.array(is_true(value))


@kernel("If", "StatelessIf", blocking=True)
def build_if(node: KernelNode) -> Compute:
    then, other = (_function(node, node.attrs[name]) for name in ("then_branch", "else_branch"))

    def calls(condition: Array, args: tuple[Any, ...]) -> _Calls:
        return (yield (then if is_true(condition) else other).start(args))

    return lambda condition, *args: _follow(node, calls(condition, args))


@kernel("Case", "StatelessCase", blocking=True)
def build_case(node: KernelNode) -> Compute:
    branches = [_function(node, branch) for branch in node.attrs["branches"]]

    def calls(index: Array, args: tuple[Any, ...]) -> _Calls:
        chosen = int(index) if 0 <= index < len(branches) else len(branches) - 1
        return (yield branches[chosen].start(args))

    return lambda index, *args: _follow(node, calls(index, args))


@kernel("While", "StatelessWhile", blocking=True)
def build_while(node: KernelNode) -> Compute:
    cond, body = (_function(node, node.attrs[name]) for name in ("cond", "body"))

    def calls(args: tuple[Any, ...]) -> _Calls:
        values = list(args)
        for _ in range(_most_turns(node)):
            decisions = yield cond.start(values)
            if len(decisions) != 1:
                text = f"Expected a single scalar return value from WhileOp cond, got {len(decisions)} tensors."
                raise invalid(text)
            if not is_true(decisions[0]):
                return values
            values = yield body.start(values)
            if len(values) != len(args):
                raise invalid(f"While loop body returned {len(values)} arguments. Expected: {len(args)}")
        raise too_many_turns(_most_turns(node))

    return lambda *args: _follow(node, calls(args))


@kernel("For", blocking=True)
def build_for(node: KernelNode) -> Compute:
    body = _function(node, node.attrs["body"])

    def checked(values: list[Any], args: tuple[Any, ...]) -> list[Any]:
        if len(values) != len(args):
            raise invalid(f"For loop body returned {len(values)} arguments. Expected: {len(args)}")
        return values

    def calls(start: Array, limit: Array, delta: Array, args: tuple[Any, ...]) -> _Calls:
        for name, value in (("start", start), ("limit", limit), ("delta", delta)):
            if value.ndim:
                raise invalid(f"{name} must be a scalar, but {shape_text(value.shape)}")
        if (delta > 0 and start > limit) or (delta < 0 and start < limit) or (delta == 0 and start != limit):
            raise invalid(f"Invalid start/limit/delta: {int(start)} {int(limit)} {int(delta)}")
        values = list(args)
        if delta == 0:
            return values
        most = _most_turns(node)
        for turn, number in enumerate(range(int(start), int(limit), int(delta))):
            if turn == most:
                raise too_many_turns(most)
            values = checked((yield body.start([np.array(number, np.int32), *values])), args)
        return values

    return lambda start, limit, delta, *args: _follow(node, calls(start, limit, delta, args))
