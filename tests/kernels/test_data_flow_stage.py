"""The ops of staging areas and maps: whose area a node has, its bounds, and which keys and indices are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.kernel_runs import Steps
from tenfold_core import dtypes, errors
from tenfold_kernels.resources.waiting import Waiting

INT = dtypes.int32


class Stages(Steps):
    """Steps on areas of one name, if they do not say another."""

    def build(self, op: str, *inputs: Any, types: Any = (INT,), **attrs: Any) -> Any:
        given = {
            "shared_name": b"s",
            "container": b"",
            "capacity": 0,
            "memory_limit": 0,
            "dtypes": list(types),
            **attrs,
        }
        return super().build(op, *inputs, **given)


@pytest.fixture
def steps() -> Stages:
    return Stages()


def of(value: Any, dtype: Any = np.int32) -> Any:
    return np.array(value, dtype)


def test_an_area_is_of_its_name(steps: Stages) -> None:
    steps("Stage", of(1))
    steps("Stage", of(2), shared_name=b"other")
    steps("Stage", of(3), shared_name=b"", name="node")
    assert steps("Unstage").tolist() == 1
    assert steps("Unstage", shared_name=b"other").tolist() == 2
    assert steps("Unstage", shared_name=b"", name="node").tolist() == 3
    assert isinstance(steps("Unstage", shared_name=b"", name="another"), Waiting)
    steps("Stage", of(4), container=b"c")
    assert steps("StageSize").tolist() == 0
    assert steps("StageSize", container=b"c").tolist() == 1
    steps.resources.clear(["c"])
    assert steps("StageSize", container=b"c").tolist() == 0, "made anew"


def test_bounds_are_the_node_s_that_makes_it(steps: Stages) -> None:
    steps("Stage", of(1), capacity=1)
    assert isinstance(steps("Stage", of(2), capacity=1), Waiting)
    steps("Stage", of(1), shared_name=b"m", memory_limit=4)
    assert isinstance(steps("Stage", of(2), shared_name=b"m", memory_limit=4), Waiting)
    assert steps.resources.quota.bytes == 8


def test_a_tuple_has_as_many_tensors_as_the_node(steps: Stages) -> None:
    steps("Stage", of(1), of(2), types=[INT, INT])
    assert [part.tolist() for part in steps("StagePeek", of(0), types=[INT, INT])] == [1, 2]
    with pytest.raises(errors.InvalidArgumentError, match=r"Mismatch stage/unstage: 2 vs\. 1"):
        steps("Unstage")
    size = steps("StageSize")
    assert (size.tolist(), size.dtype) == (0, np.int32)


def test_a_peek_is_at_a_number(steps: Stages) -> None:
    for value in (1, 2):
        steps("Stage", of(value))
    assert steps("StagePeek", of(1)).tolist() == 2
    with pytest.raises(errors.InvalidArgumentError, match=r"index must be scalar, got shape \[1\]"):
        steps("StagePeek", of([1]))
    steps("StageClear")
    assert steps("StageSize").tolist() == 0


@pytest.mark.parametrize("kind", ["", "Ordered"])
def test_a_map_is_of_its_name_and_kind(steps: Stages, kind: str) -> None:
    other = "" if kind else "Ordered"
    steps(f"{kind}MapStage", of(5, np.int64), of([0]), of(1))
    steps(f"{kind}MapStage", of(3, np.int64), of([0]), of(2))
    assert steps(f"{kind}MapSize").tolist() == 2
    assert steps(f"{other}MapSize").tolist() == 0
    assert steps(f"{kind}MapSize", shared_name=b"other").tolist() == 0
    assert steps(f"{kind}MapPeek", of(3, np.int64), of([0])).tolist() == 2
    key, value = steps(f"{kind}MapUnstageNoKey", of([0]))
    assert (key.tolist(), value.tolist()) == ((3, 2) if kind else (5, 1))
    left = 5 if kind else 3
    assert steps(f"{kind}MapUnstage", of(left, np.int64), of([0])).tolist() == (1 if kind else 2)
    steps(f"{kind}MapStage", of(7, np.int64), of([0]), of(1), shared_name=b"", name="node")
    assert steps(f"{kind}MapSize", shared_name=b"", name="node").tolist() == 1
    steps(f"{kind}MapClear", shared_name=b"", name="node")
    size = steps(f"{kind}MapSize", shared_name=b"", name="node")
    assert (size.tolist(), size.dtype) == (0, np.int32)


def test_pieces_are_put_by_their_indices(steps: Stages) -> None:
    two = [INT, INT]
    steps("MapStage", of([5], np.int64), of([1]), of(11), types=two)
    found = steps("MapIncompleteSize", types=two)
    assert (found.tolist(), found.dtype) == (1, np.int32)
    steps("MapStage", of(5, np.int64), of([0]), of(10), types=two)
    assert [part.tolist() for part in steps("MapUnstage", of(5, np.int64), of([0, 1]), types=two)] == [10, 11]


def test_bounds_of_a_map(steps: Stages) -> None:
    for name, bounds in ((b"c", {"capacity": 1}), (b"m", {"memory_limit": 4})):
        steps("MapStage", of(1, np.int64), of([0]), of(1), shared_name=name, **bounds)
        assert isinstance(steps("MapStage", of(2, np.int64), of([0]), of(1), shared_name=name, **bounds), Waiting)
    assert steps.resources.quota.bytes == 8


@pytest.mark.parametrize(
    ("op", "inputs", "message"),
    [
        ("MapStage", [of([], np.int64), of([0]), of(1)], "key must not be empty"),
        ("MapStage", [of([1, 2], np.int64), of([0]), of(1)], r"an int64 scalar, got tensor with shape: \[2\]"),
        ("MapStage", [of(1, np.int64), of([0, 1]), of(1)], "There are 2 indices for 1 values"),
        ("MapStage", [of(1, np.int64), of([]), of(1)], "There are 0 indices for 1 values"),
        ("MapUnstage", [of([1], np.int64), of([0])], r"key must be an int64 scalar: \[1\]"),
        ("MapPeek", [of([1], np.int64), of([0])], r"key must be an int64 scalar: \[1\]"),
    ],
)
def test_keys_and_indices_that_are_none(steps: Stages, op: str, inputs: list[Any], message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        steps(op, *inputs)
