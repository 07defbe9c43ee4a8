"""`tf.Module`: an object with variables and other modules in its attributes, and a name scope.

Follows TensorFlow 1.15's module/module.py.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

from tenfold import nest
from tenfold.graph import name_scope
from tenfold.ops.partitioned_variable import PartitionedVariable
from tenfold.ops.variables import Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Module"]

_WORD = re.compile(r"((?<=[a-z0-9])[A-Z]|(?!^)[A-Z](?=[a-z]))")
_IDENTIFIER = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
Path = tuple[Any, ...]


class Module:
    """The base class of modules. The name is by default that of the class, in words with underscores.

    Raises ValueError for a name that is not an identifier.
    """

    #: Attributes in which neither variables nor modules are looked for.
    _TF_MODULE_IGNORED_PROPERTIES: frozenset[str] = frozenset()

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = camel_to_snake(type(self).__name__)
        elif not valid_identifier(name):
            raise ValueError(
                f"{name!r} is not a valid module name. Module names must be valid Python identifiers (e.g. a valid "
                "class name)."
            )
        self._name = name
        with name_scope(name) as scope:
            self._scope_name = scope

    @property
    def name(self) -> str:
        """The name, without those of modules around."""
        return self._name

    @property
    def name_scope(self) -> Any:
        """The module's name scope, to be entered by `with`."""
        return name_scope(self._scope_name)

    @property
    def variables(self) -> tuple[Any, ...]:
        """The variables of this module by name of attribute, then those of the modules in it."""
        return tuple(self._flatten(predicate=_is_variable))

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        """Those of `variables` that are trained."""
        return tuple(self._flatten(predicate=lambda leaf: _is_variable(leaf) and getattr(leaf, "trainable", False)))

    @property
    def submodules(self) -> tuple[Module, ...]:
        """The modules in this one, and those in them."""
        return tuple(self._flatten(predicate=lambda leaf: isinstance(leaf, Module)))

    def _flatten(
        self,
        recursive: bool = True,
        predicate: Callable[[Any], bool] | None = None,
        attribute_traversal_key: Callable[[str], Any] | None = None,
        with_path: bool = False,
    ) -> Iterator[Any]:
        """What is in the attributes, each in order of `attribute_traversal_key`, that `predicate` holds for.

        `with_path` gives pairs (path, what is there), each as often as a path leads to it.
        """
        return _leaves(self, recursive, predicate or (lambda leaf: True), attribute_traversal_key, with_path)

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator of a method that runs in the module's name scope."""

        @functools.wraps(method)
        def in_scope(self: Module, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return in_scope


def valid_identifier(name: str) -> bool:
    """Whether a module may have that name."""
    return bool(_IDENTIFIER.fullmatch(name))


def camel_to_snake(value: str) -> str:
    """`MyDense` as `my_dense`."""
    return _WORD.sub(r"_\1", value).lower()


def _is_variable(leaf: Any) -> bool:
    return isinstance(leaf, (Variable, PartitionedVariable))


def _leaves(
    module: Module,
    recursive: bool,
    predicate: Callable[[Any], bool],
    key: Callable[[str], Any] | None,
    with_path: bool,
    module_path: Path = (),
    seen: set[int] | None = None,
) -> Iterator[Any]:
    seen = {id(module)} if seen is None else seen
    inner: list[tuple[Path, Module]] = []
    attributes = vars(module)
    for name in sorted(attributes, key=key):
        if name in module._TF_MODULE_IGNORED_PROPERTIES:
            continue
        for path, leaf in nest.flatten_with_tuple_paths(attributes[name]):
            if not with_path:
                if id(leaf) in seen:
                    continue
                seen.add(id(leaf))
            where = (*module_path, name, *path)
            if predicate(leaf):
                yield (where, leaf) if with_path else leaf
            if recursive and isinstance(leaf, Module):
                inner.append((where, leaf))
    for where, leaf in inner:
        yield from _leaves(leaf, recursive, predicate, key, with_path, where, seen)
