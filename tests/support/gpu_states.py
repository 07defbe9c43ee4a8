"""Ops of a GPU that keep a state, at odd lengths: a row or a story each. For tests/cuda/.

As in gpu_shapes.py a row gives the op's inputs of n elements or rows, here with the variable's value first. A story is
several ops on one variable, array or stack.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from support import gpu_runs, kernel_runs
from support.gpu_shapes import bounds, half, i, j, turn
from support.gpu_variables import Pair, inputs_of
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels import optimizer_rules, registry
from tenfold_kernels.cuda import copies
from tenfold_kernels.resources.handles import RefHandle
from tenfold_kernels.resources.state import ResourceManager, Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Makes = dict[str, "Callable[[Any, int], list[Any]]"]


def _named(prefixes: tuple[str, ...], names: tuple[str, ...]) -> list[str]:
    return [prefix + name for prefix in prefixes for name in names]


_WHOLE: Makes = {
    **dict.fromkeys(
        ("Assign", "AssignAdd", "AssignSub", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"),
        lambda v, n: [v(n, 2), v(n, 2)],
    ),
    **dict.fromkeys(("ReadVariableOp", "RefIdentity", "IsVariableInitialized"), lambda v, n: [v(n, 2)]),
    **dict.fromkeys(
        ("StridedSliceAssign", "ResourceStridedSliceAssign"), lambda v, n: [v(n, 3), *bounds(n), v(half(n), 2)]
    ),
    "ResourceGather": lambda v, n: [v(5, 2), i(turn(n, 5))],
    "ResourceGatherNd": lambda v, n: [v(5, 2), j(turn(n, 5)[:, None])],
}
_SCATTERS: Makes = {
    **dict.fromkeys(
        _named(("Scatter", "ResourceScatter"), ("Add", "Sub", "Mul", "Div", "Min", "Max", "Update")),
        lambda v, n: [v(4, 2), i(turn(n, 3)), v(n, 2)],
    ),
    **dict.fromkeys(
        _named(("ScatterNd", "ResourceScatterNd"), ("Add", "Sub", "Min", "Max", "Update")),
        lambda v, n: [v(4, 2), j(turn(n, 3)[:, None]), v(n, 2)],
    ),
}
#: Op → the value of its variable, then its other inputs, of n.
VARIABLES: Makes = {**_WHOLE, **_SCATTERS}


def update(op: str, v: Any, n: int) -> tuple[list[Any], tuple[int, ...]]:
    """An optimizer's inputs, and the places of those that are variables."""
    layout = optimizer_rules.layout_of(op)
    start = [v(n, 2) if not layout.sparse else v(5, 2) for _ in layout.variables]
    if "Centered" in op:
        # the mean of the squares is more than the square of the mean
        start[1] = (start[1] * start[1] * start[1] * 0.1).astype(start[1].dtype)
    return inputs_of(op, start, v(n, 2), i(turn(n, 3)) if layout.sparse else None), layout.variables


def on_variables(op: str, inputs: list[Any], where: tuple[int, ...], **attrs: Any) -> Iterator[tuple[Any, Any]]:
    """Runs the op on both devices. (the GPU's, the CPU's) of each output, then of each variable."""
    pair = Pair(inputs, where, resource=op.startswith("Resource") or "VariableOp" in op)
    there = gpu_runs.run_op(op, pair.on_gpu, resources=pair.gpu_resources, **attrs)
    here = kernel_runs.run_op(op, pair.on_cpu, resources=pair.cpu_resources, **attrs)
    if not isinstance(here, Variable) and here is not None:
        yield there, here
    yield from pair.values()


def a_variable(op: str, run: Any, dtype: Any, v: Any, n: int) -> list[Any]:
    made = run(op, [], shape=TensorShape([n, 2]), dtype=dtype)
    run("Assign", [made, v(n, 2)])
    return [gpu_runs.to_host(made.value)]


def _array(run: Any, version: str, dtype: Any, size: int) -> tuple[Any, Any]:
    made = run(f"TensorArray{version}", [i(size)], dtype=dtype, clear_after_read=False)
    return made if version == "V3" else (made, np.zeros((), np.float32))


def scattered(version: str, run: Any, dtype: Any, v: Any, n: int) -> list[Any]:
    """n elements of two, written from the last on."""
    handle, flow = _array(run, version, dtype, n)
    flow = run(f"TensorArrayScatter{version}", [handle, i(np.arange(n)[::-1]), v(n, 2), flow])
    gathered = run(
        f"TensorArrayGather{version}",
        [handle, i(np.arange(n)), flow],
        dtype=dtype,
        element_shape=TensorShape([2]),
    )
    joined = run(f"TensorArrayConcat{version}", [handle, flow], dtype=dtype, element_shape_except0=TensorShape([]))
    return [gathered, *joined]


def split(version: str, run: Any, dtype: Any, v: Any, n: int) -> list[Any]:
    """Two elements, of half of n rows each."""
    handle, flow = _array(run, version, dtype, 2)
    flow = run(f"TensorArraySplit{version}", [handle, v(n, 2), j([half(n), n - half(n)]), flow])
    return [run(f"TensorArrayRead{version}", [handle, i(at), flow], dtype=dtype) for at in (0, 1)]


def written(version: str, run: Any, dtype: Any, v: Any, n: int) -> list[Any]:
    """One element of n rows."""
    handle, flow = _array(run, version, dtype, 1)
    flow = run(f"TensorArrayWrite{version}", [handle, i(0), v(n, 2), flow])
    return [run(f"TensorArrayRead{version}", [handle, i(0), flow], dtype=dtype)]


def unpacked(version: str, run: Any, dtype: Any, v: Any, n: int) -> list[Any]:
    """The first version's words for n elements of two."""
    handle, flow = _array(run, version, dtype, n)
    flow = run("TensorArrayUnpack", [handle, v(n, 2), flow])
    return [run("TensorArrayPack", [handle, flow], dtype=dtype, element_shape=TensorShape([2]))]


def summed(version: str, run: Any, dtype: Any, v: Any, n: int) -> list[Any]:
    """What is written twice to a gradient's array is added up."""
    handle, flow = _array(run, version, dtype, 1)
    flow = run(f"TensorArrayWrite{version}", [handle, i(0), v(n, 2), flow])
    made = run(f"TensorArrayGrad{version}", [handle, flow], source=b"g")
    gradient, flow = made if version == "V3" else (made, flow)
    for _ in range(2):
        flow = run(f"TensorArrayWrite{version}", [gradient, i(0), v(n, 2), flow])
    return [run(f"TensorArrayRead{version}", [gradient, i(0), flow], dtype=dtype)]


def stacked(version: str, run: Any, dtype: Any, v: Any, n: int) -> list[Any]:
    handle = run(f"Stack{version}", [i(-1)] if version else [], elem_type=dtype)
    pushed = [run(f"StackPush{version}", [handle, v(n, 2)]) for _ in range(2)]
    return pushed + [run(f"StackPop{version}", [handle], elem_type=dtype) for _ in range(2)]


_VERSIONS = ("", "V2", "V3")
#: Name → (the story of type, maker of values and n, the ops on the GPU's values that it is about).
STORIES: dict[str, tuple[Callable[[Any, Any, Any, int], list[Any]], tuple[str, ...]]] = {
    **{op: (partial(a_variable, op), (op,)) for op in ("Variable", "VariableV2")},
    **{
        f"{story.__name__}{version}": (partial(story, version), tuple(f"TensorArray{op}{version}" for op in ops))
        for story, ops in (
            (scattered, ("Scatter", "Gather", "Concat")),
            (split, ("Split", "Read")),
            (written, ("Write", "Read")),
            (summed, ("Write", "Read")),
        )
        for version in _VERSIONS
    },
    "unpacked": (partial(unpacked, ""), ("TensorArrayUnpack", "TensorArrayPack")),
    **{
        f"stacked{version}": (partial(stacked, version), (f"StackPush{version}", f"StackPop{version}"))
        for version in ("", "V2")
    },
}


def run_on(device: str, resources: ResourceManager, op: str, inputs: list[Any], **attrs: Any) -> Any:
    """Runs an op on one device; gives the host's arrays. As gpu_runs.run_op, for references to handles too."""
    values = [value if isinstance(value, RefHandle) else kernel_runs.as_value(value) for value in inputs]
    named = [np.array(b"", object) if isinstance(value, RefHandle) else value for value in values]
    node = kernel_runs.make_node(op, named, attrs, resources, op, device)
    kind = "GPU" if device == gpu_runs.GPU else "CPU"
    memory = registry.memory_of(op, node.attrs, kind)
    moved = memory[0] if memory else (False,) * len(values)
    with registry.quiet():
        given = [
            copies.kernel(device)(value) if there and isinstance(value, np.ndarray) else value
            for value, there in zip(values, moved, strict=True)
        ]
        return gpu_runs.to_host(registry.lookup(node, kind)(node)(*given))


def tell(name: str, device: str, *arguments: Any) -> list[Any]:
    """What a story gives on one device, with resources of its own."""
    return STORIES[name][0](partial(run_on, device, ResourceManager()), *arguments)


#: Every op that has a row or is in a story.
OPS = {*VARIABLES, *optimizer_rules.OPS, *(op for _, ops in STORIES.values() for op in ops)}
