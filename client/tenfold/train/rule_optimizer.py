"""RuleOptimizer: the common part of optimizers whose update is one op.

A subclass names the family of ops (`"Ftrl"` for ApplyFtrl, SparseApplyFtrl, ResourceApplyFtrl, …), which slot goes into
which input, and its scalars; this class chooses among the four ops. Users: rmsprop.py, ftrl.py, adadelta.py, ….
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.op_builder import apply_op
from tenfold.train.hyperparameter import as_dtype_of
from tenfold.train.optimizer import Optimizer
from tenfold_core import opdefs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold.graph.indexed_slices import IndexedSlices
    from tenfold.graph.tensor import Tensor


class RuleOptimizer(Optimizer):
    """An optimizer whose whole update is one op per variable."""

    #: The name of the gradient's input, which differs between the families.
    _gradient_input = "grad"

    def __init__(self, use_locking: bool, name: str) -> None:
        super().__init__(use_locking, name)
        #: Input name → hyperparameter as a scalar tensor; made by `_prepare`.
        self._scalar_tensors: dict[str, Tensor] = {}

    def _family(self) -> str:
        """The op's name without `Resource`, `Sparse` and `Apply`."""
        raise NotImplementedError

    def _slot_inputs(self) -> Mapping[str, str]:
        """Input name → slot name."""
        return {}

    def _hyperparameters(self) -> Mapping[str, tuple[str, Any]]:
        """Input name → (node name, value: a number, a scalar tensor, or a function that returns one)."""
        raise NotImplementedError

    def _prepare(self) -> None:
        self._scalar_tensors = {
            key: convert_to_tensor(self._call_if_callable(value), name=name)
            for key, (name, value) in self._hyperparameters().items()
        }

    def _other_inputs(self, var: Any) -> Mapping[str, Any]:
        """Inputs that are neither slots nor hyperparameters."""
        return {}

    def _apply(self, prefix: str, var: Any, grad: Tensor, indices: Tensor | None) -> Any:
        resource = "Resource" in prefix
        slots: dict[str, Any] = {key: self.get_slot(var, slot) for key, slot in self._slot_inputs().items()}
        target = grad if resource else var
        inputs: dict[str, Any] = {
            "var": var.handle if resource else var,
            **{key: slot.handle if resource else slot for key, slot in slots.items()},
            **{key: as_dtype_of(value, target) for key, value in self._scalar_tensors.items()},
            **self._other_inputs(var),
            self._gradient_input if indices is None else "grad": grad,
        }
        if indices is not None:
            inputs["indices"] = indices
        result = apply_op(f"{prefix}Apply{self._family()}", use_locking=self._use_locking, **inputs)
        return result if resource else result.op

    def _embedding_apply_sparse(self, grad: Tensor, var: Any, ids: Tensor) -> Any:
        if not opdefs.has(f"KvResourceSparseApply{self._family()}"):
            return super()._embedding_apply_sparse(grad, var, ids)
        return self._apply("KvResourceSparse", var, grad, ids)

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        return self._apply("", var, grad, None)

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        return self._apply("Resource", handle, grad, None)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        return self._apply("Sparse", var, grad.values, grad.indices)

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        return self._apply("ResourceSparse", handle, grad, indices)
