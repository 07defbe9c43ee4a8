"""Which settings are tried, how many at once: --param, --random, --seed, --parallel of `sweep` and `render slurm`."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.sweeps.space import Dimension

_COUNT = click.IntRange(min=1)


def dimension_options(*, required: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds the options; the command gets `dimensions`, `draws` (None: every combination), `seed` and `parallel`."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        param = click.option(
            "--param",
            "dimensions",
            multiple=True,
            required=required,
            callback=_dimensions,
            metavar="NAME=VALUES",
            help="A parameter to try: lr=0.1,0.01, layers=2..4, or with --random lr=log:1e-4..0.1.",
        )
        for option in (
            click.option("--parallel", type=_COUNT, metavar="N", help="The most runs at once (a sweep: 1)."),
            click.option("--seed", type=int, default=0, show_default=True, help="The same one draws the same again."),
            click.option("--random", "draws", type=_COUNT, metavar="N", help="Draw N settings; by default, run all."),
            param,
        ):
            command = option(command)
        return command

    return add


def space_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options; the command gets `points`, the settings, which are none where no parameter is given, and
    `parallel`."""

    @wraps(command)
    def given(*arguments: Any, dimensions: list[Dimension], draws: int | None, seed: int, **others: Any) -> Any:
        from tenfold.sweeps.space import SpaceError, draw, grid

        points = []
        try:
            if dimensions:
                points = grid(dimensions) if draws is None else draw(dimensions, draws, seed)
        except SpaceError as error:
            raise click.UsageError(str(error)) from None
        return command(*arguments, points=points, **others)

    return dimension_options(required=False)(given)


def _dimensions(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> list[Dimension]:
    from tenfold.sweeps.space import SpaceError, parse

    try:
        return [parse(text) for text in values]
    except SpaceError as error:
        raise click.BadParameter(str(error)) from None
