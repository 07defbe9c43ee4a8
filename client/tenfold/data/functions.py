"""StructuredFunction: a Python function of elements as a function of a graph, whose parameters are flat tensors.

`map`, `filter`, `flat_map` and the other transformations that take functions make one; the operation names the graph's
function and takes what it captured as inputs. Follows StructuredFunctionWrapper of TensorFlow 1.15's dataset_ops.py,
without AutoGraph: a function that branches on a tensor uses `tf.cond`.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from tenfold.data import nest, structure
from tenfold.graph.collections import GraphKeys
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.function_graph import Function, build_function, readable_name
from tenfold.ops.tensor_array_list import ListArray

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.graph.tensor import Tensor

#: Collections by which a function would show that it made something that outlives a call.
_RESOURCES = (GraphKeys.TABLE_INITIALIZERS, GraphKeys.RESOURCES, GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES)


class StructuredFunction:
    """`func`, called with elements of `input_structure` (a tuple is unpacked), as a function of the default graph."""

    def __init__(
        self, func: Callable[..., Any], transformation: str, input_structure: Any, add_to_graph: bool = True
    ) -> None:
        """Raises TypeError if `func` returns what is no element, and what `func` raises."""
        self._transformation = transformation
        self._input_structure = input_structure
        #: The specification of what `func` returns.
        self.output_structure: Any = None
        self._func = func
        specs = structure.get_flat_tensor_specs(input_structure)
        name = f"{transformation.removesuffix('()').replace('.', '_')}_{readable_name(func)}"
        self.function: Function = build_function(self._body, [(spec.dtype, spec.shape) for spec in specs], name)
        if self._makes_resources():
            warnings.warn(
                f"Creating resources inside a function passed to {transformation} is not supported. Create each "
                "resource outside the function, and capture it inside the function to use it.",
                stacklevel=4,
            )
        self._warn_of_seed(name)
        if add_to_graph:
            self.function.add_to(get_default_graph())

    def _body(self, *tensors: Tensor) -> list[Tensor]:
        get_default_graph().array_class = ListArray
        arguments = structure.from_compatible_tensor_list(self._input_structure, list(tensors))
        returned = self._func(*(arguments if type(arguments) is tuple else (arguments,)))
        returned = _tuples_for_lists(returned)
        try:
            self.output_structure = structure.type_spec_from_value(returned)
        except (TypeError, ValueError):
            raise TypeError(
                f"Unsupported return value from function passed to {self._transformation}: {returned}."
            ) from None
        return [convert_to_tensor(tensor) for tensor in structure.to_tensor_list(self.output_structure, returned)]

    def _makes_resources(self) -> bool:
        inside, outside = self.function.graph, get_default_graph()
        return any(len(inside.get_collection(key)) > len(outside.get_collection(key)) for key in _RESOURCES)

    def _warn_of_seed(self, name: str) -> None:
        """Of random operations without a seed of their own, which draw the same numbers in every such function."""
        seed, inside = get_default_graph().seed, self.function.graph
        if seed and inside.seed == seed and inside._seed_used:
            warnings.warn(
                f"Seed {seed} from outer graph might be getting used by function {name}, if the random op has not been "
                "provided any seed explicitly. Explicitly set the seed in the function if this is not the intended "
                "behavior.",
                stacklevel=5,
            )

    @property
    def captured_inputs(self) -> list[Tensor]:
        """What the function uses from outside: further inputs of the operation."""
        return self.function.captured_inputs

    @property
    def output_types(self) -> Any:
        """The types of what `func` returns."""
        return structure.legacy_types(self.output_structure)

    @property
    def output_shapes(self) -> Any:
        """The static shapes of what `func` returns."""
        return structure.legacy_shapes(self.output_structure)

    @property
    def output_classes(self) -> Any:
        """The classes of what `func` returns."""
        return structure.legacy_classes(self.output_structure)


def _tuples_for_lists(returned: Any) -> Any:
    """A list that a function returns is several values, as a tuple."""
    return tuple(returned) if isinstance(returned, list) else returned


def function_of_state(
    func: Callable[..., Any],
    transformation: str,
    state: Any,
    element_spec: Any,
    new_state: Callable[[StructuredFunction], Any],
) -> tuple[StructuredFunction, Any]:
    """`func` of (state, element), and the specification of the state, no narrower than what `func` gives back.

    `state` is the specification at the start, `new_state` finds that of the new state in what `func` returns. Raises
    TypeError if the two differ in class or type.
    """
    while True:
        function = StructuredFunction(func, transformation, (state, element_spec), add_to_graph=False)
        returned = new_state(function)
        for what, of in (("classes", structure.legacy_classes), ("types", structure.legacy_types)):
            expected, got = of(state), of(returned)
            if not all(map(_fits, nest.flatten(got), nest.flatten(expected))):
                raise TypeError(
                    f"The element {what} for the new state must match the initial state. Expected {expected}; "
                    f"got {got}."
                )
        shapes = structure.legacy_shapes(state)
        flat, new = nest.flatten(shapes), nest.flatten(structure.legacy_shapes(returned))
        weaker = [a.most_specific_compatible_shape(b) for a, b in zip(flat, new, strict=False)]
        if all(map(_as_weak, flat, weaker)):
            function.function.add_to(get_default_graph())
            return function, state
        state = structure.convert_legacy_structure(
            structure.legacy_types(state), nest.pack_sequence_as(shapes, weaker), structure.legacy_classes(state)
        )


def _as_weak(old: Any, weaker: Any) -> bool:
    """Whether a shape says no more than a weaker one."""
    return old.ndims is None or (weaker.ndims is not None and old.as_list() == weaker.as_list())


def _fits(new: Any, old: Any) -> bool:
    """Whether a class is, or derives from, another; types must be equal."""
    if isinstance(new, type) and isinstance(old, type):
        return issubclass(new, old)
    return bool(new == old)
