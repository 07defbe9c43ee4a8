"""What to parse examples by, for classifiers and regressors. Follows TF 1.15's estimator/canned/parsing_utils.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.feature_column import make_parse_example_spec, numeric_column
from tenfold.feature_column.numeric import NumericColumn
from tenfold.ops.parsing import FixedLenFeature
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Iterable


def classifier_parse_example_spec(
    feature_columns: Iterable[Any],
    label_key: str,
    label_dtype: Any = dtypes.int64,
    label_default: Any = None,
    weight_column: Any = None,
) -> dict[str, Any]:
    """Key → what tf.parse_example needs for it: the columns, a label [1], and a weight if there is one.

    Raises ValueError for a label or weight that is a feature as well, and a weight that is no numeric column. As
    TensorFlow 1.15's `tf.estimator.classifier_parse_example_spec`.
    """
    return _with_label_and_weight(
        feature_columns, label_key, FixedLenFeature((1,), label_dtype, label_default), weight_column
    )


def regressor_parse_example_spec(
    feature_columns: Iterable[Any],
    label_key: str,
    label_dtype: Any = dtypes.float32,
    label_default: Any = None,
    label_dimension: int = 1,
    weight_column: Any = None,
) -> dict[str, Any]:
    """As `classifier_parse_example_spec`, with a label [label_dimension]."""
    return _with_label_and_weight(
        feature_columns, label_key, FixedLenFeature((label_dimension,), label_dtype, label_default), weight_column
    )


def _with_label_and_weight(
    feature_columns: Iterable[Any], label_key: str, label: Any, weight_column: Any
) -> dict[str, Any]:
    spec: dict[str, Any] = make_parse_example_spec(feature_columns)
    if label_key in spec:
        raise ValueError(f"label should not be used as feature. label_key: {label_key}, features: {spec.keys()}")
    spec[label_key] = label
    if weight_column is None:
        return spec
    column = numeric_column(weight_column) if isinstance(weight_column, str) else weight_column
    if not isinstance(column, NumericColumn):
        raise ValueError(
            "weight_column should be an instance of tf.feature_column.numeric_column. "
            f"Given type: {type(column)} value: {column}"
        )
    if column.key in spec:
        raise ValueError(
            f"weight_column should not be used as feature. weight_column: {column.key}, features: {spec.keys()}"
        )
    return {**spec, **column.parse_example_spec}
