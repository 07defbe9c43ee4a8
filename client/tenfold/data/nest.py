"""Nested structures as tf.data sees them: tuples, named tuples and dicts are structures; a list is one value.

A list becomes a tensor, and a SparseTensorValue is one element. Otherwise as `tenfold.nest`. Follows TensorFlow 1.15's
data/util/nest.py, with the same error messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tenfold.graph.sparse_tensor import SparseTensorValue
from tenfold.nest import items, like

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "assert_same_structure",
    "assert_shallow_structure",
    "flatten",
    "flatten_up_to",
    "is_sequence",
    "map_structure",
    "map_structure_up_to",
    "pack_sequence_as",
]


def is_sequence(seq: Any) -> bool:
    """Whether `seq` is a structure here: a tuple or a mapping."""
    return isinstance(seq, (tuple, Mapping)) and not isinstance(seq, SparseTensorValue)


def flatten(structure: Any) -> list[Any]:
    """The values of `structure`, in order; dicts in the order of their sorted keys."""
    if not is_sequence(structure):
        return [structure]
    return [leaf for _, child in items(structure) for leaf in flatten(child)]


def pack_sequence_as(structure: Any, flat_sequence: Any) -> Any:
    """`flat_sequence` in the form of `structure`. Raises TypeError or ValueError if it does not fit."""
    if not (is_sequence(flat_sequence) or isinstance(flat_sequence, list)):
        raise TypeError("flat_sequence must be a sequence")
    flat = list(flat_sequence)
    if not is_sequence(structure):
        if len(flat) != 1:
            raise ValueError(f"Structure is a scalar but len(flat_sequence) == {len(flat)} > 1")
        return flat[0]
    count = len(flatten(structure))
    if count != len(flat):
        raise ValueError(
            f"Could not pack sequence. Structure had {count} elements, but flat_sequence had {len(flat)} elements.  "
            f"Structure: {structure}, flat_sequence: {flat}."
        )
    values = iter(flat)

    def packed(part: Any) -> Any:
        return like(part, [packed(child) for _, child in items(part)]) if is_sequence(part) else next(values)

    return packed(structure)


def map_structure(func: Callable[..., Any], *structure: Any, **check_types_dict: Any) -> Any:
    """`func` of the corresponding values of the structures, in the form of the first."""
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    check_types = check_types_dict.pop("check_types", True)
    if check_types_dict:
        raise ValueError("Only valid keyword argument is check_types")
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types)
    columns = zip(*map(flatten, structure), strict=True)
    return pack_sequence_as(structure[0], [func(*values) for values in columns])


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Raises ValueError if the two differ in form, with `check_types` also in keys, and TypeError in types."""
    if is_sequence(nest1) != is_sequence(nest2):
        raise ValueError(
            "The two structures don't have the same nested structure.\n\n"
            f"First structure: type={type(nest1).__name__} str={nest1}\n\n"
            f"Second structure: type={type(nest2).__name__} str={nest2}"
        )
    if not is_sequence(nest1):
        return
    if check_types and _kind(nest1) != _kind(nest2):
        raise TypeError(
            "The two structures don't have the same sequence type. "
            f"First structure has type {type(nest1).__name__}, while second structure has type {type(nest2).__name__}."
        )
    keys1, keys2 = ([key for key, _ in items(each)] for each in (nest1, nest2))
    if len(keys1) != len(keys2):
        raise ValueError(
            "The two structures don't have the same nested structure: not the same number of elements.\n\n"
            f"First structure ({len(keys1)} elements): {nest1}\n\n"
            f"Second structure ({len(keys2)} elements): {nest2}"
        )
    if check_types and isinstance(nest1, Mapping) and keys1 != keys2:
        raise ValueError(
            "The two dictionaries don't have the same set of keys. "
            f"First structure has keys {keys1}, while second structure has keys {keys2}."
        )
    for (_, child1), (_, child2) in zip(items(nest1), items(nest2), strict=True):
        assert_same_structure(child1, child2, check_types)


def _kind(structure: Any) -> Any:
    """What must agree of two sequences: the type; of named tuples, which may be made twice, the names."""
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure).__name__, structure._fields
    return type(structure)


def assert_shallow_structure(shallow_tree: Any, input_tree: Any, check_types: bool = True) -> None:
    """Raises TypeError or ValueError unless `input_tree` has the form of `shallow_tree` down to its values."""
    if not is_sequence(shallow_tree):
        return
    if not is_sequence(input_tree):
        raise TypeError(
            f"If shallow structure is a sequence, input must also be a sequence. Input has type: {type(input_tree)}."
        )
    if check_types and not isinstance(input_tree, type(shallow_tree)):
        raise TypeError(
            "The two structures don't have the same sequence type. Input structure has type "
            f"{type(input_tree)}, while shallow structure has type {type(shallow_tree)}."
        )
    if len(input_tree) != len(shallow_tree):
        raise ValueError(
            "The two structures don't have the same sequence length. Input structure has length "
            f"{len(input_tree)}, while shallow structure has length {len(shallow_tree)}."
        )
    if check_types and isinstance(shallow_tree, Mapping) and set(input_tree) != set(shallow_tree):
        raise ValueError(
            "The two structures don't have the same keys. Input structure has keys "
            f"{list(input_tree)}, while shallow structure has keys {list(shallow_tree)}."
        )
    for (_, shallow), (_, child) in zip(items(shallow_tree), items(input_tree), strict=True):
        assert_shallow_structure(shallow, child, check_types)


def flatten_up_to(shallow_tree: Any, input_tree: Any) -> list[Any]:
    """The parts of `input_tree` where `shallow_tree` has values."""
    assert_shallow_structure(shallow_tree, input_tree)
    return list(_cut(shallow_tree, input_tree))


def _cut(shallow: Any, part: Any) -> Iterator[Any]:
    if not is_sequence(shallow):
        yield part
        return
    for (_, inner), (_, child) in zip(items(shallow), items(part), strict=True):
        yield from _cut(inner, child)


def map_structure_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any) -> Any:
    """`func` of the parts of the inputs where `shallow_tree` has values, in its form."""
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    columns = zip(*(flatten_up_to(shallow_tree, each) for each in inputs), strict=True)
    return pack_sequence_as(shallow_tree, [func(*parts) for parts in columns])
