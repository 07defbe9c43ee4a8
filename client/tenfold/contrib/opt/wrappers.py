"""Optimizers around another one: averages of the weights, gradients too late dropped, norms bounded, zeros skipped.

Follows TensorFlow 1.15's contrib/opt/python/training (moving_average_optimizer.py, drop_stale_gradient_optimizer.py,
variable_clipping_optimizer.py, multitask_optimizer_wrapper.py).
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from tenfold import logging, summary
from tenfold.graph.default_scopes import colocate_with, control_dependencies, name_scope
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.ops import array, clip, control_flow, init_ops, math, slicing, state_ops
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.partitioned_variable import PartitionedVariable
from tenfold.ops.variable_scope import get_variable
from tenfold.ops.variables import global_variables
from tenfold.train.moving_averages import ExponentialMovingAverage
from tenfold.train.optimizer import Optimizer
from tenfold.train.saver import Saver
from tenfold.train.training_util import get_global_step
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class _Wrapping(Optimizer):
    """An optimizer that leaves gradients and slots to another one."""

    def __init__(self, opt: Any, use_locking: bool, name: str) -> None:
        super().__init__(use_locking, name)
        self._opt = opt

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """Of the optimizer inside."""
        return self._opt.compute_gradients(*args, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """Of the optimizer inside."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """Of the optimizer inside."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> list[Any]:
        """Of the optimizer inside."""
        found: list[Any] = self._opt.variables()
        return found


class MovingAverageOptimizer(_Wrapping):
    """Keeps moving averages of what another optimizer trains; `swapping_saver` saves these under the names of those.

    A model that is restored for evaluation thus gets the averages. `sequential_update` averages after the update, which
    is exact; without it both may happen at once, which is faster.
    """

    def __init__(
        self, opt: Any, average_decay: float = 0.9999, num_updates: Any = None, sequential_update: bool = True
    ) -> None:
        super().__init__(opt, False, "MovingAverage")
        self._ema = ExponentialMovingAverage(average_decay, num_updates=num_updates)
        #: Name of a variable → that of its average, and the reverse.
        self._swapped_names: dict[str, str] | None = None
        self._sequential_update = sequential_update

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Applies the gradients and updates the averages."""
        pairs = list(grads_and_vars)
        train_op = self._opt.apply_gradients(pairs, global_step=global_step, name=name)
        trained = [var for gradient, var in pairs if gradient is not None]
        with control_dependencies([train_op]) if self._sequential_update else nullcontext():
            average_op = self._ema.apply(trained)
        self._swapped_names = {}
        for var in trained:
            average: Any = self._ema.average(var)
            self._swapped_names[var.op.name] = average.op.name
            self._swapped_names[average.op.name] = var.op.name
        return control_flow.group(train_op, average_op, name="train_with_avg")

    def swapping_saver(self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any) -> Saver:
        """A Saver that saves each average under its variable's name, and the reverse.

        Raises RuntimeError before `apply_gradients`, ValueError if one of such two is not in `var_list`.
        """
        if self._swapped_names is None:
            raise RuntimeError("Must call apply_gradients or minimize before creating the swapping_saver")
        named = _by_name(global_variables() if var_list is None else var_list)
        known: dict[str, Any] = {}
        for key, held in named.items():
            if isinstance(held, (list, PartitionedVariable)):
                known |= {part.op.name: part for part in held}
            else:
                known[key] = held
        swapped: dict[str, Any] = {}
        for key, held in named.items():
            if isinstance(held, list):
                swapped[key] = [self._other(known, part.op.name, part) for part in held]
            else:
                swapped[key] = self._other(known, key, held)
        return Saver(swapped, name=name, **kwargs)

    def _other(self, known: Mapping[str, Any], name: str, held: Any) -> Any:
        other = (self._swapped_names or {}).get(name)
        if other is None:
            return held
        if other not in known:
            raise ValueError(
                f"Variable to swap {other} is not part of variables to save. This breaks MovingAverageOptimizer."
            )
        return known[other]


def _by_name(var_list: Any) -> dict[str, Any]:
    """Name in the checkpoint → variable, or list of partitions."""
    if isinstance(var_list, dict):
        return var_list
    named: dict[str, Any] = {}
    for var in var_list:
        info = getattr(var, "_save_slice_info", None)
        if isinstance(var, PartitionedVariable):
            named[var.name] = list(var)
        elif info is not None:
            named.setdefault(info.full_name, []).append(var)
        else:
            named[var.op.name] = var
    return named


class DropStaleGradientOptimizer(_Wrapping):
    """Leaves out gradients computed more than `staleness` global steps ago; counts them in `stale_counter`."""

    def __init__(self, opt: Any, staleness: int, use_locking: bool = False, name: str = "DropStaleGradient") -> None:
        super().__init__(opt, use_locking, name)
        self._staleness = staleness
        self._local_step: Any = None

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        """Of the optimizer inside, after the global step has been read."""
        with colocate_with(loss):
            # A copy: the variable itself will have gone on.
            self._local_step = get_global_step() + 0
        with control_dependencies([self._local_step]):
            return self._opt.compute_gradients(array.identity(loss), *args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Applies the gradients unless they are too old. Raises ValueError without a global step."""
        if global_step is None:
            raise ValueError("DropStaleGradientOptimizer needs the global_step that gradients are compared with.")
        pairs = list(grads_and_vars)
        with colocate_with(global_step):
            counter = get_variable("stale_counter", [], initializer=init_ops.Zeros(), trainable=False)

        def accepted() -> Any:
            applied = self._opt.apply_gradients(pairs, global_step=global_step, name=name)
            with control_dependencies([applied]):
                return array.identity(0.0)

        waited = [
            gradient.op if isinstance(gradient, IndexedSlices) else gradient
            for gradient, _ in pairs
            if gradient is not None
        ]
        with control_dependencies(waited), colocate_with(global_step):
            age = array.reshape(global_step - self._local_step, shape=())
        dropped = cond(math.less_equal(age, self._staleness), accepted, lambda: array.identity(1.0))
        update = counter.assign_add(dropped)
        share = counter / math.cast(global_step + 1, dtypes.float32)
        summary.scalar("Gradient staleness percentage", share)
        return update


class VariableClippingOptimizer(_Wrapping):
    """Clips variables after each update: the norm over the given dimensions is at most `max_norm`.

    `vars_to_clip_dims` is variable → dimensions. `colocate_clip_ops_with_vars` computes on the variable's device.
    """

    def __init__(
        self,
        opt: Any,
        vars_to_clip_dims: Mapping[Any, Sequence[int]],
        max_norm: Any,
        use_locking: bool = False,
        colocate_clip_ops_with_vars: bool = False,
        name: str = "VariableClipping",
    ) -> None:
        super().__init__(opt, use_locking, name)
        self._clip_dims = {var: list(dims) for var, dims in vars_to_clip_dims.items()}
        self._max_norm = max_norm
        self._colocate = colocate_clip_ops_with_vars

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Applies the gradients, then clips."""
        pairs = list(grads_and_vars)
        with name_scope(name, self._name) as scope:
            update = self._opt.apply_gradients(pairs, global_step=global_step)
            clipped = []
            with control_dependencies([update]):
                for gradient, var in pairs:
                    if gradient is None or var not in self._clip_dims:
                        continue
                    with name_scope(f"clip_{var.op.name}"):
                        sparse = isinstance(gradient, IndexedSlices)
                        clipped.append(self._clip_rows(gradient, var) if sparse else self._clip(var))
            return control_flow.group(update, *clipped, name=scope)

    def _near(self, var: Any) -> Any:
        return colocate_with(var) if self._colocate else nullcontext()

    def _clip(self, var: Any) -> Any:
        with self._near(var):
            value = var.read_value()
            excess = value - clip.clip_by_norm(value, self._max_norm, self._clip_dims[var])
        with colocate_with(var):
            return var.assign_sub(excess, use_locking=self._use_locking)

    def _clip_rows(self, gradient: IndexedSlices, var: Any) -> Any:
        dims = self._clip_dims[var]
        if 0 in dims:
            logging.warning(
                "Clipping norm across dims %s for %s is inefficient when including sparse dimension 0.",
                dims,
                var.op.name,
            )
            return self._clip(var)
        # A row may be in the gradient more than once, and is clipped once.
        indices, _ = slicing.unique(gradient.indices)
        with colocate_with(var):
            rows = slicing.gather(var, indices)
        with self._near(var):
            excess = rows - clip.clip_by_norm(rows, self._max_norm, dims)
        with colocate_with(var):
            return state_ops.scatter_sub(var, indices, excess, use_locking=self._use_locking)


# --- several tasks ---


def _is_zero(gradient: Any) -> Any:
    values = gradient.values if isinstance(gradient, IndexedSlices) else gradient
    return math.equal(math.count_nonzero(values), 0)


class MultitaskOptimizerWrapper:
    """An optimizer that leaves variables and slots alone where the gradient is all zeros, as of a task that sits out.

    Raises TypeError for anything but an optimizer.
    """

    def __init__(self, opt: Any) -> None:
        if not isinstance(opt, Optimizer):
            raise TypeError("Supplied optimizer must be an instance of tf.train.Optimizer")
        self._opt = opt
        for name in ("_apply_dense", "_resource_apply_dense", "_apply_sparse", "_resource_apply_sparse"):
            setattr(opt, name, _unless_zero(getattr(opt, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opt, name)


def _unless_zero(function: Any) -> Any:
    def apply(gradient: Any, *args: Any, **kwargs: Any) -> Any:
        def applied() -> Any:
            with control_dependencies([function(gradient, *args, **kwargs)]):
                return control_flow.no_op()

        return cond(_is_zero(gradient), control_flow.no_op, applied)

    return apply


def clip_gradients_by_global_norm(gradients_variables: Any, clip_norm: Any = 20.0) -> tuple[list[Any], Any]:
    """(pairs with a global norm of at most `clip_norm`, that norm), in which gradients of zeros have no part."""
    pairs = list(gradients_variables)

    def counted(gradient: Any) -> Any:
        if gradient is None:
            return None
        zero = array.zeros([], dtype=gradient.dtype)
        return cond(_is_zero(gradient), lambda: zero, lambda: gradient)

    norm = clip.global_norm([counted(gradient) for gradient, _ in pairs])
    clipped, _ = clip.clip_by_global_norm([gradient for gradient, _ in pairs], clip_norm, use_norm=norm)
    return list(zip(clipped, [var for _, var in pairs], strict=True)), norm
