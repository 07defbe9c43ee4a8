"""FunctionGraph: the graph of a function's body while it is built, and the Function that comes of it.

A body is made by calling Python code with the parameters as tensors. Tensors from outside become further parameters
(`captured_inputs`), or, with `by_value`, the operations that make them are copied into the body. What has an effect
runs with every call, and what uses one resource runs in the order in which it was written. function_def.py writes the
message. Used by tf.data for the functions of its operations. Follows TensorFlow 1.15's func_graph.py,
auto_control_deps.py and, for `by_value`, Defun in function.py.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any

from tenfold.graph.control_flow_context import output_context
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.function_def import function_def
from tenfold.graph.graph import Graph
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.graph.op_builder import tensor_op
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor
    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape
    from tenfold_protos import function_pb2

#: A new number for each function, so that no two of a program have one name.
_numbers = itertools.count()

#: Operations that keep a state only to draw the next numbers: without a use of the numbers they need not run.
_DRAWS = frozenset(
    {
        *("Multinomial", "ParameterizedTruncatedNormal", "RandomGamma", "RandomGammaGrad", "RandomPoisson"),
        *("RandomPoissonV2", "RandomShuffle", "RandomStandardNormal", "RandomUniform", "RandomUniformInt"),
        "TruncatedNormal",
    }
)


class FunctionGraph(Graph):
    """The body of one function. Operations made while it is the default graph are added to it."""

    def __init__(self, outer: Graph, by_value: bool = False, may_be_copied: Iterable[Operation] = ()) -> None:
        """`by_value` copies what makes a tensor from outside; of stateful operations those that `may_be_copied`."""
        super().__init__()
        self.building_function = True
        self.outer_graph = outer
        self.seed = outer.seed
        self._versions.CopyFrom(outer.graph_def_versions)
        self._by_value = by_value
        self._may_be_copied = frozenset(may_be_copied)
        #: The parameters; those after the first `_own_parameters` are captures.
        self.parameters: list[Tensor] = []
        #: Tensor of another graph → what stands for it here.
        self._stand_ins: dict[Tensor, Tensor] = {}
        self._captured: list[Tensor] = []
        for key, values in outer._collections.items():
            # The stores of variables, whose keys are no strings, are the program's; the rest is copied.
            self._collections[key] = list(values) if isinstance(key, str) else values

    @property
    def outermost(self) -> Graph:
        """The graph around all functions."""
        return self.outer_graph.outermost

    @property
    def captured_inputs(self) -> list[Tensor]:
        """The tensors from outside, in the order of their parameters."""
        return list(self._captured)

    def add_parameter(self, dtype: Any, shape: Any, name: str = "args_0") -> Tensor:
        """A parameter of the function. `dtype` is a base type."""
        with self.as_default(), self.control_dependencies(None), self.name_scope(None), self.device(None):
            tensor = tensor_op("Placeholder", name, dtype=dtype, shape=shape)
        self.parameters.append(tensor)
        return tensor

    def capture(self, tensor: Tensor) -> Tensor:
        """What stands for `tensor` in this graph; `tensor` itself if it is of this graph."""
        if tensor.graph is self:
            return tensor
        found = self._stand_ins.get(tensor)
        if found is None:
            found = self._copied(tensor) if self._by_value else self._captured_by_parameter(tensor)
        return found

    def _captured_by_parameter(self, tensor: Tensor) -> Tensor:
        found = self.add_parameter(tensor.dtype.base_dtype, None, "capture")
        found.set_shape(tensor.shape)
        self._stand_ins[tensor] = found
        self._captured.append(tensor)
        return found

    def _copied(self, tensor: Tensor) -> Tensor:
        """The copy of what makes `tensor`, with all that it needs. Raises ValueError for what cannot be copied."""
        pending = [tensor.op]
        waiting: set[Operation] = set()
        while pending:
            op = pending[-1]
            missing = [each.op for each in op.inputs if each not in self._stand_ins and each.graph is not self]
            if missing and op in waiting:
                raise ValueError(f"Cannot capture a loop (name:{op.name}, type:{op.type}) by value.")
            if missing:
                waiting.add(op)
                pending.extend(missing)
                continue
            pending.pop()
            waiting.discard(op)
            if op.outputs and op.outputs[0] not in self._stand_ins:
                self._copy(op)
        return self._stand_ins[tensor]

    def _copy(self, op: Operation) -> None:
        if op._op_def.is_stateful and op not in self._may_be_copied:
            raise ValueError(f"Cannot capture a stateful node (name:{op.name}, type:{op.type}) by value.")
        if op.type in ("Placeholder", "PlaceholderV2"):
            raise ValueError(f"Cannot capture a placeholder (name:{op.name}, type:{op.type}) by value.")
        known = op._op_def.attr_by_name
        extra = {key: value for key, value in op._node_def.attr.items() if key not in known and key != "_class"}
        inputs = [self._stand_ins.get(each, each) for each in op.inputs]
        with self.control_dependencies(None), self.name_scope(None):
            copy = self._add_operation(op._op_def, inputs, op.name, dict(op._attrs), extra, constant=op.constant)
        for outside, inside in zip(op.outputs, copy.outputs, strict=True):
            inside.set_shape(outside.shape)
            self._stand_ins[outside] = inside

    # --- what Graph asks ---

    def _own(self, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        return [self.capture(tensor) for tensor in inputs]

    def control_dependencies(self, control_inputs: Any) -> Any:
        """As of any graph; what is outside has run before the function is called, and is left away."""
        if control_inputs is None:
            return super().control_dependencies(None)
        return super().control_dependencies([item for item in control_inputs if self._is_inside(item)])

    def _is_inside(self, item: Any) -> bool:
        element = item.op if isinstance(item, IndexedSlices) else item
        stand_in = getattr(element, "_as_graph_element", None)
        element = element if stand_in is None else stand_in()
        return isinstance(element, str) or getattr(element, "graph", self) is self

    def _apply_colocation(self, op: Operation) -> None:
        """Nothing: a body runs on the device of its caller."""


class Function:
    """A function that operations call by name; `add_to` puts it into a graph's library."""

    def __init__(self, name: str, graph: FunctionGraph, outputs: Sequence[Tensor]) -> None:
        self.name = name
        self.graph = graph
        self.outputs = list(outputs)
        self.definition: function_pb2.FunctionDef = function_def(
            name, graph, graph.parameters, self.outputs, list(dict.fromkeys(_must_run(graph)))
        )

    @property
    def captured_inputs(self) -> list[Tensor]:
        """What the caller passes after the function's own arguments."""
        return self.graph.captured_inputs

    @property
    def output_types(self) -> list[DType]:
        """The types of the outputs."""
        return [tensor.dtype.base_dtype for tensor in self.outputs]

    @property
    def output_shapes(self) -> list[TensorShape]:
        """The static shapes of the outputs."""
        return [tensor.shape for tensor in self.outputs]

    def add_to(self, graph: Graph) -> None:
        """Puts this function, and those that its body calls, into the library of `graph`. Again does nothing."""
        graph._functions.update(self.graph._functions)
        graph._function_gradients.update(self.graph._function_gradients)
        graph._function_rules.update(self.graph._function_rules)
        graph._functions[self.name] = self.definition


def build_function(
    body: Callable[..., Any],
    parameters: Iterable[tuple[Any, Any]],
    name: str,
    *,
    by_value: bool = False,
    may_be_copied: Iterable[Operation] = (),
) -> Function:
    """The function whose body is what `body` makes of its parameters, each given by (dtype, shape).

    `body` returns a list of what converts to tensors. `name` is made unique by a number. Raises what `body` raises, and
    ValueError for a tensor from outside that `by_value` cannot copy.
    """
    graph = FunctionGraph(get_default_graph(), by_value, may_be_copied)
    with graph.as_default():
        arguments = [
            graph.add_parameter(dtypes.as_dtype(dtype), shape, f"args_{number}")
            for number, (dtype, shape) in enumerate(parameters)
        ]
        outputs = [graph.capture(convert_to_tensor(value)) for value in body(*arguments)]
    return Function(f"__inference_{name}_{next(_numbers)}", graph, outputs)


def readable_name(function: Any) -> str:
    """The name of a Python function for the name of a graph's function."""
    found = getattr(function, "__name__", None)
    if found is None and hasattr(function, "func"):
        return readable_name(function.func)
    return re.sub(r"[^A-Za-z0-9_.\-/<>]", "_", found or type(function).__name__)


def _must_run(graph: FunctionGraph) -> Iterator[Operation]:
    """The operations with an effect; adds the control edges that keep those of one resource in order."""
    last_use: dict[Tensor, Operation] = {}
    parameters = {tensor.op for tensor in graph.parameters}
    for op in graph.get_operations():
        if op in parameters:
            continue
        has_effect = op._op_def.is_stateful and op.type not in _DRAWS
        if op._control_flow_context is not None:
            if has_effect:
                yield from _results_outside(op)
            continue
        resources = [tensor for tensor in op.inputs if tensor.dtype.base_dtype == dtypes.resource]
        before = [last_use[tensor] for tensor in resources if tensor in last_use]
        op._add_control_inputs(earlier for earlier in before if earlier is not op)
        last_use.update(dict.fromkeys(resources, op))
        if has_effect:
            yield op


def _results_outside(op: Operation) -> list[Operation]:
    """The first operations outside all branches and loops that come of `op`, which is inside one."""
    found: dict[Operation, None] = {}
    seen, pending = {op}, [op]
    while pending:
        current = pending.pop()
        if output_context(current) is None:
            found[current] = None
            continue
        consumers = [*current._consumed_by_control, *(each for out in current.outputs for each in out.consumers())]
        pending.extend(each for each in consumers if each not in seen)
        seen.update(consumers)
    return list(found)
