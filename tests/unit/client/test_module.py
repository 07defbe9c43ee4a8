"""tf.Module: its name scope, variables and modules inside."""

from __future__ import annotations

from typing import Any

import pytest

import tenfold as tf


class Dense(tf.Module):
    def __init__(self, size: int, name: str | None = None) -> None:
        super().__init__(name)
        with self.name_scope:
            self.w = tf.Variable(tf.zeros([size]), name="w")
            self.count = tf.Variable(0, name="count", trainable=False)

    @tf.Module.with_name_scope
    def __call__(self, x: Any) -> Any:
        return tf.multiply(x, self.w, name="out")


class TwoLayers(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        with self.name_scope:
            self.layers = [Dense(2, "first"), Dense(3, "second")]
            self.again = {"first": self.layers[0]}


def test_variables_and_modules_are_found_once_and_named_by_scope() -> None:
    with tf.Graph().as_default():
        module = TwoLayers()
        names = [variable.op.name for variable in module.trainable_variables]

        assert module.name == "two_layers"
        assert names == ["two_layers/first/w", "two_layers/second/w"]
        assert len(module.variables) == 4
        assert [each.name for each in module.submodules] == ["first", "second"]
        assert module.layers[0](1.0).op.name == "two_layers/first/out"
        paths = [path for path, _ in module._flatten(predicate=lambda leaf: isinstance(leaf, Dense), with_path=True)]
        assert paths == [("again", "first"), ("layers", 0), ("layers", 1)]


def test_a_name_is_an_identifier() -> None:
    with pytest.raises(ValueError, match="is not a valid module name"):
        Dense(1, "a b")
