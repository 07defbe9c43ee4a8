"""Gradients of Einsum: labels that are summed, kept, repeated and broadcast, real and complex."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients.checker import directional_error
from tenfold.graph.op_builder import apply_op

RNG = np.random.default_rng(43)
SIZES = {"a": 2, "b": 3, "c": 4, "d": 5, "e": 2}


def einsum(equation: str) -> Any:
    return lambda *x: apply_op("Einsum", inputs=list(x), equation=equation)


def operands(equation: str, dots: tuple[tuple[int, ...], ...] = ((), ())) -> list[np.ndarray]:
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    shapes = []
    for term, middle in zip(terms, dots, strict=False):
        before, _, after = term.partition("...")
        shapes.append((*(SIZES[label] for label in before), *middle, *(SIZES[label] for label in after)))
    return [RNG.standard_normal(shape) for shape in shapes]


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize(
    "equation",
    [
        "abcd->", "abcd->cb", "abcd,ab->ba", "cab,cd->a", "ab,cd->dbca", "abc,bcd->ad", "a,ab->a", ",ab->b",
        "aab->ab", "aabb->ab", "baa->b", "abba,bc->ac", "ab , bc -> ca", "bcb,ca->",
    ],
)  # fmt: skip
def test_labels(equation: str, static: bool) -> None:
    assert directional_error(einsum(equation), operands(equation), static_shapes=static) < 1e-6


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize(
    ("equation", "dots"),
    [
        ("...ab->...b", ((3, 2), ())),
        ("a...b->b...", ((3, 2), ())),
        ("a...,a...->...", ((1, 2), (3, 1))),
        ("...a,ab->b...", ((3, 2), ())),
        ("a...b,...bc->...ac", ((2,), (3, 1))),
        ("...aa->...a", ((2,), ())),
        ("...ab,b->...", ((4,), ())),
    ],
)
def test_dots(equation: str, dots: tuple[tuple[int, ...], ...], static: bool) -> None:
    assert directional_error(einsum(equation), operands(equation, dots), static_shapes=static) < 1e-6


def test_complex_operands_are_conjugated() -> None:
    x, y, g = (RNG.standard_normal((2, *shape)) for shape in ((2, 3), (3, 4), (2, 4)))
    x, y, g = (each[0] + 1j * each[1] for each in (x, y, g))
    with tf.Graph().as_default(), tf.Session() as session:
        a, b = tf.constant(x), tf.constant(y)
        found = session.run(tf.gradients(einsum("ab,bc->ac")(a, b), [a, b], grad_ys=tf.constant(g)))

    np.testing.assert_allclose(found[0], g @ y.conj().T)
    np.testing.assert_allclose(found[1], x.conj().T @ g)


def test_a_label_named_three_times_has_none() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float64, [2, 2, 2])
        y = apply_op("Einsum", inputs=[x], equation="aaa->a", name="cube")
        with pytest.raises(NotImplementedError, match="No gradient of Einsum for a label named 3 times: 'cube'"):
            tf.gradients(y, x)
