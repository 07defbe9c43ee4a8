"""Fake quantisation: worked examples with steps of whole numbers, ranges that are moved, gradients, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.op_values import refused

F = np.float32


#: bits, narrow, the range, what comes in, what comes out. The step is 1 in all of them.
FAKE: list[tuple[int, bool, tuple[float, float], list[float], list[float]]] = [
    (8, False, (0, 255), [-1, 0, 0.25, 0.5, 254.25, 254.5, 300], [0, 0, 0, 1, 254, 255, 255]),
    (8, True, (0, 254), [-1, 0.25, 0.5, 253.5, 300], [0, 0, 1, 254, 254]),
    (2, False, (0, 3), [0.25, 0.5, 1.5, 2.75, 3, 9], [0, 1, 2, 3, 3, 3]),
    (2, True, (-1, 1), [-5, -0.75, -0.5, 0.25, 0.5, 2], [-1, -1, 0, 0, 1, 1]),
    (4, False, (-8, 7), [-9, -8, -7.5, 6.5, 8], [-8, -8, -7, 7, 7]),
    (16, False, (0, 65535), [-1, 65534.5, 65534, 70000], [0, 65535, 65534, 65535]),
    # zero becomes one of the steps
    (2, False, (-0.25, 2.75), [-1, 0.75, 2.75, 5], [0, 1, 3, 3]),
    (2, False, (-0.5, 2.5), [-5, -0.75, -0.5, 2.25, 5], [-1, -1, 0, 2, 2]),
    (2, True, (-1.25, 0.75), [-5, 5], [-1, 1]),
    # a range on one side of zero reaches to it
    (2, False, (3, 6), [-1, 2.5, 9], [0, 3, 3]),
    (2, False, (-6, -3), [-9, -2.5, 9], [-3, -2, 0]),
    (2, True, (3, 5), [-1, 9], [0, 2]),
    (2, True, (-5, -3), [-9, 9], [-2, 0]),
]


@pytest.mark.parametrize(("bits", "narrow", "ends", "x", "expected"), FAKE)
def test_values_become_steps_of_a_range(ops: Any, bits: int, narrow: bool, ends: Any, x: Any, expected: Any) -> None:
    attrs, given = {"num_bits": bits, "narrow_range": narrow}, F(x)
    low, high = (F(end) for end in ends)

    found = [
        ops.run("FakeQuantWithMinMaxArgs", [given], min=ends[0], max=ends[1], **attrs),
        ops.run("FakeQuantWithMinMaxVars", [given, low, high], **attrs),
        ops.run("FakeQuantWithMinMaxVars", [given, low.reshape(1), high.reshape(1)], **attrs),
        *(
            ops.run("FakeQuantWithMinMaxVarsPerChannel", [given[:, None], low.reshape(1), high.reshape(1)], **attrs)[
                :, 0
            ],
        ),
    ]

    for each in found:
        assert each.tolist() == expected

    bottom, top = min(expected), max(expected)
    g = np.arange(2, 2 + len(x), dtype=F)
    inside = [bottom <= v <= top for v in x]
    within = [v if yes else 0 for v, yes in zip(g.tolist(), inside, strict=True)]
    below = sum(v for v, each in zip(g.tolist(), x, strict=True) if each < bottom)
    above = sum(v for v, each in zip(g.tolist(), x, strict=True) if each > top)
    fixed = ops.run("FakeQuantWithMinMaxArgsGradient", [g, given], min=ends[0], max=ends[1], **attrs)
    assert fixed.tolist() == within
    for kind in (low, low.reshape(1)):
        rest = [kind, high.reshape(kind.shape)]
        parts = ops.run("FakeQuantWithMinMaxVarsGradient", [g, given, *rest], **attrs)
        assert [part.tolist() for part in parts] == [within, *np.reshape([below, above], (2, *kind.shape)).tolist()]
    ends_1 = [low.reshape(1), high.reshape(1)]
    parts = ops.run("FakeQuantWithMinMaxVarsPerChannelGradient", [g[:, None], given[:, None], *ends_1], **attrs)
    assert [part.tolist() for part in parts] == [[[v] for v in within], [below], [above]]


def test_each_channel_has_a_range_of_its_own(ops: Any) -> None:
    x = F([[[-9, 9, 1.75], [1.75, 1.75, -9]]])
    low, high = F([0, -1, 0]), F([3, 2, 0])
    assert ops.run("FakeQuantWithMinMaxVarsPerChannel", [x, low, high], num_bits=2).tolist() == [[[0, 2, 0], [2, 2, 0]]]
    g = F([[[1, 2, 3], [4, 5, 6]]])
    parts = ops.run("FakeQuantWithMinMaxVarsPerChannelGradient", [g, x, low, high], num_bits=2)
    assert [part.tolist() for part in parts] == [[[[0, 0, 3], [4, 5, 6]]], [1, 0, 0], [0, 2, 0]]


@pytest.mark.parametrize(("low", "high"), [(0, 0), (3, 0)])
def test_a_range_that_is_empty_or_turned_round_has_one_value(ops: Any, low: float, high: float) -> None:
    x = F([-5, 0, 1, 7])
    found = ops.run("FakeQuantWithMinMaxVars", [x, F(low), F(high)], num_bits=2)
    assert found.tolist() == [low] * 4


def test_an_empty_range_passes_gradients_through(ops: Any) -> None:
    g, x = F([1, 2, 3]), F([-5, 0, 7])
    parts = ops.run("FakeQuantWithMinMaxVarsGradient", [g, x, F(0), F(0)])
    assert [part.tolist() for part in parts] == [[1, 2, 3], 0, 0]
    for low, high in ((0, 255), (-255, 0)):
        parts = ops.run("FakeQuantWithMinMaxVarsGradient", [g, x * 100, F(low), F(high)])
        assert [part.tolist() for part in parts] == [[0, 2, 0], 1, 3]


ARGS = ("FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxArgsGradient")
VARS = ("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsGradient")
CHANNELS = ("FakeQuantWithMinMaxVarsPerChannel", "FakeQuantWithMinMaxVarsPerChannelGradient")


def inputs_of(op: str, x: np.ndarray, *ends: Any) -> list[Any]:
    return [*([x, x] if "Gradient" in op else [x]), *(() if op in ARGS else ends)]


@pytest.mark.parametrize("op", ARGS + VARS + CHANNELS)
@pytest.mark.parametrize("bits", [1, 17, 0, -8])
def test_there_are_two_to_sixteen_bits(ops: Any, op: str, bits: int) -> None:
    inputs = inputs_of(op, np.ones(1, F), np.zeros(1, F), np.ones(1, F))
    refused(ops, op, inputs, f"num_bits must be between 2 and 16, inclusive, got {bits}", num_bits=bits)
    for good in (2, 16):
        ops.run(op, inputs, num_bits=good)


@pytest.mark.parametrize("op", ARGS)
@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (2.0, 1.0)])
def test_a_fixed_range_is_not_empty(ops: Any, op: str, low: float, high: float) -> None:
    refused(ops, op, inputs_of(op, np.ones(1, F)), f"min has to be smaller than max, was: {low}", min=low, max=high)


@pytest.mark.parametrize("op", VARS)
def test_a_range_is_two_numbers(ops: Any, op: str) -> None:
    x, two = np.ones(2, F), np.ones(2, F)
    refused(ops, op, inputs_of(op, x, F(0), two), "`min` and `max` must be rank 0, got [] and [2]")
    refused(ops, op, inputs_of(op, x, two, F(1)), "`min` and `max` must be rank 0, got [2] and []")
    refused(ops, op, inputs_of(op, x, two[:0], F(1)), "`min` and `max` must be rank 0, got [0] and []")


@pytest.mark.parametrize("op", CHANNELS)
def test_there_is_a_range_for_each_channel(ops: Any, op: str) -> None:
    x, two, three = np.ones((3, 2), F), np.ones(2, F), np.ones(3, F)
    refused(ops, op, inputs_of(op, x, two, three), "min and max must have shape [2], got [2] and [3]")
    refused(ops, op, inputs_of(op, x, three, two), "min and max must have shape [2], got [3] and [2]")
    refused(ops, op, inputs_of(op, x, F(0), F(1)), "min and max must have shape [2], got [] and []")


@pytest.mark.parametrize("op", [ARGS[1], VARS[1], CHANNELS[1]])
def test_gradients_have_the_shape_of_what_came_in(ops: Any, op: str) -> None:
    ends = () if op in ARGS else (np.zeros(2, F), np.ones(2, F)) if op in CHANNELS else (F(0), F(1))
    refused(ops, op, [np.ones((1, 2), F), np.ones((3, 2), F), *ends], "gradient and input must be the same size")


# -- QuantizeAndDequantize ---------------------------------------------------------------------------------------------

#: signed, narrow, bits, the range that is given or None, what comes in, what comes out.
STEPS: list[tuple[bool, bool, int, tuple[float, float] | None, list[float], list[float]]] = [
    (True, False, 3, (-4, 3), [-9, -4, -1.25, 0.5, 1.5, 9], [-4, -4, -1, 0, 2, 3]),
    (True, False, 3, (-4, 1), [-9, 1, 9, 0.75], [-4, 1, 3, 1]),  # the lower end has the coarser step
    (True, False, 3, (-1, 3), [-9, -0.5, 9], [-4, -0.0, 3]),  # the upper end has it
    (True, True, 3, (-3, 3), [-9, -1.75, 2.25, 9], [-3, -2, 2, 3]),
    (True, False, 2, (-0.25, 0.0625), [-1, -0.125, 0.0625, 1], [-0.25, -0.125, 0, 0.125]),
    (True, False, 2, (-0.25, 0.25), [-1, -0.25, 0.125, 1], [-0.5, -0.25, 0, 0.25]),
    (True, True, 3, (-6, 3), [-9, -3.5, 2.5, 9], [-6, -4, 2, 6]),
    (False, False, 2, (0, 3), [-1, 0.75, 1.5, 2.5, 9], [0, 1, 2, 2, 3]),
    (False, False, 2, (0, 6), [-1, 0.75, 3.25, 9], [0, 0, 4, 6]),
    (True, False, 3, None, [-4, 1.25, 0.5, -2.75], [-4, 1, 0, -3]),
    (True, False, 3, None, [3, 1.5, -2.5], [3, 2, -2]),
    (True, True, 3, None, [-3, 1.25, 2.5], [-3, 1, 2]),
    (False, False, 2, None, [3, 1.25, 2.5], [3, 1, 2]),
    (True, False, 2, (-2, 1), [-2, 0.75, -1.25], [-2, 1, -1]),
]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("signed", "narrow", "bits", "ends", "x", "expected"), STEPS)
def test_values_become_steps_around_zero(
    ops: Any, dtype: Any, signed: bool, narrow: bool, bits: int, ends: Any, x: Any, expected: Any
) -> None:
    attrs = {"signed_input": signed, "narrow_range": narrow, "range_given": ends is not None}
    low, high = (np.array(end, dtype) for end in ends or (0, 0))
    given = np.array(x, dtype)
    for op in ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"):
        found = ops.run(op, [given, low, high], num_bits=bits, **attrs)
        assert (found.tolist(), found.dtype) == (expected, dtype)
        square = ops.run(op, [given[:, None], low, high], num_bits=bits, **attrs)
        assert square.tolist() == [[v] for v in expected]
        by_row = ops.run(
            op,
            [np.stack([given] * 2), *([low, high] if ends is None else [np.stack([low] * 2), np.stack([high] * 2)])],
            num_bits=bits,
            axis=0,
            **attrs,
        )
        assert by_row.tolist() == [expected] * 2
    assert ops.run("QuantizeAndDequantizeV3", [given, low, high, bits], **attrs).tolist() == expected
    if not narrow:
        del attrs["narrow_range"]
        old = ops.run(
            "QuantizeAndDequantize", [given], num_bits=bits, input_min=float(low), input_max=float(high), **attrs
        )
        assert old.tolist() == expected


def test_half_numbers_are_rounded_in_float_and_double_ones_in_double(ops: Any) -> None:
    x, attrs = np.random.default_rng(7).standard_normal(300), {"num_bits": 6}
    for op in ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"):
        half = x.astype(np.float16)
        single = ops.run(op, [half.astype(F), F(0), F(0)], **attrs)
        found = ops.run(op, [half, np.zeros((), np.float16), np.zeros((), np.float16)], **attrs)
        assert found.tolist() == single.astype(np.float16).tolist()

        double = ops.run(op, [x, np.zeros(()), np.zeros(())], **attrs)
        step = max(x.max() / 31, x.min() / -32)
        np.testing.assert_allclose(double, np.rint(x / step) * step, rtol=1e-14)


def test_halves_go_up_where_that_is_asked_for(ops: Any) -> None:
    x, ends = F([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]), [F(-4), F(3)]
    for op in ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"):
        attrs = {"num_bits": 3, "range_given": True}
        assert ops.run(op, [x, *ends], round_mode=b"HALF_UP", **attrs).tolist() == [-2, -1, 0, 1, 2, 3]
        assert ops.run(op, [x, *ends], round_mode=b"HALF_TO_EVEN", **attrs).tolist() == [-2, -2, 0, 0, 2, 2]


def test_slices_of_an_axis_have_ranges_of_their_own(ops: Any) -> None:
    x = F([[-4, 1.25], [3, -2.5], [0.5, 4]])
    for axis, low, high, expected in (
        (1, [-4, -2], [3, 1.5], [[-4, 1], [3, -2], [0, 1.5]]),
        (0, [-4, -4, -2], [3, 3, 1.5], [[-4, 1], [3, -2], [0.5, 1.5]]),
    ):
        given = ops.run("QuantizeAndDequantizeV2", [x, F(low), F(high)], num_bits=3, range_given=True, axis=axis)
        assert given.tolist() == expected
    # what is there: columns from -4 to 3 and from -2.5 to 4
    found = ops.run("QuantizeAndDequantizeV2", [x, F(0), F(0)], num_bits=3, axis=1)
    step = 4 / 3
    np.testing.assert_allclose(found, [[-4, step], [3, -2 * step], [0, 4]], rtol=1e-6)


def test_what_is_outside_of_its_own_range_stays(ops: Any) -> None:
    """Without a range of values that are given, a step more than the coarser end has is no fault."""
    found = ops.run("QuantizeAndDequantizeV2", [F([-1, np.nan, 3]), F(0), F(0)], num_bits=3)
    assert found.tolist()[::2] == [-1, 3]
    assert np.isnan(found[1])
    assert ops.run("QuantizeAndDequantizeV2", [F([0, 0]), F(0), F(0)]).tolist() == [0, 0]
    assert ops.run("QuantizeAndDequantizeV2", [np.zeros((0, 2), F), F(0), F(0)]).shape == (0, 2)
    assert ops.run("QuantizeAndDequantizeV2", [np.zeros((0, 2), F), F(0), F(1)], range_given=True).shape == (0, 2)


Q = "QuantizeAndDequantizeV2"


def test_numbers_of_bits_that_there_are_not(ops: Any) -> None:
    for bits in (0, -1, 63, 64):
        text = f"num_bits is out of range: {bits} with signed_input_ True"
        refused(ops, Q, [F([1]), F(0), F(0)], text, num_bits=bits)
        refused(ops, "QuantizeAndDequantizeV3", [F([1]), F(0), F(1), bits], text)
    ops.run(Q, [F([1]), F(0), F(0)], num_bits=62)
    ops.run(Q, [F([1]), F(0), F(0)], num_bits=1, signed_input=False)
    refused(ops, "QuantizeAndDequantizeV3", [F([1]), F(0), F(1), [8]], "num_bits must be a scalar, got shape [1]")


@pytest.mark.parametrize("axis", [2, -2, 3])
def test_axes_that_there_are_not(ops: Any, axis: int) -> None:
    text = f"Axis requested is larger than input dimensions. Axis: {axis} Input Dimensions: 2"
    refused(ops, Q, [np.ones((2, 3), F), F(0), F(1)], text, axis=axis)


def test_ranges_that_do_not_fit(ops: Any) -> None:
    x, text = np.ones((2, 3), F), "input_min and input_max must have shape "
    refused(ops, Q, [x, F([0]), F(1)], f"{text}[], got [1] and []", range_given=True)
    refused(ops, Q, [x, F(0), F([1])], f"{text}[], got [] and [1]", range_given=True)
    refused(ops, Q, [x, F([0, 0]), F([1, 1, 1])], f"{text}[2], got [2] and [3]", range_given=True, axis=0)
    refused(ops, Q, [x, F([0, 0]), F([1, 1])], f"{text}[3], got [2] and [2]", range_given=True, axis=1)
    refused(ops, Q, [x, F(2), F(1)], "Invalid range: input_min 2.0 > input_max 1.0", range_given=True)
    refused(ops, Q, [x, F([0, 2]), F([1, 1])], "Invalid range: input_min ", range_given=True, axis=0)
    refused(ops, Q, [x, F(np.nan), F(1)], "Invalid range: input_min nan", range_given=True)
    ops.run(Q, [x, F(1), F(1)], range_given=True)


def test_gradients_pass_within_the_range(ops: Any) -> None:
    op, g = "QuantizeAndDequantizeV4Grad", F([[1, 2, 3], [4, 5, 6]])
    x = F([[-1, 0, 3], [4, 1, -2]])
    found = ops.run(op, [g, x, F(-1), F(3)])
    assert [each.tolist() for each in found] == [[[1, 2, 3], [0, 5, 0]], 0, 0]
    found = ops.run(op, [g, x, F([-1, 0]), F([0, 4])], axis=0)
    assert [each.tolist() for each in found] == [[[1, 2, 0], [4, 5, 0]], [0, 0], [0, 0]]
    found = ops.run(op, [g, x, F([0, 0, -2]), F([4, 0, 2])], axis=1)
    assert [each.tolist() for each in found] == [[[0, 2, 0], [4, 0, 6]], [0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("g", "low", "high", "axis", "text"),
    [
        ((2, 3), (), (), 2, "Axis should be -1 or 0 or a positive value less than 2 but given axis value was 2"),
        ((2, 3), (), (), -2, "Axis should be -1 or 0 or a positive value less than 2 but given axis value was -2"),
        ((1, 3), (), (), -1, "gradient and input must be the same size"),
        ((2, 3), (1,), (), -1, "input_min must have shape [], not [1]"),
        ((2, 3), (), (1,), -1, "input_max must have shape [], not [1]"),
        ((2, 3), (2,), (3,), 0, "input_max must have shape [2], not [3]"),
        ((2, 3), (2,), (3,), 1, "input_min must have shape [3], not [2]"),
    ],
)
def test_gradients_that_do_not_fit(ops: Any, g: Any, low: Any, high: Any, axis: int, text: str) -> None:
    inputs = [np.ones(g, F), np.ones((2, 3), F), np.zeros(low, F), np.ones(high, F)]
    refused(ops, "QuantizeAndDequantizeV4Grad", inputs, text, axis=axis)
