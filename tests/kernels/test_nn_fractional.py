"""Fractional pools against their windows, gradients of dilation and of fractional pools against finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.gradients.checker import directional_error
from tenfold.graph.op_builder import apply_op
from tenfold_core import errors

RNG = np.random.default_rng(13)


def attrs(**others: Any) -> dict[str, Any]:
    defaults = {"pooling_ratio": [1.0, 1.5, 1.3, 1.0], "deterministic": True, "seed": 3, "seed2": 4}
    return {**defaults, **others}


@pytest.mark.parametrize("op", ["FractionalMaxPool", "FractionalAvgPool"])
@pytest.mark.parametrize("pseudo", [False, True])
@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_each_output_is_of_its_window(ops: Any, op: str, pseudo: bool, overlapping: bool, dtype: Any) -> None:
    x = (100 * RNG.standard_normal((2, 11, 9, 3))).astype(dtype)
    given = attrs(pseudo_random=pseudo, overlapping=overlapping)

    out, rows, columns = ops.run(op, [x], **given)
    again, *_ = ops.run(op, [x], **given)

    assert out.shape == (2, 7, 6, 3)
    assert (rows[0], rows[-1], columns[0], columns[-1]) == (0, 11, 0, 9)
    assert set(np.diff(rows)) == set(np.diff(columns)) == {1, 2}
    np.testing.assert_array_equal(out, again)
    for r in range(7):
        for c in range(6):
            window = x[:, rows[r] : rows[r + 1] + overlapping, columns[c] : columns[c + 1] + overlapping]
            if op == "FractionalMaxPool":
                np.testing.assert_array_equal(out[:, r, c], window.max(axis=(1, 2)))
            else:
                expected = window.astype(np.float64).mean(axis=(1, 2)).astype(dtype)
                np.testing.assert_allclose(out[:, r, c], expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("op", ["FractionalMaxPool", "FractionalAvgPool"])
@pytest.mark.parametrize("overlapping", [False, True])
def test_gradients_of_fractional_pools(op: str, overlapping: bool) -> None:
    x = RNG.standard_normal((2, 7, 6, 2))
    given = attrs(overlapping=overlapping)

    assert directional_error(lambda x: apply_op(op, value=x, **given)[0], [x]) < 1e-5


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_gradients_of_dilation(padding: str) -> None:
    image, kernel = RNG.standard_normal((2, 7, 6, 2)), RNG.standard_normal((3, 2, 2))

    def dilated(x: Any, f: Any) -> Any:
        return apply_op("Dilation2D", input=x, filter=f, strides=[1, 2, 1, 1], rates=[1, 1, 2, 1], padding=padding)

    assert directional_error(dilated, [image, kernel]) < 1e-5


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_patches_of_volumes(ops: Any, padding: str) -> None:
    x = RNG.standard_normal((2, 5, 4, 6, 2))
    given: dict[str, Any] = {"ksizes": [1, 2, 3, 2, 1], "strides": [1, 2, 1, 3, 1], "padding": padding}

    found = ops.run("ExtractVolumePatches", [x], **{**given, "padding": padding.encode()})

    by_convolution = np.eye(24).reshape(2, 3, 2, 2, 24)
    attrs = {"strides": given["strides"], "padding": padding.encode()}
    np.testing.assert_allclose(found, ops.run("Conv3D", [x, by_convolution], **attrs), rtol=1e-12)
    assert directional_error(lambda x: apply_op("ExtractVolumePatches", input=x, **given), [x]) < 1e-5


def test_what_is_refused(ops: Any) -> None:
    x = np.ones((1, 4, 4, 1), np.float32)
    shape, places = np.array(x.shape, np.int64), np.array([0, 2, 4], np.int64)
    with pytest.raises(errors.InvalidArgumentError, match="seed and seed2 should be 0 if deterministic is false"):
        ops.run("FractionalMaxPool", [x], **attrs(deterministic=False))
    with pytest.raises(errors.InvalidArgumentError, match="not supported on the batch or channel"):
        ops.run("FractionalAvgPool", [x], **attrs(pooling_ratio=[2.0, 1.0, 1.0, 1.0]))
    with pytest.raises(errors.InvalidArgumentError, match="leaves nothing"):
        ops.run("FractionalAvgPool", [x], **attrs(pooling_ratio=[1.0, 5.0, 1.0, 1.0]))
    with pytest.raises(errors.InvalidArgumentError, match="row_pooling_sequence must rise from 0 to 4"):
        ops.run("FractionalAvgPoolGrad", [shape, x[:, :2, :2], places + 1, places])
    with pytest.raises(errors.InvalidArgumentError, match="out_backprop has incompatible size"):
        ops.run("Dilation2DBackpropInput", [x, x[0, :2, :2], x], strides=[1] * 4, rates=[1] * 4, padding=b"VALID")
