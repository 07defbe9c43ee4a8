"""How many float operations an op takes, by its static shapes: a row for each type of op that is counted.

Called by figures.py. The formulas are those of TensorFlow 1.15's profiler/internal/flops_registry.py and of the
statistics in its nn_ops.py and math_ops.py: an op without a row counts as none.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tenfold.graph import Operation, Tensor

    #: Static shapes that a traced step made known: tensor's name → shape.
    Shapes = Mapping[str, list[int]]


class UnknownShapeError(ValueError):
    """A shape that is needed is not fully known."""


class _Shapes:
    """The shapes of an op's tensors."""

    def __init__(self, op: Operation, known: Shapes) -> None:
        self._op, self._known = op, known

    def _of(self, tensor: Tensor) -> list[int]:
        shape = tensor.get_shape()
        if shape.is_fully_defined():
            return [size or 0 for size in shape.as_list()]
        if tensor.name in self._known:
            return self._known[tensor.name]
        raise UnknownShapeError(f"the shape of {tensor.name} is not known: {shape}")

    def input(self, index: int) -> list[int]:
        return self._of(self._op.inputs[index])

    def output(self) -> list[int]:
        return self._of(self._op.outputs[0])

    def attr(self, name: str) -> Any:
        return self._op.get_attr(name)

    @property
    def inputs(self) -> int:
        return len(self._op.inputs)

    def check_format(self) -> None:
        if self.attr("data_format") != b"NHWC":
            raise UnknownShapeError("Only NHWC format is supported in flops computations")


def _each_input(times: int) -> Callable[[_Shapes], float]:
    return lambda op: math.prod(op.input(0)) * times


def _each_output(times: int) -> Callable[[_Shapes], float]:
    return lambda op: math.prod(op.output()) * times


def _reduction(finish: int) -> Callable[[_Shapes], float]:
    return lambda op: math.prod(op.input(0)) + math.prod(op.output()) * (finish - 1)


def _convolution(filter_sizes: int) -> Callable[[_Shapes], float]:
    """Two operations for each element of the first `filter_sizes` dimensions of the filter, at each output."""

    def count(op: _Shapes) -> float:
        op.input(0)
        return math.prod(op.output()) * math.prod(op.input(1)[:filter_sizes]) * 2

    return count


def _convolution_backwards(image: Callable[[_Shapes], list[int]], kernel: Callable[[_Shapes], list[int]]) -> Any:
    def count(op: _Shapes) -> float:
        op.check_format()
        strides: list[int] = op.attr("strides")
        sizes = image(op)
        return 2 * math.prod(sizes) * math.prod(kernel(op)) / (sizes[-1] * strides[1] * strides[2])

    return count


def _pool(shape: Callable[[_Shapes], list[int]], times: int, more: int = 0) -> Callable[[_Shapes], float]:
    def count(op: _Shapes) -> float:
        op.check_format()
        window: list[int] = op.attr("ksize")
        return math.prod(shape(op)) * (math.prod(window) * times + more)

    return count


def _product(op: _Shapes) -> float:
    left = op.input(0)
    inner = left[-2] if op.attr("transpose_a") else left[-1]
    return inner * math.prod(op.output()) * 2


_ROWS: dict[str, Callable[[_Shapes], float]] = {
    **dict.fromkeys(("Reciprocal", "Square", "Log", "Neg", "AssignSub", "AssignAdd", "BiasAdd"), _each_input(1)),
    "Rsqrt": _each_input(2),
    "Softmax": _each_input(5),
    "L2Loss": lambda op: math.prod(op.input(0)) * 3 - 1,
    **dict.fromkeys(
        (
            *("Add", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "Pow"),
            *("GreaterEqual", "Greater", "LessEqual", "Less", "Equal", "NotEqual"),
        ),
        _each_output(1),
    ),
    "SquaredDifference": _each_output(2),
    "RsqrtGrad": _each_output(4),
    "AddN": lambda op: math.prod(op.input(0)) * (op.inputs - 1) if op.inputs else 0,
    "Mean": _reduction(1),
    **dict.fromkeys(("Sum", "ArgMax", "ArgMin", "BiasAddGrad"), _reduction(0)),
    "AvgPool": _pool(lambda op: op.output(), 1),
    "MaxPool": _pool(lambda op: op.output(), 1),
    "AvgPoolGrad": _pool(lambda op: op.input(1), 2),
    "MaxPoolGrad": _pool(lambda op: op.input(1), 1, more=1),
    "MatMul": _product,
    "BatchMatMul": _product,
    "Conv2D": _convolution(3),
    "Conv3D": _convolution(4),
    "DepthwiseConv2dNative": _convolution(2),
    "Dilation2D": _convolution(2),
    "Conv2DBackpropInput": _convolution_backwards(lambda op: op.output(), lambda op: op.input(1)),
    "Conv2DBackpropFilter": _convolution_backwards(lambda op: op.input(0), lambda op: op.output()),
}


def float_ops(op: Operation, known: Shapes) -> int:
    """The float operations of one run; 0 for a type that is not counted.

    Shapes that the graph does not know are looked up in `known`. Raises UnknownShapeError if one is in neither.
    """
    row = _ROWS.get(op.type)
    return int(row(_Shapes(op, known))) if row is not None else 0
