"""Bijectors made of others, or of functions: Chain, Invert, Inline.

Follows TensorFlow 1.15's contrib/distributions/python/ops/bijectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.contrib.distributions.bijectors.bijector import Bijector

if TYPE_CHECKING:
    from collections.abc import Sequence


class Chain(Bijector):
    """The bijectors one after the other, the last first: Chain([f, g]) is f(g(x))."""

    def __init__(
        self, bijectors: Sequence[Bijector] = (), validate_args: bool = False, name: str | None = None
    ) -> None:
        """Raises ValueError for bijectors of different types."""
        self._bijectors = tuple(bijectors)
        kinds = {each.dtype for each in self._bijectors if each.dtype is not None}
        if len(kinds) > 1:
            raise ValueError(f"incompatible dtypes: {sorted(str(kind) for kind in kinds)}")
        super().__init__(
            graph_parents=[parent for each in self._bijectors for parent in each.graph_parents],
            forward_min_event_ndims=max((each.forward_min_event_ndims for each in self._bijectors), default=0),
            inverse_min_event_ndims=max((each.inverse_min_event_ndims for each in self._bijectors), default=0),
            is_constant_jacobian=all(each.is_constant_jacobian for each in self._bijectors),
            validate_args=validate_args,
            dtype=next(iter(kinds), None),
            name=name
            or "_of_".join(["chain", *(each.name for each in self._bijectors)] if bijectors else ["identity"]),
        )

    @property
    def bijectors(self) -> tuple[Bijector, ...]:
        """The bijectors."""
        return self._bijectors

    def _forward_event_shape(self, input_shape: Any) -> Any:
        for each in reversed(self._bijectors):
            input_shape = each.forward_event_shape(input_shape)
        return input_shape

    def _inverse_event_shape(self, output_shape: Any) -> Any:
        for each in self._bijectors:
            output_shape = each.inverse_event_shape(output_shape)
        return output_shape

    def _forward_event_shape_tensor(self, input_shape: Any) -> Any:
        for each in reversed(self._bijectors):
            input_shape = each.forward_event_shape_tensor(input_shape)
        return input_shape

    def _inverse_event_shape_tensor(self, output_shape: Any) -> Any:
        for each in self._bijectors:
            output_shape = each.inverse_event_shape_tensor(output_shape)
        return output_shape

    def _forward(self, x: Any) -> Any:
        for each in reversed(self._bijectors):
            x = each.forward(x)
        return x

    def _inverse(self, y: Any) -> Any:
        for each in self._bijectors:
            y = each.inverse(y)
        return y

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        total: Any = 0.0
        for each in reversed(self._bijectors):
            total += each.forward_log_det_jacobian(x, event_ndims=self.forward_min_event_ndims)
            x = each.forward(x)
        return total

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        total: Any = 0.0
        for each in self._bijectors:
            total += each.inverse_log_det_jacobian(y, event_ndims=self.inverse_min_event_ndims)
            y = each.inverse(y)
        return total


class Invert(Bijector):
    """A bijector the other way round."""

    def __init__(self, bijector: Bijector, validate_args: bool = False, name: str | None = None) -> None:
        self._bijector = bijector
        super().__init__(
            graph_parents=bijector.graph_parents,
            forward_min_event_ndims=bijector.inverse_min_event_ndims,
            inverse_min_event_ndims=bijector.forward_min_event_ndims,
            is_constant_jacobian=bijector.is_constant_jacobian,
            validate_args=validate_args,
            dtype=bijector.dtype,
            name=name or f"invert_{bijector.name}",
        )

    @property
    def bijector(self) -> Bijector:
        """The bijector itself."""
        return self._bijector

    def _forward_event_shape(self, input_shape: Any) -> Any:
        return self._bijector.inverse_event_shape(input_shape)

    def _inverse_event_shape(self, output_shape: Any) -> Any:
        return self._bijector.forward_event_shape(output_shape)

    def _forward_event_shape_tensor(self, input_shape: Any) -> Any:
        return self._bijector.inverse_event_shape_tensor(input_shape)

    def _inverse_event_shape_tensor(self, output_shape: Any) -> Any:
        return self._bijector.forward_event_shape_tensor(output_shape)

    def _forward(self, x: Any) -> Any:
        return self._bijector.inverse(x)

    def _inverse(self, y: Any) -> Any:
        return self._bijector.forward(y)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return self._bijector.inverse_log_det_jacobian(x, event_ndims=self.forward_min_event_ndims)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return self._bijector.forward_log_det_jacobian(y, event_ndims=self.inverse_min_event_ndims)


def _missing(name: str) -> Any:
    def function(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"Inline bijector was made without {name}")

    return function


class Inline(Bijector):
    """A bijector of functions."""

    def __init__(
        self,
        forward_fn: Any = None,
        inverse_fn: Any = None,
        inverse_log_det_jacobian_fn: Any = None,
        forward_log_det_jacobian_fn: Any = None,
        forward_event_shape_fn: Any = None,
        forward_event_shape_tensor_fn: Any = None,
        inverse_event_shape_fn: Any = None,
        inverse_event_shape_tensor_fn: Any = None,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        forward_min_event_ndims: int | None = None,
        inverse_min_event_ndims: int | None = None,
        name: str = "inline",
    ) -> None:
        super().__init__(
            forward_min_event_ndims=forward_min_event_ndims,
            inverse_min_event_ndims=inverse_min_event_ndims,
            is_constant_jacobian=is_constant_jacobian,
            validate_args=validate_args,
            name=name,
        )
        given = {
            "_forward": forward_fn or _missing("forward_fn"),
            "_inverse": inverse_fn or _missing("inverse_fn"),
            "_inverse_log_det_jacobian": inverse_log_det_jacobian_fn or _missing("inverse_log_det_jacobian_fn"),
            "_forward_log_det_jacobian": forward_log_det_jacobian_fn or _missing("forward_log_det_jacobian_fn"),
            "_forward_event_shape": forward_event_shape_fn,
            "_forward_event_shape_tensor": forward_event_shape_tensor_fn,
            "_inverse_event_shape": inverse_event_shape_fn,
            "_inverse_event_shape_tensor": inverse_event_shape_tensor_fn,
        }
        for attribute, function in given.items():
            if function is not None:
                setattr(self, attribute, function)
