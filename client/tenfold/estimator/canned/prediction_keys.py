"""The keys of the canned heads' predictions, as TensorFlow 1.15's `estimator/canned/prediction_keys.py` names them."""

from __future__ import annotations


class PredictionKeys:
    """Keys of the dictionaries that `predict` gives."""

    CLASSES = "classes"
    CLASS_IDS = "class_ids"
    ALL_CLASSES = "all_classes"
    ALL_CLASS_IDS = "all_class_ids"
    LOGISTIC = "logistic"
    LOGITS = "logits"
    PREDICTIONS = "predictions"
    PROBABILITIES = "probabilities"
    TOP_K = "top_k"
