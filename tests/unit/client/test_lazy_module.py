"""Modules that load their names at the first use answer for all of them, as TensorFlow's do."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

from tenfold.lazy_module import LazyModule, loaded_names, make_lazy


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module with the names `one`, made at its first use, and `none`, whose package is not installed."""
    made = ModuleType("made_for_this_test")

    def get(name: str) -> Any:
        if name == "one":
            return 1
        raise ImportError(name) if name == "none" else AttributeError(name)

    made.__dict__.update(__getattr__=get, __dir__=lambda: ["none", "one"])
    monkeypatch.setitem(sys.modules, made.__name__, made)
    make_lazy(made.__name__)
    return made


def test_a_look_at_all_names_loads_them(module: ModuleType) -> None:
    assert isinstance(module, LazyModule)
    assert loaded_names(module).get("one") is None
    assert vars(module)["one"] == 1
    assert "none" not in vars(module)
    assert vars(module) is loaded_names(module)


def test_one_name_loads_no_other(module: ModuleType) -> None:
    assert dir(module) == ["none", "one"]
    assert module.one == 1
    assert "_is_full" not in loaded_names(module)


def test_a_module_is_not_filled_while_it_is_imported(module: ModuleType) -> None:
    class Spec:
        _initializing = True

    module.__spec__ = Spec()  # type: ignore[assignment]
    assert "one" not in vars(module)
    Spec._initializing = False
    assert vars(module)["one"] == 1


LOOKS = """
import inspect
import tenfold as tf
from tenfold.contrib.seq2seq import *
assert BasicDecoder is tf.contrib.seq2seq.BasicDecoder
cells = [each for each in tf.contrib.rnn.__dict__.values() if inspect.isclass(each)]
assert tf.contrib.rnn.BasicLSTMCell in cells
for namespace in (tf.nn, tf.math, tf.train, tf.data, tf.flags, tf.contrib.layers, tf.estimator):
    assert set(dir(namespace)) <= vars(namespace).keys(), namespace
"""


def test_every_way_to_look() -> None:
    done = subprocess.run([sys.executable, "-c", LOOKS], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
