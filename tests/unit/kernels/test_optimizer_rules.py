"""The optimizers' table: each rule's loop arguments by numbers, where an op's inputs are, and what is refused."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels import optimizer_rules
from tenfold_kernels.optimizer_rules import OPS, RULES, layout_of

#: Rule → variables, loop, whether it has a sparse op, whether scalars are taken as they come.
TABLE: dict[str, tuple[str, str, bool, bool]] = {
    "GradientDescent": ("var", "gradient_descent", False, False),
    "Momentum": ("var accum", "momentum", True, False),
    "KerasMomentum": ("var accum", "keras_momentum", True, False),
    "Adagrad": ("var accum", "adagrad", True, False),
    "AdagradV2": ("var accum", "adagrad", True, False),
    "Adam": ("var m v", "adam", False, True),
    "AdaMax": ("var m v", "ada_max", False, False),
    "RMSProp": ("var ms mom", "rmsprop", True, False),
    "CenteredRMSProp": ("var mg ms mom", "centered_rmsprop", True, False),
    "Adadelta": ("var accum accum_update", "adadelta", True, False),
    "Ftrl": ("var accum linear", "ftrl", True, False),
    "FtrlV2": ("var accum linear", "ftrl", True, False),
    "ProximalGradientDescent": ("var", "proximal_gradient_descent", True, False),
    "ProximalAdagrad": ("var accum", "proximal_adagrad", True, False),
    "AdagradDA": ("var gradient_accumulator gradient_squared_accumulator", "adagrad_da", True, False),
}
SGD = {"lr": 0.5, "momentum": 0.25}
RMS = {"lr": 0.5, "rho": 0.25, "momentum": 0.125, "epsilon": 3.0}
FTRL = {"lr": 0.5, "l1": 0.75, "l2": 0.25, "lr_power": -0.625}
#: Rule → scalars, attributes, the loop's arguments.
PREPARED: dict[str, list[tuple[dict[str, float], dict[str, Any], tuple[Any, ...]]]] = {
    "GradientDescent": [({"alpha": 0.5}, {}, (0.5,))],
    "Momentum": [(SGD, {}, (0.5, 0.25, False)), (SGD, {"use_nesterov": True}, (0.5, 0.25, True))],
    "KerasMomentum": [(SGD, {}, (0.5, 0.25, False)), (SGD, {"use_nesterov": True}, (0.5, 0.25, True))],
    "Adagrad": [({"lr": 0.5}, {}, (0.5, 0.0, True)), ({"lr": 0.5}, {"update_slots": False}, (0.5, 0.0, False))],
    "AdagradV2": [
        ({"lr": 0.5, "epsilon": 3.0}, {}, (0.5, 3.0, True)),
        ({"lr": 0.5, "epsilon": 3.0}, {"update_slots": False}, (0.5, 3.0, False)),
    ],
    "Adam": [
        ({"beta1_power": 0.1, "beta2_power": 0.2, "lr": 0.3, "beta1": 0.4, "beta2": 0.5, "epsilon": 0.6}, attrs, found)
        for attrs, found in (
            ({}, (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 1.0, False)),
            ({"use_nesterov": True}, (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 1.0, True)),
        )
    ],
    "AdaMax": [
        ({"beta1_power": 0.75, "lr": 0.5, "beta1": 0.25, "beta2": 0.875, "epsilon": 3.0}, {}, (2.0, 0.75, 0.875, 3.0))
    ],
    "RMSProp": [(RMS, {}, (0.5, 0.75, 0.125, 3.0))],
    "CenteredRMSProp": [(RMS, {}, (0.5, 0.75, 0.125, 3.0))],
    "Adadelta": [({"lr": 0.5, "rho": 0.25, "epsilon": 3.0}, {}, (0.5, 0.25, 0.75, 3.0))],
    "Ftrl": [
        (FTRL, {}, (0.5, 0.75, 0.5, 0.0, 0.625, False)),
        (FTRL, {"multiply_linear_by_lr": True}, (0.5, 0.75, 0.5, 0.0, 0.625, True)),
    ],
    "FtrlV2": [({**FTRL, "l2_shrinkage": 3.0}, {}, (0.5, 0.75, 0.5, 6.0, 0.625, False))],
    "ProximalGradientDescent": [({"alpha": 0.5, "l1": 0.75, "l2": 0.25}, {}, (0.5, 0.75, 1.125))],
    "ProximalAdagrad": [({"lr": 0.5, "l1": 0.75, "l2": 0.25}, {}, (0.5, 0.75, 0.25, 1.0))],
    "AdagradDA": [({"lr": 0.5, "l1": 0.75, "l2": 0.25, "global_step": 4.0}, {}, (0.5, 3.0, 1.0))],
}


def test_each_rule_as_it_is_written_down() -> None:
    found = {
        stem: (" ".join(rule.variables), rule.loop, rule.sparse, rule.as_they_come) for stem, rule in RULES.items()
    }
    assert found == TABLE
    assert [stem for stem, rule in RULES.items() if rule.check is not None] == ["Ftrl", "FtrlV2"]


def test_scalars_become_the_loops_arguments() -> None:
    assert PREPARED.keys() == RULES.keys()
    for stem, cases in PREPARED.items():
        for scalars, attrs, expected in cases:
            found = RULES[stem].prepare(scalars, float, attrs)
            assert found == expected, (stem, attrs)
            assert list(map(type, found)) == list(map(type, expected)), (stem, attrs)


def test_every_op_of_a_rule_that_is_defined() -> None:
    assert {op for op in OPS if op.endswith("ApplyAdam")} == {"ApplyAdam", "ResourceApplyAdam"}
    every = {f"{place}{kind}ApplyFtrl" for place in ("", "Resource") for kind in ("", "Sparse")}
    assert {op for op in OPS if op.endswith("ApplyFtrl")} == every
    assert {op for op in OPS if "Keras" in op} == {"ResourceApplyKerasMomentum", "ResourceSparseApplyKerasMomentum"}
    assert not [op for op in OPS if "Sparse" in op and not RULES[optimizer_rules.stem_of(op)[0]].sparse]


def test_an_op_is_its_rule_and_whether_it_is_sparse() -> None:
    names = ("ApplyFtrl", "ResourceApplyFtrl", "SparseApplyFtrl", "ResourceSparseApplyFtrl")
    assert [optimizer_rules.stem_of(op) for op in names] == [("Ftrl", False)] * 2 + [("Ftrl", True)] * 2


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("ApplyGradientDescent", (False, (0,), (("alpha", 1),), "delta", 2, -1)),
        (
            "ResourceSparseApplyFtrl",
            (True, (0, 1, 2), (("lr", 5), ("l1", 6), ("l2", 7), ("lr_power", 8)), "grad", 3, 4),
        ),
        ("SparseApplyMomentum", (True, (0, 1), (("lr", 2), ("momentum", 5)), "grad", 3, 4)),
        (
            "ApplyAdagradDA",
            (False, (0, 1, 2), (("lr", 4), ("l1", 5), ("l2", 6), ("global_step", 7)), "grad", 3, -1),
        ),
    ],
)
def test_where_an_ops_inputs_are(op: str, expected: tuple[Any, ...]) -> None:
    layout = layout_of(op)
    assert layout.rule is RULES[optimizer_rules.stem_of(op)[0]]
    assert astuple(layout)[1:] == expected
    assert layout_of(op) is layout


def refused(text: str, check: Any, *arguments: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError) as raised:
        check(*arguments)
    assert raised.value.message == text


def test_scalars_of_ftrl_that_mean_nothing() -> None:
    check = RULES["Ftrl"].check
    assert check is not None
    check(FTRL)
    check({"lr": 1e-9, "l1": 0.0, "l2": 0.0, "lr_power": 0.0})
    for wrong, text in (
        ({"lr": 0.0}, "lr is not a positive scalar: 0.0"),
        ({"lr": -1.0}, "lr is not a positive scalar: -1.0"),
        ({"l1": -0.5}, "l1 regularization strength is not a non-negative scalar: -0.5"),
        ({"l2": -0.5}, "l2 regularization strength is not a non-negative scalar: -0.5"),
        ({"lr_power": 0.5}, "lr_power is not a non-positive scalar: 0.5"),
    ):
        refused(text, check, {**FTRL, **wrong})


def test_shapes_that_are_refused() -> None:
    rules, zeros = optimizer_rules, np.zeros
    rules.check_scalar("lr", np.float32(1))
    refused("lr is not a scalar: [1]", rules.check_scalar, "lr", zeros(1))

    adam = RULES["Adam"]
    rules.check_slots(adam, [zeros((2, 3))] * 3)
    refused("var and v do not have the same shape[2,3] [3]", rules.check_slots, adam, [*[zeros((2, 3))] * 2, zeros(3)])
    rules.check_gradient(layout_of("ApplyAdam"), (2, 3), zeros((2, 3)))
    refused(
        "var and delta do not have the same shape[2] [3]",
        *(rules.check_gradient, layout_of("ApplyGradientDescent"), (2,), zeros(3)),
    )


def test_rows_that_are_refused() -> None:
    check, zeros = optimizer_rules.check_rows, np.zeros
    check((5, 2, 3), zeros((4, 2, 3)), zeros(4, int))
    check((5,), zeros(0), zeros(0, int))
    for shape, grad, indices, text in (
        ((), zeros(1), zeros(1, int), "var must be at least 1 dimensional"),
        ((5, 2), zeros((1, 2)), np.array(0), "indices must be one-dimensional"),
        ((5, 2), zeros((1, 2)), zeros((1, 1), int), "indices must be one-dimensional"),
        ((5, 2), zeros(2), zeros(2, int), "var and grad must have the same rank: [5,2] and [2]"),
        ((5, 2), zeros((1, 2, 1)), zeros(1, int), "var and grad must have the same rank: [5,2] and [1,2,1]"),
        ((5, 2, 3), zeros((4, 1, 3)), zeros(4, int), "var and grad must match in dimension 1"),
        ((5, 2, 3), zeros((4, 2, 4)), zeros(4, int), "var and grad must match in dimension 2"),
        ((5, 2), zeros((4, 2)), zeros(3, int), "grad must be the same size as indices in the first dimension."),
    ):
        refused(text, check, shape, grad, indices)
