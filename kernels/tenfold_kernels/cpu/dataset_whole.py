"""Ops that go through a whole dataset, or ask it for one element: reductions, single elements, elements by number.

They run on a thread of the datasets' pool while their step waits without one. Follows reduce_dataset_op.cc,
dataset_ops.cc, get_element_at_index and map_defun_op.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import errors
from tenfold_kernels.arrays import Array, invalid, scalar_object
from tenfold_kernels.cpu.dataset import captured_of
from tenfold_kernels.cpu.dataset_sources import function_of, number
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.datasets.core import Element, Run, dataset_of, element_of
from tenfold_kernels.resources.datasets.functional import check_outputs, only_element, reduced
from tenfold_kernels.resources.datasets.threads import pool
from tenfold_kernels.resources.state import ResourceHandle
from tenfold_kernels.resources.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable


def at_work(work: Callable[[Run], Any]) -> Waiting:
    """A Waiting for what `work` gives on a thread of the pool; the step's end cancels its calls."""
    run = Run()
    waiting = Waiting(run.close)

    def serve() -> None:
        outputs: Any = None
        error: errors.OpError | None = None
        if not waiting.is_open:
            return
        try:
            outputs = work(run)
        except errors.OpError as failure:
            error = failure
        except Exception as bug:  # must end the step, not leave it waiting
            error = errors.internal(f"{type(bug).__name__}: {bug}")
        run.close()
        if error is None:
            waiting.complete(outputs)
        else:
            waiting.fail(error)

    pool.submit(serve)
    return waiting


def _outputs(element: Element) -> Any:
    return element[0] if len(element) == 1 else element


@kernel("ReduceDataset", blocking=True)
def build_reduce(node: KernelNode) -> Compute:
    function, states = function_of(node, "f"), len(node.attrs["Tstate"])

    def compute(dataset: Array, *rest: Array) -> Any:
        found, initial, captured = dataset_of(dataset), captured_of(rest[:states]), captured_of(rest[states:])
        return at_work(lambda run: _outputs(reduced(found, run, function, initial, captured)))

    return compute


@kernel("DatasetToSingleElement", blocking=True)
def build_single_element(node: KernelNode) -> Compute:
    """The one element. Raises InvalidArgumentError for none and for more."""

    def compute(dataset: Array) -> Any:
        found = dataset_of(dataset)
        return at_work(lambda run: _outputs(only_element(found, run)))

    return compute


@kernel("GetElementAtIndex", blocking=True)
def build_element_at(node: KernelNode) -> Compute:
    """The element of a number. Raises OutOfRangeError beyond the end."""

    def compute(dataset: Array, index: Array) -> Any:
        found, place = dataset_of(dataset), number(index, "index")
        return at_work(lambda run: _outputs(found.at(place, run)))

    return compute


@kernel("MapDefun", blocking=True)
def build_map_defun(node: KernelNode) -> Compute:
    """The function of each row of the arguments, and of all of what was captured; the results on top of each other."""
    function, count = function_of(node, "f"), len(node.attrs["Targuments"])
    types, shapes = node.attrs["output_types"], node.attrs["output_shapes"]
    if len(types) != len(shapes):
        raise invalid(f"output_types and output_shapes must be as many, got {len(types)} and {len(shapes)}.")

    def compute(*values: Array) -> Any:
        arguments, captured = element_of(values[:count]), element_of(values[count:])
        if any(not argument.ndim for argument in arguments):
            raise invalid("All arguments of MapDefun must have at least one dimension.")
        rows = len(arguments[0])
        if any(len(argument) != rows for argument in arguments):
            raise invalid("All inputs must have the same dimension 0.")

        def work(run: Run) -> Any:
            made = []
            for row in range(rows):
                run.check()
                outputs = run.call(function, (*(argument[row, ...] for argument in arguments), *captured))
                check_outputs("f", len(outputs), len(types))
                for place, (output, shape) in enumerate(zip(outputs, shapes, strict=True)):
                    if not shape.is_compatible_with(output.shape):
                        raise invalid(f"Expected shape {shape} for output {place} of a row, got {output.shape}")
                made.append(outputs)
            if not made:
                empty = (
                    np.empty((0, *(d or 0 for d in shape.as_list())), dtype.as_numpy_dtype)
                    for dtype, shape in zip(types, shapes, strict=True)
                )
                return _outputs(tuple(empty))
            return _outputs(tuple(_stack(column) for column in zip(*made, strict=True)))

        return at_work(work)

    return compute


def _stack(arrays: tuple[Array, ...]) -> Array:
    out = np.empty((len(arrays), *arrays[0].shape), arrays[0].dtype)
    for row, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            raise invalid(f"Expected all rows to have one shape, got {arrays[0].shape} and {array.shape}")
        out[row] = array if array.ndim else array[()]
    return out


class _Wrapped:
    """A dataset within a variant within a variant."""

    __slots__ = ("value",)

    def __init__(self, value: Array) -> None:
        self.value = value


@kernel("WrapDatasetVariant")
def build_wrap(node: KernelNode) -> Compute:
    def compute(handle: Array) -> Any:
        if handle.ndim:
            raise invalid("Unable to wrap a variant that is not a scalar dataset.")
        dataset_of(handle)
        return scalar_object(_Wrapped(handle))

    return compute


@kernel("UnwrapDatasetVariant")
def build_unwrap(node: KernelNode) -> Compute:
    def compute(handle: Array) -> Any:
        found = handle.item() if handle.ndim == 0 else None
        if not isinstance(found, _Wrapped):
            raise invalid("Tensor must be a WrappedDataset variant.")
        return found.value.reshape(()).copy()

    return compute


@kernel("DummyIterationCounter")
def build_counter(node: KernelNode) -> Compute:
    return lambda: ResourceHandle(node.device, "", node.name).as_array()
