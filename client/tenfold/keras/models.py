"""`tf.keras.models`: models, made of the layers between inputs and outputs, or as a subclass with its own `call`.

Follows TensorFlow 1.15's keras/engine/network.py and training.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold import nest
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.tensor import Tensor
from tenfold.keras.base_layer import Call, calls_of
from tenfold.keras.inputs import InputLayer
from tenfold.keras.training import Trainer
from tenfold.left_out import why

__all__ = ["Model"]


class Model(Trainer):
    """`Model(inputs, outputs)` has all layers between them. A subclass calls `Model.__init__()`, has layers as
    attributes, and says in `call(self, inputs, training=None)` what it gives; `fit` and `predict` make its inputs.

    Raises ValueError where an output needs a placeholder that is not among the inputs.
    """

    def __init__(self, inputs: Any = None, outputs: Any = None, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.inputs, self.outputs = ([] if each is None else nest.flatten(each) for each in (inputs, outputs))
        if bool(self.inputs) != bool(self.outputs):
            raise ValueError("Model takes both inputs and outputs, or, in a subclass, none of them")
        self._structure = outputs
        self._is_functional = bool(self.outputs)
        self._calls: list[Call] = _calls_between(self.inputs, self.outputs) if self._is_functional else []
        self.built = self._is_functional

    @property
    def layers(self) -> list[Any]:
        """The layers, in the order in which they were called first."""
        return self._layers()

    def get_layer(self, name: str | None = None, index: int | None = None) -> Any:
        """A layer by its name or its place. Raises ValueError where there is none."""
        if index is not None and index < len(self.layers):
            return self.layers[index]
        for layer in self.layers:
            if name is not None and layer.name == name:
                return layer
        raise ValueError(f"No such layer: {name if index is None else index}")

    def call(self, inputs: Any, training: Any = None) -> Any:
        """The outputs for other inputs, by the same layers. Raises ValueError where operations that are no layers
        stand between them."""
        if not self._is_functional:
            raise NotImplementedError(f"{type(self).__name__} has no `call`, and was given no outputs")
        given = nest.flatten(inputs)
        known = dict(zip(map(id, self.inputs), given, strict=True))

        def there(tensor: Any) -> Any:
            if not isinstance(tensor, Tensor):
                return tensor
            if id(tensor) not in known:
                raise ValueError(f"{tensor.name} was made by no layer: put it into a tf.keras.layers.Lambda")
            return known[id(tensor)]

        for call in self._calls:
            if isinstance(call.layer, InputLayer):
                continue
            made = call.layer(nest.map_structure(there, call.inputs), **call.arguments)
            known.update(zip(map(id, nest.flatten(call.outputs)), nest.flatten(made), strict=True))
        return nest.map_structure(there, self._structure)

    def _layers(self) -> list[Any]:
        if not self._is_functional:
            return super()._layers()
        return list({id(call.layer): call.layer for call in self._calls}.values())

    def _build_on(self, x: Any) -> None:
        if self.outputs:
            return
        single = not isinstance(x, (dict, list, tuple))
        named = x if isinstance(x, dict) else dict(enumerate([x] if single else x))
        self.inputs = []
        for number, (key, value) in enumerate(named.items(), 1):
            value = np.asarray(value)
            dtype = "float32" if value.dtype == np.float64 else value.dtype
            shape = value.shape if value.ndim > 1 else (None, 1)
            name = str(key) if isinstance(x, dict) else f"input_{number}"
            self.inputs.append(InputLayer(shape[1:], None, dtype, name).output)
        made: Any = self.inputs[0] if single else list(self.inputs)
        self._structure = self(dict(zip(named, self.inputs, strict=True)) if isinstance(x, dict) else made)
        self.outputs = nest.flatten(self._structure)


def _calls_between(inputs: list[Any], outputs: list[Any]) -> list[Call]:
    """The calls of layers that lead from the inputs to the outputs, in their order."""
    calls = calls_of(outputs[0].graph if outputs else get_default_graph())
    known = {id(each) for each in inputs}
    found: dict[int, Call] = {}
    seen: set[int] = set()
    left = list(outputs)
    while left:
        tensor = left.pop()
        if id(tensor) in known or id(tensor) in seen:
            continue
        seen.add(id(tensor))
        call = calls.get(id(tensor))
        if call is not None and not isinstance(call.layer, InputLayer):
            found[call.number] = call
            left += [each for each in nest.flatten((call.inputs, call.arguments)) if isinstance(each, Tensor)]
        elif tensor.op.type == "Placeholder":
            raise ValueError(f"Graph disconnected: cannot obtain value for tensor {tensor} from the model's inputs")
        else:
            left += list(tensor.op.inputs)
    found.update((call.number, call) for call in map(calls.get, known) if call is not None)
    return [found[number] for number in sorted(found)]


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(f"tf.keras.models.{name} is not part of Tenfold: {why('keras.models')}")
