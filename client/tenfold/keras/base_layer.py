"""The base of Keras's layers: one of tf.layers that knows the layers in it, and what it was called with.

Its losses and updates stay with it, for the model that has it (training.py). Each call is kept with the graph, so that
a model finds the layers between its inputs and its outputs (`calls_of`). Follows TensorFlow 1.15's
keras/engine/base_layer.py.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tenfold import nest
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.tensor import Tensor
from tenfold.keras import initializers, regularizers
from tenfold.layers.base import Layer as BaseLayer
from tenfold.layers.base import _snake_case
from tenfold.ops import array
from tenfold.ops.variables import VariableAggregation, VariableSynchronization

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold.graph import Graph

_COUNTS_KEY, _CALLS_KEY = ("__keras_layer_names",), ("__keras_calls",)
#: Of what the layers of a graph have made: a model's first step gives all of them values, as some may be in no model.
VARIABLES_KEY = ("__keras_variables",)


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One call of a layer: `outputs` were made of `inputs`."""

    layer: Layer
    inputs: Any
    arguments: dict[str, Any]
    outputs: Any
    #: Calls are numbered as they are made.
    number: int = field(default_factory=itertools.count().__next__)


def calls_of(graph: Graph) -> dict[int, Call]:
    """The outermost call that gave a tensor, by the tensor's id; the calls keep their tensors alive."""
    holder = graph.get_collection_ref(_CALLS_KEY)
    if not holder:
        holder.append({})
    found: dict[int, Call] = holder[0]
    return found


def numbered(name: str) -> str:
    """`name` for a graph's first layer of this kind, then `name_1`, …, as Keras has it."""
    holder = get_default_graph().get_collection_ref(_COUNTS_KEY)
    if not holder:
        holder.append({})
    counts: dict[str, int] = holder[0]
    count = counts.get(name, 0)
    counts[name] = count + 1
    return f"{name}_{count}" if count else name


class Layer(BaseLayer):
    """A layer whose scope has Keras's name, and whose variables are in one part.

    Layers that are its attributes, or in lists or dictionaries that are, belong to it: their weights, losses and
    updates are its own as well.
    """

    def __init__(self, trainable: bool = True, name: str | None = None, dtype: Any = None, **kwargs: Any) -> None:
        super().__init__(trainable, name or numbered(_snake_case(type(self).__name__)), dtype, **kwargs)

    def build(self, input_shape: Any) -> None:
        self._in_one_part()
        super().build(input_shape)

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        outputs = super().__call__(inputs, *args, **kwargs)
        given = {id(each) for each in nest.flatten(inputs)}
        # a tensor tells which layer it comes from: one that is handed on needs another
        outputs = nest.map_structure(lambda each: array.identity(each) if id(each) in given else each, outputs)
        tensors = [each for each in nest.flatten(outputs) if isinstance(each, Tensor)]
        if tensors and not args:
            calls = calls_of(tensors[0].graph)
            call = Call(self, inputs, kwargs, outputs)
            calls.update((id(each), call) for each in tensors)
        return outputs

    def add_weight(
        self,
        name: str = "weight",
        shape: Any = (),
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
        """A variable of the layer; initializers and regularizers also by their names."""
        self._in_one_part()
        made = super().add_weight(
            name,
            shape,
            dtype,
            initializers.get(initializer),
            regularizers.get(regularizer),
            trainable,
            constraint,
            use_resource,
            synchronization,
            aggregation,
            partitioner,
        )
        get_default_graph().get_collection_ref(VARIABLES_KEY).append(made)
        return made

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds losses to the model's: tensors, or functions that give one."""
        found = [loss() if callable(loss) else loss for loss in nest.flatten(losses)]
        self._losses += [convert_to_tensor(loss) for loss in found if loss is not None]

    def get_config(self) -> dict[str, Any]:
        """Name, type and whether it is trained; a subclass adds its arguments."""
        return {"name": self.name, "trainable": self.trainable, "dtype": self.dtype}

    def get_weights(self) -> list[Any]:
        """The values of the weights, as arrays."""
        from tenfold.keras.backend import get_session

        found: list[Any] = get_session().run(self.weights)
        return found

    def set_weights(self, weights: Any) -> None:
        """Sets the weights, in the order of `get_weights`. Raises ValueError where their number differs."""
        from tenfold.keras.backend import get_session

        if len(weights) != len(self.weights):
            raise ValueError(f"'{self.name}' has {len(self.weights)} weights, and {len(weights)} were given")
        session = get_session()
        for variable, value in zip(self.weights, weights, strict=True):
            variable.load(value, session)

    @property
    def trainable_weights(self) -> list[Any]:
        """The variables that are trained; none if the layer is not trainable."""
        if not self.trainable:
            return []
        inner = (each for layer in self._layers() for each in layer.trainable_weights)
        return _once([*self._trainable_weights, *inner])

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The other variables."""
        if not self.trainable:
            own = [*self._trainable_weights, *self._non_trainable_weights]
            return _once([*own, *(each for layer in self._layers() for each in layer.weights)])
        inner = (each for layer in self._layers() for each in layer.non_trainable_weights)
        return _once([*self._non_trainable_weights, *inner])

    @property
    def weights(self) -> list[Any]:
        """All variables."""
        return _once([*self.trainable_weights, *self.non_trainable_weights])

    @property
    def losses(self) -> list[Any]:
        """What the layer, and those in it, add to the loss."""
        return _once([*self._losses, *(loss for each in self._layers() for loss in each.losses)])

    @property
    def updates(self) -> list[Any]:
        """The operations to run with each training step; none if the layer is not trainable."""
        if not self.trainable:
            return []
        return _once([*self._updates, *(update for each in self._layers() for update in each.updates)])

    variables = weights
    trainable_variables = trainable_weights
    non_trainable_variables = non_trainable_weights

    def _layers(self) -> list[BaseLayer]:
        """The layers in this one."""
        return _once(found for value in vars(self).values() for found in _layers_in(value))

    def _in_one_part(self) -> None:
        self._set_scope(None)
        if self._scope is not None:
            self._scope.set_partitioner(None)


def _layers_in(value: Any) -> Iterator[BaseLayer]:
    if isinstance(value, BaseLayer):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _layers_in(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _layers_in(each)


def _once(items: Any) -> list[Any]:
    """The items, each once: variables and tensors have an == of their own."""
    return list({id(each): each for each in items}.values())
