"""Fractional pools against their windows, gradients of dilation and of fractional pools against finite differences."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.room import assert_wants
from tenfold.gradients.checker import directional_error
from tenfold.graph.op_builder import apply_op
from tenfold_core import errors
from tenfold_kernels.cpu import nn_fractional

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


def at(*places: int) -> np.ndarray:
    return np.array(places, np.int64)


def test_gradients_by_given_windows(ops: Any) -> None:
    """Worked out: rows 0–2 and 3, columns 0 and 1–2 of two; with overlap a window has the first of the next, too."""
    x = np.array([[9, 1, 9], [2, 9, 3], [9, 4, 5], [6, 7, 7]], np.float32).reshape(1, 4, 3, 1)
    y, g = np.zeros((1, 2, 2, 1), np.float32), np.array([[1, 6], [12, 24]], np.float32).reshape(1, 2, 2, 1)
    rows, columns = at(0, 3, 4), at(0, 1, 3)
    shape = at(*x.shape)

    for overlapping, largest, mean in (
        # the first of equal elements
        (False, [[1, 0, 6], [0, 0, 0], [0, 0, 0], [12, 24, 0]],
         [[1 / 3, 1, 1], [1 / 3, 1, 1], [1 / 3, 1, 1], [12, 12, 12]]),
        (True, [[1, 0, 6], [0, 0, 0], [0, 0, 0], [0, 36, 0]],
         [[1 / 8, 7 / 8, 3 / 4], [1 / 8, 7 / 8, 3 / 4], [1 / 8, 7 / 8, 3 / 4], [49 / 8, 151 / 8, 51 / 4]]),
    ):  # fmt: skip
        given = {"overlapping": overlapping}
        found = ops.run("FractionalMaxPoolGrad", [x, y, g, rows, columns], **given)
        assert found[0, ..., 0].tolist() == largest, overlapping
        spread = ops.run("FractionalAvgPoolGrad", [shape, g, rows, columns], **given)
        np.testing.assert_allclose(spread[0, ..., 0], mean, rtol=1e-6)
        assert (found.dtype, spread.dtype) == (np.float32, np.float32)
    # windows that leave the image's edges alone
    found = ops.run("FractionalMaxPoolGrad", [x, y[:, :1, :1], g[:, :1, :1], at(1, 3), at(1, 2)])
    assert found[0, ..., 0].tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 0]]
    spread = ops.run("FractionalAvgPoolGrad", [shape, g[:, :1, :1], at(1, 3), at(1, 2)])
    assert spread[0, ..., 0].tolist() == [[0, 0, 0], [0, 0.5, 0], [0, 0.5, 0], [0, 0, 0]]


def test_whole_numbers_are_divided_towards_zero(ops: Any) -> None:
    x = np.array([-7, 2, 7, 0], np.int32).reshape(1, 2, 2, 1)
    ratios = {"pooling_ratio": [1.0, 1.0, 2.0, 1.0], "overlapping": False}

    found, rows, columns = ops.run("FractionalAvgPool", [x], **attrs(**ratios))

    assert (found[0, :, 0, 0].tolist(), rows.tolist(), columns.tolist()) == ([-2, 3], [0, 1, 2], [0, 2])
    # sums wrap around as the type does
    large = np.full((1, 1, 2, 1), 2_000_000_000, np.int32)
    assert ops.run("FractionalAvgPool", [large], **attrs(**ratios))[0].item() == -147483648


def test_seeds(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a deterministic pool without any are drawn once for the node, else a step's are its own."""
    x = np.arange(64.0, dtype=np.float32).reshape(1, 64, 1, 1)
    given: dict[str, Any] = {"pooling_ratio": [1.0, 1.5, 1.0, 1.0], "deterministic": True}
    for op in ("FractionalMaxPool", "FractionalAvgPool"):
        with monkeypatch.context() as patch:
            asked: list[int] = []
            draw = lambda bits, asked=asked: (asked.append(bits), len(asked))[1]  # noqa: E731
            patch.setattr(nn_fractional.secrets, "randbits", draw)
            drawn, _ = ops.build(op, [x], given)
            found = [drawn(x)[1].tolist() for _ in range(2)]
        assert asked == [63, 63]
        by_seeds = ops.run(op, [x], **given, seed=2, seed2=2)[1].tolist()
        assert found == [by_seeds] * 2
        assert by_seeds != ops.run(op, [x], **given, seed=2, seed2=3)[1].tolist()
        assert by_seeds != ops.run(op, [x], **given, seed=3, seed2=2)[1].tolist()
        assert ops.run(op, [x], **given, seed=2)[1].tolist() != ops.run(op, [x], **given, seed2=2)[1].tolist()
    seen: list[tuple[int, int]] = []
    generator = nn_fractional.Generator
    monkeypatch.setattr(nn_fractional, "Generator", lambda *seeds: (seen.append(seeds), generator(1, len(seen)))[1])
    anew, _ = ops.build("FractionalMaxPool", [x], given | {"deterministic": False})
    assert anew(x)[1].tolist() != anew(x)[1].tolist()
    assert seen == [(0, 0)] * 2


def test_sizes_that_are_no_multiples_of_the_ratio(ops: Any) -> None:
    """… give fewer outputs; those of ratio 1 are the image itself."""
    x = np.arange(30, dtype=np.float32).reshape(1, 5, 6, 1)
    for pseudo in (False, True):
        for ratios, outs in (((1.0, 1.0), (5, 6)), ((1.7, 1.0), (2, 6)), ((1.0, 2.9), (5, 2)), ((5.0, 6.0), (1, 1))):
            given = attrs(pooling_ratio=[1.0, *ratios, 1.0], pseudo_random=pseudo, overlapping=False)
            found, rows, columns = ops.run("FractionalMaxPool", [x], **given)
            assert found.shape == (1, *outs, 1)
            assert (rows[0], rows[-1], columns[0], columns[-1]) == (0, 5, 0, 6)
            for size, places in ((5, rows), (6, columns)):
                least = size // (len(places) - 1)
                assert set(np.diff(places)) <= {least, least + 1}
            if ratios == (1.0, 1.0):
                np.testing.assert_array_equal(found, x)


IMAGE, BACK = np.ones((2, 4, 4, 3), np.float32), np.ones((2, 2, 2, 3), np.float32)
CUTS = at(0, 2, 4)
OF_MAX, OF_MEAN = "FractionalMaxPoolGrad", "FractionalAvgPoolGrad"
ROWS, COLUMNS = "row_pooling_sequence must ", "col_pooling_sequence must "

REFUSED: list[tuple[str, list[Any], dict[str, Any], str]] = [
    *(
        ("FractionalMaxPool", [IMAGE], {"deterministic": False, **seeds},
         "Both seed and seed2 should be 0 if deterministic is false.")
        for seeds in ({"seed": 1, "seed2": 0}, {"seed": 0, "seed2": 1})
    ),
    *(
        ("FractionalAvgPool", [IMAGE], {"pooling_ratio": ratios},
         f"pooling_ratio field must specify 4 dimensions, got {ratios}")
        for ratios in ([1.0, 2.0, 1.0], [1.0, 2.0, 2.0, 2.0, 1.0])
    ),
    *(
        ("FractionalAvgPool", [IMAGE], {"pooling_ratio": ratios},
         f"Fractional pooling is not supported on the batch or channel dimension, got {ratios}")
        for ratios in ([2.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 2.0])
    ),
    *(
        ("FractionalAvgPool", [IMAGE], {"pooling_ratio": ratios},
         f"pooling_ratio cannot be smaller than 1, got {ratios}")
        for ratios in ([1.0, 0.9, 1.0, 1.0], [1.0, 1.0, 0.9, 1.0], [1.0, float("nan"), 1.0, 1.0])
    ),
    ("FractionalMaxPool", [IMAGE[0]], {}, "tensor_in must be 4-dimensional, got shape [4,4,3]"),
    *(
        ("FractionalMaxPool", [np.ones(shape, np.float32)], {"pooling_ratio": [1.0, 2.0, 4.0, 1.0]},
         f"pooling_ratio [1.0, 2.0, 4.0, 1.0] leaves nothing of an image of shape [{','.join(map(str, shape))}]")
        for shape in ((0, 4, 4, 3), (2, 1, 4, 3), (2, 4, 3, 3), (2, 4, 4, 0))
    ),
    (OF_MAX, [IMAGE, BACK[:, :1], BACK, CUTS, CUTS], {}, "orig_output [2,1,2,3] and out_backprop [2,2,2,3] differ"),
    (
        OF_MAX, [IMAGE[0], BACK, BACK, CUTS, CUTS], {},
        "orig_input and out_backprop must be 4-dimensional, got [4,4,3] and [2,2,2,3]",
    ),
    (
        OF_MAX, [IMAGE, BACK[0], BACK[0], CUTS, CUTS], {},
        "orig_input and out_backprop must be 4-dimensional, got [2,4,4,3] and [2,2,3]",
    ),
    *(
        (OF_MEAN, [at(*shape), BACK, CUTS, CUTS], {},
         f"out_backprop [2,2,2,3] has another batch or depth than [{','.join(map(str, shape))}]")
        for shape in ((3, 4, 4, 3), (2, 4, 4, 2))
    ),
    *(
        (OF_MEAN, [shape, BACK, CUTS, CUTS], {}, f"original input tensor shape must have 4 elements, got shape {got}")
        for shape, got in ((at(2, 4, 4), "[3]"), (at(2, 4, 4, 3, 1), "[5]"), (at(2, 4, 4, 3).reshape(2, 2), "[2,2]"))
    ),
    *(
        (OF_MEAN, [at(2, 4, 4, 3), BACK, *pair], {}, what + text)
        for wrong, text in (
            (CUTS[:2], "be a vector of 3 places, got shape [2]"),
            (at(0, 2, 3, 4), "be a vector of 3 places, got shape [4]"),
            (CUTS.reshape(3, 1), "be a vector of 3 places, got shape [3,1]"),
            (at(-1, 2, 4), "rise from 0 to 4 at most, got [-1, 2, 4]"),
            (at(0, 2, 5), "rise from 0 to 4 at most, got [0, 2, 5]"),
            (at(0, 2, 2), "rise from 0 to 4 at most, got [0, 2, 2]"),
            (at(2, 2, 4), "rise from 0 to 4 at most, got [2, 2, 4]"),
            (at(0, 4, 2), "rise from 0 to 4 at most, got [0, 4, 2]"),
        )
        for what, pair in ((ROWS, (wrong, CUTS)), (COLUMNS, (CUTS, wrong)))
    ),
    (OF_MEAN, [at(2, 3, 5, 3), BACK, CUTS, CUTS], {}, ROWS + "rise from 0 to 3 at most, got [0, 2, 4]"),
    (OF_MEAN, [at(2, 5, 3, 3), BACK, CUTS, CUTS], {}, COLUMNS + "rise from 0 to 3 at most, got [0, 2, 4]"),
    (
        OF_MEAN, [at(2, 4, 4, 3), np.ones((2, 1, 2, 3), np.float32), CUTS, CUTS], {},
        ROWS + "be a vector of 2 places, got shape [3]",
    ),
    (
        OF_MEAN, [at(2, 4, 4, 3), np.ones((2, 2, 1, 3), np.float32), CUTS, CUTS], {},
        COLUMNS + "be a vector of 2 places, got shape [3]",
    ),
]  # fmt: skip


def test_what_is_refused_in_which_words(ops: Any) -> None:
    for op, inputs, given, text in REFUSED:
        with pytest.raises(errors.InvalidArgumentError) as refused:
            ops.run(op, inputs, **(attrs(**given) if "Grad" not in op else given))
        assert refused.value.message == text, (op, given)


def test_room_is_asked_for_before_it_is_taken(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """For sums in double and what is made of them."""
    inputs = [at(2, 4, 4, 3), BACK, CUTS, CUTS]
    compute, _ = ops.build(OF_MEAN, inputs, {})
    assert_wants(monkeypatch, 96 * 8 * 2, partial(compute, *inputs))


def test_images_in_any_order_in_memory_have_a_gradient_in_rows(ops: Any) -> None:
    x = np.asfortranarray(np.arange(96, dtype=np.float32).reshape(2, 4, 4, 3))
    found = ops.run(OF_MAX, [x, BACK, BACK, CUTS, CUTS])
    assert found.flags.c_contiguous
    assert np.argwhere(found[0, ..., 0]).tolist() == [[1, 1], [1, 3], [3, 1], [3, 3]]


def test_windows_by_one_random_number() -> None:
    """Worked out by hand: with alpha = size / out, window i ends where alpha · (i + shift) does, rounded up. The shift
    is the number times the largest that leaves all windows one of two sizes."""
    zero, half, almost_one = (0, 0), (1 << 19, 0), ((1 << 20) - 1, (1 << 32) - 1)
    for size, out, words, expected in (
        # at most 3 / 1.75 - 1
        (7, 4, zero, [1, 2, 2, 2]),
        (7, 4, half, [2, 2, 1, 2]),
        (7, 4, almost_one, [2, 2, 2, 1]),
        # at most 5 / 1.25 - 3
        (5, 4, zero, [1, 1, 1, 2]),
        (5, 4, half, [1, 2, 1, 1]),
        (5, 4, almost_one, [2, 1, 1, 1]),
        (5, 2, half, [3, 2]),
        (6, 1, half, [6]),
    ):
        asked: list[int] = []
        blocks = SimpleNamespace(blocks=lambda _, words=words: np.array([[*words, 7, 7]], np.uint32))
        generator: Any = SimpleNamespace(
            reserve=lambda count, asked=asked, blocks=blocks: (asked.append(count), blocks)[1]
        )
        assert nn_fractional._pseudo_random(size, out, generator) == expected, (size, out, words)
        assert asked == [1]


def test_windows_in_an_order_that_is_drawn() -> None:
    """Two of three places and three of two, each exchanged with one that is drawn of those behind it; four numbers are
    one block."""
    for out, draws, expected, blocks in (
        (5, [9, 4, 2, 3], [2, 3, 3, 2, 2], 2),
        (4, [1, 1, 1], [3, 3, 3, 3], 1),
        (1, [], [12], 1),
    ):
        asked: list[int] = []
        numbers = iter(draws)
        generator: Any = SimpleNamespace(
            reserve=lambda count, asked=asked, numbers=numbers: (
                asked.append(count),
                SimpleNamespace(single=lambda: numbers),
            )[1]
        )
        assert nn_fractional._random(12, out, generator) == expected
        assert asked == [blocks]
