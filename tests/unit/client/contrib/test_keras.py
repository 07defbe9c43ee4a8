"""The old name of what is there of Keras."""

from __future__ import annotations

import pytest

import tenfold as tf


def test_the_old_name_gives_the_same_functions_and_reasons() -> None:
    assert tf.contrib.keras.utils.get_file is tf.keras.utils.get_file
    with pytest.raises(AttributeError, match=r"tf\.keras\.callbacks is not part of Tenfold: use hooks of tf\.train"):
        tf.contrib.keras.callbacks  # noqa: B018
