"""Convolutions by cuDNN's front end: a graph a shape, built once and kept. Imported with _driver.py only."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import errors

if TYPE_CHECKING:
    from tenfold_kernels.cuda._arrays import DeviceArray

Pads = tuple[tuple[int, int], tuple[int, int]]
#: Plans that are kept, a shape each.
_PLANS = 512
_BYTES = np.dtype(np.uint8)


class Convolutions:
    """Of one GPU. Arrays are NHWC, filters RSCK, as TensorFlow has them: strides say so, nothing is moved."""

    def __init__(self, runtime: Any) -> None:
        self._of = runtime
        self._handle: Any = None
        self._plan = functools.lru_cache(_PLANS)(self._new_plan)

    def conv2d(
        self,
        x: DeviceArray,
        filters: DeviceArray,
        out: DeviceArray,
        strides: tuple[int, int],
        dilations: tuple[int, int],
        pads: Pads,
        groups: int = 1,
    ) -> None:
        self._run("fprop", (x, filters), out, strides, dilations, pads)

    def conv2d_input_gradient(
        self,
        gradient: DeviceArray,
        filters: DeviceArray,
        out: DeviceArray,
        strides: tuple[int, int],
        dilations: tuple[int, int],
        pads: Pads,
        groups: int = 1,
    ) -> None:
        self._run("dgrad", (gradient, filters), out, strides, dilations, pads)

    def conv2d_filter_gradient(
        self,
        x: DeviceArray,
        gradient: DeviceArray,
        out: DeviceArray,
        strides: tuple[int, int],
        dilations: tuple[int, int],
        pads: Pads,
        groups: int = 1,
    ) -> None:
        self._run("wgrad", (x, gradient), out, strides, dilations, pads)

    def _run(
        self,
        kind: str,
        inputs: tuple[DeviceArray, DeviceArray],
        out: DeviceArray,
        strides: tuple[int, int],
        dilations: tuple[int, int],
        pads: Pads,
    ) -> None:
        from tenfold_kernels.cuda._driver import pointer_of

        key = (kind, inputs[0].shape, inputs[1].shape, out.shape, inputs[0].dtype.name, strides, dilations, pads)
        graph, tensors, size = self._plan(*key)
        workspace = self._of.empty((max(size, 1),), _BYTES)
        pack = {tensor: pointer_of(array) for tensor, array in zip(tensors, (*inputs, out), strict=True)}
        import cudnn  # type: ignore[import-not-found, unused-ignore]

        stream = self._of.current_stream()
        with self._of._device, stream:
            cudnn.set_stream(handle=self._handle, stream=stream.ptr)
            graph.execute(pack, pointer_of(workspace), handle=self._handle)

    def _new_plan(
        self,
        kind: str,
        first: tuple[int, ...],
        second: tuple[int, ...],
        out: tuple[int, ...],
        dtype: str,
        strides: tuple[int, int],
        dilations: tuple[int, int],
        pads: Pads,
    ) -> tuple[Any, tuple[Any, Any, Any], int]:
        import cudnn  # type: ignore[import-not-found, unused-ignore]

        if self._handle is None:
            self._handle = cudnn.create_handle()
        types = {"float32": "FLOAT", "float64": "DOUBLE", "float16": "HALF", "bfloat16": "BFLOAT16"}
        io = getattr(cudnn.data_type, types[dtype])
        compute = cudnn.data_type.DOUBLE if dtype == "float64" else cudnn.data_type.FLOAT
        graph = cudnn.pygraph(
            handle=self._handle, io_data_type=io, intermediate_data_type=compute, compute_data_type=compute
        )
        common = {
            "pre_padding": [pads[0][0], pads[1][0]],
            "post_padding": [pads[0][1], pads[1][1]],
            "stride": list(strides),
            "dilation": list(dilations),
        }
        is_filter = {"fprop": (False, True), "dgrad": (False, True), "wgrad": (False, False)}[kind]
        a, b = (
            _tensor(graph, name, shape, of_filter)
            for name, shape, of_filter in zip(("a", "b"), (first, second), is_filter, strict=True)
        )
        if kind == "fprop":
            result = graph.conv_fprop(image=a, weight=b, **common)
        elif kind == "dgrad":
            result = graph.conv_dgrad(loss=a, filter=b, **common)
        else:
            result = graph.conv_wgrad(image=a, loss=b, **common)
        dim, stride = _layout(out, kind == "wgrad")
        result.set_output(True).set_data_type(io).set_dim(dim).set_stride(stride)
        try:
            graph.build([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        except Exception as error:
            raise errors.UnimplementedError(
                None, None, f"cuDNN has no plan for {kind} of {first} and {second} to {out} in {dtype}: {error}"
            ) from error
        return graph, (a, b, result), int(graph.get_workspace_size())


def _layout(shape: tuple[int, ...], of_filter: bool) -> tuple[list[int], list[int]]:
    """(sizes, strides) as cuDNN orders them: NCHW of an NHWC array, KCRS of an RSCK filter."""
    strides = [1] * 4
    for axis in (2, 1, 0):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    order = (3, 2, 0, 1) if of_filter else (0, 3, 1, 2)
    return [shape[axis] for axis in order], [strides[axis] for axis in order]


def _tensor(graph: Any, name: str, shape: tuple[int, ...], of_filter: bool) -> Any:
    dim, stride = _layout(shape, of_filter)
    return graph.tensor(name=name, dim=dim, stride=stride)
