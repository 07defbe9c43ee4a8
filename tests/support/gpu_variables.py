"""An op on variables, on a GPU and on the CPU: the same values in both, compared after a run. For tests/cuda/."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from support import gpu_runs, kernel_runs
from tenfold_core import dtypes, opdefs
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels import optimizer_rules
from tenfold_kernels.cuda import copies
from tenfold_kernels.cuda._variables import maker
from tenfold_kernels.resources.state import ResourceManager, Variable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import SimpleNamespace

#: What an optimizer's scalars are.
SCALARS = {
    "alpha": 0.1,
    "lr": 0.1,
    "momentum": 0.8,
    "rho": 0.9,
    "epsilon": 0.01,
    "beta1": 0.9,
    "beta2": 0.99,
    "beta1_power": 0.7,
    "beta2_power": 0.9,
    "l1": 0.05,
    "l2": 0.2,
    "l2_shrinkage": 0.1,
    "lr_power": -0.5,
}


def inputs_of(op: str, start: list[Any], grad: Any, indices: Any = None, **scalars: float) -> list[Any]:
    """The op's inputs in order: `start` are the values of var and its slots."""
    layout = optimizer_rules.layout_of(op)
    values: dict[int, Any] = dict(zip(layout.variables, start, strict=True))
    values |= {layout.gradient: grad, layout.indices: indices}
    for name, place in layout.scalars:
        is_step = name == "global_step"
        values[place] = np.array(3) if is_step else np.array((SCALARS | scalars)[name], grad.dtype)
    return [values[place] for place in range(len(opdefs.get(op).inputs))]


class Pair:
    """The inputs of one op, of which those at `places` are variables: by reference, or by handle for a resource."""

    def __init__(self, inputs: Sequence[Any], places: Sequence[int], *, resource: bool) -> None:
        self._places = tuple(places)
        self.cpu_resources, self.gpu_resources = ResourceManager(), ResourceManager()
        self.on_cpu, self.on_gpu = list(inputs), list(inputs)
        self.cpu_variables: list[Variable] = []
        self.gpu_variables: list[Variable] = []
        for place in places:
            value = np.array(inputs[place])
            dtype, shape = dtypes.as_dtype(value.dtype), TensorShape(value.shape)
            if resource:
                attrs = {"dtype": dtype, "shape": shape, "name": f"v{place}", "shared_name": f"v{place}".encode()}
                for run, held, resources in (
                    (kernel_runs.run_op, self.on_cpu, self.cpu_resources),
                    (gpu_runs.run_op, self.on_gpu, self.gpu_resources),
                ):
                    held[place] = run("VarHandleOp", [], resources=resources, **attrs)
                    run("AssignVariableOp", [held[place], value], resources=resources)
            else:
                self.on_cpu[place] = Variable("v", dtype, shape)
                self.on_cpu[place].assign(value)
                self.on_gpu[place] = maker(gpu_runs.GPU)("v", dtype, shape)
                self.on_gpu[place].assign(copies.kernel(gpu_runs.GPU)(value))
            self.cpu_variables.append(self._variable(self.on_cpu[place], self.cpu_resources))
            self.gpu_variables.append(self._variable(self.on_gpu[place], self.gpu_resources))

    @staticmethod
    def _variable(value: Any, resources: ResourceManager) -> Variable:
        if isinstance(value, Variable):
            return value
        handle = value[()]
        return resources.lookup(handle.container, handle.name, Variable)

    def run(self, gpu: SimpleNamespace, op: str, **attrs: Any) -> None:
        """Runs it on both."""
        kernel_runs.run_op(op, self.on_cpu, resources=self.cpu_resources, **attrs)
        gpu.run(op, self.on_gpu, resources=self.gpu_resources, **attrs)

    def gpu_values(self) -> list[Any]:
        """What the variables of the GPU are."""
        return [variable.value.to_host() for variable in self.gpu_variables]

    def values(self) -> Iterator[tuple[Any, Any]]:
        """(the GPU's, the CPU's) of each variable."""
        return zip(self.gpu_values(), [variable.value for variable in self.cpu_variables], strict=True)
