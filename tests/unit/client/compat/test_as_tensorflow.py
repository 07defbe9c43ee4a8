"""`import tensorflow` answered by Tenfold: in a process of its own, since an import hook is for good."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.compat.v1.train import Server
from tensorflow.python.client import timeline
from tensorflow.python.framework import graph_util, ops, errors
from tensorflow.python.ops import array_ops, nn
from tensorflow.python.ops.nn_ops import conv2d
from tensorflow.core.framework import summary_pb2
from tensorflow.core.protobuf import config_pb2
from tensorflow.contrib.framework import get_or_create_global_step
from tensorflow.contrib.framework.python.ops import audio_ops
import tensorflow.contrib as contrib
import tenfold

assert tf.Session is tenfold.Session and tf1.Session is tf.Session and Server is tenfold.train.Server
assert errors.OpError is tf.errors.OpError and config_pb2.ConfigProto is tf.ConfigProto
assert array_ops.reshape is tf.reshape and nn.relu is tf.nn.relu and conv2d is tf.nn.conv2d
assert graph_util.extract_sub_graph is tf.graph_util.extract_sub_graph
assert summary_pb2.Summary is tf.Summary and ops.Graph is tf.Graph
assert contrib.framework.get_or_create_global_step is get_or_create_global_step
assert audio_ops.decode_wav is tf.audio.decode_wav and audio_ops.mfcc is not None
assert timeline.Timeline is not None and tf.train.Supervisor is not None
assert tf.__version__ == tf.VERSION == "1.15.0" and tf.versions.tenfold == tenfold.__version__ != tf.VERSION
from pydoc import locate
assert locate("tensorflow.identity") is tenfold.identity and locate("tensorflow.train.Saver") is tenfold.train.Saver
assert locate("tensorflow.contrib.rnn.GRUCell") is tf.nn.rnn_cell.GRUCell
from tensorflow.examples.tutorials.mnist import input_data
assert input_data.read_data_sets("", fake_data=True, one_hot=True).train.num_examples == 10000
for name in (
    "tensorflow.nothing", "tensorflow.python.nothing", "tensorflow.contrib.nothing", "tensorflow.contrib.slim.nothing"
):
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        assert name in str(error), error
    else:
        raise AssertionError(name)
try:
    from tensorflow.contrib.framework import nothing
except ImportError as error:
    assert "cannot import name 'nothing'" in str(error), error
else:
    raise AssertionError(nothing)
import multiprocessing, urllib
assert multiprocessing.pool and urllib.request
try:
    import tensorflow.keras.datasets
except ModuleNotFoundError as error:
    assert "No module named 'tensorflow.keras.datasets': tf.keras" in str(error), error
    assert "tf.keras.utils.get_file" in str(error), error
else:
    raise AssertionError("tf.keras.datasets")
try:
    tf.nothing
except AttributeError as error:
    assert "answered by Tenfold" in str(error) and "nothing" in str(error)
import inspect
from tensorflow.contrib.rnn import *
from tensorflow.contrib.layers import *
assert BasicLSTMCell is vars(tf.contrib.rnn)["BasicLSTMCell"] is vars(contrib.rnn)["BasicLSTMCell"]
assert dict(inspect.getmembers(contrib.rnn))["GRUCell"] is tf.nn.rnn_cell.GRUCell is tf.nn.rnn_cell.__dict__["GRUCell"]
assert real_valued_column is tf.contrib.layers.real_valued_column and fully_connected is not None
assert "annotations" not in globals() and "lazy_names" not in globals() and not hasattr(contrib.rnn, "__all__")
assert {"rnn", "crf", "seq2seq", "tpu"} <= set(dir(tf.contrib)) and "lazy" not in dir(tf.contrib)
assert not any(name.split(".")[0] in ("grpc", "numba") for name in __import__("sys").modules)
from tenfold.compat import as_tensorflow
as_tensorflow.install()
print(tf.Session().run(tf.constant("fine")))
"""

ALREADY = """
import sys, types
sys.modules["tensorflow"] = types.ModuleType("tensorflow")
sys.modules["tensorflow"].__file__ = "/lib/tensorflow/__init__.py"
from tenfold.compat import as_tensorflow
try:
    as_tensorflow.install()
except ImportError as error:
    print(error)
"""


def run(program: str, *options: str) -> str:
    done = subprocess.run([sys.executable, *options, program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


#: Imports what Tenfold leaves out of contrib, as a program does that never comes to use it; then uses it in each way.
LEFT_OUT = """
import tensorflow as tf
import tensorflow.contrib.tensor_forest.python.tensor_forest as forest
import tensorflow.contrib.eager as tfe
from tensorflow.contrib import quantize
from tensorflow.contrib.model_pruning.python import pruning
from tensorflow.contrib.cudnn_rnn.python.ops import cudnn_rnn_ops
from tensorflow.contrib.gan import GANModel, gan_loss
from tensorflow.contrib.tfprof import ProfileContext

def derive():
    class Model(GANModel):
        pass

for use, why in (
    (lambda: forest.RandomForestGraphs, "tf.contrib.tensor_forest is not part of Tenfold: its trees"),
    (lambda: tf.contrib.tensor_forest.client, "use scikit-learn"),
    (lambda: tfe.Iterator, "tf.contrib.eager is not part of Tenfold: execution is by graphs"),
    (lambda: quantize.create_training_graph(), "tf.contrib.quantize is not part of Tenfold"),
    (lambda: tf.contrib.quantize.create_training_graph(), "tf.contrib.quantize is not part of Tenfold"),
    (lambda: pruning.apply_mask, "masks on weights are a product of two variables"),
    (lambda: cudnn_rnn_ops.CudnnGRU(1, 2, 3), "it is for GPUs"),
    (lambda: gan_loss(None), "tf.contrib.gan is not part of Tenfold"),
    (lambda: isinstance(tf, GANModel), "tf.contrib.gan is not part of Tenfold"),
    (derive, "tf.contrib.gan is not part of Tenfold"),
    (lambda: ProfileContext("out"), "trace steps with tf.train.ProfilerHook"),
):
    try:
        use()
    except AttributeError as error:
        assert why in str(error), (why, error)
    else:
        raise AssertionError(why)
assert not hasattr(tf.contrib.quantize, "create_training_graph")
from tensorflow.contrib.cudnn_rnn import *
print("told")
"""


def test_a_program_of_tensorflows_imports() -> None:
    installed = "from tenfold.compat import as_tensorflow; as_tensorflow.install()"
    assert run(f"{installed}\n{PROGRAM}", "-c") == "b'fine'\n"


def test_tensorflow_itself_is_not_replaced() -> None:
    assert run(ALREADY, "-c") == "TensorFlow itself was imported already, from /lib/tensorflow/__init__.py\n"


def test_what_is_left_out_of_contrib_tells_why_once_it_is_used() -> None:
    code = "from tenfold.compat import as_tensorflow; as_tensorflow.install()\n" + LEFT_OUT
    assert run(code, "-c") == "told\n"


def test_layers_of_keras_that_are_not_here_may_be_imported() -> None:
    """As libraries of layers do, which use few of them in a program."""
    code = """
from tenfold.compat import as_tensorflow; as_tensorflow.install()
from tensorflow.python.keras.layers import Conv2D, Dense, dot
from tensorflow.keras.models import Model
import tensorflow as tf
assert Dense is tf.keras.layers.Dense and Model is tf.keras.Model
try:
    Conv2D(8, 3)
except AttributeError as told:
    print(told)
assert not hasattr(tf.keras.layers, "Conv9D")
"""
    assert run(code, "-c").startswith("tf.python.keras.layers.Conv2D is not part of Tenfold: use tf.layers, or")
