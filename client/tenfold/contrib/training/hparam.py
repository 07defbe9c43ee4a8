"""`HParams`: the hyperparameters of a model, by name; set from text such as "rate=0.1,layers=[3,4]", JSON or a dict.

A value keeps the type of its first one. Follows TensorFlow 1.15's contrib/training/python/training/hparam.py.
"""

from __future__ import annotations

import json
import numbers
import re
from collections import deque
from typing import TYPE_CHECKING, Any, Never

from tenfold.contrib.framework.deprecation import deprecated
from tenfold_protos.hparam_pb2 import HParamDef

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["HParamDef", "HParams", "parse_values"]

#: One assignment of a text: name, optional [index], and one value or a list in brackets.
_ASSIGNMENT = re.compile(
    r"""
    (?P<name>[a-zA-Z][\w.]*)
    (\[\s*(?P<index>\d+)\s*\])?
    \s*=\s*
    ((?P<val>[^,\[]*) | \[(?P<vals>[^\]]*)\])
    ($|,\s*)
    """,
    re.VERBOSE,
)


def _fail(name: str, kind: type, value: Any, values: str) -> Never:
    raise ValueError(f"Could not parse hparam '{name}' of type '{kind.__name__}' with value '{value}' in {values}")


def _parse_bool(value: str) -> bool:
    if value in ("true", "True"):
        return True
    if value in ("false", "False"):
        return False
    return bool(int(value))


def parse_values(values: str, type_map: Mapping[str, type], ignore_unknown: bool = False) -> dict[str, Any]:
    """Name → value, list, or {index: value} of the assignments in a text; `type_map` says each name's type.

    Raises ValueError for malformed text, for a value of another type, for a second assignment, and for a name that
    `type_map` lacks unless `ignore_unknown`.
    """
    found: dict[str, Any] = {}
    at = 0
    while at < len(values):
        match = _ASSIGNMENT.match(values, at)
        if match is None:
            raise ValueError(f"Malformed hyperparameter value: {values[at:]}")
        at = match.end()
        name, index = match["name"], match["index"]
        if name not in type_map:
            if ignore_unknown:
                continue
            raise ValueError(f"Unknown hyperparameter type for {name}")
        kind = type_map[name]
        parse: Callable[[str], Any] = _parse_bool if kind is bool else kind
        again = f"Multiple assignments to variable '{{}}' in {values}"
        text = match["val"] if match["vals"] is None else match["vals"]
        try:
            if match["vals"] is None:
                value: Any = parse(text)
            else:
                value = [parse(each) for each in re.split("[ ,]", text) if each]
        except ValueError:
            _fail(name, kind, text, values)
        if index is None:
            if name in found:
                raise ValueError(again.format(name))
            found[name] = value
        elif match["vals"] is not None:
            raise ValueError("Assignment of a list to a list index.")
        else:
            indexed = found.setdefault(name, {})
            if not isinstance(indexed, dict):
                raise ValueError(again.format(name))
            if int(index) in indexed:
                raise ValueError(again.format(f"{name}[{index}]"))
            indexed[int(index)] = value
    return found


def _cast(name: str, kind: type, value: Any) -> Any:
    """The value in the type of the hyperparameter. Raises ValueError where that would change its meaning."""
    if type(value) is kind or issubclass(kind, type(None)):
        return value
    text = (str, bytes)
    wrong = (
        (issubclass(kind, text) and not isinstance(value, text))
        or issubclass(kind, bool) != isinstance(value, bool)
        or (issubclass(kind, numbers.Integral) and not isinstance(value, numbers.Integral))
        or (issubclass(kind, numbers.Number) and not isinstance(value, numbers.Number))
    )
    if wrong:
        raise ValueError(f"Could not cast hparam '{name}' of type '{kind}' from value {value!r}")
    made: Callable[[Any], Any] = kind
    return made(value)


#: The newest ones, which a run records as its parameters (runs/recorded.py).
newest: deque[HParams] = deque(maxlen=4)


class HParams:
    """Hyperparameters, each an attribute: `HParams(rate=0.1, layers=[3, 4]).rate`.

    `hparam_def` is a message to start from, in place of keywords. Raises ValueError for a name that is taken.
    """

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any) -> None:
        #: Name → (type, whether it has several values).
        self._hparam_types: dict[str, tuple[type, bool]] = {}
        self._model_structure = model_structure
        if hparam_def is not None:
            if kwargs:
                raise ValueError("hparam_def and initialization values are mutually exclusive")
            assert isinstance(hparam_def, HParamDef), f"hparam_def must be an HParamDef, not {type(hparam_def)}"
            kwargs = {name: _from_message(value) for name, value in hparam_def.hparam.items()}
        for name, value in kwargs.items():
            self.add_hparam(name, value)
        newest.append(self)

    def __getattr__(self, name: str) -> Any:
        # Reached for names without a value only; it tells type checkers that values are attributes.
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds a hyperparameter. Raises ValueError for a name that is taken and an empty list."""
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        if isinstance(value, (list, tuple)):
            if not value:
                raise ValueError(f"Multi-valued hyperparameters cannot be empty: {name}")
            self._hparam_types[name] = (type(value[0]), True)
        else:
            self._hparam_types[name] = (type(value), False)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Changes a value. Raises KeyError for an unknown name, ValueError for a value of another type."""
        kind, several = self._hparam_types[name]
        if isinstance(value, list):
            if not several:
                raise ValueError(f"Must not pass a list for single-valued parameter: {name}")
            setattr(self, name, [_cast(name, kind, each) for each in value])
        else:
            if several:
                raise ValueError(f"Must pass a list for multi-valued parameter: {name}.")
            setattr(self, name, _cast(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Removes a hyperparameter, if there is one of that name."""
        if hasattr(self, name):
            delattr(self, name)
            del self._hparam_types[name]

    def parse(self, values: str) -> HParams:
        """Changes the values that a text assigns, such as "rate=0.1,layers=[3,4]". Returns self.

        Raises ValueError for malformed text and for values of other types.
        """
        return self.override_from_dict(parse_values(values, {name: kind for name, (kind, _) in self._types()}))

    def _types(self) -> Any:
        return self._hparam_types.items()

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Changes the values of a dictionary. Returns self."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    @deprecated(None, "Use `override_from_dict`.")
    def set_from_map(self, values_map: Mapping[str, Any]) -> HParams:
        """Old name of `override_from_dict`."""
        return self.override_from_dict(values_map)

    def set_model_structure(self, model_structure: Any) -> None:
        """Keeps any object with the hyperparameters."""
        self._model_structure = model_structure

    def get_model_structure(self) -> Any:
        """What `set_model_structure` got."""
        return self._model_structure

    def to_json(self, indent: Any = None, separators: Any = None, sort_keys: bool = False) -> str:
        """The values as JSON."""
        return json.dumps(self.values(), indent=indent, separators=separators, sort_keys=sort_keys)

    def parse_json(self, values_json: str) -> HParams:
        """Changes the values of a JSON object. Returns self."""
        return self.override_from_dict(json.loads(values_json))

    def values(self) -> dict[str, Any]:
        """Name → value."""
        return {name: getattr(self, name) for name in self._hparam_types}

    def get(self, key: str, default: Any = None) -> Any:
        """The value of `key`, or `default`. Raises ValueError for a default of another type than the value's."""
        if key not in self._hparam_types:
            return default
        if default is not None:
            kind, several = self._hparam_types[key]
            shown = f"list<{kind}>" if several else str(kind)
            wrong = f"Hparam '{key}' of type '{shown}' is incompatible with default={default}"
            if several != isinstance(default, list):
                raise ValueError(wrong)
            try:
                for each in default if several else [default]:
                    _cast(key, kind, each)
            except ValueError as error:
                raise ValueError(f"{wrong}. {error}") from error
        return getattr(self, key)

    def __contains__(self, key: str) -> bool:
        return key in self._hparam_types

    def __str__(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self.values().items())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({sorted(self.values().items())})"

    def to_proto(self, export_scope: str | None = None) -> HParamDef:
        """The message of the hyperparameters. Raises ValueError for a type that it cannot hold."""
        message = HParamDef()
        for name, (kind, several) in self._hparam_types.items():
            field = _field(kind, several)
            values = getattr(self, name) if several else [getattr(self, name)]
            if field.startswith("bytes"):
                values = [each.encode() if isinstance(each, str) else each for each in values]
            if several:
                getattr(message.hparam[name], field).value.extend(values)
            else:
                setattr(message.hparam[name], field, values[0])
        return message

    @staticmethod
    def from_proto(hparam_def: HParamDef, import_scope: str | None = None) -> HParams:
        """The hyperparameters of a message."""
        return HParams(hparam_def=hparam_def)


def _field(kind: type, several: bool) -> str:
    for base, name in ((bool, "bool"), (int, "int64"), ((str, bytes), "bytes"), (float, "float")):
        if issubclass(kind, base):
            return f"{name}_{'list' if several else 'value'}"
    raise ValueError(f"Unsupported parameter type: {kind}")


def _from_message(value: Any) -> Any:
    kind = value.WhichOneof("kind")
    held = getattr(value, kind)
    values = list(held.value) if kind.endswith("_list") else [held]
    if kind.startswith("bytes"):
        values = [each.decode() for each in values]
    return values if kind.endswith("_list") else values[0]
