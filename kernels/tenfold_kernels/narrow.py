"""Kernels for narrow floats, bfloat16 and float8: inputs become float32, outputs are rounded back.

One rule for every op that has a float32 kernel and takes and gives tensors: TensorFlow's own kernels compute bfloat16
in float, too. Ops that hold references, resources or variants write their kernels themselves, and kernels that only
move elements accept the narrow types as they are. Called by registry.py.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tenfold_core import dtypes, opdefs
from tenfold_core.dtypes import DType
from tenfold_kernels.typesets import NARROW

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    #: registry.Builder
    _Builder: TypeAlias = Callable[[Any], Callable[..., Any]]

_OPAQUE = (dtypes.resource, dtypes.variant)


def wide_attrs(op: str, attrs: Mapping[str, Any]) -> dict[str, Any] | None:
    """`attrs` with float32 for every narrow type; None if there is no narrow type or `op` takes more than tensors."""
    wide = {name: _wide(value) for name, value in attrs.items()}
    if all(wide[name] is attrs[name] for name in wide):
        return None
    definition = opdefs.get(op)
    if any(arg.is_ref or arg.type in _OPAQUE for arg in (*definition.inputs, *definition.outputs)):
        return None
    return wide


def _wide(value: Any) -> Any:
    if isinstance(value, DType):
        return dtypes.float32 if value in NARROW else value
    if isinstance(value, (list, tuple)) and any(isinstance(item, DType) and item in NARROW for item in value):
        return type(value)(_wide(item) for item in value)
    return value


def around(builder: _Builder, attrs: Mapping[str, Any]) -> _Builder:
    """A builder of the narrow node from one of the wide node, whose attributes are `attrs`."""

    def build(node: Any) -> Callable[..., Any]:
        compute = builder(
            dataclasses.replace(
                node,
                attrs=attrs,
                input_types=tuple(_wide(dtype) for dtype in node.input_types),
                output_types=tuple(_wide(dtype) for dtype in node.output_types),
            )
        )
        wide = dtypes.float32.as_numpy_dtype
        widen = tuple(dtype in NARROW for dtype in node.input_types)
        narrow = tuple(dtype.as_numpy_dtype if dtype in NARROW else None for dtype in node.output_types)

        def widened(*inputs: Any) -> Any:
            found = compute(*(x.astype(wide) if w else x for x, w in zip(inputs, widen, strict=True)))
            if len(narrow) != 1:
                return found and tuple(y.astype(n) if n else y for y, n in zip(found, narrow, strict=True))
            return found.astype(narrow[0]) if narrow[0] else found

        return widened

    return build
