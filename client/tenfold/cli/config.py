"""Defaults of options from one TOML file, and `tenfold config`, which shows what is in force and where it comes from.

    [tenfold]                 # for each command that has such an option
    control = "http://trainer:8080"

    [up]
    workers = 4

The file is the one of --config or TENFOLD_CONFIG, else tenfold.toml in the working directory, else config.toml in
~/.config/tenfold. A flag wins over a variable, a variable over the file, the file over what is built in. All of the
file is checked, also what is for other commands than the one that runs: errors name the file, the line and the key.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenfold.cli.group import key_of, meant, options_of
from tenfold_core.user_folders import config_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: The section whose keys hold for each command that has such an option.
SHARED = "tenfold"
#: Where the command keeps its `Config` among click's `Context.meta`.
META = "tenfold.config"


@dataclass(frozen=True, slots=True)
class Config:
    """What a file gives. Commands are named by their words: ("up",)."""

    path: Path | None = None
    #: Command → key → (section, value).
    given: Mapping[tuple[str, ...], Mapping[str, tuple[str, Any]]] = field(default_factory=dict)

    def default_map(self, command: click.Command, words: tuple[str, ...] = ()) -> dict[str, Any]:
        """The defaults in the form that click's context takes."""
        found = self.given.get(words, {})
        defaults = {str(each.name): found[key][1] for each in options_of(command) if (key := key_of(each)) in found}
        if isinstance(command, click.Group):
            defaults |= {name: self.default_map(each, (*words, name)) for name, each in command.commands.items()}
        return defaults


def find(given: str | None) -> Path | None:
    """The file to read; None if there is none. Raises UsageError where `given` is not there."""
    if given is not None:
        if not os.path.exists(given):
            raise click.UsageError(f"there is no file {given!r} (--config, TENFOLD_CONFIG)")
        return Path(given)
    places = (Path("tenfold.toml"), config_folder() / "config.toml")
    return next((path for path in places if path.is_file()), None)


def load(path: Path, root: click.Group) -> Config:
    """Reads and checks the file. Raises UsageError that says what is wrong with it, and where."""
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise click.UsageError(f"{path} is not valid TOML: {error}") from None
    return _Reader(path, text).read(content, root)


class _Reader:
    def __init__(self, path: Path, text: str) -> None:
        self._path, self._lines = path, text.splitlines()
        self._given: dict[tuple[str, ...], dict[str, tuple[str, Any]]] = {}

    def read(self, content: dict[str, Any], root: click.Group) -> Config:
        shared = content.pop(SHARED, {})
        if not isinstance(shared, dict):
            raise self._error(None, SHARED, f"{SHARED} must be a section, [{SHARED}]")
        every = list(commands(root))
        known = {key_of(option) for _, command in every for option in options_of(command)}
        for key, value in shared.items():
            if key not in known:
                raise self._error(SHARED, key, f"no command has an option {key!r}{meant(key, known)}")
            for words, command in every:
                for option in options_of(command):
                    if key_of(option) == key:
                        self._take(words, option, SHARED, value)
        self._group(content, root, ())
        return Config(self._path, self._given)

    def _group(self, content: Mapping[str, Any], group: click.Group, words: tuple[str, ...]) -> None:
        for name, section in content.items():
            command = group.commands.get(name)
            where = ".".join((*words, name))
            if command is None:
                known = [*group.commands, *([] if words else [SHARED])]
                what = "section" if isinstance(section, dict) else "key"
                hint = meant(name, known) or f"; sections are {SHARED} and the names of the commands"
                raise self._error(where if what == "section" else None, name, f"unknown {what} {name!r}{hint}")
            if not isinstance(section, dict):
                raise self._error(None, name, f"{name} is a command: its options belong in a section, [{where}]")
            if isinstance(command, click.Group):
                self._group(section, command, (*words, name))
                continue
            options = {key_of(option): option for option in options_of(command)}
            for key, value in section.items():
                if key not in options:
                    raise self._error(where, key, f"[{where}] has no option {key!r}{meant(key, options)}")
                self._take((*words, name), options[key], where, value)

    def _take(self, words: tuple[str, ...], option: click.Option, section: str, value: Any) -> None:
        key = key_of(option)
        wanted, fits = _kind(option)
        if not fits(value):
            raise self._error(section, key, f"{key} is {_shown(value)}; it must be {wanted}")
        try:
            for each in value if option.multiple else [value]:
                option.type.convert(each, option, None)
        except click.BadParameter as error:
            raise self._error(section, key, f"{key}: {error.message}") from None
        self._given.setdefault(words, {})[key] = (section, value)

    def _error(self, section: str | None, key: str, text: str) -> click.UsageError:
        line = self._line(section, key)
        return click.UsageError(f"{self._path}{'' if line is None else f':{line}'}: {text}")

    def _line(self, section: str | None, key: str) -> int | None:
        """Where `key` of `section`, or the section itself, stands; None where it is written in another way."""
        now: str | None = None
        for number, line in enumerate(self._lines, 1):
            if header := re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line):
                now = header[1].replace('"', "")
                if now == section and now.rpartition(".")[2] == key:
                    return number
            elif now == section and re.match(rf'\s*"?{re.escape(key)}"?\s*(=|\.)', line):
                return number
        return None


def _kind(option: click.Option) -> tuple[str, Any]:
    """What a value must be: in words, and whether one is."""
    if option.multiple:
        return "a list of texts", lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value)
    if option.is_flag:
        return "true or false", lambda value: isinstance(value, bool)
    if isinstance(option.type, click.types.IntParamType):
        return "a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)
    if isinstance(option.type, click.types.FloatParamType):
        return "a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool)
    return "a text", lambda value: isinstance(value, str)


def _shown(value: Any) -> str:
    return json.dumps(value, default=str)[:60]


def commands(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command under `group` that is no group itself, with its words."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name), command


@dataclass(frozen=True, slots=True)
class Setting:
    """One option of one command as it is in force without a flag."""

    command: str
    key: str
    #: None where there is none. A token is not shown.
    value: Any
    #: "default", the variable, or the file with its section.
    source: str


def in_force(root: click.Group, config: Config, environment: Mapping[str, str] = os.environ) -> Iterator[Setting]:
    for words, command in commands(root):
        for option in options_of(command):
            key = key_of(option)
            value, source = option.to_info_dict()["default"], "default"
            value = value() if callable(value) else value
            if (text := environment.get(str(option.envvar), "")) != "":
                value, source = text, str(option.envvar)
            elif (found := config.given.get(words, {}).get(key)) is not None:
                value, source = found[1], f"{config.path} [{found[0]}]"
            if key == "token" and value is not None:
                value = "(set)"
            yield Setting(" ".join(words), key, value, source)


@click.command("config")
@click.option("--all", "everything", is_flag=True, help="Also what nobody has set.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.argument("name", metavar="[COMMAND]", required=False)
@click.pass_context
def show_config(context: click.Context, everything: bool, as_json: bool, name: str | None) -> None:
    """Show which options are in force, and where each value comes from: a variable, the file, or the default.

    Of all commands what is set, with --all or for one COMMAND the defaults, too.
    """
    from tenfold.cli.tables import plain_console, plain_table

    root = context.find_root()
    assert isinstance(root.command, click.Group)
    names = [" ".join(words) for words, _ in commands(root.command)]
    if name is not None and name not in names:
        raise click.UsageError(f"no such command: {name}{meant(name, names)}")
    config: Config = root.meta[META]
    found = [
        each
        for each in in_force(root.command, config)
        if (name is None or each.command == name) and (everything or name is not None or each.source != "default")
    ]
    if as_json:
        settings = [{"command": s.command, "option": s.key, "value": s.value, "source": s.source} for s in found]
        click.echo(json.dumps({"file": config.path and str(config.path), "settings": settings}, indent=2))
        return
    click.echo(f"file: {config.path or 'none (tenfold.toml, ~/.config/tenfold/config.toml)'}")
    if not found:
        click.echo("Nothing is set: the defaults are in force.")
        return
    rows = [(s.command, s.key, "" if s.value is None else str(s.value), s.source) for s in found]
    plain_console().print(plain_table(("command", "option", "value", "from"), rows))
