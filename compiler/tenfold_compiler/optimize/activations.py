"""A batch normalisation does the work of the activation behind it, and its gradient that of the activation's.

    FusedBatchNorm(x) ─► Relu ─► …                                  FusedBatchNorm(x), activated ─► …
    … ─► ReluGrad(dy, Relu) ─► FusedBatchNormGrad(x)                … ─► FusedBatchNormGrad(dy, x, what was applied)

An image is read and written once less each way, and the gradient reads no activations: where one was positive follows
from x (kernels/cpu/_compiled/normalize.py), from the factor and offset that were applied, which the first node hands
to the second, whatever is assigned to them meanwhile.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from tenfold_compiler.part.cross_memory import device_type_of
from tenfold_core import dtypes
from tenfold_kernels.cpu.nn_norm import KEEPS

from .edits import Joinable, absorb, operands, read, read_past, retire

if TYPE_CHECKING:
    from tenfold_compiler.part.node_facts import Constants
    from tenfold_compiler.part.part_graph import PartGraph, PartNode

_TYPES = frozenset((dtypes.float32, dtypes.float64))
_NORMS = frozenset(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"))
#: The gradient of each activation that can be joined.
_GRADIENTS = {"ReluGrad": "Relu", "Relu6Grad": "Relu6"}
_ACTIVATIONS = frozenset(_GRADIENTS.values())
#: Of a normalisation: its inputs x, scale and offset; its outputs, the batch's mean and variance.
_X, _SCALE, _MEAN, _VARIANCE = 0, 1, 3, 4


def join_activations(part: PartGraph, constants: Constants) -> int:
    """Returns how many activations and gradients of activations it made part of a normalisation or of its gradient."""
    found = _activated(part, constants)
    if not found:
        return 0
    joinable = Joinable(part, constants)
    #: By the normalisation whose variance they read.
    gradients: dict[int, list[PartNode]] = defaultdict(list)
    for node in part.nodes:
        if node.op.startswith("FusedBatchNormGrad") and node.index not in constants:
            gradients[node.inputs[4][0]].append(node)
    joined = 0
    for norm, activation in found:
        norm.attrs = {**norm.attrs, "activation_mode": activation.op.encode()}
        for gradient in gradients[norm.index]:
            passed = part.nodes[gradient.inputs[0][0]]
            if _are_of(norm, activation, gradient, passed) and joinable.into(gradient, passed):
                _join_gradient(norm, gradient, passed)
                joined += 1
    read_past(part, {(activation.index, 0): (norm.index, 0) for norm, activation in found})
    for _, activation in found:
        retire(activation)
    return joined + len(found)


def _activated(part: PartGraph, constants: Constants) -> list[tuple[PartNode, PartNode]]:
    """The normalisations whose result an activation alone reads, each with it."""
    found = [
        (norm, node)
        for node in part.nodes
        if node.op in _ACTIVATIONS and node.index not in constants and node.output_types[0] in _TYPES
        for norm in (part.nodes[node.inputs[0][0]],)
        if norm.op in _NORMS and node.inputs[0][1] == 0 and norm.index not in constants
    ]
    readers = Counter(source for node in part.nodes for source, port in node.inputs if port == 0) if found else {}
    return [
        (norm, node)
        for norm, node in found
        if readers[norm.index] == 1
        and norm.memory is None
        and device_type_of(norm.node_def.device) == "CPU"
        and norm.node_def.device == node.node_def.device
        # what the activation waits for besides, the normalisation would have to wait for
        and {*node.controls} <= {*norm.controls, norm.index}
    ]


def _are_of(norm: PartNode, activation: PartNode, gradient: PartNode, passed: PartNode) -> bool:
    """Whether they are the gradients of a normalisation in training and of its activation."""
    return (
        bool(norm.attrs["is_training"] and gradient.attrs["is_training"])
        and _GRADIENTS.get(passed.op) == activation.op
        and passed.inputs[1] == (activation.index, 0)
        and gradient.inputs[1:3] == [norm.inputs[_X], norm.inputs[_SCALE]]
        and gradient.inputs[3:5] == [(norm.index, _MEAN), (norm.index, _VARIANCE)]
        and all(gradient.attrs[name] == norm.attrs[name] for name in ("epsilon", "data_format"))
    )


def _join_gradient(norm: PartNode, gradient: PartNode, passed: PartNode) -> None:
    if not norm.attrs.get(KEEPS):
        norm.attrs = {**norm.attrs, KEEPS: True}
        norm.output_types = (*norm.output_types, norm.output_types[0])
    applied = (norm.index, len(norm.output_types) - 1), norm.output_types[0], False
    gradient.attrs = {**gradient.attrs, "activation_mode": norm.attrs["activation_mode"]}
    read(gradient, [operands(passed)[0], *operands(gradient)[1:], applied])
    absorb(gradient, [passed])
