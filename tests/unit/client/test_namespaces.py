"""The `tf` namespace: everything promised is there, unknown names are refused with a hint, flags and logging work."""

from __future__ import annotations

import importlib
import sys

import pytest

import tenfold as tf


@pytest.mark.parametrize("name", [name for name in dir(tf) if name not in ("control", "train")])
def test_every_public_name_can_be_loaded(name):
    assert getattr(tf, name) is not None or name == "newaxis"


def test_a_misspelt_name_gets_a_hint():
    with pytest.raises(AttributeError, match=r"did you mean tf\.matmul"):
        tf.matmull  # noqa: B018


def test_the_namespace_of_compat_v1_is_the_same():
    v1 = importlib.import_module("tenfold.compat.v1")

    assert v1.placeholder is tf.placeholder
    assert set(dir(tf)) <= set(dir(v1))
    v1.disable_v2_behavior()
    assert not tf.executing_eagerly()
    with pytest.raises(NotImplementedError, match="no eager execution"):
        tf.compat.enable_v2_behavior()


def test_strings_become_bytes_and_text():
    assert tf.compat.as_bytes("é") == b"\xc3\xa9"
    assert tf.compat.as_text(b"\xc3\xa9") == tf.compat.as_str("é") == "é"
    assert tf.compat.as_str_any(3) == "3"
    with pytest.raises(TypeError, match="Expected binary or unicode string, got 3"):
        tf.compat.as_bytes(3)


def test_app_run_calls_main_with_what_is_left():
    with pytest.raises(SystemExit) as exit_info:
        tf.app.run(lambda argv: argv, argv=["program", "x"])

    assert exit_info.value.code == ["program", "x"]


def test_logging_counts_messages(monkeypatch):
    seen = []
    monkeypatch.setattr(tf.logging, "log", lambda level, msg, *args: seen.append(msg))
    for _ in range(5):
        tf.logging.log_every_n(tf.logging.INFO, "every", 2)
        tf.logging.log_first_n(tf.logging.INFO, "first", 2)

    assert (seen.count("every"), seen.count("first")) == (3, 2)
    assert tf.logging.WARN == 30


def test_the_version_is_that_of_the_distribution():
    assert tf.__version__.count(".") == 2
    assert "tenfold" in sys.modules
