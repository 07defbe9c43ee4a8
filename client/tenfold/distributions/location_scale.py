"""What distributions with a location and a scale share. Used by normal.py, laplace.py, student_t.py and contrib's."""

from __future__ import annotations

from typing import Any

import tenfold as tf


class LocationScale:
    """Has the tensors `loc` and `scale`, of one floating type."""

    _loc: Any
    _scale: Any

    def _set_location_and_scale(self, loc: Any, scale: Any, validate_args: bool) -> None:
        """Keeps both; with `validate_args` a step fails where the scale is not positive."""
        with tf.control_dependencies([tf.assert_positive(scale)] if validate_args else []):
            self._loc = tf.identity(loc, name="loc")
            self._scale = tf.identity(scale, name="scale")
        tf.assert_same_float_dtype([self._loc, self._scale])

    @property
    def loc(self) -> Any:
        """The location."""
        return self._loc

    @property
    def scale(self) -> Any:
        """The scale."""
        return self._scale

    def _z(self, x: Any) -> Any:
        """x as if loc were 0 and scale 1."""
        with tf.name_scope("standardize"):
            return (x - self._loc) / self._scale
