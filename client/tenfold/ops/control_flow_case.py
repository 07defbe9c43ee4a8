"""`tf.case` and `tf.switch_case`: one of several branches, as a chain of conditionals.

Follows TensorFlow 1.15's control_flow_ops.py (version 1 control flow); conditionals are in control_flow_cond.py.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from tenfold.graph.default_scopes import control_dependencies, name_scope
from tenfold.graph.tensor import Tensor
from tenfold.ops import array, math
from tenfold.ops.control_flow import Assert
from tenfold.ops.control_flow_cond import cond
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold.graph.operation import Operation

__all__ = ["case", "switch_case"]


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """The result of the first function whose predicate is true, otherwise that of `default`.

    `pred_fn_pairs` are pairs in order, or a dict (then ordered by the predicates' names). With `exclusive`, more than
    one true predicate is an error when the graph runs; without `default`, none is. Raises TypeError for other
    arguments.
    """
    predicates, actions = _checked_pairs(pred_fn_pairs)
    with name_scope(name, "case", predicates):
        if default is None:
            default, predicates, actions = _last_as_default(predicates, actions)
        chosen = default
        for predicate, action in reversed(list(zip(predicates, actions, strict=True))):
            chosen = functools.partial(cond, predicate, true_fn=action, false_fn=chosen, strict=strict)
        if not exclusive:
            return chosen()
        with control_dependencies([_at_most_true(predicates, 1, "Input error: exclusive=True")]):
            return chosen()


def _checked_pairs(pairs: Any) -> tuple[list[Any], list[Any]]:
    if not isinstance(pairs, (list, tuple, dict)):
        raise TypeError("fns must be a list, tuple, or dict")
    if isinstance(pairs, OrderedDict):
        pairs = list(pairs.items())
    elif isinstance(pairs, dict):
        pairs = sorted(pairs.items(), key=lambda item: str(item[0].name))
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError("Each entry in pred_fn_pairs must be a 2-tuple")
        predicate, function = pair
        if not isinstance(predicate, Tensor):
            raise TypeError(f"pred must be a Tensor, got: {predicate}")
        if predicate.dtype != dtypes.bool_:
            raise TypeError(f"pred must be Tensor of type bool: {predicate.name}")
        if not callable(function):
            raise TypeError(f"fn for pred {predicate.name} must be callable.")
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def _last_as_default(predicates: list[Any], actions: list[Any]) -> tuple[Callable[[], Any], list[Any], list[Any]]:
    """The last action with assertions that only its predicate is true, and the pairs before it."""
    *others, predicate = predicates
    *other_actions, action = actions

    def default() -> Any:
        none_true = ("Input error: None of conditions evaluated as True:", array.stack(predicates, name="preds_c"))
        message = (
            f"Implementation error: selected default action #{len(others)} was called, but some of other predicates "
            "are True: "
        )
        with control_dependencies([_at_most_true(others, 0, message), Assert(predicate, data=none_true)]):
            return action()

    return default, others, other_actions


def _at_most_true(predicates: Sequence[Any], limit: int, message: str) -> Operation:
    stacked = array.stack(list(predicates), name="preds_c")
    count = math.reduce_sum(math.cast(stacked, dtypes.int32), name="num_true_conds")
    few = math.less_equal(count, array.constant(limit, name="n_true_conds"))
    names = ", ".join(predicate.name for predicate in predicates)
    data = [f"{message}: more than {limit} conditions ({names}) evaluated as True:", stacked]
    return Assert(few, data=data, summarize=len(predicates))


def switch_case(branch_index: Any, branch_fns: Any, default: Any = None, name: str = "switch_case") -> Any:
    """The result of function number `branch_index`; of `default`, or the last function, if there is no such one.

    `branch_fns` are functions, or (index, function) pairs or a dict, with all indices from 0.
    Raises TypeError and ValueError for other arguments.
    """
    actions = _indexed_actions(branch_fns, branch_index)
    fallback = actions.pop() if default is None else default
    if not callable(fallback):
        raise TypeError("default must be callable.")
    with name_scope(name, "case", [branch_index]):
        chosen = fallback
        for index, action in reversed(list(enumerate(actions))):
            predicate = math.equal(branch_index, array.constant(index, dtype=branch_index.dtype))
            chosen = functools.partial(cond, predicate, true_fn=action, false_fn=chosen)
        return chosen()


def _indexed_actions(branch_fns: Any, branch_index: Any) -> list[Any]:
    if not isinstance(branch_index, Tensor):
        raise TypeError(f"branch_index must a Tensor, got {type(branch_index)}")
    if not branch_index.dtype.is_integer:
        raise TypeError(f"branch_index must an integer Tensor, got {branch_index.dtype}")
    if not branch_fns:
        raise ValueError("Must provide at least one item in branch_fns")
    if not isinstance(branch_fns, (list, tuple, dict)):
        raise TypeError("branch_fns must be a list, tuple, or dict")
    pairs = list(branch_fns.items()) if isinstance(branch_fns, dict) else list(branch_fns)
    if all(callable(item) for item in pairs):
        pairs = list(enumerate(pairs))
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError("Each entry in branch_fns must be a 2-tuple")
        key, function = pair
        if not isinstance(key, int):
            raise TypeError(f"key must be a Python `int`, got {type(key)}")
        if not callable(function):
            raise TypeError(f"fn for key {key} must be callable.")
    by_key = dict(pairs)
    if sorted(by_key) != list(range(len(pairs))):
        keys = ",".join(str(key) for key in sorted(key for key, _ in pairs))
        raise ValueError(
            f"branch indices (keys) must form contiguous range of [0 to {len(pairs)}) but found {{{keys}}}"
        )
    return [by_key[key] for key in sorted(by_key)]
