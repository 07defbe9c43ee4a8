"""Public functions that are exactly one operation: `tf.cholesky` is Cholesky, with the op's own arguments.

The function has the name of the op type in lower case, with underscores between the words. It is built from the op
definition at its first use: inputs in order, then the attributes that the inputs do not decide, those without a default
first, as TensorFlow generates them. Functions of more than one operation, or with extra checks, are written in the
family's other files. ops/raw_ops.py gives every op under its own name.
"""

from __future__ import annotations

import functools
import inspect
import re
from typing import TYPE_CHECKING, Any

from tenfold.graph.op_builder import apply_op
from tenfold.named import named
from tenfold_core import opdefs

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core.op_def import OpDef

#: Where a word begins: at a capital after a small letter, at the last of several capitals.
_FIRST_OF_WORD = re.compile("([a-z])([A-Z])")
_LAST_OF_CAPITALS = re.compile("([A-Z]+)([A-Z][a-z])")
#: Attributes that ops got after TensorFlow 1.15; by keyword only, so that positions stay what they were.
_LATER = ("explicit_paddings",)
_AXIS = {"reduction_indices": "axis"}
#: Op type → the name in its definition → what tf.raw_ops calls the argument.
_RAW_NAMES: dict[str, dict[str, str]] = {
    **dict.fromkeys(("All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum"), _AXIS),
    "Split": {"split_dim": "axis"},
    "SplitV": {"split_dim": "axis"},
    "ExpandDims": {"dim": "axis"},
    "Select": {"t": "x", "e": "y"},
    "Squeeze": {"squeeze_dims": "axis"},
    "Where": {"input": "condition"},
}


def signature_of(op_def: OpDef, *, keyword_only: bool = False) -> inspect.Signature:
    """The arguments of the Python function of an op: its inputs, the attributes to give, `name`."""
    inferred = {attr for arg in op_def.inputs for attr in (arg.type_attr, arg.number_attr, arg.type_list_attr) if attr}
    attrs = [attr for attr in op_def.attrs if attr.name not in inferred]
    free = inspect.Parameter.KEYWORD_ONLY
    place = free if keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(arg.name, place) for arg in op_def.inputs]
    parameters += [inspect.Parameter(attr.name, place) for attr in attrs if not attr.has_default]
    parameters += [
        inspect.Parameter(attr.name, place, default=attr.default)
        for attr in attrs
        if attr.has_default and attr.name not in _LATER
    ]
    parameters.append(inspect.Parameter("name", place, default=None))
    parameters += [inspect.Parameter(attr.name, free, default=attr.default) for attr in attrs if attr.name in _LATER]
    return inspect.Signature(parameters)


def function_of(public: str, op_type: str, *, keyword_only: bool = False) -> Callable[..., Any]:
    """The function `public` that adds an operation of type `op_type`. Raises NotFoundError for an unknown op."""
    signature = signature_of(opdefs.get(op_type), keyword_only=keyword_only)
    raw_names = _RAW_NAMES.get(op_type, {}) if keyword_only else {}
    defined_names = {raw: defined for defined, raw in raw_names.items()}
    signature = signature.replace(
        parameters=[each.replace(name=raw_names.get(each.name, each.name)) for each in signature.parameters.values()]
    )

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{public}() {error}; its arguments are {signature}") from None
        name = given.pop("name", None)
        return apply_op(op_type, name, **{defined_names.get(each, each): value for each, value in given.items()})

    function.__signature__ = signature  # type: ignore[attr-defined]
    doc = f"The operation {op_type}; outputs as its definition says, several of them as a named tuple."
    return named(function, public, doc)


def public_name(op_type: str) -> str:
    """`batch_to_space_nd` of BatchToSpaceND, `fft2d` of FFT2D: the names of TensorFlow's generated Python functions."""
    return _LAST_OF_CAPITALS.sub(r"\1_\2", _FIRST_OF_WORD.sub(r"\1_\2", op_type)).lower()


@functools.cache
def _op_types() -> dict[str, str]:
    """Op type, in lower case → op type, of every op."""
    return {op_type.lower(): op_type for op_type in opdefs.names() if not op_type.startswith("_")}


def __getattr__(name: str) -> Any:
    op_type = _op_types().get(name.replace("_", ""))
    if op_type is None or public_name(op_type) != name:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = function_of(name, op_type)
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return sorted(map(public_name, _op_types().values()))
