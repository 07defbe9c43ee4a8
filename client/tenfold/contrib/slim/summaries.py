"""Summaries under a tensor's name, one or of several tensors.

Follows TensorFlow 1.15's contrib/slim/python/slim/summaries.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import summary
from tenfold.graph.collections import GraphKeys
from tenfold.graph.default_scopes import add_to_collection
from tenfold.ops.control_flow import Print
from tenfold.ops.nn import zero_fraction

if TYPE_CHECKING:
    from collections.abc import Iterable


def _name(tensor: Any, name: str | None, prefix: str | None, postfix: str | None = None) -> str:
    return "/".join(part for part in (prefix, name or tensor.op.name, postfix) if part)


def _printed(make: Any, name: str, tensor: Any, print_summary: bool) -> Any:
    made = make(name, tensor, collections=[] if print_summary else None)
    if print_summary:
        made = Print(made, [tensor], name)
        add_to_collection(GraphKeys.SUMMARIES, made)
    return made


def add_histogram_summary(tensor: Any, name: str | None = None, prefix: str | None = None) -> Any:
    """A histogram of the tensor."""
    return summary.histogram(_name(tensor, name, prefix), tensor)


def add_image_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Any:
    """The images of the tensor; printed too if `print_summary`."""
    return _printed(summary.image, _name(tensor, name, prefix), tensor, print_summary)


def add_scalar_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Any:
    """The scalar; printed too if `print_summary`."""
    return _printed(summary.scalar, _name(tensor, name, prefix), tensor, print_summary)


def add_zero_fraction_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Any:
    """The share of zeros."""
    label = _name(tensor, name, prefix, "Fraction_of_Zero_Values")
    return add_scalar_summary(zero_fraction(tensor), label, print_summary=print_summary)


def add_histogram_summaries(tensors: Iterable[Any], prefix: str | None = None) -> list[Any]:
    """`add_histogram_summary` of each."""
    return [add_histogram_summary(each, prefix=prefix) for each in tensors]


def add_image_summaries(tensors: Iterable[Any], prefix: str | None = None) -> list[Any]:
    """`add_image_summary` of each."""
    return [add_image_summary(each, prefix=prefix) for each in tensors]


def add_scalar_summaries(tensors: Iterable[Any], prefix: str | None = None, print_summary: bool = False) -> list[Any]:
    """`add_scalar_summary` of each."""
    return [add_scalar_summary(each, prefix=prefix, print_summary=print_summary) for each in tensors]


def add_zero_fraction_summaries(tensors: Iterable[Any], prefix: str | None = None) -> list[Any]:
    """`add_zero_fraction_summary` of each."""
    return [add_zero_fraction_summary(each, prefix=prefix) for each in tensors]
