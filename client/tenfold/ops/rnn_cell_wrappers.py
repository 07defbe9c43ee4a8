"""Wrappers around RNN cells: dropout, residual connections, devices.

# B batch; a wrapper has the sizes, states and variables of the wrapped cell.
The cells are in rnn_cell.py. Follows TensorFlow 1.15's rnn_cell_wrapper_impl.py, seeds included.
"""

from __future__ import annotations

import hashlib
import numbers
from typing import TYPE_CHECKING, Any

from tenfold import nest
from tenfold.graph.constant_value import known_value
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import device as on_device
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.tensor import Tensor
from tenfold.ops import array, math, nn, random
from tenfold.ops.rnn_cell_layer import LSTMStateTuple, RNNCell, assert_like_rnncell
from tenfold.ops.tensor_array import TensorArray
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DeviceWrapper", "DropoutWrapper", "ResidualWrapper"]


class _Wrapper(RNNCell):
    """A cell around another one; it has the variables and sizes of the wrapped cell."""

    def __init__(self, cell: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        assert_like_rnncell("cell", cell)
        self.cell = cell

    @property
    def wrapped_cell(self) -> Any:
        """The wrapped cell."""
        return self.cell

    @property
    def state_size(self) -> Any:
        """As the wrapped cell's."""
        return self.cell.state_size

    @property
    def output_size(self) -> Any:
        """As the wrapped cell's."""
        return self.cell.output_size

    @property
    def trainable_weights(self) -> list[Any]:
        """As the wrapped cell's."""
        return list(getattr(self.cell, "trainable_weights", ()))

    @property
    def non_trainable_weights(self) -> list[Any]:
        """As the wrapped cell's."""
        return list(getattr(self.cell, "non_trainable_weights", ()))

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """As the wrapped cell's."""
        with name_scope(type(self).__name__ + "ZeroState", values=[v for v in [batch_size] if isinstance(v, Tensor)]):
            return self.cell.zero_state(batch_size, dtype)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """`(output, new_state)` for one step."""
        return self._call_wrapped(inputs, state, scope)

    def _call_wrapped(self, inputs: Any, state: Any, scope: Any) -> Any:
        raise NotImplementedError


class DropoutWrapper(_Wrapper):
    """Drops elements of inputs, states and outputs; each is kept with the given probability.

    `variational_recurrent` drops the same elements in all time steps. `dropout_state_filter_visitor(part)` says for a
    part of the state whether it may be dropped; by default all but the `c` of an LSTM and TensorArrays.
    """

    def __init__(
        self,
        cell: Any,
        input_keep_prob: Any = 1.0,
        output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0,
        variational_recurrent: bool = False,
        input_size: Any = None,
        dtype: Any = None,
        seed: int | None = None,
        dropout_state_filter_visitor: Callable[[Any], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(cell, dtype=dtype, **kwargs)
        if dropout_state_filter_visitor is not None and not callable(dropout_state_filter_visitor):
            raise TypeError("dropout_state_filter_visitor must be callable")
        self._may_drop = dropout_state_filter_visitor or _may_drop_by_default
        with name_scope("DropoutWrapperInit"):
            self._input_keep_prob = _probability("input_keep_prob", input_keep_prob)
            self._state_keep_prob = _probability("state_keep_prob", state_keep_prob)
            self._output_keep_prob = _probability("output_keep_prob", output_keep_prob)
        self._variational_recurrent = variational_recurrent
        self._seed = seed
        #: "input", "state" or "output" → the noise used in all time steps, in the structure of the sizes.
        self._noise: dict[str, Any] = {}
        if variational_recurrent:
            if dtype is None:
                raise ValueError("When variational_recurrent=True, dtype must be provided")
            if _drops(self._input_keep_prob):
                if input_size is None:
                    raise ValueError(
                        "When variational_recurrent=True and input_keep_prob < 1.0 or is unknown, input_size must be "
                        "provided"
                    )
                self._noise["input"] = self._noises("input", input_size, dtype)
            self._noise["state"] = self._noises("state", cell.state_size, dtype)
            self._noise["output"] = self._noises("output", cell.output_size, dtype)

    def _noises(self, what: str, sizes: Any, dtype: Any) -> Any:
        flat = [
            random.random_uniform(array.concat(([1], _dims(size)), 0), seed=self._seed_of(what, index), dtype=dtype)
            for index, size in enumerate(nest.flatten(sizes))
        ]
        return nest.pack_sequence_as(sizes, flat)

    def _seed_of(self, what: str, index: int) -> int | None:
        """A seed for each noise: different from the others, the same in every run."""
        if self._seed is None:
            return None
        digest = hashlib.md5(f"{self._seed}{what}_{index}".encode(), usedforsecurity=False).hexdigest()
        return int(digest[:8], 16) & 0x7FFFFFFF

    def _call_wrapped(self, inputs: Any, state: Any, scope: Any) -> Any:
        if _drops(self._input_keep_prob):
            inputs = self._dropped("input", inputs, self._input_keep_prob)
        output, new_state = self.cell(inputs, state, scope=scope) if scope is not None else self.cell(inputs, state)
        if _drops(self._state_keep_prob):
            new_state = self._dropped("state", new_state, self._state_keep_prob, self._filter(new_state))
        if _drops(self._output_keep_prob):
            output = self._dropped("output", output, self._output_keep_prob)
        return output, new_state

    def _filter(self, part: Any) -> Any:
        """A structure of bools, one per part of the state (or group of parts): whether it may be dropped."""
        answer = self._may_drop(part)
        if not nest.is_nested(part) or answer is False:
            return answer
        children = list(part.values()) if isinstance(part, dict) else list(part)
        wanted = [True] * len(children) if isinstance(answer, bool) else nest.flatten(answer)
        filtered = [self._filter(child) if want else False for child, want in zip(children, wanted, strict=True)]
        if isinstance(part, dict):
            return dict(zip(part, filtered, strict=True))
        return type(part)(*filtered) if hasattr(part, "_fields") else type(part)(filtered)

    def _dropped(self, what: str, values: Any, keep: Any, allowed: Any = None) -> Any:
        shape = values if allowed is None else allowed
        noises = self._noise.get(what)
        parts = nest.flatten_up_to(shape, values)
        noise_parts = [None] * len(parts) if noises is None else nest.flatten_up_to(shape, noises)
        results = []
        for index, (may, value, noise) in enumerate(zip(nest.flatten(shape), parts, noise_parts, strict=True)):
            if may is False:
                results.append(value)
            elif noise is None:
                results.append(nn.dropout(value, rate=1.0 - keep, seed=self._seed_of(what, index)))
            else:
                kept = math.div(value, keep) * math.floor(keep + noise)
                kept.set_shape(value.get_shape())
                results.append(kept)
        return nest.pack_sequence_as(shape, results)


def _probability(name: str, value: Any) -> Any:
    tensor = convert_to_tensor(value)
    known = known_value(tensor)
    if known is None:
        return tensor
    if known < 0 or known > 1:
        raise ValueError(f"Parameter {name} must be between 0 and 1: {int(known)}")
    return float(known)


def _drops(keep: Any) -> bool:
    return not isinstance(keep, numbers.Real) or keep < 1


def _dims(size: Any) -> list[Any]:
    return TensorShape(size if isinstance(size, (list, tuple, TensorShape)) else [size]).as_list()


def _may_drop_by_default(part: Any) -> Any:
    if isinstance(part, LSTMStateTuple):
        # Only the output is dropped, not the cell state.
        return LSTMStateTuple(c=False, h=True)
    return not isinstance(part, TensorArray)


class ResidualWrapper(_Wrapper):
    """Adds the inputs to the outputs, or joins them by `residual_fn(inputs, outputs)`."""

    def __init__(self, cell: Any, residual_fn: Callable[[Any, Any], Any] | None = None, **kwargs: Any) -> None:
        super().__init__(cell, **kwargs)
        self._residual_fn = residual_fn or _residual

    def _call_wrapped(self, inputs: Any, state: Any, scope: Any) -> Any:
        outputs, new_state = self.cell(inputs, state, scope=scope) if scope is not None else self.cell(inputs, state)
        return self._residual_fn(inputs, outputs), new_state


def _residual(inputs: Any, outputs: Any) -> Any:
    def added(before: Tensor, after: Tensor) -> Tensor:
        before.shape.assert_is_compatible_with(after.shape)
        return before + after

    return nest.map_structure(added, inputs, outputs)


class DeviceWrapper(_Wrapper):
    """Runs a cell on a device."""

    def __init__(self, cell: Any, device: Any, **kwargs: Any) -> None:
        super().__init__(cell, **kwargs)
        self._device = device

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The wrapped cell's, made on the device."""
        with on_device(self._device):
            return super().zero_state(batch_size, dtype)

    def _call_wrapped(self, inputs: Any, state: Any, scope: Any) -> Any:
        with on_device(self._device):
            return self.cell(inputs, state, scope=scope) if scope is not None else self.cell(inputs, state)
