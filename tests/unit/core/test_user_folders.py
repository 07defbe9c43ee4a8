"""Where files of the user lie that nobody named."""

from __future__ import annotations

from pathlib import Path

from tenfold_core.user_folders import config_folder, default_database, run_folder, state_folder


def test_the_base_directories() -> None:
    home = Path.home()

    assert state_folder({}) == home / ".local" / "state" / "tenfold"
    assert config_folder({}) == home / ".config" / "tenfold"
    assert state_folder({"XDG_STATE_HOME": "/s"}) == Path("/s/tenfold")
    assert config_folder({"XDG_CONFIG_HOME": "/c"}) == Path("/c/tenfold")
    assert state_folder({"XDG_STATE_HOME": "relative"}) == state_folder({})
    assert run_folder("run-1", {"XDG_STATE_HOME": "/s"}) == Path("/s/tenfold/runs/run-1")
    assert default_database({"XDG_STATE_HOME": "/s"}) == "/s/tenfold/control.db"
