"""Looking into checkpoints, and variables that start from one: whole, partitioned, by scope, by new names."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf
from tenfold_core import errors

VALUE = np.arange(12, dtype=np.float32).reshape(6, 2)


@pytest.fixture(params=[tf.train.SaverDef.V2, tf.train.SaverDef.V1], ids=["V2", "V1"])
def checkpoint(request, tmp_path):
    """The prefix of a checkpoint with a/w (in parts), a/b, c."""
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.variable_scope("a"):
            tf.get_variable("w", initializer=tf.constant(VALUE), partitioner=tf.fixed_size_partitioner(3))
            tf.get_variable("b", initializer=tf.constant([1.0, 2.0]))
        tf.get_variable("c", initializer=tf.constant(3, tf.int64))
        session.run(tf.global_variables_initializer())
        return tf.train.Saver(write_version=request.param).save(session, str(tmp_path / "model"), global_step=7)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def started():
    """The values of all variables once their initializers have run."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return {v.op.name: session.run(v) for v in tf.global_variables()}


def test_reading(checkpoint, tmp_path):
    reader = tf.train.NewCheckpointReader(checkpoint)

    assert reader.get_variable_to_shape_map() == {"a/w": [6, 2], "a/b": [2], "c": []}
    assert reader.get_variable_to_dtype_map() == {"a/w": tf.float32, "a/b": tf.float32, "c": tf.int64}
    assert reader.has_tensor("c")
    assert not reader.has_tensor("d")
    np.testing.assert_array_equal(reader.get_tensor("a/w"), VALUE)
    assert (np.shape(reader.get_tensor("c")), reader.get_tensor("c")) == ((), 3)
    assert b"a/w (DT_FLOAT) [6,2]\n" in reader.debug_string()
    assert tf.train.list_variables(str(tmp_path)) == [("a/b", [2]), ("a/w", [6, 2]), ("c", [])]
    assert tf.train.load_variable(checkpoint, "c:0") == 3
    with pytest.raises(errors.NotFoundError, match="Key d not found in checkpoint"):
        reader.get_tensor("d")


def test_no_checkpoint(tmp_path):
    with pytest.raises(errors.NotFoundError, match="Failed to find any matching files"):
        tf.train.load_checkpoint(str(tmp_path / "model"))
    with pytest.raises(ValueError, match="Couldn't find 'checkpoint' file"):
        tf.train.load_checkpoint(str(tmp_path))


@pytest.mark.parametrize("use_resource", [False, True])
def test_init_by_variable_name_and_scope(checkpoint, use_resource):
    with tf.variable_scope("x", use_resource=use_resource):
        whole = tf.get_variable("w", [6, 2])
        cut = tf.get_variable("p", [6, 2], partitioner=tf.fixed_size_partitioner(2))
        listed = tf.get_variable("l", [6, 2], partitioner=tf.fixed_size_partitioner(4))
        named = tf.get_variable("n", [2])
    with tf.variable_scope("y", use_resource=use_resource):
        tf.get_variable("w", [6, 2], partitioner=tf.fixed_size_partitioner(2))
        tf.get_variable("b", [2])
    tf.train.init_from_checkpoint(checkpoint, {"a/w": whole, "a/b": "x/n"})
    tf.train.init_from_checkpoint(checkpoint, {"a/w": cut})
    tf.train.init_from_checkpoint(checkpoint, {"a/w": list(listed)})
    tf.train.init_from_checkpoint(checkpoint, {"a/": "y/"})

    values = started()

    np.testing.assert_array_equal(values["x/w"], VALUE)
    np.testing.assert_array_equal(values["x/p/part_1"], VALUE[3:])
    np.testing.assert_array_equal(values["x/l/part_0"], VALUE[:2])
    np.testing.assert_array_equal(values[named.op.name], [1.0, 2.0])
    np.testing.assert_array_equal(values["y/w/part_0"], VALUE[:3])
    np.testing.assert_array_equal(values["y/b"], [1.0, 2.0])


def test_init_of_everything_from_the_root(checkpoint):
    with tf.variable_scope("a"):
        tf.get_variable("b", [2])
    tf.get_variable("c", [], tf.int64, initializer=tf.zeros_initializer())
    tf.train.init_from_checkpoint(checkpoint, {"/": "/"})

    values = started()
    assert values["c"] == 3
    np.testing.assert_array_equal(values["a/b"], [1.0, 2.0])


def test_what_does_not_fit_is_refused(checkpoint):
    variable = tf.get_variable("v", [5])
    with pytest.raises(ValueError, match="Tensor z is not found in"):
        tf.train.init_from_checkpoint(checkpoint, {"z": variable})
    with pytest.raises(ValueError, match=r"Shape of variable v:0 .* doesn't match"):
        tf.train.init_from_checkpoint(checkpoint, {"a/b": variable})
    with pytest.raises(ValueError, match="should map to scope only"):
        tf.train.init_from_checkpoint(checkpoint, {"a/b": "nowhere/"})
    with pytest.raises(ValueError, match=r"Tensor a/v .* is not found"):
        tf.train.init_from_checkpoint(checkpoint, {"a/": "/"})


def test_warm_start(checkpoint):
    with tf.variable_scope("a"):
        tf.get_variable("w", [6, 2], partitioner=tf.fixed_size_partitioner(2))
    other = tf.get_variable("other", [2])
    tf.get_variable("c", [], tf.int64, initializer=tf.zeros_initializer(), trainable=False)
    with pytest.raises(ValueError, match="not used"):
        tf.train.warm_start(checkpoint, "a/.*", var_name_to_prev_var_name={"oter": "a/b"})
    tf.train.warm_start(checkpoint, var_name_to_prev_var_name={"other": "a/b"})
    tf.train.warm_start(checkpoint, ["c"])

    values = started()
    np.testing.assert_array_equal(values["a/w/part_1"], VALUE[3:])
    np.testing.assert_array_equal(values[other.op.name], [1.0, 2.0])
    assert values["c"] == 3
    with pytest.raises(ValueError, match="axis argument are 0 and 1"):
        tf.train.VocabInfo("n", 1, 0, "o", axis=2)
    with pytest.raises(ValueError, match="exceed expected total row count of 1 words"):
        tf.train.warm_start(checkpoint, var_name_to_vocab_info={"a/w": tf.train.VocabInfo("n", 1, 0, "o")})


def test_iterator_gives_the_newest_and_ends(checkpoint, tmp_path):
    asked = []
    found = tf.train.checkpoints_iterator(str(tmp_path), timeout=0, timeout_fn=lambda: not asked.append(1))

    assert list(found) == [checkpoint]
    assert asked == [1]
