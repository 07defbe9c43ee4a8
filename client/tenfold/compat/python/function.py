"""`tensorflow.python.framework.function`: Defun, which makes a Python function a function of the graph's library.

A call is one operation, whose type is the function's name; the servers put the body in its place. Variables that the
body asks for by `tf.get_variable` are made outside. The gradient is the Python function that was given, else the
servers make it of the body, or take `grad_func`. Follows TensorFlow 1.15's framework/function.py; the body is built by
graph/function_graph.py.
"""

from __future__ import annotations

import hashlib
import inspect
from typing import TYPE_CHECKING, Any

from tenfold.compat.python.function_utils import get_func_name
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.function_graph import Function, FunctionGraph
from tenfold.graph.scopes import VALID_OP_NAME
from tenfold.ops.variable_scope import get_variable_scope, variable_scope
from tenfold_core.dtypes import as_dtype
from tenfold_core.op_def import OpDef
from tenfold_protos import attr_value_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tenfold.graph.graph import Graph
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor
    from tenfold_core.dtypes import DType
    from tenfold_protos import function_pb2

__all__ = ["Defun", "get_extra_vars"]


class Defun:
    """Decorator of a function of tensors of `input_types`; without types there is a function for each set of them.

    `func_name` names it in the graph. Of its gradient `python_grad_func(op, *grads)` builds operations, or `grad_func`,
    made by Defun too, is called; not both. `out_names` name the outputs, `shape_func(op)` gives their static shapes,
    which are unknown without. `capture_by_value` copies what is used from outside. Other keywords, such as
    `noinline`, become attributes. Raises ValueError for a function with defaults or keywords, or of another number of
    arguments than there are types.
    """

    def __init__(self, *input_types: Any, **kwargs: Any) -> None:
        self._input_types = input_types
        self._options = kwargs

    def __call__(self, func: Callable[..., Any]) -> Any:
        if not callable(func):
            raise ValueError(f"function {func} must be callable")
        given = inspect.getfullargspec(func)
        if given.varkw or given.defaults:
            raise ValueError(
                "function with argument defaults or keywords arguments are not supported. "
                f"{func} has defaults {given.defaults} and keywords {given.varkw}."
            )
        names = given.args[1:] if inspect.ismethod(func) else given.args
        if not self._input_types and (names or given.varargs):
            return _OverloadedFunction(func, names, self._options)
        if len(self._input_types) < len(names) or (len(self._input_types) > len(names) and not given.varargs):
            raise ValueError("The function has fewer arguments than the number of specified input types.")
        return _DefinedFunction(func, names, self._input_types, **self._options)


class _FunctionBody(FunctionGraph):
    """The body of a defined function; `extra_vars` are the variables that it asked for."""

    def __init__(self, outer: Graph, by_value: bool, may_be_copied: Iterable[Operation]) -> None:
        super().__init__(outer, by_value, may_be_copied)
        self.extra_vars: list[Any] = []


class _DefinedFunction:
    """A function with known types of its arguments. Its body is built when it is first needed."""

    def __init__(
        self,
        func: Callable[..., Any],
        argnames: Sequence[str],
        input_types: Sequence[Any],
        func_name: str | None = None,
        grad_func: Any = None,
        python_grad_func: Callable[..., Any] | None = None,
        out_names: Sequence[str] | None = None,
        shape_func: Callable[..., Any] | None = None,
        capture_by_value: bool = False,
        whitelisted_stateful_ops: Iterable[Operation] | None = None,
        capture_resource_var_by_value: bool = True,
        **kwargs: Any,
    ) -> None:
        self._func = func
        self._name = func_name
        self._types = [as_dtype(dtype).base_dtype for dtype in input_types]
        names = list(argnames)
        self._argnames = [names[i] if i < len(names) else f"arg{i}" for i in range(len(self._types))]
        self._grad_func = grad_func
        self.python_grad_func = python_grad_func
        self._out_names = out_names
        self._shape_func = shape_func
        self._by_value = capture_by_value
        self._may_be_copied = whitelisted_stateful_ops or ()
        self._reads_variables = capture_resource_var_by_value
        self._attributes = kwargs
        self._built: Function | None = None

    @property
    def name(self) -> str:
        """The function's name in a graph."""
        return self._function().name

    @property
    def definition(self) -> function_pb2.FunctionDef:
        """The function as a message."""
        return self._function().definition

    @property
    def declared_input_types(self) -> Sequence[DType]:
        """The types of the arguments, without those of what is captured."""
        return self._types

    @property
    def captured_inputs(self) -> list[Tensor]:
        """What a call passes after the arguments."""
        return self._function().captured_inputs

    @property
    def stateful_ops(self) -> list[tuple[str, str]]:
        """Name and type of each operation of the body that has a state."""
        return [(op.name, op.type) for op in self._function().graph.get_operations() if op._op_def.is_stateful]

    @property
    def grad_func_name(self) -> str | None:
        """The name of the function that is the gradient; None without."""
        return self._grad_func.name if self._grad_func is not None else None

    def set_grad_func(self, grad_func: _DefinedFunction) -> None:
        """Makes `grad_func` the gradient. Raises ValueError if there is one."""
        if self._grad_func is not None:
            raise ValueError(f"{self.name} has a gradient function: {self.grad_func_name}")
        self._grad_func = grad_func

    def add_to_graph(self, g: Graph) -> None:
        """Puts the function, those that it calls and its gradient into the graph's library. Again does nothing."""
        function = self._function()
        if self.python_grad_func is not None:
            g._function_rules[function.name] = self.python_grad_func
        if function.name in g._functions:
            return
        function.add_to(g)
        if self._grad_func is not None:
            self._grad_func.add_to_graph(g)
            g._function_gradients[function.name] = self._grad_func.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The operation of a call without outputs, its one output, or a tuple of them."""
        graph = get_default_graph()
        self.add_to_graph(graph)
        function = self._function()
        inputs = [convert_to_tensor(value) for value in args] + function.captured_inputs
        signature = OpDef.from_proto(function.definition.signature)
        if len(inputs) != len(signature.inputs):
            raise ValueError(f"Expected number of arguments: {len(signature.inputs)}, received: {len(inputs)}")
        name = kwargs.pop("name", None) or function.name
        for number, (tensor, wanted) in enumerate(zip(inputs, signature.inputs, strict=True)):
            if wanted.type is not None and tensor.dtype.base_dtype != wanted.type:
                raise ValueError(
                    f"Input {number} of {function.name} was passed {tensor.dtype.base_dtype.name} from {tensor.name} "
                    f"incompatible with expected {wanted.type.name}."
                )
        attributes = _as_attributes(function.name, **kwargs)
        op = graph._add_operation(signature, inputs, name, {}, attributes)
        self._set_shapes(op)
        if len(op.outputs) == 1:
            return op.outputs[0]
        return tuple(op.outputs) if op.outputs else op

    def _set_shapes(self, op: Operation) -> None:
        if self._shape_func is None:
            return
        shapes = self._shape_func(op)
        if len(shapes) != len(op.outputs):
            raise ValueError(f"shape_func produced {len(shapes)} shapes for {len(op.outputs)} outputs")
        for tensor, shape in zip(op.outputs, shapes, strict=True):
            tensor.set_shape(shape)

    def _function(self) -> Function:
        if self._built is None:
            self._built = self._build()
        return self._built

    def _build(self) -> Function:
        base = self._name or get_func_name(self._func)
        graph = _FunctionBody(get_default_graph(), self._by_value, self._may_be_copied)
        with graph.as_default():
            arguments = [
                graph.add_parameter(dtype, None, name) for dtype, name in zip(self._types, self._argnames, strict=True)
            ]
            with variable_scope(get_variable_scope(), custom_getter=self._hoisted(graph), auxiliary_name_scope=False):
                returned = self._func(*arguments)
            values = [] if returned is None else list(returned) if isinstance(returned, (list, tuple)) else [returned]
            if any(value is None for value in values):
                raise ValueError(f"Function {base} can not return None.")
            outputs = [graph.capture(convert_to_tensor(value)) for value in values]
        function = Function(base, graph, outputs)
        definition = function.definition
        for key, value in _as_attributes(base, **self._attributes).items():
            definition.attr[key].CopyFrom(value)
        if self._out_names:
            _name_outputs(definition, self._out_names)
        if self._name is None:
            kind = hashlib.sha1(definition.SerializeToString(deterministic=True), usedforsecurity=False).hexdigest()
            name = f"{_as_valid_name(base)}_{kind[:8]}"
            function.name = definition.signature.name = name
        return function

    def _hoisted(self, graph: _FunctionBody) -> Callable[..., Any]:
        def hoist(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            # The store of variables is the outer graph's, and names there are whole.
            with graph.outer_graph.as_default(), graph.outer_graph.name_scope(None):
                variable = getter(*args, **kwargs)
                graph.extra_vars.append(variable)
                return variable.value() if hasattr(variable, "handle") and self._reads_variables else variable

        return hoist


class _OverloadedFunction:
    """A function whose types are those of the arguments of a call."""

    def __init__(self, func: Callable[..., Any], argnames: Sequence[str], options: dict[str, Any]) -> None:
        self._func = func
        self._argnames = argnames
        self._options = dict(options)
        self._name = self._options.pop("func_name", None)
        self._grad_func = self._options.pop("grad_func", None)
        if self._grad_func is not None and not isinstance(self._grad_func, _OverloadedFunction):
            raise ValueError("grad_func of a function without input types must be such a function, too")
        self._defined: dict[tuple[DType, ...], _DefinedFunction] = {}

    def instantiate(self, input_types: Sequence[Any]) -> _DefinedFunction:
        """The function for arguments of these types."""
        key = tuple(as_dtype(dtype).base_dtype for dtype in input_types)
        found = self._defined.get(key)
        if found is None:
            name = self._name and "_".join([self._name, *(dtype.name for dtype in key)])
            found = _DefinedFunction(self._func, self._argnames, key, name, **self._options)
            if self._grad_func is not None:
                outputs = [as_dtype(int(each.type)) for each in found.definition.signature.output_arg]
                found.set_grad_func(self._grad_func.instantiate([*key, *outputs]))
            self._defined[key] = found
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As a call of the function for the types of `args`."""
        tensors = [convert_to_tensor(value) for value in args]
        return self.instantiate([tensor.dtype for tensor in tensors])(*tensors, **kwargs)


def get_extra_vars() -> list[Any]:
    """The variables that the body of the function that is being defined has asked for; none outside of one."""
    graph = get_default_graph()
    return graph.extra_vars if isinstance(graph, _FunctionBody) else []


def _name_outputs(definition: function_pb2.FunctionDef, names: Sequence[str]) -> None:
    if len(names) != len(definition.signature.output_arg):
        raise ValueError(
            f"output names must be either empty or equal in size to outputs. output names size = {len(names)} "
            f"outputs size = {len(definition.signature.output_arg)}"
        )
    if len(set(names)) != len(names):
        raise ValueError(f"duplicate output names of a function: {list(names)}")
    edges = [definition.ret[each.name] for each in definition.signature.output_arg]
    definition.ret.clear()
    for argument, name, edge in zip(definition.signature.output_arg, names, edges, strict=True):
        argument.name = name
        definition.ret[name] = edge


def _as_valid_name(name: str) -> str:
    """A function's name as one that operations of the graph may have: `C.f.<locals>.g` is no such."""
    cleaned = "".join(letter if letter.isalnum() or letter in "_./-" else "_" for letter in name)
    return cleaned if VALID_OP_NAME.match(cleaned) else f"f{cleaned}"


def _as_attributes(func_name: str, **kwargs: Any) -> dict[str, attr_value_pb2.AttrValue]:
    """Keywords as attributes of a function or of a call. Raises ValueError for a keyword that cannot be one."""
    value_of = attr_value_pb2.AttrValue
    attributes = {}
    noinline = kwargs.pop("noinline", None)
    if noinline is not None:
        attributes["_noinline"] = value_of(b=bool(noinline))
    attributes["_disable_call_shape_inference"] = value_of(b=True)
    compiled = kwargs.pop("compiled", None)
    separate = kwargs.pop("separate_compiled_gradients", None)
    if compiled is not None:
        attributes["_XlaCompile"] = value_of(b=bool(compiled))
        attributes["_XlaSeparateCompiledGradients"] = value_of(b=bool(separate))
        attributes["_XlaScope"] = value_of(s=f"function_{func_name}".encode())
    for key in [key for key in kwargs if key.startswith("experimental_") or key in ("_implements", "_reference")]:
        given = kwargs.pop(key)
        if isinstance(given, str):
            attributes[key] = value_of(s=given.encode())
        elif isinstance(given, (bool, int, float)) and key.startswith("experimental_"):
            number = value_of()
            setattr(number, "b" if isinstance(given, bool) else "i" if isinstance(given, int) else "f", given)
            attributes[key] = number
        else:
            raise ValueError(f"Unsupported attribute type for {key} with type {type(given)}")
    if kwargs:
        raise ValueError(f"Unknown keyword arguments: {kwargs.keys()}")
    return attributes
