"""Adam for sparse gradients that touches the rows of a step only, with Nesterov's momentum, and with a maximum norm.

Subclasses of train/adam.py. Follows TensorFlow 1.15's contrib/opt/python/training (lazy_adam_optimizer.py,
nadam_optimizer.py, adamax.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.op_builder import apply_op
from tenfold.ops import control_flow, math, slicing, state_ops
from tenfold.train.adam import AdamOptimizer
from tenfold.train.hyperparameter import as_dtype_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold.graph.indexed_slices import IndexedSlices
    from tenfold.graph.tensor import Tensor

    Scatter = Callable[[Any, Any, Any], Any]


def _resource_scatter(op_type: str) -> Scatter:
    """A function that scatters into a resource variable, and gives its value then."""

    def scatter(var: Any, indices: Any, rows: Any) -> Any:
        done = apply_op(op_type, resource=var.handle, indices=indices, updates=rows)
        with var.graph.control_dependencies([done]):
            return var.value()

    return scatter


class LazyAdamOptimizer(AdamOptimizer):
    """Adam whose moments, of rows that a sparse gradient lacks, stay: much less work, and not the same result."""

    def _rows(self, rows: Any, var: Any, indices: Any, update: Scatter, subtract: Scatter) -> Any:
        p = self._parameters(rows)
        rate = p["lr"] * math.sqrt(1 - p["beta2_power"]) / (1 - p["beta1_power"])
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_rows = p["beta1"] * slicing.gather(m, indices) + (1 - p["beta1"]) * rows
        v_rows = p["beta2"] * slicing.gather(v, indices) + (1 - p["beta2"]) * math.square(rows)
        m_t, v_t = update(m, indices, m_rows), update(v, indices, v_rows)
        changed = subtract(var, indices, rate * m_rows / (math.sqrt(v_rows) + p["epsilon"]))
        return control_flow.group(changed, m_t, v_t)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        def of(scatter: Any) -> Scatter:
            return lambda ref, indices, rows: scatter(ref, indices, rows, use_locking=self._use_locking)

        return self._rows(grad.values, var, grad.indices, of(state_ops.scatter_update), of(state_ops.scatter_sub))

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        update, subtract = _resource_scatter("ResourceScatterUpdate"), _resource_scatter("ResourceScatterSub")
        return self._rows(grad, handle, indices, update, subtract)


class NadamOptimizer(AdamOptimizer):
    """Adam with Nesterov's momentum."""

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        return apply_op(
            "ApplyAdam",
            var=var,
            m=self.get_slot(var, "m"),
            v=self.get_slot(var, "v"),
            grad=grad,
            use_locking=self._use_locking,
            use_nesterov=True,
            **self._parameters(var),
        ).op

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        m: Any = self.get_slot(handle, "m")
        v: Any = self.get_slot(handle, "v")
        return apply_op(
            "ResourceApplyAdam",
            var=handle.handle,
            m=m.handle,
            v=v.handle,
            grad=grad,
            use_locking=self._use_locking,
            use_nesterov=True,
            **self._parameters(grad),
        )

    def _apply_sparse_shared(self, rows: Tensor, var: Any, indices: Tensor, scatter_add: Scatter) -> Any:
        p = self._parameters(rows)
        rate = p["lr"] * math.sqrt(1 - p["beta2_power"]) / (1 - p["beta1_power"])
        scaled = rows * (1 - p["beta1"])
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_t = self._decayed_plus(m, p["beta1"], indices, scaled, scatter_add)
        ahead = scaled + p["beta1"] * slicing.gather(m_t, indices)
        v_t = self._decayed_plus(v, p["beta2"], indices, rows * rows * (1 - p["beta2"]), scatter_add)
        root = math.sqrt(slicing.gather(v_t, indices))
        update = scatter_add(var, indices, -rate * ahead / (root + p["epsilon"]))
        return control_flow.group(update, ahead, v_t)


class AdaMaxOptimizer(AdamOptimizer):
    """Adam that scales by the largest recent gradient instead of the root of the mean square."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "AdaMax",
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _get_beta_accumulators(self) -> Any:
        return self._get_non_slot_variable("beta1_power", get_default_graph())

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        first = min(var_list, key=lambda var: str(var.name))
        self._create_non_slot_variable(self._beta1, "beta1_power", first)
        for var in var_list:
            self._zeros_slot(var, "m", self._name)
            self._zeros_slot(var, "v", self._name)

    def _scalars(self, target: Any) -> dict[str, Any]:
        given = {
            "beta1_power": math.cast(self._get_beta_accumulators(), target.dtype.base_dtype),
            "lr": self._lr_t,
            "beta1": self._beta1_t,
            "beta2": self._beta2_t,
            "epsilon": self._epsilon_t,
        }
        return {name: as_dtype_of(value, target) for name, value in given.items()}

    def _dense(self, grad: Any, var: Any) -> Any:
        p = self._scalars(grad)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_t = state_ops.assign(m, m * p["beta1"] + grad * (1 - p["beta1"]), use_locking=self._use_locking)
        v_t = state_ops.assign(v, math.maximum(v * p["beta2"], math.abs(grad)), use_locking=self._use_locking)
        step = p["lr"] / (1 - p["beta1_power"]) * (m_t / (v_t + p["epsilon"]))
        return control_flow.group(state_ops.assign_sub(var, step, use_locking=self._use_locking))

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        return self._dense(grad, var)

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        return self._dense(grad, handle)

    def _rows(self, rows: Any, var: Any, indices: Any, update: Scatter, add: Scatter) -> Any:
        p = self._scalars(rows)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_rows = slicing.gather(m, indices) * p["beta1"] + rows * (1 - p["beta1"])
        v_rows = math.maximum(slicing.gather(v, indices) * p["beta2"], math.abs(rows))
        step = -p["lr"] / (1 - p["beta1_power"]) * (m_rows / (v_rows + p["epsilon"]))
        return control_flow.group(add(var, indices, step), update(m, indices, m_rows), update(v, indices, v_rows))

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        def of(scatter: Any) -> Scatter:
            return lambda ref, indices, rows: scatter(ref, indices, rows, use_locking=self._use_locking)

        return self._rows(grad.values, var, grad.indices, of(state_ops.scatter_update), of(state_ops.scatter_add))

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        update, add = _resource_scatter("ResourceScatterUpdate"), _resource_scatter("ResourceScatterAdd")
        return self._rows(grad, handle, indices, update, add)

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        power = self._get_beta_accumulators()
        graph = get_default_graph()
        with graph.control_dependencies(update_ops), graph.colocate_with(power.op):
            next_power = power.assign(power * self._beta1_t, use_locking=self._use_locking)
        return control_flow.group(*update_ops, next_power, name=name_scope)
