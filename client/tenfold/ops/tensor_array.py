"""`tf.TensorArray`: an array of tensors that a loop writes and reads, one element at a time.

The array exists on a device for one step. Operations on it are ordered by the scalar `flow` that each takes and
returns; loops and conditionals carry this scalar. Kernels are in tenfold_kernels/cpu/data_flow_array.py, gradients in
gradients/data_flow_array.py. Follows TensorFlow 1.15's tensor_array_ops.py (version 1 graphs).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tenfold.graph.constant_value import known_value
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import colocate_with, control_dependencies, device, name_scope
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.graph.tensor import Tensor
from tenfold.ops import array, math
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape, as_shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tenfold.graph.operation import Operation
    from tenfold_core.dtypes import DType

__all__ = ["TensorArray"]


class TensorArray:
    """An array of `size` tensors of one type, each written once (and, by default, read once).

    Every writing method gives a new TensorArray object for the array after the write; later operations must use it.
    In a function of tf.data it is a ListArray (tensor_array_list.py), as in TensorFlow.
    """

    def __new__(cls, *args: Any, **named: Any) -> TensorArray:
        handle = named.get("handle", args[5] if len(args) > 5 else None)
        # one that has a handle is of the step
        lists = get_default_graph().array_class if cls is TensorArray and handle is None else None
        return object.__new__(cls if lists is None else lists)

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Tensor | None = None,
        flow: Tensor | None = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        """A new array of `size` elements, or with `handle` and `flow` an existing one.

        `dynamic_size` lets writes grow it; `clear_after_read=False` lets an element be read twice; `infer_shape`
        requires all elements to have one shape, `element_shape` if given; `colocate_with_first_write_call` places the
        array where the first written value is. Raises ValueError and TypeError for arguments that contradict.
        """
        _check_arguments(handle, size, element_shape, dynamic_size, clear_after_read, tensor_array_name)
        self._dtype = dtypes.as_dtype(dtype).base_dtype
        self._dynamic_size = bool(dynamic_size)
        self._infer_shape = infer_shape
        #: The first written value, which decides the device; shared by all objects of the array. None: not used.
        self._colocate_with: list[Tensor] | None = [] if colocate_with_first_write_call else None
        #: A list of one shape, shared by all objects of the array, so that all see the shape of a write.
        self._element_shape: list[TensorShape] = [as_shape(element_shape)]
        with name_scope(name, "TensorArray", [each for each in (handle, size, flow) if each is not None]) as scope:
            if handle is not None:
                if flow is None:
                    raise ValueError("flow must not be None if handle is not None.")
                self._handle, self._flow = handle, flow
                return
            arguments = {
                "dtype": self._dtype,
                "size": size,
                "element_shape": self._element_shape[0],
                "identical_element_shapes": infer_shape,
                "dynamic_size": self._dynamic_size,
                "clear_after_read": True if clear_after_read is None else clear_after_read,
                "tensor_array_name": tensor_array_name,
            }
            if colocate_with_first_write_call:
                # The first write decides the device, so no scope may request one here.
                with device(None), colocate_with(None, ignore_existing=True):
                    self._handle, self._flow = apply_op("TensorArrayV3", scope, **arguments)
            else:
                self._handle, self._flow = apply_op("TensorArrayV3", scope, **arguments)

    # --- properties ---

    @property
    def flow(self) -> Tensor:
        """The scalar that orders operations on the array."""
        return self._flow

    @property
    def handle(self) -> Tensor:
        """The resource."""
        return self._handle

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        """Whether writes may grow the array."""
        return self._dynamic_size

    @property
    def element_shape(self) -> TensorShape:
        """What is known of the shape of the elements."""
        return self._element_shape[0]

    def _after(self, flow: Tensor) -> TensorArray:
        """The same array after the operation that gave `flow`."""
        self._check_graph()
        result = object.__new__(type(self))
        result.__dict__.update(self.__dict__, _flow=flow)
        return result

    def _check_graph(self) -> None:
        graph = get_default_graph()
        if graph.array_class is not None and self._handle.graph is not graph:
            raise NotImplementedError(
                "Attempting to build a TensorArray that is a list of tensors from one that exists for one step. You "
                "may be attempting to capture a TensorArray inside a function of tf.data. Instead, construct a new "
                "TensorArray inside the function."
            )

    def _check_element_shape(self, shape: TensorShape) -> None:
        known = self._element_shape[0]
        if not shape.is_compatible_with(known):
            raise ValueError(f"Inconsistent shapes: saw {shape} but expected {known} ")
        if self._infer_shape:
            self._element_shape[0] = known.merge_with(shape)

    @contextmanager
    def _with_values(self, value: Tensor) -> Iterator[None]:
        if self._colocate_with is None:
            yield
            return
        if not self._colocate_with:
            self._colocate_with.append(value)
        with colocate_with(self._colocate_with[0]):
            yield

    def _value(self, value: Any) -> Tensor:
        tensor = convert_to_tensor(value, preferred_dtype=self._dtype, name="value")
        if tensor.dtype.base_dtype != self._dtype:
            raise TypeError(
                f"Error: Input value {tensor} has dtype {tensor.dtype.name}, but expected dtype {self._dtype.name}."
            )
        return tensor

    # --- reading ---

    def identity(self) -> TensorArray:
        """The same array; its flow waits for the current control dependencies."""
        return self._after(array.identity(self._flow))

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """Element `index`."""
        value = tensor_op(
            "TensorArrayReadV3", name, handle=self._handle, index=index, flow_in=self._flow, dtype=self._dtype
        )
        value.set_shape(self.element_shape)
        return value

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements at `indices`, stacked: (len(indices), *element_shape). All must have one shape."""
        value = tensor_op(
            "TensorArrayGatherV3",
            name,
            handle=self._handle,
            indices=indices,
            flow_in=self._flow,
            dtype=self._dtype,
            element_shape=self.element_shape,
        )
        if self.element_shape.ndims is not None:
            value.set_shape(TensorShape([None]).concatenate(self.element_shape))
        return value

    def stack(self, name: str | None = None) -> Tensor:
        """All elements, stacked: (size, *element_shape)."""
        with colocate_with(self._handle), name_scope(name, "TensorArrayStack", [self._handle]):
            return self.gather(math.range(0, self.size()), name=name)

    def concat(self, name: str | None = None) -> Tensor:
        """All elements, joined along their first dimension, the only one in which they may differ."""
        known = self.element_shape
        rest = known[1:] if known.ndims else TensorShape(None)
        value: Tensor
        value, _ = apply_op(
            "TensorArrayConcatV3",
            name,
            handle=self._handle,
            flow_in=self._flow,
            dtype=self._dtype,
            element_shape_except0=rest,
        )
        if known.ndims is not None:
            value.set_shape(TensorShape([None]).concatenate(rest))
        return value

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements, a scalar int32."""
        return tensor_op("TensorArraySizeV3", name, handle=self._handle, flow_in=self._flow)

    # --- writing ---

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with `value` at `index`."""
        with name_scope(name, "TensorArrayWrite", _in_graph(self._handle, index, value)):
            tensor = self._value(value)
            self._check_element_shape(tensor.shape)
            with self._with_values(tensor):
                flow = tensor_op(
                    "TensorArrayWriteV3",
                    name,
                    handle=self._handle,
                    index=index,
                    value=tensor,
                    flow_in=self._flow,
                )
            return self._after(flow)

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """The array with the rows of `value` as its elements."""
        with name_scope(name, "TensorArrayUnstack", _in_graph(self._handle, value)):
            count = array.shape(value)[0]
            return self.scatter(math.range(0, count), value, name=name)

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with the rows of `value` at `indices`."""
        with name_scope(name, "TensorArrayScatter", _in_graph(self._handle, value, indices)):
            tensor = self._value(value)
            if tensor.shape.ndims is not None:
                self._check_element_shape(tensor.shape[1:])
            with self._with_values(tensor):
                flow = tensor_op(
                    "TensorArrayScatterV3",
                    name,
                    handle=self._handle,
                    indices=indices,
                    value=tensor,
                    flow_in=self._flow,
                )
            return self._after(flow)

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """The array with consecutive pieces of `value`, `lengths[i]` rows each, as its elements."""
        with name_scope(name, "TensorArraySplit", _in_graph(self._handle, value, lengths)):
            tensor = convert_to_tensor(value, dtype=self._dtype, name="value")
            with self._with_values(tensor):
                lengths = math.cast(lengths, dtypes.int64)
                known = known_value(lengths)
                even = known is not None and known.ndim and known.size and known.max() == known.min()
                if tensor.shape.ndims is not None and even:
                    self._check_element_shape(TensorShape([int(known[0])]).concatenate(tensor.shape[1:]))
                flow = tensor_op(
                    "TensorArraySplitV3",
                    name,
                    handle=self._handle,
                    value=tensor,
                    lengths=lengths,
                    flow_in=self._flow,
                )
            return self._after(flow)

    def close(self, name: str | None = None) -> Operation:
        """An operation that frees the array before the step ends."""
        op: Operation = apply_op("TensorArrayCloseV3", name, handle=self._handle)
        return op

    # --- gradient ---

    def grad(self, source: str, flow: Tensor | None = None, name: str | None = None) -> TensorArray:
        """The array that accumulates the gradients of this one in the gradient computation named `source`."""
        flow = self._flow if flow is None else flow
        with (
            name_scope(name, "TensorArrayGrad", [self._handle]),
            # On the array's device, even if the scopes here request another one.
            colocate_with(self._handle, ignore_existing=True),
        ):
            handle, _ = apply_op("TensorArrayGradV3", name, handle=self._handle, source=source, flow_in=flow)
            # The gradient array must exist before anything follows the flow.
            with control_dependencies([handle]):
                flow = array.identity(flow, name="gradient_flow")
            gradient = TensorArray(
                self._dtype,
                handle=handle,
                flow=flow,
                infer_shape=self._infer_shape,
                colocate_with_first_write_call=False,
            )
            gradient._element_shape = self._element_shape
            return gradient


class StepArray(TensorArray):
    """A TensorArray that is never a list: what the loops of this package make for themselves and hand to nobody."""


def _check_arguments(
    handle: Any, size: Any, element_shape: Any, dynamic_size: Any, clear_after_read: Any, tensor_array_name: Any
) -> None:
    if handle is None:
        if size is None:
            raise ValueError("Size must be provided if handle is not provided")
        return
    if tensor_array_name:
        raise ValueError("Cannot construct with both handle and tensor_array_name")
    if not isinstance(handle, Tensor):
        raise TypeError("Handle must be a Tensor")
    if size is not None:
        raise ValueError("Cannot provide both a handle and size at the same time")
    for what, given in (
        ("element_shape", element_shape),
        ("dynamic_size", dynamic_size),
        ("clear_after_read", clear_after_read),
    ):
        if given is not None:
            raise ValueError(f"Cannot provide both a handle and {what} at the same time")


def _in_graph(*values: Any) -> list[Any]:
    return [value for value in values if hasattr(value, "graph")]


# --- how loops and conditionals carry arrays ---


def flow_of(value: Any) -> Any:
    """The flow of a TensorArray; anything else unchanged. NotImplementedError for one from outside of a function."""
    if not isinstance(value, TensorArray):
        return value
    value._check_graph()
    return value.flow


def with_flows(values: Sequence[Any], tensors: Sequence[Tensor]) -> list[Any]:
    """`tensors`, each as a TensorArray where `values` has one: the same array with the tensor as its flow.

    Raises ValueError if the numbers differ.
    """
    if len(values) != len(tensors):
        raise ValueError(f"Lengths of original Tensor list and new list do not match: {len(values)} vs. {len(tensors)}")
    return [
        value._after(tensor) if isinstance(value, TensorArray) else tensor
        for value, tensor in zip(values, tensors, strict=True)
    ]
