"""Blocks of space to the batch or to channels and back, and patches of images: element by element, as documented."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest

from support.op_values import ints, refused
from support.room import assert_wants
from tenfold_core import errors
from tenfold_kernels.cpu import array_blocks as blocks

F = np.float32


def filled(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """Different elements, none of them zero."""
    numbers = np.arange(1, 1 + int(np.prod(shape)))
    if dtype is object:
        made = np.empty(shape, object)
        made.reshape(-1)[:] = [b"%d" % number for number in numbers]
        return made
    return numbers.astype(dtype).reshape(shape)


def to_batch(padded: np.ndarray, block: tuple[int, ...]) -> np.ndarray:
    """The pixels at one place of each block are an image of its own; images of a place stand together."""
    places = itertools.product(*map(range, block))
    return np.concatenate(
        [padded[(slice(None), *(slice(at, None, b) for at, b in zip(place, block, strict=True)))] for place in places]
    )


CASES = [
    ((2, 4, 6, 3), (2, 3), [[0, 0], [0, 0]]),
    ((1, 3, 4, 2), (2, 2), [[1, 0], [0, 2]]),
    ((2, 3, 5), (1, 3), [[0, 1], [2, 2]]),
    ((3, 4), (2,), [[0, 2]]),
    ((1, 2, 2, 2, 2), (2, 1, 2), [[0, 0], [1, 1], [0, 2]]),
    ((2, 3, 4), (1,), [[1, 0]]),
    ((2, 3), (), []),
]


@pytest.mark.parametrize("dtype", [np.float32, np.int64, object])
@pytest.mark.parametrize(("shape", "block", "edges"), CASES)
def test_blocks_of_space_go_to_the_batch_and_back(ops: Any, dtype: Any, shape: Any, block: Any, edges: Any) -> None:
    x, nothing = filled(shape, dtype), b"" if dtype is object else 0
    widths = np.array(edges, np.int32).reshape(-1, 2)
    whole = [[0, 0], *edges, *[[0, 0]] * (x.ndim - 1 - len(block))]
    wanted = to_batch(np.pad(x, whole, constant_values=nothing), block)

    found = ops.run("SpaceToBatchND", [x, np.array(block, np.int32), widths])
    assert (found.shape, found.tolist()) == (wanted.shape, wanted.tolist())
    assert dtype is not object or {type(each) for each in found.reshape(-1)} == {bytes}
    back = ops.run("BatchToSpaceND", [found, np.array(block, np.int32), widths])
    assert (back.shape, back.tolist()) == (x.shape, x.tolist())


def test_old_names_have_a_square_block(ops: Any) -> None:
    x, edges = filled((1, 3, 4, 2)), ints([1, 0], [0, 2])
    wanted = to_batch(np.pad(x, [(0, 0), (1, 0), (0, 2), (0, 0)]), (2, 2))

    found = ops.run("SpaceToBatch", [x, edges], block_size=2)

    assert found.tolist() == wanted.tolist()
    assert ops.run("BatchToSpace", [found, edges], block_size=2).tolist() == x.tolist()


def test_crops_may_take_everything(ops: Any) -> None:
    assert ops.run("BatchToSpaceND", [filled((2, 1, 3)), ints(2), ints([1, 1])]).shape == (1, 0, 3)
    assert ops.run("BatchToSpaceND", [filled((2, 1, 3)), ints(2), ints([2, 0])]).shape == (1, 0, 3)
    text = "Crops must be non-negative and leave something: 1 and 2 of 2"
    refused(ops, "BatchToSpaceND", [filled((2, 1, 3)), ints(2), ints([1, 2])], text)


@pytest.mark.parametrize(
    ("before", "after"),
    [(-1, 0), (0, -1), (4, 0), (0, 4), (2, 2)],
)
def test_crops_of_a_shape(before: int, after: int) -> None:
    assert blocks.cropped((9, 3), [[1, 2]]) == (slice(None), slice(1, 1))
    assert blocks.cropped((9, 3), [[0, 0]]) == (slice(None), slice(0, 3))
    assert blocks.cropped((9, 3, 5), [[1, 0], [2, 1]]) == (slice(None), slice(1, 3), slice(2, 4))
    with pytest.raises(errors.InvalidArgumentError, match=f"leave something: {before} and {after} of 3"):
        blocks.cropped((9, 3), [[before, after]])


@pytest.mark.parametrize(
    ("shape", "block", "edges", "text"),
    [
        ((2, 4), [2, 2], [[0, 0]] * 2, "input rank should be >= 3 instead of 2"),
        ((2, 4, 4), [2], [[0, 0]] * 2, "{what} should have shape [1, 2] instead of [2,2]"),
        ((2, 4, 4), [2, 2], [[0, 0]], "{what} should have shape [2, 2] instead of [1,2]"),
        ((2, 4, 4), [2], [[0, 0, 0]], "{what} should have shape [1, 2] instead of [1,3]"),
        ((2, 4, 4), [2, 0], [[0, 0]] * 2, "block_shape must be positive, got [2, 0]"),
        ((2, 4, 4), [-1, 2], [[0, 0]] * 2, "block_shape must be positive, got [-1, 2]"),
        ((2, 4, 4), [2, 1], [[0, 0], [0, -1]], "paddings and crops must be non-negative"),
    ],
)
def test_blocks_and_edges_that_do_not_fit(ops: Any, shape: Any, block: Any, edges: Any, text: str) -> None:
    for op, what in (("SpaceToBatchND", "paddings"), ("BatchToSpaceND", "crops")):
        inputs = [filled(shape), np.array(block, np.int32), np.array(edges, np.int32)]
        refused(ops, op, inputs, text.format(what=what))


def test_sizes_are_multiples_of_the_block(ops: Any) -> None:
    text = "padded_shape[1]=5 is not divisible by block_shape[1]=2"
    refused(ops, "SpaceToBatchND", [filled((1, 3, 4)), ints(3, 2), ints([0, 0], [1, 0])], text)
    text = "Input batch dimension (3) is not divisible by product of block sizes (6)"
    refused(ops, "BatchToSpaceND", [filled((3, 1, 1)), ints(3, 2), ints([0, 0], [0, 0])], text)


def test_what_blocks_take_is_asked_for(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, pads = filled((1, 3, 4, 2)), ints([1, 0], [0, 2])
    assert_wants(monkeypatch, 2 * 4 * 6 * 2 * 4, lambda: ops.run("SpaceToBatchND", [x, ints(2, 2), pads]))
    y, crops = filled((4, 3, 4)), ints([0, 0])
    assert_wants(monkeypatch, 4 * 3 * 4 * 4, lambda: ops.run("BatchToSpaceND", [y, ints(2), crops]))
    assert_wants(monkeypatch, 4 * 3 * 4 * 4, lambda: blocks.blocks_to_batch(y, (3,)))
    assert_wants(monkeypatch, 2 * 3 * 4 * 5 * 4, lambda: blocks.blocks_to_batch(filled((2, 3, 4, 5)), (3, 2)))


@pytest.mark.parametrize("block", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float32, object])
def test_blocks_of_space_become_channels_and_back(ops: Any, block: int, dtype: Any) -> None:
    x = filled((2, 6, 12, 2), dtype)
    wanted = np.concatenate([x[:, i::block, j::block] for i in range(block) for j in range(block)], axis=3)

    found = ops.run(
        "SpaceToDepth",
        [
            x,
        ],
        block_size=block,
    )
    assert (found.shape, found.tolist()) == (wanted.shape, wanted.tolist())
    assert ops.run("DepthToSpace", [found], block_size=block, data_format=b"NHWC").tolist() == x.tolist()

    first = np.moveaxis(x, 3, 1)
    view, shape = blocks.blocks_to_depth(first, block, channels_first=True)
    assert view.reshape(shape).tolist() == np.moveaxis(wanted, 3, 1).tolist()
    view, shape = blocks.depth_to_blocks(np.moveaxis(wanted, 3, 1), block, channels_first=True)
    assert view.reshape(shape).tolist() == first.tolist()


@pytest.mark.parametrize("op", ["SpaceToDepth", "DepthToSpace"])
def test_channels_first_are_a_gpus(ops: Any, op: str) -> None:
    text = f"{op} on the CPU supports data_format NHWC only"
    refused(ops, op, [filled((1, 4, 2, 2))], text, block_size=2, data_format=b"NCHW")
    refused(ops, op, [filled((4, 2, 2))], "Input rank should be: 4 instead of: 3", block_size=2)
    refused(ops, op, [filled((1, 1, 4, 2, 2))], "Input rank should be: 4 instead of: 5", block_size=2)


@pytest.mark.parametrize("shape", [(1, 3, 4, 1), (1, 4, 3, 1)])
def test_space_and_depth_are_multiples_of_blocks(ops: Any, shape: Any) -> None:
    text = f"Image width {shape[2]} and height {shape[1]} should be divisible by block_size: 2"
    refused(ops, "SpaceToDepth", [filled(shape)], text, block_size=2)
    for depth in (2, 6):
        text = f"Input depth dimension {depth} should be divisible by: 4"
        refused(ops, "DepthToSpace", [filled((1, 1, 1, depth))], text, block_size=2)


def test_where_channels_stand_when_they_come_first() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="Image width 3 and height 4 should be"):
        blocks.blocks_to_depth(filled((1, 2, 4, 3)), 2, channels_first=True)
    with pytest.raises(errors.InvalidArgumentError, match="Input depth dimension 2 should be divisible by: 4"):
        blocks.depth_to_blocks(filled((1, 2, 4, 4)), 2, channels_first=True)


# -- patches -----------------------------------------------------------------------------------------------------------


def patches(x: np.ndarray, sizes: Any, strides: Any, rates: Any, same: bool) -> np.ndarray:
    """One by one."""
    n, *space, depth = x.shape
    outs, before = [], []
    for size, k, stride, rate in zip(space, sizes, strides, rates, strict=True):
        reach = (k - 1) * rate + 1
        out = -(-size // stride) if same else max(0, 1 + (size - reach) // stride)
        outs.append(out)
        before.append(max(0, (out - 1) * stride + reach - size) // 2 if same else 0)
    found = np.zeros((n, *outs, *sizes, depth), x.dtype)
    for i, j, k, m in np.ndindex(*outs, *sizes):
        row, column = (
            at * stride - edge + inner * rate
            for at, stride, edge, inner, rate in zip((i, j), strides, before, (k, m), rates, strict=True)
        )
        if 0 <= row < space[0] and 0 <= column < space[1]:
            found[:, i, j, k, m] = x[:, row, column]
    return found.reshape(n, *outs, -1) if found.size else found.reshape(n, *outs, sizes[0] * sizes[1] * depth)


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("sizes", [(1, 1), (2, 3), (3, 2)])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
@pytest.mark.parametrize("rates", [(1, 1), (2, 1), (1, 3)])
def test_patches_of_images(ops: Any, same: bool, sizes: Any, strides: Any, rates: Any) -> None:
    for shape in ((2, 5, 6, 2), (1, 2, 9, 1), (1, 1, 1, 3), (0, 3, 3, 1), (1, 0, 3, 2), (1, 3, 0, 2)):
        x = filled(shape)
        wanted = patches(x, sizes, strides, rates, same)

        found = ops.run(
            "ExtractImagePatches", [x], ksizes=[1, *sizes, 1], strides=[1, *strides, 1], rates=[1, *rates, 1],
            padding=b"SAME" if same else b"VALID",
        )  # fmt: skip

        assert (found.shape, found.tolist()) == (wanted.shape, wanted.tolist())


def extracted(ops: Any, x: np.ndarray, **other: Any) -> np.ndarray:
    attrs = {"ksizes": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": b"VALID"}
    return ops.run("ExtractImagePatches", [x], **(attrs | other))  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", ["ksizes", "strides", "rates"])
def test_patches_go_over_space_only(ops: Any, name: str) -> None:
    for place in (0, 3):
        values = [1, 2, 2, 1]
        values[place] = 2
        text = f"Only support {name} across space; {name} of batch and depth must be 1, got {values}"
        with pytest.raises(errors.UnimplementedError, match=re.escape(text)):
            extracted(ops, filled((1, 4, 4, 1)), **{name: values})
    for place in (1, 2):
        for bad in (0, -1):
            values = [1, 2, 2, 1]
            values[place] = bad
            with pytest.raises(errors.InvalidArgumentError, match=re.escape(f"{name} must be positive, got {values}")):
                extracted(ops, filled((1, 4, 4, 1)), **{name: values})


@pytest.mark.parametrize("shape", [(4, 4, 1), (1, 1, 4, 4, 1)])
def test_patches_are_of_images(ops: Any, shape: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"^input must be 4-dimensional\[[0-9,]*4,4,1\]$"):
        extracted(ops, filled(shape))


def test_what_patches_take_is_asked_for(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = filled((1, 5, 7, 3))
    assert_wants(monkeypatch, 2 * 4 * 5 * 6 * 3 * 4, lambda: extracted(ops, x, ksizes=[1, 2, 3, 1]))
    places = lambda: extracted(ops, x[:0], ksizes=[1, 9, 2, 1], padding=b"SAME")  # noqa: E731
    assert_wants(monkeypatch, 5 * 9 * 8, places)
    none = lambda: extracted(ops, x[:0], ksizes=[1, 2, 90, 1])  # noqa: E731
    assert_wants(monkeypatch, 90 * 8, none)
