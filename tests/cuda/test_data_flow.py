"""TensorArrays and stacks of a GPU: the same stories as on the CPU, with elements in the GPU's memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support import gpu_runs, kernel_runs
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels import registry
from tenfold_kernels.cuda._arrays import DeviceArray
from tenfold_kernels.resources.handles import resource_of
from tenfold_kernels.resources.state import ResourceManager

F = np.float32
X = np.arange(12, dtype=F).reshape(4, 3)


def runner(device: str) -> Any:
    """Runs ops on one device, whose resources live as long as the runner."""
    resources = ResourceManager()

    def run(op: str, inputs: list[Any], **attrs: Any) -> Any:
        if device == gpu_runs.GPU:
            return gpu_runs.run_op(op, inputs, resources=resources, **attrs)
        values = [kernel_runs.as_value(value) for value in inputs]
        node = kernel_runs.make_node(op, values, attrs, resources, op)
        with registry.quiet():
            return registry.lookup(node, "CPU")(node)(*values)

    return run


def whole(value: Any) -> Any:
    return np.array(value, np.int32)


def new(run: Any, size: int, dtype: Any = dtypes.float32, **attrs: Any) -> list[Any]:
    return list(run("TensorArrayV3", [whole(size)], dtype=dtype, **attrs))


def unpack_and_pack(run: Any, dtype: Any) -> list[Any]:
    handle, flow = new(run, 4, dtypes.as_dtype(dtype))
    value = (X % 2).astype(dtype)
    flow = run("TensorArrayScatterV3", [handle, whole([3, 0, 1, 2]), value, flow])
    size = run("TensorArraySizeV3", [handle, flow])
    return [size, run("TensorArrayGatherV3", [handle, whole([0, 2, 3]), flow], dtype=dtypes.as_dtype(dtype))]


def write_and_read(run: Any, dtype: Any) -> list[Any]:
    handle, flow = new(run, 0, dtypes.as_dtype(dtype), dynamic_size=True)
    for index, value in enumerate((1, 0)):
        flow = run("TensorArrayWriteV3", [handle, whole(index), np.array(value, dtype), flow])
    packed = run("TensorArrayGatherV3", [handle, whole([1]), flow], dtype=dtypes.as_dtype(dtype))
    return [packed, run("TensorArrayReadV3", [handle, whole(0), flow], dtype=dtypes.as_dtype(dtype))]


def split_and_concat(run: Any, dtype: Any) -> list[Any]:
    handle, flow = new(run, 3, dtypes.as_dtype(dtype))
    flow = run("TensorArraySplitV3", [handle, X.astype(dtype), np.array([1, 0, 3]), flow])
    return list(run("TensorArrayConcatV3", [handle, flow], dtype=dtypes.as_dtype(dtype)))


def push_and_pop(run: Any, dtype: Any) -> list[Any]:
    handle = run("StackV2", [whole(-1)], elem_type=dtypes.as_dtype(dtype))
    pushed = [run("StackPushV2", [handle, X[i].astype(dtype)]) for i in range(2)]
    popped = [run("StackPopV2", [handle], elem_type=dtypes.as_dtype(dtype)) for _ in range(2)]
    run("StackCloseV2", [handle])
    return pushed + popped


def by_names(run: Any, dtype: Any) -> list[Any]:
    """The second version, whose handles are strings."""
    handle = run("TensorArrayV2", [whole(2)], dtype=dtypes.as_dtype(dtype))
    flow = np.zeros((), F)
    flow = run("TensorArrayWriteV2", [handle, whole(1), X.astype(dtype), flow])
    return [run("TensorArrayReadV2", [handle, whole(1), flow], dtype=dtypes.as_dtype(dtype))]


def nothing(run: Any, dtype: Any) -> list[Any]:
    element = {"dtype": dtypes.as_dtype(dtype)}
    handle, flow = new(run, 0, dtypes.as_dtype(dtype))
    gathered = run("TensorArrayGatherV3", [handle, whole([]), flow], element_shape=TensorShape([2]), **element)
    rest = run("TensorArrayConcatV3", [handle, flow], element_shape_except0=TensorShape([2]), **element)
    return [gathered, *rest]


def gradients(run: Any, dtype: Any) -> list[Any]:
    """What is written twice to a gradient's array is added up; where nothing was, it reads zeros."""
    handle, flow = new(run, 3, dtypes.as_dtype(dtype))
    flow = run("TensorArrayScatterV3", [handle, whole([0, 1, 2]), X[:3].astype(dtype), flow])
    gradient, flow = run("TensorArrayGradV3", [handle, flow], source=b"g")
    for value in (X[0], X[1]):
        flow = run("TensorArrayWriteV3", [gradient, whole(1), value.astype(dtype), flow])
    return [run("TensorArrayReadV3", [gradient, whole(i), flow], dtype=dtypes.as_dtype(dtype)) for i in (1, 2)]


STORIES = [unpack_and_pack, write_and_read, split_and_concat, push_and_pop, by_names, nothing]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bool", "int64", "int32"])
@pytest.mark.parametrize("story", STORIES, ids=[story.__name__ for story in STORIES])
def test_a_story_is_the_cpus(story: Any, dtype: str) -> None:
    same(story, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int32"])
def test_gradients_are_added_up(dtype: str) -> None:
    same(gradients, dtype)


def same(story: Any, dtype: str) -> None:
    ours, theirs = story(runner(gpu_runs.GPU), dtype), story(runner(kernel_runs.DEVICE), dtype)

    for mine, wanted in zip(ours, theirs, strict=True):
        assert mine.dtype == wanted.dtype
        np.testing.assert_array_equal(mine, wanted)


def test_gradients_of_a_type_without_arithmetic_say_so() -> None:
    with pytest.raises(errors.UnimplementedError, match=r"^No sum of bool on a GPU\.$"):
        gradients(runner(gpu_runs.GPU), "bool")


def test_elements_are_in_the_memory_of_the_gpu() -> None:
    node = kernel_runs.make_node(
        "TensorArrayV3", [whole(1)], {"dtype": dtypes.float32}, ResourceManager(), "array", gpu_runs.GPU
    )
    handle, flow = registry.lookup(node, "GPU")(node)(whole(1))

    gpu_runs.run_op("TensorArrayWriteV3", [handle, whole(0), X, flow], resources=node.resources)

    from tenfold_kernels.resources.tensor_arrays import TensorArray

    assert isinstance(resource_of(node, handle, TensorArray).read(0), DeviceArray)


def test_errors_are_the_cpus() -> None:
    run = runner(gpu_runs.GPU)
    handle, flow = new(run, 1)

    with pytest.raises(errors.InvalidArgumentError, match="Tried to write to index 3 but array is not resizeable"):
        run("TensorArrayWriteV3", [handle, whole(3), X, flow])
    with pytest.raises(errors.InvalidArgumentError, match="must be at least a vector"):
        run("TensorArrayScatterV3", [handle, whole([0]), F(1), flow])
    stack = run("StackV2", [whole(-1)], elem_type=dtypes.float32)
    with pytest.raises(errors.InvalidArgumentError, match=r"is empty when calling Pop\(\)"):
        run("StackPopV2", [stack], elem_type=dtypes.float32)
