"""`tf.data.experimental`: further transformations, for `Dataset.apply`, and what belongs to them.

Each name is loaded at its first use. Thin: the operations are made in tenfold/data. Follows TensorFlow 1.15's
data/experimental/ops.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tenfold.lazy_module import make_lazy
from tenfold.left_out import hint as _hint

make_lazy(__name__)

_EXPORTS = {
    "tenfold.data.dataset": "AUTOTUNE get_structure",
    "tenfold.data.experimental.batching": """
        dense_to_sparse_batch map_and_batch map_and_batch_with_legacy_function unbatch
    """,
    "tenfold.data.experimental.csv": "make_csv_dataset",
    "tenfold.data.experimental.elements": """
        Counter INFINITE_CARDINALITY UNKNOWN_CARDINALITY bytes_produced_stats cardinality copy_to_device
        enumerate_dataset from_variant get_single_element ignore_errors latency_stats prefetch_to_device
        shuffle_and_repeat take_while to_variant unique
    """,
    "tenfold.data.experimental.features": "make_batched_features_dataset parse_example_dataset",
    "tenfold.data.experimental.grouping": "bucket_by_sequence_length group_by_reducer group_by_window",
    "tenfold.data.experimental.interleaving": "choose_from_datasets parallel_interleave sample_from_datasets",
    "tenfold.data.experimental.resampling": "rejection_resample",
    "tenfold.data.experimental.saving": "CheckpointInputPipelineHook make_saveable_from_iterator",
    "tenfold.data.experimental.scanning": "scan",
    "tenfold.data.experimental.writers": "TFRecordWriter",
    "tenfold.data.grouping": "Reducer",
    "tenfold.data.node": "DatasetStructure=DatasetSpec",
    "tenfold.data.optionals": "Optional OptionalStructure=OptionalSpec get_next_as_optional",
    "tenfold.data.options": """
        DistributeOptions MapVectorizationOptions OptimizationOptions StatsOptions ThreadingOptions
    """,
    "tenfold.data.readers": "CsvDataset RandomDataset SqlDataset",
    "tenfold.data.stats_aggregator": "StatsAggregator",
    "tenfold.data.structures": "SparseTensorStructure TensorArrayStructure TensorStructure",
    "tenfold.ops.type_specs": "Structure=TypeSpec",
}

_HOME: dict[str, tuple[str, str]] = {}
for _module, _names in _EXPORTS.items():
    for _name in _names.split():
        _public, _, _attribute = _name.partition("=")
        _HOME[_public] = (_module, _attribute or _public)
del _module, _names, _name, _public, _attribute


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        why = _hint(f"data.experimental.{name}")
        raise AttributeError(f"module 'tenfold.data.experimental' has no attribute {name!r}{why}")
    module, attribute = _HOME[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_HOME)
