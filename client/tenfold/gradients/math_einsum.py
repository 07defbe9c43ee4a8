"""The gradient of Einsum, of one or two operands, as einsums of the output's gradient; definition in opdefs/math.py.

An operand's gradient is the product of `g` and the other operand over all labels that the operand lacks. Labels that
only it has were summed there: each of their elements gets the same. What an ellipsis broadcast is summed.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

from tenfold.gradients.broadcast import undo_broadcast
from tenfold.gradients.registry import gradient
from tenfold.graph.op_builder import apply_op

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor

_DOTS = "..."


def _einsum(equation: str, *operands: Tensor) -> Any:
    return apply_op("Einsum", inputs=list(operands), equation=equation)


@gradient("Einsum")
def _einsum_gradient(op: Operation, g: Tensor) -> Any:
    left, _, right = op.get_attr("equation").decode().replace(" ", "").partition("->")
    terms = left.split(",")
    grads = []
    for number, (labels, x) in enumerate(zip(terms, op.inputs, strict=True)):
        others = [(terms[i], op.inputs[i]) for i in range(len(terms)) if i != number]
        grads.append(_of_operand(op, labels, x, others, right, g))
    return grads


def _of_operand(
    op: Operation, labels: str, x: Tensor, others: list[tuple[str, Tensor]], right: str, g: Tensor
) -> Tensor:
    plain = labels.replace(_DOTS, "")
    seen = right + "".join(term for term, _ in others)
    shared = "".join(label for label in dict.fromkeys(plain) if label in seen)
    alone = "".join(label for label in dict.fromkeys(plain) if label not in seen)
    # x with the axes of its ellipsis first, each label once: the gradient is made in this order
    ordered = _einsum(f"{labels}->{_DOTS}{shared}{alone}", x)
    given = [right, *(term for term, _ in others)]
    factors = [apply_op("Conj", input=other) if other.dtype.is_complex else other for _, other in others]
    product = _einsum(f"{','.join(given)}->{_DOTS}{shared}", g, *factors)
    for _ in alone:
        product = apply_op("ExpandDims", input=product, dim=-1)
    whole = product * apply_op("OnesLike", x=ordered)
    _, summed = undo_broadcast(whole, ordered, None, whole)
    return _in_place(op, summed, shared + alone, labels)


def _in_place(op: Operation, x: Tensor, order: str, labels: str) -> Tensor:
    """`x` of the axes of an ellipsis and `order`, with those of `labels`; a label named twice is a diagonal."""
    free = [letter for letter in string.ascii_letters if letter not in labels]
    for label in order:
        count = labels.count(label)
        if count > 2:
            raise NotImplementedError(f"No gradient of Einsum for a label named {count} times: {op.name!r}")
        if count == 2:
            twin = free.pop()
            rest = order.replace(label, "")
            x = apply_op("MatrixDiag", diagonal=_einsum(f"{_DOTS}{order}->{_DOTS}{rest}{label}", x))
            order = f"{rest}{label}{twin}"
            at = labels.rindex(label)
            labels = f"{labels[:at]}{twin}{labels[at + 1 :]}"
    result: Tensor = _einsum(f"{_DOTS}{order}->{labels if _DOTS in labels else _DOTS + labels}", x)
    return result
