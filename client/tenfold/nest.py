"""`tf.nest`: nested lists, tuples, named tuples and dicts of values, flattened and packed again.

Used wherever the API takes structures: loops, conditionals, RNN states, fetches of functions. Dictionaries are walked
in the order of their sorted keys. A composite (IndexedSlices, SparseTensor) is a leaf unless `expand_composites`; it
offers `_to_components()` and `_from_components(parts)`. Follows TF 1.15's util/nest.py, with the same error messages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, MappingView, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "assert_same_structure",
    "assert_shallow_structure",
    "flatten",
    "flatten_up_to",
    "flatten_with_joined_string_paths",
    "flatten_with_tuple_paths",
    "is_nested",
    "is_sequence",
    "map_structure",
    "map_structure_up_to",
    "pack_sequence_as",
]


def is_nested(seq: Any) -> bool:
    """Whether `seq` is a structure: a sequence or a mapping, but not a string."""
    return isinstance(seq, (Sequence, Mapping, MappingView)) and not isinstance(
        seq, (str, bytes, bytearray, memoryview)
    )


is_sequence = is_nested


def is_composite(value: Any) -> bool:
    """Whether `value` stands for several tensors."""
    return hasattr(type(value), "_to_components")


def _is_inner(value: Any, expand_composites: bool) -> bool:
    return is_nested(value) or (expand_composites and is_composite(value))


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(type(value), "_fields")


def items(structure: Any) -> Iterator[tuple[Any, Any]]:
    """The children with their keys, in the order of flattening."""
    if isinstance(structure, Mapping):
        for key in _sorted_keys(structure):
            yield key, structure[key]
    elif _is_namedtuple(structure):
        yield from zip(type(structure)._fields, structure, strict=True)
    elif is_composite(structure):
        yield type(structure).__name__, tuple(structure._to_components())
    else:
        yield from enumerate(structure)


def _sorted_keys(structure: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(structure)
    except TypeError:
        raise TypeError("nest only supports dicts with sortable keys.") from None


def like(structure: Any, children: list[Any]) -> Any:
    """`children`, in the order of flattening, in a structure of the kind of `structure`."""
    if isinstance(structure, Mapping):
        by_key = dict(zip(_sorted_keys(structure), children, strict=True))
        ordered = [(key, by_key[key]) for key in structure]
        if isinstance(structure, defaultdict):
            return defaultdict(structure.default_factory, ordered)
        kind: Any = type(structure)
        return kind(ordered)
    if _is_namedtuple(structure):
        return type(structure)(*children)
    if is_nested(structure):
        kind = list if isinstance(structure, (range, MappingView)) else type(structure)
        return kind(children)
    return structure._from_components(children[0])


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The leaves of `structure`, in order; a single leaf gives a list with that leaf."""
    if not _is_inner(structure, expand_composites):
        return [structure]
    return [leaf for _, child in items(structure) for leaf in flatten(child, expand_composites)]


def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool = False) -> Any:
    """`flat_sequence` in the form of `structure`.

    Raises TypeError if `flat_sequence` is not a sequence, ValueError if it has another number of elements.
    """
    if not is_nested(flat_sequence):
        raise TypeError("flat_sequence must be a sequence")
    flat = list(flat_sequence)
    if not _is_inner(structure, expand_composites):
        if len(flat) != 1:
            raise ValueError(f"Structure is a scalar but len(flat_sequence) == {len(flat)} > 1")
        return flat[0]
    expected = len(flatten(structure, expand_composites))
    if expected != len(flat):
        raise ValueError(
            f"Could not pack sequence. Structure had {expected} elements, but flat_sequence had {len(flat)} elements.  "
            f"Structure: {structure}, flat_sequence: {flat}."
        )
    leaves = iter(flat)

    def packed(part: Any) -> Any:
        if not _is_inner(part, expand_composites):
            return next(leaves)
        return like(part, [packed(child) for _, child in items(part)])

    return packed(structure)


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """`func` of the corresponding leaves of the structures, in the form of the first.

    Keywords: `check_types` (default True), `expand_composites` (default False). Raises TypeError and ValueError as
    `assert_same_structure`.
    """
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    check_types = kwargs.pop("check_types", True)
    expand = kwargs.pop("expand_composites", False)
    if kwargs:
        raise ValueError(
            "Only valid keyword arguments are `check_types` and `expand_composites`, not: "
            f"`{'`, `'.join(sorted(kwargs))}`"
        )
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types=check_types, expand_composites=expand)
    columns = zip(*(flatten(each, expand) for each in structure), strict=True)
    return pack_sequence_as(structure[0], [func(*leaves) for leaves in columns], expand)


# --- comparing structures ---


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    """Raises ValueError if the two differ in form, TypeError if sequences are of different types."""
    try:
        _compare(nest1, nest2, check_types, expand_composites)
    except (TypeError, ValueError) as error:
        first, second = (map_structure(lambda _: _DOT, each) for each in (nest1, nest2))
        raise type(error)(f"{error}\nEntire first structure:\n{first}\nEntire second structure:\n{second}") from None


class _Dot:
    def __repr__(self) -> str:
        return "."


_DOT = _Dot()


def _compare(a: Any, b: Any, check_types: bool, expand: bool) -> None:
    inner_a, inner_b = _is_inner(a, expand), _is_inner(b, expand)
    if inner_a != inner_b:
        structured, leaf = (a, b) if inner_a else (b, a)
        which = ("first", "second") if inner_a else ("second", "first")
        raise ValueError(
            "The two structures don't have the same nested structure.\n\n"
            f"First structure: type={type(a).__name__} str={a}\n\nSecond structure: type={type(b).__name__} str={b}\n\n"
            f'More specifically: Substructure "type={type(structured).__name__} str={structured}" is a sequence, while '
            f'substructure "type={type(leaf).__name__} str={leaf}" is not (the {which[0]} and not the {which[1]})'
        )
    if not inner_a:
        return
    if check_types:
        _compare_types(a, b)
    keys_a, keys_b = ([key for key, _ in items(each)] for each in (a, b))
    if isinstance(a, Mapping) and isinstance(b, Mapping) and keys_a != keys_b:
        raise ValueError(
            "The two structures don't have the same nested structure: the two dictionaries don't have the same set of "
            f"keys. First structure has keys {keys_a}, while second structure has keys {keys_b}"
        )
    if len(keys_a) != len(keys_b):
        raise ValueError(
            "The two structures don't have the same nested structure.\n\n"
            f"First structure: type={type(a).__name__} str={a}\n\nSecond structure: type={type(b).__name__} str={b}\n\n"
            f"More specifically: The two structures don't have the same number of elements. "
            f"First structure: {len(keys_a)} elements, second structure: {len(keys_b)} elements"
        )
    for (_, child_a), (_, child_b) in zip(items(a), items(b), strict=True):
        _compare(child_a, child_b, check_types, expand)


def _compare_types(a: Any, b: Any) -> None:
    if _is_namedtuple(a) and _is_namedtuple(b):
        if type(a).__name__ != type(b).__name__ or type(a)._fields != type(b)._fields:
            raise TypeError(
                "The two namedtuples don't have the same sequence type. "
                f"First structure has type {type(a).__name__}, while second structure has type {type(b).__name__}"
            )
    elif isinstance(a, Mapping) and isinstance(b, Mapping):
        return
    elif type(a) is not type(b):
        raise TypeError(
            "The two structures don't have the same sequence type. "
            f"First structure has type {type(a).__name__}, while second structure has type {type(b).__name__}"
        )


# --- structures flattened as deep as another one ---


def assert_shallow_structure(shallow_tree: Any, input_tree: Any, check_types: bool = True) -> None:
    """Raises TypeError or ValueError unless `input_tree` has the form of `shallow_tree` down to its leaves."""
    if not is_nested(shallow_tree):
        return
    if not is_nested(input_tree):
        raise TypeError(
            f"If shallow structure is a sequence, input must also be a sequence. Input has type: {type(input_tree)}."
        )
    if check_types and not isinstance(input_tree, type(shallow_tree)):
        _compare_types(input_tree, shallow_tree)
    if len(input_tree) != len(shallow_tree):
        raise ValueError(
            "The two structures don't have the same sequence length. "
            f"Input structure has length {len(input_tree)}, while shallow structure has length {len(shallow_tree)}."
        )
    if isinstance(shallow_tree, Mapping):
        absent = sorted(set(shallow_tree) - set(input_tree))
        if absent:
            raise ValueError(
                "The shallow_tree's keys are not a subset of the input_tree's keys. The shallow_tree has the following "
                f"keys that are not in the input_tree: {absent}."
            )
    for (_, shallow), (_, child) in zip(items(shallow_tree), items(input_tree), strict=True):
        assert_shallow_structure(shallow, child, check_types)


def flatten_up_to(shallow_tree: Any, input_tree: Any, check_types: bool = True) -> list[Any]:
    """The parts of `input_tree` where `shallow_tree` has leaves."""
    assert_shallow_structure(shallow_tree, input_tree, check_types)
    return _cut(shallow_tree, input_tree)


def _cut(shallow: Any, part: Any) -> list[Any]:
    if not is_nested(shallow):
        return [part]
    children = dict(items(part))
    return [leaf for key, child in items(shallow) for leaf in _cut(child, children[key])]


def map_structure_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any, check_types: bool = True) -> Any:
    """`func` of the parts of the inputs where `shallow_tree` has leaves, in its form."""
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    columns = zip(*(flatten_up_to(shallow_tree, each, check_types) for each in inputs), strict=True)
    return pack_sequence_as(shallow_tree, [func(*parts) for parts in columns])


def flatten_with_tuple_paths(structure: Any, expand_composites: bool = False) -> list[tuple[tuple[Any, ...], Any]]:
    """(path of keys and indices, leaf) pairs."""

    def walk(part: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
        if not _is_inner(part, expand_composites):
            yield path, part
            return
        for key, child in items(part):
            yield from walk(child, (*path, key))

    return list(walk(structure, ()))


def flatten_with_joined_string_paths(structure: Any, separator: str = "/") -> list[tuple[str, Any]]:
    """(path as text, leaf) pairs."""
    return [(separator.join(map(str, path)), leaf) for path, leaf in flatten_with_tuple_paths(structure)]
