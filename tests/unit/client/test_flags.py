"""tf.flags and tf.app.run: what a command line means, checks, and what is left to the program."""

from __future__ import annotations

import enum
import subprocess
import sys

import pytest

import tenfold as tf
from tenfold import flags


@pytest.fixture
def values() -> flags.FlagValues:
    return flags.FlagValues()


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def test_values_defaults_and_what_is_left(values: flags.FlagValues) -> None:
    flags.DEFINE_string("job", "ps", "help", values)
    flags.DEFINE_integer("index", 3, "help", flag_values=values)
    flags.DEFINE_float("rate", "0.5", "help", flag_values=values)
    flags.DEFINE_bool("sync", False, "help", values)
    flags.DEFINE_bool("log", True, "help", values)
    flags.DEFINE_list("hosts", None, "help", values)

    argv = ["prog", "--index=7", "rest", "-job", "worker", "--sync", "--nolog", "--hosts=a:1, b:2", "--other=1", "--"]
    left = values([*argv, "--index=9"], known_only=True)

    assert left == ["prog", "rest", "--other=1", "--", "--index=9"]
    assert values.flag_values_dict() == {
        "job": "worker",
        "index": 7,
        "rate": 0.5,
        "sync": True,
        "log": False,
        "hosts": ["a:1", "b:2"],
    }
    assert not values["rate"].present
    values.unparse_flags()
    values.mark_as_parsed()
    assert (values.index, values.job) == (3, "ps")


def test_a_value_set_by_the_program_stays_until_it_is_given(values: flags.FlagValues) -> None:
    flags.DEFINE_integer("steps", 1, "help", flag_values=values)
    values.steps = 5
    values(["prog"])
    assert values.steps == 5
    values(["prog", "--steps", "0x10"])
    assert values.steps == 16


def test_lists_of_several_and_words_of_some(values: flags.FlagValues) -> None:
    flags.DEFINE_multi_string("name", "none", "help", values)
    flags.DEFINE_multi_integer("port", [1], "help", flag_values=values)
    flags.DEFINE_enum("mode", "fast", ["fast", "slow"], "help", values)
    flags.DEFINE_enum_class("colour", Colour.RED, Colour, "help", values)
    flags.DEFINE_alias("farbe", "colour", values)

    values(["prog", "--name=a", "--name=b", "--mode=slow", "--farbe=BLUE"])

    assert (values.name, values.port, values.mode, values.colour) == (["a", "b"], [1], "slow", Colour.BLUE)


@pytest.mark.parametrize(
    ("argument", "said"),
    [("--index=x", "--index=x"), ("--index=11", "range"), ("--sync=maybe", "Non-boolean"), ("--mode=no", "fast|slow")],
)
def test_a_value_that_does_not_fit_is_named(values: flags.FlagValues, argument: str, said: str) -> None:
    flags.DEFINE_integer("index", 1, "help", 0, 10, values)
    flags.DEFINE_bool("sync", False, "help", values)
    flags.DEFINE_enum("mode", "fast", ["fast", "slow"], "help", values)
    with pytest.raises(flags.IllegalFlagValueError) as caught:
        values(["prog", argument])
    assert said in str(caught.value)


def test_missing_unknown_and_double(values: flags.FlagValues) -> None:
    flags.DEFINE_string("job", None, "help", values)
    with pytest.raises(flags.Error, match="Missing value for flag --job"):
        values(["prog", "--job"])
    with pytest.raises(flags.UnrecognizedFlagError, match="'jbo'"):
        values(["prog", "--jbo=1"], known_only=False)
    with pytest.raises(flags.DuplicateFlagError, match="'job'"):
        flags.DEFINE_string("job", None, "help", values)
    values.mark_as_parsed()
    with pytest.raises(AttributeError, match="nothing"):
        _ = values.nothing
    with pytest.raises(KeyError):
        values["nothing"]


def test_checks(values: flags.FlagValues) -> None:
    flags.DEFINE_string("job", None, "help", values)
    flags.DEFINE_string("task", None, "help", values)
    flags.DEFINE_integer("index", 0, "help", flag_values=values)
    flags.mark_flag_as_required("job", values)
    flags.mark_flags_as_mutual_exclusive(["job", "task"], flag_values=values)

    @flags.validator("index", "it must be even", values)
    def is_even(value: int) -> bool:
        return value % 2 == 0

    with pytest.raises(flags.IllegalFlagValueError, match="must have a value other than None"):
        values(["prog"])
    with pytest.raises(flags.IllegalFlagValueError, match="At most one"):
        values(["prog", "--job=a", "--task=b"])
    values.unparse_flags()
    with pytest.raises(flags.IllegalFlagValueError, match="it must be even"):
        values(["prog", "--job=a", "--index=1"])
    values(["prog", "--index=2"])
    assert is_even(values.index)


def test_old_argument_names(values: flags.FlagValues) -> None:
    flags.DEFINE_string(flag_name="job", default_value="ps", docstring="help", flag_values=values)
    values(["prog"])
    assert values.job == "ps"


def test_app_run_gives_main_what_is_left_and_exits_with_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "FLAGS", flags.FlagValues())
    flags.DEFINE_integer("answer", 1, "help", flag_values=flags.FLAGS)
    seen = []

    def main(argv: list[str]) -> int:
        seen.append(argv)
        return int(flags.FLAGS.answer)

    with pytest.raises(SystemExit) as end:
        tf.app.run(main, ["prog", "--answer=42", "more"])

    assert (end.value.code, seen) == (42, [["prog", "more"]])


#: A program of its own: FLAGS is one for the process.
PROGRAM = """
import sys
import tenfold as tf
assert "absl" not in sys.modules
flags = tf.app.flags
flags.DEFINE_string("job", "ps", "Name of the job.")
flags.DEFINE_integer("index", 0, "Index.", lower_bound=0)
FLAGS = tf.flags.FLAGS
assert not FLAGS.is_parsed() and hasattr(flags, "ArgumentParser") and not hasattr(FLAGS, "nothing")
if "--help" not in sys.argv:
    assert (FLAGS.job, FLAGS.index) == ("worker", 0)
    assert {name: flag.value for name, flag in FLAGS.__flags.items() if name in ("job", "index")} == {
        "job": "worker", "index": 0
    }
tf.app.run(lambda argv: print(argv[1:]))
"""


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [(["--job=worker", "--other", "rest"], 0, "['--other', 'rest']"), (["--help"], 1, "--job: Name of the job.")],
)
def test_flags_of_a_program(arguments: list[str], code: int, said: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, timeout=60)

    assert done.returncode == code, done.stderr
    assert said in done.stdout
