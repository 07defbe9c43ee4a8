"""Einsum on a GPU: diagonals are strided places, labels of one operand alone are summed, two operands are a product.

    ij,jk,k->i      (ij · jk) = ik, then (ik · k) = i         operands from the left, each product by cuBLAS

The dimensions of an ellipsis are labels too, ".1" the last of them; of size 1 they are left out, as they broadcast.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from tenfold_kernels.arrays import invalid, shape_text, text_attr
from tenfold_kernels.cpu.math_matmul import two_sizes
from tenfold_kernels.cuda import _moves
from tenfold_kernels.cuda._reduce import reduce
from tenfold_kernels.cuda._types import ANY_FLOATS
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tenfold_kernels.cuda._arrays import DeviceArray

#: An array and the labels of its dimensions, each once.
Labelled: TypeAlias = tuple["DeviceArray", list[str]]


@kernel("Einsum", device="GPU", views=True, T=ANY_FLOATS)
def build_einsum(node: KernelNode) -> Compute:
    """A label that the result has twice makes a diagonal of it; everything beside that is zero."""
    equation = text_attr(node, "equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    letters = left.replace(",", "").replace(".", "")
    if not arrow:
        # as NumPy has it on the CPU: what is there once, in the order of the alphabet
        right = "..." * ("..." in left) + "".join(sorted(x for x in set(letters) if letters.count(x) == 1))

    def compute(*inputs: DeviceArray) -> DeviceArray:
        if len(inputs) != len(terms):
            raise invalid(f"Einsum '{equation}': it spells {len(terms)} operands, and {len(inputs)} are given")
        if not all(x.isalpha() for x in letters) or not set(right.replace(".", "")) <= set(letters):
            raise invalid(f"Einsum '{equation}': labels are letters, and those of the result are some operand's")
        sizes: dict[str, int] = {}
        operands = [_diagonal(x, _labels(x, term), sizes) for x, term in zip(inputs, terms, strict=True)]
        free = max(x.ndim - len(term.replace("...", "")) for x, term in zip(inputs, terms, strict=True))
        wanted = _spelled(right, free)
        found: Labelled | None = None
        for number, operand in enumerate(operands):
            later = {label for _, labels in operands[number + 1 :] for label in labels}
            if found is None:
                found = _summed(operand, {*wanted, *later})
            else:
                others = {*wanted, *later}
                found = _product(_summed(found, {*others, *operand[1]}), _summed(operand, {*others, *found[1]}), others)
        assert found is not None
        return _spread(found, wanted, sizes)

    return compute


def _spelled(term: str, free: int) -> list[str]:
    """The labels of a term whose ellipsis stands for `free` dimensions."""
    before, dots, after = term.partition("...")
    return [*before, *(f".{k}" for k in range(free, 0, -1) if dots), *after]


def _labels(x: DeviceArray, term: str) -> list[str]:
    """Raises InvalidArgumentError for a term that does not fit."""
    free = x.ndim - len(term.replace("...", ""))
    if free < 0 or (free and "..." not in term):
        raise invalid(f"Einsum: subscripts '{term}' do not fit a tensor of shape {shape_text(x.shape)}")
    return _spelled(term, free)


def _diagonal(x: DeviceArray, labels: Sequence[str], sizes: dict[str, int]) -> Labelled:
    """x with each label once: of several dimensions of one label the diagonal. Notes the sizes of labels.

    Raises InvalidArgumentError in TensorFlow's words for a label of two sizes.
    """
    strides: dict[str, int] = {}
    for axis, (label, size, stride) in enumerate(zip(labels, x.shape, _moves.whole(x).strides, strict=True)):
        if size == 1 and label.startswith("."):
            continue
        if sizes.setdefault(label, size) != size:
            raise two_sizes(sizes[label], axis, x.shape)
        strides[label] = strides.get(label, 0) + stride
    shape = tuple(sizes[label] for label in strides)
    return _moves.take(x, _moves.Place(shape, tuple(strides.values()))), list(strides)


def _summed(operand: Labelled, needed: Collection[str]) -> Labelled:
    """The operand without the labels that nobody needs."""
    x, labels = operand
    axes = [axis for axis, label in enumerate(labels) if label not in needed]
    return (reduce("Sum", x, axes), [label for label in labels if label in needed]) if axes else operand


def _product(a: Labelled, b: Labelled, needed: Collection[str]) -> Labelled:
    """a_BMK · b_BKN as one product: B are the labels of both that are needed, K those of both that are not."""
    both = [label for label in a[1] if label in b[1]]
    batch, inner = [each for each in both if each in needed], [each for each in both if each not in needed]
    rows, columns = ([each for each in labels if each not in both] for labels in (a[1], b[1]))
    left, turn_left = _matrices(a, batch, rows, inner)
    right, turn_right = _matrices(b, batch, inner, columns)
    x, size_of = a[0], dict(zip((*a[1], *b[1]), (*a[0].shape, *b[0].shape), strict=True))
    labels = [*batch, *rows, *columns]
    out = x.runtime.empty(_merged(size_of, batch, rows, columns), x.dtype)
    if not left.size or not right.size:
        x.runtime.zero(out)
    else:
        x.runtime.libraries.matmul(left, right, out, turn_left, turn_right)
    return out.reshape([size_of[label] for label in labels]), labels


def _matrices(
    operand: Labelled, batch: list[str], first: list[str], second: list[str]
) -> tuple[DeviceArray, bool]:
    """([batch, first, second], False), or [batch, second, first] and True where that is how the elements lie."""
    x, labels = operand
    size_of = dict(zip(labels, x.shape, strict=True))
    turned = labels == [*batch, *second, *first]
    order = (second, first) if turned else (first, second)
    return _ordered(operand, [*batch, *order[0], *order[1]]).reshape(_merged(size_of, batch, *order)), turned


def _merged(size_of: dict[str, int], batch: list[str], first: list[str], second: list[str]) -> tuple[int, ...]:
    sizes = [math.prod(size_of[label] for label in labels) for labels in (batch, first, second)]
    return tuple(sizes if batch else sizes[1:])


def _ordered(operand: Labelled, labels: list[str]) -> DeviceArray:
    """The array with its dimensions in that order."""
    x, own = operand
    strides = dict(zip(own, zip(x.shape, _moves.whole(x).strides, strict=True), strict=True))
    shape, steps = (tuple(strides[label][i] for label in labels) for i in (0, 1))
    return _moves.take(x, _moves.Place(shape, steps))


def _spread(found: Labelled, wanted: list[str], sizes: dict[str, int]) -> DeviceArray:
    """The result as the equation spells it: a dimension of an ellipsis that broadcast has size 1."""
    once = [label for label in dict.fromkeys(wanted) if label in sizes]
    value = _ordered(found, once)
    shape = tuple(sizes.get(label, 1) for label in wanted)
    if len(set(wanted)) == len(wanted):
        return value.reshape(shape)
    out = value.runtime.empty(shape, value.dtype)
    value.runtime.zero(out)
    strides = dict.fromkeys(once, 0)
    for label, stride in zip(wanted, _moves.whole(out).strides, strict=True):
        if label in strides:
            strides[label] += stride
    _moves.put(value, out, _moves.Place(value.shape, tuple(strides.values())))
    return out
