"""MixedPrecisionLossScaleOptimizer: an optimizer whose loss is scaled by a LossScale, and its gradients back.

Follows TensorFlow 1.15's training/experimental/loss_scale_optimizer.py and mixed_precision.py. Tenfold computes in the
types that the graph has: the rewrite that the latter turns on for GPUs does not exist here, the scaling stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.ops import control_flow
from tenfold.ops.control_flow_cond import smart_cond
from tenfold.train import loss_scale as loss_scales
from tenfold.train.optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "MixedPrecisionLossScaleOptimizer",
    "disable_mixed_precision_graph_rewrite",
    "enable_mixed_precision_graph_rewrite",
]


class MixedPrecisionLossScaleOptimizer(Optimizer):
    """`opt` with its loss scaled by `loss_scale`: a number, "dynamic" or a LossScale.

    Raises ValueError for what is no Optimizer, and for another loss scale.
    """

    def __init__(self, opt: Optimizer, loss_scale: Any) -> None:
        if not isinstance(opt, Optimizer):
            raise ValueError(f'"opt" must be an instance of Optimizer, but got: {type(opt)}')
        super().__init__(opt._use_locking, opt.get_name())
        self._optimizer = opt
        found = loss_scales.get(loss_scale)
        if found is None:
            raise ValueError("loss_scale must be a number, 'dynamic' or a LossScale, not None")
        self._loss_scale = found

    def compute_gradients(
        self,
        loss: Any,
        var_list: Sequence[Any] | None = None,
        gate_gradients: int = Optimizer.GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Any]]:
        """As Optimizer's, of the scaled loss, scaled back."""
        loss = loss() if callable(loss) else loss
        grads_and_vars = self._optimizer.compute_gradients(
            loss * self._loss_scale(),
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        back = 1 / self._loss_scale()
        return [(_scaled(grad, back), variable) for grad, variable in grads_and_vars]

    def apply_gradients(
        self, grads_and_vars: Sequence[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Any:
        """As Optimizer's; with a dynamic scale nothing is applied or counted if a gradient is not finite."""
        if not isinstance(self._loss_scale, loss_scales.DynamicLossScale):
            return self._optimizer.apply_gradients(grads_and_vars, global_step, name)
        pairs = list(grads_and_vars)
        name = self.get_name() if name is None else name
        updated, should_apply = self._loss_scale.update([grad for grad, _ in pairs])
        applied = smart_cond(
            should_apply,
            lambda: self._optimizer.apply_gradients(pairs, global_step, f"{name}-wrapped"),
            control_flow.no_op,
        )
        return control_flow.group(applied, updated, name=name)


def _scaled(grad: Any, factor: Any) -> Any:
    if grad is None:
        return None
    if isinstance(grad, IndexedSlices):
        return IndexedSlices(grad.values * factor, grad.indices, grad.dense_shape)
    return grad * factor


def enable_mixed_precision_graph_rewrite(opt: Optimizer, loss_scale: Any = "dynamic") -> Optimizer:
    """`opt` in a MixedPrecisionLossScaleOptimizer. Nothing else changes: on CPUs TensorFlow rewrites no graph either.

    Raises ValueError for an optimizer that is one already, or none.
    """
    if isinstance(opt, MixedPrecisionLossScaleOptimizer) or type(opt).__name__ == "LossScaleOptimizer":
        raise ValueError(
            f'"opt" must not already be an instance of a {type(opt).__name__}. `enable_mixed_precision_graph_rewrite` '
            f"will automatically wrap the optimizer with a {type(opt).__name__}."
        )
    if not isinstance(opt, Optimizer):
        raise ValueError(
            f'"opt" must be an instance of a tf.train.Optimizer or a tf.keras.optimizers.Optimizer, but got: {opt}'
        )
    return MixedPrecisionLossScaleOptimizer(opt, loss_scale)


def disable_mixed_precision_graph_rewrite() -> None:
    """Does nothing: no graph is rewritten."""
