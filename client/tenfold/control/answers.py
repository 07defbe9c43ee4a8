"""What the control service answers, as values: the base of `Run`, `Task`, `Event`, … Pure.

Each class is a schema of docs/openapi.json with the same members; the classes are in cluster_answers.py and
run_answers.py. Members that a newer service adds are kept in `json`, and are no error.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, TypeAlias, TypeVar

from tenfold_core import errors

K = TypeVar("K")
_Readers: TypeAlias = tuple[tuple[str, Callable[[Any], Any], bool], ...]


@typing.dataclass_transform(
    eq_default=False, frozen_default=True, kw_only_default=True, field_specifiers=(dataclasses.field,)
)
def answer(kind: type[K]) -> type[K]:
    """Makes a class of annotated members an answer of the service. One that the service may leave out has a default."""
    return dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)(kind)


@answer
class Answer:
    """One JSON object of the service. Its members are typed attributes; `answer["name"]` gives one as it came, and
    `dict(answer)` all of them. Equal to another one, or to a dict, of the same members. Read-only."""

    #: The object as it came, with members that this version does not know.
    json: dict[str, Any] = dataclasses.field(repr=False)

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> Self:
        """Raises InternalError when a member is not there that was always there."""
        try:
            values = {name: read(members[name]) for name, read, needed in _readers(cls) if needed or name in members}
        except KeyError as missing:
            text = f"the control service's answer has no member {missing}, which a {cls.__name__} has: {members!r:.300}"
            raise errors.InternalError(None, None, text) from None
        return cls(json=dict(members), **values)

    def __getitem__(self, member: str) -> Any:
        return self.json[member]

    def __contains__(self, member: object) -> bool:
        return member in self.json

    def get(self, member: str, default: Any = None) -> Any:
        return self.json.get(member, default)

    def keys(self) -> Iterable[str]:
        return self.json.keys()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Answer):
            return self.json == other.json
        return self.json == other if isinstance(other, Mapping) else NotImplemented


#: What `_readers` found out, by class.
_known: dict[type[Answer], _Readers] = {}


def _readers(kind: type[Answer]) -> _Readers:
    """Each member: its name, how it is read, and whether it has to be there."""
    if (found := _known.get(kind)) is None:
        hints = typing.get_type_hints(kind)
        found = _known[kind] = tuple(
            (field.name, _reader(hints[field.name]), _needed(field))
            for field in dataclasses.fields(kind)
            if field.name != "json"
        )
    return found


def _needed(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _reader(hint: Any) -> Callable[[Any], Any]:
    arguments = typing.get_args(hint)
    match typing.get_origin(hint):
        case types.UnionType | typing.Union:
            inner = [_reader(each) for each in arguments if each is not types.NoneType]
            if len(inner) == 1 and inner[0] is not _as_it_is:
                read = inner[0]
                return lambda value: None if value is None else read(value)
        case origin if origin is tuple:
            read = _reader(arguments[0])
            return tuple if read is _as_it_is else lambda values: tuple(map(read, values))
        case origin if origin is Mapping:
            read = _reader(arguments[1])
            if read is not _as_it_is:
                return lambda values: {name: read(value) for name, value in values.items()}
    if isinstance(hint, type) and issubclass(hint, Answer):
        return hint.from_json
    return _as_it_is


def _as_it_is(value: Any) -> Any:
    return value
