"""Where `tenfold demo` finds its program, and what it says where something that it needs is not installed."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import tenfold
from tenfold.cli import demo as command
from tenfold.cli.main import cli

ROOT = Path(__file__).resolve().parents[4]


def test_in_a_checkout_it_is_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda path, arguments: ran.append([path, *arguments]))

    CliRunner().invoke(cli, ["demo"], catch_exceptions=False)

    assert ran == [[sys.executable, sys.executable, str(ROOT / "examples" / "demo.py")]]


def test_from_a_wheel_it_is_the_packages_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "tenfold"
    (package / "cli" / "programs").mkdir(parents=True)
    monkeypatch.setattr(tenfold, "__file__", str(package / "__init__.py"))

    assert command.examples() == package / "cli" / "programs"


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "sklearn" else found(name))
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("the demo must not start"))

    one = CliRunner().invoke(cli, ["demo"])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    both = CliRunner().invoke(cli, ["demo"])

    hint = "pip install 'tenfold[control,examples]'."
    assert (one.exit_code, both.exit_code) == (1, 1)
    assert f"the demo needs what the extra examples of Tenfold brings: {hint}" in one.output
    assert f"the demo needs what the extras control and examples of Tenfold bring: {hint}" in both.output
