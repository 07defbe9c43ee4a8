"""What Keras's names stand for, as in `Dense(8, "relu")` and `compile("adam", "mse")`."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def by_name(kind: str, identifier: Any, known: Mapping[str, Any], *, made: bool = True) -> Any:
    """The object of a name, made where it is `made` by a call; what is no name as it is.

    Raises ValueError for a name that is not known, and says which are.
    """
    if not isinstance(identifier, str):
        return identifier() if inspect.isclass(identifier) else identifier
    if identifier not in known:
        raise ValueError(f"Unknown {kind}: {identifier}; by name there are {', '.join(sorted(known))}")
    return known[identifier]() if made else known[identifier]
