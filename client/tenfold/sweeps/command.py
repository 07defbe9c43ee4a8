"""The command of a setting. Pure. Used by the control service, and by job arrays (cli/render.py)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tenfold_core.parameter_values import write_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.sweeps.space import Point

_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")


def command_of(entrypoint: Sequence[str], point: Point) -> list[str]:
    """The command of a setting: `{lr}` in an argument becomes the value of lr; a parameter that no argument mentions is
    added as --NAME=VALUE."""
    mentioned: set[str] = set()

    def value(match: re.Match[str]) -> str:
        if match[1] not in point:
            return match[0]
        mentioned.add(match[1])
        return write_value(point[match[1]])

    words = [_PLACEHOLDER.sub(value, word) for word in entrypoint]
    return [*words, *(f"--{name}={write_value(each)}" for name, each in point.items() if name not in mentioned)]
