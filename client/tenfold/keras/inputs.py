"""`tf.keras.Input`: what a model is given. Follows TensorFlow 1.15's keras/engine/input_layer.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.keras import backend
from tenfold.keras.base_layer import Call, Layer, calls_of
from tenfold.layers.base import _unique_name
from tenfold.ops import array
from tenfold_core.tensor_shape import as_shape

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


class InputLayer(Layer):
    """Stands for an input among a model's layers: its name is that of the input's arrays."""

    def __init__(
        self, input_shape: Any = None, batch_size: int | None = None, dtype: Any = None, name: str | None = None
    ) -> None:
        super().__init__(name=name or _unique_name("input"))
        shape = (batch_size, *as_shape(input_shape).as_list())
        self._begin(array.placeholder(dtype or backend.floatx(), shape, self.name))

    @classmethod
    def of(cls, tensor: Any, name: str | None = None) -> InputLayer:
        """The layer of a tensor that there is already."""
        made = cls.__new__(cls)
        Layer.__init__(made, name=name or _unique_name("input"))
        made._begin(convert_to_tensor(tensor))
        return made

    def _begin(self, tensor: Tensor) -> None:
        self.built, self.output = True, tensor
        calls_of(tensor.graph)[id(tensor)] = Call(self, [], {}, tensor)


def Input(
    shape: Any = None,
    batch_size: int | None = None,
    name: str | None = None,
    dtype: Any = None,
    sparse: bool = False,
    tensor: Any = None,
) -> Tensor:
    """A placeholder of examples of that shape, or `tensor` as it is. Raises ValueError for neither, or `sparse`."""
    if sparse:
        raise ValueError("tf.keras.Input makes no sparse inputs here: use tf.sparse_placeholder with tf.Session")
    if tensor is not None:
        return InputLayer.of(tensor, name).output
    if shape is None:
        raise ValueError("Please provide to Input either a `shape` or a `tensor` argument.")
    return InputLayer(shape, batch_size, dtype, name).output
