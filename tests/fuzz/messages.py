"""Mutates protocol buffers so that they stay protocol buffers: the fuzzer's bytes seldom would.

`mutated` changes a few places of a message: a number becomes a telling one, a text another text of the same message (so
that names go on to refer to each other), a list loses, doubles or swaps its items, a message becomes another one of its
type. `as_message` and `changed_bytes` are for targets whose input is one message, or has some in it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from google.protobuf.descriptor import FieldDescriptor
    from google.protobuf.message import Message

NUMBERS = (
    0, 1, -1, 2, 3, 4, 7, 8, 16, 31, 32, 63, 64, 65, 127, 128, 255, 256, 1000, 2**15, 2**16, 2**20, 2**24, 2**31 - 1,
    2**31, -(2**31), 2**32 - 1, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63), 2**64 - 1,
)  # fmt: skip
TEXTS = ("", "a", ":", "^", "a:0", "a:1", "a:-1", "/", "é", "\0", "loc:@a", "/job:ps/task:0", "/cpu:0", "x" * 300)
#: Places looked at in one message, and how deep.
_MOST_PLACES, _MOST_DEPTH = 20_000, 40


def parsed(kind: type[Message], data: bytes) -> Message:
    """The message; an empty one where the bytes are none."""
    try:
        return kind.FromString(data)
    except (DecodeError, RecursionError):
        return kind()


def mutated(message: Any, chance: random.Random) -> None:
    """Changes one place to four of the message."""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        places = list(_places(message, 0, [_MOST_PLACES]))
        if not places:
            return
        place, field = chance.choice(places)
        _change(place, field, chance, message)


def _places(message: Any, depth: int, left: list[int]) -> Iterator[tuple[Any, FieldDescriptor]]:
    """Each field of each message in it; those that are not set, too."""
    for field in message.DESCRIPTOR.fields:
        left[0] -= 1
        if left[0] < 0:
            return
        yield message, field
    if depth >= _MOST_DEPTH:
        return
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if _is_map(field):
            if field.message_type.fields_by_name["value"].message_type is not None:
                for item in value.values():
                    yield from _places(item, depth + 1, left)
        elif field.is_repeated:
            for item in value:
                yield from _places(item, depth + 1, left)
        else:
            yield from _places(value, depth + 1, left)


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _change(place: Any, field: FieldDescriptor, chance: random.Random, whole: Any) -> None:
    value = getattr(place, field.name)
    if _is_map(field):
        _change_map(value, field, chance, whole)
    elif field.is_repeated:
        _change_list(value, field, chance, whole)
    elif field.message_type is not None:
        if chance.random() < 0.3:
            place.ClearField(field.name)
        else:
            others = [one for one in _messages(whole) if one.DESCRIPTOR is field.message_type and one is not place]
            if others and chance.random() < 0.7:
                value.CopyFrom(type(value).FromString(chance.choice(others).SerializePartialToString()))
            else:
                value.SetInParent()
    elif chance.random() < 0.1:
        place.ClearField(field.name)
    else:
        _set(place, field, value, chance, whole)


def _set(place: Any, field: FieldDescriptor, value: Any, chance: random.Random, whole: Any) -> None:
    setattr(place, field.name, scalar(field, value, chance, whole))


def _change_list(items: Any, field: FieldDescriptor, chance: random.Random, whole: Any) -> None:
    what, size = chance.randrange(5), len(items)
    if what == 0 and size:
        del items[chance.randrange(size)]
    elif what == 1 and size > 1:
        one, other = chance.randrange(size), chance.randrange(size)
        copies = list(items)
        if field.message_type is not None:
            copies = [type(item).FromString(item.SerializePartialToString()) for item in items]
        copies[one], copies[other] = copies[other], copies[one]
        del items[:]
        items.extend(copies)
    elif what == 2 and size:
        item = items[chance.randrange(size)]
        items.extend([item] * chance.choice((1, 1, 2, 70)))
    elif field.message_type is not None:
        items.add()
    elif size and what == 3:
        at = chance.randrange(size)
        items[at] = scalar(field, items[at], chance, whole)
    else:
        items.append(scalar(field, None, chance, whole))


def _change_map(items: Any, field: FieldDescriptor, chance: random.Random, whole: Any) -> None:
    key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
    keys = list(items)
    if keys and chance.random() < 0.4:
        del items[chance.choice(keys)]
        return
    name = chance.choice(keys) if keys and chance.random() < 0.5 else scalar(key, None, chance, whole)
    if value.message_type is None:
        items[name] = scalar(value, None, chance, whole)
        return
    others = [one for one in _messages(whole) if one.DESCRIPTOR is value.message_type]
    content = chance.choice(others).SerializePartialToString() if others else b""
    items[name].MergeFromString(content)


def _messages(message: Any) -> Iterator[Any]:
    """It and all that are in it."""
    seen = set()
    for place, _ in _places(message, 0, [_MOST_PLACES]):
        if id(place) not in seen:
            seen.add(id(place))
            yield place


def scalar(field: FieldDescriptor, value: Any, chance: random.Random, whole: Any) -> Any:
    """Another value for a field that is no message; `value` is the present one, if there is one."""
    if field.type == field.TYPE_STRING:
        texts = [text for text in _texts(whole) if isinstance(text, str)] or list(TEXTS)
        text = chance.choice(chance.choice((texts, texts, TEXTS)))
        return text + chance.choice(("", "", "", ":0", ":1", "_1", ":99999999999")) if chance.random() < 0.5 else text
    if field.type == field.TYPE_BYTES:
        return changed_bytes(value or b"", chance)
    if field.type == field.TYPE_BOOL:
        return not value
    if field.type == field.TYPE_ENUM:
        return chance.choice(field.enum_type.values).number if chance.random() < 0.9 else chance.choice((77, 999, -1))
    if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        return chance.choice((0.0, -1.0, 1.5, float("nan"), float("inf"), 1e30, 1e-42))
    near = (value or 0) + chance.choice((-2, -1, 1, 2, 8))
    return _fitting(field, near if value is not None and chance.random() < 0.4 else chance.choice(NUMBERS))


def _fitting(field: FieldDescriptor, number: int) -> int:
    """The number as the field's type has it."""
    narrow = (field.TYPE_INT32, field.TYPE_UINT32, field.TYPE_SINT32, field.TYPE_FIXED32, field.TYPE_SFIXED32)
    bits = 32 if field.type in narrow else 64
    unsigned = (field.TYPE_UINT32, field.TYPE_UINT64, field.TYPE_FIXED32, field.TYPE_FIXED64)
    number %= 1 << bits
    return number if field.type in unsigned or number < 1 << bits - 1 else number - (1 << bits)


def _texts(message: Any) -> Iterator[str | bytes]:
    for place, field in _places(message, 0, [_MOST_PLACES]):
        if field.type in (field.TYPE_STRING, field.TYPE_BYTES):
            value = getattr(place, field.name)
            if not field.is_repeated:
                yield value
            else:
                yield from value


def changed_bytes(value: bytes, chance: random.Random) -> bytes:
    """Bytes with some of them changed, left out, doubled or put in."""
    data = bytearray(value)
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(5):
            case 0:
                del data[at : at + chance.choice((1, 1, 2, 4, 16))]
            case 1:
                data[at:at] = chance.randbytes(chance.choice((1, 1, 2, 4, 16)))
            case 2 if data:
                data[at % len(data)] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
            case 3:
                number = chance.choice(NUMBERS)
                form, bits = chance.choice((("<I", 32), (">I", 32), ("<Q", 64), (">H", 16), ("B", 8)))
                packed = struct.pack(form, number % (1 << bits))
                data[at : at + len(packed)] = packed
            case _:
                end = at + chance.choice((1, 4, 16, 64))
                data[at:at] = data[at:end]
    return bytes(data)
