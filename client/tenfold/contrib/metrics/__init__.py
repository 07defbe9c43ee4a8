"""`tf.contrib.metrics`: the metrics of `tf.metrics` as `streaming_…`, and those that it lacks.

renamed.py has the former, joined.py, rates.py and statistics.py the latter. Each name is loaded at its first use.
"""

from tenfold.contrib.lazy import lazy_names

_HOME = "tenfold.contrib.metrics"

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        f"{_HOME}.renamed": """
            sparse_recall_at_top_k streaming_accuracy streaming_auc streaming_false_negatives
            streaming_false_positives streaming_mean streaming_mean_absolute_error streaming_mean_cosine_distance
            streaming_mean_iou streaming_mean_relative_error streaming_mean_squared_error streaming_mean_tensor
            streaming_percentage_less streaming_precision streaming_precision_at_thresholds streaming_recall
            streaming_recall_at_k streaming_recall_at_thresholds streaming_root_mean_squared_error
            streaming_sensitivity_at_specificity streaming_sparse_average_precision_at_k
            streaming_sparse_average_precision_at_top_k streaming_sparse_precision_at_k
            streaming_sparse_precision_at_top_k streaming_sparse_recall_at_k streaming_specificity_at_sensitivity
            streaming_true_negatives streaming_true_positives
        """,
        f"{_HOME}.joined": "auc_with_confidence_intervals streaming_concat streaming_dynamic_auc",
        f"{_HOME}.rates": """
            precision_at_recall precision_recall_at_equal_thresholds recall_at_precision streaming_curve_points
            streaming_false_negative_rate streaming_false_negative_rate_at_thresholds
            streaming_false_negatives_at_thresholds streaming_false_positive_rate
            streaming_false_positive_rate_at_thresholds streaming_false_positives_at_thresholds
            streaming_true_negatives_at_thresholds streaming_true_positives_at_thresholds
        """,
        f"{_HOME}.statistics": """
            accuracy aggregate_metric_map aggregate_metrics cohen_kappa count f1_score streaming_covariance
            streaming_pearson_correlation
        """,
        "tenfold.ops.sets": "set_difference set_intersection set_size set_union",
        "tenfold.ops.confusion_matrix": "confusion_matrix",
    },
)
