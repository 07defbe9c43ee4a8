"""--log-level, --log-format and --otel, for the commands that run until they are told to stop. What they mean is in
tenfold_core/log_setup.py and tenfold_core/telemetry.py.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from tenfold_core import log_setup, telemetry

if TYPE_CHECKING:
    from collections.abc import Callable


#: Option → the variable by which children have it.
_VARIABLES = {"log_level": log_setup.LEVEL, "log_format": log_setup.FORMAT, "otel": telemetry.SWITCH}


def log_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options to a command, whose logging is configured before it begins."""

    @wraps(command)
    def configured(
        *arguments: Any,
        log_level: log_setup.Level,
        log_format: log_setup.Format,
        otel: telemetry.Switch,
        **options: Any,
    ) -> Any:
        log_setup.configure(log_level, log_format)
        telemetry.choose(otel)
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
    traces = click.option(
        "--otel",
        type=click.Choice(telemetry.SWITCHES, case_sensitive=False),
        default="auto",
        show_default=True,
        envvar=telemetry.SWITCH,
        help="OpenTelemetry traces; auto: where OTEL_EXPORTER_OTLP_ENDPOINT says where they go.",
    )
    return level(form(traces(configured)))


def variables() -> dict[str, str]:
    """The same for child processes, by the options of the command that runs."""
    given = click.get_current_context().params
    return {variable: given[name] for name, variable in _VARIABLES.items()}


def asked_variables() -> dict[str, str]:
    """As `variables`, but only what was asked for: a program that nobody asked about has logging of its own."""
    context = click.get_current_context()
    default = click.core.ParameterSource.DEFAULT
    asked = {name for name in _VARIABLES if context.get_parameter_source(name) != default}
    if asked & {"log_level", "log_format"}:
        asked |= {"log_level", "log_format"}
    return {variable: context.params[name] for name, variable in _VARIABLES.items() if name in asked}
