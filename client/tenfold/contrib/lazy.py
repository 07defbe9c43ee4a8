"""Names of a namespace of `tf.contrib` that are loaded from their modules at their first use.

Each package of contrib calls `lazy_names` with its table: module → names, `public=name` where the two differ; a row of
module "" stands for modules; and with the names that TensorFlow has and Tenfold leaves out, each with its reason.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tenfold.lazy_module import make_lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_names(
    package: str, table: Mapping[str, str], left_out: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of the module `package`, which becomes a LazyModule.

    The former raises AttributeError with the reason for a name that is left out, with the nearest names for another.
    """
    make_lazy(package)
    home: dict[str, tuple[str, str]] = {}
    for module, names in table.items():
        for row in names.split():
            public, _, attribute = row.partition("=")
            home[public] = (module, attribute or public)
    public_name = package.replace("tenfold.", "tf.", 1)
    reasons = dict(left_out or {})

    def get(name: str) -> Any:
        if name in home:
            module, attribute = home[name]
            value = getattr(import_module(module), attribute) if module else import_module(attribute)
            setattr(import_module(package), name, value)
            return value
        if name in reasons:
            raise AttributeError(f"{public_name}.{name} is not part of Tenfold: {reasons[name]}")
        near = [] if name.startswith("_") else get_close_matches(name, home, n=2)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise AttributeError(f"module {public_name!r} has no attribute {name!r}{hint}")

    return get, lambda: sorted(home)
