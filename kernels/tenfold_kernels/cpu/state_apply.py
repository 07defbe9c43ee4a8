"""Optimizer updates: Apply*, ResourceApply*, SparseApply*, ResourceSparseApply*, all from one table of rules.

A rule names the variables, the scalars and how the scalars become the arguments of the compiled loop; the order of a
node's inputs is taken from its op definition. Half and bfloat16 are updated in float and rounded back. All variables of
an update are locked together, whatever use_locking says. Follows training_ops.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenfold_core import dtypes, opdefs
from tenfold_kernels.arrays import Array, contiguous, invalid, shape_text
from tenfold_kernels.cpu._variables import is_resource, variable_reader
from tenfold_kernels.registry import Compute, KernelNode, kernel, no_kernel
from tenfold_kernels.typesets import COMPILED, FLOATING

no_kernel(
    "ApplyAddSign",
    "ApplyPowerSign",
    "ResourceApplyAdamWithAmsgrad",
    device="CPU",
    why="no program of the op census uses it",
)

#: Scalars by input name, each a NumPy scalar of the element type; one(1) makes a constant of that type.
Scalars = Mapping[str, Any]
Prepare = Callable[[Scalars, Callable[[float], Any], Mapping[str, Any]], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Rule:
    """How one optimizer's ops use their inputs."""

    #: Inputs that are variables, var first, in the order of the loop's arguments.
    variables: tuple[str, ...]
    #: Name of the loop in _compiled/updates.py and sparse_updates.py.
    loop: str
    #: (scalars, constant, attrs) → the loop's scalar arguments.
    prepare: Prepare
    #: Whether the sparse family has this rule.
    sparse: bool = True
    #: Whether the scalars are other ones in every step, so that looking for prepared ones is in vain.
    as_they_come: bool = False


def _flag(attrs: Mapping[str, Any], name: str, default: bool = False) -> bool:
    return bool(attrs.get(name, default))


def _ftrl(s: Scalars, one: Callable[[float], Any], attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    if s["lr"] <= 0:
        raise invalid("lr is not a positive scalar: " + str(s["lr"]))
    for name in ("l1", "l2"):
        if s[name] < 0:
            raise invalid(f"{name} regularization strength is not a non-negative scalar: {s[name]}")
    if s["lr_power"] > 0:
        raise invalid(f"lr_power is not a non-positive scalar: {s['lr_power']}")
    shrinkage = s.get("l2_shrinkage", one(0))
    two = one(2)
    return s["lr"], s["l1"], two * s["l2"], two * shrinkage, -s["lr_power"], _flag(attrs, "multiply_linear_by_lr")


_RULES: dict[str, Rule] = {
    "GradientDescent": Rule(("var",), "gradient_descent", lambda s, one, a: (s["alpha"],), sparse=False),
    "Momentum": Rule(
        ("var", "accum"), "momentum", lambda s, one, a: (s["lr"], s["momentum"], _flag(a, "use_nesterov"))
    ),
    "KerasMomentum": Rule(
        ("var", "accum"), "keras_momentum", lambda s, one, a: (s["lr"], s["momentum"], _flag(a, "use_nesterov"))
    ),
    "Adagrad": Rule(("var", "accum"), "adagrad", lambda s, one, a: (s["lr"], one(0), _flag(a, "update_slots", True))),
    "AdagradV2": Rule(
        ("var", "accum"), "adagrad", lambda s, one, a: (s["lr"], s["epsilon"], _flag(a, "update_slots", True))
    ),
    "Adam": Rule(
        ("var", "m", "v"),
        "adam",
        # as they come: the loop computes the rate, see there
        lambda s, one, a: (*s.values(), one(1), _flag(a, "use_nesterov")),
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
    "Ftrl": Rule(("var", "accum", "linear"), "ftrl", _ftrl),
    "FtrlV2": Rule(("var", "accum", "linear"), "ftrl", _ftrl),
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


def _stem(op: str) -> tuple[str, bool]:
    """`ResourceSparseApplyFtrl` → ("Ftrl", True)."""
    name = op.removeprefix("Resource")
    return name.removeprefix("Sparse").removeprefix("Apply"), name.startswith("Sparse")


_OPS = tuple(
    op
    for stem, rule in _RULES.items()
    for op in (
        f"Apply{stem}",
        f"ResourceApply{stem}",
        *((f"SparseApply{stem}", f"ResourceSparseApply{stem}") if rule.sparse else ()),
    )
    if opdefs.has(op)
)


@kernel(*_OPS, T=FLOATING | {dtypes.bfloat16})
def build_apply(node: KernelNode) -> Compute:
    """Updates var and its slots in place. Gives var's reference, or nothing for resources."""
    stem, sparse = _stem(node.op)
    rule = _RULES[stem]
    names = [arg.name for arg in opdefs.get(node.op).inputs]
    gradient = "delta" if "delta" in names else "grad"
    tensors = {*rule.variables, gradient, "indices"}
    scalar_places = [(name, i) for i, name in enumerate(names) if name not in tensors]
    #: The scalars' bytes → the loop's arguments. Learning rates stay the same for many steps, and all updates of one
    #: step share Adam's powers, so the nodes of a kind share this too.
    prepared = _prepared_for(node, stem)
    scalar_indices = [i for _, i in scalar_places]
    variable_places = [names.index(name) for name in rule.variables]
    grad_place = names.index(gradient)
    indices_place = names.index("indices") if sparse else -1
    dtype = node.attrs["T"].as_numpy_dtype
    work = dtype if node.attrs["T"] in COMPILED else np.float32
    resource = is_resource(node)
    attrs = node.attrs
    as_they_come = rule.as_they_come
    rest = (1.0, _flag(attrs, "use_nesterov"))
    readers = [variable_reader(node) for _ in variable_places]
    run = (_sparse_run if sparse else _dense_run)(node, rule, work)

    def arguments_of(inputs: Sequence[Any]) -> tuple[Any, ...]:
        key, ranks = b"", 0
        if as_they_come:
            given = [inputs[i] for i in scalar_indices]
            if not any([value.ndim for value in given]):
                return (*[value.item() for value in given], *rest)
        else:
            for i in scalar_indices:
                value = inputs[i]
                ranks += value.ndim
                key += value.tobytes()
            found = None if ranks else prepared.get(key)
            if found is not None:
                return found
        scalars = {name: _scalar(name, inputs[i], work) for name, i in scalar_places}
        # Python's numbers hold the same values and reach compiled code faster than NumPy's
        arguments = tuple([a if isinstance(a, bool) else a.item() for a in rule.prepare(scalars, work, attrs)])
        if len(prepared) >= _PREPARED_KEPT:
            prepared.clear()
        prepared[key] = arguments
        return arguments

    def update(variables: Sequence[Any], inputs: Sequence[Any], arguments: tuple[Any, ...]) -> None:
        buffers = [v.buffer(exclusive=resource) for v in variables]
        shape = buffers[0].shape
        for buffer in buffers:
            if buffer.shape != shape:
                _check_slots(rule, buffers)
        grad = inputs[grad_place]
        indices = inputs[indices_place] if sparse else None
        if work is dtype:
            run(buffers, grad, indices, arguments)
            return
        wide = [b.astype(work) for b in buffers]
        run(wide, grad.astype(work), indices, arguments)
        for buffer, updated in zip(buffers, wide, strict=True):
            buffer[...] = updated

    def compute(*inputs: Any) -> Any:
        arguments = arguments_of(inputs)
        if resource:
            variables = [variable_at(inputs[i]) for variable_at, i in zip(readers, variable_places, strict=True)]
        else:
            variables = [inputs[i] for i in variable_places]
        # `with locked(...)` written out: it would take a fifth of the time of a small update
        if len(variables) == 1:
            with variables[0].lock:
                update(variables, inputs, arguments)
        else:
            locks = [v.lock for v in sorted(variables, key=id)]
            for lock in locks:
                lock.acquire()
            try:
                update(variables, inputs, arguments)
            finally:
                for lock in locks:
                    lock.release()
        return None if resource else variables[0]

    return compute


#: (op, attrs of the update, type) → its prepared arguments.
_prepared: dict[tuple[Any, ...], dict[bytes, tuple[Any, ...]]] = {}
_PREPARED_KEPT = 64


def _prepared_for(node: KernelNode, stem: str) -> dict[bytes, tuple[Any, ...]]:
    flags = tuple(sorted((name, value) for name, value in node.attrs.items() if isinstance(value, bool)))
    return _prepared.setdefault((stem, flags, node.attrs["T"]), {})


def _scalar(name: str, value: Array, work: Any) -> Any:
    if value.ndim:
        raise invalid(f"{name} is not a scalar: {shape_text(value.shape)}")
    return work(value[()])


def _check_slots(rule: Rule, buffers: Sequence[Array]) -> None:
    shape = buffers[0].shape
    for name, buffer in zip(rule.variables, buffers, strict=True):
        if buffer.shape != shape:
            raise invalid(f"var and {name} do not have the same shape{shape_text(shape)} {shape_text(buffer.shape)}")


Run = Callable[[Sequence[Array], Array, Array | None, tuple[Any, ...]], None]


def _dense_run(node: KernelNode, rule: Rule, work: Any) -> Run:
    from tenfold_kernels.cpu._compiled import updates

    loop = updates.loop(rule.loop, work)
    gradient = "delta" if "GradientDescent" in node.op else "grad"

    def run(buffers: Sequence[Array], grad: Array, indices: Array | None, arguments: tuple[Any, ...]) -> None:
        if grad.shape != buffers[0].shape:
            raise invalid(
                f"var and {gradient} do not have the same shape{shape_text(buffers[0].shape)} {shape_text(grad.shape)}"
            )
        if grad.ndim == 1 and grad.flags.c_contiguous and grad.flags.aligned:
            loop(*buffers, grad, *arguments)
        else:
            loop(*[b.reshape(-1) for b in buffers], contiguous(grad).reshape(-1), *arguments)

    return run


def _sparse_run(node: KernelNode, rule: Rule, work: Any) -> Run:
    from tenfold_kernels.cpu._compiled import sparse_updates

    loop = sparse_updates.loop(rule.loop, work, node.attrs["Tindices"].as_numpy_dtype)

    def run(buffers: Sequence[Array], grad: Array, indices: Array | None, arguments: tuple[Any, ...]) -> None:
        assert indices is not None
        shape = buffers[0].shape
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
        width = math.prod(shape[1:])
        tables = [b.reshape(shape[0], width) for b in buffers]
        bad = loop(*tables, contiguous(grad).reshape(indices.size, width), contiguous(indices), *arguments)
        if bad >= 0:
            raise invalid(f"Index {indices[bad]} at offset {bad} in indices is out of range")

    return run
