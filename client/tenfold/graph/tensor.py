"""Tensor: a symbolic handle to one output of an operation.

A tensor holds no value; a session computes it. It has its operation, output index, element type and
static shape. Follows TensorFlow 1.x's ops.Tensor; the operators are in graph/operators.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from tenfold.graph.default_stack import session_for
from tenfold.graph.operators import Operators
from tenfold_core.tensor_shape import TensorShape, as_shape

if TYPE_CHECKING:
    from tenfold.graph.graph import Graph
    from tenfold.graph.operation import Operation
    from tenfold_core.dtypes import DType


class Tensor(Operators):
    """Output number `value_index` of `op`."""

    __slots__ = ("__dict__", "__weakref__", "_consumers", "_dtype", "_op", "_shape", "_value_index")

    def __init__(self, op: Operation, value_index: int, dtype: DType) -> None:
        self._op = op
        self._value_index = value_index
        self._dtype = dtype
        self._shape: TensorShape = as_shape(None)
        #: Operations with this tensor as an input, each once, in the order of creation.
        self._consumers: dict[Operation, None] = {}

    @property
    def op(self) -> Operation:
        """The operation that produces this tensor."""
        return self._op

    @property
    def dtype(self) -> DType:
        """The element type; a `_ref` type for the output of a reference variable."""
        return self._dtype

    @property
    def graph(self) -> Graph:
        """The graph that holds the operation."""
        return self._op.graph

    @property
    def name(self) -> str:
        """`<operation name>:<output index>`."""
        return f"{self._op.name}:{self._value_index}"

    @property
    def device(self) -> str:
        """The device requested for the operation; empty if none was."""
        return self._op.device

    @property
    def value_index(self) -> int:
        """The index among the outputs of the operation."""
        return self._value_index

    @property
    def shape(self) -> TensorShape:
        """The static shape: what is known before the graph runs."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """The static shape: what is known before the graph runs."""
        return self._shape

    def set_shape(self, shape: Any) -> None:
        """Adds `shape` to what is known. Raises ValueError if it contradicts what was known."""
        self._shape = self._shape.merge_with(shape)

    def _shape_as_list(self) -> list[int | None] | None:
        return None if self._shape.ndims is None else self._shape.as_list()

    def consumers(self) -> list[Operation]:
        """The operations that take this tensor as an input."""
        return list(self._consumers)

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """Runs the graph as far as this tensor needs it and returns the value.

        Uses the default session if `session` is None, and raises ValueError if there is none. Blocks.
        """
        return session_for(session, self.graph, verb="eval").run(self, feed_dict)

    def experimental_ref(self) -> Tensor:
        """This tensor; tensors are hashable here."""
        return self

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "Using a `tf.Tensor` as a Python `bool` is not allowed. Use `if t is not None:` instead of `if t:` to test "
            "if a tensor is defined, and use TensorFlow ops such as tf.cond to execute subgraphs conditioned on the "
            "value of a tensor."
        )

    def __len__(self) -> NoReturn:
        raise TypeError(
            f"len is not well defined for symbolic Tensors. ({self.name}) "
            "Please call `x.shape` rather than `len(x)` for shape information."
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise NotImplementedError(f"Cannot convert a symbolic Tensor ({self.name}) to a numpy array.")

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __str__(self) -> str:
        parts = [f'"{self.name}"']
        if self._shape.ndims is not None:
            parts.append(f"shape={self._shape}")
        if self._dtype is not None:
            parts.append(f"dtype={self._dtype.name}")
        if self.device:
            parts.append(f"device={self.device}")
        return f"Tensor({', '.join(parts)})"

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape={self._shape} dtype={self._dtype.name}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self.name} is a symbolic tensor and cannot be pickled; pickle graph.as_graph_def() instead")

    def __copy__(self) -> Tensor:
        return self
