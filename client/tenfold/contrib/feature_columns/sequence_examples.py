"""`parse_feature_columns_from_sequence_examples`: what a SequenceExample has for old columns.

Examples without sequences are parsed in inputs.py. Follows TensorFlow 1.15's
`contrib/layers/python/layers/feature_column_ops.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold.contrib.feature_columns.inputs import check_feature_columns, create_feature_spec_for_parsing
from tenfold.ops import array
from tenfold.ops.parsing import FixedLenFeature, FixedLenSequenceFeature, VarLenFeature
from tenfold.ops.parsing_sequences import parse_single_sequence_example

if TYPE_CHECKING:
    from collections.abc import Iterable


def parse_feature_columns_from_sequence_examples(
    serialized: Any,
    context_feature_columns: Iterable[Any] | None,
    sequence_feature_columns: Iterable[Any] | None,
    name: str | None = None,
    example_name: Any = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The features of the context and those of each step, by name, of one serialized SequenceExample.

    Raises ValueError for more than one example and for a column that is there twice, TypeError for another feature.
    """
    try:
        serialized = array.reshape(serialized, [])
    except ValueError as error:
        raise ValueError(
            "serialized must contain as single sequence example. Batching must be done after parsing for sequence "
            f"examples. Error: {error}"
        ) from error
    columns = [list(each or ()) for each in (context_feature_columns, sequence_feature_columns)]
    for each in columns:
        check_feature_columns(each)
    context, steps = (create_feature_spec_for_parsing(each) for each in columns)
    parsed: tuple[dict[str, Any], dict[str, Any]] = parse_single_sequence_example(
        serialized, context, {key: _of_a_step(key, feature) for key, feature in steps.items()}, example_name, name
    )
    return parsed


def _of_a_step(key: str, feature: Any) -> Any:
    if isinstance(feature, VarLenFeature):
        return feature
    if not isinstance(feature, FixedLenFeature):
        raise TypeError(f"Unsupported feature type: {type(feature).__name__}.")
    if feature.default_value is not None:
        logging.warning(
            'Found default value for feature "%s". It is not used in a sequence: missing steps are left out.', key
        )
    return FixedLenSequenceFeature(feature.shape, feature.dtype, allow_missing=feature.default_value is not None)
