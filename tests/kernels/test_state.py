"""Variables of both families, scatters and optimizer updates, dense and sparse, against twins on Python numbers."""

from __future__ import annotations

import itertools
import math
import threading
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.state import ResourceManager, Variable

F = np.float32
RNG = np.random.default_rng(11)


def read(ops: Any, handle: Any, resources: ResourceManager, dtype: dtypes.DType = dtypes.float32) -> np.ndarray:
    return ops.run("ReadVariableOp", [handle], resources=resources, dtype=dtype)  # type: ignore[no-any-return]


def test_variable_is_found_again_by_name_and_container(ops: Any) -> None:
    resources = ResourceManager()
    attrs = {"dtype": dtypes.float32, "shape": TensorShape([2]), "resources": resources}

    first = ops.run("VariableV2", [], name="w", **attrs)

    assert ops.run("VariableV2", [], name="w", **attrs) is first
    assert ops.run("VariableV2", [], name="x", shared_name=b"w", **attrs) is first
    assert ops.run("VariableV2", [], name="w", container=b"c", **attrs) is not first
    with pytest.raises(errors.InvalidArgumentError, match=r"wrong dtype. Expected float got int32"):
        ops.run("VariableV2", [], name="w", dtype=dtypes.int32, shape=TensorShape([2]), resources=resources)


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.string])
def test_a_reference_without_elements_is_initialized(ops: Any, dtype: dtypes.DType) -> None:
    resources = ResourceManager()

    def made(name: str, shape: list[int] | None) -> Variable:
        attrs = {"dtype": dtype, "shape": TensorShape(shape), "resources": resources}
        return ops.run("VariableV2", [], name=name, **attrs)  # type: ignore[no-any-return]

    initialized = [made(f"v{shape}", shape).is_initialized for shape in ([0], [2, 0], [2], [], None)]
    assert initialized == [True, True, False, False, False]
    assert made("v[2, 0]", [2, 0]).value.shape == (2, 0)
    grown = ops.run("Assign", [made("v[0]", [0]), np.array([1]).astype(dtype.as_numpy_dtype)], validate_shape=False)
    assert grown.value.shape == (1,)


def test_assign_and_read_of_a_reference(ops: Any) -> None:
    variable = Variable("w", dtypes.float32, TensorShape([2]))

    assert not ops.run("IsVariableInitialized", [variable])
    assert ops.run("Assign", [variable, F([1, 2])]) is variable
    view = variable.value
    ops.run("AssignAdd", [variable, F([1, 1])])
    ops.run("AssignSub", [variable, F([0, 5])])

    assert ops.run("IsVariableInitialized", [variable])
    assert view.tolist() == [2, -2]
    assert ops.run("Assign", [variable, F([1])], validate_shape=False).value.tolist() == [1]


def test_resource_reads_are_snapshots(ops: Any) -> None:
    resources = ResourceManager()
    handle = ops.handle(F([1, 2]), resources)

    before = read(ops, handle, resources)
    ops.run("AssignAddVariableOp", [handle, F([1, 1])], resources=resources)
    middle = read(ops, handle, resources)
    ops.run("AssignVariableOp", [handle, F([9])], resources=resources)

    assert before.tolist() == [1, 2]
    assert middle.tolist() == [2, 3]
    assert read(ops, handle, resources).tolist() == [9]
    assert ops.run("VariableShape", [handle], resources=resources).tolist() == [1]


def test_an_uninitialized_resource(ops: Any) -> None:
    resources = ResourceManager()
    handle = ops.run("VarHandleOp", [], resources=resources, dtype=dtypes.float32, shape=TensorShape([2]), name="w")

    assert not ops.run("VarIsInitializedOp", [handle], resources=resources)
    with pytest.raises(errors.FailedPreconditionError, match=r"^Could not find variable w\. .*container=localhost"):
        read(ops, handle, resources)
    ops.run("AssignVariableOp", [handle, F([1])], resources=resources)
    assert ops.run("VarIsInitializedOp", [handle], resources=resources)
    ops.run("DestroyResourceOp", [handle], resources=resources)
    assert not ops.run("VarIsInitializedOp", [handle], resources=resources)


def test_wrong_resource_assignments(ops: Any) -> None:
    resources = ResourceManager()
    handle = ops.handle(F([1, 2]), resources)

    for op, inputs, attrs, text in [
        ("AssignVariableOp", [handle, F([1])], {"validate_shape": True}, r"wrong shape\. Expected \[2\] got \[1\]$"),
        ("AssignVariableOp", [handle, np.array([1, 2])], {}, r"wrong dtype\. Expected float got int64$"),
        ("AssignAddVariableOp", [handle, F([1])], {}, r"with shape \[2\] using a Tensor with shape \[1\]"),
        ("ReadVariableOp", [handle], {"dtype": dtypes.int32}, r"wrong dtype\. Expected int32 got float$"),
    ]:
        with pytest.raises(errors.InvalidArgumentError, match=text):
            ops.run(op, inputs, resources=resources, **attrs)


def test_count_up_to(ops: Any) -> None:
    variable = ops.variable(np.array(0, np.int32))

    assert [ops.run("CountUpTo", [variable], limit=2).tolist() for _ in range(2)] == [0, 1]
    with pytest.raises(errors.OutOfRangeError, match=r"^Reached limit of 2$"):
        ops.run("CountUpTo", [variable], limit=2)


SCATTERS = {
    "Add": lambda old, new: old + new,
    "Sub": lambda old, new: old - new,
    "Mul": lambda old, new: old * new,
    "Div": lambda old, new: old / new,
    "Min": min,
    "Max": max,
    "Update": lambda old, new: new,
}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
@pytest.mark.parametrize("operation", SCATTERS)
def test_scatter(ops: Any, operation: str, dtype: Any) -> None:
    for index, shape in itertools.product((np.int32, np.int64), ((4, 3), (4,), (4, 2, 2))):
        start = RNG.integers(1, 9, shape).astype(dtype)
        indices = np.array([[0, 2], [2, 3]], index)
        updates = RNG.integers(1, 4, (2, 2, *shape[1:])).astype(dtype)
        expected = start.copy()
        for i, j in itertools.product(range(2), repeat=2):
            row = expected[indices[i, j]]
            pairs = zip(np.ravel(row).tolist(), np.ravel(updates[i, j]).tolist(), strict=True)
            expected[indices[i, j]] = np.array([SCATTERS[operation](a, b) for a, b in pairs]).reshape(row.shape)
        variable = ops.variable(start)
        resources = ResourceManager()
        handle = ops.handle(start, resources)

        assert ops.run(f"Scatter{operation}", [variable, indices, updates]) is variable
        ops.run(f"ResourceScatter{operation}", [handle, indices, updates], resources=resources, dtype=variable.dtype)

        np.testing.assert_allclose(variable.value, expected, rtol=1e-3)
        np.testing.assert_allclose(read(ops, handle, resources, variable.dtype), expected, rtol=1e-3)


def test_scatter_of_a_scalar_and_of_nothing(ops: Any) -> None:
    variable = ops.variable(F([[1, 1], [2, 2]]))

    ops.run("ScatterAdd", [variable, [1], F(5).reshape(())])
    ops.run("ScatterAdd", [variable, np.zeros(0, np.int32), np.zeros((0, 2), F)])

    assert variable.value.tolist() == [[1, 1], [7, 7]]


@pytest.mark.parametrize(
    ("op", "indices", "updates", "text"),
    [
        ("ScatterAdd", [0, 7], np.ones((2, 2), F), r"^indices\[1\] = 7 is not in \[0, 5\)$"),
        ("ScatterMul", [0, 7], np.ones((2, 2), F), r"^indices\[1\] = 7 is not in \[0, 5\)$"),
        ("ScatterUpdate", [-1, 0], np.ones((2, 2), F), r"^indices\[0\] = -1 is not in \[0, 5\)$"),
        (
            "ScatterAdd",
            [0, 1],
            np.ones((2, 3), F),
            r"got updates\.shape \[2,3\], indices\.shape \[2\], params\.shape \[5,2\]$",
        ),
    ],
)
def test_a_wrong_scatter_changes_nothing(ops: Any, op: str, indices: Any, updates: Any, text: str) -> None:
    variable = ops.variable(np.zeros((5, 2), F))

    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(op, [variable, indices, updates])

    assert not variable.value.any()


def test_scatter_nd_and_gathers_of_variables(ops: Any) -> None:
    resources = ResourceManager()
    variable, handle = ops.variable(F([[1, 2], [3, 4]])), ops.handle(F([[1, 2], [3, 4]]), resources)

    ops.run("ScatterNdUpdate", [variable, [[0, 1]], F([9])])
    ops.run("ScatterNdAdd", [variable, [[1], [1]], F([[1, 1], [1, 1]])])
    gathered = ops.run("ResourceGather", [handle, np.array([1, 0])], resources=resources, dtype=dtypes.float32)

    assert variable.value.tolist() == [[1, 9], [5, 6]]
    assert gathered.tolist() == [[3, 4], [1, 2]]
    with pytest.raises(errors.InvalidArgumentError, match=r"^indices\[0\] = 2 is not in \[0, 2\)$"):
        ops.run("ResourceGather", [handle, np.array([2])], resources=resources, dtype=dtypes.float32)


def ftrl(s: dict[str, float], scaled: bool = False) -> dict[str, float]:
    """One step of FTRL-Proximal, in the paper's own terms (sigma, z, n)."""
    n = s["accum"] + s["grad"] ** 2
    grad = s["grad"] + 2 * s.get("l2_shrinkage", 0) * s["var"]
    sigma = (n ** -s["lr_power"] - s["accum"] ** -s["lr_power"]) / s["lr"]
    lr = s["lr"] if scaled else 1.0
    z = s["linear"] + (grad - sigma * s["var"]) * lr
    true_z = z / lr
    l1, l2 = s["l1"], s["l2"]
    var = 0.0 if abs(true_z) <= l1 else (math.copysign(l1, true_z) - true_z) / (n ** -s["lr_power"] / s["lr"] + 2 * l2)
    return {"var": var, "accum": n, "linear": z}


def momentum(s: dict[str, float], nesterov: bool = False) -> dict[str, float]:
    a = s["accum"] * s["momentum"] + s["grad"]
    step = s["grad"] + a * s["momentum"] if nesterov else a
    return {"var": s["var"] - s["lr"] * step, "accum": a}


def keras_momentum(s: dict[str, float]) -> dict[str, float]:
    a = s["accum"] * s["momentum"] - s["grad"] * s["lr"]
    return {"var": s["var"] + a, "accum": a}


def adam(s: dict[str, float], nesterov: bool = False) -> dict[str, float]:
    m = s["beta1"] * s["m"] + (1 - s["beta1"]) * s["grad"]
    v = s["beta2"] * s["v"] + (1 - s["beta2"]) * s["grad"] ** 2
    lr = s["lr"] * math.sqrt(1 - s["beta2_power"]) / (1 - s["beta1_power"])
    step = s["beta1"] * m + (1 - s["beta1"]) * s["grad"] if nesterov else m
    return {"var": s["var"] - lr * step / (math.sqrt(v) + s["epsilon"]), "m": m, "v": v}


def ada_max(s: dict[str, float]) -> dict[str, float]:
    m = s["beta1"] * s["m"] + (1 - s["beta1"]) * s["grad"]
    v = max(s["beta2"] * s["v"], abs(s["grad"]))
    return {"var": s["var"] - s["lr"] / (1 - s["beta1_power"]) * m / (v + s["epsilon"]), "m": m, "v": v}


def adagrad(s: dict[str, float], update_slots: bool = True) -> dict[str, float]:
    a = s["accum"] + (s["grad"] ** 2 if update_slots else 0)
    return {"var": s["var"] - s["lr"] * s["grad"] / (math.sqrt(a) + s.get("epsilon", 0)), "accum": a}


def rmsprop(s: dict[str, float]) -> dict[str, float]:
    ms = s["rho"] * s["ms"] + (1 - s["rho"]) * s["grad"] ** 2
    mom = s["momentum"] * s["mom"] + s["lr"] * s["grad"] / math.sqrt(ms + s["epsilon"])
    return {"var": s["var"] - mom, "ms": ms, "mom": mom}


def centered_rmsprop(s: dict[str, float]) -> dict[str, float]:
    ms = s["rho"] * s["ms"] + (1 - s["rho"]) * s["grad"] ** 2
    mg = s["rho"] * s["mg"] + (1 - s["rho"]) * s["grad"]
    mom = s["momentum"] * s["mom"] + s["lr"] * s["grad"] / math.sqrt(ms - mg**2 + s["epsilon"])
    return {"var": s["var"] - mom, "mg": mg, "ms": ms, "mom": mom}


def adadelta(s: dict[str, float]) -> dict[str, float]:
    a = s["rho"] * s["accum"] + (1 - s["rho"]) * s["grad"] ** 2
    update = math.sqrt(s["accum_update"] + s["epsilon"]) / math.sqrt(a + s["epsilon"]) * s["grad"]
    return {
        "var": s["var"] - s["lr"] * update,
        "accum": a,
        "accum_update": s["rho"] * s["accum_update"] + (1 - s["rho"]) * update**2,
    }


def shrink(value: float, bound: float) -> float:
    return math.copysign(max(abs(value) - bound, 0), value)


def proximal_gradient_descent(s: dict[str, float]) -> dict[str, float]:
    grad = s.get("delta", s.get("grad", 0))
    moved = shrink(s["var"] - s["alpha"] * grad, s["alpha"] * s["l1"])
    return {"var": moved / (1 + s["l2"] * s["alpha"])}


def proximal_adagrad(s: dict[str, float]) -> dict[str, float]:
    a = s["accum"] + s["grad"] ** 2
    lr = s["lr"] / math.sqrt(a)
    return {"var": shrink(s["var"] - lr * s["grad"], lr * s["l1"]) / (1 + s["l2"] * lr), "accum": a}


def adagrad_da(s: dict[str, float]) -> dict[str, float]:
    g = s["gradient_accumulator"] + s["grad"]
    q = s["gradient_squared_accumulator"] + s["grad"] ** 2
    top = -s["lr"] * shrink(g, s["l1"] * s["global_step"])
    var = top / (s["l2"] * s["global_step"] * s["lr"] + math.sqrt(q))
    return {"var": var, "gradient_accumulator": g, "gradient_squared_accumulator": q}


#: stem, attrs, twin of one element, whether a sparse op exists.
RULES: list[tuple[str, dict[str, Any], Any, bool]] = [
    ("GradientDescent", {}, lambda s: {"var": s["var"] - s["alpha"] * s["delta"]}, False),
    ("Momentum", {}, momentum, True),
    ("Momentum", {"use_nesterov": True}, lambda s: momentum(s, True), True),
    ("KerasMomentum", {}, keras_momentum, True),
    ("Adagrad", {}, adagrad, True),
    ("Adagrad", {"update_slots": False}, lambda s: adagrad(s, False), True),
    ("AdagradV2", {}, adagrad, True),
    ("Adam", {}, adam, False),
    ("Adam", {"use_nesterov": True}, lambda s: adam(s, True), False),
    ("AdaMax", {}, ada_max, False),
    ("RMSProp", {}, rmsprop, True),
    ("CenteredRMSProp", {}, centered_rmsprop, True),
    ("Adadelta", {}, adadelta, True),
    ("Ftrl", {}, ftrl, True),
    ("Ftrl", {"multiply_linear_by_lr": True}, lambda s: ftrl(s, True), True),
    ("FtrlV2", {}, ftrl, True),
    ("ProximalGradientDescent", {}, proximal_gradient_descent, True),
    ("ProximalAdagrad", {}, proximal_adagrad, True),
    ("AdagradDA", {}, adagrad_da, True),
]

SLOTS = ("var", "accum", "accum_update", "linear", "m", "v", "ms", "mg", "mom",
         "gradient_accumulator", "gradient_squared_accumulator")  # fmt: skip
SCALARS = {
    "lr": 0.3, "alpha": 0.3, "momentum": 0.9, "rho": 0.8, "epsilon": 0.1, "beta1": 0.9, "beta2": 0.99,
    "beta1_power": 0.81, "beta2_power": 0.98, "l1": 0.2, "l2": 0.1, "l2_shrinkage": 0.05, "lr_power": -0.5,
}  # fmt: skip


def arguments(names: list[str], shape: tuple[int, ...], dtype: Any) -> dict[str, np.ndarray]:
    """Values for the inputs of an update; slots are positive, as squares are, mg stays below √ms."""
    values: dict[str, np.ndarray] = {}
    for name in names:
        if name in ("var", "grad", "delta"):
            values[name] = RNG.uniform(-1, 1, shape).astype(dtype)
        elif name == "mg":
            values[name] = RNG.uniform(0, 0.1, shape).astype(dtype)
        elif name in SLOTS:
            values[name] = RNG.uniform(0.5, 1, shape).astype(dtype)
        elif name == "global_step":
            values[name] = np.array(3, np.int64)
        else:
            values[name] = np.array(SCALARS[name], dtype)
    return values


def expected_of(twin: Any, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The twin, element by element in float64."""
    shape, out = values["var"].shape, {}
    for i in np.ndindex(shape):
        one = twin({k: float(v[i] if v.shape == shape and v.ndim else v) for k, v in values.items()})
        for name, value in one.items():
            out.setdefault(name, np.zeros(shape))[i] = value
    return out


@pytest.mark.parametrize(("stem", "attrs", "twin", "sparse"), RULES, ids=lambda v: v if isinstance(v, str) else "")
@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_dense_update(ops: Any, stem: str, attrs: dict[str, Any], twin: Any, sparse: bool, resource: bool) -> None:
    from tenfold_core import opdefs

    op = f"{'Resource' if resource else ''}Apply{stem}"
    if not opdefs.has(op):
        pytest.skip(f"TensorFlow has no {op}")
    names = [a.name for a in opdefs.get(op).inputs]
    for dtype, shape in itertools.product((np.float16, np.float32, np.float64), ((2, 3), (), (0,))):
        values, resources = arguments(names, shape, dtype), ResourceManager()
        expected = expected_of(twin, values)
        slots = [n for n in names if n in SLOTS]
        held = {n: ops.handle(values[n], resources, n) if resource else ops.variable(values[n], n) for n in slots}
        kinds = {"T": dtypes.as_dtype(dtype)} if resource else {}

        result = ops.run(op, [held.get(n, values[n]) for n in names], resources=resources, **attrs, **kinds)

        assert (result is None) if resource else (result is held["var"])
        for name in slots:
            now = read(ops, held[name], resources, dtypes.as_dtype(dtype)) if resource else held[name].value
            tolerance = {2: 2e-2, 4: 2e-5, 8: 1e-11}[now.dtype.itemsize]
            if now.size:
                np.testing.assert_allclose(now, expected[name], rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize(
    ("stem", "attrs", "twin"), [r[:3] for r in RULES if r[3]], ids=lambda v: v if isinstance(v, str) else ""
)
@pytest.mark.parametrize("resource", [pytest.param(False, marks=pytest.mark.thorough), True], ids=["ref", "resource"])
def test_sparse_update(ops: Any, stem: str, attrs: dict[str, Any], twin: Any, resource: bool) -> None:
    from tenfold_core import opdefs

    op = f"{'Resource' if resource else ''}SparseApply{stem}"
    if not opdefs.has(op):
        pytest.skip(f"TensorFlow has no {op}")
    names = [a.name for a in opdefs.get(op).inputs]
    for dtype, index in ((np.float32, np.int32), (np.float64, np.int64), (np.float16, np.int64)):
        values, resources = arguments([n for n in names if n != "indices"], (4, 3), dtype), ResourceManager()
        indices = np.array([1, 3], index)
        grad = values["grad"][:2]
        touched = {k: v[indices] if v.ndim else v for k, v in values.items()} | {"grad": grad}
        expected = {k: values[k].astype(np.float64) for k in names if k in SLOTS}
        for name, rows in expected_of(twin, touched).items():
            expected[name][indices] = rows
        held = {n: ops.handle(values[n], resources, n) if resource else ops.variable(values[n], n) for n in expected}
        inputs = [held.get(n, {"grad": grad, "indices": indices}.get(n, values.get(n))) for n in names]
        kinds = {"T": dtypes.as_dtype(dtype)} if resource else {}

        ops.run(op, inputs, resources=resources, **attrs, **kinds)

        for name, wanted in expected.items():
            now = read(ops, held[name], resources, dtypes.as_dtype(dtype)) if resource else held[name].value
            tolerance = {2: 2e-2, 4: 2e-5, 8: 1e-11}[now.dtype.itemsize]
            np.testing.assert_allclose(now, wanted, rtol=tolerance, atol=tolerance, err_msg=name)


def test_a_row_named_twice_is_updated_twice(ops: Any) -> None:
    var, accum = ops.variable(F([[1], [1]])), ops.variable(F([[0], [0]]))

    ops.run("SparseApplyMomentum", [var, accum, 1.0, F([[1], [1]]), np.array([0, 0]), 0.5])

    assert accum.value.tolist() == [[1.5], [0]]
    assert var.value.tolist() == [[-1.5], [1]]


def test_a_resource_update_leaves_a_read_alone(ops: Any) -> None:
    resources = ResourceManager()
    handle = ops.handle(F([1, 2]), resources)
    before = read(ops, handle, resources)

    ops.run("ResourceApplyGradientDescent", [handle, 1.0, F([1, 1])], resources=resources)

    assert before.tolist() == [1, 2]
    assert read(ops, handle, resources).tolist() == [0, 1]


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_concurrent_updates_are_all_counted_and_reads_are_whole(ops: Any, resource: bool) -> None:
    steps, width, resources = 200, 4096, ResourceManager()
    held = ops.handle(np.zeros(width, F), resources) if resource else ops.variable(np.zeros(width, F))
    delta, alpha = np.ones(width, F), np.array(-1, F)
    op = "ResourceApplyGradientDescent" if resource else "ApplyGradientDescent"
    compute, _ = ops.build(op, [held, alpha, delta], {"T": dtypes.float32} if resource else {}, resources)
    torn: list[float] = []

    def update() -> None:
        for _ in range(steps):
            compute(held, alpha, delta)

    def look() -> None:
        for _ in range(steps):
            seen = read(ops, held, resources)
            if seen[0] != seen[-1] or (seen != seen[0]).any():
                torn.append(float(seen[0]))

    threads = [threading.Thread(target=t) for t in ([update, update, look] if resource else [update, update])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    final = read(ops, held, resources) if resource else held.value
    assert torn == []
    assert (final == 2 * steps).all()


V, V3 = (lambda ops: ops.variable(np.zeros(2, F))), (lambda ops: ops.variable(np.zeros(3, F)))
TABLE = lambda ops: ops.variable(np.zeros((5, 2), F))  # noqa: E731

#: op, inputs (a function makes a variable), text.
WRONG = [
    ("Assign", [V, np.zeros(3, F)], r"tensors to match\. lhs shape= \[2\] rhs shape= \[3\]$"),
    ("AssignAdd", [V, np.zeros(3, F)], "^Parameters and update must be the same size$"),
    ("ApplyGradientDescent", [V, 1.0, np.zeros(3, F)], r"^var and delta do not have the same shape\[2\] \[3\]$"),
    ("ApplyGradientDescent", [V, [1.0], np.zeros(2, F)], r"^alpha is not a scalar: \[1\]$"),
    ("ApplyMomentum", [V, V3, 1.0, np.zeros(2, F), 1.0], r"^var and accum do not have the same shape\[2\] \[3\]$"),
    ("ApplyMomentum", [V, V, 1.0, np.zeros(3, F), 1.0], r"^var and grad do not have the same shape\[2\] \[3\]$"),
    ("SparseApplyAdagrad", [TABLE, TABLE, 1.0, np.zeros((2, 2), F), np.array([0, 7])],
     "^Index 7 at offset 1 in indices is out of range$"),
    ("SparseApplyAdagrad", [TABLE, TABLE, 1.0, np.zeros((2, 3), F), np.array([0, 1])],
     "^var and grad must match in dimension 1$"),
    ("SparseApplyAdagrad", [TABLE, TABLE, 1.0, np.zeros((3, 2), F), np.array([0, 1])],
     "^grad must be the same size as indices in the first dimension.$"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "text"), WRONG, ids=lambda v: v if isinstance(v, str) else "")
def test_wrong_inputs(ops: Any, op: str, inputs: list[Any], text: str) -> None:
    made = [x(ops) if callable(x) else x for x in inputs]
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(op, made)


def test_updates_of_an_uninitialized_reference(ops: Any) -> None:
    variable = Variable("w", dtypes.float32, TensorShape([2]))

    for op, rest in (("AssignAdd", [F([1, 1])]), ("ApplyGradientDescent", [1.0, F([1, 1])])):
        with pytest.raises(errors.FailedPreconditionError, match=r"^Attempting to use uninitialized value w$"):
            ops.run(op, [variable, *rest])
