"""`tf.contrib.distributions.bijectors.Bijector`: the base, which keeps what was mapped to what.

Follows TensorFlow 1.15's python/ops/distributions/bijector_impl.py.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import tenfold as tf
from tenfold_core.tensor_shape import as_shape

if TYPE_CHECKING:
    from collections.abc import Iterator


def _snake_case(name: str) -> str:
    first = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name.lstrip("_"))
    return re.sub("([a-z0-9])([A-Z])", r"\1_\2", first).lower()


class Bijector:
    """y = forward(x), x = inverse(y).

    A subclass gives `_forward`, `_inverse` and one of the two log determinants, per element if `*_min_event_ndims` is
    0. Tensors that were mapped are known again, so that the inverse of a sample is what it was made from.
    """

    def __init__(
        self,
        graph_parents: list[Any] | None = None,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        dtype: Any = None,
        forward_min_event_ndims: int | None = None,
        inverse_min_event_ndims: int | None = None,
        name: str | None = None,
    ) -> None:
        """Raises ValueError without an event rank or for a negative one, TypeError for one that is not an integer."""
        given = {"forward": forward_min_event_ndims, "inverse": inverse_min_event_ndims}
        if forward_min_event_ndims is None and inverse_min_event_ndims is None:
            raise ValueError("Must specify at least one of `forward_min_event_ndims` and `inverse_min_event_ndims`.")
        for word, value in given.items():
            if value is None:
                continue
            if not isinstance(value, int):
                raise TypeError(f"Expected {word}_min_event_ndims to be of type int, got {type(value).__name__}")
            if value < 0:
                raise ValueError(f"{word}_min_event_ndims must be a non-negative integer.")
        for number, parent in enumerate(graph_parents or []):
            if parent is None or not tf.is_tensor(parent):
                raise ValueError(f"Graph parent item {number} is not a Tensor; {parent}.")
        least = inverse_min_event_ndims if forward_min_event_ndims is None else forward_min_event_ndims
        assert least is not None
        self._forward_min_event_ndims = least
        self._inverse_min_event_ndims = least if inverse_min_event_ndims is None else inverse_min_event_ndims
        self._graph_parents = list(graph_parents or [])
        self._is_constant_jacobian = is_constant_jacobian
        self._validate_args = validate_args
        self._dtype = dtype
        self._name = name or _snake_case(type(self).__name__)
        #: id of a tensor → that tensor, so that the id stays its own, and what it was mapped to.
        self._from_x: dict[int, tuple[Any, Any]] = {}
        self._from_y: dict[int, tuple[Any, Any]] = {}

    # --- what a subclass gives ---

    def _forward(self, x: Any) -> Any:
        raise NotImplementedError("forward not implemented.")

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError("inverse not implemented")

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        raise NotImplementedError("forward_log_det_jacobian not implemented.")

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        raise NotImplementedError("inverse_log_det_jacobian not implemented.")

    def _forward_event_shape(self, input_shape: Any) -> Any:
        return input_shape

    def _inverse_event_shape(self, output_shape: Any) -> Any:
        return output_shape

    def _forward_event_shape_tensor(self, input_shape: Any) -> Any:
        return input_shape

    def _inverse_event_shape_tensor(self, output_shape: Any) -> Any:
        return output_shape

    # --- properties ---

    @property
    def graph_parents(self) -> list[Any]:
        """The tensors that the bijector is made of."""
        return self._graph_parents

    @property
    def forward_min_event_ndims(self) -> int:
        """The least rank of an x that is one event."""
        return self._forward_min_event_ndims

    @property
    def inverse_min_event_ndims(self) -> int:
        """The least rank of a y that is one event."""
        return self._inverse_min_event_ndims

    @property
    def is_constant_jacobian(self) -> bool:
        """Whether the Jacobian is the same everywhere."""
        return self._is_constant_jacobian

    @property
    def validate_args(self) -> bool:
        """Whether values are checked in each step."""
        return self._validate_args

    @property
    def dtype(self) -> Any:
        """The type of values, or None for any."""
        return self._dtype

    @property
    def name(self) -> str:
        """The name scope."""
        return self._name

    # --- mapping ---

    def forward(self, x: Any, name: str = "forward") -> Any:
        """y. Raises TypeError for another type."""
        with self._name_scope(name):
            x = self._converted(x, "x")
            if id(x) not in self._from_x:
                self._keep(x, self._forward(x))
            return self._from_x[id(x)][1]

    def inverse(self, y: Any, name: str = "inverse") -> Any:
        """x. Raises TypeError for another type."""
        with self._name_scope(name):
            y = self._converted(y, "y")
            if id(y) not in self._from_y:
                self._keep(self._inverse(y), y)
            return self._from_y[id(y)][1]

    def _keep(self, x: Any, y: Any) -> None:
        self._from_x[id(x)] = (x, y)
        self._from_y[id(y)] = (y, x)

    def forward_log_det_jacobian(self, x: Any, event_ndims: int, name: str = "forward_log_det_jacobian") -> Any:
        """log |det dy / dx| of events of that rank. Raises ValueError for a rank that is too low."""
        with self._name_scope(name):
            x = self._converted(x, "x")
            self._check_event_ndims(event_ndims, self.forward_min_event_ndims)
            try:
                return _over_event(x, self._forward_log_det_jacobian(x), self.forward_min_event_ndims, event_ndims)
            except NotImplementedError as error:
                y = self._from_x[id(x)][1] if id(x) in self._from_x else self._forward(x)
                try:
                    found = -self._inverse_log_det_jacobian(y)
                except NotImplementedError:
                    raise error from None
                return _over_event(y, found, self.inverse_min_event_ndims, event_ndims)

    def inverse_log_det_jacobian(self, y: Any, event_ndims: int, name: str = "inverse_log_det_jacobian") -> Any:
        """log |det dx / dy| of events of that rank. Raises ValueError for a rank that is too low."""
        with self._name_scope(name):
            y = self._converted(y, "y")
            self._check_event_ndims(event_ndims, self.inverse_min_event_ndims)
            try:
                return _over_event(y, self._inverse_log_det_jacobian(y), self.inverse_min_event_ndims, event_ndims)
            except NotImplementedError as error:
                x = self._from_y[id(y)][1] if id(y) in self._from_y else self._inverse(y)
                try:
                    found = -self._forward_log_det_jacobian(x)
                except NotImplementedError:
                    raise error from None
                return _over_event(x, found, self.forward_min_event_ndims, event_ndims)

    # --- shapes ---

    def forward_event_shape(self, input_shape: Any) -> Any:
        """The shape of y for that of x, as far as known."""
        return self._forward_event_shape(as_shape(input_shape))

    def inverse_event_shape(self, output_shape: Any) -> Any:
        """The shape of x for that of y, as far as known."""
        return self._inverse_event_shape(as_shape(output_shape))

    def forward_event_shape_tensor(self, input_shape: Any, name: str = "forward_event_shape_tensor") -> Any:
        """The shape of y, a vector of type int32."""
        with self._name_scope(name):
            shape = tf.convert_to_tensor(input_shape, dtype=tf.int32, name="input_shape")
            return self._forward_event_shape_tensor(shape)

    def inverse_event_shape_tensor(self, output_shape: Any, name: str = "inverse_event_shape_tensor") -> Any:
        """The shape of x, a vector of type int32."""
        with self._name_scope(name):
            shape = tf.convert_to_tensor(output_shape, dtype=tf.int32, name="output_shape")
            return self._inverse_event_shape_tensor(shape)

    # --- helpers ---

    @contextmanager
    def _name_scope(self, name: str) -> Iterator[str]:
        with tf.name_scope(self.name), tf.name_scope(name) as scope:
            yield scope

    def _converted(self, value: Any, name: str) -> Any:
        value = tf.convert_to_tensor(value, name=name)
        if self.dtype is not None and tf.as_dtype(self.dtype).base_dtype != value.dtype.base_dtype:
            raise TypeError(f"Input had dtype {self.dtype} but expected {value.dtype}.")
        return value

    def _check_event_ndims(self, event_ndims: Any, least: int) -> None:
        known = event_ndims if isinstance(event_ndims, int) else tf.get_static_value(tf.convert_to_tensor(event_ndims))
        if known is None or int(known) != known:
            raise ValueError("event_ndims must be an integer that is known when the graph is built")
        if known < least:
            raise ValueError(f"event_ndims ({int(known)}) must be larger than min_event_ndims ({least})")


def _over_event(value: Any, jacobian: Any, least: int, event_ndims: Any) -> Any:
    """The log determinants of parts of rank `least` summed over events of rank `event_ndims`."""
    count = int(event_ndims) - least
    if not count:
        return jacobian
    rank = tf.rank(value)
    ones = tf.ones(tf.shape(value)[rank - int(event_ndims) : rank - least], jacobian.dtype)
    return tf.reduce_sum(ones * jacobian, axis=list(range(-count, 0)))
