"""The page on TensorFlow's names says what a program finds, and no name is left out without a reason."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import tenfold
from support import compatibility
from support.inert_arguments import INERT, unread
from tenfold import left_out


def _found(path: str) -> Any:
    found: Any = tenfold
    for part in path.split(".")[1:]:
        found = getattr(found, part)
    return found


def test_the_page_is_what_a_program_finds() -> None:
    assert compatibility.PAGE.read_text(encoding="utf-8") == compatibility.page(), "run `make compatibility`"


def test_a_name_without_a_reason_is_an_error() -> None:
    with pytest.raises(LookupError, match=r"left_out\.py\): tf\.nothing, tf\.train\.nothing"):
        compatibility.reasons({"tf": ["lite", "nothing"], "tf.train": ["nothing"]})


@pytest.mark.parametrize("name", ["distribute.MirroredStrategy", "linalg.LinearOperatorDiag", "strings.ngrams", "lite"])
def test_the_error_for_a_name_gives_its_reason(name: str) -> None:
    with pytest.raises(AttributeError) as error:
        _found(f"tf.{name}")

    assert str(error.value).endswith(f": {left_out.why(name)}")


def test_what_is_left_out_is_not_here() -> None:
    parts = "activations backend initializers layers losses metrics models optimizers preprocessing regularizers"
    partly = ("keras", *(f"keras.{name}" for name in parts.split()))

    assert [name for name in left_out.REASONS if name not in partly and compatibility._has(*_split(name))] == []


def _split(name: str) -> tuple[str, str]:
    namespace, _, last = f"tf.{name}".rpartition(".")
    return namespace, last


def _function(path: str) -> Any:
    found = _found(path)
    return inspect.unwrap(found.__init__ if inspect.isclass(found) else found)


@pytest.mark.thorough
def test_the_table_of_inert_arguments_is_what_the_source_does_not_read() -> None:
    names = compatibility.names_of_tensorflow()
    absent = compatibility.absent_names(names)
    found: dict[str, str] = {}
    for namespace in names.keys() - {"tf.raw_ops"}:
        for name in {*names[namespace]} - {*absent[namespace]}:
            if callable(_found(f"{namespace}.{name}")):
                function = _function(f"{namespace}.{name}")
                if arguments := unread(function):
                    found[f"{function.__module__}.{function.__qualname__}"] = " ".join(arguments)

    listed = {name: _function(name) for name in INERT}
    assert found == {f"{each.__module__}.{each.__qualname__}": INERT[name][0] for name, each in listed.items()}
