"""The frames of a program are told from those of the package by the package's place, whatever folders are called."""

from __future__ import annotations

import os

import pytest

import tenfold as tf
from tenfold.graph.traceback import user_frames
from tenfold.session.step_errors import definition_place

#: A program in a clone that is called like the package.
CLONE = "/home/me/tenfold/client/tenfold_models/model.py"
PROGRAM = """
def build():
    return tf.get_variable("shared", [2])
"""


def test_a_program_in_a_folder_called_tenfold_is_shown() -> None:
    names = {"tf": tf}
    exec(compile(PROGRAM, CLONE, "exec"), names)

    with tf.Graph().as_default():
        variable = names["build"]()
        with pytest.raises(ValueError, match="Originally defined at") as caught:
            names["build"]()

    assert f'File "{CLONE}", line 3, in build' in str(caught.value)
    assert f'File "{CLONE}", line 3, in build' in definition_place(variable.op)


def test_frames_of_the_package_are_hidden() -> None:
    package = os.path.dirname(tf.__file__)
    with tf.Graph().as_default():
        variable = tf.get_variable("w", [2])

    frames = user_frames(variable.op.traceback)

    assert frames
    assert frames[-1][0] == __file__
    assert not [frame for frame in frames if frame[0].startswith(package + os.sep)]
    assert user_frames(None) == []
