"""What a program records of itself: flags of absl and argparse, HParams, and nothing that is secret or a place."""

from __future__ import annotations

import argparse
import enum
import subprocess
import sys
from collections import deque
from typing import Any

import numpy as np
import pytest
from absl import flags as absl_flags

from tenfold.contrib.training import HParams, hparam
from tenfold.runs import recorded


class Size(enum.Enum):
    SMALL = 1


@pytest.fixture(autouse=True)
def nothing_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of its own: no flags, nothing parsed, no hyperparameters; argparse as it was afterwards."""
    monkeypatch.setattr(recorded, "_parsed", deque(maxlen=4))
    monkeypatch.setattr(hparam, "newest", deque(maxlen=4))
    monkeypatch.setattr(absl_flags, "FLAGS", absl_flags.FlagValues())
    monkeypatch.setattr(argparse.ArgumentParser, "parse_known_args", argparse.ArgumentParser.parse_known_args)


def parser(**defaults: Any) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    for name, value in defaults.items():
        made.add_argument(f"--{name}", type=type(value), default=value)
    return made


def test_what_argparse_parses_is_recorded_as_it_is_when_it_is_told() -> None:
    recorded.watch()
    recorded.watch()

    args = parser(lr=0.1, layers=2, name="a").parse_args(["--lr", "0.5"])
    args.layers = 7

    assert recorded.parameters() == {"lr": 0.5, "layers": 7, "name": "a"}


def test_a_parser_with_commands_is_recorded_with_its_command() -> None:
    recorded.watch()
    made = parser(lr=0.1)
    made.add_subparsers(dest="command").add_parser("train").add_argument("--steps", type=int)

    made.parse_args(["--lr=1", "train", "--steps=3"])

    assert recorded.parameters() == {"lr": 1.0, "command": "train", "steps": 3}


def test_flags_of_absl_are_recorded_once_they_are_parsed_without_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    values = absl_flags.FLAGS
    absl_flags.DEFINE_float("lr", 0.1, "rate", flag_values=values)
    absl_flags.DEFINE_enum_class("size", Size.SMALL, Size, "size", flag_values=values)
    absl_flags.DEFINE_integer("verbosity", 1, "absl's own", flag_values=values, module_name="absl.logging")
    before = recorded.parameters()

    values(["program", "--lr=0.3"])

    assert before == {}
    assert recorded.parameters() == {"lr": 0.3, "size": "SMALL"}


def test_hyperparameters_are_recorded_and_count_before_flags() -> None:
    recorded.watch()
    parser(lr=0.1, batch=32).parse_args([])
    params = HParams(lr=0.2, layers=[3, 4])

    params.parse("lr=0.3")

    assert recorded.parameters() == {"lr": 0.3, "batch": 32, "layers": "[3, 4]"}


def test_what_says_which_task_it_is_and_what_is_secret_is_not_recorded() -> None:
    told = recorded.shown(
        {
            "task_index": 1,
            "ps_hosts": "a:1",
            "none": None,
            "api_key": "x",
            "db_password": "x",
            "max_tokens": 5,
            "key": "k",
        }
    )

    assert told == {
        "api_key": recorded.NOT_RECORDED,
        "db_password": recorded.NOT_RECORDED,
        "max_tokens": 5,
        "key": "k",
    }


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (True, True),
        (3, 3),
        (1 << 60, str(1 << 60)),
        (0.5, 0.5),
        (float("nan"), "nan"),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.zeros(2), "[0. 0.]"),
        ((1, 2), "[1, 2]"),
        ("a\0b", "ab"),
        ("x" * 5000, "x" * 1000),
    ],
)
def test_values_become_numbers_truth_values_or_bounded_text(value: Any, kept: Any) -> None:
    told = recorded.shown({"p": value})["p"]

    assert (told, type(told)) == (kept, type(kept))


def test_a_value_that_cannot_be_shown_is_no_error() -> None:
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert recorded.shown({"p": Broken()}) == {"p": "a Broken"}


def test_there_are_at_most_five_hundred() -> None:
    assert len(recorded.shown({f"p{at}": at for at in range(600)})) == 500


def test_versions_are_those_that_run() -> None:
    assert recorded.versions()["numpy"] == np.__version__
    assert recorded.versions()["python"].startswith(f"{sys.version_info[0]}.{sys.version_info[1]}")


@pytest.mark.parametrize(("variables", "noted"), [({}, False), ({"TENFOLD_CONTROL": "http://127.0.0.1:1"}, True)])
def test_import_watches_argparse_only_where_somebody_is_told(variables: dict[str, str], noted: bool) -> None:
    program = "import argparse, tenfold; print(hasattr(argparse.ArgumentParser.parse_known_args, 'noted'))"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=variables, timeout=60)

    assert done.stdout.strip() == str(noted), done.stderr
