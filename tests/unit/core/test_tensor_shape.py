"""Static shapes: partial knowledge, merging, and the wire."""

from __future__ import annotations

import pytest

from tenfold_core.tensor_shape import Dimension, TensorShape, unknown_shape


def test_dimension_arithmetic_keeps_the_unknown() -> None:
    assert (Dimension(3) + 4).value == 7
    assert (2 * Dimension(3)).value == 6
    assert (Dimension(7) // 2).value == 3
    assert (Dimension(None) + 1).value is None
    assert (Dimension(None) == 3) is None
    assert int(Dimension(5)) == 5
    with pytest.raises(ValueError, match=">= 0"):
        Dimension(-2)
    with pytest.raises(TypeError, match="unknown Dimension"):
        int(Dimension(None))


def test_building_and_showing() -> None:
    assert str(TensorShape([None, 3])) == "(?, 3)"
    assert str(TensorShape(7)) == "(7,)"
    assert str(TensorShape(None)) == "<unknown>"
    assert TensorShape([-1, 2]).as_list() == [None, 2]
    with pytest.raises(TypeError, match="ambiguous"):
        TensorShape("23")


def test_merge_and_compatibility() -> None:
    assert TensorShape([None, 3]).merge_with([2, None]).as_list() == [2, 3]
    assert TensorShape(None).merge_with([2]).as_list() == [2]
    assert not TensorShape([2]).is_compatible_with([3])
    with pytest.raises(ValueError, match=r"Shapes \(2,\) and \(3,\) are not compatible"):
        TensorShape([2]).merge_with([3])
    with pytest.raises(ValueError, match="must have rank 3"):
        TensorShape([2]).with_rank(3)


def test_indexing_and_joining() -> None:
    shape = TensorShape([2, None, 4])
    assert shape[0].value == 2
    assert shape[1:].as_list() == [None, 4]
    assert shape[:1].concatenate([5]).as_list() == [2, 5]
    assert unknown_shape()[1:3].ndims == 2
    assert shape.num_elements() is None
    assert TensorShape([2, 3]).num_elements() == 6
    assert TensorShape([]).num_elements() == 1


@pytest.mark.parametrize("dims", [None, [], [3], [None, 2]])
def test_proto_round_trip(dims: list[int | None] | None) -> None:
    assert TensorShape(TensorShape(dims).as_proto()) == TensorShape(dims)
