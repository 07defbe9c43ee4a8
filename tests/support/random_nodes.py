"""Nodes of any op with random attributes and inputs, as anybody may send them.

They fit the op's definition, whether they make sense or not. Each is made from the op's name and a number, so that it
can be made again.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import dtypes, memory_limits, opdefs
from tenfold_core.opdefs import compute_only
from tenfold_core.tensor_shape import TensorShape
from tenfold_core.tensor_util import tensor_to_proto
from tenfold_kernels.registry import KernelNode
from tenfold_kernels.resources.state import ResourceManager

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tenfold_core.dtypes import DType
    from tenfold_core.op_def import ArgDef, AttrDef, OpDef

_SIZES = (0, 1, 2, 3, 5)
_NUMBERS = (-2, -1, 0, 1, 2, 3, 4, 5, 7)
_TEXTS = (b"", b"a", b"NHWC", b"NCHW", b"SAME", b"VALID", b"ab,bc->ac", b"...")
_STRINGS = (b"", b"a", b"1", b"abc", b"1,2", b"\xff")
_TYPES = (dtypes.float32, dtypes.int32, dtypes.int64, dtypes.string, dtypes.bool_)


def only_computes(name: str) -> bool:
    """Whether it takes and gives tensors alone, and keeps nothing."""
    op = opdefs.get(name)
    if compute_only.refusal(name) is not None or (op.is_stateful and opdefs.family_of(name) != "random"):
        return False
    if opdefs.family_of(name) in ("control_flow", "data_flow", "list") or name == "Const":
        return False
    handles = any(
        arg.is_ref or (arg.type is not None and arg.type.name in ("resource", "variant"))
        for arg in (*op.inputs, *op.outputs)
    )
    return not handles and not any("func" in attr.type for attr in op.attrs)


@pytest.fixture
def small_tensors() -> Iterator[None]:
    """No tensor of more than 16 MiB: sizes are inputs like others."""
    before = memory_limits.tensor_limit()
    memory_limits.limit_tensor(16 << 20)
    yield
    memory_limits.limit_tensor(before)


class RandomNode:
    """A node's attributes, and the types of its inputs and outputs."""

    def __init__(self, op: OpDef, number: int, purpose: str = "") -> None:
        self._op = op.name
        self.chance = random.Random(f"{op.name} {purpose}{number}")
        self.attrs = {attr.name: self._attribute(attr) for attr in op.attrs}
        self.input_types, self.output_types = self._types(op.inputs), self._types(op.outputs)

    def kernel_node(self, device: str) -> KernelNode:
        """As an executor would build its kernel for `device`."""
        types = tuple(self.input_types), tuple(self.output_types)
        return KernelNode("n", self._op, self.attrs, *types, device, ResourceManager())

    def shape(self) -> TensorShape:
        """Of unknown sizes or none at all, as is known before a step."""
        if self.chance.random() < 0.1:
            return TensorShape(None)
        return TensorShape([self.chance.choice((None, *_SIZES)) for _ in range(self.chance.randrange(6))])

    def _attribute(self, attr: AttrDef) -> Any:
        if attr.has_default and self.chance.random() < 0.3:
            return attr.default
        if not attr.type.startswith("list("):
            return self._one(attr, attr.type)
        return [self._one(attr, attr.type[5:-1]) for _ in range(max(self.chance.randrange(7), attr.minimum or 0))]

    def _one(self, attr: AttrDef, kind: str) -> Any:
        chance = self.chance
        if attr.allowed:
            return chance.choice(attr.allowed)
        least = -9 if attr.minimum is None or attr.type != "int" else attr.minimum
        made = {
            "int": lambda: max(chance.choice(_NUMBERS), least),
            "bool": lambda: chance.random() < 0.5,
            "float": lambda: chance.choice((-1.0, 0.0, 0.5, 2.0)),
            "string": lambda: chance.choice(_TEXTS),
            "type": lambda: chance.choice(_TYPES),
            "shape": self.shape,
            "tensor": lambda: tensor_to_proto(np.zeros((2, 2), np.float32)),
            "func": lambda: None,
        }
        return made[kind]()

    def _types(self, args: Iterable[ArgDef]) -> list[DType]:
        found: list[DType] = []
        for arg in args:
            if arg.type_list_attr:
                found += self.attrs[arg.type_list_attr] or []
            else:
                count = self.attrs[arg.number_attr] if arg.number_attr else 1
                found += [arg.type or self.attrs[arg.type_attr]] * count
        return found

    def few_sizes(self) -> tuple[int, ...]:
        """A shape as values have that say sizes, axes and the like."""
        return tuple(self.chance.choice(_SIZES) for _ in range(self.chance.choice((0, 1, 1, 1, 2, 2, 3))))

    def array(self, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
        """Small numbers, now and then one that is none; short strings."""
        count = math.prod(shape)
        if dtype is dtypes.string:
            texts = np.empty(count, object)
            texts[:] = [self.chance.choice(_STRINGS) for _ in range(count)]
            return texts.reshape(shape)
        numbers = np.array([self.chance.choice((*_NUMBERS, 100)) for _ in range(count)], np.int64)
        kind = np.dtype(dtype.as_numpy_dtype)
        made = numbers.astype(kind[0]).view(kind) if dtype.is_carried else numbers.astype(kind)
        if dtype.is_floating and count and self.chance.random() < 0.2:
            made[self.chance.randrange(count)] = self.chance.choice((np.nan, np.inf, -np.inf))
        return made.reshape(shape)

    def inputs(self) -> list[np.ndarray]:
        """One for each type: most have a shape in common, some are scalars or vectors."""
        common = tuple(self.chance.choice(_SIZES[:4]) for _ in range(self.chance.choice((0, 1, 1, 2, 2, 3, 4, 4, 5))))
        vector = (self.chance.choice((0, 1, 2, 3, 4)),)
        choices = (common, common, common, (), vector, self.few_sizes())
        return [self.array(dtype, self.chance.choice(choices)) for dtype in self.input_types]
