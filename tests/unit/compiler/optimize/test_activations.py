"""Activations that a batch normalisation and its gradient do themselves: to the same bit, and which stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.optimized import TASK, Optimized, run
from support.parts import PartBuilder
from support.programs import compile_program
from tenfold_core import dtypes
from tenfold_kernels.resources.state import ResourceManager

F32, F16 = dtypes.float32, dtypes.float16
NORMS = {"FusedBatchNorm": 2, "FusedBatchNormV2": 2, "FusedBatchNormV3": 3}
#: What a step gets: the image, scale, offset, and the gradient of the activation's result.
NAMES = ("x", "scale", "offset", "dy")


def activated(
    norm: str = "FusedBatchNormV3",
    activation: str = "Relu",
    dtype: Any = F32,
    back: dict[str, Any] | None = None,
    **attrs: Any,
) -> tuple[PartBuilder, list[str]]:
    """A normalisation, an activation and their gradients, as a client writes them; `back`: the gradient's own attrs."""
    part = PartBuilder()
    keys = [part.feed(name, dtype if name in ("x", "dy") else F32) for name in NAMES]
    part.const("none", np.zeros(0, np.float32), F32)
    types: dict[str, Any] = {"T": dtype} | ({} if norm == "FusedBatchNorm" else {"U": F32})
    attrs = {"is_training": True, "epsilon": 0.01, "data_format": b"NHWC", **attrs}
    estimates = ["none"] * 2 if attrs["is_training"] else ["scale"] * 2
    part.node(norm, "norm", ["x", "scale", "offset", *estimates], **types, **attrs)
    part.node(activation, "activation", ["norm"], T=dtype)
    part.node(f"{activation}Grad", "passed", ["dy", "activation"], T=dtype)
    spaces = [f"norm:{3 + i}" for i in range(NORMS[norm])]
    part.node(
        norm.replace("Norm", "NormGrad"),
        "of_norm",
        ["passed", "x", "scale", *spaces],
        **types,
        **(attrs | (back or {})),
    )
    return part, keys


def values(shape: tuple[int, ...] = (2, 5, 4, 3)) -> list[Any]:
    draw = np.random.default_rng(7)
    x, dy = draw.standard_normal((2, *shape)).astype(np.float32) * np.float32(4)
    return [x, *draw.uniform(2, 4, (2, shape[-1])).astype(np.float32), dy]


def fetched(part: PartBuilder, names: list[str], keys: list[str], given: list[Any]) -> list[Any]:
    fetches = [part.fetch(name) for name in names]
    found = run(compile_program(part.graph_def, TASK, ResourceManager()), dict(zip(keys, given, strict=True)))
    return [found[fetch] for fetch in fetches]


FETCHES = ["activation", "of_norm", "of_norm:1", "of_norm:2", "norm:1", "norm:2"]


@pytest.mark.parametrize("activation", ["Relu", "Relu6"])
@pytest.mark.parametrize("norm", NORMS)
def test_the_normalisation_and_its_gradient_do_it(norm: str, activation: str) -> None:
    part, keys = activated(norm, activation)
    found = fetched(part, FETCHES, keys, values())

    optimized = Optimized(part)

    assert optimized.counts["join_activations"] == 2
    assert [optimized.op(name) for name in ("activation", "passed")] == ["NoOp", "NoOp"]
    assert optimized.sources("of_norm") == ["dy", "x", "scale", *["norm"] * (NORMS[norm] + 1)]
    # that the result is fetched before it is activated keeps all of them apart
    apart, keys = activated(norm, activation)
    expected = fetched(apart, ["norm", *FETCHES], keys, values())
    assert Optimized(apart).counts["join_activations"] == 0
    for one, other in zip(found, expected[1:], strict=True):
        np.testing.assert_array_equal(one, other)
    assert 0 < np.count_nonzero(found[0]) < found[0].size
    if activation == "Relu6":
        assert found[0].max() == 6


def test_what_is_not_finite_passes_as_it_would() -> None:
    given = values()
    given[0][0, 0, 0] = np.nan, np.inf, -np.inf
    given[3][0, 0, 1] = np.nan, np.inf, -np.inf
    part, keys = activated()
    found = fetched(part, FETCHES, keys, given)
    apart, keys = activated()
    for one, other in zip(found, fetched(apart, ["norm", *FETCHES], keys, given)[1:], strict=True):
        np.testing.assert_array_equal(one, other)


def test_in_inference_there_is_no_gradient_of_it() -> None:
    part, keys = activated(is_training=False)
    given = values()
    (found,) = fetched(part, ["activation"], keys, given)

    assert Optimized(part).counts["join_activations"] == 1
    apart, keys = activated(is_training=False)
    np.testing.assert_array_equal(found, fetched(apart, ["norm", "activation"], keys, given)[1])


def test_channels_first() -> None:
    part, keys = activated(data_format=b"NCHW")
    given = values()
    turned = [np.ascontiguousarray(np.moveaxis(each, -1, 1)) if each.ndim > 1 else each for each in given]
    found = fetched(part, FETCHES[:3], keys, turned)
    assert Optimized(part).counts["join_activations"] == 2
    last, keys = activated()
    expected = fetched(last, FETCHES[:3], keys, given)
    np.testing.assert_array_equal(np.moveaxis(found[0], 1, -1), expected[0])
    np.testing.assert_allclose(np.moveaxis(found[1], 1, -1), expected[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("back", "read"),
    [({"epsilon": 0.02}, ()), ({"is_training": False}, ()), ({}, ("passed",))],
)
def test_a_gradient_that_is_not_its_own_stays(back: dict[str, Any], read: tuple[str, ...]) -> None:
    part, keys = activated(back=back)
    fetched(part, [*FETCHES[:2], *read], keys, values())
    optimized = Optimized(part)
    assert optimized.counts["join_activations"] == 1
    assert [optimized.op(name) for name in ("activation", "passed", "of_norm")] == [
        "NoOp",
        "ReluGrad",
        "FusedBatchNormGradV3",
    ]


def test_two_gradients_share_what_was_applied() -> None:
    part, keys = activated()
    other = part.feed("dz", F32)
    part.node("ReluGrad", "passed_2", ["dz", "activation"], T=F32)
    spaces = [f"norm:{3 + i}" for i in range(3)]
    attrs: dict[str, Any] = {"is_training": True, "epsilon": 0.01, "data_format": b"NHWC"}
    part.node("FusedBatchNormGradV3", "of_norm_2", ["passed_2", "x", "scale", *spaces], T=F32, U=F32, **attrs)
    given = values()
    found = fetched(part, ["of_norm", "of_norm_2"], [*keys, other], [*given, given[3]])

    assert Optimized(part).counts["join_activations"] == 3
    np.testing.assert_array_equal(*found)


def test_halves_and_results_that_wait_for_more_stay() -> None:
    half, _ = activated(dtype=F16)
    half.fetch("activation", F16)
    assert Optimized(half).counts["join_activations"] == 0

    part, _ = activated()
    part.node("Relu6", "another", ["norm"], T=F32)
    part.fetch("another")
    part.fetch("activation")
    assert Optimized(part).counts["join_activations"] == 0

    part = PartBuilder()
    for name in NAMES:
        part.feed(name)
    attrs: dict[str, Any] = {"is_training": False, "epsilon": 0.01, "data_format": b"NHWC"}
    part.node("FusedBatchNorm", "norm", ["x", "scale", "offset", "scale", "offset"], T=F32, **attrs)
    part.node("Relu", "activation", ["norm", "^dy"], T=F32)
    part.fetch("activation")
    assert Optimized(part).counts["join_activations"] == 0
