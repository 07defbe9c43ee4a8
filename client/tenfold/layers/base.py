"""`tf.layers.Layer`: an object that makes its variables at its first call and uses them in later calls.

A layer has a variable scope of its own, chosen at the first call: `dense`, or `dense_1` if that name is taken. Its
regularization losses go to REGULARIZATION_LOSSES and its updates to UPDATE_OPS. Follows TensorFlow 1.15's
layers/base.py with the parts of keras/engine/base_layer.py that it needs. Node names are the same, and so is their
number, because default seeds depend on it.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

from tenfold import nest
from tenfold.graph.collections import GraphKeys
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.default_stack import get_default_graph
from tenfold.layers.input_spec import InputSpec, check_inputs
from tenfold.named import named
from tenfold.ops import array, math
from tenfold.ops.variable_scope import get_variable, variable_scope
from tenfold.ops.variables import Variable, VariableAggregation, VariableSynchronization, global_variables
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype
from tenfold_core.tensor_shape import TensorShape, as_shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.ops.scope_defaults import VariableScope
    from tenfold_core.dtypes import DType

__all__ = ["InputSpec", "Layer", "functional"]

_NAME_COUNTS_KEY = ("__layer_names",)


def _snake_case(name: str) -> str:
    """ "Conv2DTranspose" → "conv2d_transpose"."""
    part = re.sub("(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    result = re.sub("([a-z])([A-Z])", r"\1_\2", part).lower()
    return "private" + result if result.startswith("_") else result


def _unique_name(base_name: str) -> str:
    """`base_name`, numbered by how many layers of the graph have it."""
    holder = get_default_graph().get_collection_ref(_NAME_COUNTS_KEY)
    if not holder:
        holder.append({})
    counts: dict[str, int] = holder[0]
    counts[base_name] = counts.get(base_name, 0) + 1
    return f"{base_name}_{counts[base_name]}"


def _collect(elements: Any, key: str) -> None:
    """Adds the elements that it lacks to a collection of the graph."""
    collection = get_default_graph().get_collection_ref(key)
    for element in elements:
        if not any(element is other for other in collection):
            collection.append(element)


class Layer:
    """Base of layers. A subclass makes variables with `add_weight` in `build(input_shape)`, and the output in `call`.

    `trainable=False` keeps its variables out of TRAINABLE_VARIABLES; `dtype` is that of the first input by default.
    `activity_regularizer` maps each output to a loss. The functions of `tf.layers` pass `_reuse` and `_scope`.
    """

    input_spec: InputSpec | list[InputSpec] | None

    def __init__(self, trainable: bool = True, name: str | None = None, dtype: Any = None, **kwargs: Any) -> None:
        scope = kwargs.pop("_scope", None)
        self._reuse = kwargs.pop("_reuse", None)
        self._activity_regularizer = kwargs.pop("activity_regularizer", None)
        known = {"autocast", "input_shape", "batch_input_shape", "batch_size", "weights", "dynamic"}
        for argument in kwargs:
            if argument not in known:
                raise TypeError("Keyword argument not understood:", argument)
        self.trainable = trainable
        self.built = False
        self.input_spec = None
        self._dtype = None if dtype is None else as_dtype(dtype)
        self._base_name: str = _snake_case(type(self).__name__)
        if isinstance(name, str) and name:
            self._name = self._base_name = name
        else:
            if hasattr(name, "original_name_scope"):
                self._base_name = str(getattr(name, "name", ""))
            self._name = _unique_name(_snake_case(type(self).__name__))
        self._trainable_weights: list[Any] = []
        self._non_trainable_weights: list[Any] = []
        self._losses: list[Any] = []
        self._updates: list[Any] = []
        self._call_takes_scope = "scope" in inspect.signature(self.call).parameters
        self._scope: VariableScope | None = None
        #: The scope while the layer is being called or built.
        self._current_scope: VariableScope | None = None
        if scope:
            with variable_scope(scope) as captured:
                self._scope = captured

    # --- for subclasses to override ---

    def build(self, input_shape: Any) -> None:
        """Makes the variables, once, when the shape of the input is known."""
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The output for `inputs`."""
        return inputs

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The static shape of the output for that of an input."""
        raise NotImplementedError(f"{type(self).__name__} does not say what shape it gives")

    # --- properties ---

    @property
    def name(self) -> str:
        """The name of the layer; its scope may have another one."""
        return self._name

    @property
    def dtype(self) -> Any:
        """The type of the variables, None before the first call."""
        return None if self._dtype is None else self._dtype.name

    @property
    def scope_name(self) -> str:
        """The name of the variable scope. Raises ValueError before the first call."""
        if self._scope is None:
            raise ValueError(
                f'No name available for layer scope because the layer "{self._name}" has not been used yet. The scope '
                "name  is determined the first time the layer instance is called. You must therefore call the layer "
                "before querying `scope_name`."
            )
        return self._scope.name

    @property
    def activity_regularizer(self) -> Any:
        """The function from an output to a loss."""
        return self._activity_regularizer

    @property
    def trainable_weights(self) -> list[Any]:
        """The variables that are trained; none if the layer is not trainable."""
        return list(self._trainable_weights) if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The other variables."""
        held = self._non_trainable_weights
        return list(held) if self.trainable else [*self._trainable_weights, *held]

    @property
    def weights(self) -> list[Any]:
        """All variables."""
        return [*self.trainable_weights, *self.non_trainable_weights]

    variables = weights
    trainable_variables = trainable_weights
    non_trainable_variables = non_trainable_weights

    @property
    def losses(self) -> list[Any]:
        """The regularization losses of the layer."""
        return list(self._losses)

    @property
    def updates(self) -> list[Any]:
        """The operations to run with each training step; none if the layer is not trainable."""
        return list(self._updates) if self.trainable else []

    def get_losses_for(self, inputs: Any) -> list[Any]:
        """The losses that depend on `inputs`, or those that depend on none of them for None."""
        return [loss for loss, conditional in self._conditional(self._losses) if conditional == (inputs is not None)]

    def get_updates_for(self, inputs: Any) -> list[Any]:
        """The updates that depend on `inputs`, or those that depend on none of them for None."""
        found = self._conditional(self.updates)
        return [update for update, conditional in found if conditional == (inputs is not None)]

    def _conditional(self, elements: list[Any]) -> list[tuple[Any, bool]]:
        return [(element, getattr(element, "_of_activity", False)) for element in elements]

    def count_params(self) -> int:
        """The number of elements in the variables. Raises ValueError before they exist."""
        if not self.built:
            raise ValueError(
                f"You tried to call `count_params` on {self._name}, but the layer isn't built. You can build it "
                "manually via: `" + self._name + ".build(batch_input_shape)`."
            )
        return sum(variable.shape.num_elements() or 0 for variable in self.weights)

    # --- losses, updates, variables ---

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds regularization losses: tensors, or functions that give one."""
        found = [loss() if callable(loss) else loss for loss in nest.flatten(losses)]
        found = [convert_to_tensor(loss) for loss in found if loss is not None]
        self._losses += found
        _collect(found, GraphKeys.REGULARIZATION_LOSSES)

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Adds operations that go to UPDATE_OPS after the call; functions that return one are called at once."""
        for update in nest.flatten(updates):
            value = update() if callable(update) and not isinstance(update, Variable) else update
            self._updates.append(value if not hasattr(value, "op") else value.op)

    def add_variable(self, *args: Any, **kwargs: Any) -> Any:
        """`add_weight` under its older name."""
        return self.add_weight(*args, **kwargs)

    def add_weight(
        self,
        name: str,
        shape: Any,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        trainable: bool | None = None,
        constraint: Any = None,
        use_resource: bool | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        partitioner: Any = None,
    ) -> Any:
        """A variable of the layer, made or shared as its scope says. A shared variable is regularized once."""
        if synchronization == VariableSynchronization.ON_READ:
            if trainable:
                raise ValueError(
                    "Synchronization value can be set to VariableSynchronization.ON_READ only for non-trainable "
                    "variables. You have specified trainable=True and "
                    "synchronization=VariableSynchronization.ON_READ."
                )
            trainable = False
        trains = (trainable is None or trainable) and self.trainable
        wanted: DType = as_dtype(dtype if dtype is not None else self._dtype or dtypes.float32)
        existing = {id(variable) for variable in global_variables()}
        self._set_scope(None)
        assert self._scope is not None
        reuse = True if self.built else self._reuse
        with variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False) as scope:
            self._current_scope = scope
            with name_scope(scope.original_name_scope):
                variable = get_variable(
                    name,
                    shape=as_shape(shape),
                    dtype=wanted,
                    initializer=scope.initializer if initializer is None else initializer,
                    trainable=trains,
                    constraint=constraint,
                    partitioner=partitioner,
                    use_resource=use_resource or scope.use_resource,
                    synchronization=synchronization,
                    aggregation=aggregation,
                )
                parts = list(variable) if hasattr(variable, "as_tensor") else [variable]
                if regularizer is not None and not any(id(part) in existing for part in parts):
                    for part in parts:
                        self._regularize(name, part, regularizer)
        # a custom getter may give what it makes of a variable, such as a cast
        trains = trains and getattr(parts[0], "trainable", True)
        held = self._trainable_weights if trains else self._non_trainable_weights
        held += parts
        return variable

    def _regularize(self, name: str, variable: Any, regularizer: Callable[[Any], Any]) -> None:
        with name_scope(name + "/Regularizer"):
            loss = regularizer(variable)
        if loss is not None:
            self.add_loss(loss)

    # --- calling ---

    def _set_scope(self, scope: Any) -> None:
        if self._scope is not None:
            return
        if self._reuse:
            with variable_scope(self._base_name if scope is None else scope) as captured:
                self._scope = captured
        else:
            with variable_scope(scope, default_name=self._base_name) as captured:
                self._scope = captured

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The output for `inputs`; makes the variables at the first call. Raises ValueError for unfit inputs."""
        self._set_scope(kwargs.pop("scope", None))
        assert self._scope is not None
        reuse = True if self.built else self._reuse
        first = nest.flatten(inputs)
        graph = next((item.graph for item in first if hasattr(item, "graph")), get_default_graph())
        with graph.as_default(), variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False) as scope:
            self._current_scope = scope
            if self._call_takes_scope:
                kwargs["scope"] = scope
            with name_scope(scope.original_name_scope):
                if not any(hasattr(item, "graph") for item in first):
                    inputs = nest.map_structure(convert_to_tensor, inputs)
                self._build_for(inputs)
                check_inputs(self.input_spec, inputs, self.name)
                outputs = self.call(inputs, *args, **kwargs)
                if outputs is None:
                    raise ValueError(
                        "A layer's `call` method should return a Tensor or a list of Tensors, not None "
                        f"(layer: {self.name})."
                    )
                self._regularize_outputs(outputs)
        _collect(self.updates, GraphKeys.UPDATE_OPS)
        return outputs

    def apply(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Old spelling of calling the layer."""
        return self(inputs, *args, **kwargs)

    def _build_for(self, inputs: Any) -> None:
        if self.built:
            return
        check_inputs(self.input_spec, inputs, self.name)
        tensors = nest.flatten(inputs)
        if self._dtype is None and tensors and hasattr(tensors[0], "dtype"):
            self._dtype = as_dtype(tensors[0].dtype).base_dtype
        shapes = nest.map_structure(lambda item: item.shape if hasattr(item, "shape") else None, inputs)
        self.build(shapes)
        self.built = True

    def _regularize_outputs(self, outputs: Any) -> None:
        if self._activity_regularizer is None:
            return
        with name_scope("ActivityRegularizer"):
            for output in nest.flatten(outputs):
                loss = self._activity_regularizer(output)
                batch = math.cast(array.shape(output)[0], loss.dtype)
                self.add_loss(loss / batch, inputs=outputs)


def functional(layer_class: type[Layer], name: str, doc: str) -> Callable[..., Any]:
    """The function of `tf.layers` that makes a layer of the class and calls it: (inputs, the class's arguments, reuse).

    With `name` the variables are `name/…`, shared if `reuse` is set.
    """
    inner = inspect.signature(layer_class.__init__)
    parameters = [p for p in inner.parameters.values() if p.name != "self" and p.kind is not p.VAR_KEYWORD]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [inspect.Parameter("inputs", kind), *parameters, inspect.Parameter("reuse", kind, default=None)]
    )

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{name}() {error}; its arguments are {signature}") from None
        inputs = given.pop("inputs")
        layer = layer_class(_reuse=given.pop("reuse", None), _scope=given.get("name"), **given)
        return layer(inputs)

    function.__signature__ = signature  # type: ignore[attr-defined]
    return named(function, name, doc)
