"""Base classes of RNN cells: a layer whose call takes a state; the LSTM's state tuple; zero states.

`RNNCell` is the base of cells that users write with `tf.get_variable`; `LayerRNNCell` of those that make their
variables in `build`. The cells themselves are in rnn_cell.py, the layer in layers/base.py. Follows TensorFlow 1.15's
rnn_cell_impl.py.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from typing import TYPE_CHECKING, Any

from tenfold import nest
from tenfold.graph.constant_value import known_value
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.tensor import Tensor
from tenfold.layers.base import Layer
from tenfold.ops import array
from tenfold.ops.variable_lists import trainable_variables
from tenfold.ops.variable_scope import get_variable_scope, variable_scope
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape, as_shape

if TYPE_CHECKING:
    from collections.abc import Callable


class RNNCell(Layer):
    """A step of a recurrent network: `output, new_state = cell(inputs, state)`.

    # B batch; inputs (B, input size), state (B, state_size) or a structure of such.
    Subclasses give `state_size`, `output_size` and `call(inputs, state)`. The first call fixes the variable scope
    (named after the class unless `name` or a scope is given); later calls use the same variables.
    """

    @property
    def state_size(self) -> Any:
        """The size of the state, or a structure of sizes."""
        raise NotImplementedError("Abstract method")

    @property
    def output_size(self) -> Any:
        """The size of the output, or a structure of sizes."""
        raise NotImplementedError("Abstract method")

    # Wrappers override trainable_weights and non_trainable_weights; these properties must use the overrides.

    @property
    def trainable_variables(self) -> list[Any]:
        """The variables that are trained."""
        return self.trainable_weights

    @property
    def non_trainable_variables(self) -> list[Any]:
        """The other variables."""
        return self.non_trainable_weights

    # --- calling ---

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """`(output, new_state)` for one step."""
        if scope is None:
            # One scope object per cell: re-entering it keeps the names of the variables that `call` makes.
            own = self.__dict__.get("_calling_scope")
            if own is None:
                own = variable_scope(get_variable_scope(), custom_getter=self._recording_getter)
                self.__dict__["_calling_scope"] = own
            with own:
                return super().__call__(inputs, state)
        with variable_scope(scope, custom_getter=self._recording_getter) as entered:
            return super().__call__(inputs, state, scope=entered)

    def _recording_getter(self, getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Makes a variable and adds it to the weights."""
        variable = getter(*args, **kwargs)
        trained = any(variable is each for each in trainable_variables())
        weights = self._trainable_weights if trained else self._non_trainable_weights
        if all(variable is not each for each in weights):
            weights.append(variable)
        return variable

    def build(self, input_shape: Any) -> None:
        """Does nothing: cells that call `tf.get_variable` make their variables in `call`."""

    # --- states ---

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        """The zero state for `inputs`, or for `batch_size` and `dtype`. Raises ValueError if these do not fit."""
        if inputs is not None:
            inputs = convert_to_tensor(inputs, name="inputs")
            known = inputs.shape[0].value
            if batch_size is not None:
                given = known_value(batch_size) if isinstance(batch_size, Tensor) else batch_size
                if known != given:
                    raise ValueError(
                        "batch size from input tensor is different from the input param. Input tensor batch: "
                        f"{known}, batch_size: {batch_size}"
                    )
            if dtype is not None and inputs.dtype != dtype:
                raise ValueError(
                    "dtype from input tensor is different from the input param. Input tensor dtype: "
                    f"{inputs.dtype}, dtype: {dtype}"
                )
            batch_size = known or array.shape(inputs)[0]
            dtype = inputs.dtype
        if batch_size is None or dtype is None:
            raise ValueError(
                "batch_size and dtype cannot be None while constructing initial state: "
                f"batch_size={batch_size}, dtype={dtype}"
            )
        return self.zero_state(batch_size, dtype)

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Zeros of shape (batch_size, state_size), in the structure of `state_size`."""
        with name_scope(type(self).__name__ + "ZeroState", values=[v for v in [batch_size] if isinstance(v, Tensor)]):
            return zero_tensors(self.state_size, batch_size, dtype)


class LayerRNNCell(RNNCell):
    """A cell that makes its variables in `build`."""

    def __init_subclass__(cls, **named: Any) -> None:
        """A cell whose `build` the program calls itself is built; its first call makes no second variables."""
        super().__init_subclass__(**named)
        if "build" in vars(cls):
            cls.build = _and_built(cls.build)  # type: ignore[method-assign,assignment]

    def __call__(self, inputs: Any, state: Any, scope: Any = None, *args: Any, **kwargs: Any) -> Any:
        """`(output, new_state)` for one step."""
        return Layer.__call__(self, inputs, state, *args, scope=scope, **kwargs)


def _and_built(build: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    @functools.wraps(build)
    def build_once(self: Any, input_shape: Any) -> None:
        build(self, input_shape)
        self.built = True

    return build_once


def zero_tensors(sizes: Any, batch_size: Any, dtype: Any) -> Any:
    """Zeros of shape (batch_size, *size) for each of the structure `sizes`."""

    def zeros(size: Any) -> Tensor:
        tensor = array.zeros(batched_shape(batch_size, size), dtype=dtype)
        # Once more for what is known of the shape, as TensorFlow does: seeds that are not given count the nodes.
        _parts_of_shape(batch_size, size)
        tensor.set_shape(static_batched_shape(batch_size, size))
        return tensor

    return nest.map_structure(zeros, sizes)


def batched_shape(prefix: Any, suffix: Any) -> Tensor:
    """The vector (*prefix, *suffix), each a size, a shape or a tensor. Raises ValueError for unknown sizes."""
    return array.concat(_parts_of_shape(prefix, suffix), 0)


def _parts_of_shape(prefix: Any, suffix: Any) -> list[Tensor]:
    parts: list[Tensor] = []
    for part in (prefix, suffix):
        if isinstance(part, Tensor):
            if part.shape.ndims not in (0, 1):
                raise ValueError(f"prefix and suffix must be scalars or vectors, but saw tensor: {part}")
            parts.append(array.expand_dims(part, 0) if part.shape.ndims == 0 else part)
            continue
        shape = _as_shape(part)
        if not shape.is_fully_defined():
            raise ValueError(f"Provided a prefix or suffix of None: {prefix} and {suffix}")
        parts.append(array.constant(shape.as_list(), dtype=dtypes.int32))
    return parts


def static_batched_shape(prefix: Any, suffix: Any) -> TensorShape:
    """What is known now of (*prefix, *suffix)."""
    shapes = []
    for part in (prefix, suffix):
        if isinstance(part, Tensor):
            known = known_value(part)
            if known is not None:
                shapes.append(TensorShape(known.reshape(-1).tolist()))
            elif part.shape.is_fully_defined():
                shapes.append(TensorShape([None] * (part.shape.num_elements() or 0)))
            else:
                shapes.append(TensorShape(None))
        else:
            shapes.append(_as_shape(part))
    return shapes[0].concatenate(shapes[1])


def _as_shape(part: Any) -> TensorShape:
    """A size or a shape, as a shape."""
    if part is None:
        return TensorShape([None])
    if isinstance(part, (int, float)) or (hasattr(part, "value") and not isinstance(part, TensorShape)):
        return TensorShape([part])
    return as_shape(part)


class LSTMStateTuple(namedtuple("LSTMStateTuple", ("c", "h"))):  # its fields have no one type
    """The state of an LSTM: `c` the cell state, `h` the output."""

    __slots__ = ()

    @property
    def dtype(self) -> Any:
        """The type of both. Raises TypeError if they differ."""
        if self.c.dtype != self.h.dtype:
            raise TypeError(f"Inconsistent internal state: {self.c.dtype} vs {self.h.dtype}")
        return self.c.dtype


def assert_like_rnncell(cell_name: str, cell: Any) -> None:
    """Raises TypeError, naming what is missing, if `cell` is not a cell."""
    missing = [
        problem
        for fine, problem in (
            (hasattr(cell, "output_size"), "'output_size' property is missing"),
            (hasattr(cell, "state_size"), "'state_size' property is missing"),
            (
                hasattr(cell, "get_initial_state") or hasattr(cell, "zero_state"),
                "either 'zero_state' or 'get_initial_state' method is required",
            ),
            (callable(cell), "is not callable"),
        )
        if not fine
    ]
    if missing:
        raise TypeError(f"The argument {cell_name!r} ({cell}) is not an RNNCell: {', '.join(missing)}.")
