"""`apply_op`: adds an operation to the graph from Python values.

Every user-facing function ends here. It converts the inputs, infers the type, number and list attributes from them,
checks what was given against the op definition, adds the operation and infers its static shapes. Follows
TensorFlow 1.x's op_def_library.py, with the same error messages.
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_stack import default_graph_stack
from tenfold.graph.operation import Operation
from tenfold.graph.tensor import Tensor
from tenfold_core import attr_value as attr_values
from tenfold_core import opdefs
from tenfold_core.dtypes import DType, as_dtype

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold.graph.graph import Graph
    from tenfold_core.op_def import ArgDef, AttrDef, OpDef

#: Op type → the named tuple of its results, for ops with several outputs.
_result_types: dict[str, Any] = {}


def apply_op(op_type: str, /, name: str | None = None, **kwargs: Any) -> Any:
    """Adds an operation of type `op_type`; `kwargs` are its inputs and attributes by name.

    Returns the Operation if it has no outputs, the tensor (or list) of a single output, else a named tuple. A stateful
    operation whose list of outputs is empty is returned as well, so that it can be run for its effect; one without
    state gives the empty list. Raises TypeError for a missing, unknown or wrongly typed argument, ValueError for an
    invalid value or static shape, NotFoundError for an unknown op.
    """
    op = create(op_type, name, kwargs)
    outputs = op._op_def.outputs
    if not op.outputs and (not outputs or (len(outputs) == 1 and op._op_def.is_stateful)):
        return op
    return _results(op)


def tensor_op(op_type: str, /, name: str | None = None, **kwargs: Any) -> Tensor:
    """`apply_op` for an operation with one output; returns that tensor."""
    return create(op_type, name, kwargs).outputs[0]


def create(op_type: str, name: str | None, arguments: Mapping[str, Any]) -> Operation:
    """Like `apply_op`, but always returns the Operation."""
    op_def = opdefs.get(op_type)
    graph = _graph_of(op_def, arguments)
    if graph is not default_graph_stack.get():
        with graph.as_default():
            return _create(graph, op_def, name or op_type, arguments)
    return _create(graph, op_def, name or op_type, arguments)


def _graph_of(op_def: OpDef, arguments: Mapping[str, Any]) -> Graph:
    """The graph of the inputs, or the default graph. Raises ValueError if the inputs are of several graphs."""
    found: Any = None
    if default_graph_stack.get().building_function:
        # inputs from other graphs come in as parameters of the function
        return default_graph_stack.get()
    for arg in op_def.inputs:
        value = arguments.get(arg.name)
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if not isinstance(item, Tensor | Operation) and not hasattr(type(item), "_as_graph_element"):
                continue
            if found is None:
                found = item
            elif item.graph is not found.graph:
                raise ValueError(f"{item} must be from the same graph as {found}.")
    return default_graph_stack.get() if found is None else found.graph


def _create(graph: Graph, op_def: OpDef, name: str, arguments: Mapping[str, Any]) -> Operation:
    with graph.name_scope(name) as scope:
        call = _Call(op_def, dict(arguments))
        inputs = call.convert_inputs()
        attrs = call.resolve_attrs()
        references = [
            tensor
            for arg, tensors in zip(op_def.inputs, call.by_argument, strict=True)
            if arg.is_ref
            for tensor in tensors
        ]
        return _add_colocated(graph, op_def, inputs, scope, attrs, references)


def _add_colocated(
    graph: Graph, op_def: OpDef, inputs: list[Tensor], scope: str, attrs: dict[str, Any], references: list[Tensor]
) -> Operation:
    """Adds the operation on the device of its reference inputs, since a reference is valid on its own device only."""
    if not references:
        return graph._add_operation(op_def, inputs, scope, attrs)
    with graph.colocate_with(references[0].op):
        return _add_colocated(graph, op_def, inputs, scope, attrs, references[1:])


def _results(op: Operation) -> Any:
    outputs = op._op_def.outputs
    if len(outputs) == 1:
        return op.outputs[0] if not outputs[0].is_list else list(op.outputs)
    values: list[Any] = []
    position = 0
    for arg in outputs:
        if arg.type_list_attr:
            count = len(op._attrs[arg.type_list_attr])
        elif arg.number_attr:
            count = op._attrs[arg.number_attr]
        else:
            values.append(op.outputs[position])
            position += 1
            continue
        values.append(op.outputs[position : position + count])
        position += count
    kind = _result_types.get(op.type)
    if kind is None:
        kind = _result_types[op.type] = namedtuple(op.type.lstrip("_"), [arg.name for arg in outputs], rename=True)
    return kind(*values)


class _Call:
    """One call of `apply_op`: its arguments, and what has been inferred from them so far."""

    def __init__(self, op_def: OpDef, arguments: dict[str, Any]) -> None:
        self.op_def = op_def
        self.arguments = arguments
        #: The attributes known so far: given, or inferred from an input.
        self.attrs: dict[str, Any] = {}
        #: Attribute → the input that it was inferred from; for messages.
        self.inferred_from: dict[str, str] = {}
        #: The converted inputs, argument by argument.
        self.by_argument: list[list[Tensor]] = []
        for attr in op_def.attrs:
            if arguments.get(attr.name) is not None:
                self.attrs[attr.name] = self._given(attr, arguments[attr.name])

    @property
    def op_type(self) -> str:
        return self.op_def.name

    # --- attributes ---

    def _given(self, attr: AttrDef, value: Any) -> Any:
        """The Python form of an attribute that the caller gave."""
        try:
            if attr.type == "type":
                value = as_dtype(value).base_dtype
            elif attr.type == "list(type)":
                value = [as_dtype(item).base_dtype for item in value]
            normal = attr_values.from_proto(attr_values.to_proto(value, attr.type))
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"Expected {attr.type} for argument '{attr.name}' of op '{self.op_type}': {error}"
            ) from None
        self._check_attr(attr, normal, attr.name)
        return normal

    def _check_attr(self, attr: AttrDef, value: Any, parameter: str) -> None:
        if attr.minimum is not None:
            number = len(value) if attr.type.startswith("list(") else value
            if number < attr.minimum:
                what = "list of length" if attr.type.startswith("list(") else ""
                raise ValueError(
                    f"Attr '{attr.name}' of '{self.op_type}' Op passed {what}{' ' if what else ''}{number} "
                    f"less than minimum {attr.minimum}."
                )
        if not attr.allowed:
            return
        for item in value if attr.type.startswith("list(") else (value,):
            if item in attr.allowed:
                continue
            if isinstance(item, DType):
                raise TypeError(
                    f"Value passed to parameter '{parameter}' of op '{self.op_type}' has DataType {item.name} not in "
                    f"list of allowed values: {', '.join(t.name for t in attr.allowed)}"
                )
            allowed = '", "'.join(a.decode() for a in attr.allowed)
            raise ValueError(
                f"Attr '{attr.name}' of '{self.op_type}' Op passed string '{item.decode()}' not in: \"{allowed}\"."
            )

    def resolve_attrs(self) -> dict[str, Any]:
        """All attributes in the order of the definition, defaults filled in."""
        resolved = {}
        for attr in self.op_def.attrs:
            if attr.name in self.attrs:
                resolved[attr.name] = self.attrs[attr.name]
            elif attr.has_default:
                resolved[attr.name] = attr.default
            else:
                raise TypeError(
                    f"No argument for attr '{attr.name}' of op '{self.op_type}', which needs a {attr.type}."
                )
        known = self.op_def.attr_by_name.keys() | {arg.name for arg in self.op_def.inputs}
        unknown = sorted(self.arguments.keys() - known)
        if unknown:
            raise TypeError(
                f"apply_op() for op '{self.op_type}' got unexpected keyword arguments: {', '.join(unknown)}"
            )
        return resolved

    # --- inputs ---

    def convert_inputs(self) -> list[Tensor]:
        """The input tensors, in order. Infers attributes on the way: earlier inputs decide the types of later ones."""
        for arg in self.op_def.inputs:
            if arg.name not in self.arguments:
                raise TypeError(f"No argument for input '{arg.name}' of op '{self.op_type}'.")
            value = self.arguments[arg.name]
            tensors = self._convert_list(arg, value) if arg.is_list else [self._convert_one(arg, value)]
            self._infer(arg, tensors)
            if arg.is_ref and not all(tensor.dtype.is_ref_dtype for tensor in tensors):
                raise TypeError(
                    f"'{self.op_type}' Op requires that input '{arg.name}' be a mutable tensor (e.g.: a tf.Variable)"
                )
            self.by_argument.append(tensors)
        return [tensor for tensors in self.by_argument for tensor in tensors]

    def _expected_type(self, arg: ArgDef) -> DType | None:
        return arg.type if arg.type is not None else self.attrs.get(arg.type_attr)

    def _default_type(self, arg: ArgDef) -> DType | None:
        attr = self.op_def.attr_by_name.get(arg.type_attr)
        default: DType | None = attr.default if attr is not None and attr.has_default else None
        return default

    def _convert_one(self, arg: ArgDef, value: Any) -> Tensor:
        wanted = self._expected_type(arg)
        try:
            return convert_to_tensor(
                value, wanted, name=arg.name, preferred_dtype=self._default_type(arg), as_ref=arg.is_ref
            )
        except TypeError as error:
            if wanted is None:
                raise
            raise TypeError(
                f"Expected {wanted.name} passed to parameter '{arg.name}' of op '{self.op_type}', got {_short(value)} "
                f"of type '{type(value).__name__}' instead. Error: {error}"
            ) from None
        except ValueError as error:
            if wanted is None:
                raise ValueError(
                    f"Tried to convert '{arg.name}' to a tensor for op '{self.op_type}' and failed. Error: {error}"
                ) from None
            raise self._mismatch(arg, value, wanted, error) from None

    def _mismatch(self, arg: ArgDef, value: Any, wanted: DType, error: ValueError) -> Exception:
        try:
            observed = convert_to_tensor(value, as_ref=arg.is_ref).dtype.base_dtype.name
        except (TypeError, ValueError):
            return ValueError(f"Tried to convert '{arg.name}' to a tensor and failed. Error: {error}")
        if observed == wanted.base_dtype.name:
            return ValueError(f"Tried to convert '{arg.name}' to a tensor and failed. Error: {error}")
        prefix = f"Input '{arg.name}' of '{self.op_type}' Op has type {observed} that does not match"
        if arg.type is not None:
            return TypeError(f"{prefix} expected type of {wanted.name}.")
        return TypeError(
            f"{prefix} type {wanted.name} of argument '{self.inferred_from.get(arg.type_attr, arg.type_attr)}'."
        )

    def _convert_list(self, arg: ArgDef, value: Any) -> list[Tensor]:
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"Expected list for '{arg.name}' argument to '{self.op_type}' Op, not {_short(value)}.")
        if arg.type_list_attr:
            return self._convert_type_list(arg, value)
        wanted = self._expected_type(arg)
        length = self.attrs.get(arg.number_attr)
        if length is not None and length != len(value):
            raise ValueError(
                f"List argument '{arg.name}' to '{self.op_type}' Op with length {len(value)} must match "
                f"length {length} of argument '{self.inferred_from.get(arg.number_attr, arg.number_attr)}'."
            )
        if wanted is None:
            # A tensor in the list decides the type; constants are converted to it.
            wanted = next((t.dtype.base_dtype for t in value if hasattr(t, "dtype") and _is_tensor_like(t)), None)
        decided = wanted is not None
        tensors: list[Tensor] = []
        for index, item in enumerate(value):
            try:
                tensor = convert_to_tensor(
                    item,
                    # Where no tensor decides, only constants follow the first value.
                    wanted if decided or not _holds_tensor(item) else None,
                    name=f"{arg.name}_{index}",
                    preferred_dtype=self._default_type(arg),
                    as_ref=arg.is_ref,
                )
            except (TypeError, ValueError) as error:
                raise self._list_mismatch(arg, value, wanted, error) from None
            wanted = tensor.dtype.base_dtype if wanted is None else wanted
            if tensor.dtype.base_dtype != wanted:
                raise self._list_mismatch(arg, value, wanted, TypeError())
            tensors.append(tensor)
        return tensors

    def _list_mismatch(self, arg: ArgDef, values: Any, wanted: DType | None, error: Exception) -> Exception:
        types = []
        for item in values:
            try:
                types.append(convert_to_tensor(item).dtype.base_dtype.name)
            except (TypeError, ValueError):
                types.append("<NOT CONVERTIBLE TO TENSOR>")
        if "<NOT CONVERTIBLE TO TENSOR>" in types or len(set(types)) == 1:
            return TypeError(
                f"Tensors in list passed to '{arg.name}' of '{self.op_type}' Op have types "
                f"[{', '.join(types)}]: {error}"
            )
        expected = f" expected type {wanted.name}" if arg.type is not None and wanted is not None else ""
        return TypeError(
            f"Tensors in list passed to '{arg.name}' of '{self.op_type}' Op have types [{', '.join(types)}] that "
            f"don't all match{expected}."
        )

    def _convert_type_list(self, arg: ArgDef, values: Any) -> list[Tensor]:
        types = self.attrs.get(arg.type_list_attr)
        if types is not None and len(types) != len(values):
            raise ValueError(
                f"List argument '{arg.name}' to '{self.op_type}' Op with length {len(values)} must match length "
                f"{len(types)} of argument '{arg.type_list_attr}'."
            )
        tensors = []
        for index, item in enumerate(values):
            wanted = None if types is None else types[index]
            try:
                tensors.append(convert_to_tensor(item, wanted, name=f"{arg.name}_{index}", as_ref=arg.is_ref))
            except ValueError as error:
                type_name = "any" if wanted is None else wanted.name
                raise TypeError(
                    f"Input '{arg.name}' of '{self.op_type}' Op: element {index} is {_short(item)}, which does not "
                    f"match type {type_name} of attr '{arg.type_list_attr}'. Error: {error}"
                ) from None
        return tensors

    def _infer(self, arg: ArgDef, tensors: list[Tensor]) -> None:
        """Infers the attributes that the tensors of one input decide, and checks them."""
        attr_by_name = self.op_def.attr_by_name
        if arg.type_list_attr and arg.type_list_attr not in self.attrs:
            self._set_inferred(arg, attr_by_name[arg.type_list_attr], [tensor.dtype.base_dtype for tensor in tensors])
        if arg.number_attr and arg.number_attr not in self.attrs:
            attr = attr_by_name[arg.number_attr]
            if attr.minimum is not None and len(tensors) < attr.minimum:
                raise ValueError(
                    f"List argument '{arg.name}' to '{self.op_type}' Op with length {len(tensors)} shorter than "
                    f"minimum length {attr.minimum}."
                )
            self._set_inferred(arg, attr, len(tensors))
        if arg.type_attr and arg.type_attr not in self.attrs:
            if tensors:
                self._set_inferred(arg, attr_by_name[arg.type_attr], tensors[0].dtype.base_dtype)
            elif not attr_by_name[arg.type_attr].has_default:
                raise TypeError(
                    f"Don't know how to infer type variable from empty input list passed to input '{arg.name}' "
                    f"of '{self.op_type}' Op."
                )

    def _set_inferred(self, arg: ArgDef, attr: AttrDef, value: Any) -> None:
        self._check_attr(attr, value, arg.name)
        self.attrs[attr.name] = value
        self.inferred_from[attr.name] = arg.name


def _holds_tensor(values: Any) -> bool:
    return isinstance(values, (list, tuple)) and any(_is_tensor_like(each) or _holds_tensor(each) for each in values)


def _is_tensor_like(value: Any) -> bool:
    return isinstance(value, Tensor) or hasattr(type(value), "_as_graph_element")


def _short(value: Any, limit: int = 200) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[:limit] + "…"
