"""What the parameters and values of distributions are checked for, and logits and probabilities of each other.

Checks are ops: they hold what they are given back until they have passed. Follows TensorFlow 1.15's
python/ops/distributions/util.py.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

import tenfold as tf


def checked(assertions: list[Any], x: Any) -> Any:
    """`x` after the assertions; those that are None passed when the graph was built."""
    with tf.control_dependencies([each for each in assertions if each is not None]):
        return tf.identity(x)


def pick_vector(cond: Any, true_vector: Any, false_vector: Any, name: str = "pick_vector") -> Any:
    """One of two vectors. Raises TypeError for a condition that is no bool, and for different types."""
    with tf.name_scope(name):
        cond = tf.convert_to_tensor(cond, name="cond")
        if cond.dtype != tf.bool:
            raise TypeError(f"{cond}.dtype={cond.dtype} which is not {tf.bool}")
        known = tf.get_static_value(cond)
        if known is not None:
            return true_vector if known else false_vector
        first = tf.convert_to_tensor(true_vector, name="true_vector")
        second = tf.convert_to_tensor(false_vector, name="false_vector")
        if first.dtype != second.dtype:
            raise TypeError(f"{first}.dtype={first.dtype} does not match {second}.dtype={second.dtype}")
        count = tf.shape(first)[0]
        start, size = tf.where_v2(cond, 0, count), tf.where_v2(cond, count, -1)
        return tf.slice(tf.concat([first, second], 0), [start], [size])


def gen_new_seed(seed: int | None, salt: str) -> int | None:
    """Another seed, which `seed` and `salt` decide."""
    if seed is None:
        return None
    digest = hashlib.md5(f"{seed}{salt}".encode(), usedforsecurity=False).hexdigest()
    return int(digest[:8], 16) & 0x7FFFFFFF


def get_logits_and_probs(
    logits: Any = None,
    probs: Any = None,
    multidimensional: bool = False,
    validate_args: bool = False,
    name: str = "get_logits_and_probs",
    dtype: Any = None,
) -> tuple[Any, Any]:
    """Both from one of them: of each element on its own, or of the last dimension if `multidimensional`.

    Raises ValueError unless exactly one is given, TypeError if it is not of floating type.
    """
    with tf.name_scope(name):
        if (probs is None) == (logits is None):
            raise ValueError("Must pass probs or logits, but not both.")
        if probs is None:
            logits = tf.convert_to_tensor(logits, name="logits", dtype=dtype)
            if not logits.dtype.is_floating:
                raise TypeError("logits must having floating type.")
            if not multidimensional:
                return logits, tf.sigmoid(logits, name="probs")
            if validate_args:
                logits = embed_check_categorical_event_shape(logits)
            return logits, tf.nn.softmax(logits, name="probs")
        probs = tf.convert_to_tensor(probs, name="probs", dtype=dtype)
        if not probs.dtype.is_floating:
            raise TypeError("probs must having floating type.")
        if validate_args:
            with tf.name_scope("validate_probs"):
                one = tf.constant(1.0, probs.dtype)
                checks = [tf.assert_non_negative(probs)]
                if multidimensional:
                    probs = embed_check_categorical_event_shape(probs)
                    total = tf.reduce_sum(probs, -1)
                    checks.append(tf.assert_near(total, one, message="probs does not sum to 1."))
                else:
                    message = "probs has components greater than 1."
                    checks.append(tf.assert_less_equal(probs, one, message=message))
                probs = checked(checks, probs)
        with tf.name_scope("logits"):
            logits = tf.log(probs)
            return (logits if multidimensional else logits - tf.log1p(-1.0 * probs)), probs


def _most(dtype: Any) -> int:
    """The largest integer up to which the type holds every integer. Raises TypeError for another type."""
    if dtype.is_floating:
        return int(2 ** (np.finfo(dtype.as_numpy_dtype).nmant + 1))
    if dtype.is_integer:
        return int(np.iinfo(dtype.as_numpy_dtype).max)
    if dtype.base_dtype == tf.bool:
        return 1
    raise TypeError(f"Unrecognized dtype: {dtype.name}")


def embed_check_categorical_event_shape(
    categorical_param: Any, name: str = "embed_check_categorical_event_shape"
) -> Any:
    """The parameter, whose last dimension must be at least 2 and no larger than its type can count."""
    with tf.name_scope(name):
        x = tf.convert_to_tensor(categorical_param, name="categorical_param")
        if not x.dtype.is_floating:
            raise TypeError(f"Unable to validate size of unrecognized dtype ({x.dtype.name}).")
        most = _most(x.dtype.base_dtype)
        try:
            shape = x.get_shape().with_rank_at_least(1)
        except ValueError:
            raise ValueError("A categorical-distribution parameter must have at least 1 dimension.") from None
        size = None if shape.ndims is None else shape[-1].value
        two = "A categorical-distribution parameter must have at least 2 events."
        if size is not None:
            if size < 2:
                raise ValueError(two)
            if size > most:
                raise ValueError(
                    f"Number of classes exceeds `dtype` precision, i.e., {x.dtype.name} implies shape ({size}) cannot "
                    f"exceed {most}."
                )
            return x
        last = tf.shape(x, name="x_shape")[-1]
        message = f"Number of classes exceeds `dtype` precision, i.e., {x.dtype.name} dtype cannot exceed {most} shape."
        rank = "A categorical-distribution parameter must have at least 1 dimension."
        return checked(
            [
                tf.assert_rank_at_least(x, 1, message=rank),
                tf.assert_greater_equal(last, 2, message=two),
                tf.assert_less_equal(last, min(most, 2**31 - 1), message=message),
            ],
            x,
        )


def assert_integer_form(x: Any, message: str | None = None, int_dtype: Any = None) -> Any:
    """An assertion that a tensor of floating type holds integers; None for one of integer type."""
    x = tf.convert_to_tensor(x, name="x")
    if x.dtype.is_integer:
        return None
    whole = int_dtype or {tf.float16: tf.int16, tf.float32: tf.int32, tf.float64: tf.int64}.get(x.dtype.base_dtype)
    if whole is None:
        raise TypeError(f"Unrecognized type {x.dtype.name}")
    message = message or f"{x} has non-integer components"
    return tf.assert_equal(x, tf.cast(tf.cast(x, whole), x.dtype), message=message)


def embed_check_nonnegative_integer_form(x: Any, name: str = "embed_check_nonnegative_integer_form") -> Any:
    """`x`, which must hold integers that are not negative."""
    with tf.name_scope(name):
        x = tf.convert_to_tensor(x, name="x")
        checks = [tf.assert_non_negative(x, message=f"'{x}' must be non-negative.")]
        checks.append(assert_integer_form(x, message=f"'{x}' cannot contain fractional components."))
        return checked(checks, x)


def embed_check_integer_casting_closed(
    x: Any, target_dtype: Any, assert_nonnegative: bool = True, name: str = "embed_check_casting_closed"
) -> Any:
    """`x`, which must stay the same when it is cast to the type, one of both being a type of integers."""
    with tf.name_scope(name):
        x = tf.convert_to_tensor(x, name="x")
        target = tf.as_dtype(target_dtype)
        whole = [each.is_integer or each.base_dtype == tf.bool for each in (x.dtype, target)]
        if not whole[0] and not x.dtype.is_floating:
            raise TypeError(f"{x.dtype.name}.dtype must be floating- or integer-type.")
        if not whole[1] and not target.is_floating:
            raise TypeError(f"target_dtype ({target.name}) must be floating- or integer-type.")
        if not any(whole):
            raise TypeError(
                f"At least one of {x}.dtype ({x.dtype.name}) and target_dtype ({target.name}) must be integer-type."
            )
        checks = [tf.assert_non_negative(x, message="Elements must be non-negative.")] if assert_nonnegative else []
        if x.dtype.is_floating:
            message = f"Elements must be {target.name}-equivalent."
            checks.append(assert_integer_form(x, int_dtype=target, message=message))
        else:
            most = _most(target)
            if _most(x.dtype) > most:
                checks.append(tf.assert_less_equal(x, most, message=f"Elements cannot exceed {most}."))
            least = 0 if target.base_dtype in (tf.bool, tf.uint8, tf.uint16) else -most
            signed = x.dtype.base_dtype not in (tf.bool, tf.uint8, tf.uint16)
            if not assert_nonnegative and signed and -_most(x.dtype) < least:
                checks.append(tf.assert_greater_equal(x, least, message=f"Elements cannot be smaller than {least}."))
        return checked(checks, x) if checks else x


def log_combinations(n: Any, counts: Any, name: str = "log_combinations") -> Any:
    """The logarithm of the multinomial coefficient of `counts`, whose last dimension sums to `n`."""
    with tf.name_scope(name):
        n = tf.convert_to_tensor(n, name="n")
        counts = tf.convert_to_tensor(counts, name="counts")
        return tf.lgamma(n + 1) - tf.reduce_sum(tf.lgamma(counts + 1), axis=[-1])


def nan_where_not(defined: Any, value: Any, shape: Any) -> Any:
    """The value where it is defined, else NaN; `shape` is that of the result."""
    nan = tf.fill(shape, np.array(np.nan, value.dtype.as_numpy_dtype), name="nan")
    return tf.where_v2(defined, value, nan)


def fill_triangular(x: Any, upper: bool = False, name: str | None = None) -> Any:
    """Triangular matrices (…, N, N) of vectors (…, N (N + 1) / 2). Raises ValueError for another size."""
    with tf.name_scope(name, "fill_triangular"):
        x = tf.convert_to_tensor(x, name="x")
        size = x.shape.with_rank_at_least(1)[-1].value
        if size is None:
            raise ValueError("The size of the last dimension must be known to make triangular matrices of it")
        side = int(np.sqrt(0.25 + 2.0 * size) - 0.5)
        if side * (side + 1) // 2 != size:
            raise ValueError(f"Input right-most shape ({size}) does not correspond to a triangular matrix.")
        last = [tf.rank(x) - 1 if x.shape.ndims is None else x.shape.ndims - 1]
        parts = [x, tf.reverse(x[..., side:], axis=last)] if upper else [x[..., side:], tf.reverse(x, axis=last)]
        square = tf.reshape(tf.concat(parts, -1), tf.concat([tf.shape(x)[:-1], [side, side]], axis=0))
        square.set_shape(x.shape[:-1].concatenate([side, side]))
        return tf.matrix_band_part(square, 0 if upper else -1, -1 if upper else 0)
