"""`tf.test.compute_gradient` and `compute_gradient_error`: Jacobians by the graph's gradients and by differences.

They run in the default session; each element of x takes two steps, each element of y one. Follows TF 1.15's
ops/gradient_checker.py. gradients/checker.py checks in one direction, for Tenfold's own tests.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.gradients import walker
from tenfold.graph import IndexedSlices, get_default_session
from tenfold.graph.default_scopes import device
from tenfold.ops import array
from tenfold.ops.array import identity
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold.graph.tensor import Tensor

    Array = np.ndarray[Any, Any]


def compute_gradient(
    x: Any,
    x_shape: Any,
    y: Tensor,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Sequence[Any] | None = None,
    extra_feed_dict: Mapping[Any, Any] | None = None,
) -> Any:
    """(analytic, numeric) Jacobian of `y` by `x`, [elements of x, elements of y]; a list of pairs for a list of x.

    `x_init_value` is the point (default: random numbers of a fixed seed), `delta` the step size, `init_targets` are run
    first. A complex number counts as two. Blocks while the default session runs.
    """
    session = _session()
    for target in init_targets or ():
        session.run(target)
    several = isinstance(x, list)
    xs, shapes = (x, x_shape) if several else ([x], [x_shape])
    values = x_init_value if several and x_init_value is not None else [x_init_value] * len(xs)
    # An identity, so that the incoming gradient is always a tensor that can be fed.
    with device(y.op.device):
        source = array.constant(1.0, shape=y_shape, dtype=y.dtype.base_dtype)
        dy = identity(source)
    results = []
    for each, shape, value in zip(xs, shapes, values, strict=True):
        (dx,) = walker.gradients(y, each, grad_ys=dy)
        if dx is None:
            raise ValueError(f"{y.name} does not depend on {each.name}, or not by a gradient")
        data = _start(each, shape, value)
        feeds = dict(extra_feed_dict or {})
        analytic = _analytic(session, each, data, dx, source, y_shape, feeds)
        results.append((analytic, _numeric(session, each, data, y, y_shape, delta, feeds)))
    return results if several else results[0]


def compute_gradient_error(
    x: Any,
    x_shape: Any,
    y: Tensor,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Sequence[Any] | None = None,
    extra_feed_dict: Mapping[Any, Any] | None = None,
) -> float:
    """The largest difference between the two Jacobians of `compute_gradient`."""
    pairs = compute_gradient(x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict)
    error = 0.0
    for analytic, numeric in [pairs] if isinstance(pairs, tuple) else pairs:
        if analytic.size or numeric.size:
            most = float(np.fabs(analytic - numeric).max())
            # A NaN makes the result NaN.
            error = math.nan if math.isnan(most) else max(error, most)
    return error


def _session() -> Any:
    session = get_default_session()
    if session is None:
        raise ValueError("Cannot compute gradients: no default session; use `with sess.as_default():`")
    return session


def _start(x: Any, shape: Any, value: Any) -> Array:
    kind = x.dtype.base_dtype
    if value is not None:
        # Rows first, whatever the caller's order: the steps are taken in a flat view.
        return np.array(value, dtype=kind.as_numpy_dtype, order="C").reshape(shape)
    # A separate generator, so that NumPy's global random state does not change.
    generator = np.random.RandomState(1234)
    drawn = generator.random_sample(shape)
    if kind.is_complex:
        drawn = drawn + 1j * generator.random_sample(shape)
    return np.asarray(drawn, dtype=kind.as_numpy_dtype)


def _reals(values: Any, dtype: Any) -> Array:
    """A flat view of an array as real numbers."""
    flat = np.ascontiguousarray(values, dtype=dtype.base_dtype.as_numpy_dtype).reshape(-1)
    return flat.view(dtype.base_dtype.real_dtype.as_numpy_dtype)


def _analytic(session: Any, x: Any, data: Array, dx: Any, dy: Tensor, y_shape: Any, feeds: dict[Any, Any]) -> Array:
    upstream = np.zeros(y_shape, dtype=dy.dtype.as_numpy_dtype)
    columns = _reals(upstream, dy.dtype).size
    jacobian = np.zeros((_reals(data, x.dtype).size, columns), dtype=x.dtype.base_dtype.real_dtype.as_numpy_dtype)
    for column in range(columns):
        flat = _reals(np.zeros_like(upstream), dy.dtype)
        flat[column] = 1
        chosen = flat.view(upstream.dtype).reshape(upstream.shape)
        found = session.run(dx, {**feeds, x: data, dy: chosen})
        jacobian[:, column] = _reals(_dense(found, dx, data), x.dtype)
    if not columns:
        found = _dense(session.run(dx, {**feeds, x: data, dy: upstream}), dx, data)
        if found.shape != data.shape:
            raise ValueError(f"Empty gradient has wrong shape: expected {data.shape}, got {found.shape}")
        if np.any(found):
            raise ValueError("Empty tensor with nonzero gradients")
    return jacobian


def _dense(found: Any, dx: Any, data: Array) -> Array:
    if not isinstance(dx, IndexedSlices):
        return np.asarray(found)
    dense = np.zeros_like(data)
    np.add.at(dense, found.indices, found.values)
    return dense


def _numeric(session: Any, x: Any, data: Array, y: Tensor, y_shape: Any, delta: float, feeds: dict[Any, Any]) -> Array:
    kind = x.dtype.base_dtype
    size = _reals(data, kind).size
    columns = math.prod(y_shape) * (2 if y.dtype.is_complex else 1)
    jacobian = np.zeros((size, columns), dtype=kind.real_dtype.as_numpy_dtype)
    for row in range(size):
        ahead, behind = (_moved(data, kind, row, shift) for shift in (delta, -delta))
        difference = session.run(y, {**feeds, x: ahead}) - session.run(y, {**feeds, x: behind})
        if y.dtype.base_dtype == dtypes.bfloat16:
            difference = difference.astype(np.float32)
        scaled = np.ascontiguousarray(difference / np.asarray(2 * delta, dtype=difference.real.dtype)).reshape(-1)
        jacobian[row] = scaled.view(scaled.real.dtype)
    return jacobian


def _moved(data: Array, kind: Any, row: int, shift: float) -> Array:
    moved = np.array(data)
    flat = moved.reshape(-1).view(kind.real_dtype.as_numpy_dtype)
    flat[row] += shift
    return moved
