"""`tf.import_graph_def`: adds the nodes of a GraphDef to the default graph, under a prefix.

Nodes may come in any order; loops are closed through NextIteration, whose edge to its Merge is added last. Inputs can
be replaced by tensors of the graph (`input_map`). A name that is taken is made unique (import_names.py). A node that is
colocated with others gets the device of one of them, and no device function is asked about it (import_devices.py).
Follows TensorFlow 1.x's importer.py.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.import_devices import colocated_with, settle_colocated
from tenfold.graph.import_names import free_names
from tenfold.graph.import_unknown import definitions_of_unknown, marked
from tenfold.graph.operation import LOCATION_PREFIX, Operation
from tenfold.graph.shapes import set_output_shapes
from tenfold_core import attr_value as attr_values
from tenfold_core import errors, graph_versions, node_attrs, opdefs
from tenfold_core.node_names import parse_tensor_name
from tenfold_core.node_signature import signature
from tenfold_core.op_def import OpDef
from tenfold_core.opdefs.runtime_ops import MERGE_OPS, NEXT_ITERATION_OPS
from tenfold_core.stand_ins import MARK
from tenfold_protos import attr_value_pb2, graph_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold.graph.graph import Graph
    from tenfold.graph.tensor import Tensor
    from tenfold_protos import node_def_pb2, versions_pb2


def import_graph_def(
    graph_def: graph_pb2.GraphDef,
    input_map: Mapping[str, Any] | None = None,
    return_elements: Sequence[str] | None = None,
    name: str | None = None,
    op_dict: Any = None,
    producer_op_list: Any = None,
) -> list[Any] | None:
    """Adds the nodes of `graph_def` with the prefix `name` (default "import"; "" for none).

    `input_map` maps names of the GraphDef ("x", "x:1", "^c") to tensors or operations that replace them.
    A node whose name the graph has already gets another, "x_1". Returns the operations and tensors that
    `return_elements` names, by their names in the GraphDef, or None if it is None. `producer_op_list` (an OpList)
    defines operations that are not here; their nodes, and those of TensorFlow's other operations, can be in the graph
    but not be run. `op_dict` is accepted and ignored. Raises TypeError for arguments of the wrong kind, ValueError,
    naming the node, for an invalid GraphDef.
    """
    if not isinstance(graph_def, graph_pb2.GraphDef):
        raise TypeError("graph_def must be a GraphDef proto.")
    if return_elements is not None:
        return_elements = tuple(e.decode() if isinstance(e, bytes) else e for e in return_elements)
        if not all(isinstance(element, str) for element in return_elements):
            raise TypeError("return_elements must be a list of strings.")
    replacements = dict(input_map or {})
    if not all(isinstance(key, str) for key in replacements):
        raise TypeError("input_map must be a dictionary mapping strings to Tensor objects.")
    scope_context: Any = nullcontext("") if name == "" else name_scope(name, "import", list(replacements.values()))
    with scope_context as scope:
        graph = get_default_graph()
        _take_versions(graph, graph_def.versions)
        # First: nodes may call the functions.
        library = graph_def.library
        graph._functions.update((each.signature.name, marked(each, producer_op_list)) for each in library.function)
        graph._function_gradients.update((each.function_name, each.gradient_func) for each in library.gradient)
        job = _Import(graph, graph_def, replacements, scope)
        job.stand_ins = definitions_of_unknown(job.nodes, graph._functions, job.definition, producer_op_list)
        for element in return_elements or ():
            job.require(element)
        if name == "":
            with graph.name_scope(None):
                job.run()
        else:
            job.run()
    unused = sorted(key for key in replacements if key not in job.used_replacements)
    if unused:
        raise ValueError(f"Attempted to map inputs that were not found in graph_def: [{', '.join(unused)}]")
    return None if return_elements is None else [job.find(element) for element in return_elements]


def _take_versions(graph: Graph, versions: versions_pb2.VersionDef) -> None:
    """The graph means from now on what the older of it and `versions` means. Raises ValueError for one not to read."""
    try:
        graph_versions.check_versions(versions)
    except errors.InvalidArgumentError as error:
        raise ValueError(error.message) from None
    graph_versions.join(graph.graph_def_versions, versions)


class _Import:
    """One import: the GraphDef's nodes by name, and the operations made of them so far."""

    def __init__(self, graph: Graph, graph_def: graph_pb2.GraphDef, replacements: dict[str, Any], scope: str) -> None:
        self.graph = graph
        self.replacements = replacements
        self.scope = scope
        self.used_replacements: set[str] = set()
        self.producer = graph_def.versions.producer
        self.nodes: dict[str, node_def_pb2.NodeDef] = {}
        self.ops: dict[str, Operation] = {}
        #: Node whose operation is not here → a definition that does for keeping it.
        self.stand_ins: dict[str, OpDef] = {}
        #: (Merge, input index, name in the GraphDef): edges that close loops.
        self.back_edges: list[tuple[Operation, int, str]] = []
        for node in graph_def.node:
            if node.name in self.nodes:
                raise ValueError(f"graph_def has two nodes with the name '{node.name}'.")
            self.nodes[node.name] = node
        #: Name in the GraphDef → name in the graph.
        self.names = free_names(self.nodes, scope, graph._nodes_by_name)

    def run(self) -> None:
        for node in self.nodes.values():
            self._check_colocation(node)
        for node in self._in_order():
            self._add(node)
        settle_colocated(self.ops.values(), self.graph._nodes_by_name)
        for merge, index, name in self.back_edges:
            merge._update_input(index, self._tensor(name, merge.name))
        for op in self.ops.values():
            if op.type == "Merge":
                set_output_shapes(op)

    def _in_order(self) -> list[node_def_pb2.NodeDef]:
        """The nodes, producers first. Raises ValueError for a missing producer or a cycle outside a loop."""
        order: list[node_def_pb2.NodeDef] = []
        state: dict[str, bool] = {}  # False: on the path to the current node; True: done
        for root in self.nodes:
            if root in state:
                continue
            state[root] = False
            path = [(root, iter(self._producers(root)))]
            while path:
                name, producers = path[-1]
                for producer in producers:
                    if producer not in state:
                        state[producer] = False
                        path.append((producer, iter(self._producers(producer))))
                        break
                    if not state[producer]:
                        raise ValueError(f"graph_def has a cycle through the nodes '{name}' and '{producer}'.")
                else:
                    path.pop()
                    state[name] = True
                    order.append(self.nodes[name])
        return order

    def _producers(self, name: str) -> list[str]:
        node = self.nodes[name]
        found = []
        for text in node.input:
            if self._replacement(text) is not None:
                continue
            producer = parse_tensor_name(text.removeprefix("^"))[0]
            if producer not in self.nodes:
                raise ValueError(f"Node '{name}': Unknown input node '{text}'")
            if node.op in MERGE_OPS and self.nodes[producer].op in NEXT_ITERATION_OPS:
                continue
            found.append(producer)
        return found

    def _replacement(self, text: str) -> Any:
        """What `input_map` gives for the input `text` of a node, or None."""
        if text.startswith("^"):
            candidates = [text]
        else:
            op_name, index = parse_tensor_name(text)
            candidates = [f"{op_name}:{index}", *([op_name] if index == 0 else [])]
        for key in candidates:
            if key in self.replacements:
                self.used_replacements.add(key)
                return self.replacements[key]
        return None

    def _tensor(self, text: str, consumer: str) -> Tensor:
        replacement = self._replacement(text)
        if replacement is not None:
            return convert_to_tensor(replacement, as_ref=True)
        name, index = parse_tensor_name(text)
        outputs = self.ops[name].outputs
        if index >= len(outputs):
            raise ValueError(
                f"Node '{consumer}': Connecting to invalid output {index} of source node {name} which has "
                f"{len(outputs)} outputs."
            )
        return outputs[index]

    def _control(self, text: str) -> Operation:
        replacement = self._replacement(text)
        if replacement is not None:
            return self.graph._control_input(replacement)
        return self.ops[text[1:]]

    def definition(self, op_type: str) -> OpDef:
        """The definition of an op, or of a function that is called like one. Raises NotFoundError for neither."""
        if op_type in self.graph._functions and not opdefs.has(op_type):
            return OpDef.from_proto(self.graph._functions[op_type].signature)
        return opdefs.get(op_type)

    def _add(self, node: node_def_pb2.NodeDef) -> None:
        try:
            op_def = self.stand_ins.get(node.name) or self.definition(node.op)
            graph_versions.check_op(node.op, self.producer)
            resolved = node_attrs.resolve_attrs(op_def, node)
            attr_values.refuse_placeholders(resolved)
            attrs = {attr.name: resolved[attr.name] for attr in op_def.attrs}
            wanted = signature(op_def, attrs).input_types
        except errors.UnimplementedError as error:
            raise errors.UnimplementedError(node, None, f"Node '{node.name}': {error.message}") from None
        except errors.OpError as error:
            raise ValueError(f"Node '{node.name}': {error.message}") from None
        except TypeError as error:
            raise ValueError(f"Node '{node.name}': {error}") from None
        data = [text for text in node.input if not text.startswith("^")]
        if len(data) != len(wanted):
            raise ValueError(
                f"Node '{node.name}': NodeDef mentions {len(data)} inputs; op {node.op} takes {len(wanted)}."
            )
        inputs: list[Tensor] = []
        late: list[tuple[int, str]] = []
        for index, text in enumerate(data):
            if self._replacement(text) is None and parse_tensor_name(text)[0] not in self.ops:
                late.append((index, text))
                continue
            inputs.append(self._tensor(text, node.name))
        # Until the loop is closed, the Merge has its other input twice.
        for index, _ in late:
            inputs.insert(index, inputs[0])
        for index, (tensor, dtype) in enumerate(() if op_def.is_stand_in else zip(inputs, wanted, strict=True)):
            if tensor.dtype.base_dtype != dtype.base_dtype or (dtype.is_ref_dtype and not tensor.dtype.is_ref_dtype):
                raise ValueError(
                    f"Node '{node.name}': Input {index} of node {node.name} was passed {tensor.dtype.name} from "
                    f"{tensor.name} incompatible with expected {dtype.name}."
                )
        extra = {key: value for key, value in node.attr.items() if key not in op_def.attr_by_name}
        if op_def.is_stand_in:
            extra[MARK] = attr_value_pb2.AttrValue(b=True)
        name = self.names[node.name]
        colocated = False
        if "_class" in extra:
            extra["_class"] = self._renamed_class(extra["_class"])
            colocated = any(other != name for other in colocated_with(extra["_class"]))
        waits_for = [self._control(text) for text in node.input if text.startswith("^")]
        scope_of_node = self.graph.device(node.device) if node.device else nullcontext()
        with scope_of_node:
            op = self.graph._add_operation(
                op_def,
                inputs,
                f"{name}/",
                attrs,
                extra,
                control_inputs=[
                    *waits_for,
                    *self.graph._control_dependencies_for_inputs({*waits_for, *(tensor.op for tensor in inputs)}),
                ],
                compute_device=not colocated,
                compute_shapes=not late,
            )
        self.ops[node.name] = op
        self.back_edges.extend((op, index, text) for index, text in late)
        self._keep_shapes(op, node)

    def _keep_shapes(self, op: Operation, node: node_def_pb2.NodeDef) -> None:
        """Adds the shapes that `as_graph_def(add_shapes=True)` wrote."""
        if "_output_shapes" in node.attr:
            op._clear_attr("_output_shapes")
            for tensor, shape in zip(op.outputs, node.attr["_output_shapes"].list.shape, strict=False):
                tensor.set_shape(shape)

    def _check_colocation(self, node: node_def_pb2.NodeDef) -> None:
        for other in colocated_with(node.attr["_class"]) if "_class" in node.attr else ():
            if other not in self.nodes:
                raise ValueError(
                    f"Node '{node.name}' expects to be colocated with unknown node '{other}': graph_def has none of "
                    "that name."
                )

    def _renamed_class(self, value: attr_value_pb2.AttrValue) -> attr_value_pb2.AttrValue:
        """The groups of `_class`, which name nodes of the GraphDef, by the names that these have in the graph."""
        renamed = attr_value_pb2.AttrValue()
        for group in value.list.s:
            is_node = group.startswith(LOCATION_PREFIX)
            other = self.names[group.removeprefix(LOCATION_PREFIX).decode()] if is_node else ""
            renamed.list.s.append(LOCATION_PREFIX + other.encode() if is_node else group)
        return renamed

    def require(self, element: str) -> None:
        """Raises ValueError unless the GraphDef has the node that `element` names: before anything is added."""
        name, colon, index = element.rpartition(":")
        if (name if colon and index.isdigit() else element) not in self.nodes:
            raise ValueError(f"Requested return_element '{element}' not found in graph_def.")

    def find(self, element: str) -> Tensor | Operation:
        """The imported operation or tensor that `element` names."""
        name, colon, index = element.rpartition(":")
        is_tensor = bool(colon) and index.isdigit()
        op = self.ops.get(name if is_tensor else element)
        if op is None or (is_tensor and int(index) >= len(op.outputs)):
            raise ValueError(f"Requested return_element '{element}' not found in graph_def.")
        return op.outputs[int(index)] if is_tensor else op
