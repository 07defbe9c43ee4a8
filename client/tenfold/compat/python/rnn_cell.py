"""Private functions of TensorFlow's rnn_cell_impl that programs with cells of their own call: `_linear`, `_concat`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import nest
from tenfold.graph import convert_to_tensor
from tenfold.ops import array, init_ops, math, nn
from tenfold.ops.rnn_cell_layer import batched_shape, zero_tensors
from tenfold.ops.variable_scope import get_variable, get_variable_scope, variable_scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.graph.tensor import Tensor

_WEIGHTS_VARIABLE_NAME, _BIAS_VARIABLE_NAME = "kernel", "bias"
#: The error for something that is not a cell.
ASSERT_LIKE_RNNCELL_ERROR_REGEXP = "is not an RNNCell"
_concat, _zero_state_tensors = batched_shape, zero_tensors


class _Linear:
    """args · kernel + bias for 2-D tensors (B, Ki), which are put beside each other; variables of the current scope.

    Raises ValueError for tensors that are not 2-D or whose last dimension is unknown.
    """

    def __init__(
        self,
        args: Any,
        output_size: int,
        build_bias: bool,
        bias_initializer: Any = None,
        kernel_initializer: Any = None,
    ) -> None:
        tensors = _tensors(args)
        depth = 0
        for tensor in tensors:
            if tensor.shape.ndims != 2:
                raise ValueError(f"linear is expecting 2D arguments: {[each.shape for each in tensors]}")
            if tensor.shape[1].value is None:
                raise ValueError(f"linear expects shape[1] to be provided for shape {tensor.shape}, but saw None")
            depth += tensor.shape[1].value
        dtype = tensors[0].dtype
        scope = get_variable_scope()
        with variable_scope(scope) as outer:
            self._kernel = get_variable(
                _WEIGHTS_VARIABLE_NAME, [depth, output_size], dtype=dtype, initializer=kernel_initializer
            )
            self._bias = None
            if build_bias:
                with variable_scope(outer) as inner:
                    inner.set_partitioner(None)
                    initializer = bias_initializer or init_ops.constant_initializer(0.0, dtype=dtype)
                    self._bias = get_variable(_BIAS_VARIABLE_NAME, [output_size], dtype=dtype, initializer=initializer)

    def __call__(self, args: Any) -> Tensor:
        tensors = _tensors(args)
        product = math.matmul(tensors[0] if len(tensors) == 1 else array.concat(tensors, 1), self._kernel)
        return product if self._bias is None else nn.bias_add(product, self._bias)


def _linear(
    args: Any, output_size: int, bias: bool, bias_initializer: Any = None, kernel_initializer: Any = None
) -> Tensor:
    """`_Linear`, made and called at once."""
    return _Linear(args, output_size, bias, bias_initializer, kernel_initializer)(args)


def _tensors(args: Any) -> Sequence[Any]:
    if args is None or (nest.is_sequence(args) and not args):
        raise ValueError("`args` must be specified")
    return [convert_to_tensor(each) for each in (args if nest.is_sequence(args) else [args])]
