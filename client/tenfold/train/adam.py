"""Adam: steps scaled by running means of the gradient and of its square, with the start corrected for bias.

Slots `<variable>/Adam` (first moment) and `<variable>/Adam_1` (second); `beta1_power` and `beta2_power` belong to the
optimizer and are on the device of the first variable by name. Follows TensorFlow's training/adam.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.op_builder import apply_op
from tenfold.ops import control_flow, state_ops
from tenfold.train.hyperparameter import as_dtype_of
from tenfold.train.optimizer import Optimizer
from tenfold.train.training_util import step_of_updates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold.graph.argument_types import RateLike
    from tenfold.graph.indexed_slices import IndexedSlices
    from tenfold.graph.tensor import Tensor
    from tenfold.ops.variables import Variable


class AdamOptimizer(Optimizer):
    """Hyperparameters are floats, scalar tensors, or functions that return one. `epsilon` is "epsilon hat"."""

    def __init__(
        self,
        learning_rate: RateLike = 0.001,
        beta1: RateLike = 0.9,
        beta2: RateLike = 0.999,
        epsilon: RateLike = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._beta1 = beta1
        self._beta2 = beta2
        self._epsilon = epsilon
        self._lr_t: Any = None
        self._beta1_t: Any = None
        self._beta2_t: Any = None
        self._epsilon_t: Any = None

    def _get_beta_accumulators(self) -> tuple[Variable, Variable]:
        graph = get_default_graph()
        return self._get_non_slot_variable("beta1_power", graph), self._get_non_slot_variable("beta2_power", graph)

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        # The first by name, so that every worker puts them on the same parameter server.
        first = min(var_list, key=lambda var: str(var.name))
        self._create_non_slot_variable(self._beta1, "beta1_power", first)
        self._create_non_slot_variable(self._beta2, "beta2_power", first)
        for var in var_list:
            self._zeros_slot(var, "m", self._name)
            self._zeros_slot(var, "v", self._name)

    def _prepare(self) -> None:
        self._lr_t = convert_to_tensor(self._call_if_callable(self._lr), name="learning_rate")
        self._beta1_t = convert_to_tensor(self._call_if_callable(self._beta1), name="beta1")
        self._beta2_t = convert_to_tensor(self._call_if_callable(self._beta2), name="beta2")
        self._epsilon_t = convert_to_tensor(self._call_if_callable(self._epsilon), name="epsilon")

    def _parameters(self, target: Any) -> dict[str, Any]:
        beta1_power, beta2_power = self._get_beta_accumulators()
        return {
            "beta1_power": as_dtype_of(convert_to_tensor(beta1_power), target),
            "beta2_power": as_dtype_of(convert_to_tensor(beta2_power), target),
            "lr": as_dtype_of(self._lr_t, target),
            "beta1": as_dtype_of(self._beta1_t, target),
            "beta2": as_dtype_of(self._beta2_t, target),
            "epsilon": as_dtype_of(self._epsilon_t, target),
        }

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        parameters = self._parameters(var)
        return apply_op("ApplyAdam", var=var, m=m, v=v, grad=grad, use_locking=self._use_locking, **parameters).op

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
            **self._parameters(grad),
        )

    def _apply_sparse_shared(
        self, rows: Tensor, var: Any, indices: Tensor, scatter_add: Callable[[Any, Tensor, Any], Any]
    ) -> Any:
        # There is no sparse Adam op: both moments decay everywhere, and only some rows get a gradient.
        p = self._parameters(rows)
        rate = p["lr"] * apply_op("Sqrt", x=1 - p["beta2_power"]) / (1 - p["beta1_power"])
        m: Any = self.get_slot(var, "m")
        v: Any = self.get_slot(var, "v")
        m_t = self._decayed_plus(m, p["beta1"], indices, rows * (1 - p["beta1"]), scatter_add)
        v_t = self._decayed_plus(v, p["beta2"], indices, (rows * rows) * (1 - p["beta2"]), scatter_add)
        step = rate * m_t / (apply_op("Sqrt", x=v_t) + p["epsilon"])
        update = state_ops.assign_sub(var, step, use_locking=self._use_locking)
        return control_flow.group(update, m_t, v_t)

    def _decayed_plus(
        self, slot: Any, beta: Any, indices: Tensor, rows: Any, scatter_add: Callable[[Any, Tensor, Any], Any]
    ) -> Any:
        decayed = state_ops.assign(slot, slot * beta, use_locking=self._use_locking)
        with slot.graph.control_dependencies([decayed]):
            return scatter_add(slot, indices, rows)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        def scatter_add(slot: Any, indices: Tensor, rows: Any) -> Any:
            return state_ops.scatter_add(slot, indices, rows, use_locking=self._use_locking)

        return self._apply_sparse_shared(grad.values, var, grad.indices, scatter_add)

    def _embedding_apply_sparse(self, grad: Tensor, var: Any, ids: Tensor) -> Any:
        return self._embedding_update(grad, var, ids, None)

    def _embedding_update(self, grad: Tensor, var: Any, ids: Tensor, weight_decay: Tensor | None) -> Any:
        m: Any = self.get_slot(var, "m")
        v: Any = self.get_slot(var, "v")
        return apply_op(
            "KvResourceSparseApplyAdam",
            var=var.handle,
            m=m.handle,
            v=v.handle,
            grad=grad,
            indices=ids,
            global_step=step_of_updates(),
            weight_decay=as_dtype_of(convert_to_tensor(0.0) if weight_decay is None else weight_decay, grad),
            apply_weight_decay=weight_decay is not None,
            use_locking=self._use_locking,
            **self._parameters(grad),
        )

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        def scatter_add(slot: Any, indices: Tensor, rows: Any) -> Any:
            added = apply_op("ResourceScatterAdd", resource=slot.handle, indices=indices, updates=rows)
            with slot.graph.control_dependencies([added]):
                return slot.value()

        return self._apply_sparse_shared(grad, handle, indices, scatter_add)

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        # The powers change only after every update has used them.
        graph = get_default_graph()
        beta1_power, beta2_power = self._get_beta_accumulators()
        with graph.control_dependencies(update_ops), graph.colocate_with(beta1_power.op):
            update_beta1 = beta1_power.assign(beta1_power * self._beta1_t, use_locking=self._use_locking)
            update_beta2 = beta2_power.assign(beta2_power * self._beta2_t, use_locking=self._use_locking)
        return control_flow.group(*update_ops, update_beta1, update_beta2, name=name_scope)
