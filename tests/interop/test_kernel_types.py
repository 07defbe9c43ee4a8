"""Every op that both have kernels of takes the types that TensorFlow's own CPU kernels take, but for the list below."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from tenfold_core import dtypes, errors, opdefs
from tenfold_kernels import registry
from tenfold_kernels.resources.state import ResourceManager

if TYPE_CHECKING:
    from collections.abc import Callable

_DUMP = """
import json
from tensorflow.python.framework import dtypes, kernels
found = {}
for kernel in kernels.get_all_registered_kernels().kernel:
    if kernel.device_type == "CPU" and not kernel.label:
        types = {c.name: [dtypes.as_dtype(t).name for t in c.allowed_values.list.type] for c in kernel.constraint}
        found.setdefault(kernel.op, []).append(types)
print(json.dumps(found))
"""

#: Quantized types, floats of a byte and integers of less: their kernels are those of other programs.
_OTHERS = ("q", "float8", "float4", "int4", "uint4", "int2", "uint2")

_COMPLEX = frozenset(("complex64", "complex128"))
#: (ops whose names contain this, types, why TensorFlow's kernels for them have no twin here)
_WITHOUT = (
    ("Apply", _COMPLEX, "no program of the op census trains complex variables"),
    ("Bincount", _COMPLEX, "nothing is counted in complex numbers"),
    ("Acos", frozenset(("int8", "int16", "int32", "int64")), "its definition does not allow them to a client"),
    ("Conj", frozenset(("variant",)), "nobody sends a list to be conjugated"),
    ("_FusedConv2D", frozenset(("int8",)), "a quantized convolution"),
)


def _is_left_out(op: str, types: tuple[str, ...]) -> bool:
    return any(part in op and not without.isdisjoint(types) for part, without, _ in _WITHOUT)


def test_kernels_take_the_types_that_tensorflows_take(ask_tensorflow: Callable[..., Any]) -> None:
    theirs = ask_tensorflow(_DUMP)
    device, resources = "/job:a/replica:0/task:0/device:CPU:0", ResourceManager()

    missing = set()
    for op in opdefs.names():
        if not registry.has_kernel(op, "CPU"):
            continue
        for constraints in theirs.get(op, ()):
            for types in itertools.product(*constraints.values()):
                if any(name.startswith(_OTHERS) for name in types) or _is_left_out(op, types):
                    continue
                attrs = dict(zip(constraints, map(dtypes.as_dtype, types), strict=True))
                try:
                    registry.lookup(registry.KernelNode("n", op, attrs, (), (), device, resources), "CPU")
                except errors.OpError:
                    missing.add((op, types))

    assert missing == set()
