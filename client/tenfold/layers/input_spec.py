"""`tf.layers.InputSpec`: the requirements of a layer on its inputs, and the check at each call.

Used by layers/base.py. The error messages are those of TensorFlow 1.15's keras/engine/input_spec.py.
"""

from __future__ import annotations

from typing import Any

from tenfold import nest
from tenfold_core.dtypes import as_dtype
from tenfold_core.tensor_shape import as_shape


class InputSpec:
    """The type, shape, rank (exact, least, most) and the sizes of some axes that an input must have."""

    def __init__(
        self,
        dtype: Any = None,
        shape: Any = None,
        ndim: int | None = None,
        max_ndim: int | None = None,
        min_ndim: int | None = None,
        axes: dict[int, int | None] | None = None,
    ) -> None:
        self.dtype = None if dtype is None else as_dtype(dtype).name
        self.shape = shape
        self.ndim = len(shape) if shape is not None else ndim
        self.max_ndim = max_ndim
        self.min_ndim = min_ndim
        self.axes = {} if axes is None else {int(axis): size for axis, size in axes.items()}
        if self.axes and (self.ndim is not None or self.max_ndim is not None):
            limit = (self.ndim if self.ndim is not None else self.max_ndim or 0) - 1
            if max(self.axes) > limit:
                raise ValueError(f"Axis {max(self.axes)} is greater than the maximum allowed value: {limit}")

    def __repr__(self) -> str:
        fields = ("dtype", "shape", "ndim", "max_ndim", "min_ndim", "axes")
        return f"InputSpec({', '.join(f'{f}={getattr(self, f)}' for f in fields if getattr(self, f))})"


def check_inputs(spec: InputSpec | list[InputSpec] | None, inputs: Any, layer: str) -> None:
    """Raises ValueError, naming the layer, for the first input that does not match `spec`."""
    if not spec:
        return
    tensors = nest.flatten(inputs)
    specs = spec if isinstance(spec, list) else [spec]
    if len(tensors) != len(specs):
        raise ValueError(
            f"Layer {layer} expects {len(specs)} inputs, but it received {len(tensors)} input tensors. "
            f"Inputs received: {tensors}"
        )
    for index, (tensor, wanted) in enumerate(zip(tensors, specs, strict=True)):
        _check(index, as_shape(tensor.shape), wanted, layer, tensor)


def _check(index: int, shape: Any, spec: InputSpec, layer: str, tensor: Any) -> None:
    head = f"Input {index} of layer {layer} is incompatible with the layer: "
    ndim = shape.ndims
    if ndim is None:
        if spec.ndim is not None or spec.min_ndim is not None or spec.max_ndim is not None:
            raise ValueError(head + "its rank is undefined, but the layer requires a defined rank.")
        return
    if spec.ndim is not None and ndim != spec.ndim:
        raise ValueError(f"{head}expected ndim={spec.ndim}, found ndim={ndim}. Full shape received: {shape.as_list()}")
    if spec.max_ndim is not None and ndim > spec.max_ndim:
        raise ValueError(f"{head}expected max_ndim={spec.max_ndim}, found ndim={ndim}")
    if spec.min_ndim is not None and ndim < spec.min_ndim:
        raise ValueError(
            f"{head}: expected min_ndim={spec.min_ndim}, found ndim={ndim}. Full shape received: {shape.as_list()}"
        )
    if spec.dtype is not None and as_dtype(tensor.dtype).base_dtype.name != spec.dtype:
        raise ValueError(f"{head}expected dtype={spec.dtype}, found dtype={tensor.dtype}")
    sizes = shape.as_list()
    for axis, size in spec.axes.items():
        if size is not None and sizes[axis] not in (size, None):
            raise ValueError(
                f"{head}expected axis {axis} of input shape to have value {size} but received input with shape {sizes}"
            )
    if spec.shape is not None:
        for wanted, found in zip(spec.shape, sizes, strict=True):
            if wanted is not None and found is not None and wanted != found:
                raise ValueError(f"{head}expected shape={spec.shape}, found shape={sizes}")
