"""Optimizers that run outside of the graph, as SciPy's: loss and gradient are fetched, variables are fed.

Follows TensorFlow 1.15's contrib/opt/python/training/external_optimizer.py. SciPy is imported when it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold import logging
from tenfold.gradients import gradients
from tenfold.graph import get_default_session
from tenfold.ops import array
from tenfold.ops.variables import trainable_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class ExternalOptimizerInterface:
    """Minimizes a loss by a function of NumPy arrays that a subclass defines (`_minimize`).

    `equalities` are tensors that are to be 0, `inequalities` tensors not to be negative, `var_to_bounds` is variable →
    (least, most). Other keywords go to the function.
    """

    def __init__(
        self,
        loss: Any,
        var_list: Sequence[Any] | None = None,
        equalities: Sequence[Any] | None = None,
        inequalities: Sequence[Any] | None = None,
        var_to_bounds: Mapping[Any, tuple[Any, Any]] | None = None,
        **optimizer_kwargs: Any,
    ) -> None:
        self._loss = loss
        self._equalities, self._inequalities = list(equalities or ()), list(inequalities or ())
        self._vars = trainable_variables() if var_list is None else list(var_list)
        self._shapes = [tuple(var.get_shape().as_list()) for var in self._vars]
        self._packed_bounds = None if var_to_bounds is None else self._bounds(var_to_bounds)
        self._fed = [array.placeholder(var.dtype.base_dtype) for var in self._vars]
        self._var_updates = [
            var.assign(array.reshape(fed, shape))
            for var, fed, shape in zip(self._vars, self._fed, self._shapes, strict=True)
        ]
        self.optimizer_kwargs = optimizer_kwargs
        self._packed_var = _packed(self._vars)
        self._packed_loss_grad = self._gradient(loss)
        self._equality_grads = [self._gradient(each) for each in self._equalities]
        self._inequality_grads = [self._gradient(each) for each in self._inequalities]
        ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes])
        self._slices = [slice(int(a), int(b)) for a, b in zip([0, *ends], ends, strict=False)]

    def _bounds(self, of_variables: Mapping[Any, tuple[Any, Any]]) -> list[tuple[float, float]]:
        packed: list[tuple[float, float]] = []
        for var, shape in zip(self._vars, self._shapes, strict=True):
            low, high = of_variables.get(var, (-np.inf, np.inf))
            packed += zip(np.broadcast_to(low, shape).flat, np.broadcast_to(high, shape).flat, strict=True)
        return packed

    def _gradient(self, tensor: Any) -> Any:
        found = gradients(tensor, self._vars)
        return _packed(
            [array.zeros_like(var) if each is None else each for each, var in zip(found, self._vars, strict=True)]
        )

    def minimize(
        self,
        session: Any = None,
        feed_dict: Mapping[Any, Any] | None = None,
        fetches: Sequence[Any] | None = None,
        step_callback: Callable[[Any], Any] | None = None,
        loss_callback: Callable[..., Any] | None = None,
        **run_kwargs: Any,
    ) -> None:
        """Sets the variables to what minimizes the loss. Blocks.

        `loss_callback` gets the values of `fetches` with each loss, `step_callback` the packed variables of each step.
        """
        session = session or get_default_session()
        feeds, more = dict(feed_dict or {}), list(fetches or ())

        def function_of(tensors: list[Any], callback: Callable[..., Any] | None = None) -> Callable[[Any], Any]:
            def evaluate(x: Any) -> Any:
                parts = zip(self._vars, self._slices, self._shapes, strict=True)
                fed = {var: x[place].reshape(shape) for var, place, shape in parts}
                values = session.run(tensors + more, feed_dict={**fed, **feeds})
                if callback is not None:
                    callback(*values[len(tensors) :])
                return values[: len(tensors)]

            return evaluate

        found = self._minimize(
            initial_val=np.asarray(session.run(self._packed_var), np.float64),
            loss_grad_func=function_of([self._loss, self._packed_loss_grad], loss_callback),
            equality_funcs=[function_of([each]) for each in self._equalities],
            equality_grad_funcs=[function_of([each]) for each in self._equality_grads],
            inequality_funcs=[function_of([each]) for each in self._inequalities],
            inequality_grad_funcs=[function_of([each]) for each in self._inequality_grads],
            packed_bounds=self._packed_bounds,
            step_callback=step_callback or (lambda _: None),
            optimizer_kwargs=self.optimizer_kwargs,
        )
        values = [found[place] for place in self._slices]
        session.run(self._var_updates, feed_dict=dict(zip(self._fed, values, strict=True)), **run_kwargs)

    def _minimize(
        self,
        initial_val: Any,
        loss_grad_func: Callable[[Any], Any],
        equality_funcs: Sequence[Callable[[Any], Any]],
        equality_grad_funcs: Sequence[Callable[[Any], Any]],
        inequality_funcs: Sequence[Callable[[Any], Any]],
        inequality_grad_funcs: Sequence[Callable[[Any], Any]],
        packed_bounds: Any,
        step_callback: Callable[[Any], Any],
        optimizer_kwargs: Mapping[str, Any],
    ) -> Any:
        """The packed variables that minimize the loss; `loss_grad_func` gives [loss, gradient] of packed variables."""
        raise NotImplementedError(
            "To use ExternalOptimizerInterface, subclass from it and implement the _minimize() method."
        )


def _packed(tensors: Sequence[Any]) -> Any:
    flat = [array.reshape(each, [-1]) for each in tensors]
    return flat[0] if len(flat) == 1 else array.concat(flat, 0)


class ScipyOptimizerInterface(ExternalOptimizerInterface):
    """Minimizes with `scipy.optimize.minimize`; `method` (default L-BFGS-B) and `options` are its.

    Raises ModuleNotFoundError where SciPy is not installed, ValueError for keywords that are set here.
    """

    _DEFAULT_METHOD = "L-BFGS-B"

    def _minimize(
        self,
        initial_val: Any,
        loss_grad_func: Callable[[Any], Any],
        equality_funcs: Sequence[Callable[[Any], Any]],
        equality_grad_funcs: Sequence[Callable[[Any], Any]],
        inequality_funcs: Sequence[Callable[[Any], Any]],
        inequality_grad_funcs: Sequence[Callable[[Any], Any]],
        packed_bounds: Any,
        step_callback: Callable[[Any], Any],
        optimizer_kwargs: Mapping[str, Any],
    ) -> Any:
        try:
            from scipy.optimize import minimize
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "tf.contrib.opt.ScipyOptimizerInterface needs SciPy: pip install scipy", name=error.name
            ) from error

        def loss_and_gradient(x: Any) -> tuple[Any, Any]:
            loss, gradient = loss_grad_func(x)
            return float(loss), gradient.astype(np.float64)

        given = dict(optimizer_kwargs)
        pairs = [("eq", each) for each in zip(equality_funcs, equality_grad_funcs, strict=True)]
        pairs += [("ineq", each) for each in zip(inequality_funcs, inequality_grad_funcs, strict=True)]
        constraints = [
            {"type": kind, "fun": _first(function), "jac": _first(gradient)} for kind, (function, gradient) in pairs
        ]
        arguments = {
            "jac": True,
            "callback": step_callback,
            "method": given.pop("method", self._DEFAULT_METHOD),
            "constraints": constraints,
            "bounds": packed_bounds,
        }
        for key in arguments:
            if key in given:
                if key == "bounds":
                    raise ValueError("Bounds must be set using the var_to_bounds argument")
                raise ValueError(f"Optimizer keyword arg '{key}' is set automatically and cannot be injected manually")
        result = minimize(loss_and_gradient, initial_val, **{**arguments, **given})
        logging.info("Optimization terminated with: %s, objective function value: %f", result.message, result.fun)
        return result.x


def _first(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: np.asarray(function(x)[0], np.float64)
