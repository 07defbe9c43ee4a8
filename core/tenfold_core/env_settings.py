"""Reads the fields of a frozen dataclass of settings from the environment: one variable a field, each with a bound.

`PREFIX_FIELD` is the variable of a field unless the class names another. Called at the edge by the `from_environment`
of each such class (link, HTTP/2, limits of task and master, fusion, control service); nothing deeper reads the
environment. docs/cli.md lists all variables. An empty variable counts as not set.
"""

from __future__ import annotations

import dataclasses
import math
import os
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from _typeshed import DataclassInstance

    T = TypeVar("T", bound=DataclassInstance)

_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def variables(
    settings: DataclassInstance | type[DataclassInstance], prefix: str, names: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Field → the variable that sets it."""
    return {
        field.name: (names or {}).get(field.name, prefix + field.name.upper()) for field in dataclasses.fields(settings)
    }


def read(defaults: T, prefix: str, environment: Mapping[str, str], names: Mapping[str, str] | None = None) -> T:
    """`defaults` with the fields that the environment sets. `names` has the fields whose variable is another.

    Raises InvalidArgumentError naming the variable and what it may be.
    """
    texts = {
        field: (variable, text)
        for field, variable in variables(defaults, prefix, names).items()
        if (text := environment.get(variable, ""))
    }
    if not texts:
        return defaults
    # takes a millisecond
    kinds = typing.get_type_hints(type(defaults), localns={"Path": Path})
    given = {
        field: _parse(variable, text, kinds[field], getattr(defaults, field))
        for field, (variable, text) in texts.items()
    }
    return dataclasses.replace(defaults, **given)


class FromEnvironment:
    """The base of a frozen dataclass whose fields have defaults, and no other way than a variable each."""

    __slots__ = ()
    #: Of the variables, and the fields whose variable is another.
    prefix: ClassVar[str]
    names: ClassVar[dict[str, str]] = {}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """What the variables of `prefix` and `names` say. Raises InvalidArgumentError."""
        return cast("Self", read(cast("DataclassInstance", cls()), cls.prefix, environment, cls.names))

    @classmethod
    def variable(cls, field: str) -> str:
        """The variable that sets a field. Raises KeyError for none."""
        return variables(cast("type[DataclassInstance]", cls), cls.prefix, cls.names)[field]

    def reached(self, field: str, what: str) -> errors.OpError:
        """As `limit_reached`, at the limit of that field."""
        return limit_reached(what, getattr(self, field), self.variable(field))


def limit_reached(what: str, limit: object, variable: str) -> errors.OpError:
    """The refusal of what would go beyond a limit: what there is or would be, the limit, and how to raise it."""
    return errors.ResourceExhaustedError(
        None, None, f"{what}; {limit} is the limit, and {variable} in the environment of the task sets another."
    )


def _parse(variable: str, text: str, kind: Any, default: Any) -> Any:
    """The value of a field of type `kind`. A number may be 0 only where the default is."""
    options = typing.get_args(kind)
    if type(None) in options:
        kind = next(option for option in options if option is not type(None))
        options = typing.get_args(kind)
    if kind is bool:
        if text.lower() not in _YES + _NO:
            raise invalid(variable, text, "1 or 0")
        return text.lower() in _YES
    if kind is int:
        least = 0 if default == 0 else 1
        if not text.isascii() or not text.isdecimal() or int(text) < least:
            unit = "a number of bytes" if "bytes" in variable.lower() or "threshold" in variable.lower() else "a number"
            raise invalid(variable, text, f"{unit}, {least} or more")
        return int(text)
    if kind is float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value < 0 or (value == 0 and default != 0):
            raise invalid(variable, text, "a number above 0")
        return value
    if typing.get_origin(kind) is typing.Literal:
        if text not in options:
            raise invalid(variable, text, f"{', '.join(options[:-1])} or {options[-1]}")
        return text
    if typing.get_origin(kind) is tuple:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return Path(text) if kind is Path else text


def invalid(variable: str, value: str, allowed: str) -> errors.OpError:
    """The error for a variable with a value that it may not have."""
    return errors.InvalidArgumentError(None, None, f"{variable} is {value!r}; it may be {allowed}.")
