"""The optimizers' table: what the inputs of the ops Apply*, ResourceApply*, SparseApply*, ResourceSparseApply* are.

A rule names the variables, the scalars and how the scalars become the arguments of the body in scalar.py; the order of
a node's inputs is taken from its op definition. The checks are here too, of whatever has a shape. Used by
cpu/state_apply.py and cuda/state_apply.py. Follows training_ops.cc.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tenfold_core import opdefs
from tenfold_kernels.arrays import invalid, shape_text

#: Scalars by input name, each a NumPy scalar of the element type (or what stands for one: only arithmetic is done with
#: it); one(1) makes a constant of that type.
Scalars = Mapping[str, Any]
Prepare = Callable[[Scalars, Callable[[float], Any], Mapping[str, Any]], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Rule:
    """How one optimizer's ops use their inputs."""

    #: Inputs that are variables, var first, in the order of the loop's arguments.
    variables: tuple[str, ...]
    #: Name of the body in scalar.py, and of the loops in cpu/_compiled/updates.py and sparse_updates.py.
    loop: str
    #: (scalars, constant, attrs) → the loop's scalar arguments.
    prepare: Prepare
    #: Whether the sparse family has this rule.
    sparse: bool = True
    #: Whether the scalars are other ones in every step, so that prepared ones are never found.
    as_they_come: bool = False
    #: Raises InvalidArgumentError for scalars without a meaning.
    check: Callable[[Scalars], None] | None = None


def flag(attrs: Mapping[str, Any], name: str, default: bool = False) -> bool:
    """A bool attr, which not all ops of a rule have."""
    return bool(attrs.get(name, default))


def _check_ftrl(s: Scalars) -> None:
    if s["lr"] <= 0:
        raise invalid("lr is not a positive scalar: " + str(s["lr"]))
    for name in ("l1", "l2"):
        if s[name] < 0:
            raise invalid(f"{name} regularization strength is not a non-negative scalar: {s[name]}")
    if s["lr_power"] > 0:
        raise invalid(f"lr_power is not a non-positive scalar: {s['lr_power']}")


def _ftrl(s: Scalars, one: Callable[[float], Any], attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    shrinkage = s.get("l2_shrinkage", one(0))
    two = one(2)
    return s["lr"], s["l1"], two * s["l2"], two * shrinkage, -s["lr_power"], flag(attrs, "multiply_linear_by_lr")


RULES: dict[str, Rule] = {
    "GradientDescent": Rule(("var",), "gradient_descent", lambda s, one, a: (s["alpha"],), sparse=False),
    "Momentum": Rule(
        ("var", "accum"), "momentum", lambda s, one, a: (s["lr"], s["momentum"], flag(a, "use_nesterov"))
    ),
    "KerasMomentum": Rule(
        ("var", "accum"), "keras_momentum", lambda s, one, a: (s["lr"], s["momentum"], flag(a, "use_nesterov"))
    ),
    "Adagrad": Rule(("var", "accum"), "adagrad", lambda s, one, a: (s["lr"], one(0), flag(a, "update_slots", True))),
    "AdagradV2": Rule(
        ("var", "accum"), "adagrad", lambda s, one, a: (s["lr"], s["epsilon"], flag(a, "update_slots", True))
    ),
    "Adam": Rule(
        ("var", "m", "v"),
        "adam",
        # as they come: the loop computes the rate, see there
        lambda s, one, a: (*s.values(), one(1), flag(a, "use_nesterov")),
        sparse=False,
        as_they_come=True,
    ),
    "AdaMax": Rule(
        ("var", "m", "v"),
        "ada_max",
        lambda s, one, a: (
            s["lr"] / (one(1) - s["beta1_power"]),
            one(1) - s["beta1"],
            s["beta2"],
            s["epsilon"],
        ),
        sparse=False,
    ),
    "RMSProp": Rule(
        ("var", "ms", "mom"),
        "rmsprop",
        lambda s, one, a: (s["lr"], one(1) - s["rho"], s["momentum"], s["epsilon"]),
    ),
    "CenteredRMSProp": Rule(
        ("var", "mg", "ms", "mom"),
        "centered_rmsprop",
        lambda s, one, a: (s["lr"], one(1) - s["rho"], s["momentum"], s["epsilon"]),
    ),
    "Adadelta": Rule(
        ("var", "accum", "accum_update"),
        "adadelta",
        lambda s, one, a: (s["lr"], s["rho"], one(1) - s["rho"], s["epsilon"]),
    ),
    "Ftrl": Rule(("var", "accum", "linear"), "ftrl", _ftrl, check=_check_ftrl),
    "FtrlV2": Rule(("var", "accum", "linear"), "ftrl", _ftrl, check=_check_ftrl),
    "ProximalGradientDescent": Rule(
        ("var",),
        "proximal_gradient_descent",
        lambda s, one, a: (s["alpha"], s["l1"], one(1) + s["l2"] * s["alpha"]),
    ),
    "ProximalAdagrad": Rule(
        ("var", "accum"), "proximal_adagrad", lambda s, one, a: (s["lr"], s["l1"], s["l2"], one(1))
    ),
    "AdagradDA": Rule(
        ("var", "gradient_accumulator", "gradient_squared_accumulator"),
        "adagrad_da",
        lambda s, one, a: (s["lr"], s["l1"] * s["global_step"], s["l2"] * s["global_step"]),
    ),
}


def stem_of(op: str) -> tuple[str, bool]:
    """`ResourceSparseApplyFtrl` → ("Ftrl", True)."""
    name = op.removeprefix("Kv").removeprefix("Resource")
    return name.removeprefix("Sparse").removeprefix("Apply"), name.startswith("Sparse")


#: Every op of the rules.
OPS = tuple(
    op
    for stem, rule in RULES.items()
    for op in (
        f"Apply{stem}",
        f"ResourceApply{stem}",
        *((f"SparseApply{stem}", f"ResourceSparseApply{stem}") if rule.sparse else ()),
    )
    if opdefs.has(op)
)


@dataclass(frozen=True, slots=True)
class Layout:
    """An op's rule, and where among its inputs things are."""

    rule: Rule
    sparse: bool
    #: In the order of the rule's.
    variables: tuple[int, ...]
    #: (name, position).
    scalars: tuple[tuple[str, int], ...]
    #: What the gradient is called, and where it is.
    gradient_name: str
    gradient: int
    #: −1 for a dense op.
    indices: int


@functools.cache
def layout_of(op: str) -> Layout:
    """Of one of OPS."""
    stem, sparse = stem_of(op)
    rule = RULES[stem]
    names = [arg.name for arg in opdefs.get(op).inputs]
    gradient = "delta" if "delta" in names else "grad"
    tensors = {*rule.variables, gradient, "indices"}
    return Layout(
        rule,
        sparse,
        tuple(names.index(name) for name in rule.variables),
        tuple((name, i) for i, name in enumerate(names) if name not in tensors),
        gradient,
        names.index(gradient),
        names.index("indices") if sparse else -1,
    )


def check_scalar(name: str, value: Any) -> None:
    """Raises InvalidArgumentError for an array of any other shape than a scalar's."""
    if value.ndim:
        raise invalid(f"{name} is not a scalar: {shape_text(value.shape)}")


def check_slots(rule: Rule, buffers: Sequence[Any]) -> None:
    """Raises InvalidArgumentError unless var and its slots have one shape."""
    shape = buffers[0].shape
    for name, buffer in zip(rule.variables, buffers, strict=True):
        if buffer.shape != shape:
            raise invalid(f"var and {name} do not have the same shape{shape_text(shape)} {shape_text(buffer.shape)}")


def check_gradient(layout: Layout, shape: tuple[int, ...], grad: Any) -> None:
    """Raises InvalidArgumentError unless a dense gradient has var's shape."""
    if grad.shape != shape:
        raise invalid(
            f"var and {layout.gradient_name} do not have the same shape{shape_text(shape)} {shape_text(grad.shape)}"
        )


def check_rows(shape: tuple[int, ...], grad: Any, indices: Any) -> None:
    """Raises InvalidArgumentError unless a gradient has a row of var for each index."""
    if not shape:
        raise invalid("var must be at least 1 dimensional")
    if indices.ndim != 1:
        raise invalid("indices must be one-dimensional")
    if grad.ndim != len(shape):
        raise invalid(f"var and grad must have the same rank: {shape_text(shape)} and {shape_text(grad.shape)}")
    for d in range(1, len(shape)):
        if grad.shape[d] != shape[d]:
            raise invalid(f"var and grad must match in dimension {d}")
    if grad.shape[0] != indices.shape[0]:
        raise invalid("grad must be the same size as indices in the first dimension.")
