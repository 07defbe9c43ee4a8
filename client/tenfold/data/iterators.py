"""Iterators over datasets: one-shot, initializable, reinitializable and fed by a handle (`tf.data.Iterator`).

An iterator is a resource of the task that its operation is placed on; `get_next()` is an operation that moves it on.
Follows TensorFlow 1.15's data/ops/iterator_ops.py and the iterators of dataset_ops.py.
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold.data import nest, structure
from tenfold.data.applied import with_applied_options
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import add_to_collection, colocate_with, device, name_scope
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.function_graph import build_function
from tenfold.graph.op_builder import apply_op, create, tensor_op
from tenfold.graph.tensor import Tensor
from tenfold.ops.random_seed import get_seed, set_random_seed
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype
from tenfold_core.tensor_shape import TensorShape, as_shape

if TYPE_CHECKING:
    from tenfold.data.node import DatasetNode
    from tenfold.graph.operation import Operation

#: The collection of all iterators' resources; CheckpointInputPipelineHook saves them.
GLOBAL_ITERATORS = "iterators"
#: More calls of `get_next` than this on one iterator look like calls in a training loop.
GET_NEXT_CALL_WARNING_THRESHOLD = 32
GET_NEXT_CALL_WARNING_MESSAGE = (
    "An unusually high number of `Iterator.get_next()` calls was detected. This often indicates that "
    "`Iterator.get_next()` is being called inside a training loop, which will cause gradual slowdown and eventual "
    "resource exhaustion. If this is the case, restructure your code to call `next_element = iterator.get_next()` once "
    "outside the loop, and use `next_element` as the input to some computation that is invoked inside the loop."
)


class OfElements:
    """What gives elements of one specification."""

    _element_spec: Any

    @property
    def element_spec(self) -> Any:
        """The specification of the elements."""
        return self._element_spec

    @property
    def output_types(self) -> Any:
        """The types of the elements."""
        return structure.legacy_types(self._element_spec)

    @property
    def output_shapes(self) -> Any:
        """The static shapes of the elements."""
        return structure.legacy_shapes(self._element_spec)


class Iterator(OfElements):
    """A place in a dataset, kept on a task; `get_next()` gives what comes next there."""

    def __init__(
        self, iterator_resource: Tensor, initializer: Any, output_types: Any, output_shapes: Any, output_classes: Any
    ) -> None:
        """Made by the functions below; `initializer` may be None."""
        if output_types is None or output_shapes is None or output_classes is None:
            raise ValueError(
                "If `structure` is not specified, all of `output_types`, `output_shapes`, and `output_classes` must be "
                "specified."
            )
        self._iterator_resource = iterator_resource
        self._initializer = initializer
        self._element_spec = structure.convert_legacy_structure(output_types, output_shapes, output_classes)
        self._string_handle = tensor_op("IteratorToStringHandle", resource_handle=iterator_resource)
        self._get_next_call_count = 0
        add_to_collection(GLOBAL_ITERATORS, iterator_resource)

    @staticmethod
    def from_structure(
        output_types: Any, output_shapes: Any = None, shared_name: str | None = None, output_classes: Any = None
    ) -> Iterator:
        """An iterator for any dataset of these types and shapes; `make_initializer` starts it on one.

        Raises TypeError or ValueError if the structures of the arguments differ.
        """
        types, shapes, classes, spec = _described(output_types, output_shapes, output_classes)
        with _on_the_host():
            resource = _iterator_resource(spec, shared_name)
        return Iterator(resource, None, types, shapes, classes)

    @staticmethod
    def from_string_handle(
        string_handle: Any, output_types: Any, output_shapes: Any = None, output_classes: Any = None
    ) -> Iterator:
        """The iterator whose `string_handle()` has this value, a scalar string that is fed in most cases."""
        types, shapes, classes, spec = _described(output_types, output_shapes, output_classes)
        handle = convert_to_tensor(string_handle, dtype=dtypes.string)
        with _on_the_host():
            resource = tensor_op("IteratorFromStringHandleV2", string_handle=handle, **structure.flat_attrs(spec))
        return Iterator(resource, None, types, shapes, classes)

    @property
    def initializer(self) -> Operation:
        """Starts the iterator. Raises ValueError for one that is started otherwise."""
        if self._initializer is None:
            raise ValueError("Iterator does not have an initializer.")
        found: Operation = self._initializer
        return found

    def make_initializer(self, dataset: DatasetNode, name: str | None = None) -> Operation:
        """An operation that starts this iterator on `dataset`. Raises TypeError or ValueError if it does not fit."""
        with name_scope(name, "make_initializer") as scope:
            spec = dataset.element_spec
            nest.assert_same_structure(self.output_types, structure.legacy_types(spec))
            nest.assert_same_structure(self.output_shapes, structure.legacy_shapes(spec))
            self._check("classes", self.output_classes, structure.legacy_classes(spec))
            self._check("types", self.output_types, structure.legacy_types(spec))
            shapes = structure.legacy_shapes(spec)
            pairs = zip(nest.flatten(self.output_shapes), nest.flatten(shapes), strict=True)
            if not all(mine.is_compatible_with(theirs) for mine, theirs in pairs):
                raise TypeError(
                    f"Expected output shapes compatible with {self.output_shapes!r} but got dataset with output shapes "
                    f"{shapes!r}."
                )
        with colocate_with(self._iterator_resource):
            made: Operation = apply_op(
                "MakeIterator", scope, dataset=dataset._variant_tensor, iterator=self._iterator_resource
            )
        return made

    @staticmethod
    def _check(what: str, expected: Any, got: Any) -> None:
        if any(a != b for a, b in zip(nest.flatten(expected), nest.flatten(got), strict=True)):
            found = f"output class {got!r}" if what == "classes" else f"output types {got!r}"
            raise TypeError(f"Expected output {what} {expected!r} but got dataset with {found}.")

    def get_next(self, name: str | None = None) -> Any:
        """The next element; when it is run at the end, OutOfRangeError. Call it once, and run what it gives again."""
        self._get_next_call_count += 1
        if self._get_next_call_count > GET_NEXT_CALL_WARNING_THRESHOLD:
            warnings.warn(GET_NEXT_CALL_WARNING_MESSAGE, stacklevel=2)
        attrs = structure.flat_attrs(self._element_spec)
        op = create("IteratorGetNext", name, {"iterator": self._iterator_resource, **attrs})
        return structure.from_tensor_list(self._element_spec, list(op.outputs))

    def string_handle(self, name: str | None = None) -> Tensor:
        """A scalar string that stands for this iterator, to be fed to `from_string_handle`."""
        if name is None:
            return self._string_handle
        return tensor_op("IteratorToStringHandle", name, resource_handle=self._iterator_resource)

    @property
    def output_classes(self) -> Any:
        """The classes of the elements."""
        return structure.legacy_classes(self._element_spec)


def _described(types: Any, shapes: Any, classes: Any) -> tuple[Any, Any, Any, Any]:
    """Types, shapes and classes in full, and the specification that they give together."""
    types = nest.map_structure(as_dtype, types)
    if shapes is None:
        shapes = nest.map_structure(lambda _: TensorShape(None), types)
    else:
        shapes = nest.map_structure_up_to(types, as_shape, shapes)
    if classes is None:
        classes = nest.map_structure(lambda _: Tensor, types)
    nest.assert_same_structure(types, shapes)
    return types, shapes, classes, structure.convert_legacy_structure(types, shapes, classes)


def _on_the_host() -> Any:
    """The CPU, unless a device is asked for: there an iterator can be handed on."""
    return nullcontext() if get_default_graph()._device_functions_outer_to_inner else device("/cpu:0")


def _iterator_resource(element_spec: Any, shared_name: str | None) -> Tensor:
    return tensor_op("IteratorV2", container="", shared_name=shared_name or "", **structure.flat_attrs(element_spec))


def _described_by(dataset: DatasetNode) -> tuple[Any, Any, Any]:
    spec = dataset.element_spec
    return structure.legacy_types(spec), structure.legacy_shapes(spec), structure.legacy_classes(spec)


def make_initializable_iterator(dataset: DatasetNode, shared_name: str | None = None) -> Iterator:
    """An iterator that its `initializer` starts, each time from the beginning. With a name it can be shared."""
    _warn_of_other_graphs(dataset)
    applied = with_applied_options(dataset)
    resource = _iterator_resource(dataset.element_spec, shared_name)
    with colocate_with(resource):
        initializer = apply_op("MakeIterator", dataset=applied._variant_tensor, iterator=resource)
    return Iterator(resource, initializer, *_described_by(applied))


def make_one_shot_iterator(dataset: DatasetNode) -> Iterator:
    """An iterator that needs no initializer and goes through the dataset once.

    The dataset becomes a function of its own. Raises ValueError if it uses a variable, a table or a placeholder.
    """
    _warn_of_other_graphs(dataset)
    graph = get_default_graph()
    graph_seed, op_seed = get_seed(None)

    def dataset_factory() -> list[Any]:
        if graph_seed is not None and op_seed is not None:
            set_random_seed((graph_seed + 87654321 * op_seed) % (2**63 - 1))
        return [with_applied_options(dataset)._variant_tensor]

    try:
        function = build_function(
            dataset_factory, (), "make_dataset", by_value=True, may_be_copied=_variant_ops(dataset._variant_tensor.op)
        )
    except ValueError as error:
        if "Cannot capture a stateful node" not in str(error):
            raise
        raise ValueError(
            "Failed to create a one-shot iterator for a dataset. `Dataset.make_one_shot_iterator()` does not support "
            "datasets that capture stateful objects, such as a `Variable` or `LookupTable`. In these cases, use "
            f"`Dataset.make_initializable_iterator()`. (Original error: {error})"
        ) from None
    function.add_to(graph)
    resource = tensor_op("OneShotIterator", dataset_factory=function.name, **dataset._flat_structure)
    return Iterator(resource, None, *_described_by(dataset))


def _variant_ops(op: Operation) -> list[Operation]:
    """The operations behind `op` that make datasets, and their kin."""
    seen, pending = {op}, [op]
    while pending:
        for tensor in pending.pop().inputs:
            if tensor.op not in seen:
                seen.add(tensor.op)
                pending.append(tensor.op)
    return [each for each in seen if each.outputs and each.outputs[0].dtype == dtypes.variant]


def _warn_of_other_graphs(dataset: DatasetNode) -> None:
    graph = get_default_graph()
    pending, seen = [dataset], set()
    while pending:
        current = pending.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if current._graph is not graph:
            logging.warning(
                f"The graph ({graph}) of the iterator is different from the graph ({current._graph}) the dataset: "
                f"{current._variant_tensor} was  created in. If you are using the Estimator API, make sure that no "
                "part of the dataset returned by the `input_fn` function is defined outside the `input_fn` function. "
                "Please ensure that all datasets in the pipeline are created in the same graph as the iterator."
            )
        pending.extend(current._inputs())
