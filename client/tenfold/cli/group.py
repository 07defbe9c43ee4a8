"""What every command of `tenfold` has: near misses in messages, a variable for each option, defaults from a file.

The group does it, so a command needs nothing but `@click.command()`. `ProgramCommand` is for those whose arguments are
a program and what belongs to that. The file is read by config.py.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Prefix of all variables.
PREFIX = "TENFOLD"


class Group(click.Group):
    """A group whose commands have all their options in the environment, and which knows what was meant."""

    group_class = type

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Adds it, and names the variable of each of its options that names none: TENFOLD_COMMAND_OPTION."""
        super().add_command(cmd, name)
        name_variables(cmd, f"{PREFIX}_{(name or cmd.name or '').upper()}")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        given = args[0]
        if self.get_command(ctx, given) is None and not given.startswith("-"):
            raise click.UsageError(f"no such command: {given}{meant(given, self.list_commands(ctx))}", ctx)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise no_such_option(error) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            raise no_such_option(error) from None


class ProgramCommand(click.Command):
    """A command that ends in a program: options after the first other word, or after `-m`, are the program's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        takes_value = {name: not (each.is_flag or each.count) for each in options_of(self) for name in each.opts}
        at = 0
        while at < len(args) and (name := args[at].partition("=")[0]) in takes_value:
            at += 1 + (takes_value[name] and name == args[at])
        if at < len(args) and args[at].startswith("-m"):
            args = [*args[:at], "--", *args[at:]]
        return super().parse_args(ctx, args)


def options_of(command: click.Command) -> list[click.Option]:
    """The options whose values a command gets; not --help and --version."""
    return [each for each in command.params if isinstance(each, click.Option) and each.expose_value]


def key_of(option: click.Option) -> str:
    """An option as the file names it: `cluster-name` for --cluster-name."""
    return max(option.opts, key=len).lstrip("-")


def name_variables(command: click.Command, prefix: str) -> None:
    """Gives each option of `command` that has none a variable, and shows it in the help."""
    for option in options_of(command):
        if option.envvar is None:
            option.envvar = f"{prefix}_{key_of(option).upper().replace('-', '_')}"
        option.show_envvar = True


def meant(given: str, known: Iterable[str]) -> str:
    """ ", did you mean status?"; empty where nothing is near."""
    near = difflib.get_close_matches(given, list(known), n=1, cutoff=0.6)
    return f", did you mean {near[0]}?" if near else ""


def no_such_option(error: click.NoSuchOption) -> click.UsageError:
    """The same in one sentence, with the option that was meant."""
    known = [name for each in (error.ctx.command.params if error.ctx else ()) for name in each.opts]
    return click.UsageError(f"no such option: {error.option_name}{meant(error.option_name, known)}", error.ctx)
