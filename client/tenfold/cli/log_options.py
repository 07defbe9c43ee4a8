"""--log-level and --log-format, for the commands that run until they are told to stop. What they mean is in
tenfold_core/log_setup.py.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from tenfold_core import log_setup

if TYPE_CHECKING:
    from collections.abc import Callable


def log_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds both options to a command, whose logging is configured before it begins."""

    @wraps(command)
    def configured(*arguments: Any, log_level: log_setup.Level, log_format: log_setup.Format, **options: Any) -> Any:
        log_setup.configure(log_level, log_format)
        return command(*arguments, **options)

    level = click.option(
        "--log-level",
        type=click.Choice(log_setup.LEVELS, case_sensitive=False),
        default="warning",
        show_default=True,
        envvar=log_setup.LEVEL,
        help="The least level that is logged, on standard error.",
    )
    form = click.option(
        "--log-format",
        type=click.Choice(log_setup.FORMATS, case_sensitive=False),
        default="text",
        show_default=True,
        envvar=log_setup.FORMAT,
        help="Lines of text, or of JSON.",
    )
    return level(form(configured))


def variables() -> dict[str, str]:
    """The same for child processes, by the options of the command that runs."""
    given = click.get_current_context().params
    return {log_setup.LEVEL: given["log_level"], log_setup.FORMAT: given["log_format"]}


def asked_variables() -> dict[str, str]:
    """As `variables`, but only what was asked for: a program that nobody asked about has logging of its own."""
    context = click.get_current_context()
    default = click.core.ParameterSource.DEFAULT
    asked = any(context.get_parameter_source(name) != default for name in ("log_level", "log_format"))
    return variables() if asked else {}
