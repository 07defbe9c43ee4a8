"""How large a graph's tensors and variables are, printed if wanted.

Follows TensorFlow 1.15's contrib/slim/python/slim/model_analyzer.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


def tensor_description(var: Any) -> str:
    """Type and shape: "(float32 3x4)"."""
    return f"({var.dtype.name} {'x'.join(str(size) for size in var.get_shape())})"


def _heading(text: str) -> None:
    print("---------", text, "---------", sep="\n")


def analyze_ops(graph: Any, print_info: bool = False) -> int:
    """The number of elements of all tensors whose shape is known."""
    if print_info:
        _heading("Operations: name -> (type shapes) [size]")
    total = 0
    for op in graph.get_operations():
        size = sum(output.get_shape().num_elements() or 0 for output in op.outputs)
        total += size
        if print_info:
            shapes = ", ".join(tensor_description(each) for each in op.outputs if each.get_shape().ndims)
            print(op.name, "\t->", shapes, f"[{size}]")
    return total


def analyze_vars(variables: Iterable[Any], print_info: bool = False) -> tuple[int, int]:
    """(elements, bytes) of the variables."""
    if print_info:
        _heading("Variables: name (type shape) [size]")
    elements = size = 0
    for var in variables:
        count = var.get_shape().num_elements() or 0
        elements += count
        size += count * var.dtype.size
        if print_info:
            print(var.name, tensor_description(var), f"[{count}, bytes: {count * var.dtype.size}]")
    if print_info:
        print(f"Total size of variables: {elements}", f"Total bytes of variables: {size}", sep="\n")
    return elements, size
