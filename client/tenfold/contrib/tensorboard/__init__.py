"""`tf.contrib.tensorboard`: what a program writes for TensorBoard's plugins. As TF 1.15's contrib/tensorboard."""

from tenfold.contrib.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, {"": "plugins=tenfold.contrib.tensorboard.plugins"})
