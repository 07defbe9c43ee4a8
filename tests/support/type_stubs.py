"""`make stubs`: writes the stubs that show type checkers the names of `tf`, `tf.train`, `tf.data`, `tf.nn` and others.

These modules load each name at its first use, by tables that only a running program can follow. A stub says the same as
its table, an import a name; the namespaces of namespaces.py, which have no module, have theirs in namespace_types/.
tests/unit/house/test_type_stubs.py compares what is kept with what this writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import tenfold
from tenfold import data, namespaces, train

if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDER = Path(__file__).resolve().parents[2] / "client" / "tenfold"
NAMESPACE_TYPES = FOLDER / "namespace_types"


def _line(public: str, module: str, attribute: str) -> str:
    """The import of a name under its public one."""
    if not module:
        module, _, attribute = attribute.rpartition(".")
    return f"from {module} import {attribute}" + (f" as {public}" if public != attribute else "")


def _line_of_tf(name: str, public: str) -> str:
    """The import of `tf.<name>` from where `tf` has it."""
    if name in tenfold._HOME:
        return _line(public, *tenfold._HOME[name])
    if name in tenfold._NAMESPACES:
        return _line(public, "", tenfold._NAMESPACES[name])
    return _line(public, "tenfold.namespace_types", name)


def _stub(table: str, lines: Iterable[str], rest: str = "") -> str:
    """`__all__` tells type checkers that what is imported is given on."""
    imports = sorted(lines)
    public = sorted(line.rpartition(" ")[2] for line in imports)
    names = "".join(f'    "{name}",\n' for name in public)
    return "\n".join(
        [f"# Written by `make stubs` from the table of {table}.\n", *imports, f"{rest}\n__all__ = [\n{names}]\n"]
    )


def _of_namespace(name: str) -> str:
    home = namespaces.namespace(name)._home
    return _stub(
        f"tf.{name} in namespaces.py",
        (
            _line_of_tf(attribute, public) if module == "tenfold" else _line(public, module, attribute)
            for public, (module, attribute) in home.items()
        ),
    )


def stubs() -> dict[Path, str]:
    """What each stub holds, by its path."""
    public = [*tenfold._HOME, *tenfold._NAMESPACES, *tenfold._GATHERED]
    found = {
        FOLDER / "__init__.pyi": _stub(
            "tenfold/__init__.py", (_line_of_tf(name, name) for name in public), "\n__version__: str\nnewaxis: None\n"
        ),
        NAMESPACE_TYPES / "__init__.pyi": "# Written by `make stubs`: what type checkers see of namespaces.py.\n",
    }
    for module, homes in ((train, train._HOME), (data, data._HOMES)):
        name = module.__name__
        lines = [_line(public, home, public) for public, home in {**homes, "experimental": name}.items()]
        found[FOLDER / name.rpartition(".")[2] / "__init__.pyi"] = _stub(f"{name.replace('.', '/')}/__init__.py", lines)
    for name in tenfold._GATHERED:
        found[NAMESPACE_TYPES / f"{name}.pyi"] = _of_namespace(name)
    return found


def main() -> None:
    NAMESPACE_TYPES.mkdir(exist_ok=True)
    wanted = stubs()
    for stale in {*NAMESPACE_TYPES.glob("*.pyi")} - {*wanted}:
        stale.unlink()
    for path, text in wanted.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
