"""`tf.estimator.ModeKeys`: the names of the three modes of a model. Follows TF 1.15's saved_model/model_utils/mode_keys.py."""

from __future__ import annotations


class ModeKeys:
    """What a model function is called for."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"
