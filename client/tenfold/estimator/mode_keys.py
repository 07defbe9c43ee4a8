"""`tf.estimator.ModeKeys`: the names of the three modes of a model. Values are TF 1.15's."""

from __future__ import annotations


class ModeKeys:
    """What a model function is called for."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"
