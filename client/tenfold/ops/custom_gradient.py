"""`tf.custom_gradient`: a function with a user-defined gradient.

The results go through an IdentityN whose gradient is the given function; its inputs are the results, the arguments and
the variables that were used, so that all of them count as connected. Follows TensorFlow 1.15's custom_gradient.py.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from typing import TYPE_CHECKING, Any

from tenfold import nest
from tenfold.gradients.registry import RegisterGradient
from tenfold.graph.collections import GraphKeys
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import control_dependencies
from tenfold.graph.default_stack import get_default_graph
from tenfold.ops import array
from tenfold.ops.variable_scope import get_variable_scope

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor

__all__ = ["custom_gradient", "grad_pass_through", "recompute_grad"]

#: Gives each gradient registered here a unique name.
_numbers = itertools.count()
_VARIABLE_OPS = ("VariableV2", "VarHandleOp")


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of `f(*tensors)`, which returns (results, gradient function).

    The gradient function gets one gradient a result and returns one a tensor; if `f` uses variables (resource variables
    only) it also takes `variables=` and returns (gradients of the tensors, gradients of the variables).
    Raises TypeError where signature and variables do not fit, ValueError for keyword arguments.
    """

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            raise ValueError(
                "The custom_gradient decorator currently supports keywords arguments only when eager execution is "
                "enabled."
            )
        return _call(f, args)

    return decorated


def _call(f: Callable[..., Any], given: Sequence[Any]) -> Any:
    graph = get_default_graph()
    arguments = [convert_to_tensor(value) for value in given]
    before = set(map(id, _known_variables()))
    result, gradient_function = f(*arguments)
    for variable in _known_variables():
        if id(variable) not in before and not hasattr(variable, "handle"):
            raise TypeError(
                "All variables used by a function wrapped with @custom_gradient must be `ResourceVariable`s. Ensure "
                "that no `variable_scope` is created with `use_resource=False`."
            )
    flat = [convert_to_tensor(value) for value in nest.flatten(result)]
    variables = _variables_between(arguments, flat)
    _check_signature(gradient_function, variables)
    count = len(flat)

    def gradient(_: Operation, *grads: Tensor) -> list[Any]:
        of_results = grads[:count]
        if not variables:
            return [None] * count + nest.flatten(gradient_function(*of_results))
        of_inputs, of_variables = gradient_function(*of_results, variables=variables)
        if len(of_variables) != len(variables):
            raise ValueError("Must return gradient for each variable from @custom_gradient grad_fn.")
        return [None] * count + nest.flatten(of_inputs) + list(of_variables)

    name = f"CustomGradient-{next(_numbers)}"
    RegisterGradient(name)(gradient)
    handles = [variable.handle for variable in variables]
    with graph.gradient_override_map({"IdentityN": name}):
        outputs = array.identity_n([*flat, *arguments, *handles])
    return nest.pack_sequence_as(result, outputs[:count])


def _known_variables() -> list[Any]:
    scope = get_variable_scope()
    return [*scope.global_variables(), *scope.local_variables()]


def _check_signature(gradient_function: Callable[..., Any], variables: list[Any]) -> None:
    specification = inspect.getfullargspec(gradient_function)
    takes_variables = "variables" in (*specification.args, *specification.kwonlyargs) or specification.varkw
    if variables and not takes_variables:
        raise TypeError(
            "If using @custom_gradient with a function that uses variables, then grad_fn must accept a keyword "
            "argument 'variables'."
        )
    if takes_variables and not variables and not get_variable_scope().use_resource:
        raise TypeError(
            "If using @custom_gradient with a function that uses variables, the enclosing variable scope must have "
            "use_resource=True."
        )


def _variables_between(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> list[Any]:
    """The trainable resource variables that `outputs` read on the way from `inputs`."""
    stops = {tensor.op for tensor in inputs}
    queue, seen, found = [tensor.op for tensor in outputs], set(stops), []
    while queue:
        op = queue.pop()
        if op in seen:
            continue
        seen.add(op)
        if op.type in _VARIABLE_OPS:
            found.append(op)
        queue.extend(tensor.op for tensor in op.inputs)
    candidates = get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES)
    return [variable for variable in candidates if variable.op in found and hasattr(variable, "handle")]


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` with the gradient of the identity."""

    @custom_gradient
    def passed(*args: Any) -> Any:
        def gradient(*grads: Any, variables: Any = None) -> Any:
            return grads if variables is None else (grads, [None] * len(variables))

        return f(*args), gradient

    return functools.wraps(f)(passed)


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` whose gradient recomputes `f` instead of keeping its intermediate tensors.

    Variables that `f` uses must be the same at both calls: use `reuse=tf.AUTO_REUSE`, or make them outside.
    """

    @custom_gradient
    def recomputed(*args: Any) -> Any:
        def gradient(*grads: Any, variables: Any = None) -> Any:
            from tenfold.gradients.walker import gradients

            # Recompute only once the gradient is available, so that nothing is held in memory until then.
            with control_dependencies(grads):
                again = [array.identity(value) for value in args]
                results = nest.flatten(f(*again))
            found = gradients(results, again + list(variables or ()), grad_ys=list(grads))
            return found if variables is None else (found[: len(again)], found[len(again) :])

        return f(*args), gradient

    return functools.wraps(f)(recomputed)
