"""Convolutions by cuDNN's front end: a graph a shape, built once and kept. Imported with _driver.py only."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import errors
from tenfold_kernels.cuda._pointers import pointer_of
from tenfold_kernels.cuda._precision import allows_tf32

if TYPE_CHECKING:
    from tenfold_kernels.cuda._arrays import DeviceArray
    from tenfold_kernels.cuda._runtime import Convolution

#: Plans that are kept, a shape each.
_PLANS = 512
_BYTES = np.dtype(np.uint8)
_TYPES = {"float32": "FLOAT", "float64": "DOUBLE", "float16": "HALF", "bfloat16": "BFLOAT16"}
#: Where cuDNN's plans take it that arrays begin: at a multiple of so many bytes. A part of an array need not.
_ALIGNMENT = 16
Shape = tuple[int, ...]


def _aligned(array: DeviceArray) -> DeviceArray:
    """The array, or a copy of one that begins where a plan cannot read."""
    if array.offset % _ALIGNMENT == 0:
        return array
    out = array.runtime.empty(array.shape, array.dtype)
    array.runtime.copy(array, out)
    return out


class Convolutions:
    """Of one GPU: how arrays lie in memory is said by strides, nothing is moved."""

    def __init__(self, runtime: Any) -> None:
        self._of = runtime
        self._tf32 = allows_tf32()
        self._handle: Any = None
        #: A handle serves one thread at a time.
        self._lock = threading.Lock()
        self._plan = functools.lru_cache(_PLANS)(self._new_plan)

    def conv2d(self, x: DeviceArray, filters: DeviceArray, out: DeviceArray, how: Convolution) -> None:
        self._run("fprop", x, filters, out, how)

    def conv2d_input_gradient(
        self, gradient: DeviceArray, filters: DeviceArray, out: DeviceArray, how: Convolution
    ) -> None:
        self._run("dgrad", gradient, filters, out, how)

    def conv2d_filter_gradient(self, x: DeviceArray, gradient: DeviceArray, out: DeviceArray, how: Convolution) -> None:
        self._run("wgrad", x, gradient, out, how)

    def _run(self, kind: str, a: DeviceArray, b: DeviceArray, out: DeviceArray, how: Convolution) -> None:
        import cudnn  # type: ignore[import-not-found, unused-ignore]

        with self._lock, self._of.current():
            graph, tensors, size = self._plan(kind, a.shape, b.shape, out.shape, out.dtype.name, how)
            workspace = self._of.empty((max(size, 1),), _BYTES)
            arrays = (_aligned(a), _aligned(b), out)
            pack = {tensor: pointer_of(array) for tensor, array in zip(tensors, arrays, strict=True)}
            cudnn.set_stream(handle=self._handle, stream=self._of.current_stream().ptr)
            self._of.note_launch(graph)
            graph.execute(pack, pointer_of(workspace), handle=self._handle)

    def _new_plan(
        self, kind: str, a_shape: Shape, b_shape: Shape, out_shape: Shape, dtype: str, how: Convolution
    ) -> tuple[Any, tuple[Any, Any, Any], int]:
        """(graph, its two inputs and its output, bytes of workspace)"""
        import cudnn  # type: ignore[import-not-found, unused-ignore]

        if self._handle is None:
            # of the device that is current now
            self._handle = cudnn.create_handle()
        io = getattr(cudnn.data_type, _TYPES[dtype])
        compute = cudnn.data_type.DOUBLE if dtype == "float64" else cudnn.data_type.FLOAT
        graph = cudnn.pygraph(
            handle=self._handle, io_data_type=io, intermediate_data_type=compute, compute_data_type=compute
        )
        pads, strides, dilations = list(how.pads), list(how.strides), list(how.dilations)
        slide = {"pre_padding": pads, "post_padding": pads, "stride": strides, "dilation": dilations}
        a, b = (
            graph.tensor(name=name, dim=dim, stride=stride)
            for name, (dim, stride) in (
                ("a", _layout(a_shape, how.channels_last)),
                ("b", _layout(b_shape, how.channels_last)),
            )
        )
        if kind == "fprop":
            result = graph.conv_fprop(image=a, weight=b, **slide)
        elif kind == "dgrad":
            result = graph.conv_dgrad(loss=a, filter=b, **slide)
        else:
            result = graph.conv_wgrad(image=a, loss=b, **slide)
        dim, stride = _layout(out_shape, how.channels_last)
        result.set_output(True).set_data_type(io).set_dim(dim).set_stride(stride)
        notes = cudnn.numerical_note
        refused = [notes.NONDETERMINISTIC, notes.DOWN_CONVERT_INPUTS]
        if dtype == "float32" and not self._tf32:
            # they round to TF32
            refused.append(notes.TENSOR_CORE)
        try:
            graph.validate()
            graph.build_operation_graph()
            graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
            graph.deselect_numeric_notes(refused)
            graph.check_support()
            graph.build_plans()
        except (RuntimeError, ValueError, cudnn.cudnnGraphNotSupportedError) as error:
            raise errors.unimplemented(
                f"cuDNN has no plan for {kind} of {a_shape} and {b_shape} to {out_shape}, {dtype}: {error}"
            ) from error
        return graph, (a, b, result), int(graph.get_workspace_size())


def _layout(shape: Shape, channels_last: bool) -> tuple[list[int], list[int]]:
    """(sizes, strides) in the order of cuDNN, whatever the layout: N C H W of an image, K C R S of filters."""
    strides = [1] * 4
    for axis in (2, 1, 0):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    order = (0, 3, 1, 2) if channels_last else (0, 1, 2, 3)
    return [shape[axis] for axis in order], [strides[axis] for axis in order]
