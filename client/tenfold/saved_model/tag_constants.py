"""`tf.saved_model.tag_constants`: tags by which the graphs of a SavedModel are known, as TensorFlow 1.15's."""

#: The graph to serve.
SERVING = "serve"
#: The graph to train.
TRAINING = "train"
#: The graph to evaluate.
EVAL = "eval"
#: Graphs that want such a device.
GPU = "gpu"
TPU = "tpu"
