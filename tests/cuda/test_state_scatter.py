"""Scatters into variables of a GPU give what the CPU gives: equal indices in order, every type, odd shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.gpu_variables import Pair
from tenfold_core import errors

if TYPE_CHECKING:
    from types import SimpleNamespace

F = np.float32
OPERATIONS = ("Add", "Sub", "Mul", "Div", "Min", "Max", "Update")
TYPES = ("float32", "float64", "int8", "int64", "uint8", "uint16")
MOVED = ("bool", "float16", "complex64", "complex128")
#: (variable, indices).
SHAPES = (((4,), (5,)), ((4, 3), (2, 2)), ((3, 2, 2), ()), ((2, 3), (0,)), ((3, 0), (2,)), ((1,), (1,)))
ND_SHAPES = (((4, 3), (5, 1)), ((4, 3), (5, 2)), ((3, 2, 2), (2, 2, 2)), ((4,), (1, 1)))


def values(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    random = np.random.default_rng(seed)
    return random.integers(1, 5, shape).astype(dtype)


def same(gpu: SimpleNamespace, op: str, start: Any, indices: Any, updates: Any) -> None:
    pair = Pair([start, indices, updates], (0,), resource=op.startswith("Resource"))

    pair.run(gpu, op)

    ((ours, theirs),) = pair.values()
    np.testing.assert_allclose(ours, theirs, rtol=1e-6) if ours.dtype.kind == "f" else np.testing.assert_array_equal(
        ours, theirs
    )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_rows(gpu: SimpleNamespace, operation: str, dtype: str) -> None:
    for number, (shape, where) in enumerate(SHAPES):
        prefix, index = ("", np.int32) if number % 2 else ("Resource", np.int64)
        indices = np.random.default_rng(number).integers(0, shape[0], where).astype(index)
        updates = values((*where, *shape[1:]), dtype, 1)
        same(gpu, f"{prefix}Scatter{operation}", values(shape, dtype, 0), indices, updates)


@pytest.mark.parametrize("dtype", MOVED)
def test_what_is_only_moved(gpu: SimpleNamespace, dtype: str) -> None:
    indices = np.array([2, 0, 2])
    same(gpu, "ScatterUpdate", values((3, 2), dtype, 0), indices, values((3, 2), dtype, 1))
    same(gpu, "ScatterNdUpdate", values((3, 2), dtype, 0), indices[:2, None], values((2, 2), dtype, 1))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_scalar_updates_all_elements(gpu: SimpleNamespace, operation: str) -> None:
    same(gpu, f"Scatter{operation}", values((3, 2), "float32", 0), np.array([2, 0, 2]), np.array(3, F))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("operation", ["Add", "Sub", "Min", "Max", "Update"])
def test_elements(gpu: SimpleNamespace, operation: str, dtype: str) -> None:
    for number, (shape, where) in enumerate(ND_SHAPES):
        prefix, index = ("Resource", np.int32) if number % 2 else ("", np.int64)
        depth = where[-1]
        random = np.random.default_rng(number)
        indices = np.stack([random.integers(0, shape[d], where[:-1]) for d in range(depth)], -1)
        updates = values((*where[:-1], *shape[depth:]), dtype, 1)
        same(gpu, f"{prefix}ScatterNd{operation}", values(shape, dtype, 0), indices.astype(index), updates)


@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_quotients_of_integers_are_cut_towards_zero(gpu: SimpleNamespace, dtype: str) -> None:
    start, updates = np.array([7, -7, 7, -8, -99]), np.array([2, 2, -2, -3, 4, 4])
    same(gpu, "ScatterDiv", start.astype(dtype), np.array([0, 1, 2, 3, 4, 4]), updates.astype(dtype))


def test_integers_divided_by_nothing(gpu: SimpleNamespace) -> None:
    """The CPU refuses it."""
    pair = Pair([np.array([7, -7]), np.array([0, 1]), np.array([0, 2])], (0,), resource=False)

    gpu.run("ScatterDiv", pair.on_gpu)

    assert pair.gpu_values()[0].tolist() == [0, -3]


def test_what_is_out_of_range_is_left_out(gpu: SimpleNamespace) -> None:
    rows = Pair([np.zeros((2, 2), F), np.array([5, 1, -1]), np.ones((3, 2), F)], (0,), resource=False)
    elements = Pair([np.zeros((2, 2), F), np.array([[0, 2], [1, 1], [-1, 0]]), np.ones(3, F)], (0,), resource=False)

    gpu.run("ScatterAdd", rows.on_gpu)
    gpu.run("ScatterNdAdd", elements.on_gpu)

    assert rows.gpu_values()[0].tolist() == [[0, 0], [1, 1]]
    assert elements.gpu_values()[0].tolist() == [[0, 0], [0, 1]]


ERRORS = [
    ("ScatterAdd", [np.zeros((2, 2), F), np.array([0]), np.zeros((1, 3), F)], "Must have updates.shape = indices"),
    ("ScatterAdd", [np.zeros((), F), np.array([0]), np.zeros(1, F)], "params must be at least 1-D"),
    ("ScatterNdAdd", [np.zeros((2, 2), F), np.zeros((1, 1), int), np.zeros((1, 3), F)], "must match dimensions"),
]


@pytest.mark.parametrize(("op", "inputs", "message"), ERRORS, ids=range(len(ERRORS)))
def test_errors_are_the_cpus(gpu: SimpleNamespace, op: str, inputs: list[Any], message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        gpu.run(op, Pair(inputs, (0,), resource=False).on_gpu)
