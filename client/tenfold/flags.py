"""`tf.flags`, also `tf.app.flags`: command line flags as TensorFlow 1.x programs define them.

`DEFINE_string("job_name", "", "help")`, then `FLAGS.job_name`. The command line is read at the first look at a flag,
or by `tf.app.run`; `--name=value`, `--name value`, `--flag` and `--noflag` are understood, with one dash or two.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class FlagValues:
    """The flags of the program by name. Unknown arguments are left to the program."""

    def __init__(self) -> None:
        object.__setattr__(self, "_parser", argparse.ArgumentParser(allow_abbrev=False))
        object.__setattr__(self, "_values", {})
        object.__setattr__(self, "_parsed", False)

    def _define(self, name: str, default: Any, help: str | None, convert: Callable[[str], Any], **options: Any) -> None:
        if name in self._values:
            raise ValueError(f"The flag '{name}' is defined twice.")
        spellings = [f"--{name}"] if len(name) == 1 else [f"--{name}", f"-{name}"]
        if convert is _to_bool:
            options |= {"nargs": "?", "const": True}
            self._parser.add_argument(f"--no{name}", f"-no{name}", dest=name, action="store_const", const=False)
        self._parser.add_argument(*spellings, dest=name, type=convert, help=(help or "").replace("%", "%%"), **options)
        # Not argparse's default: a flag set in the program before the command line is read must stay.
        self._parser.set_defaults(**{name: argparse.SUPPRESS})
        self._values[name] = default
        object.__setattr__(self, "_parsed", False)

    def __call__(self, argv: Sequence[str], known_only: bool = False) -> list[str]:
        """Reads `argv`, whose first item is the program; gives it back without the flags. Exits on a malformed flag."""
        space, rest = self._parser.parse_known_args(list(argv)[1:])
        self._values.update(vars(space))
        object.__setattr__(self, "_parsed", True)
        return [*argv[:1], *rest]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(f"no flag is named {name!r}; defined are {', '.join(sorted(self._values)) or 'none'}")
        if not self._parsed:
            self(sys.argv)
        return self._values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self._values[name] = value

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __iter__(self) -> Any:
        return iter(self._values)

    def flag_values_dict(self) -> dict[str, Any]:
        """Flag → value."""
        if not self._parsed:
            self(sys.argv)
        return dict(self._values)


FLAGS = FlagValues()


def _to_bool(text: str) -> bool:
    if text.lower() in ("true", "t", "1", "yes", "y"):
        return True
    if text.lower() in ("false", "f", "0", "no", "n"):
        return False
    raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")


def _to_list(text: str) -> list[str]:
    return [item.strip() for item in text.split(",")] if text else []


def DEFINE_string(name: str, default: str | None, help: str | None = None) -> None:
    """A flag that is text."""
    FLAGS._define(name, default, help, str)


def DEFINE_integer(name: str, default: int | None, help: str | None = None) -> None:
    """A flag that is a whole number."""
    FLAGS._define(name, default, help, int)


def DEFINE_float(name: str, default: float | None, help: str | None = None) -> None:
    """A flag that is a number."""
    FLAGS._define(name, default, help, float)


def DEFINE_boolean(name: str, default: bool | None, help: str | None = None) -> None:
    """A flag that is true or false."""
    FLAGS._define(name, default, help, _to_bool)


DEFINE_bool = DEFINE_boolean


def DEFINE_list(name: str, default: list[str] | str | None, help: str | None = None) -> None:
    """A flag that is a comma-separated list."""
    FLAGS._define(name, _to_list(default) if isinstance(default, str) else default, help, _to_list)


def DEFINE_enum(name: str, default: str | None, enum_values: Sequence[str], help: str | None = None) -> None:
    """A flag that is one of some words."""
    FLAGS._define(name, default, help, str, choices=list(enum_values))
