"""AdamAsync: Adam whose powers of the decay rates belong to each variable, so that asynchronous workers share nothing.

Slots `<variable>/AdamAsync` (first moment), `_1` (second), `_2` and `_3` (the powers of `beta1` and `beta2`, a number
each). Sparse gradients update the moments of their rows only. In bfloat16 `beta2` would be 1 and the rate 0, so
variables of that type have slots and rates of float32. Follows DeepRec's training/adam_async.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph import control_dependencies
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.op_builder import apply_op
from tenfold.ops import control_flow, init_ops, math
from tenfold.ops.embedding_variables import is_embedding_variable
from tenfold.train.hyperparameter import as_dtype_of
from tenfold.train.optimizer import Optimizer
from tenfold.train.training_util import step_of_updates
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.graph.argument_types import RateLike
    from tenfold.graph.indexed_slices import IndexedSlices
    from tenfold.graph.tensor import Tensor

#: Slots, named as the ops' inputs.
_SLOTS = ("m", "v", "beta1_power", "beta2_power")


def _is_low(var: Any) -> bool:
    """Whether it is a variable in whose type the rates would be 1 and 0; embedding variables are updated in float32."""
    return var.dtype.base_dtype == dtypes.bfloat16 and not is_embedding_variable(var)


class AdamAsyncOptimizer(Optimizer):
    """Hyperparameters are floats, scalar tensors, or functions that return one.

    With `apply_sparse_rmsprop`, rows of sparse gradients are updated by RMSProp with the momentum `beta1` and the decay
    `beta2`, and the powers stay as they are. Raises ValueError for a sparse gradient of an ordinary variable
    of bfloat16.
    """

    def __init__(
        self,
        learning_rate: RateLike = 0.001,
        beta1: RateLike = 0.9,
        beta2: RateLike = 0.999,
        epsilon: RateLike = 1e-8,
        use_locking: bool = False,
        apply_sparse_rmsprop: bool = False,
        name: str = "AdamAsync",
    ) -> None:
        super().__init__(use_locking, name)
        self._hyper = {"lr": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon": epsilon}
        self._apply_sparse_rmsprop = apply_sparse_rmsprop
        self._tensors: dict[str, Tensor] = {}

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            of_var = var.dtype.base_dtype
            for name in ("m", "v"):
                if _is_low(var):
                    self._get_or_make_slot_with_initializer(
                        var, init_ops.Zeros(), var.get_shape(), dtypes.float32, name, self._name
                    )
                else:
                    self._zeros_slot(var, name, self._name)
            # an embedding variable's updates are of float32, at least
            narrow = _is_low(var) or (is_embedding_variable(var) and of_var.size < dtypes.float32.size)
            dtype = dtypes.float32 if narrow else of_var
            for rate in ("beta1", "beta2"):
                start = convert_to_tensor(self._call_if_callable(self._hyper[rate]), dtype=dtype)
                self._get_or_make_slot(var, start, f"{rate}_power", self._name)

    def _prepare(self) -> None:
        names = {"lr": "learning_rate"}
        self._tensors = {
            key: convert_to_tensor(self._call_if_callable(value), name=names.get(key, key))
            for key, value in self._hyper.items()
        }

    def _apply(self, op: str, var: Any, grad: Tensor, **more: Any) -> Any:
        resource = "Resource" in op
        slots: dict[str, Any] = {name: self.get_slot(var, name) for name in _SLOTS}
        target = grad if resource else var
        return apply_op(
            op,
            var=var.handle if resource else var,
            **{name: slot.handle if resource else slot for name, slot in slots.items()},
            **{key: as_dtype_of(value, target) for key, value in self._tensors.items()},
            grad=grad,
            use_locking=self._use_locking,
            **more,
        )

    def _apply_low(self, grad: Tensor, var: Any) -> Any:
        """Updates a bfloat16 variable by a float32 change, which is rounded. Each variable is added to at once; what
        another worker does between two of them, it does, as between two updates."""
        slots: dict[str, Any] = {name: self.get_slot(var, name) for name in _SLOTS}
        rates = {key: math.cast(value, dtypes.float32) for key, value in self._tensors.items()}
        wide = math.cast(grad, dtypes.float32)
        powers = {name: slots[f"{name}_power"].read_value() for name in ("beta1", "beta2")}
        m = slots["m"].assign_add((wide - slots["m"].read_value()) * (1.0 - rates["beta1"]))
        v = slots["v"].assign_add((math.square(wide) - slots["v"].read_value()) * (1.0 - rates["beta2"]))
        rate = rates["lr"] * math.sqrt(1.0 - powers["beta2"]) / (1.0 - powers["beta1"])
        change = rate * m / (math.sqrt(v) + rates["epsilon"])
        updated = var.assign_sub(math.cast(change, var.dtype.base_dtype), use_locking=self._use_locking)
        with control_dependencies([updated]):
            grown = [slots[f"{name}_power"].assign(power * rates[name]) for name, power in powers.items()]
        return control_flow.group(updated, *grown)

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        if _is_low(var):
            return self._apply_low(grad, var)
        return self._apply("ApplyAdamAsync", var, grad).op

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        if _is_low(handle):
            return self._apply_low(grad, handle)
        return self._apply("ResourceApplyAdamAsync", handle, grad)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        self._assert_full_precision([var])
        how = {"indices": grad.indices, "apply_sparse_rmsprop": self._apply_sparse_rmsprop}
        return self._apply("SparseApplyAdamAsync", var, grad.values, **how).op

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        self._assert_full_precision([handle])
        how = {"indices": indices, "apply_sparse_rmsprop": self._apply_sparse_rmsprop}
        return self._apply("ResourceSparseApplyAdamAsync", handle, grad, **how)

    def _embedding_apply_sparse(self, grad: Tensor, var: Any, ids: Tensor) -> Any:
        how = {"indices": ids, "apply_sparse_rmsprop": self._apply_sparse_rmsprop, "global_step": step_of_updates()}
        return self._apply("KvResourceSparseApplyAdamAsync", var, grad, **how)
