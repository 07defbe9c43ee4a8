"""Affine bijectors: y = scale · x + shift for vectors, and y = scale * x + shift for elements.

# B batch, K elements
The scales are in distributions/scales.py. Follows TensorFlow 1.15's contrib/distributions/python/ops/bijectors/
affine.py and affine_scalar.py.
"""

from __future__ import annotations

from typing import Any

import tenfold as tf
from tenfold.contrib.distributions.bijectors.bijector import Bijector
from tenfold.contrib.distributions.scales import DiagonalScale, LowRankScale, Scale, TriangularScale
from tenfold.distributions.parameters import checked


class Affine(Bijector):
    """scale · x + shift over vectors (…, K).

    The scale is the sum of `scale_identity_multiplier` times the identity, `scale_diag` and `scale_tril`, to which a
    low rank part may be added unless there is a `scale_tril`; the identity if none is given.
    """

    def __init__(
        self,
        shift: Any = None,
        scale_identity_multiplier: Any = None,
        scale_diag: Any = None,
        scale_tril: Any = None,
        scale_perturb_factor: Any = None,
        scale_perturb_diag: Any = None,
        validate_args: bool = False,
        name: str = "affine",
        dtype: Any = None,
    ) -> None:
        """Raises ValueError for a low rank part without its factor, or with `scale_tril`."""
        if scale_perturb_diag is not None and scale_perturb_factor is None:
            raise ValueError("scale_perturb_diag is given without scale_perturb_factor")
        if scale_perturb_factor is not None and scale_tril is not None:
            raise ValueError("scale_perturb_factor is not taken together with scale_tril")
        with tf.name_scope(name):
            given = (shift, scale_identity_multiplier, scale_diag, scale_tril, scale_perturb_factor)
            kinds = [tf.convert_to_tensor(each).dtype for each in given if each is not None]
            kind = tf.as_dtype(dtype or (kinds[0] if kinds else tf.float32)).base_dtype
            self._shift = None if shift is None else tf.convert_to_tensor(shift, dtype=kind, name="shift")
            #: The multiplier of the identity, while nothing says how large that is; else None.
            self._multiplier: Any = None
            self._scale: Scale | None = None
            diagonal = None if scale_diag is None else tf.convert_to_tensor(scale_diag, dtype=kind, name="scale_diag")
            more = None
            if scale_identity_multiplier is not None:
                more = tf.convert_to_tensor(scale_identity_multiplier, dtype=kind, name="scale_identity_multiplier")
            if scale_tril is not None:
                lower = tf.convert_to_tensor(scale_tril, dtype=kind, name="scale_tril")
                on_diagonal = tf.matrix_diag_part(lower)
                if diagonal is not None:
                    on_diagonal = on_diagonal + diagonal
                if more is not None:
                    on_diagonal = on_diagonal + more[..., tf.newaxis]
                lower = tf.matrix_band_part(tf.matrix_set_diag(lower, on_diagonal), -1, 0)
                self._scale = TriangularScale(self._nonzero(lower, on_diagonal, validate_args))
            elif diagonal is not None or scale_perturb_factor is not None:
                if diagonal is None:
                    ones = tf.ones_like(tf.convert_to_tensor(scale_perturb_factor, dtype=kind)[..., 0])
                    diagonal = ones if more is None else ones * more[..., tf.newaxis]
                elif more is not None:
                    diagonal = diagonal + more[..., tf.newaxis]
                base = DiagonalScale(self._nonzero(diagonal, diagonal, validate_args))
                self._scale = base
                if scale_perturb_factor is not None:
                    self._scale = LowRankScale(base, scale_perturb_factor, scale_perturb_diag)
            else:
                self._multiplier = tf.constant(1.0, kind) if more is None else self._nonzero(more, more, validate_args)
        super().__init__(
            graph_parents=[] if self._shift is None else [self._shift],
            is_constant_jacobian=True,
            validate_args=validate_args,
            dtype=kind,
            forward_min_event_ndims=1,
            name=name,
        )

    @staticmethod
    def _nonzero(value: Any, diagonal: Any, validate_args: bool) -> Any:
        if not validate_args:
            return value
        return checked([tf.assert_positive(tf.abs(diagonal), message="diagonal part must be non-zero")], value)

    @property
    def shift(self) -> Any:
        """What is added, or None."""
        return self._shift

    @property
    def scale(self) -> Any:
        """The scale, or the multiplier of the identity."""
        return self._multiplier if self._scale is None else self._scale

    def _times(self) -> Any:
        """The multiplier, shaped to go with (…, K)."""
        return self._multiplier if self._multiplier.shape.ndims == 0 else self._multiplier[..., tf.newaxis]

    def _forward(self, x: Any) -> Any:
        y = x * self._times() if self._scale is None else self._scale.matvec(x)
        return y if self._shift is None else y + self._shift

    def _inverse(self, y: Any) -> Any:
        x = y if self._shift is None else y - self._shift
        return x / self._times() if self._scale is None else self._scale.solvevec(x)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        if self._scale is not None:
            return self._scale.log_abs_determinant()
        return tf.cast(tf.shape(x)[-1], x.dtype) * tf.log(tf.abs(self._multiplier))


class AffineScalar(Bijector):
    """scale * x + shift over elements."""

    def __init__(
        self, shift: Any = None, scale: Any = None, validate_args: bool = False, name: str = "affine_scalar"
    ) -> None:
        with tf.name_scope(name):
            self._shift = None if shift is None else tf.convert_to_tensor(shift, name="shift")
            self._scale = None if scale is None else tf.convert_to_tensor(scale, name="scale")
            if validate_args and self._scale is not None:
                nonzero = tf.assert_none_equal(self._scale, tf.zeros_like(self._scale), message="Scale must be nonzero")
                self._scale = checked([nonzero], self._scale)
        super().__init__(forward_min_event_ndims=0, is_constant_jacobian=True, validate_args=validate_args, name=name)

    @property
    def shift(self) -> Any:
        """What is added, or None."""
        return self._shift

    @property
    def scale(self) -> Any:
        """The factor, or None."""
        return self._scale

    def _forward(self, x: Any) -> Any:
        y = x if self._scale is None else x * self._scale
        return y if self._shift is None else y + self._shift

    def _inverse(self, y: Any) -> Any:
        x = y if self._shift is None else y - self._shift
        return x if self._scale is None else x / self._scale

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return tf.constant(0.0, x.dtype) if self._scale is None else tf.log(tf.abs(self._scale))
