"""TensorArrays and stacks whose elements are in a GPU's memory: the CPU's kernels, which only keep and hand on.

Handles, indices, lengths and flows are in the host's memory; only what is written, read, pushed and popped is on the
GPU. int32 stays on the host, as everywhere. A stack does not move its elements to the host (TensorFlow's swap_memory):
`swap_memory` is ignored.
"""

from __future__ import annotations

from tenfold_core import opdefs
from tenfold_kernels.cpu.data_flow_array import tensor_array_kernel
from tenfold_kernels.cuda._elements import DeviceElements
from tenfold_kernels.cuda._runtime import runtime_of
from tenfold_kernels.cuda._types import MOVED, ON_HOST
from tenfold_kernels.registry import EVERYTHING, Compute, KernelNode, kernel, shared_kernel

#: Op → the attribute that is its elements' type. Of each there are versions 1 to 3.
_TYPED = {
    "TensorArrayWrite": "T",
    "TensorArrayRead": "dtype",
    "TensorArrayGather": "dtype",
    "TensorArrayPack": "dtype",
    "TensorArrayScatter": "T",
    "TensorArrayUnpack": "T",
    "TensorArrayConcat": "dtype",
    "TensorArraySplit": "T",
    "StackPush": "T",
    "StackPop": "elem_type",
}
_UNTYPED = ("TensorArrayGrad", "TensorArraySize", "TensorArrayClose", "Stack", "StackClose")
#: Arguments that are elements; all others stay on the host.
_ELEMENTS = frozenset(("value", "elem", "output"))
_ARRAYS = ("TensorArray", "TensorArrayV2", "TensorArrayV3")


def _versions(op: str) -> list[str]:
    return [name for name in (op, f"{op}V2", f"{op}V3") if opdefs.has(name)]


def _register() -> None:
    for op, attr in _TYPED.items():
        for name in _versions(op):
            definition = opdefs.get(name)
            arguments = {argument.name for argument in (*definition.inputs, *definition.outputs)}
            shared_kernel(name, host=arguments - _ELEMENTS, **{attr: MOVED})
            shared_kernel(name, host=(EVERYTHING,), **{attr: ON_HOST})
    for op in (*_UNTYPED, "TensorArrayGradWithShape"):
        shared_kernel(*_versions(op), host=(EVERYTHING,))


_register()


@kernel(*_ARRAYS, device="GPU", host=(EVERYTHING,), dtype=MOVED)
def build_tensor_array(node: KernelNode) -> Compute:
    return tensor_array_kernel(node, DeviceElements(runtime_of(node.device)))


shared_kernel(*_ARRAYS, host=(EVERYTHING,), dtype=ON_HOST)
