"""What depends on shapes alone is computed once a shape, kept read-only, and bounded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_kernels.fusion import remembered
from tenfold_kernels.fusion.remembered import KEPT_BYTES, KEPT_SHAPES, Remembered


class Nodes:
    """Runs the nodes of a group: gives `results` of its inputs' shapes, and counts."""

    def __init__(self, results: Any) -> None:
        self.results = results
        self.shapes: list[Any] = []

    def __call__(self, *arrays: Any) -> Any:
        self.shapes.append(tuple(x.shape for x in arrays))
        return self.results(*(x.shape for x in arrays))


def test_one_input_is_looked_up_by_its_shape() -> None:
    nodes = Nodes(np.array)
    call = Remembered(inputs=1, outputs=1).build(nodes)
    first = call(np.zeros((2, 3)))
    assert first.tolist() == [2, 3]
    assert not first.flags.writeable
    assert call(np.ones((2, 3))) is first
    assert call(np.zeros((3, 2))).tolist() == [3, 2]
    assert call(np.zeros(0)).tolist() == [0]
    assert call(np.zeros(0)).tolist() == [0]
    assert nodes.shapes == [((2, 3),), ((3, 2),), ((0,),)]


def test_several_inputs_and_results() -> None:
    nodes = Nodes(lambda a, b: (np.array(a), np.array(b)))
    call = Remembered(inputs=2, outputs=2).build(nodes, cache=None)
    first = call(np.zeros(2), np.zeros((3, 4)))
    assert [value.tolist() for value in first] == [[2], [3, 4]]
    assert not any(value.flags.writeable for value in first)
    assert call(np.ones(2), np.ones((3, 4))) is first
    call(np.zeros((3, 4)), np.zeros(2))
    assert len(nodes.shapes) == 2
    assert Remembered(2, 2).source is None


def test_so_many_shapes_are_kept() -> None:
    nodes = Nodes(np.array)
    call = Remembered(inputs=1, outputs=1).build(nodes)
    for _ in range(2):
        for size in range(KEPT_SHAPES + 1):
            call(np.zeros(size))
    assert KEPT_SHAPES == 32
    assert len(nodes.shapes) == KEPT_SHAPES + 2, "the last one is made each time"
    assert call(np.zeros(KEPT_SHAPES)).flags.writeable


@pytest.mark.parametrize(
    ("values", "is_kept"),
    [
        ((np.zeros(KEPT_BYTES, np.int8),), True),
        ((np.zeros(KEPT_BYTES + 1, np.int8),), False),
        ((np.zeros(KEPT_BYTES // 2 + 1, np.int8), np.zeros(KEPT_BYTES // 2, np.int8)), False),
        ((np.zeros(KEPT_BYTES // 2, np.int8), np.zeros(KEPT_BYTES // 2, np.int8)), True),
        ((np.zeros(1, object),), False),
        ((np.zeros(1), None), False),
        ((np.float32(1),), False),
    ],
)
def test_values_that_are_kept(values: Any, is_kept: bool) -> None:
    assert KEPT_BYTES == 1 << 16
    assert remembered._can_be_kept(values) is is_kept
    nodes = Nodes(lambda shape: values if len(values) > 1 else values[0])
    call = Remembered(inputs=1, outputs=len(values)).build(nodes)
    call(np.zeros(1))
    call(np.zeros(1))
    assert len(nodes.shapes) == (1 if is_kept else 2)
