"""`tenfold token new`, and the option by which every other command takes the token that it shows.

The tokens themselves, and the lines of a token file, are tenfold_core.access.tokens'.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from tenfold.cli.group import Group
from tenfold_core.access.credentials import AccessSettings, ShownToken
from tenfold_core.access.roles import Role, role_named
from tenfold_core.access.tokens import Token, digest_of, line_of, new_token

if TYPE_CHECKING:
    from collections.abc import Callable

_UNITS = {"m": 60, "h": 3600, "d": 86_400}


def _not_in_the_open(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """The list of processes shows a command's line to every user of the machine."""
    if value is not None and context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE:
        raise click.UsageError(
            "a token on the command line can be read by every user of this machine, in the list of processes, and "
            "stays in the shell's history. Set TENFOLD_TOKEN, or give a file that only you may read: --token-file FILE "
            "(TENFOLD_TOKEN_FILE); `tenfold token new --file FILE` makes one."
        )
    return value


def token_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds what a command shows and, where it serves, accepts: the command gets `token`, a ShownToken."""

    @wraps(command)
    def given(*arguments: Any, token: str | None, token_file: str | None, **options: Any) -> Any:
        return command(*arguments, token=shown(token, token_file), **options)

    secret = click.option(
        "--token",
        callback=_not_in_the_open,
        envvar="TENFOLD_TOKEN",
        show_envvar=True,
        metavar="",
        help="The cluster's token, from the variable or a file of options; refused here, where others could read it.",
    )
    file = click.option(
        "--token-file",
        metavar="FILE",
        envvar="TENFOLD_TOKEN_FILE",
        show_envvar=True,
        help="A file of tokens, a line each, in place of --token; the first one is shown. It may change under way.",
    )
    return secret(file(given))


def shown(token: str | None, token_file: str | None) -> ShownToken:
    """What a command shows that was given these; the file counts. Raises UsageError for what is not a token."""
    from tenfold_core import errors

    try:
        return ShownToken(replace(AccessSettings.from_environment(), token=token, token_file=token_file))
    except errors.InvalidArgumentError as error:
        raise click.UsageError(error.message) from None


@click.group(cls=Group)
def token() -> None:
    """Make the tokens by which clients, tasks and the control service of a cluster know each other."""


def _role(context: click.Context, parameter: click.Parameter, value: str) -> Role:
    try:
        return role_named(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _seconds(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    match = re.fullmatch(r"([0-9]+)([mhd])", value)
    if match is None or not int(match[1]):
        raise click.BadParameter(f"{value!r} is not a time: write 30m, 12h or 90d")
    return float(int(match[1]) * _UNITS[match[2]])


def role_option(default: str, variable: str) -> Callable[[Any], Any]:
    """--role of a token or a certificate; a Role."""
    return click.option(
        "--role",
        default=default,
        show_default=True,
        callback=_role,
        metavar="ROLE",
        envvar=variable,
        help="What it allows: read, run:untrusted, run, register (tasks), or admin; each includes those before it.",
    )


@token.command()
@role_option("admin", "TENFOLD_TOKEN_NEW_ROLE")
@click.option(
    "--name",
    envvar="TENFOLD_TOKEN_NEW_NAME",
    default="",
    metavar="NAME",
    help="The owner, shown in the file and the log.",
)
@click.option(
    "--expires",
    "lasts",
    envvar="TENFOLD_TOKEN_NEW_EXPIRES",
    callback=_seconds,
    metavar="TIME",
    help="It is good for so long: 30m, 12h, 90d.",
)
@click.option(
    "--file",
    envvar="TENFOLD_TOKEN_NEW_FILE",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Add it to this token file, which is created if missing; the newest is first, and is presented to others.",
)
@click.option(
    "--hashed",
    envvar="TENFOLD_TOKEN_NEW_HASHED",
    is_flag=True,
    help="Keep only its digest in FILE: it is accepted there and cannot be read there.",
)
def new(role: Role, name: str, lasts: float | None, file: str | None, hashed: bool) -> None:
    """Make a token, and print it.

    Give it to clients and tasks as TENFOLD_TOKEN or, in a file that only they may read, as TENFOLD_TOKEN_FILE. Where
    tasks and the control service have a token file, they accept its tokens; they look at it again while they run.
    """
    if hashed and file is None:
        raise click.UsageError("--hashed is of a file: give --file as well")
    if any(each.isspace() or each in "#=" for each in name):
        raise click.UsageError(f"--name {name!r} has a space, # or = in it")
    text = new_token()
    made = Token(digest_of(text), role, name, None if lasts is None else time.time() + lasts)
    if file is not None:
        _add(Path(file), line_of(text, made, hashed=hashed), first=not hashed)
        click.echo(f"added to {file}: {line_of(text, made, hashed=True)}", err=True)
    click.echo(text)


def _add(path: Path, line: str, *, first: bool) -> None:
    """Writes the file anew with `line` in it; only its owner may read it."""
    from tenfold_core import errors
    from tenfold_core.checkpoint.files import AtomicFile

    try:
        old = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        lines = [line, *old] if first else [*old, line]
        with AtomicFile(str(path)) as writing:
            os.fchmod(writing.fileno(), 0o600)
            writing.write("".join(f"{each}\n" for each in lines).encode())
    except (OSError, UnicodeDecodeError, errors.OpError) as error:
        raise click.ClickException(f"the token file {path} cannot be written: {error}") from None
