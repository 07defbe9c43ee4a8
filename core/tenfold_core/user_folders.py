"""Where this user's files lie that nobody named: the XDG base directories. Nothing here makes a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


#: In the folder of a run: what its programs leave.
OUTPUT_FOLDER = "output"


def state_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """`~/.local/state/tenfold`: what has to outlive a process."""
    return _of("XDG_STATE_HOME", (".local", "state"), environment)


def config_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """`~/.config/tenfold`: what the user has written."""
    return _of("XDG_CONFIG_HOME", (".config",), environment)


def default_database(environment: Mapping[str, str] = os.environ) -> str:
    """The control service's database unless another is named."""
    return str(state_folder(environment) / "control.db")


def up_database(environment: Mapping[str, str] = os.environ) -> str:
    """The database of the control service of `tenfold up`, unless another is named."""
    return str(state_folder(environment) / "up" / "control.db")


def run_folder(run: str, environment: Mapping[str, str] = os.environ) -> Path:
    """What a run by hand leaves on its machine: its logs and output."""
    return state_folder(environment) / "runs" / run


def _of(variable: str, below_home: tuple[str, ...], environment: Mapping[str, str]) -> Path:
    # the standard says that a relative path does not count
    given = environment.get(variable, "")
    return (Path(given) if os.path.isabs(given) else Path.home().joinpath(*below_home)) / "tenfold"
