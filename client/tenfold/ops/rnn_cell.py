"""`tf.nn.rnn_cell`: the recurrent cells; the wrappers around them are in rnn_cell_wrappers.py.

# B batch, D input size, H units; inputs (B, D), states (B, H) unless the docstring of a cell differs.
The base classes are in rnn_cell_layer.py, the functions that run cells over sequences in rnn.py. Follows TensorFlow
1.15's rnn_cell_impl.py and rnn_cell_wrapper_impl.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import logging, nest
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.tensor import Tensor
from tenfold.layers.input_spec import InputSpec
from tenfold.namespaces import namespace
from tenfold.ops import array, clip, init_ops, math, nn, slicing
from tenfold.ops.partitioned_variables import fixed_size_partitioner
from tenfold.ops.rnn_cell_layer import LayerRNNCell, LSTMStateTuple, RNNCell, assert_like_rnncell
from tenfold.ops.rnn_cell_wrappers import DeviceWrapper, DropoutWrapper, ResidualWrapper
from tenfold.ops.variable_scope import variable_scope
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "BasicLSTMCell",
    "BasicRNNCell",
    "DeviceWrapper",
    "DropoutWrapper",
    "GRUCell",
    "LSTMCell",
    "LSTMStateTuple",
    "MultiRNNCell",
    "RNNCell",
    "ResidualWrapper",
    "assert_like_rnncell",
]


def activation_of(given: Any) -> Callable[[Any], Any]:
    """A function, or the name of one in `tf.nn`; tanh for None. Raises ValueError for an unknown name."""
    if given is None:
        return math.tanh
    if callable(given):
        return given  # type: ignore[no-any-return]
    if given == "linear":
        return lambda x: x
    found: Any = getattr(namespace("nn"), given, None)
    if found is None:
        raise ValueError(f"Unknown activation function: {given}")
    return found  # type: ignore[no-any-return]


def _depth(inputs_shape: Any) -> int:
    size: int | None = inputs_shape[-1].value
    if size is None:
        raise ValueError(f"Expected inputs.shape[-1] to be known, saw shape: {inputs_shape}")
    return size


def _check_types(inputs: Any) -> None:
    for tensor in nest.flatten(inputs):
        _check_type(tensor.dtype)


def _check_type(dtype: Any) -> None:
    dtype = None if dtype is None else dtypes.as_dtype(dtype)
    if dtype is not None and not (dtype.is_floating or dtype.is_complex):
        raise ValueError(f"RNN cell only supports floating point inputs, but saw dtype: {dtype}")


def _affine(inputs: Sequence[Any], kernel: Any, bias: Any) -> Tensor:
    """concat(inputs) · kernel + bias."""
    return nn.bias_add(math.matmul(array.concat(list(inputs), 1), kernel), bias)


class BasicRNNCell(LayerRNNCell):
    """output = new_state = act(W · [inputs, state] + b)."""

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: bool | None = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        _check_type(self.dtype)
        self.input_spec = InputSpec(ndim=2)
        self._num_units = num_units
        self._activation = activation_of(activation)

    @property
    def state_size(self) -> int:
        """The number of units."""
        return self._num_units

    @property
    def output_size(self) -> int:
        """The number of units."""
        return self._num_units

    def build(self, input_shape: Any) -> None:
        """Makes kernel (D + H, H) and bias (H)."""
        depth = _depth(input_shape)
        self._kernel = self.add_weight("kernel", [depth + self._num_units, self._num_units])
        self._bias = self.add_weight(
            "bias", [self._num_units], initializer=init_ops.zeros_initializer(self.dtype or dtypes.float32)
        )

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        _check_types([inputs, state])
        output = self._activation(_affine([inputs, state], self._kernel, self._bias))
        return output, output


class GRUCell(LayerRNNCell):
    """Gated recurrent unit: output = new_state = u * state + (1 - u) * candidate."""

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: bool | None = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        _check_type(self.dtype)
        self.input_spec = InputSpec(ndim=2)
        self._num_units = num_units
        self._activation = activation_of(activation)
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer

    @property
    def state_size(self) -> int:
        """The number of units."""
        return self._num_units

    @property
    def output_size(self) -> int:
        """The number of units."""
        return self._num_units

    def build(self, input_shape: Any) -> None:
        """Makes kernels and biases of the gates (reset, update) and of the candidate."""
        rows, units = _depth(input_shape) + self._num_units, self._num_units
        open_gates = self._bias_initializer or init_ops.constant_initializer(1.0, dtype=self.dtype or dtypes.float32)
        zeros = self._bias_initializer or init_ops.zeros_initializer(self.dtype or dtypes.float32)
        self._gate_kernel = self.add_weight("gates/kernel", [rows, 2 * units], initializer=self._kernel_initializer)
        self._gate_bias = self.add_weight("gates/bias", [2 * units], initializer=open_gates)
        self._candidate_kernel = self.add_weight(
            "candidate/kernel", [rows, units], initializer=self._kernel_initializer
        )
        self._candidate_bias = self.add_weight("candidate/bias", [units], initializer=zeros)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        _check_types([inputs, state])
        gates = math.sigmoid(_affine([inputs, state], self._gate_kernel, self._gate_bias))
        reset, update = slicing.split(gates, 2, axis=1)
        candidate = _affine([inputs, reset * state], self._candidate_kernel, self._candidate_bias)
        new = update * state + (1 - update) * self._activation(candidate)
        return new, new


def _warn_about_flat_state(cell: Any) -> None:
    logging.warning(
        "%s: Using a concatenated state is slower and will soon be deprecated.  Use state_is_tuple=True.", cell
    )


class BasicLSTMCell(LayerRNNCell):
    """Long short-term memory without peepholes, clipping or projection; `forget_bias` is added to the forget gate."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: bool | None = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        _check_type(self.dtype)
        self.input_spec = InputSpec(ndim=2)
        if not state_is_tuple:
            _warn_about_flat_state(self)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = activation_of(activation)

    @property
    def state_size(self) -> Any:
        """An LSTMStateTuple of sizes, or twice the number of units."""
        units = self._num_units
        return LSTMStateTuple(units, units) if self._state_is_tuple else 2 * units

    @property
    def output_size(self) -> int:
        """The number of units."""
        return self._num_units

    def build(self, input_shape: Any) -> None:
        """Makes kernel (D + H, 4 H) and bias (4 H) of input gate, new input, forget gate, output gate."""
        units = self._num_units
        self._kernel = self.add_weight("kernel", [_depth(input_shape) + units, 4 * units])
        self._bias = self.add_weight(
            "bias", [4 * units], initializer=init_ops.zeros_initializer(self.dtype or dtypes.float32)
        )

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        _check_types([inputs, state])
        axis = array.constant(1, dtype=dtypes.int32)
        c, h = state if self._state_is_tuple else slicing.split(state, 2, axis=axis)
        i, j, f, o = slicing.split(_affine([inputs, h], self._kernel, self._bias), 4, axis=axis)
        forget_bias = array.constant(self._forget_bias, dtype=f.dtype)
        kept = math.multiply(c, math.sigmoid(math.add(f, forget_bias)))
        new_c = math.add(kept, math.multiply(math.sigmoid(i), self._activation(j)))
        new_h = math.multiply(self._activation(new_c), math.sigmoid(o))
        return new_h, LSTMStateTuple(new_c, new_h) if self._state_is_tuple else array.concat([new_c, new_h], 1)


class LSTMCell(LayerRNNCell):
    """Long short-term memory with optional peepholes, clipping of the state, and projection of the output."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int | None = None,
        num_proj_shards: int | None = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: bool | None = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        _check_type(self.dtype)
        self.input_spec = InputSpec(ndim=2)
        if not state_is_tuple:
            _warn_about_flat_state(self)
        if num_unit_shards is not None or num_proj_shards is not None:
            logging.warning("%s: use a variable scope with a partitioner instead of num_*_shards.", self)
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._cell_clip = cell_clip
        self._initializer = initializer
        self._num_proj = num_proj
        self._proj_clip = proj_clip
        self._shards = (num_unit_shards, num_proj_shards)
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = activation_of(activation)
        self._output_size = num_proj or num_units

    @property
    def state_size(self) -> Any:
        """An LSTMStateTuple of sizes, or their sum."""
        sizes = (self._num_units, self._output_size)
        return LSTMStateTuple(*sizes) if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> int:
        """The size of the projection, or the number of units."""
        return self._output_size

    def build(self, input_shape: Any) -> None:
        """Makes kernel and bias of the gates, and, if enabled, of the peepholes and the projection."""
        units, initializer = self._num_units, self._initializer
        self._kernel = self.add_weight(
            "kernel",
            [_depth(input_shape) + self._output_size, 4 * units],
            initializer=initializer,
            partitioner=_partitioner(self._shards[0]),
        )
        self._bias = self.add_weight(
            "bias", [4 * units], initializer=init_ops.zeros_initializer(self.dtype or dtypes.float32)
        )
        if self._use_peepholes:
            self._w_f_diag = self.add_weight("w_f_diag", [units], initializer=initializer)
            self._w_i_diag = self.add_weight("w_i_diag", [units], initializer=initializer)
            self._w_o_diag = self.add_weight("w_o_diag", [units], initializer=initializer)
        if self._num_proj is not None:
            self._proj_kernel = self.add_weight(
                "projection/kernel",
                [units, self._num_proj],
                initializer=initializer,
                partitioner=_partitioner(self._shards[1]),
            )

    def call(self, inputs: Any, state: Any) -> Any:
        """One step. Raises ValueError if the input size is not known."""
        _check_types([inputs, state])
        if self._state_is_tuple:
            c_before, m_before = state
        else:
            c_before = slicing.slice(state, [0, 0], [-1, self._num_units])
            m_before = slicing.slice(state, [0, self._num_units], [-1, self._output_size])
        if inputs.get_shape().with_rank(2)[1].value is None:
            raise ValueError("Could not infer input size from inputs.get_shape()[-1]")
        i, j, f, o = slicing.split(_affine([inputs, m_before], self._kernel, self._bias), 4, axis=1)
        act, sigmoid = self._activation, math.sigmoid
        if self._use_peepholes:
            kept = sigmoid(f + self._forget_bias + self._w_f_diag * c_before) * c_before
            c = kept + sigmoid(i + self._w_i_diag * c_before) * act(j)
        else:
            c = sigmoid(f + self._forget_bias) * c_before + sigmoid(i) * act(j)
        if self._cell_clip is not None:
            c = clip.clip_by_value(c, -self._cell_clip, self._cell_clip)
        m = sigmoid(o + self._w_o_diag * c if self._use_peepholes else o) * act(c)
        if self._num_proj is not None:
            m = math.matmul(m, self._proj_kernel)
            if self._proj_clip is not None:
                m = clip.clip_by_value(m, -self._proj_clip, self._proj_clip)
        return m, LSTMStateTuple(c, m) if self._state_is_tuple else array.concat([c, m], 1)


def _partitioner(shards: int | None) -> Any:
    if shards is None:
        return None
    return fixed_size_partitioner(shards)


class MultiRNNCell(RNNCell):
    """A stack of cells, the output of each the input of the next; the state is the tuple of their states."""

    def __init__(self, cells: Sequence[Any], state_is_tuple: bool = True) -> None:
        super().__init__()
        if not cells:
            raise ValueError("Must specify at least one cell for MultiRNNCell.")
        if not nest.is_nested(cells):
            raise TypeError(f"cells must be a list or tuple, but saw: {cells}.")
        if len({id(cell) for cell in cells}) < len(cells):
            logging.warning("At least two cells provided to MultiRNNCell are the same object and will share weights.")
        self._cells = cells
        self._state_is_tuple = state_is_tuple
        if not state_is_tuple and any(nest.is_nested(cell.state_size) for cell in cells):
            raise ValueError(
                "Some cells return tuples of states, but the flag state_is_tuple is not set.  State sizes are: "
                f"{[cell.state_size for cell in cells]}"
            )

    @property
    def state_size(self) -> Any:
        """The sizes of the cells' states, or their sum."""
        sizes = tuple(cell.state_size for cell in self._cells)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        """The output size of the last cell."""
        return self._cells[-1].output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The zero states of the cells."""
        with name_scope(type(self).__name__ + "ZeroState", values=[v for v in [batch_size] if isinstance(v, Tensor)]):
            if self._state_is_tuple:
                return tuple(cell.zero_state(batch_size, dtype) for cell in self._cells)
            return super().zero_state(batch_size, dtype)

    @property
    def trainable_weights(self) -> list[Any]:
        """The weights of the cells."""
        if not self.trainable:
            return []
        return [each for cell in self._cells for each in getattr(cell, "trainable_weights", ())]

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The weights of the cells."""
        kind = "non_trainable_weights" if self.trainable else "weights"
        return [each for cell in self._cells for each in getattr(cell, kind, ())]

    def call(self, inputs: Any, state: Any) -> Any:
        """One step of each cell."""
        position, current, new_states = 0, inputs, []
        for number, cell in enumerate(self._cells):
            with variable_scope(f"cell_{number}"):
                if self._state_is_tuple:
                    if not nest.is_nested(state):
                        raise ValueError(
                            f"Expected state to be a tuple of length {len(self.state_size)}, but received: {state}"
                        )
                    own = state[number]
                else:
                    own = slicing.slice(state, [0, position], [-1, cell.state_size])
                    position += cell.state_size
                current, new_state = cell(current, own)
                new_states.append(new_state)
        return current, tuple(new_states) if self._state_is_tuple else array.concat(new_states, 1)
