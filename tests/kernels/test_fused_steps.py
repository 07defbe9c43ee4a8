"""Each step that may be fused, against NumPy; layouts, args, padded and resized convolutions, glue; refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from support.kernel_runs import make_node
from support.op_values import refused
from tenfold_core import dtypes, errors, opdefs
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels import registry
from tenfold_kernels.cpu import fused
from tenfold_kernels.resources.state import ResourceManager

F = np.float32
A = np.linspace(-3, 3, 12, dtype=F).reshape(3, 4)
B = np.linspace(4, -2, 20, dtype=F).reshape(4, 5)
P = (A @ B).astype(np.float64)


def close(found: np.ndarray, wanted: Any, **more: Any) -> None:
    assert found.dtype == F
    np.testing.assert_allclose(found, wanted, **({"rtol": 2e-5, "atol": 2e-5} | more))


def gelu(x: float) -> float:
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


STEPS: dict[str, Any] = {
    "Relu": np.maximum(P, 0),
    "Relu6": np.clip(P, 0, 6),
    "Elu": np.where(P > 0, P, np.expm1(P)),
    "Tanh": np.tanh(P),
    "Sigmoid": 1 / (1 + np.exp(-P)),
    "Softplus": np.log1p(np.exp(P)),
    "LeakyRelu": np.where(P > 0, P, 0.2 * P),
    "_FusedSwish": P / (1 + np.exp(-P)),
    "GeluExact": np.vectorize(gelu)(P),
    "GeluApproximate": 0.5 * P * (1 + np.tanh(math.sqrt(2 / math.pi) * (P + 0.044715 * P**3))),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_step_without_args(ops: Any, step: str) -> None:
    for name in (step.encode(), step):
        close(ops.run("_FusedMatMul", [A, B], fused_ops=[name]), STEPS[step])
    small, one = np.full((1, 1), 0.5, F), np.ones((1, 1), F)
    if step.startswith("Gelu"):
        close(ops.run("_FusedMatMul", [small, one], fused_ops=[step]), gelu(0.5), rtol=1e-3)


def test_no_steps_give_the_product(ops: Any) -> None:
    close(ops.run("_FusedMatMul", [A, B]), P)
    close(ops.run("_FusedMatMul", [A.T.copy(), B], transpose_a=True), P)
    close(ops.run("_FusedMatMul", [A, B.T.copy()], transpose_b=True), P)


def test_the_slope_of_a_leak_is_an_attribute(ops: Any) -> None:
    found = ops.run("_FusedMatMul", [A, B], fused_ops=[b"LeakyRelu"], leakyrelu_alpha=0.5)
    close(found, np.where(P > 0, P, 0.5 * P))


def test_steps_take_their_args_in_order(ops: Any) -> None:
    bias, other = np.arange(5, dtype=F), np.arange(15, dtype=F).reshape(3, 5)
    found = ops.run("_FusedMatMul", [A, B, bias, other], fused_ops=[b"BiasAdd", b"Tanh", b"Add"])
    close(found, np.tanh(P + bias) + other)
    found = ops.run("_FusedMatMul", [A, B, other, bias], fused_ops=[b"Add", b"BiasAdd"])
    close(found, P + bias + other)
    scale, offset, mean, variance = (np.arange(1, 6, dtype=F) * k for k in (1, 2, 3, 4))
    args = [scale, offset, mean, variance, bias]
    wanted = (P - mean) * scale / np.sqrt(variance + 0.5) + offset + bias
    found = ops.run("_FusedMatMul", [A, B, *args], fused_ops=[b"FusedBatchNorm", b"BiasAdd"], epsilon=0.5)
    close(found, wanted)


def test_a_step_is_a_node_of_its_own_with_all_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[registry.KernelNode] = []

    def lookup(node: registry.KernelNode, device: str) -> Any:
        seen.append(node)
        return lambda part: None

    node = make_node("_FusedMatMul", [A, B], {}, ResourceManager(), "n")
    monkeypatch.setattr(registry, "lookup", lookup)
    fused._single(node, "Conv2D", dtypes.float64, strides=[1, 2, 2, 1], padding=b"SAME")
    (part,) = seen
    defaults = {attr.name: attr.default for attr in opdefs.get("Conv2D").attrs if attr.has_default}
    assert dict(part.attrs) == defaults | {"T": dtypes.float64, "strides": [1, 2, 2, 1], "padding": b"SAME"}
    assert (part.op, part.input_types, part.output_types) == ("Conv2D", (dtypes.float64,) * 2, (dtypes.float64,))


@pytest.mark.parametrize(("steps", "args"), [(["BiasAdd"], 0), (["BiasAdd", "Add"], 1), (["FusedBatchNorm"], 3)])
def test_there_are_as_many_args_as_steps_take(ops: Any, steps: list[str], args: int) -> None:
    text = f"_FusedMatMul 'n' has {args} args, fewer than its fused ops take"
    refused(ops, "_FusedMatMul", [A, B, *[np.ones(5, F)] * args], text, fused_ops=steps, name="n")


@pytest.mark.parametrize("first", [False, True])
def test_convolutions_of_both_layouts(ops: Any, first: bool) -> None:
    image, filter_ = np.arange(50, dtype=F).reshape(1, 5, 5, 2) / 9, np.arange(48, dtype=F).reshape(2, 3, 2, 4) / 9 - 2
    attrs: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": b"VALID", "num_args": 1}
    plain = ops.run("Conv2D", [image, filter_], strides=[1, 1, 1, 1], padding=b"VALID")
    bias, scale, mean = np.arange(4, dtype=F), F([1, 2, 3, 4]), F([5, 4, 3, 2])
    x = np.moveaxis(image, 3, 1).copy() if first else image
    attrs["data_format"] = b"NCHW" if first else b"NHWC"
    for args, steps, wanted in (
        ([bias], ["BiasAdd", "Relu"], np.maximum(plain + bias, 0)),
        ([scale, bias, mean, scale], ["FusedBatchNorm"], (plain - mean) * scale / np.sqrt(scale + 0.5) + bias),
    ):
        types = [dtypes.float32] * len(args)
        found = ops.run("_FusedConv2D", [x, filter_, *args], fused_ops=steps, TArgs=types, epsilon=0.5, **attrs)
        close(np.moveaxis(found, 1, 3) if first else found, wanted, rtol=1e-4, atol=1e-3)


def test_filters_have_one_layout(ops: Any) -> None:
    inputs = [np.ones((1, 3, 3, 1), F), np.ones((2, 2, 1, 1), F)]
    attrs = {"strides": [1, 1, 1, 1], "padding": b"VALID", "TArgs": [], "num_args": 0, "num_host_args": 0}
    text = "_FusedConv2D 'n': only filters of the layout HWIO run on a CPU"
    refused(ops, "_FusedConv2D", inputs, text, filter_format=b"OIHW", name="n", **attrs)
    assert ops.run("_FusedConv2D", inputs, filter_format=b"HWIO", **attrs).shape == (1, 2, 2, 1)


def test_a_convolution_of_each_channel(ops: Any) -> None:
    image, filter_ = np.arange(32, dtype=F).reshape(1, 4, 4, 2), np.arange(16, dtype=F).reshape(2, 2, 2, 2) - 7
    attrs = {"strides": [1, 1, 1, 1], "padding": b"VALID"}
    plain = ops.run("DepthwiseConv2dNative", [image, filter_], **attrs)
    bias = F([1, 2, 3, 4])
    found = ops.run("_FusedDepthwiseConv2dNative", [image, filter_, bias], fused_ops=["BiasAdd", "Relu6"], **attrs)
    close(found, np.clip(plain + bias, 0, 6))


# -- convolutions of mirrored images -----------------------------------------------------------------------------------

IMAGE = (np.arange(60, dtype=F) % 7).reshape(1, 5, 6, 2)
FILTER = (np.arange(36, dtype=F) % 5 - 2).reshape(2, 3, 2, 3)
EDGES = np.array([[0, 0], [1, 2], [0, 1], [0, 0]], np.int32)


def padded_attrs(**other: Any) -> dict[str, Any]:
    return {"mode": b"REFLECT", "strides": [1, 1, 1, 1], "padding": b"VALID"} | other


@pytest.mark.parametrize(("mode", "plain"), [(b"REFLECT", "reflect"), (b"SYMMETRIC", "symmetric")])
@pytest.mark.parametrize("padding", [b"VALID", b"SAME"])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("corners", [False, True])
def test_mirrored_images_are_convolved(
    ops: Any, mode: bytes, plain: Any, padding: bytes, stride: int, corners: bool
) -> None:
    attrs = padded_attrs(mode=mode, padding=padding, strides=[1, stride, stride, 1])
    conv = {"strides": attrs["strides"], "padding": padding}
    wanted = ops.run("Conv2D", [np.pad(IMAGE, EDGES, mode=plain), FILTER], **conv)
    close(ops.run("FusedPadConv2D", [IMAGE, EDGES, FILTER], **attrs), wanted)

    size = np.array([7, 4], np.int32)
    resized = ops.run("ResizeBilinear", [IMAGE, size], align_corners=corners)
    wanted = ops.run("Conv2D", [np.pad(resized, EDGES, mode=plain), FILTER], **conv)
    found = ops.run("FusedResizeAndPadConv2D", [IMAGE, size, EDGES, FILTER], resize_align_corners=corners, **attrs)
    close(found, wanted, rtol=1e-4, atol=1e-4)


def test_half_images_are_resized_in_float_and_stay_half(ops: Any) -> None:
    inputs = [IMAGE.astype(np.float16), np.array([3, 3], np.int32), 0 * EDGES, FILTER.astype(np.float16)]
    assert ops.run("FusedResizeAndPadConv2D", inputs, **padded_attrs()).dtype == np.float16


@pytest.mark.parametrize("op", ["FusedPadConv2D", "FusedResizeAndPadConv2D"])
def test_mirrored_images_that_cannot_be_convolved(ops: Any, op: str) -> None:
    def inputs(image: np.ndarray = IMAGE, edges: Any = EDGES, filter_: np.ndarray = FILTER) -> list[Any]:
        size = [np.array([5, 6], np.int32)] if "Resize" in op else []
        return [image, *size, np.array(edges, np.int32), filter_]

    text = "Sliding window strides field must specify 4 dimensions"
    refused(ops, op, inputs(), text, **padded_attrs(strides=[1, 1, 1]))
    text = "Current implementation does not yet support strides in the batch and depth dimensions."
    refused(ops, op, inputs(), text, **padded_attrs(strides=[2, 1, 1, 1]))
    refused(ops, op, inputs(), text, **padded_attrs(strides=[1, 1, 1, 2]))
    refused(ops, op, inputs(IMAGE[:0]), "Input tensor can't be empty", **padded_attrs())
    text = "Fused mirror padding only support spatial padding, not "
    for place, what in ((0, "batches"), (3, "channels")):
        for side in range(2):
            edges = 0 * EDGES
            edges[place, side] = 1
            refused(ops, op, inputs(edges=edges), f"{text}{what}: {edges.tolist()}", **padded_attrs())
    text = "input and filter must have the same depth: 2 vs 1"
    refused(ops, op, inputs(filter_=FILTER[:, :, :1]), text, **padded_attrs())
    refused(ops, op, inputs(filter_=FILTER[0]), "", **padded_attrs())
    refused(ops, op, inputs(IMAGE[0], EDGES[1:]), "", **padded_attrs())
    refused(ops, op, inputs(edges=EDGES[:3]), "", **padded_attrs())
    refused(ops, op, inputs(edges=EDGES[:, :1]), "", **padded_attrs())


def test_sizes_that_cannot_be_counted(ops: Any) -> None:
    wide = np.array([(1 << 31) - 1] * 2, np.int32)
    text = "Encountered overflow when multiplying shape dimensions: "
    two = np.concatenate([IMAGE, IMAGE])
    refused(ops, "FusedResizeAndPadConv2D", [two, wide, EDGES, FILTER], text, **padded_attrs())
    # 2⁶³ − 1 elements can be counted: that they can be had is another question
    image, size = np.ones((92737, 1, 1, 1), F), np.array([153092023, 649657], np.int32)
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run("FusedResizeAndPadConv2D", [image, size, EDGES, FILTER], **padded_attrs())


# -- chains and glue ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ops_of_one_input_follow_each_other(ops: Any, dtype: Any) -> None:
    x = np.array([0.25, 4], dtype)
    for names in ([b"Sqrt", b"Neg"], ["Sqrt", "Neg"]):
        assert ops.run("_UnaryOpsComposition", [x], op_names=names).tolist() == [-0.5, -2]
    assert ops.run("_UnaryOpsComposition", [x], op_names=[]).tolist() == x.tolist()
    for name in ("Add", "NoSuchOp", "NoOp"):
        text = f"_UnaryOpsComposition 'n': '{name}' is no op of one input"
        refused(ops, "_UnaryOpsComposition", [x], text, op_names=["Sqrt", name], name="n")


def test_rows_are_joined_in_parallel(ops: Any) -> None:
    rows = [np.full((1, 2), i, F) for i in range(3)]
    assert ops.run("ParallelConcat", rows, shape=TensorShape([3, 2])).tolist() == [[0, 0], [1, 1], [2, 2]]
    text = "ParallelConcat 'n': "
    refused(ops, "ParallelConcat", [rows[0], rows[1][:, :1]], text, shape=TensorShape([2, 2]), name="n")


def test_a_block_that_is_filled_row_by_row(ops: Any) -> None:
    start = ops.run("_ParallelConcatStart", [], shape=TensorShape([2, 3]), dtype=dtypes.int32)
    assert (start.tolist(), start.dtype) == ([[0, 0, 0]] * 2, np.int32)
    texts = ops.run("_ParallelConcatStart", [], shape=TensorShape([2]), dtype=dtypes.string)
    assert texts.tolist() == [b"", b""]
    empty = ops.run("_ParallelConcatStart", [], shape=TensorShape([0]), dtype=dtypes.float64)
    assert (empty.shape, empty.dtype) == ((0,), np.float64)


def test_an_element_of_a_vector_is_replaced(ops: Any) -> None:
    assert ops.run("_ParallelConcatUpdate", [F([1, 2, 3]), F([9])], loc=1).tolist() == [1, 9, 3]


def test_lists_and_arrays_of_inputs_are_the_same(ops: Any) -> None:
    x, y = F([1]), F([2])
    for count, given in ((1, [x]), (2, [x, y])):
        types = [dtypes.float32] * count
        found = (
            ops.run("_ArrayToList", given, out_types=types),
            ops.run("_ListToArray", given, T=dtypes.float32, N=count),
        )
        for each in found:
            assert isinstance(each, tuple) == (count > 1)
            for value, wanted in zip(each if count > 1 else [each], given, strict=True):
                assert value.tolist() == wanted.tolist()
