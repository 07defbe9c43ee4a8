"""Estimators of TensorFlow 1.15 and Tenfold on one folder: each goes on from the other's checkpoints, to the same
numbers, with the same files and events; each serves what the other exported."""

from __future__ import annotations

import glob
import os
from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf

from .estimator_program import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .tensorflow_processes import Forks

PRELUDE = """
import json, sys, warnings
warnings.simplefilter("ignore")
import tensorflow as tf
folder = sys.argv[1]
"""

pytestmark = pytest.mark.thorough


def ours(folder: Path) -> Any:
    """The program's functions on Tenfold."""
    names: dict[str, Any] = {"tf": tf, "folder": str(folder)}
    exec(compile(PROGRAM, "<program>", "exec"), names)
    return names


@pytest.fixture
def ask(forks: dict[str, Forks]) -> Callable[[str, Path], Any]:
    """Runs a script after the program, under TensorFlow 1.15; what it prints last, as JSON."""
    return lambda script, folder: forks["1.15"].ask(PRELUDE + PROGRAM + script, str(folder))


def files(folder: Path) -> set[str]:
    """The names below a folder, without what differs from run to run."""
    found = [path for path in glob.glob(f"{folder}/**", recursive=True) if os.path.isfile(path)]
    return {os.path.relpath(path, folder).partition("tfevents")[0] for path in found}


def test_each_goes_on_from_the_others_checkpoint(ask: Callable[[str, Path], Any], tmp_path: Path) -> None:
    alone, both = tmp_path / "alone", tmp_path / "both"
    alone.mkdir()
    train = "print(json.dumps(numbers(trained({}).evaluate(input_fn, steps=4))))"
    expected = ask(train.format(6) + "\n" + train.format(6) + "\n" + train.format(6), alone)

    ours(both)["trained"](6)
    ask(train.format(6), both)
    estimator = ours(both)["trained"](6)
    found = ours(both)["numbers"](estimator.evaluate(ours(both)["input_fn"], steps=4))
    tf.summary.FileWriterCache.clear()

    assert found == pytest.approx(expected, rel=1e-4)
    assert found["global_step"] == 18
    assert sorted(estimator.get_variable_names()) == sorted(
        ask("print(json.dumps(estimator().get_variable_names()))", alone)
    )


def test_files_and_events_are_the_same(ask: Callable[[str, Path], Any], tmp_path: Path) -> None:
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    script = "trained(6).evaluate(input_fn, steps=4)\nprint(json.dumps([tags('/events*'), tags('/eval/events*')]))"
    expected = ask(script, theirs)

    names = ours(mine)
    names["trained"](6).evaluate(names["input_fn"], steps=4)
    tf.summary.FileWriterCache.clear()

    assert [names["tags"]("/events*"), names["tags"]("/eval/events*")] == expected
    assert files(mine) == files(theirs)


def test_each_serves_what_the_other_exported(ask: Callable[[str, Path], Any], tmp_path: Path) -> None:
    estimator = ours(tmp_path)["trained"](6)
    mine = estimator.export_saved_model(str(tmp_path / "mine"), ours(tmp_path)["receiver_fn"]).decode()
    script = """
    path = estimator().export_saved_model(folder + "/theirs", receiver_fn).decode()
    print(json.dumps([path, served(sys.argv[1] + "/mine/" + "{}"), served(path)]))
    """.replace("\n    ", "\n").format(os.path.basename(mine))

    theirs, *answers = ask(script, tmp_path)
    answers += [ours(tmp_path)["served"](each) for each in (mine, theirs)]

    assert answers == pytest.approx([answers[0]] * 4, rel=1e-5)
    mine_files, their_files = (
        {name.partition("/")[2] for name in files(tmp_path / each)} for each in ("mine", "theirs")
    )
    assert mine_files == their_files
